/* The search for an algorithm's best parameters. */
#include "collectives/choose/choose_private.h"
#include "dataplane/status.h"

enum {
    DEGREE_MAX = 16,
    CONCURRENCY_MAX = 16,
    SEGMENT_LEAST = 64, /* bytes: shorter ones are all header */
    TRIED_MAX = 64,     /* segments remembered for one climb */
    WORSE_MAX = 2,      /* degrees in a row by which trees get worse: the next will as well */
    HOPELESS = 2,       /* a run that many times longer than the best one: its neighbours are not run */
    STEPS_FORMULA = 64, /* a climb ends with steps of a segment divided by this */
    STEPS_RUN = 16,
};

#define WORSE 1.05 /* a run that many times longer than the best one is behind it, clearly */

/* One algorithm's search. */
struct search {
    const struct cw_choose_request *request;
    struct cw_candidate *best; /* once found */
    bool found;
    double scanned_ns; /* the best of all scans, whose segments are comparable, unlike those of climbs */
    double last_ns;    /* the last setting's scan, if it was made by running plans; else 0 */
};

/* The segments for one setting of the other parameters. */
struct segments {
    struct cw_candidate *best;
    bool found;
    bool hopeless;             /* the last one tried was far behind, and to run more such plans is dear */
    bool worse;                /* it was behind, clearly */
    bool same;                 /* it was as fast as the best: longer than a part is */
    uint64_t tried[TRIED_MAX]; /* bytes; no plan is built twice */
    uint32_t tried_count;
};

/* Takes `tried` if it is faster. The first failure, except of the price itself, is kept. */
static int consider(const struct cw_choose_request *request, struct cw_candidate *best, struct cw_candidate *tried,
                    bool *found)
{
    int status = choose_price(request, tried);
    if (status == CW_OK && (!*found || tried->time_ns < best->time_ns)) {
        *best = *tried;
        *found = true;
    }
    return status == CW_ERROR_UNSUPPORTED ? CW_OK : status;
}

static bool segment_known(struct segments *segments, uint64_t segment_bytes)
{
    for (uint32_t i = 0; i < segments->tried_count; i++) {
        if (segments->tried[i] == segment_bytes) {
            return true;
        }
    }
    if (segments->tried_count < TRIED_MAX) {
        segments->tried[segments->tried_count++] = segment_bytes;
    }
    return false;
}

static int segment_consider(const struct cw_choose_request *request, struct segments *segments, uint64_t segment_bytes)
{
    struct cw_candidate tried = *segments->best;
    uint64_t element = request->problem->element_bytes;
    tried.parameters.segment_bytes = segment_bytes / element * element;
    if (tried.parameters.segment_bytes == 0 || segment_known(segments, tried.parameters.segment_bytes)) {
        return CW_OK;
    }
    double before = segments->best->time_ns;
    tried.time_ns = 0;
    int status = consider(request, segments->best, &tried, &segments->found);
    bool run = segments->found && tried.priced == CW_PRICED_INTERPRETER;
    segments->same = tried.time_ns == before;
    segments->worse = run && tried.time_ns > WORSE * segments->best->time_ns;
    segments->hopeless = run && tried.time_ns > HOPELESS * segments->best->time_ns;
    return status;
}

static bool best_is_eager(const struct cw_choose_request *request, const struct segments *segments)
{
    return segments->best->parameters.segment_bytes <= request->eager_max_bytes;
}

/* m / 2^i for all i. When runs only take longer, the eager segments are left, until they take longer too: shorter ones
 * cost more. */
static int segments_scan(const struct cw_choose_request *request, struct segments *segments)
{
    uint64_t bytes = choose_vector_bytes(request->problem);
    uint64_t eager = request->eager_max_bytes;
    int status = CW_OK;
    for (uint64_t segment = bytes; segment >= SEGMENT_LEAST && status == CW_OK; segment /= 2) {
        if (segments->hopeless && segment > eager) {
            continue;
        }
        status = segment_consider(request, segments, segment);
        if (segment <= eager && (segments->hopeless || (segments->worse && best_is_eager(request, segments)))) {
            break;
        }
    }
    if (!segments->found && status == CW_OK) {
        status = segment_consider(request, segments, bytes > 0 ? bytes : request->problem->element_bytes);
    }
    return status;
}

/* Up and down from the best one in steps that are halved. */
static int segments_climb(const struct cw_choose_request *request, struct segments *segments)
{
    struct cw_candidate *best = segments->best;
    int status = CW_OK;
    uint64_t step = best->parameters.segment_bytes / 2;
    uint64_t steps = best->priced == CW_PRICED_INTERPRETER ? STEPS_RUN : STEPS_FORMULA;
    uint64_t bytes = choose_vector_bytes(request->problem);
    segments->same = false;
    while (step >= SEGMENT_LEAST && step > best->parameters.segment_bytes / steps && !segments->same &&
           status == CW_OK) {
        double before = best->time_ns;
        if (best->parameters.segment_bytes + step <= bytes) {
            status = segment_consider(request, segments, best->parameters.segment_bytes + step);
        }
        if (status == CW_OK && best->time_ns == before && best->parameters.segment_bytes > step) {
            status = segment_consider(request, segments, best->parameters.segment_bytes - step);
        }
        step = best->time_ns == before ? step / 2 : step;
    }
    return status;
}

