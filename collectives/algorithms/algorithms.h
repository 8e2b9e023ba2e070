/* algorithms: shared by the files of this folder.
 *
 * An algorithm is a function that writes one rank's part through the emitter. It works on a *team*, a list of ranks, so
 * that the same code serves all ranks, a cluster or the leaders of clusters, and algorithms compose: van de Geijn's
 * broadcast is a scatter and an all-gather. The registry (registry.c) has the name and the inputs of each one. */
#pragma once

#include "collectives/schedule/emit.h"

/* ---- Teams ---- */

struct cw_team {
    const uint32_t *members; /* NULL: all ranks from 0 */
    uint32_t size;
    uint32_t me;   /* index of this rank; `size` if it is none of them */
    uint32_t turn; /* index i is member (i + turn) mod size */
};

struct cw_team cw_team_all(const struct cw_emit *emit);
struct cw_team cw_team_cluster(const struct cw_emit *emit, uint32_t cluster);

static inline uint32_t cw_team_rank(const struct cw_team *team, uint32_t index)
{
    uint32_t member = index < team->size - team->turn ? index + team->turn : index - (team->size - team->turn);
    return team->members != NULL ? team->members[member] : member;
}

/* Index of a rank in a team that is not turned; `size` if it is not there. */
uint32_t cw_team_index(const struct cw_team *team, uint32_t rank);

/* The same team with member `first` at index 0. */
struct cw_team cw_team_turned(const struct cw_team *team, uint32_t first);

/* ---- Blocks ---- */

/* How a vector is divided among the members of a team: evenly, or as the problem's counts say (team: all ranks). */
struct cw_blocks {
    const struct cw_problem *problem; /* NULL: evenly */
    uint32_t pairs;                   /* with a problem: block i < pairs represents two blocks of it, 2i and 2i + 1 */
    uint64_t elements;
    uint32_t element_bytes;
    uint32_t parts;
};

struct cw_blocks cw_blocks_even(const struct cw_emit *emit, uint64_t bytes, uint32_t parts);
struct cw_blocks cw_blocks_problem(const struct cw_emit *emit);

/* The block of an even division that has the element at byte `offset`. */
uint32_t cw_blocks_at(const struct cw_blocks *blocks, uint64_t offset);

/* Bytes before block i, 0 <= i <= parts. */
uint64_t cw_blocks_offset(const struct cw_blocks *blocks, uint32_t i);

static inline uint64_t cw_blocks_bytes(const struct cw_blocks *blocks, uint32_t i)
{
    return cw_blocks_offset(blocks, i + 1) - cw_blocks_offset(blocks, i);
}

/* ---- Trees over 0 .. size-1 with root 0 (tree.c) ---- */

enum cw_tree {
    CW_TREE_FLAT,
    CW_TREE_CHAIN,
    CW_TREE_DARY, /* node v has children v * degree + 1 .. v * degree + degree */
    CW_TREE_BINOMIAL,
};

/* The parent of node v > 0. */
uint32_t cw_tree_parent(enum cw_tree tree, uint32_t degree, uint32_t v);

/* Child number i of node v, in the order in which they are served; `size` if there is none such. */
uint32_t cw_tree_child(enum cw_tree tree, uint32_t degree, uint32_t size, uint32_t v, uint32_t i);

/* Flat tree, chain and binomial tree: nodes v .. v + span - 1 are the subtree of v. */
uint32_t cw_tree_span(enum cw_tree tree, uint32_t size, uint32_t v);

/* ---- Arithmetic ---- */

static inline uint32_t cw_log2_floor(uint32_t n)
{
    return 31u - (uint32_t)__builtin_clz(n);
}

static inline uint32_t cw_log2_ceiling(uint32_t n)
{
    return n <= 1 ? 0 : cw_log2_floor(n - 1) + 1;
}

/* ---- Parts of algorithms (all members of the team call them alike) ---- */

/* A vector of `bytes` at one member's `from` goes to every other member's `to`. */
struct cw_bcast_part {
    struct cw_team team;
    uint32_t root; /* index */
    struct cw_place from;
    struct cw_place to;
    uint64_t bytes;
};

void cw_bcast_tree(struct cw_emit *emit, const struct cw_bcast_part *part, enum cw_tree tree, uint32_t degree,
                   uint64_t segment_bytes);
void cw_bcast_van_de_geijn(struct cw_emit *emit, const struct cw_bcast_part *part);

/* As above, for one multicast to all of the team; `number` as cw_emit_multicast has it. */
void cw_bcast_multicast(struct cw_emit *emit, const struct cw_bcast_part *part, uint32_t number);

/* A vector of blocks, one per member: the root holds block 0, the next member block 1, and so on around. */
struct cw_vector_part {
    struct cw_team team;
    struct cw_blocks blocks;
    uint32_t root; /* index of the member that holds block 0 */
    /* A power of two. Members whose number from the root is a multiple of it are heads, which have the blocks of their
     * subtree up to the next head; a scatter goes down from them, and leaves every member with the blocks of its
     * subtree. 1: each has its own block. */
    uint32_t span_max;
    /* A scatter goes down to the members whose number is a multiple of it. 1 or 0: to all. */
    uint32_t span_min;
    /* Index of a member that has the whole vector, at `source`, and takes nothing; size: none. */
    uint32_t complete;
    struct cw_place source;
    struct cw_place base; /* where the vector lies at all other members */
};

/* Each member gets its block at `base` from its head, down a binomial tree; members on the way hold what they pass on
 * at the same place. */
void cw_scatter_in_place(struct cw_emit *emit, const struct cw_vector_part *part);

/* Each member holds its block at `base`, and after a scatter those of its subtree; afterwards all hold the whole
 * vector. */
void cw_allgather_ring(struct cw_emit *emit, const struct cw_vector_part *part);

/* The same with pairwise exchange; span_max is 1. */
void cw_allgather_recursive_doubling(struct cw_emit *emit, const struct cw_vector_part *part);

/* The least power of two that is not below n: with it as span_max the root is the only head. */
static inline uint32_t cw_span_all(uint32_t n)
{
    return 1u << cw_log2_ceiling(n);
}
