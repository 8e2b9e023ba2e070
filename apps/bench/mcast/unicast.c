/* The other side of bench mcast: the same by puts from one to one, as collectives/ builds them, on hosts of the same
 * kind. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/mcast/mcast.h"
#include "apps/cli/cli.h"
#include "apps/plan/puts.h"
#include "collectives/algorithms/build.h"
#include "collectives/choose/choose.h"
#include "dataplane/fabric/link.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"
#include "mcast/limits.h"

enum {
    EAGER_MAX_BYTES = 4096,
    FRAME_OVERHEAD_BYTES = CW_WIRE_OVERHEAD_BYTES + sizeof(struct cw_wire_part) + CW_ETHERNET_OVERHEAD_BYTES,
    FRAME_DATA_BYTES =
        1500 + 14 - CW_WIRE_OVERHEAD_BYTES - sizeof(struct cw_wire_part), /* with the MTU of a simulated host */
};
#define OVERHEAD_NS 500.0 /* of a message at either side, for the choice */
#define LIMIT_NS    1000000000000ull

/* What a message takes of a link: its frames with all that is around the data. */
static struct cw_plogp path_of(const struct bench_mcast_case *of)
{
    struct cw_plogp path = {.latency_ns = (double)of->delay_ns, .count = 3};
    for (uint32_t frames = 0; frames < path.count; frames++) {
        uint64_t bytes = frames * (uint64_t)FRAME_DATA_BYTES;
        uint64_t wire_bytes = bytes + (frames > 0 ? frames : 1) * (uint64_t)FRAME_OVERHEAD_BYTES;
        path.points[frames] = (struct cw_plogp_point){
            .bytes = bytes,
            .gap_ns = OVERHEAD_NS + (double)wire_bytes * 8e9 / (double)of->rate_bps,
            .send_ns = OVERHEAD_NS,
            .receive_ns = OVERHEAD_NS,
        };
    }
    return path;
}

/* Which algorithm, with which parameters; NULL: none fits. */
static const struct cw_algorithm *algorithm_find(const struct bench_mcast_case *of, const struct cw_problem *problem,
                                                 const char *name, struct cw_parameters *parameters)
{
    static struct cw_choice choice;
    char reason[200];
    struct cw_plogp link = path_of(of);
    struct cw_network network = {
        .paths = {link, link},
        .ports = 1,
        .wan_bytes_per_ns = (double)of->uplink_rate_bps / 8e9,
        .copy_ns_per_byte = 0.05,
        .reduce_ns_per_byte = 0.1,
        .contention = 1,
    };
    struct cw_choose_request request = {
        .problem = problem, .network = &network, .eager_max_bytes = EAGER_MAX_BYTES, .multicast = false};
    if (cw_choose(&request, &choice) != CW_OK) {
        return NULL;
    }
    for (uint32_t i = 0; i < choice.count; i++) {
        const struct cw_candidate *candidate = &choice.candidates[i];
        if (name == NULL || strcmp(candidate->algorithm->name, name) == 0) {
            *parameters = candidate->parameters;
            parameters->concurrency = name != NULL ? of->members : parameters->concurrency;
            return cw_algorithm_fits(candidate->algorithm, problem, reason, sizeof(reason)) == CW_OK
                       ? candidate->algorithm
                       : NULL;
        }
    }
    return NULL;
}

int bench_mcast_plan(const struct bench_mcast_case *of, const struct cw_plan *plan, struct bench_mcast_result *result)
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
    options.switches = of->switches;
    options.uplink_rate_bps = of->uplink_rate_bps > 0 ? of->uplink_rate_bps : of->rate_bps;
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
    result->handled = (double)report.handled / (double)of->runs;
    result->handled_busiest = (double)report.handled_most / (double)of->runs;
    bench_mcast_times(sorted, of->runs, result);
    return APP_EXIT_SUCCESS;
}

int bench_mcast_unicast(const struct bench_mcast_case *of, const char *name, struct bench_mcast_result *result)
{
    static uint32_t cluster_of[CW_MCAST_MEMBERS_MAX];
    static uint64_t counts[CW_MCAST_MEMBERS_MAX];
    uint32_t switches = of->switches > 1 ? of->switches : 1;
    for (uint32_t rank = 0; rank < of->members; rank++) {
        cluster_of[rank] = (uint32_t)((uint64_t)rank * switches / of->members);
        counts[rank] = 0;
    }
    for (uint32_t i = 0; i < of->to; i++) {
        counts[bench_mcast_receiver(of, i)] = of->bytes;
    }
    struct cw_problem_request request = {
        .collective = of->collective,
        .ranks = of->members,
        .element_bytes = 1,
        .count = of->to > 0 ? 0 : of->bytes,
        .counts = of->to > 0 ? counts : NULL,
        .cluster_count = switches,
        .cluster_of = switches > 1 ? cluster_of : NULL,
    };
    struct cw_problem *problem = NULL;
    struct cw_parameters parameters;
    struct cw_plan *plan;
    char error[200] = "";
    *result = (struct bench_mcast_result){.median_ns = 0};
    int status = cw_problem_create(&request, &problem, error, sizeof(error));
    if (status != CW_OK) {
        return app_error_status(status, "no such problem", error);
    }
    const struct cw_algorithm *algorithm = algorithm_find(of, problem, name, &parameters);
    if (algorithm == NULL) {
        cw_problem_destroy(problem);
        return APP_EXIT_SUCCESS;
    }
    bool is_at_once = name != NULL && (algorithm->takes & CW_TAKES_CONCURRENCY) != 0;
    snprintf(result->name, sizeof(result->name), "%s%s", algorithm->name, is_at_once ? ", at once" : "");
    parameters.eager_max_bytes = EAGER_MAX_BYTES;
    status = cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error));
    if (status != CW_OK) {
        cw_problem_destroy(problem);
        return app_error_status(status, "the plan cannot be built", error);
    }
    int code = bench_mcast_plan(of, plan, result);
    cw_plan_destroy(plan);
    return code;
}