/* The best segments for `tried`. A climb that runs plans starts only where the scan was faster than any before. */
static int search_segment(struct search *search, struct cw_candidate *tried, bool *found)
{
    struct segments segments = {.best = tried};
    int status = segments_scan(search->request, &segments);
    *found = segments.found;
    if (status != CW_OK || !segments.found) {
        return status;
    }
    bool sooner = !search->found || tried->time_ns < search->scanned_ns;
    search->scanned_ns = sooner ? tried->time_ns : search->scanned_ns;
    search->last_ns = tried->priced == CW_PRICED_INTERPRETER ? tried->time_ns : 0;
    return sooner || tried->priced != CW_PRICED_INTERPRETER ? segments_climb(search->request, &segments) : CW_OK;
}

/* With the other parameters as they are: the segments, if the algorithm takes any. */
static int search_rest(struct search *search, struct cw_candidate *tried)
{
    bool found = false;
    int status = (tried->algorithm->takes & CW_TAKES_SEGMENT) != 0 ? search_segment(search, tried, &found)
                                                                   : consider(search->request, tried, tried, &found);
    if (status == CW_OK && found && (!search->found || tried->time_ns < search->best->time_ns)) {
        *search->best = *tried;
        search->found = true;
    }
    return status;
}

static int search_degree(struct search *search)
{
    int status = CW_OK;
    uint32_t ranks = search->request->problem->ranks;
    uint32_t most = ranks < DEGREE_MAX ? ranks : DEGREE_MAX;
    uint32_t worse = 0;
    for (uint32_t degree = 1; degree <= most && worse < WORSE_MAX && status == CW_OK; degree++) {
        double before = search->last_ns;
        struct cw_candidate tried = *search->best;
        tried.parameters.degree = degree;
        status = search_rest(search, &tried);
        worse = search->last_ns > before && before > 0 ? worse + 1 : 0;
    }
    return status;
}

static int search_concurrency(struct search *search)
{
    int status = CW_OK;
    uint32_t ranks = search->request->problem->ranks;
    uint32_t most = ranks < CONCURRENCY_MAX ? ranks : CONCURRENCY_MAX;
    for (uint32_t concurrency = 1; concurrency <= most && status == CW_OK; concurrency++) {
        struct cw_candidate tried = *search->best;
        tried.parameters.concurrency = concurrency;
        status = search_rest(search, &tried);
    }
    return status;
}

/* How many ranks that send at the rate of their ports fill a link. */
static double senders_carried(const struct cw_network *network)
{
    const struct cw_plogp *path = &network->paths[CW_PATH_WAN];
    const uint64_t much = 1 << 20;
    double node_rate = (double)much / (cw_plogp_gap(path, 2 * much) - cw_plogp_gap(path, much));
    return network->wan_bytes_per_ns / node_rate;
}

static int search_limit(struct search *search, uint32_t senders)
{
    struct cw_candidate tried = *search->best;
    tried.parameters.senders = senders;
    return search_rest(search, &tried);
}

/* 1, 2, 4, ..., the number that fills the link, and no limit, which equals more than a cluster has. */
static int search_senders(struct search *search)
{
    uint32_t largest = cw_problem_cluster_largest(search->request->problem);
    double carries = senders_carried(search->request->network);
    uint32_t carried = carries >= largest ? 0 : carries > 1 ? (uint32_t)carries : 1;
    int status = CW_OK;
    for (uint32_t senders = 1; senders < largest && status == CW_OK; senders *= 2) {
        status = search_limit(search, senders);
    }
    if (status == CW_OK && (carried & (carried - 1)) != 0) { /* others have had their turn */
        status = search_limit(search, carried);
    }
    return status == CW_OK ? search_limit(search, 0) : status;
}

int choose_search(const struct cw_choose_request *request, struct cw_candidate *candidate)
{
    struct search search = {.request = request, .best = candidate};
    uint32_t takes = candidate->algorithm->takes;
    int status;
    candidate->parameters = cw_parameters_default();
    candidate->parameters.eager_max_bytes = request->eager_max_bytes;
    candidate->parameters.multicast_eager_max_bytes = request->multicast_eager_max_bytes;
    candidate->parameters.single_eager_max_bytes = request->single_eager_max_bytes;
    if ((takes & CW_TAKES_DEGREE) != 0) {
        status = search_degree(&search);
    } else if ((takes & CW_TAKES_CONCURRENCY) != 0) {
        status = search_concurrency(&search);
    } else if ((takes & CW_TAKES_SENDERS) != 0) {
        status = search_senders(&search);
    } else {
        struct cw_candidate tried = *candidate;
        status = search_rest(&search, &tried);
    }
    return status != CW_OK ? status : search.found ? CW_OK : CW_ERROR_UNSUPPORTED;
}
