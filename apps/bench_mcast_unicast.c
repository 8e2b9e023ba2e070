/* The other side of bench mcast: broadcasts by puts from one to one, as collectives/ builds them, on hosts of the same kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/apps.h"
#include "apps/bench_mcast.h"
#include "apps/plan_puts.h"
#include "collectives/build.h"
#include "collectives/choose/choose.h"
#include "dataplane/status.h"

enum { EAGER_MAX_BYTES = 4096 };
#define OVERHEAD_NS 500.0 /* of a message at either side, for the choice */
#define LIMIT_NS    1000000000000ull

/* Which algorithm, with which parameters; NULL: none fits. */
static const struct cw_algorithm *algorithm_find(const struct bench_mcast_case *of, const struct cw_problem *problem,
                                                 const char *name, struct cw_parameters *parameters)
{
    static struct cw_choice choice;
    char reason[200];
    struct cw_plogp link = cw_plogp_linear((double)of->delay_ns, OVERHEAD_NS, (double)of->rate_bps / 8e9);
    struct cw_network network = {
        .paths = {link, link}, .ports = 1, .copy_ns_per_byte = 0.05, .reduce_ns_per_byte = 0.1, .contention = 1};
    struct cw_choose_request request = {
        .problem = problem, .network = &network, .eager_max_bytes = EAGER_MAX_BYTES, .multicast = false};
    if (cw_choose(&request, &choice) != CW_OK) {
        return NULL;
    }
    for (uint32_t i = 0; i < choice.count; i++) {
        const struct cw_candidate *candidate = &choice.candidates[i];
        if (name == NULL || strcmp(candidate->algorithm->name, name) == 0) {
            *parameters = candidate->parameters;
            return cw_algorithm_fits(candidate->algorithm, problem, reason, sizeof(reason)) == CW_OK
                       ? candidate->algorithm
                       : NULL;
        }
    }
    return NULL;
}

static int plan_measure(const struct bench_mcast_case *of, const struct cw_plan *plan,
                        struct bench_mcast_result *result)
{
    static uint64_t times[BENCH_MCAST_RUNS_MAX + 1];
    static double sorted[BENCH_MCAST_RUNS_MAX];
    struct plan_puts_options options;
    struct plan_puts_report report;
    char error[4096];
    plan_puts_options_init(&options);
    options.seed = of->seed;
    options.runs = (uint32_t)of->runs + 1; /* the first one sets connections up */
    options.together = true;
    options.times_ns = times;
    options.rate_bps = of->rate_bps;
    options.delay_ns = of->delay_ns;
    options.loss = of->loss;
    options.limit_ns = LIMIT_NS;
    uint64_t slot_bytes = (plan_puts_message_bytes(plan) + 63) / 64 * 64;
    options.endpoint.pool_slot_bytes =
        slot_bytes > options.endpoint.pool_slot_bytes ? (uint32_t)slot_bytes : options.endpoint.pool_slot_bytes;
    if (plan_puts_run(plan, &options, &report, error, sizeof(error)) != 0) {
        app_error(error, result->name, "this is a bug");
        return APP_EXIT_INTERNAL;
    }
    for (uint64_t run = 0; run < of->runs; run++) {
        sorted[run] = (double)times[run + 1];
    }
    result->packets = (double)report.packets / (double)(of->runs + 1);
    bench_mcast_times(sorted, of->runs, result);
    return APP_EXIT_SUCCESS;
}

int bench_mcast_unicast(const struct bench_mcast_case *of, const char *name, struct bench_mcast_result *result)
{
    struct cw_problem_request request = {
        .collective = CW_BCAST, .ranks = of->members, .element_bytes = 1, .count = of->bytes};
    struct cw_problem *problem = NULL;
    struct cw_parameters parameters;
    struct cw_plan *plan;
    char error[200] = "";
    *result = (struct bench_mcast_result){.median_ns = 0};
    int status = cw_problem_create(&request, &problem, error, sizeof(error));
    if (status != CW_OK) {
        return app_error_status(status, "no such broadcast", error);
    }
    const struct cw_algorithm *algorithm = algorithm_find(of, problem, name, &parameters);
    if (algorithm == NULL) {
        cw_problem_destroy(problem);
        return APP_EXIT_SUCCESS;
    }
    snprintf(result->name, sizeof(result->name), "%s", algorithm->name);
    parameters.eager_max_bytes = EAGER_MAX_BYTES;
    status = cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error));
    if (status != CW_OK) {
        cw_problem_destroy(problem);
        return app_error_status(status, "the plan cannot be built", error);
    }
    int code = plan_measure(of, plan, result);
    cw_plan_destroy(plan);
    return code;
}
