/* One point: an algorithm is chosen, its schedules are built, and run in virtual time. */
#include "apps/bench/collectives/scale.h"

#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/collectives/wan.h"
#include "apps/cli/cli.h"
#include "collectives/algorithms/build.h"
#include "collectives/choose/choose.h"
#include "collectives/execute/transport_puts.h"
#include "dataplane/base/clock.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"

enum {
    LIMIT_S = 600,     /* of virtual time */
    CLUSTER_LEAST = 4, /* ranks */
    FRAME_BYTES = 90,  /* of the shortest message on the line, about: headers, preamble, gap */
    SLOTS_KEPT_MAX = 512,
    RUNS_MAX = 20,
};

void bench_scale_case_init(struct bench_scale_case *of)
{
    *of = (struct bench_scale_case){
        .clusters_max = 16,
        .sessions_max = 128,
        .pair_bytes = 64,
        .bytes = 1 << 20,
        .rate_bps = 1000000000,
        .delay_ns = 20000,
        .wan_rate_bps = 10000000000,
        .wan_delay_ns = 10000000,
        .wan = PLAN_PUTS_WAN_KNOWN,
        .runs = 1,
        .seed = 1,
    };
}

uint32_t bench_scale_clusters(const struct bench_scale_case *of, uint32_t ranks)
{
    uint32_t clusters = ranks / CLUSTER_LEAST;
    clusters = clusters < of->clusters_max ? clusters : of->clusters_max;
    return clusters > 0 ? clusters : 1;
}

double bench_scale_exponent(double x0, double y0, double x1, double y1)
{
    bool told = x0 > 0 && y0 > 0 && x1 > x0 && y1 > 0;
    return told ? log(y1 / y0) / log(x1 / x0) : 0;
}

/* ---- choosing ---- */

/* A path on which only the line costs anything: time in processors is none in the simulator. */
static struct cw_plogp path_of(const struct bench_scale_case *of, double latency_ns)
{
    double message_ns = FRAME_BYTES * 8e9 / (double)of->rate_bps;
    struct cw_plogp path = cw_plogp_linear(latency_ns, message_ns, bench_wan_payload_bps(of->rate_bps) / 8e9);
    for (uint32_t i = 0; i < path.count; i++) {
        path.points[i].send_ns = path.points[i].receive_ns = 0;
    }
    return path;
}

static struct cw_network network_of(const struct bench_scale_case *of)
{
    return (struct cw_network){
        .paths = {path_of(of, (double)of->delay_ns), path_of(of, (double)(of->delay_ns + of->wan_delay_ns))},
        .ports = 1,
        .wan_bytes_per_ns = bench_wan_payload_bps(of->wan_rate_bps) / 8e9,
        .wan_messages = CW_CREDIT_FAR_MAX,
        .contention = 0.4,
    };
}

static struct cw_problem *problem_make(const struct bench_scale_case *of, enum cw_collective collective, uint32_t ranks)
{
    char error[200];
    struct cw_problem *problem = NULL;
    uint32_t *cluster_of = calloc(ranks, sizeof(*cluster_of));
    uint32_t clusters = bench_scale_clusters(of, ranks);
    struct cw_problem_request request = {
        .collective = collective,
        .ranks = ranks,
        .element_bytes = 1,
        .count = collective == CW_ALLTOALL ? of->pair_bytes : of->bytes,
        .cluster_count = clusters,
        .cluster_of = clusters > 1 ? cluster_of : NULL,
    };
    for (uint32_t rank = 0; cluster_of != NULL && rank < ranks; rank++) {
        cluster_of[rank] = (uint32_t)((uint64_t)rank * clusters / ranks);
    }
    int status = cluster_of != NULL ? cw_problem_create(&request, &problem, error, sizeof(error)) : CW_ERROR_MEMORY;
    free(cluster_of);
    if (status != CW_OK) {
        app_error_status(status, "the problem cannot be made", cw_collective_name(collective));
    }
    return problem;
}

static bool wanted(const struct cw_candidate *candidate, const char *algorithm)
{
    if (algorithm != NULL && strcmp(algorithm, "flat") == 0) {
        return (candidate->algorithm->needs & CW_NEEDS_CLUSTERS) == 0;
    }
    return algorithm == NULL || strcmp(candidate->algorithm->name, algorithm) == 0;
}

#define BUFFER_BYTES_MAX (6ull << 30)

/* What one process can hold for all ranks: their buffers, and sessions, of which there would be a million by pairs.
 * Rank 0 stands for all. */
static bool has_room(const struct bench_scale_case *of, const struct cw_problem *problem,
                     const struct cw_candidate *candidate)
{
    struct cw_schedule schedule;
    char error[200];
    uint64_t sessions = 0;
    bool *named = calloc(problem->ranks, sizeof(*named));
    if (named == NULL || cw_schedule_build(problem, candidate->algorithm, &candidate->parameters, 0, &schedule, error,
                                           sizeof(error)) != CW_OK) {
        free(named);
        return false;
    }
    int status = cw_puts_transport_named(&schedule, problem->ranks, named);
    for (uint32_t rank = 0; rank < problem->ranks; rank++) {
        sessions += named[rank];
    }
    uint64_t bytes = schedule.scratch_bytes + cw_problem_buffer_bytes(problem, 0, CW_BUFFER_SEND) +
                     cw_problem_buffer_bytes(problem, 0, CW_BUFFER_RECEIVE);
    cw_schedule_dispose(&schedule);
    free(named);
    return status == CW_OK && sessions <= of->sessions_max && bytes <= BUFFER_BYTES_MAX / problem->ranks;
}

