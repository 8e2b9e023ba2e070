/* Answers from measurements: tests first, then models. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/choose/measured.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"

/* ---- networks ---- */

/* Rounded, for a present-day machine: shared memory (one copy between processes), a 10 Gb/s network with drivers in
 * user space, a 100 Gb/s one with RDMA. Measurements are better. */
static const struct {
    double latency_ns;
    double overhead_ns;
    double bytes_per_ns;
} defaults[CW_MEASURED_PATHS] = {
    [CW_MEASURED_SHARED] = {400, 300, 8},
    [CW_MEASURED_WIRE] = {8000, 1500, 1.2},
    [CW_MEASURED_RDMA] = {2000, 400, 11},
};

#define DEFAULT_COPY_NS_PER_BYTE   0.1
#define DEFAULT_REDUCE_NS_PER_BYTE 0.15
#define DEFAULT_CONTENTION         0.4

static double distance(uint32_t left, uint32_t right)
{
    return left > right ? (double)left / right : (double)right / left;
}

bool cw_measured_network(const struct cw_measured *measured, enum cw_measured_path path, uint32_t ranks,
                         struct cw_network *network)
{
    const struct cw_measured_network *nearest = NULL;
    for (uint32_t i = 0; measured != NULL && i < measured->network_count; i++) {
        const struct cw_measured_network *row = &measured->networks[i];
        if (row->path == path && (nearest == NULL || distance(row->ranks, ranks) < distance(nearest->ranks, ranks))) {
            nearest = row;
        }
    }
    if (nearest != NULL) {
        *network = nearest->network;
        return true;
    }
    struct cw_plogp plogp =
        cw_plogp_linear(defaults[path].latency_ns, defaults[path].overhead_ns, defaults[path].bytes_per_ns);
    *network = (struct cw_network){
        .paths = {plogp, plogp},
        .ports = 1,
        .copy_ns_per_byte = DEFAULT_COPY_NS_PER_BYTE,
        .reduce_ns_per_byte = DEFAULT_REDUCE_NS_PER_BYTE,
        .contention = DEFAULT_CONTENTION,
    };
    return false;
}

/* Bytes per nanosecond. */
static double rate_of(uint64_t bps)
{
    return (double)bps / 8e9;
}

/* No message of `plogp` goes faster than that; 0: no limit. */
static void path_limit(struct cw_plogp *plogp, uint64_t bps)
{
    double first_ns = plogp->points[0].gap_ns;
    for (uint32_t i = 0; i < plogp->count && bps > 0; i++) {
        double least_ns = first_ns + (double)plogp->points[i].bytes / rate_of(bps);
        plogp->points[i].gap_ns = plogp->points[i].gap_ns < least_ns ? least_ns : plogp->points[i].gap_ns;
    }
}

/* The rate of long messages. */
static double bytes_per_ns(const struct cw_plogp *plogp)
{
    const uint64_t much = 1 << 20;
    return (double)much / (cw_plogp_gap(plogp, 2 * much) - cw_plogp_gap(plogp, much));
}

void cw_measured_wan_apply(struct cw_network *network, const struct cw_measured_wan *across)
{
    struct cw_plogp *lan = &network->paths[CW_PATH_LAN];
    struct cw_plogp *wan = &network->paths[CW_PATH_WAN];
    *wan = *lan;
    lan->latency_ns += (double)across->host_delay_ns;
    wan->latency_ns += (double)across->delay_ns;
    path_limit(lan, across->host_bps);
    path_limit(wan, across->rank_bps);
    network->wan_bytes_per_ns = across->link_bps > 0 ? rate_of(across->link_bps) : bytes_per_ns(wan);
    network->wan_messages = CW_CREDIT_FAR_MAX;
}

uint32_t cw_measured_senders(const struct cw_measured_wan *across)
{
    uint64_t senders = across->rank_bps > 0 ? across->link_bps / across->rank_bps : 1;
    return senders < 1 ? 1 : senders < CW_RANKS_MAX ? (uint32_t)senders : CW_RANKS_MAX;
}

/* ---- tests ---- */

enum {
    SIZE_FACTOR = 16,  /* tests of sizes further away say nothing */
    SIZE_LEAST = 64,   /* and among shorter ones size makes no difference */
    SIZE_COSTS = 4096, /* about as many bytes cost what a message costs at any rate */
};

