/* Memory of a plan, before it is built. */
#include <string.h>

#include "collectives/algorithms/build.h"
#include "dataplane/status.h"

enum {
    SAMPLES = 8,
    MODEL_RANKS = 2048, /* of a smaller problem of the same kind, from which larger ones are extrapolated */
    RANKS_FEW = 256,    /* no plan of fewer ranks comes near the limit: long messages repeat, they do not add ops */
};

/* All-to-alls but Bruck's send each pair's message on its own: a put and a wait, and the same for its ready signal if
 * it is long. */
static uint64_t pairs_estimate(const struct cw_problem *problem, const struct cw_parameters *parameters)
{
    uint64_t ops = 0;
    for (uint32_t from = 0; from < problem->ranks; from++) {
        if (problem->counts == NULL && from > 0) {
            return ops * problem->ranks; /* all as the first */
        }
        for (uint32_t to = 0; to < problem->ranks; to++) {
            uint64_t bytes = from != to ? cw_problem_pair_bytes(problem, from, to) : 0;
            ops += bytes == 0 ? 0 : bytes > parameters->eager_max_bytes ? 4 : 2;
        }
    }
    return ops;
}

/* From some ranks far apart to all but the root, which may have far more to do; stops when they alone are too much. */
static int samples_estimate(const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                            const struct cw_parameters *parameters, uint64_t *bytes, char *error, size_t error_bytes)
{
    uint64_t others = problem->ranks - 1;
    *bytes = 0;
    for (uint32_t i = 0; i < SAMPLES && *bytes <= CW_PLAN_BYTES_MAX; i++) {
        struct cw_schedule schedule;
        uint32_t rank = (uint32_t)((problem->root + 1 + (2 * i + 1) * others / (2 * SAMPLES)) % problem->ranks);
        int status = cw_schedule_build(problem, algorithm, parameters, rank, &schedule, error, error_bytes);
        if (status != CW_OK) {
            return status;
        }
        *bytes += cw_schedule_memory_bytes(&schedule) * others / SAMPLES;
        cw_schedule_dispose(&schedule);
    }
    return CW_OK;
}

/* Memory of a rank in the middle of the same problem, with fewer ranks, equal counts, and two clusters if there must be
 * some. */
static int model_bytes(const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                       const struct cw_parameters *parameters, uint32_t ranks, uint64_t *bytes, char *error,
                       size_t error_bytes)
{
    uint32_t cluster_of[MODEL_RANKS];
    struct cw_problem_request request = {
        .collective = problem->collective,
        .ranks = ranks,
        .element_bytes = problem->element_bytes,
        .ordered = problem->ordered,
        .count = problem->counts != NULL ? problem->counts[problem->ranks / 2] : problem->count,
        .cluster_count = problem->cluster_count > 1 ? 2 : 1,
        .cluster_of = cluster_of,
    };
    struct cw_problem *model;
    struct cw_schedule schedule;
    for (uint32_t rank = 0; rank < ranks; rank++) {
        cluster_of[rank] = 2 * rank / ranks;
    }
    int status = cw_problem_create(&request, &model, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    status = cw_schedule_build(model, algorithm, parameters, ranks / 2, &schedule, error, error_bytes);
    cw_problem_destroy(model);
    if (status == CW_OK) {
        *bytes = cw_schedule_memory_bytes(&schedule);
        cw_schedule_dispose(&schedule);
    }
    return status;
}

/* With very many ranks even one of them may have too much work to be simulated. If the work of a rank doubles with the
 * number of ranks, it is extrapolated; else *bytes is 0. */
static int model_estimate(const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                          const struct cw_parameters *parameters, uint64_t *bytes, char *error, size_t error_bytes)
{
    uint64_t half;
    uint64_t whole;
    int status = model_bytes(problem, algorithm, parameters, MODEL_RANKS / 2, &half, error, error_bytes);
    if (status == CW_OK) {
        status = model_bytes(problem, algorithm, parameters, MODEL_RANKS, &whole, error, error_bytes);
    }
    if (status == CW_OK) {
        /* an op for every few ranks: not a handshake more because messages have grown */
        bool grows = 2 * whole > 3 * half && whole > MODEL_RANKS / 4 * sizeof(struct cw_op);
        *bytes = grows ? whole * problem->ranks / MODEL_RANKS * problem->ranks : 0;
    }
    return status;
}

int cw_plan_estimate(const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                     const struct cw_parameters *parameters, uint64_t *bytes, char *error, size_t error_bytes)
{
    int status = cw_algorithm_fits(algorithm, problem, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    if (problem->ranks < RANKS_FEW) {
        *bytes = 0;
        return CW_OK;
    }
    if (problem->collective == CW_ALLTOALL && strcmp(algorithm->name, "bruck") != 0) {
        *bytes =
            pairs_estimate(problem, parameters) * sizeof(struct cw_op) + problem->ranks * sizeof(struct cw_schedule);
        return CW_OK;
    }
    if (problem->ranks > 2 * MODEL_RANKS) {
        status = model_estimate(problem, algorithm, parameters, bytes, error, error_bytes);
        if (status != CW_OK || *bytes > CW_PLAN_BYTES_MAX) {
            return status;
        }
    }
    return samples_estimate(problem, algorithm, parameters, bytes, error, error_bytes);
}
