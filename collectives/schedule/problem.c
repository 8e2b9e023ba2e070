#include "collectives/schedule/problem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/schedule.h"
#include "dataplane/status.h"

/* Properties of the collectives, except their algorithms. */
struct collective_traits {
    const char *name;
    bool rooted;
    bool takes_counts;
    bool reduces;
};

static const struct collective_traits traits[CW_COLLECTIVE_COUNT] = {
    [CW_BCAST] = {"bcast", true, false, false},         [CW_SCATTER] = {"scatter", true, true, false},
    [CW_GATHER] = {"gather", true, true, false},        [CW_ALLGATHER] = {"allgather", false, true, false},
    [CW_ALLTOALL] = {"alltoall", false, true, false},   [CW_REDUCE] = {"reduce", true, false, true},
    [CW_ALLREDUCE] = {"allreduce", false, false, true}, [CW_REDUCE_SCATTER] = {"reduce-scatter", false, true, true},
    [CW_SCAN] = {"scan", false, false, true},           [CW_EXSCAN] = {"exscan", false, false, true},
    [CW_BARRIER] = {"barrier", false, false, false},
};

const char *cw_collective_name(uint32_t collective)
{
    return collective < CW_COLLECTIVE_COUNT ? traits[collective].name : NULL;
}

enum cw_collective cw_collective_find(const char *name)
{
    uint32_t i = 0;
    while (i < CW_COLLECTIVE_COUNT && strcmp(traits[i].name, name) != 0) {
        i++;
    }
    return (enum cw_collective)i;
}

bool cw_collective_rooted(enum cw_collective collective)
{
    return traits[collective].rooted;
}

bool cw_collective_accepts_counts(enum cw_collective collective)
{
    return traits[collective].takes_counts;
}

bool cw_collective_reduces(enum cw_collective collective)
{
    return traits[collective].reduces;
}

static int reject(char *error, size_t error_bytes, const char *what, uint64_t value, const char *hint)
{
    snprintf(error, error_bytes, "%s: %llu; %s", what, (unsigned long long)value, hint);
    return CW_ERROR_ARGUMENT;
}

static int request_check(const struct cw_problem_request *request, char *error, size_t error_bytes)
{
    if ((uint32_t)request->collective >= CW_COLLECTIVE_COUNT) {
        return reject(error, error_bytes, "unknown collective", request->collective, "they are numbered from 0 to 10");
    }
    const struct collective_traits *collective = &traits[request->collective];
    if (request->ranks < 1 || request->ranks > CW_RANKS_MAX) {
        return reject(error, error_bytes, "number of ranks out of range", request->ranks,
                      "at least 1, at most 1048576");
    }
    if (request->root >= request->ranks) {
        return reject(error, error_bytes, "root is no rank", request->root, "ranks are numbered from 0");
    }
    if (request->root != 0 && !collective->rooted) {
        return reject(error, error_bytes, "this collective has no root", request->root, "leave it out");
    }
    if (request->element_bytes < 1 || request->element_bytes > CW_ELEMENT_BYTES_MAX) {
        return reject(error, error_bytes, "bytes of an element out of range", request->element_bytes,
                      "at least 1, at most 65536");
    }
    if (request->counts != NULL && !collective->takes_counts) {
        snprintf(error, error_bytes, "%s moves as much at every rank; give one size, not a list of counts",
                 collective->name);
        return CW_ERROR_ARGUMENT;
    }
    if (request->ordered && !collective->reduces) {
        snprintf(error, error_bytes, "%s has no operation whose operands could stay in order; only reductions have",
                 collective->name);
        return CW_ERROR_ARGUMENT;
    }
    if (request->cluster_count > request->ranks || request->cluster_count > CW_CLUSTERS_MAX) {
        return reject(error, error_bytes, "more clusters than ranks, or than 4096", request->cluster_count,
                      "each cluster has at least one rank");
    }
    if (request->cluster_count > 1 && request->cluster_of == NULL) {
        return reject(error, error_bytes, "clusters without members", request->cluster_count,
                      "say for each rank which one it is in");
    }
    if (request->host_count > request->ranks || (request->host_count > 1 && request->host_of == NULL)) {
        return reject(error, error_bytes, "more hosts than ranks, or hosts without ranks", request->host_count,
                      "say for each rank which host it is on");
    }
    return CW_OK;
}

