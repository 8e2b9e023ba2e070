/* What bench alltoallv measures: count matrices, their phases, and plans over puts between simulated hosts. */
#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/collectives/alltoallv.h"
#include "apps/cli/cli.h"
#include "collectives/algorithms/build.h"
#include "collectives/phases/count_matrix.h"
#include "dataplane/base/clock.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"

enum { SCHEDULE_ROUNDS = 21, EAGER_BYTES = 4096 };

/* ---- count matrices ---- */

/* Which lengths the pairs have; shuffled, so that every length has its share exactly. */
static void lengths_draw(uint32_t pair_count, uint64_t seed, uint64_t *lengths)
{
    struct cw_random random;
    cw_random_seed(&random, seed);
    for (uint32_t i = 0; i < pair_count; i++) {
        lengths[i] = i < pair_count * 2 / 3 ? 65536 : i < pair_count * 3 / 4 ? 16384 : 100;
    }
    for (uint32_t i = pair_count - 1; i > 0; i--) {
        uint64_t other = cw_random_below(&random, i + 1);
        uint64_t length = lengths[i];
        lengths[i] = lengths[other];
        lengths[other] = length;
    }
}

static struct cw_problem *problem_make(const struct bench_alltoallv_case *of)
{
    static uint64_t counts[BENCH_ALLTOALLV_MEMBERS_MAX * BENCH_ALLTOALLV_MEMBERS_MAX],
        lengths[BENCH_ALLTOALLV_MEMBERS_MAX * BENCH_ALLTOALLV_MEMBERS_MAX];
    uint32_t ranks = of->network.members;
    struct cw_problem_request request = {
        .collective = CW_ALLTOALL, .ranks = ranks, .element_bytes = 1, .counts = counts};
    struct cw_problem *problem = NULL;
    char error[200] = "";
    lengths_draw(ranks * (ranks - 1), of->network.seed, lengths);
    for (uint32_t pair = 0, next = 0; pair < ranks * ranks; pair++) {
        bool is_own = pair / ranks == pair % ranks;
        counts[pair] = is_own ? 0 : of->network.bytes == BENCH_ALLTOALLV_RANDOM ? lengths[next++] : of->network.bytes;
    }
    int status = cw_problem_create(&request, &problem, error, sizeof(error));
    if (status != CW_OK) {
        (void)app_error_status(status, "no such problem", error);
    }
    return problem;
}

static bool begins_with(const char *text, const char *beginning)
{
    return strncmp(text, beginning, strlen(beginning)) == 0;
}

/* How many phases the scheduler of this name makes of a count matrix. */
static int phases_count(const struct bench_alltoallv_case *of, const struct cw_problem *problem, const char *name,
                        uint32_t *count)
{
    struct cw_count_matrix count_matrix;
    struct cw_phases phases = {0};
    int status = cw_count_matrix_create(problem, &count_matrix);
    if (status != CW_OK) {
        return status;
    }
    status = begins_with(name, "greedy")      ? cw_schedule_greedy(&count_matrix, of->threshold_bytes, &phases)
             : begins_with(name, "colouring") ? cw_schedule_colouring(&count_matrix, &phases)
             : begins_with(name, "splitting")
                 ? cw_schedule_splitting(&count_matrix, 1, &phases)
                 : cw_schedule_all_to_all_based(&count_matrix, of->threshold_bytes, &phases);
    *count = phases.phase_count;
    cw_phases_dispose(&phases);
    cw_count_matrix_dispose(&count_matrix);
    return status;
}

/* ---- measuring ---- */

static struct cw_parameters parameters_of(const struct bench_alltoallv_case *of)
{
    struct cw_parameters parameters = cw_parameters_default();
    parameters.eager_max_bytes = EAGER_BYTES;
    parameters.threshold_bytes = of->threshold_bytes;
    return parameters;
}

