/* The search for an algorithm's best parameters. */
#include "collectives/choose/choose_private.h"
#include "dataplane/status.h"

enum {
    DEGREE_MAX = 16,
    CONCURRENCY_MAX = 16,
    SEGMENT_LEAST = 64, /* bytes: shorter ones are all header */
};

/* Takes `tried` if it is sooner. The first failure that is none of the price's own sticks. */
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

static int segment_consider(const struct cw_choose_request *request, struct cw_candidate *best, uint64_t segment_bytes,
                            bool *found)
{
    struct cw_candidate tried = *best;
    uint64_t element = request->problem->element_bytes;
    tried.parameters.segment_bytes = segment_bytes / element * element;
    return tried.parameters.segment_bytes == 0 ? CW_OK : consider(request, best, &tried, found);
}

/* m / 2^i for all i, then up and down from the best one in steps that are halved. */
static int search_segment(const struct cw_choose_request *request, struct cw_candidate *best, bool *found)
{
    uint64_t bytes = choose_vector_bytes(request->problem);
    int status = CW_OK;
    for (uint64_t segment = bytes; segment >= SEGMENT_LEAST && status == CW_OK; segment /= 2) {
        status = segment_consider(request, best, segment, found);
    }
    if (!*found) {
        return status == CW_OK
                   ? segment_consider(request, best, bytes > 0 ? bytes : request->problem->element_bytes, found)
                   : status;
    }
    uint64_t step = best->parameters.segment_bytes / 2;
    while (step >= SEGMENT_LEAST && step > best->parameters.segment_bytes / 64 && status == CW_OK) {
        double before = best->time_ns;
        status = segment_consider(request, best, best->parameters.segment_bytes + step, found);
        if (status == CW_OK && best->time_ns == before && best->parameters.segment_bytes > step) {
            status = segment_consider(request, best, best->parameters.segment_bytes - step, found);
        }
        step = best->time_ns == before ? step / 2 : step;
    }
    return status;
}

/* With the other parameters as they are: the segments, if the algorithm takes any. */
static int search_rest(const struct cw_choose_request *request, struct cw_candidate *best, struct cw_candidate *tried,
                       bool *found)
{
    bool tried_found = false;
    int status = (tried->algorithm->takes & CW_TAKES_SEGMENT) != 0 ? search_segment(request, tried, &tried_found)
                                                                   : consider(request, tried, tried, &tried_found);
    if (status == CW_OK && tried_found && (!*found || tried->time_ns < best->time_ns)) {
        *best = *tried;
        *found = true;
    }
    return status;
}

static int search_degree(const struct cw_choose_request *request, struct cw_candidate *best, bool *found)
{
    int status = CW_OK;
    for (uint32_t degree = 1; degree <= DEGREE_MAX && degree < request->problem->ranks + 1 && status == CW_OK;
         degree++) {
        struct cw_candidate tried = *best;
        tried.parameters.degree = degree;
        status = search_rest(request, best, &tried, found);
    }
    return status;
}

static int search_concurrency(const struct cw_choose_request *request, struct cw_candidate *best, bool *found)
{
    int status = CW_OK;
    uint32_t most = request->problem->ranks < CONCURRENCY_MAX ? request->problem->ranks : CONCURRENCY_MAX;
    for (uint32_t concurrency = 1; concurrency <= most && status == CW_OK; concurrency++) {
        struct cw_candidate tried = *best;
        tried.parameters.concurrency = concurrency;
        status = search_rest(request, best, &tried, found);
    }
    return status;
}

/* 1, 2, 4, ..., what the link carries, and no limit. */
static int search_senders(const struct cw_choose_request *request, struct cw_candidate *best, bool *found)
{
    const struct cw_network *network = request->network;
    const struct cw_plogp *path = &network->paths[CW_PATH_WAN];
    const uint64_t much = 1 << 20;
    double node_rate = (double)much / (cw_plogp_gap(path, 2 * much) - cw_plogp_gap(path, much));
    double carries = network->wan_bytes_per_ns / node_rate;
    uint32_t carried = carries >= request->problem->ranks ? request->problem->ranks
                       : carries > 1                      ? (uint32_t)carries
                                                          : 1;
    int status = CW_OK;
    for (uint64_t senders = 1; senders < 2ull * request->problem->ranks && status == CW_OK; senders *= 2) {
        struct cw_candidate tried = *best;
        tried.parameters.senders = senders < request->problem->ranks ? (uint32_t)senders : 0;
        status = search_rest(request, best, &tried, found);
    }
    if (status == CW_OK) {
        struct cw_candidate tried = *best;
        tried.parameters.senders = carried;
        status = search_rest(request, best, &tried, found);
    }
    return status;
}

int choose_search(const struct cw_choose_request *request, struct cw_candidate *candidate)
{
    bool found = false;
    uint32_t takes = candidate->algorithm->takes;
    int status;
    candidate->parameters = cw_parameters_default();
    candidate->parameters.eager_max_bytes = request->eager_max_bytes;
    if ((takes & CW_TAKES_DEGREE) != 0) {
        status = search_degree(request, candidate, &found);
    } else if ((takes & CW_TAKES_CONCURRENCY) != 0) {
        status = search_concurrency(request, candidate, &found);
    } else if ((takes & CW_TAKES_SENDERS) != 0) {
        status = search_senders(request, candidate, &found);
    } else {
        struct cw_candidate tried = *candidate;
        status = search_rest(request, candidate, &tried, &found);
    }
    return status != CW_OK ? status : found ? CW_OK : CW_ERROR_UNSUPPORTED;
}
