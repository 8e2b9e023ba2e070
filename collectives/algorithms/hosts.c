/* Ranks that share a host's memory: calls among them are one op, `host`; with several hosts these are a level below one
 * among the first ranks of the hosts, so that a host's link carries what it must once (`hierarchical`). */
#include <stdio.h>
#include <stdlib.h>

#include "collectives/algorithms/registry.h"
#include "dataplane/status.h"

static void build_host(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    if (emit->problem->ranks > 1) {
        cw_emit_host_whole(emit);
        return;
    }
    uint64_t bytes = cw_problem_buffer_bytes(emit->problem, 0, CW_BUFFER_RECEIVE);
    cw_emit_copy(emit, cw_place(CW_BUFFER_RECEIVE, 0), cw_place(CW_BUFFER_SEND, 0), bytes);
}

/* ---- Several hosts ---- */

/* The problem among the first ranks of the hosts, the heads, and how it is solved: the same for all ranks. */
struct hierarchy {
    struct cw_problem *heads;
    const struct cw_algorithm *algorithm;
    uint32_t *head; /* rank, by host */
};

static void hierarchy_release(void *shared)
{
    struct hierarchy *hierarchy = shared;
    cw_problem_destroy(hierarchy->heads);
    free(hierarchy->head);
    free(hierarchy);
}

/* The algorithm asked for, or one that always fits. */
static const struct cw_algorithm *inner_find(const struct cw_problem *heads, const struct cw_parameters *parameters)
{
    static const char *const usual[CW_COLLECTIVE_COUNT] = {
        [CW_BCAST] = "binomial",        [CW_REDUCE] = "binomial",   [CW_ALLREDUCE] = "recursive-doubling",
        [CW_BARRIER] = "dissemination", [CW_ALLTOALL] = "pairwise",
    };
    char error[200];
    const struct cw_algorithm *wanted =
        parameters->inner != NULL ? cw_algorithm_find(heads->collective, parameters->inner) : NULL;
    return wanted != NULL && (wanted->needs & CW_NEEDS_ALL) == 0 &&
                   cw_algorithm_fits(wanted, heads, error, sizeof(error)) == CW_OK
               ? wanted
               : cw_algorithm_find(heads->collective, usual[heads->collective]);
}

/* The clusters of the heads, numbered without gaps: some cluster may have none. `of` and `names` have room for each
 * head and each cluster. */
static uint32_t clusters_of_heads(const struct cw_problem *problem, uint32_t *of, uint32_t *names)
{
    uint32_t count = 0;
    for (uint32_t host = 0; host < problem->hosts.count; host++) {
        uint32_t cluster = cw_problem_cluster(problem, cw_problem_head(problem, host)), k = 0;
        while (k < count && names[k] != cluster) {
            k++;
        }
        names[k] = cluster;
        count += k == count;
        of[host] = k;
    }
    return count;
}

int cw_problem_heads(const struct cw_problem *problem, struct cw_problem **heads, char *error, size_t error_bytes)
{
    uint32_t hosts = problem->hosts.count, own = cw_problem_host_size(problem, 0);
    uint32_t *of = malloc(2ull * hosts * sizeof(*of)), *via = NULL;
    if (of == NULL) {
        snprintf(error, error_bytes, "no memory for the level among hosts");
        return CW_ERROR_MEMORY;
    }
    uint32_t *names = of + hosts, clusters = clusters_of_heads(problem, of, names);
    bool is_direct = problem->cluster_via == NULL;
    if (!is_direct) {
        via = calloc((size_t)clusters * clusters, sizeof(*via));
        is_direct = via == NULL;
    }
    for (uint32_t i = 0; via != NULL && i < clusters * clusters; i++) {
        uint32_t through = cw_problem_via(problem, names[i / clusters], names[i % clusters]), k = 0;
        while (through != CW_DIRECT && k < clusters && names[k] != through) {
            k++;
        }
        via[i] = through == CW_DIRECT ? CW_DIRECT : k;
        is_direct = is_direct || (via[i] != CW_DIRECT && k == clusters); /* no head there could forward data */
    }
    const struct cw_problem_request request = {
        .collective = problem->collective,
        .ranks = hosts,
        .root = cw_collective_rooted(problem->collective) ? cw_problem_host(problem, problem->root) : 0,
        .element_bytes = problem->element_bytes,
        .count = problem->collective == CW_ALLTOALL ? problem->count * own * own : problem->count,
        .cluster_count = clusters,
        .cluster_of = of,
        .cluster_via = is_direct ? NULL : via,
    };
    int status = cw_problem_create(&request, heads, error, error_bytes);
    free(via);
    free(of);
    return status;
}