static int candidate_choose(const struct bench_scale_case *of, const struct cw_problem *problem, const char *algorithm,
                            struct cw_candidate *chosen)
{
    struct cw_network network = network_of(of);
    struct cw_choose_request request = {
        .problem = problem, .network = &network, .eager_max_bytes = BENCH_SCALE_EAGER_BYTES};
    struct cw_choice choice;
    int status = cw_choose(&request, &choice);
    if (status != CW_OK) {
        return app_error_status(status, "nothing can be chosen", cw_collective_name(problem->collective));
    }
    for (uint32_t i = 0; i < choice.count; i++) {
        bool named = algorithm != NULL && strcmp(algorithm, "flat") != 0;
        if (wanted(&choice.candidates[i], algorithm) && (named || has_room(of, problem, &choice.candidates[i]))) {
            *chosen = choice.candidates[i];
            return APP_EXIT_SUCCESS;
        }
    }
    app_error("the model has no price for it here, or it takes more than 6 GiB or --sessions",
              algorithm != NULL ? algorithm : cw_collective_name(problem->collective),
              "causeway plan list has the algorithms");
    return APP_EXIT_USAGE;
}

/* ---- measuring ---- */

/* The most that has been resident, since the last reset; 0: the kernel does not tell. */
static double resident_most_bytes(void)
{
    char line[128];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            kilobytes = strtod(line + 6, NULL);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kilobytes * 1024;
}

/* What earlier points have left is none of this one's. */
static void resident_reset(void)
{
    malloc_trim(0);
    FILE *file = fopen("/proc/self/clear_refs", "we");
    if (file != NULL) {
        fputs("5", file);
        fclose(file);
    }
}

static void options_fill(const struct bench_scale_case *of, uint64_t *times, struct plan_puts_options *options)
{
    plan_puts_options_init(options);
    options->seed = of->seed;
    options->runs = (uint32_t)of->runs + 1;
    options->together = true;
    options->times_ns = times;
    options->rate_bps = of->rate_bps;
    options->delay_ns = of->delay_ns;
    options->wan_rate_bps = of->wan_rate_bps;
    options->wan_delay_ns = of->wan_delay_ns;
    options->wan_loss = of->wan_loss;
    options->wan = of->wan;
    options->limit_ns = LIMIT_S * 1000000000ull;
    options->endpoint.pool_slot_bytes = BENCH_SCALE_EAGER_BYTES;
    options->slots_kept_max = SLOTS_KEPT_MAX;
}

static void point_fill(const struct bench_scale_case *of, const struct plan_puts_report *report, uint64_t *times,
                       struct bench_scale_point *point)
{
    double shares = (double)of->runs * point->ranks;
    double sorted[RUNS_MAX];
    for (uint64_t run = 0; run < of->runs; run++) {
        sorted[run] = (double)times[run + 1];
    }
    point->first_ns = (double)times[0];
    point->time_ns = cw_statistics_median(sorted, of->runs);
    point->packets = (double)report->counts.sent / shares;
    point->data = (double)report->counts.data / shares;
    point->retransmitted = (double)report->counts.retransmitted / shares;
    point->acknowledgements = (double)report->counts.acknowledgements / shares;
    point->packets_most = (double)report->counts_most.sent / (double)of->runs;
    point->wan_frames = (double)report->wan_frames / (double)of->runs;
    point->memory = report->memory;
    point->events = report->events;
}

static int plan_measure(const struct bench_scale_case *of, const struct cw_plan *plan, struct bench_scale_point *point)
{
    uint64_t times[RUNS_MAX + 1] = {0};
    struct plan_puts_options options;
    struct plan_puts_report report;
    char error[4096];
    options_fill(of, times, &options);
    uint64_t start_ns = cw_clock_ns();
    if (plan_puts_run(plan, &options, &report, error, sizeof(error)) != 0) {
        app_error(error, plan->algorithm, "this is a bug, or memory is short");
        return APP_EXIT_FAILURE;
    }
    point->real_ns = (double)(cw_clock_ns() - start_ns);
    point->resident_bytes = resident_most_bytes() / point->ranks;
    point_fill(of, &report, times, point);
    return APP_EXIT_SUCCESS;
}

int bench_scale_run(const struct bench_scale_case *of, enum cw_collective collective, const char *algorithm,
                    uint32_t ranks, struct bench_scale_point *point)
{
    struct cw_candidate chosen;
    struct cw_plan *plan = NULL;
    char error[200] = "";
    struct cw_problem *problem = problem_make(of, collective, ranks);
    resident_reset();
    int code = problem != NULL ? candidate_choose(of, problem, algorithm, &chosen) : APP_EXIT_MACHINE;
    if (code == APP_EXIT_SUCCESS) {
        int status = cw_plan_build(problem, chosen.algorithm, &chosen.parameters, &plan, error, sizeof(error));
        code = status != CW_OK ? app_error_status(status, error, chosen.algorithm->name) : APP_EXIT_SUCCESS;
    }
    if (code != APP_EXIT_SUCCESS) {
        cw_problem_destroy(problem);
        return code;
    }
    *point = (struct bench_scale_point){
        .ranks = ranks,
        .clusters = problem->cluster_count,
        .senders = (chosen.algorithm->takes & CW_TAKES_SENDERS) != 0 ? chosen.parameters.senders : 0,
        .model_ns = chosen.time_ns,
    };
    snprintf(point->algorithm, sizeof(point->algorithm), "%s", chosen.algorithm->name);
    code = plan_measure(of, plan, point);
    cw_plan_destroy(plan);
    return code;
}
