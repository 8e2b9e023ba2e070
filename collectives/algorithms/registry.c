#include "collectives/algorithms/registry.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

static const struct {
    const struct cw_recipe *recipes;
    const uint32_t *count;
} families[] = {
    {cw_recipes_bcast, &cw_recipes_bcast_count},
    {cw_recipes_clusters_bcast, &cw_recipes_clusters_bcast_count},
    {cw_recipes_overlapped_bcast, &cw_recipes_overlapped_bcast_count},
    {cw_recipes_scatter, &cw_recipes_scatter_count},
    {cw_recipes_gather, &cw_recipes_gather_count},
    {cw_recipes_allgather, &cw_recipes_allgather_count},
    {cw_recipes_concurrent, &cw_recipes_concurrent_count},
    {cw_recipes_alltoall, &cw_recipes_alltoall_count},
    {cw_recipes_clusters_alltoall, &cw_recipes_clusters_alltoall_count},
    {cw_recipes_phases, &cw_recipes_phases_count},
    {cw_recipes_reduce, &cw_recipes_reduce_count},
    {cw_recipes_clusters_allreduce, &cw_recipes_clusters_allreduce_count},
    {cw_recipes_overlapped_allreduce, &cw_recipes_overlapped_allreduce_count},
    {cw_recipes_reduce_scatter, &cw_recipes_reduce_scatter_count},
    {cw_recipes_scan, &cw_recipes_scan_count},
    {cw_recipes_barrier, &cw_recipes_barrier_count},
    {cw_recipes_hosts, &cw_recipes_hosts_count},
};

const struct cw_algorithm *cw_algorithm_at(uint32_t index)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (index < *families[i].count) {
            return &families[i].recipes[index].about;
        }
        index -= *families[i].count;
    }
    return NULL;
}

const struct cw_algorithm *cw_algorithm_find(enum cw_collective collective, const char *name)
{
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        if (algorithm->collective == collective && strcmp(algorithm->name, name) == 0) {
            return algorithm;
        }
    }
    return NULL;
}

static int reject(char *error, size_t error_bytes, const struct cw_algorithm *algorithm, const char *reason)
{
    snprintf(error, error_bytes, "%s %s: %s", cw_collective_name(algorithm->collective), algorithm->name, reason);
    return CW_ERROR_UNSUPPORTED;
}

static bool hosts_are_even(const struct cw_problem *problem)
{
    for (uint32_t host = 0; host < problem->hosts.count; host++) {
        if (cw_problem_host_size(problem, host) * problem->hosts.count != problem->ranks) {
            return false;
        }
    }
    return true;
}

int cw_algorithm_fits(const struct cw_algorithm *algorithm, const struct cw_problem *problem, char *error,
                      size_t error_bytes)
{
    if (algorithm->collective != problem->collective) {
        return reject(error, error_bytes, algorithm, "is an algorithm for another collective");
    }
    if ((algorithm->needs & CW_NEEDS_COMMUTATIVE) != 0 && problem->ordered) {
        return reject(error, error_bytes, algorithm, "needs a commutative operation");
    }
    if ((algorithm->needs & CW_NEEDS_EQUAL) != 0 && problem->has_counts) {
        return reject(error, error_bytes, algorithm, "needs the same count at all ranks");
    }
    if ((algorithm->needs & CW_NEEDS_CLUSTERS) != 0 && problem->cluster_count < 2) {
        return reject(error, error_bytes, algorithm, "needs at least two clusters");
    }
    if ((algorithm->needs & CW_NEEDS_ONE_HOST) != 0 && problem->hosts.count != 1) {
        return reject(error, error_bytes, algorithm, "needs all ranks on one host");
    }
    if ((algorithm->needs & CW_NEEDS_HOSTS) != 0 &&
        (problem->hosts.count < 2 || problem->hosts.count == problem->ranks)) {
        return reject(error, error_bytes, algorithm, "needs several hosts, of which one has several ranks");
    }
    if ((algorithm->needs & CW_NEEDS_HOSTS) != 0 && problem->collective == CW_ALLTOALL && !hosts_are_even(problem)) {
        return reject(error, error_bytes, algorithm, "needs as many ranks on each host");
    }
    return CW_OK;
}

