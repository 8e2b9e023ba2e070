/* The problem: the task of a collective. Everything here is known to all ranks alike (MPI 5.0, chapter 6).
 *
 * Buffers are packed: block after block in rank order, without gaps; with counts c in elements
 *   collective       send buffer                              receive buffer
 *   bcast            root: count                              others: count
 *   scatter          root: c[0], ..., c[P-1]                  rank r: c[r]
 *   gather           rank r: c[r]                             root: c[0], ..., c[P-1]
 *   allgather        rank r: c[r]                             c[0], ..., c[P-1]
 *   alltoall         rank r: c[r][0], ..., c[r][P-1]          rank r: c[0][r], ..., c[P-1][r]
 *   reduce           count                                    root: count
 *   allreduce        count                                    count
 *   reduce-scatter   c[0] + ... + c[P-1]                      rank r: c[r]
 *   scan, exscan     count                                    count (exscan: rank 0 nothing)
 *   barrier          nothing                                  nothing */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectives/schedule/limits.h"

#define CW_DIRECT UINT32_MAX

enum cw_collective {
    CW_BCAST = 0,
    CW_SCATTER,
    CW_GATHER,
    CW_ALLGATHER,
    CW_ALLTOALL,
    CW_REDUCE,
    CW_ALLREDUCE,
    CW_REDUCE_SCATTER,
    CW_SCAN,
    CW_EXSCAN,
    CW_BARRIER,
    CW_COLLECTIVE_COUNT,
};

/* The caller's description. Lists are copied. */
struct cw_problem_request {
    enum cw_collective collective;
    uint32_t ranks;         /* 1 .. CW_RANKS_MAX */
    uint32_t root;          /* bcast, scatter, gather, reduce; else 0 */
    uint32_t element_bytes; /* 1 .. CW_ELEMENT_BYTES_MAX */
    bool ordered;   /* reductions: the operation is associative, but not commutative: operands stay in rank order */
    uint64_t count; /* elements of the vector, or of each block where `counts` is NULL */
    const uint64_t *
        /* scatter, gather, allgather, reduce-scatter: a block per rank; alltoall: [from * ranks + to]; else NULL */
        counts;
    uint32_t cluster_count;     /* 0 or 1: all in one cluster */
    const uint32_t *cluster_of; /* per rank, each cluster at least once; NULL with one cluster */
    /* [a * cluster_count + b]: the cluster through which traffic from a to b passes, or CW_DIRECT; NULL: all direct.
     * Symmetric; the two legs are direct. */
    const uint32_t *cluster_via;
    uint32_t host_count;     /* hosts whose ranks share memory; 0: no two ranks do, as far as is known */
    const uint32_t *host_of; /* per rank, each host at least once; NULL with one host */
};

/* Ranks in groups: per cluster, per host. */
struct cw_rank_groups {
    uint32_t count;
    uint32_t *of;      /* per rank; NULL: all in group 0 */
    uint32_t *first;   /* where a group's ranks begin in `members`; count + 1 entries */
    uint32_t *members; /* ranks by group, rising in each */
};

struct cw_problem {
    enum cw_collective collective;
    uint32_t ranks;
    uint32_t root;
    uint32_t element_bytes;
    uint32_t cluster_count; /* at least 1 */
    bool ordered;
    bool has_counts;
    uint64_t count;
    uint64_t *counts; /* as asked; NULL: all `count` */
    /* elements before block i; alltoall: in the sender's buffer, [from * (ranks + 1) + to]; NULL without counts */
    uint64_t *offsets;
    uint64_t *receive_offsets; /* alltoall: in the receiver's buffer, [to * (ranks + 1) + from] */
    uint32_t *cluster_via;     /* NULL: all direct */
    struct cw_rank_groups clusters;
    struct cw_rank_groups hosts; /* count 0: not known */
};

/* Checks a request and makes the problem of it. CW_OK, CW_ERROR_ARGUMENT (the reason in `error`), CW_ERROR_MEMORY. */
int cw_problem_create(const struct cw_problem_request *request, struct cw_problem **problem, char *error,
                      size_t error_bytes);

