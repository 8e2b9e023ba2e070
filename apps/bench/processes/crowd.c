/* causeway bench crowd: what a put costs where processes outnumber cores. */
#include "apps/bench/processes/crowd.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/switch/config.h"
#include "dataplane/port/port.h"

enum { MTU_BYTES = 1500, MEMBERS_MAX = SWITCH_PORTS_MAX };

static_assert((int)MEMBERS_MAX <= (int)BENCH_GROUP_MEMBERS_MAX, "a port for each member");

struct crowd_options {
    uint64_t processes;
    uint64_t rounds;
    struct crowd_settings settings;
    bool no_raw;
    struct app_report report;
};

/* Of all rounds. */
struct crowd_totals {
    struct bench_series p50_ns;
    struct bench_series p90_ns;
    struct bench_series p99_ns;
    struct bench_series raw_p50_ns;
    struct bench_series raw_p99_ns;
    struct bench_series puts_per_s;
    struct bench_series cpu_share; /* of all processes and the switch, in cores */
    struct bench_series switch_share;
    struct bench_series other_share; /* of what else ran on the machine */
    uint64_t max_ns;
    uint64_t raw_max_ns;
    uint64_t raw_lost;
    uint64_t puts;
    uint64_t data_packets;
    uint64_t retransmitted;
    uint64_t duplicates;
    uint64_t probes;
    uint64_t acknowledgements;
    uint64_t sleeps;
    uint64_t fallback_turns;
};

/* ---- one round ---- */

/* What one process counted as sent the other must have counted as received, and nothing else. */
static int check_counts(const struct bench_group *group)
{
    for (uint32_t from = 0; from < group->config.count; from++) {
        const struct crowd_result *sender = bench_group_result(group, from);
        for (uint32_t to = 0; to < group->config.count; to++) {
            const struct crowd_result *receiver = bench_group_result(group, to);
            for (uint32_t kind = 0; kind < CROWD_KINDS; kind++) {
                if (sender->sent[to][kind] != receiver->received[from][kind]) {
                    char where[128];
                    snprintf(where, sizeof(where), "process %u put %llu times, process %u was notified %llu times",
                             from, (unsigned long long)sender->sent[to][kind], to,
                             (unsigned long long)receiver->received[from][kind]);
                    app_error("puts are lost or doubled", where, "this is a bug: please report it");
                    return APP_EXIT_FAILURE;
                }
            }
        }
    }
    return APP_EXIT_SUCCESS;
}

static void add_up(struct crowd_totals *totals, const struct bench_group *group, uint64_t switch_ns,
                   uint64_t machine_ns)
{
    static struct bench_histogram latency;
    static struct bench_histogram raw;
    uint64_t cpu_ns = switch_ns;
    uint64_t elapsed_ns = 0;
    uint64_t puts = 0;
    memset(&latency, 0, sizeof(latency));
    memset(&raw, 0, sizeof(raw));
    for (uint32_t i = 0; i < group->config.count; i++) {
        const struct crowd_result *result = bench_group_result(group, i);
        bench_histogram_merge(&latency, &result->latency);
        bench_histogram_merge(&raw, &result->raw_latency);
        for (uint32_t j = 0; j < group->config.count; j++) {
            puts += result->received[j][CROWD_QUESTION] + result->received[j][CROWD_ANSWER];
        }
        elapsed_ns = result->elapsed_ns > elapsed_ns ? result->elapsed_ns : elapsed_ns;
        cpu_ns += result->cpu_ns;
        totals->raw_lost += result->raw_lost;
        totals->data_packets += result->data_packets;
        totals->retransmitted += result->retransmitted;
        totals->duplicates += result->duplicates;
        totals->probes += result->probes;
        totals->acknowledgements += result->acknowledgements;
        totals->sleeps += result->sleeps;
        totals->fallback_turns += result->fallback_turns;
    }
    totals->puts += puts;
    totals->max_ns = latency.max_ns > totals->max_ns ? latency.max_ns : totals->max_ns;
    totals->raw_max_ns = raw.max_ns > totals->raw_max_ns ? raw.max_ns : totals->raw_max_ns;
    bench_series_add(&totals->p50_ns, (double)bench_histogram_percentile(&latency, 0.5));
    bench_series_add(&totals->p90_ns, (double)bench_histogram_percentile(&latency, 0.9));
    bench_series_add(&totals->p99_ns, (double)bench_histogram_percentile(&latency, 0.99));
    bench_series_add(&totals->raw_p50_ns, (double)bench_histogram_percentile(&raw, 0.5));
    bench_series_add(&totals->raw_p99_ns, (double)bench_histogram_percentile(&raw, 0.99));
    bench_series_add(&totals->puts_per_s, (double)puts * 1e9 / (double)elapsed_ns);
    bench_series_add(&totals->cpu_share, (double)cpu_ns / (double)elapsed_ns);
    bench_series_add(&totals->switch_share, (double)switch_ns / (double)elapsed_ns);
    bench_series_add(&totals->other_share,
                     machine_ns > cpu_ns ? (double)(machine_ns - cpu_ns) / (double)elapsed_ns : 0);
}