/* Prefix sums of n counts that lie `stride` apart into offsets[0..n]; false if they exceed what a buffer may hold. */
static bool sum_counts(const uint64_t *counts, uint64_t stride, uint32_t n, uint64_t element_bytes, uint64_t *offsets)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        offsets[i] = sum;
        uint64_t count = counts[i * stride];
        if (count > CW_BUFFER_BYTES_MAX / element_bytes || (sum + count) > CW_BUFFER_BYTES_MAX / element_bytes) {
            return false;
        }
        sum += count;
    }
    offsets[n] = sum;
    return true;
}

static int counts_copy(struct cw_problem *problem, const struct cw_problem_request *request, char *error,
                       size_t error_bytes)
{
    static const char too_much[] = "a buffer would exceed 64 TiB";
    uint64_t ranks = request->ranks;
    uint64_t element_bytes = request->element_bytes;
    if (request->counts == NULL) {
        uint64_t blocks = traits[request->collective].takes_counts ? ranks : 1;
        if (request->count > CW_BUFFER_BYTES_MAX / element_bytes / blocks) {
            return reject(error, error_bytes, too_much, request->count, "so many elements are too many");
        }
        return CW_OK;
    }
    bool pairs = request->collective == CW_ALLTOALL;
    uint64_t entries = pairs ? ranks * ranks : ranks;
    problem->counts = malloc(entries * sizeof(uint64_t));
    problem->offsets = malloc((pairs ? ranks : 1) * (ranks + 1) * sizeof(uint64_t));
    problem->receive_offsets = pairs ? malloc(ranks * (ranks + 1) * sizeof(uint64_t)) : NULL;
    if (problem->counts == NULL || problem->offsets == NULL || (pairs && problem->receive_offsets == NULL)) {
        snprintf(error, error_bytes, "no memory for the counts of %u ranks", request->ranks);
        return CW_ERROR_MEMORY;
    }
    memcpy(problem->counts, request->counts, entries * sizeof(uint64_t));
    problem->has_counts = true;
    for (uint64_t i = 0; i < (pairs ? ranks : 1); i++) {
        if (!sum_counts(&problem->counts[i * ranks], 1, request->ranks, element_bytes,
                        &problem->offsets[i * (ranks + 1)]) ||
            (pairs && !sum_counts(&problem->counts[i], ranks, request->ranks, element_bytes,
                                  &problem->receive_offsets[i * (ranks + 1)]))) {
            return reject(error, error_bytes, too_much, i,
                          pairs ? "lower the counts of this rank" : "lower the counts: their sum is too large");
        }
    }
    return CW_OK;
}

/* Names of the groups of ranks, for errors. */
struct group_texts {
    const char *no_memory; /* with the number of ranks */
    const char *not_there;
    const char *hint;
    const char *empty;
    const char *empty_hint;
};

/* `of` NULL: all ranks are in group 0. After a failure, the existing parts are freed with the problem. */
static int groups_make(struct cw_rank_groups *groups, uint32_t ranks, uint32_t count, const uint32_t *of,
                       const struct group_texts *texts, char *error, size_t error_bytes)
{
    groups->count = count;
    groups->first = calloc(count + 1ull, sizeof(uint32_t));
    groups->members = malloc(ranks * sizeof(uint32_t));
    groups->of = of != NULL ? malloc(ranks * sizeof(uint32_t)) : NULL;
    if (groups->first == NULL || groups->members == NULL || (of != NULL && groups->of == NULL)) {
        snprintf(error, error_bytes, "no memory for the %s of %u ranks", texts->no_memory, ranks);
        return CW_ERROR_MEMORY;
    }
    uint32_t *first = groups->first;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t group = of != NULL ? of[rank] : 0;
        if (group >= count) {
            return reject(error, error_bytes, texts->not_there, group, texts->hint);
        }
        if (of != NULL) {
            groups->of[rank] = group;
        }
        first[group + 1]++;
    }
    for (uint32_t group = 0; group < count; group++) {
        if (first[group + 1] == 0) {
            return reject(error, error_bytes, texts->empty, group, texts->empty_hint);
        }
        first[group + 1] += first[group];
    }
    /* fill by counting up first[], then shift it back */
    for (uint32_t rank = 0; rank < ranks; rank++) {
        groups->members[first[of != NULL ? of[rank] : 0]++] = rank;
    }
    memmove(&first[1], &first[0], count * sizeof(uint32_t));
    first[0] = 0;
    return CW_OK;
}