static int hierarchy_prepare(const struct cw_problem *problem, const struct cw_parameters *parameters,
                             const struct cw_recipe *recipe, void **shared)
{
    char error[200];
    (void)recipe;
    struct hierarchy *hierarchy = calloc(1, sizeof(*hierarchy));
    uint32_t *head = malloc(problem->hosts.count * sizeof(*head));
    if (hierarchy == NULL || head == NULL ||
        cw_problem_heads(problem, &hierarchy->heads, error, sizeof(error)) != CW_OK) {
        free(hierarchy);
        free(head);
        return CW_ERROR_MEMORY;
    }
    for (uint32_t host = 0; host < problem->hosts.count; host++) {
        head[host] = cw_problem_head(problem, host);
    }
    hierarchy->head = head;
    hierarchy->algorithm = inner_find(hierarchy->heads, parameters);
    *shared = hierarchy;
    return CW_OK;
}

/* One rank's part: where it stands. */
struct level {
    struct cw_emit *emit;
    const struct hierarchy *hierarchy;
    uint32_t host;
    uint32_t head;
    uint32_t size; /* ranks of this host */
    bool is_head;
    uint64_t bytes; /* of the vector, or of a block */
};

static struct level level_of(struct cw_emit *emit)
{
    const struct hierarchy *hierarchy = emit->shared;
    const struct cw_problem *problem = emit->problem;
    uint32_t host = cw_problem_host(problem, emit->rank);
    return (struct level){
        .emit = emit,
        .hierarchy = hierarchy,
        .host = host,
        .head = hierarchy->head[host],
        .size = cw_problem_host_size(problem, host),
        .is_head = hierarchy->head[host] == emit->rank,
        .bytes = problem->count * problem->element_bytes,
    };
}

/* The level among the heads, from place to place, behind all that came before if `is_behind`. */
static void heads_run(const struct level *level, struct cw_place from, struct cw_place to, bool is_behind)
{
    struct cw_emit *emit = level->emit;
    struct cw_schedule schedule = {0};
    char error[200];
    if (!level->is_head || emit->status != CW_OK) {
        return;
    }
    int status = cw_schedule_build(level->hierarchy->heads, level->hierarchy->algorithm, &emit->parameters, level->host,
                                   &schedule, error, sizeof(error));
    if (status != CW_OK) {
        cw_emit_fail(emit, status, "the level among hosts cannot be built");
        return;
    }
    const struct cw_place at[4] = {
        [CW_BUFFER_SEND] = from,
        [CW_BUFFER_RECEIVE] = to,
        [CW_BUFFER_SCRATCH] = cw_emit_scratch(emit, schedule.scratch_bytes),
    };
    if (is_behind) {
        cw_emit_fence(emit);
    }
    cw_emit_level(emit, &schedule, level->hierarchy->head, at);
    cw_emit_fence(emit);
    cw_schedule_dispose(&schedule);
}

static const struct cw_place send = {.buffer = CW_BUFFER_SEND}, receive = {.buffer = CW_BUFFER_RECEIVE};

/* The root's host has it from the root, the others from their heads. */
static void build_bcast(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct level level = level_of(emit);
    uint32_t root = emit->problem->root;
    bool is_at_root = level.host == cw_problem_host(emit->problem, root);
    if (is_at_root) {
        cw_emit_host(emit, CW_BCAST, root, send, receive, level.bytes);
    }
    heads_run(&level, level.head == root ? send : receive, receive, level.head != root);
    if (!is_at_root) {
        cw_emit_host(emit, CW_BCAST, level.head, receive, receive, level.bytes);
    }
}

/* Combines the vectors of this host's ranks at its head; returns the place of the sum. */
static struct cw_place host_reduce(const struct level *level)
{
    struct cw_place sum = level->is_head ? cw_emit_scratch(level->emit, level->bytes) : send;
    cw_emit_host(level->emit, CW_REDUCE, level->head, send, sum, level->bytes);
    return level->size > 1 ? sum : send;
}

static void build_reduce(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct level level = level_of(emit);
    uint32_t root = emit->problem->root;
    bool is_at_root = level.host == cw_problem_host(emit->problem, root);
    struct cw_place sum = host_reduce(&level);
    struct cw_place result = receive; /* the same at all heads, since others put there */
    if (level.is_head && level.hierarchy->head[cw_problem_host(emit->problem, root)] != root) {
        result = cw_emit_scratch(emit, level.bytes);
    }
    heads_run(&level, sum, result, true);
    if (is_at_root && level.head != root && emit->rank == level.head) {
        cw_emit_send(emit, root, result, receive, level.bytes);
    } else if (emit->rank == root && level.head != root) {
        cw_emit_receive(emit, level.head, receive, level.bytes);
    }
}

static void build_allreduce(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct level level = level_of(emit);
    heads_run(&level, host_reduce(&level), receive, true);
    cw_emit_host(emit, CW_BCAST, level.head, receive, receive, level.bytes);
}