static int run_group(const struct crowd_options *options, struct bench_fabric *fabric, struct crowd_totals *totals)
{
    struct bench_group group;
    struct bench_group_config config = {
        .count = (uint32_t)options->processes,
        .doorbell = true,
        .region_bytes = crowd_region_bytes(&options->settings, (uint32_t)options->processes),
        .result_bytes = sizeof(struct crowd_result),
        .limit_ns = BENCH_HANG_NS + 2 * options->settings.duration_ns,
        .settings = &options->settings,
        .reference = options->no_raw ? NULL : crowd_run_raw,
        .run = crowd_run,
    };
    int code = bench_group_start(&group, fabric, &config);
    code = code == APP_EXIT_SUCCESS ? bench_group_await(&group, BENCH_STEP_CONNECTED) : code;
    uint64_t machine_before_ns = bench_machine_cpu_ns();
    uint64_t before_ns = bench_process_cpu_ns(fabric->switch_process);
    code = code == APP_EXIT_SUCCESS ? bench_group_await(&group, BENCH_STEP_TRAFFIC) : code;
    uint64_t after_ns = bench_process_cpu_ns(fabric->switch_process);
    uint64_t machine_after_ns = bench_machine_cpu_ns();
    code = code == APP_EXIT_SUCCESS ? bench_group_finish(&group) : code;
    code = code == APP_EXIT_SUCCESS ? check_counts(&group) : code;
    if (code == APP_EXIT_SUCCESS) {
        add_up(totals, &group, after_ns - before_ns, machine_after_ns - machine_before_ns);
    }
    bench_group_free(&group);
    return code;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

static void crowd_report(struct app_report *report, const struct crowd_options *options,
                         const struct crowd_totals *totals)
{
    uint64_t sent = totals->data_packets + totals->retransmitted;
    double p50_ns = bench_series_median(totals->p50_ns), raw_p50_ns = bench_series_median(totals->raw_p50_ns);
    bool raw = !options->no_raw;
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "crowd"),
        app_count("processes", "processes", options->processes),
        app_count("cores", "cores", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN)),
        app_count("size_bytes", "bytes of a put", options->settings.size_bytes),
        app_count("gap_ns", NULL, options->settings.gap_ns),
        app_count("duration_ns", NULL, options->settings.duration_ns),
        app_count("rounds", "rounds", options->rounds),
        app_number("latency_p50_ns", "one way: p50, us", 1, 1e-3, p50_ns),
        app_number("latency_p90_ns", "... p90, us", 1, 1e-3, bench_series_median(totals->p90_ns)),
        app_number("latency_p99_ns", "... p99, us", 1, 1e-3, bench_series_median(totals->p99_ns)),
        app_scaled("latency_max_ns", "... longest, us", 1, 1e-3, totals->max_ns),
        app_number("rate_puts_per_s", "puts/s", 0, 1, bench_series_median(totals->puts_per_s)),
        app_count("puts_verified", "puts, every one verified", totals->puts),
        app_count("data_packets", "data packets", sent),
        app_count("retransmitted_packets", "... sent again", totals->retransmitted),
        app_count("spurious_packets", "... of them needlessly", totals->duplicates),
        app_number("ratio_retransmitted", "... sent again, %", 3, 100, share(totals->retransmitted, sent)),
        app_number("ratio_spurious", "... needlessly, %", 3, 100, share(totals->duplicates, sent)),
        app_count("probes", "probes", totals->probes),
        app_count("acknowledgements", "acknowledgements", totals->acknowledgements),
        app_count("sleeps", "sleeps", totals->sleeps),
        app_count("fallback_turns", "fallback turns", totals->fallback_turns),
        app_number("ratio_cores", "cores taken", 2, 1, bench_series_median(totals->cpu_share)),
        app_number("ratio_cores_switch", "... by the switch", 2, 1, bench_series_median(totals->switch_share)),
        app_number("ratio_cores_others", "... by others on this machine", 2, 1,
                   bench_series_median(totals->other_share)),
        app_when(raw, app_number("raw_latency_p50_ns", "bare frames: p50, us", 1, 1e-3, raw_p50_ns)),
        app_when(raw,
                 app_number("raw_latency_p99_ns", "... p99, us", 1, 1e-3, bench_series_median(totals->raw_p99_ns))),
        app_when(raw, app_scaled("raw_latency_max_ns", "... longest, us", 1, 1e-3, totals->raw_max_ns)),
        app_when(raw, app_count("raw_lost_frames", "... lost", totals->raw_lost)),
        app_when(raw, app_number("ratio_latency", "one way over bare frames, p50", 2, 1, p50_ns / raw_p50_ns)),
    };
    APP_REPORT(report, cells);
}