static int clusters_make(struct cw_problem *problem, const struct cw_problem_request *request, char *error,
                         size_t error_bytes)
{
    static const struct group_texts texts = {
        "clusters",
        "a rank is in a cluster that is not there",
        "clusters are numbered from 0",
        "a cluster has no rank",
        "number the clusters without gaps",
    };
    uint32_t count = request->cluster_count > 1 ? request->cluster_count : 1;
    problem->cluster_count = count;
    return groups_make(&problem->clusters, request->ranks, count, count > 1 ? request->cluster_of : NULL, &texts, error,
                       error_bytes);
}

static int hosts_make(struct cw_problem *problem, const struct cw_problem_request *request, char *error,
                      size_t error_bytes)
{
    static const struct group_texts texts = {
        "hosts",
        "a rank is on a host that is not there",
        "hosts are numbered from 0",
        "a host has no rank",
        "number the hosts without gaps",
    };
    return request->host_count == 0
               ? CW_OK
               : groups_make(&problem->hosts, request->ranks, request->host_count,
                             request->host_count > 1 ? request->host_of : NULL, &texts, error, error_bytes);
}

/* Traffic between a and b may pass through one other cluster, over two direct legs, in both directions alike. */
static int via_check(const struct cw_problem *problem, uint32_t a, uint32_t b, char *error, size_t error_bytes)
{
    uint32_t via = cw_problem_via(problem, a, b);
    if (via == CW_DIRECT) {
        return CW_OK;
    }
    if (via >= problem->cluster_count || via == a || via == b) {
        return reject(error, error_bytes, "traffic between two clusters passes through one that cannot be", via,
                      "name a third one, or none where the way is direct");
    }
    if (cw_problem_via(problem, b, a) != via) {
        return reject(error, error_bytes, "traffic between two clusters takes another way back", via,
                      "give the same cluster for both directions");
    }
    if (cw_problem_via(problem, a, via) != CW_DIRECT || cw_problem_via(problem, via, b) != CW_DIRECT) {
        return reject(error, error_bytes, "the way between two clusters has more than one cluster in it", via,
                      "both legs must be direct");
    }
    return CW_OK;
}

/* Whether all routes are direct: then it is the same as without routes, also for builders of schedules. */
static bool all_direct(const struct cw_problem_request *request)
{
    for (size_t i = 0; i < (size_t)request->cluster_count * request->cluster_count; i++) {
        if (request->cluster_via[i] != CW_DIRECT) {
            return false;
        }
    }
    return true;
}

static int via_copy(struct cw_problem *problem, const struct cw_problem_request *request, char *error,
                    size_t error_bytes)
{
    size_t entries = (size_t)problem->cluster_count * problem->cluster_count;
    if (request->cluster_via == NULL || problem->cluster_count == 1 || all_direct(request)) {
        return CW_OK;
    }
    problem->cluster_via = malloc(entries * sizeof(uint32_t));
    if (problem->cluster_via == NULL) {
        snprintf(error, error_bytes, "no memory for the links of %u clusters", problem->cluster_count);
        return CW_ERROR_MEMORY;
    }
    memcpy(problem->cluster_via, request->cluster_via, entries * sizeof(uint32_t));
    int status = CW_OK;
    for (uint32_t a = 0; a < problem->cluster_count && status == CW_OK; a++) {
        for (uint32_t b = 0; b < problem->cluster_count && status == CW_OK; b++) {
            status = via_check(problem, a, b, error, error_bytes);
        }
    }
    return status;
}

