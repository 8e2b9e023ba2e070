#include "tests/schedules/cases.h"
#include "dataplane/status.h"
#include "tests/test.h"

const uint32_t schedule_case_ranks[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,  13,  14,  15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27,  28,  29,  30,
                                        31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 64, 100, 127, 128, 0};

enum {
    ALL_ROOTS_MAX = 40,
    LARGE = 4096 + 3,
};

struct walk {
    struct schedule_case one;
    uint32_t thin;
    uint64_t passed; /* cases seen, visited or not */
    schedule_case_visit visit;
    void *context;
};

static const char *inner_next(enum cw_collective collective, uint64_t number);

static bool walk_visit(struct walk *walk)
{
    const struct cw_problem_request *request = &walk->one.request;
    const struct cw_parameters *parameters = &walk->one.parameters;
    walk->one.number = walk->passed++;
    if ((walk->one.algorithm->takes & CW_TAKES_INNER) != 0) {
        walk->one.parameters.inner = inner_next(request->collective, walk->one.number * 0x9e3779b97f4a7c15ull >> 40);
    }
    /* mixed, so that omitted cases keep no step with parameters */
    if ((walk->one.number * 0x9e3779b97f4a7c15ull >> 33) % walk->thin != 0) {
        return true;
    }
    snprintf(walk->one.name, sizeof(walk->one.name),
             "%s %s ranks %u root %u count %llu%s element %u%s clusters %u eager %s segment %llu degree %u "
             "concurrency %u senders %u threshold %llu",
             cw_collective_name(request->collective), walk->one.algorithm->name, request->ranks, request->root,
             (unsigned long long)request->count, request->counts != NULL ? " (unequal)" : "", request->element_bytes,
             request->ordered ? " ordered" : "", request->cluster_count,
             parameters->eager_max_bytes == 0          ? "none"
             : parameters->single_eager_max_bytes == 0 ? "all"
                                                       : "single",
             (unsigned long long)parameters->segment_bytes, parameters->degree, parameters->concurrency,
             parameters->senders, (unsigned long long)parameters->threshold_bytes);
    return walk->visit(walk->context, &walk->one);
}

/* The parameters that the algorithm takes, each on its own and with both kinds of messages; also with only single ones,
 * of several clusters between these, eager. */
static bool walk_parameters(struct walk *walk)
{
    static const uint64_t segments[] = {64, 1000};
    static const uint32_t degrees[] = {1, 2, 3, 5};
    static const uint32_t concurrencies[] = {1, 2, 3, 4, 7};
    static const uint32_t senders[] = {0, 1, 2, 3};
    static const uint64_t thresholds[] = {0, 8};
    uint32_t takes = walk->one.algorithm->takes;
    uint32_t segment_count = (takes & CW_TAKES_SEGMENT) != 0 ? 2 : 1;
    uint32_t degree_count = (takes & CW_TAKES_DEGREE) != 0 ? 4 : 1;
    uint32_t concurrency_count = (takes & CW_TAKES_CONCURRENCY) != 0 ? 5 : 1;
    uint32_t sender_count = (takes & CW_TAKES_SENDERS) != 0 ? 4 : 1;
    uint32_t threshold_count = (takes & CW_TAKES_THRESHOLD) != 0 ? 2 : 1;
    uint32_t all = segment_count * degree_count * concurrency_count * sender_count * threshold_count;
    for (uint32_t eager = 0; eager < 3; eager++) {
        for (uint32_t i = 0; i < all; i++) {
            uint32_t rest = i;
            struct cw_parameters *parameters = &walk->one.parameters;
            parameters->eager_max_bytes = eager == 0 ? 0 : eager == 1 ? CW_EAGER_ALL : 1;
            parameters->single_eager_max_bytes = eager == 2 ? CW_EAGER_ALL : 0;
            parameters->segment_bytes = segments[rest % segment_count];
            rest /= segment_count;
            parameters->degree = degrees[rest % degree_count];
            rest /= degree_count;
            parameters->concurrency = concurrencies[rest % concurrency_count];
            rest /= concurrency_count;
            parameters->senders = senders[rest % sender_count];
            rest /= sender_count;
            parameters->threshold_bytes = thresholds[rest % threshold_count];
            if (!walk_visit(walk)) {
                return false;
            }
        }
    }
    return true;
}