struct cw_parameters cw_parameters_default(void)
{
    return (struct cw_parameters){
        .segment_bytes = 8192,
        .eager_max_bytes = 4096,
        .degree = 2,
        .concurrency = 2,
    };
}

/* Shared by all ranks, with the parameters filled in. */
struct build {
    const struct cw_problem *problem;
    const struct cw_recipe *recipe;
    struct cw_parameters parameters;
    void *shared;
};

static int build_open(struct build *build, const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                      const struct cw_parameters *parameters, char *error, size_t error_bytes)
{
    int status = cw_algorithm_fits(algorithm, problem, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_parameters defaults = cw_parameters_default();
    *build = (struct build){
        .problem = problem,
        .recipe = (const struct cw_recipe *)algorithm,
        .parameters = *parameters,
    };
    if (build->parameters.degree == 0) {
        build->parameters.degree = defaults.degree;
    }
    if (build->parameters.concurrency == 0) {
        build->parameters.concurrency = defaults.concurrency;
    }
    if (build->recipe->preparation != NULL) {
        status = build->recipe->preparation->prepare(problem, &build->parameters, build->recipe, &build->shared);
        if (status != CW_OK) {
            snprintf(error, error_bytes, "%s %s: no memory for the count matrix",
                     cw_collective_name(algorithm->collective), algorithm->name);
        }
    }
    return status;
}

static void build_close(struct build *build)
{
    if (build->shared != NULL) {
        build->recipe->preparation->release(build->shared);
    }
}

static int build_rank(const struct build *build, uint32_t rank, struct cw_schedule *schedule, char *error,
                      size_t error_bytes)
{
    struct cw_emit emit;
    const char *reason = NULL;
    cw_emit_init(&emit, build->problem, &build->parameters, rank);
    emit.shared = build->shared;
    if (emit.status == CW_OK) {
        build->recipe->build(&emit, build->recipe);
    }
    int status = cw_emit_finish(&emit, schedule, &reason);
    if (status != CW_OK) {
        snprintf(error, error_bytes, "%s %s, rank %u: %s", cw_collective_name(build->problem->collective),
                 build->recipe->about.name, rank, reason);
    }
    return status;
}

int cw_schedule_build(const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                      const struct cw_parameters *parameters, uint32_t rank, struct cw_schedule *schedule, char *error,
                      size_t error_bytes)
{
    struct build build;
    int status = build_open(&build, problem, algorithm, parameters, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    status = build_rank(&build, rank, schedule, error, error_bytes);
    build_close(&build);
    return status;
}

int cw_plan_build(struct cw_problem *problem, const struct cw_algorithm *algorithm,
                  const struct cw_parameters *parameters, struct cw_plan **plan, char *error, size_t error_bytes)
{
    struct build build;
    int status = build_open(&build, problem, algorithm, parameters, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_plan *made = calloc(1, sizeof(*made));
    struct cw_schedule *schedules = calloc(problem->ranks, sizeof(*schedules));
    if (made == NULL || schedules == NULL) {
        snprintf(error, error_bytes, "no memory for the schedules of %u ranks", problem->ranks);
        status = CW_ERROR_MEMORY;
    }
    uint32_t built = 0;
    while (status == CW_OK && built < problem->ranks) {
        status = build_rank(&build, built, &schedules[built], error, error_bytes);
        built += status == CW_OK;
    }
    build_close(&build);
    if (status != CW_OK) {
        while (built > 0) {
            cw_schedule_dispose(&schedules[--built]);
        }
        free(schedules);
        free(made);
        return status;
    }
    made->problem = problem;
    made->schedules = schedules;
    made->parameters = build.parameters;
    snprintf(made->algorithm, sizeof(made->algorithm), "%s", algorithm->name);
    *plan = made;
    return CW_OK;
}