static const char usage[] =
    "bench crowd [OPTION...]\n\n"
    "Latency of puts between processes that outnumber the cores, through a `causeway switch` that shares the cores "
    "with\n"
    "them. Each process puts into another one, chosen at random, which answers at once with a put; then the next one "
    "is\n"
    "chosen. Nobody is pinned; who has nothing to do waits as the loop sees fit. Latency is one way, from "
    "the call\n"
    "that posts to the return of the call that waits for events; all processes read one clock. Every put is checked:\n"
    "exactly once, in the order of its lane, with its bytes. Medians of the rounds; counts are of all rounds "
    "together.\n"
    "Raw: bare frames without any protocol, in the same pattern between the same processes.";

int bench_crowd(int argc, char **argv)
{
    struct crowd_options options = {.processes = 8,
                                    .rounds = 1,
                                    .report = {.form = APP_REPORT_RECORD},
                                    .settings = {.size_bytes = 8, .duration_ns = 3000000000ull}};
    const struct app_option table[] = {
        OPTION_COUNT("processes", "all of which talk to all (8)", &options.processes, 2, MEMBERS_MAX),
        OPTION_BYTES("size", "of each put (8)", &options.settings.size_bytes, CROWD_SIZE_MIN, 65536),
        OPTION_COUNT("rounds", "each with new processes (1)", &options.rounds, 1, BENCH_ROUNDS_MAX),
        OPTION_TIME("duration", "of each measurement; its first tenth gives no latencies (3s)",
                    &options.settings.duration_ns, 1000000, 600000000000ull),
        OPTION_TIME("gap", "between an answer and the next put of a process (0)", &options.settings.gap_ns, 0,
                    10000000000ull),
        OPTION_FLAG("no-raw", "without the bare frames", &options.no_raw),
        OPTION_JSON("", &options.report.json),
        {0},
    };
    int code = APP_EXIT_SUCCESS;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    struct crowd_totals *totals = calloc(1, sizeof(*totals));
    if (totals == NULL) {
        app_error("no memory for the results", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    for (uint64_t round = 0; round < options.rounds && code == APP_EXIT_SUCCESS; round++) {
        struct bench_fabric fabric;
        code = bench_fabric_create(&fabric, BENCH_FABRIC_SWITCH, (uint32_t)options.processes, MTU_BYTES);
        code = code == APP_EXIT_SUCCESS ? run_group(&options, &fabric, totals) : code;
        bench_fabric_destroy(&fabric);
    }
    if (code == APP_EXIT_SUCCESS) {
        crowd_report(&options.report, &options, totals);
    }
    free(totals);
    return code;
}
