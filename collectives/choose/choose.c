#include "collectives/choose/choose.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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

/* ---- The chooser ---- */

/* The inputs of an answer; lists by their hash. */
struct question {
    uint32_t collective;
    uint32_t ranks;
    uint32_t root;
    uint32_t element_bytes;
    uint32_t cluster_count;
    uint32_t ordered;
    uint64_t count;
    uint64_t lists;
};

struct entry {
    struct question question;
    struct cw_candidate best;
    bool used;
};

struct cw_chooser {
    struct cw_network network;
    uint64_t eager_max_bytes;
    bool multicast;
    struct entry entries[CW_CHOOSER_ENTRIES];
};

int cw_chooser_create(const struct cw_network *network, uint64_t eager_max_bytes, bool multicast,
                      struct cw_chooser **chooser)
{
    struct cw_chooser *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    made->network = *network;
    made->eager_max_bytes = eager_max_bytes;
    made->multicast = multicast;
    *chooser = made;
    return CW_OK;
}

void cw_chooser_destroy(struct cw_chooser *chooser)
{
    free(chooser);
}

static struct question question_of(const struct cw_problem *problem)
{
    struct question question;
    uint64_t ranks = problem->ranks;
    memset(&question, 0, sizeof(question)); /* the padding is compared, too */
    question.collective = problem->collective;
    question.ranks = problem->ranks;
    question.root = problem->cluster_count > 1 || problem->has_counts ? problem->root : 0;
    question.element_bytes = problem->element_bytes;
    question.cluster_count = problem->cluster_count;
    question.ordered = problem->ordered;
    question.count = problem->count;
    if (problem->has_counts) {
        uint64_t entries = problem->collective == CW_ALLTOALL ? ranks * ranks : ranks;
        question.lists = XXH3_64bits(problem->counts, entries * sizeof(uint64_t));
    }
    if (problem->clusters.of != NULL) {
        question.lists = XXH3_64bits_withSeed(problem->clusters.of, ranks * sizeof(uint32_t), question.lists);
    }
    if (problem->cluster_via != NULL) {
        size_t clusters = problem->cluster_count;
        question.lists =
            XXH3_64bits_withSeed(problem->cluster_via, clusters * clusters * sizeof(uint32_t), question.lists + 1);
    }
    return question;
}

int cw_chooser_query(struct cw_chooser *chooser, const struct cw_problem *problem, struct cw_candidate *best)
{
    struct question question = question_of(problem);
    struct entry *entry = &chooser->entries[XXH3_64bits(&question, sizeof(question)) % CW_CHOOSER_ENTRIES];
    if (entry->used && memcmp(&entry->question, &question, sizeof(question)) == 0) {
        *best = entry->best;
        return CW_OK;
    }
    struct cw_choose_request request = {
        .problem = problem,
        .network = &chooser->network,
        .eager_max_bytes = chooser->eager_max_bytes,
        .multicast = chooser->multicast,
    };
    struct cw_choice choice;
    int status = cw_choose(&request, &choice);
    if (status != CW_OK) {
        return status;
    }
    *entry = (struct entry){.question = question, .best = choice.candidates[0], .used = true};
    entry->question = question;
    *best = choice.candidates[0];
    return CW_OK;
}