void cw_problem_destroy(struct cw_problem *problem);

/* "bcast", "reduce-scatter", ...; NULL for a number out of range. */
const char *cw_collective_name(uint32_t collective);

/* The collective of that name; CW_COLLECTIVE_COUNT if there is none. */
enum cw_collective cw_collective_find(const char *name);

/* Whether the collective has a root; counts per rank; a count per pair; combines operands. */
bool cw_collective_rooted(enum cw_collective collective);
bool cw_collective_accepts_counts(enum cw_collective collective);
bool cw_collective_reduces(enum cw_collective collective);

/* Bytes of the caller's buffers at `rank` (cw_buffer: send or receive). */
uint64_t cw_problem_buffer_bytes(const struct cw_problem *problem, uint32_t rank, uint32_t buffer);

/* Block i of a collective with a block per rank, in bytes. */
static inline uint64_t cw_problem_block_bytes(const struct cw_problem *problem, uint32_t i)
{
    return (problem->counts != NULL ? problem->counts[i] : problem->count) * problem->element_bytes;
}

/* Bytes before block i, 0 <= i <= ranks. */
static inline uint64_t cw_problem_block_offset(const struct cw_problem *problem, uint32_t i)
{
    return (problem->counts != NULL ? problem->offsets[i] : problem->count * i) * problem->element_bytes;
}

/* alltoall: bytes from one rank to another, and where they lie in the sender's and in the receiver's buffer. */
static inline uint64_t cw_problem_pair_bytes(const struct cw_problem *problem, uint32_t from, uint32_t to)
{
    return (problem->counts != NULL ? problem->counts[(uint64_t)from * problem->ranks + to] : problem->count) *
           problem->element_bytes;
}

static inline uint64_t cw_problem_pair_send_offset(const struct cw_problem *problem, uint32_t from, uint32_t to)
{
    return (problem->counts != NULL ? problem->offsets[(uint64_t)from * (problem->ranks + 1ull) + to]
                                    : problem->count * to) *
           problem->element_bytes;
}

static inline uint64_t cw_problem_pair_receive_offset(const struct cw_problem *problem, uint32_t from, uint32_t to)
{
    return (problem->counts != NULL ? problem->receive_offsets[(uint64_t)to * (problem->ranks + 1ull) + from]
                                    : problem->count * from) *
           problem->element_bytes;
}

/* Between two clusters: the cluster that traffic passes through, or CW_DIRECT. */
static inline uint32_t cw_problem_via(const struct cw_problem *problem, uint32_t from, uint32_t to)
{
    return problem->cluster_via != NULL ? problem->cluster_via[from * problem->cluster_count + to] : CW_DIRECT;
}

static inline uint32_t cw_problem_cluster(const struct cw_problem *problem, uint32_t rank)
{
    return problem->clusters.of != NULL ? problem->clusters.of[rank] : 0;
}

/* Ranks of a cluster, where there are clusters; of the one with most, and of the one with fewest. */
static inline uint32_t cw_problem_cluster_size(const struct cw_problem *problem, uint32_t cluster)
{
    return problem->clusters.first[cluster + 1] - problem->clusters.first[cluster];
}

/* Ranks of a host, and the host of a rank, where hosts are known. */
static inline uint32_t cw_problem_host_size(const struct cw_problem *problem, uint32_t host)
{
    return problem->hosts.first[host + 1] - problem->hosts.first[host];
}

/* The first rank of a host, its head. */
static inline uint32_t cw_problem_head(const struct cw_problem *problem, uint32_t host)
{
    return problem->hosts.members[problem->hosts.first[host]];
}

static inline uint32_t cw_problem_host(const struct cw_problem *problem, uint32_t rank)
{
    return problem->hosts.of != NULL ? problem->hosts.of[rank] : 0;
}

uint32_t cw_problem_cluster_largest(const struct cw_problem *problem);
uint32_t cw_problem_cluster_smallest(const struct cw_problem *problem);