static bool walk_operations(struct walk *walk)
{
    struct cw_problem_request *request = &walk->one.request;
    request->element_bytes = 1;
    request->ordered = false;
    if (!cw_collective_reduces(request->collective)) {
        return walk_parameters(walk);
    }
    request->element_bytes = 4;
    if (!walk_parameters(walk)) {
        return false;
    }
    request->ordered = true;
    return (walk->one.algorithm->needs & CW_NEEDS_COMMUTATIVE) != 0 || walk_parameters(walk);
}

/* Unequal counts: some zero, some large, no two neighbours alike. */
static uint64_t *counts_make(enum cw_collective collective, uint32_t ranks, uint64_t count)
{
    uint64_t entries = collective == CW_ALLTOALL ? (uint64_t)ranks * ranks : ranks;
    uint64_t *counts = malloc(entries * sizeof(*counts));
    assert_non_null(counts);
    for (uint64_t i = 0; i < entries; i++) {
        uint64_t mixed = (i * 2654435761u) >> 7;
        counts[i] = mixed % 3 == 0 ? 0 : mixed % (count + 2);
    }
    return counts;
}

static bool walk_sizes(struct walk *walk)
{
    struct cw_problem_request *request = &walk->one.request;
    uint32_t ranks = request->ranks;
    bool barrier = request->collective == CW_BARRIER;
    /* many ranks times a vector of blocks each: keep the long ones for the collectives with one vector */
    bool blocks = cw_collective_accepts_counts(request->collective);
    uint64_t sizes[] = {0, 1, 7, ranks - 1, ranks + 1ull, blocks && ranks > ALL_ROOTS_MAX ? 131 : LARGE};
    for (uint32_t i = 0; i < (barrier ? 1 : sizeof(sizes) / sizeof(sizes[0])); i++) {
        request->count = sizes[i];
        if (!walk_operations(walk)) {
            return false;
        }
    }
    if (!blocks || (walk->one.algorithm->needs & CW_NEEDS_EQUAL) != 0) {
        return true;
    }
    uint64_t sizes_unequal[] = {3, ranks > ALL_ROOTS_MAX ? 100 : 600};
    for (uint32_t i = 0; i < 2; i++) {
        uint64_t *counts = counts_make(request->collective, ranks, sizes_unequal[i]);
        request->count = 0;
        request->counts = counts;
        bool go_on = walk_operations(walk);
        request->counts = NULL;
        free(counts);
        if (!go_on) {
            return false;
        }
    }
    return true;
}

/* Ranks by cluster: halves, thirds of unequal sizes, dealt out like cards, all but one together, four in a row of which
 * the second is between the others. */
static void clusters_make(uint32_t layout, uint32_t ranks, uint32_t *cluster_of, uint32_t *via, uint32_t *count)
{
    static const uint32_t counts[] = {2, 3, 3, 2, 4};
    *count = counts[layout] < ranks ? counts[layout] : ranks;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        uint32_t cluster = 0;
        switch (layout) {
        case 0:
            cluster = rank * 2 / ranks;
            break;
        case 1:
            cluster = rank < ranks / 6 + 1 ? 0 : rank < ranks / 2 + 1 ? 1 : 2;
            break;
        case 2:
            cluster = rank % 3;
            break;
        case 3:
            cluster = rank == ranks / 2 ? 1 : 0;
            break;
        default:
            cluster = rank * 4 / ranks;
            break;
        }
        cluster_of[rank] = cluster < *count ? cluster : *count - 1;
    }
    for (uint32_t i = 0; i < *count * *count; i++) {
        uint32_t a = i / *count;
        uint32_t b = i % *count;
        bool between = layout == 4 && *count == 4 && a != b && a != 1 && b != 1;
        via[i] = between ? 1 : CW_DIRECT;
    }
}

static bool walk_roots(struct walk *walk);

static bool walk_clusters(struct walk *walk)
{
    struct cw_problem_request *request = &walk->one.request;
    uint32_t cluster_of[128];
    uint32_t via[16];
    if (request->ranks < 2) {
        return true;
    }
    for (uint32_t layout = 0; layout < 5; layout++) {
        clusters_make(layout, request->ranks, cluster_of, via, &request->cluster_count);
        request->cluster_of = cluster_of;
        request->cluster_via = layout == 4 && request->cluster_count == 4 ? via : NULL;
        if (layout == 1 && request->ranks == 2) {
            continue; /* two clusters of one are layout 0 */
        }
        if (!walk_roots(walk)) {
            return false;
        }
    }
    return true;
}