int cw_problem_create(const struct cw_problem_request *request, struct cw_problem **problem, char *error,
                      size_t error_bytes)
{
    int status = request_check(request, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_problem *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        snprintf(error, error_bytes, "no memory");
        return CW_ERROR_MEMORY;
    }
    made->collective = request->collective;
    made->ranks = request->ranks;
    made->root = request->root;
    made->element_bytes = request->element_bytes;
    made->ordered = request->ordered;
    made->count = request->collective == CW_BARRIER || request->counts != NULL ? 0 : request->count;
    status = counts_copy(made, request, error, error_bytes);
    if (status == CW_OK) {
        status = clusters_make(made, request, error, error_bytes);
    }
    if (status == CW_OK) {
        status = hosts_make(made, request, error, error_bytes);
    }
    if (status == CW_OK) {
        status = via_copy(made, request, error, error_bytes);
    }
    if (status != CW_OK) {
        cw_problem_destroy(made);
        return status;
    }
    *problem = made;
    return CW_OK;
}

void cw_problem_destroy(struct cw_problem *problem)
{
    if (problem == NULL) {
        return;
    }
    free(problem->counts);
    free(problem->offsets);
    free(problem->receive_offsets);
    free(problem->cluster_via);
    for (uint32_t i = 0; i < 2; i++) {
        struct cw_rank_groups *groups = i == 0 ? &problem->clusters : &problem->hosts;
        free(groups->of);
        free(groups->first);
        free(groups->members);
    }
    free(problem);
}

static uint64_t send_bytes(const struct cw_problem *problem, uint32_t rank)
{
    uint64_t vector = problem->count * problem->element_bytes;
    switch (problem->collective) {
    case CW_BCAST:
        return rank == problem->root ? vector : 0;
    case CW_SCATTER:
        return rank == problem->root ? cw_problem_block_offset(problem, problem->ranks) : 0;
    case CW_GATHER:
    case CW_ALLGATHER:
        return cw_problem_block_bytes(problem, rank);
    case CW_ALLTOALL:
        return cw_problem_pair_send_offset(problem, rank, problem->ranks);
    case CW_REDUCE_SCATTER:
        return cw_problem_block_offset(problem, problem->ranks);
    case CW_REDUCE:
    case CW_ALLREDUCE:
    case CW_SCAN:
    case CW_EXSCAN:
        return vector;
    default:
        return 0;
    }
}

static uint64_t receive_bytes(const struct cw_problem *problem, uint32_t rank)
{
    uint64_t vector = problem->count * problem->element_bytes;
    switch (problem->collective) {
    case CW_BCAST:
        return rank != problem->root ? vector : 0;
    case CW_SCATTER:
    case CW_REDUCE_SCATTER:
        return cw_problem_block_bytes(problem, rank);
    case CW_GATHER:
        return rank == problem->root ? cw_problem_block_offset(problem, problem->ranks) : 0;
    case CW_ALLGATHER:
        return cw_problem_block_offset(problem, problem->ranks);
    case CW_ALLTOALL:
        return cw_problem_pair_receive_offset(problem, problem->ranks, rank);
    case CW_REDUCE:
        return rank == problem->root ? vector : 0;
    case CW_ALLREDUCE:
    case CW_SCAN:
        return vector;
    case CW_EXSCAN:
        return rank > 0 ? vector : 0;
    default:
        return 0;
    }
}

uint64_t cw_problem_buffer_bytes(const struct cw_problem *problem, uint32_t rank, uint32_t buffer)
{
    assert(rank < problem->ranks);
    return buffer == CW_BUFFER_SEND      ? send_bytes(problem, rank)
           : buffer == CW_BUFFER_RECEIVE ? receive_bytes(problem, rank)
                                         : 0;
}

uint32_t cw_problem_cluster_largest(const struct cw_problem *problem)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < problem->cluster_count; i++) {
        uint32_t size = cw_problem_cluster_size(problem, i);
        largest = size > largest ? size : largest;
    }
    return largest;
}

uint32_t cw_problem_cluster_smallest(const struct cw_problem *problem)
{
    uint32_t smallest = problem->ranks;
    for (uint32_t i = 0; i < problem->cluster_count; i++) {
        uint32_t size = cw_problem_cluster_size(problem, i);
        smallest = size < smallest ? size : smallest;
    }
    return smallest;
}