/* What a rank takes to schedule all phases and to make its own schedule of them: a median, of this machine's time. */
static int schedule_time(const struct bench_alltoallv_case *of, const struct cw_problem *problem,
                         const struct cw_algorithm *algorithm, double *took_ns)
{
    double times[SCHEDULE_ROUNDS];
    struct cw_parameters parameters = parameters_of(of);
    char error[200];
    *took_ns = (double)of->schedule_ns;
    for (int round = 0; of->schedule_ns == BENCH_ALLTOALLV_MEASURED && round < SCHEDULE_ROUNDS; round++) {
        struct cw_schedule schedule;
        uint64_t begin_ns = cw_clock_ns();
        int status = cw_schedule_build(problem, algorithm, &parameters, 0, &schedule, error, sizeof(error));
        times[round] = (double)(cw_clock_ns() - begin_ns);
        if (status != CW_OK) {
            return status;
        }
        cw_schedule_dispose(&schedule);
    }
    if (of->schedule_ns == BENCH_ALLTOALLV_MEASURED) {
        *took_ns = cw_statistics_median(times, SCHEDULE_ROUNDS);
    }
    return CW_OK;
}

/* Moves the data. The problem is the plan's, and goes with it. */
static int data_move(const struct bench_alltoallv_case *of, struct cw_problem *problem,
                     const struct cw_algorithm *algorithm, struct bench_mcast_result *result)
{
    struct cw_plan *plan;
    struct cw_parameters parameters = parameters_of(of);
    char error[200];
    int status = cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error));
    if (status != CW_OK) {
        cw_problem_destroy(problem);
        return app_error_status(status, "the plan cannot be built", error);
    }
    *result = (struct bench_mcast_result){.median_ns = 0};
    snprintf(result->name, sizeof(result->name), "%s", algorithm->name);
    int code = bench_mcast_plan(&of->network, plan, result);
    cw_plan_destroy(plan);
    return code;
}

bool bench_alltoallv_has_phases(const char *algorithm)
{
    static const char *const schedulers[] = {"all-to-all-based", "greedy", "colouring", "splitting"};
    bool is_one = false;
    for (size_t i = 0; i < sizeof(schedulers) / sizeof(schedulers[0]); i++) {
        is_one = is_one || begins_with(algorithm, schedulers[i]);
    }
    return is_one && cw_algorithm_find(CW_ALLTOALL, algorithm) != NULL;
}

int bench_alltoallv_exchange(const struct bench_alltoallv_case *of, struct bench_mcast_result *result)
{
    struct bench_mcast_case gather = of->network;
    gather.collective = CW_ALLGATHER;
    gather.bytes = 2 * (uint64_t)of->network.members * sizeof(uint64_t);
    return bench_mcast_unicast(&gather, NULL, result);
}

int bench_alltoallv_run(const struct bench_alltoallv_case *of, const char *name, struct bench_alltoallv_line *line)
{
    const struct cw_algorithm *algorithm = cw_algorithm_find(CW_ALLTOALL, name);
    struct cw_problem *problem = problem_make(of);
    struct bench_mcast_result result;
    bool has_phases = bench_alltoallv_has_phases(name);
    *line = (struct bench_alltoallv_line){.phases = 0};
    if (problem == NULL) {
        return APP_EXIT_MACHINE;
    }
    int status = has_phases ? phases_count(of, problem, name, &line->phases) : CW_OK;
    if (status == CW_OK && has_phases) {
        status = schedule_time(of, problem, algorithm, &line->schedule_ns);
    }
    if (status != CW_OK) {
        cw_problem_destroy(problem);
        return app_error_status(status, "the phases cannot be scheduled", name);
    }
    int code = data_move(of, problem, algorithm, &result);
    line->level_ns[3] = result.median_ns;
    line->level_ns[2] = line->level_ns[3] + line->schedule_ns;
    line->level_ns[1] = line->level_ns[2] + (has_phases ? of->exchange_ns : 0);
    return code;
}