/* Tests of one collective on one path: a stretch of the ordered list. */
struct stretch {
    const struct cw_measured_test *begin;
    const struct cw_measured_test *end;
};

static struct stretch stretch_find(const struct cw_measured *measured, enum cw_measured_path path,
                                   enum cw_collective collective)
{
    const struct cw_measured_test *row = measured->tests;
    const struct cw_measured_test *end = row == NULL ? NULL : row + measured->test_count;
    while (row < end && (row->path != path || row->collective != collective)) {
        row++;
    }
    struct stretch stretch = {row, row};
    while (stretch.end < end && stretch.end->path == path && stretch.end->collective == collective) {
        stretch.end++;
    }
    return stretch;
}

static bool is_power_of_two(uint32_t number)
{
    return (number & (number - 1)) == 0;
}

static bool is_nearer(uint32_t ranks, uint32_t other, uint32_t wanted)
{
    bool kind = is_power_of_two(ranks) == is_power_of_two(wanted);
    bool other_kind = is_power_of_two(other) == is_power_of_two(wanted);
    return kind != other_kind ? kind : distance(ranks, wanted) < distance(other, wanted);
}

/* Keeps the tests with the number of ranks that represents `wanted`; false: none is near. */
static bool stretch_narrow(struct stretch *stretch, uint32_t wanted)
{
    uint32_t best = 0;
    for (const struct cw_measured_test *row = stretch->begin; row < stretch->end; row++) {
        if (row->ranks == wanted) {
            best = wanted;
            break;
        }
        if (distance(row->ranks, wanted) <= 2 && (best == 0 || is_nearer(row->ranks, best, wanted))) {
            best = row->ranks;
        }
    }
    while (stretch->begin < stretch->end && stretch->begin->ranks != best) {
        stretch->begin++;
    }
    const struct cw_measured_test *end = stretch->begin;
    while (end < stretch->end && end->ranks == best) {
        end++;
    }
    stretch->end = end;
    return stretch->begin < stretch->end;
}

/* The tested sizes around `bytes`; the same one twice at a tested size and beyond the ends. */
static void sizes_around(const struct stretch *stretch, uint64_t bytes, uint64_t *low, uint64_t *high)
{
    *low = stretch->begin->bytes;
    *high = stretch->end[-1].bytes;
    for (const struct cw_measured_test *row = stretch->begin; row < stretch->end; row++) {
        *low = row->bytes <= bytes ? row->bytes : *low;
        if (row->bytes >= bytes) {
            *high = row->bytes;
            break;
        }
    }
    *high = bytes < stretch->begin->bytes ? *low : *high;
}

/* Whether a tested size is near enough for a result. */
static bool size_is_near(uint64_t bytes, uint64_t tested)
{
    uint64_t less = bytes < tested ? bytes : tested;
    uint64_t more = bytes < tested ? tested : bytes;
    return more <= SIZE_FACTOR * (less > SIZE_LEAST ? less : SIZE_LEAST);
}

static const struct cw_measured_test *test_of(const struct stretch *stretch, uint64_t bytes, const char *algorithm)
{
    for (const struct cw_measured_test *row = stretch->begin; row < stretch->end; row++) {
        if (row->bytes == bytes && strcmp(row->algorithm, algorithm) == 0) {
            return row;
        }
    }
    return NULL;
}

static double logarithm(uint64_t bytes)
{
    return log((double)bytes + 1);
}

static struct cw_measured_answer answer_between(const struct cw_measured_test *low, const struct cw_measured_test *high,
                                                uint64_t bytes)
{
    struct cw_measured_answer answer = {low->algorithm, low->parameters, low->time_ns};
    if (low != high) {
        double share = (logarithm(bytes) - logarithm(low->bytes)) / (logarithm(high->bytes) - logarithm(low->bytes));
        answer.parameters = share > 0.5 ? high->parameters : low->parameters;
        answer.time_ns = exp(log(low->time_ns) + share * (log(high->time_ns) - log(low->time_ns)));
    } else if (bytes > low->bytes) {
        answer.time_ns *= (double)(bytes + SIZE_COSTS) / (double)(low->bytes + SIZE_COSTS);
    }
    return answer;
}