static void build_barrier(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct level level = level_of(emit);
    cw_emit_host(emit, CW_BARRIER, 0, send, receive, 0);
    heads_run(&level, send, receive, true);
    cw_emit_host(emit, CW_BARRIER, 0, send, receive, 0);
}

/* Copies the blocks of a host's ranks between two orders. By rank: by sender, then by receiver. By host: by the other
 * host, then by sender and receiver. */
static void blocks_order(const struct level *level, struct cw_place by_rank, struct cw_place by_host, bool is_to)
{
    const struct cw_rank_groups *hosts = &level->emit->problem->hosts;
    uint64_t own = level->size, ranks = own * hosts->count, bytes = level->bytes;
    for (uint64_t host = 0; host < hosts->count; host++) {
        for (uint64_t k = 0; k < own * own; k++) {
            uint64_t i = k / own, other = k % own; /* the rank here, and the one there */
            uint64_t sender = is_to ? i : other, receiver = is_to ? other : i;
            uint32_t rank = hosts->members[hosts->first[host] + other];
            struct cw_place one = cw_place_add(by_rank, (i * ranks + rank) * bytes);
            struct cw_place two = cw_place_add(by_host, ((host * own + sender) * own + receiver) * bytes);
            cw_emit_copy(level->emit, is_to ? two : one, is_to ? one : two, bytes);
        }
    }
}

/* The head of a host has the blocks of all its ranks, and sends each other host all that they have for it at once. */
static void build_alltoall(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    struct level level = level_of(emit);
    uint64_t row = level.bytes * emit->problem->ranks;
    struct cw_place gathered = send, parcels = send, arrived = send;
    if (level.is_head) {
        gathered = cw_emit_scratch(emit, row * level.size);
        parcels = cw_emit_scratch(emit, row * level.size);
        arrived = cw_emit_scratch(emit, row * level.size);
    }
    cw_emit_host(emit, CW_GATHER, level.head, send, gathered, row);
    if (level.is_head) {
        blocks_order(&level, gathered, parcels, true);
        heads_run(&level, parcels, arrived, true);
        blocks_order(&level, gathered, arrived, false);
    }
    cw_emit_host(emit, CW_SCATTER, level.head, gathered, receive, row);
}

static const struct cw_preparation preparation = {.prepare = hierarchy_prepare, .release = hierarchy_release};

#define HOST(COLLECTIVE)                                                                          \
    {                                                                                             \
        .about = {.collective = (COLLECTIVE),                                                     \
                  .name = "host",                                                                 \
                  .needs = CW_NEEDS_ONE_HOST,                                                     \
                  .summary = "one call among the ranks of a host, in a segment of shared memory", \
                  .source = "own"},                                                               \
        .build = build_host,                                                                      \
    }

#define HIERARCHICAL(COLLECTIVE, BUILD, NEEDS, SUMMARY)                                     \
    {                                                                                       \
        .about = {.collective = (COLLECTIVE),                                               \
                  .name = "hierarchical",                                                   \
                  .takes = CW_TAKES_INNER,                                                  \
                  .needs = CW_NEEDS_HOSTS | (NEEDS),                                        \
                  .summary = (SUMMARY),                                                     \
                  .source = "Karonis et al. 2000: multilevel, topology-aware collectives"}, \
        .build = (BUILD), .preparation = &preparation,                                      \
    }

const struct cw_recipe cw_recipes_hosts[] = {
    HOST(CW_BCAST),
    HOST(CW_SCATTER),
    HOST(CW_GATHER),
    HOST(CW_ALLGATHER),
    HOST(CW_ALLTOALL),
    HOST(CW_REDUCE),
    HOST(CW_ALLREDUCE),
    HOST(CW_REDUCE_SCATTER),
    HOST(CW_SCAN),
    HOST(CW_EXSCAN),
    HOST(CW_BARRIER),
    HIERARCHICAL(CW_BCAST, build_bcast, 0, "among the first ranks of the hosts, then within each host"),
    HIERARCHICAL(CW_REDUCE, build_reduce, CW_NEEDS_COMMUTATIVE, "within each host, then among their first ranks"),
    HIERARCHICAL(CW_ALLREDUCE, build_allreduce, CW_NEEDS_COMMUTATIVE,
                 "reduced within each host, all-reduced among their first ranks, broadcast within each"),
    HIERARCHICAL(CW_BARRIER, build_barrier, 0, "within each host, among their first ranks, within each again"),
    HIERARCHICAL(CW_ALLTOALL, build_alltoall, CW_NEEDS_EQUAL,
                 "gathered at the first rank of each host, one message between two hosts, scattered"),
};
const uint32_t cw_recipes_hosts_count = sizeof(cw_recipes_hosts) / sizeof(cw_recipes_hosts[0]);
