#include "collectives/choose/choose.h"

#include <math.h>
#include <string.h>

#include "collectives/choose/choose_private.h"
#include "dataplane/status.h"

static bool is_candidate(const struct cw_choose_request *request, const struct cw_algorithm *algorithm)
{
    char error[200];
    return algorithm->collective == request->problem->collective &&
           (request->multicast || (algorithm->needs & CW_NEEDS_MULTICAST) == 0) &&
           (request->problem->has_counts || (algorithm->needs & CW_NEEDS_COUNTS) == 0) &&
           cw_algorithm_fits(algorithm, request->problem, error, sizeof(error)) == CW_OK;
}

static void candidate_insert(struct cw_choice *choice, const struct cw_candidate *candidate)
{
    uint32_t at = choice->count;
    if (at == CW_CANDIDATES_MAX) {
        return; /* the registry's tests hold it below that */
    }
    while (at > 0 && choice->candidates[at - 1].time_ns > candidate->time_ns) {
        choice->candidates[at] = choice->candidates[at - 1];
        at--;
    }
    choice->candidates[at] = *candidate;
    choice->count++;
}

/* Estimates may be that many times too high. */
enum { ESTIMATE_FACTOR = 3 };

/* Looks closer at what might be the best, from the front of the ranking on, and ranks again. */
static int choice_refine(const struct cw_choose_request *request, struct cw_choice *choice)
{
    struct cw_choice rough = *choice;
    double best = INFINITY;
    choice->count = 0;
    for (uint32_t i = 0; i < rough.count; i++) {
        struct cw_candidate *candidate = &rough.candidates[i];
        if (candidate->time_ns <= ESTIMATE_FACTOR * best) {
            int status = choose_refine(request, candidate);
            if (status != CW_OK) {
                return status;
            }
        }
        best = candidate->time_ns < best ? candidate->time_ns : best;
        candidate_insert(choice, candidate);
    }
    return CW_OK;
}

int cw_choose(const struct cw_choose_request *request, struct cw_choice *choice)
{
    const struct cw_algorithm *algorithm;
    choice->count = 0;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        struct cw_candidate candidate = {.algorithm = algorithm};
        if (!is_candidate(request, algorithm)) {
            continue;
        }
        int status = choose_search(request, &candidate);
        if (status == CW_OK) {
            candidate_insert(choice, &candidate);
        } else if (status != CW_ERROR_UNSUPPORTED) {
            return status;
        }
    }
    return choice->count > 0 ? choice_refine(request, choice) : CW_ERROR_UNSUPPORTED;
}