static bool walk_roots(struct walk *walk)
{
    struct cw_problem_request *request = &walk->one.request;
    uint32_t ranks = request->ranks;
    bool rooted = cw_collective_rooted(request->collective);
    uint32_t step = !rooted ? ranks : ranks <= ALL_ROOTS_MAX ? 1 : ranks / 3;
    for (uint32_t root = 0; root < ranks; root += step) {
        request->root = root;
        if (!walk_sizes(walk)) {
            return false;
        }
    }
    return true;
}

/* An algorithm among hosts: each in turn, the usual one among them. */
static const char *inner_next(enum cw_collective collective, uint64_t number)
{
    const struct cw_algorithm *algorithm;
    uint32_t count = 0;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        count += algorithm->collective == collective && (algorithm->needs & CW_NEEDS_ALL) == 0;
    }
    uint64_t wanted = number % (count + 1);
    for (uint32_t i = 0; wanted < count && (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        if (algorithm->collective == collective && (algorithm->needs & CW_NEEDS_ALL) == 0 && wanted-- == 0) {
            return algorithm->name;
        }
    }
    return NULL;
}

/* Ranks by host: halves, dealt out like cards, one alone and the others together, each alone but for two; the same with
 * the hosts in two clusters. */
static bool walk_hosts(struct walk *walk)
{
    struct cw_problem_request *request = &walk->one.request;
    uint32_t host_of[128], cluster_of[128], ranks = request->ranks;
    if ((walk->one.algorithm->needs & CW_NEEDS_ONE_HOST) != 0) {
        request->host_count = 1;
        return walk_roots(walk);
    }
    for (uint32_t layout = 0; layout < 8; layout++) {
        uint32_t hosts = layout % 4 == 0 ? 2 : layout % 4 == 1 ? 3 : layout % 4 == 2 ? 2 : ranks - 1;
        bool is_even = layout % 4 < 2 && ranks % hosts == 0;
        if (hosts < 2 || hosts >= ranks || (request->collective == CW_ALLTOALL && !is_even)) {
            continue;
        }
        for (uint32_t rank = 0; rank < ranks; rank++) {
            host_of[rank] = layout % 4 == 0   ? rank * 2 / ranks
                            : layout % 4 == 1 ? rank % 3
                            : layout % 4 == 2 ? (rank == ranks / 2 ? 0 : 1)
                                              : (rank + 1) % hosts;
            cluster_of[rank] = host_of[rank] % 2;
        }
        request->host_count = hosts;
        request->host_of = host_of;
        request->cluster_count = layout < 4 ? 0 : 2;
        request->cluster_of = layout < 4 ? NULL : cluster_of;
        if (!walk_roots(walk)) {
            return false;
        }
    }
    return true;
}

bool schedule_cases(const struct cw_algorithm *algorithm, uint32_t ranks, uint32_t thin, schedule_case_visit visit,
                    void *context)
{
    struct walk walk = {
        .one = {.algorithm = algorithm, .request = {.collective = algorithm->collective, .ranks = ranks}},
        .thin = thin,
        .visit = visit,
        .context = context,
    };
    bool clusters = (algorithm->needs & CW_NEEDS_CLUSTERS) != 0;
    if (thin > 1) {
        /* a case takes as long as its ranks are many, and there are five times as many with clusters */
        walk.thin *= (ranks > ALL_ROOTS_MAX ? 8u : 1u) * (clusters ? 5u : 1u);
    }
    return (algorithm->needs & (CW_NEEDS_ONE_HOST | CW_NEEDS_HOSTS)) != 0 ? walk_hosts(&walk)
           : clusters                                                     ? walk_clusters(&walk)
                                                                          : walk_roots(&walk);
}

struct cw_plan *schedule_case_build(const struct schedule_case *one)
{
    char error[200];
    struct cw_problem *problem = NULL;
    struct cw_plan *plan = NULL;
    if (cw_problem_create(&one->request, &problem, error, sizeof(error)) != CW_OK ||
        cw_plan_build(problem, one->algorithm, &one->parameters, &plan, error, sizeof(error)) != CW_OK) {
        fail_msg("%s: %s", one->name, error);
    }
    return plan;
}