uint32_t cw_measured_answers(const struct cw_measured *measured, enum cw_measured_path path,
                             const struct cw_problem *problem, struct cw_measured_answer *answers, uint32_t answer_max)
{
    uint64_t bytes = problem->count * problem->element_bytes;
    uint64_t low_bytes, high_bytes;
    uint32_t count = 0;
    if (measured == NULL || problem->has_counts || problem->cluster_count > 1) {
        return 0;
    }
    struct stretch stretch = stretch_find(measured, path, problem->collective);
    if (!stretch_narrow(&stretch, problem->ranks)) {
        return 0;
    }
    sizes_around(&stretch, bytes, &low_bytes, &high_bytes);
    if (!size_is_near(bytes, low_bytes) && !size_is_near(bytes, high_bytes)) {
        return 0;
    }
    for (const struct cw_measured_test *low = stretch.begin; low < stretch.end && count < answer_max; low++) {
        const struct cw_measured_test *high =
            low->bytes == low_bytes ? test_of(&stretch, high_bytes, low->algorithm) : NULL;
        if (high == NULL) {
            continue;
        }
        struct cw_measured_answer answer = answer_between(low, high, bytes);
        uint32_t at = count++;
        for (; at > 0 && answers[at - 1].time_ns > answer.time_ns; at--) {
            answers[at] = answers[at - 1];
        }
        answers[at] = answer;
    }
    return count;
}

enum cw_measured_standing cw_measured_standing(const struct cw_measured *measured, enum cw_measured_path path,
                                               const struct cw_problem *problem, const char *name, double *time_ns)
{
    struct cw_measured_answer answers[CW_CANDIDATES_MAX];
    uint32_t count = cw_measured_answers(measured, path, problem, answers, CW_CANDIDATES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(answers[i].algorithm, name) == 0) {
            if (time_ns != NULL) {
                *time_ns = answers[i].time_ns;
            }
            return i == 0 ? CW_STANDING_FIRST : CW_STANDING_BEHIND;
        }
    }
    return CW_STANDING_UNKNOWN;
}

/* ---- the choice ---- */

static bool choose_tested(const struct cw_measured *measured, enum cw_measured_path path,
                          const struct cw_choose_request *request, struct cw_candidate *best)
{
    const struct cw_problem *problem = request->problem;
    struct cw_measured_answer answers[CW_CANDIDATES_MAX];
    char reason[200];
    uint32_t count = cw_measured_answers(measured, path, problem, answers, CW_CANDIDATES_MAX);
    for (uint32_t i = 0; i < count; i++) {
        const struct cw_algorithm *algorithm = cw_algorithm_find(problem->collective, answers[i].algorithm);
        if (algorithm == NULL || (!request->multicast && (algorithm->needs & CW_NEEDS_MULTICAST) != 0) ||
            cw_algorithm_fits(algorithm, problem, reason, sizeof(reason)) != CW_OK) {
            continue;
        }
        *best = (struct cw_candidate){
            .algorithm = algorithm,
            .parameters = answers[i].parameters,
            .time_ns = answers[i].time_ns,
        };
        best->parameters.eager_max_bytes = request->eager_max_bytes;
        best->parameters.multicast_eager_max_bytes = request->multicast_eager_max_bytes;
        best->parameters.single_eager_max_bytes = request->single_eager_max_bytes;
        return true;
    }
    return false;
}

int cw_measured_choose(const struct cw_measured *measured, enum cw_measured_path path,
                       const struct cw_measured_wan *across, const struct cw_choose_request *request,
                       struct cw_candidate *best, enum cw_measured_origin *origin)
{
    if (choose_tested(measured, path, request, best)) {
        *origin = CW_BY_TEST;
        return CW_OK;
    }
    struct cw_network network;
    bool is_measured = cw_measured_network(measured, path, request->problem->ranks, &network);
    if (across != NULL) {
        cw_measured_wan_apply(&network, across);
    }
    struct cw_choose_request with_network = *request;
    with_network.network = &network;
    struct cw_choice *choice = malloc(sizeof(*choice));
    if (choice == NULL) {
        return CW_ERROR_MEMORY;
    }
    int status = cw_choose(&with_network, choice);
    if (status == CW_OK) {
        uint64_t *segment_bytes = &choice->candidates[0].parameters.segment_bytes;
        *segment_bytes = *segment_bytes < CW_MEASURED_SEGMENT_LEAST ? CW_MEASURED_SEGMENT_LEAST : *segment_bytes;
        *best = choice->candidates[0];
        *origin = is_measured ? CW_BY_MODEL : CW_BY_DEFAULTS;
    }
    free(choice);
    return status;
}
