/* causeway bench crowd: what a put costs where processes outnumber cores. */
#include "apps/bench/crowd.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/switch/config.h"
#include "dataplane/port/port.h"

#define LIMIT_NS 60000000000ull /* for everything but the measurement itself */

enum { MTU_BYTES = 1500, MEMBERS_MAX = SWITCH_PORTS_MAX };

static_assert((int)MEMBERS_MAX <= (int)BENCH_GROUP_MEMBERS_MAX, "a port for each member");

struct crowd_options {
    uint64_t processes;
    uint64_t rounds;
    struct crowd_settings settings;
    bool no_raw;
    bool json;
};

/* One number in each round. */
struct crowd_series {
    double p50_ns[BENCH_ROUNDS_MAX];
    double p90_ns[BENCH_ROUNDS_MAX];
    double p99_ns[BENCH_ROUNDS_MAX];
    double raw_p50_ns[BENCH_ROUNDS_MAX];
    double raw_p99_ns[BENCH_ROUNDS_MAX];
    double puts_per_s[BENCH_ROUNDS_MAX];
    double cpu_share[BENCH_ROUNDS_MAX]; /* of all processes and the switch, in cores */
    double switch_share[BENCH_ROUNDS_MAX];
    double other_share[BENCH_ROUNDS_MAX]; /* of what else ran on the machine */
};

/* Of all rounds. */
struct crowd_totals {
    struct crowd_series series;
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

static void add_up(struct crowd_totals *totals, const struct bench_group *group, uint64_t round, uint64_t switch_ns,
                   uint64_t machine_ns)
{
    static struct bench_histogram latency;
    static struct bench_histogram raw;
    struct crowd_series *series = &totals->series;
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
    series->p50_ns[round] = (double)bench_histogram_percentile(&latency, 0.5);
    series->p90_ns[round] = (double)bench_histogram_percentile(&latency, 0.9);
    series->p99_ns[round] = (double)bench_histogram_percentile(&latency, 0.99);
    series->raw_p50_ns[round] = (double)bench_histogram_percentile(&raw, 0.5);
    series->raw_p99_ns[round] = (double)bench_histogram_percentile(&raw, 0.99);
    series->puts_per_s[round] = (double)puts * 1e9 / (double)elapsed_ns;
    series->cpu_share[round] = (double)cpu_ns / (double)elapsed_ns;
    series->switch_share[round] = (double)switch_ns / (double)elapsed_ns;
    series->other_share[round] = machine_ns > cpu_ns ? (double)(machine_ns - cpu_ns) / (double)elapsed_ns : 0;
}

static int run_group(const struct crowd_options *options, struct bench_fabric *fabric, uint64_t round,
                     struct crowd_totals *totals)
{
    struct bench_group group;
    struct bench_group_config config = {
        .count = (uint32_t)options->processes,
        .doorbell = true,
        .region_bytes = crowd_region_bytes(&options->settings, (uint32_t)options->processes),
        .result_bytes = sizeof(struct crowd_result),
        .limit_ns = LIMIT_NS + 2 * options->settings.duration_ns,
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
        add_up(totals, &group, round, after_ns - before_ns, machine_after_ns - machine_before_ns);
    }
    bench_group_free(&group);
    return code;
}

/* ---- results ---- */

static double middle(const double *numbers, uint64_t rounds)
{
    double copy[BENCH_ROUNDS_MAX];
    memcpy(copy, numbers, sizeof(copy));
    return bench_median(copy, rounds);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (double)part / (double)whole;
}

static void print_json(const struct crowd_options *options, const struct crowd_totals *totals)
{
    const struct crowd_series *series = &totals->series;
    uint64_t rounds = options->rounds;
    uint64_t sent = totals->data_packets + totals->retransmitted;
    json_t *line = app_json_new();
    app_json_text(line, "bench", "crowd");
    app_json_count(line, "processes", options->processes);
    app_json_count(line, "cores", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    app_json_count(line, "size_bytes", options->settings.size_bytes);
    app_json_count(line, "gap_ns", options->settings.gap_ns);
    app_json_count(line, "duration_ns", options->settings.duration_ns);
    app_json_count(line, "rounds", rounds);
    app_json_number(line, "latency_p50_ns", middle(series->p50_ns, rounds));
    app_json_number(line, "latency_p90_ns", middle(series->p90_ns, rounds));
    app_json_number(line, "latency_p99_ns", middle(series->p99_ns, rounds));
    app_json_count(line, "latency_max_ns", totals->max_ns);
    app_json_number(line, "rate_puts_per_s", middle(series->puts_per_s, rounds));
    app_json_count(line, "puts_verified", totals->puts);
    app_json_count(line, "data_packets", sent);
    app_json_count(line, "retransmitted_packets", totals->retransmitted);
    app_json_count(line, "spurious_packets", totals->duplicates);
    app_json_number(line, "ratio_retransmitted", share(totals->retransmitted, sent));
    app_json_number(line, "ratio_spurious", share(totals->duplicates, sent));
    app_json_count(line, "probes", totals->probes);
    app_json_count(line, "acknowledgements", totals->acknowledgements);
    app_json_count(line, "sleeps", totals->sleeps);
    app_json_count(line, "fallback_turns", totals->fallback_turns);
    app_json_number(line, "ratio_cores", middle(series->cpu_share, rounds));
    app_json_number(line, "ratio_cores_switch", middle(series->switch_share, rounds));
    app_json_number(line, "ratio_cores_others", middle(series->other_share, rounds));
    if (!options->no_raw) {
        app_json_number(line, "raw_latency_p50_ns", middle(series->raw_p50_ns, rounds));
        app_json_number(line, "raw_latency_p99_ns", middle(series->raw_p99_ns, rounds));
        app_json_count(line, "raw_latency_max_ns", totals->raw_max_ns);
        app_json_count(line, "raw_lost_frames", totals->raw_lost);
        app_json_number(line, "ratio_latency", middle(series->p50_ns, rounds) / middle(series->raw_p50_ns, rounds));
    }
    app_json_emit(line);
}

static void print_text(const struct crowd_options *options, const struct crowd_totals *totals)
{
    const struct crowd_series *series = &totals->series;
    uint64_t rounds = options->rounds;
    uint64_t sent = totals->data_packets + totals->retransmitted;
    printf("%llu processes on %ld cores through a switch, puts of %llu bytes, one way: p50 %.1f us, p90 %.1f us, "
           "p99 %.1f us, longest %.1f us\n",
           (unsigned long long)options->processes, sysconf(_SC_NPROCESSORS_ONLN),
           (unsigned long long)options->settings.size_bytes, middle(series->p50_ns, rounds) / 1e3,
           middle(series->p90_ns, rounds) / 1e3, middle(series->p99_ns, rounds) / 1e3, (double)totals->max_ns / 1e3);
    if (!options->no_raw) {
        printf("bare frames in the same pattern: p50 %.1f us, p99 %.1f us, longest %.1f us\n",
               middle(series->raw_p50_ns, rounds) / 1e3, middle(series->raw_p99_ns, rounds) / 1e3,
               (double)totals->raw_max_ns / 1e3);
    }
    printf("%.0f puts/s, %llu in all, every one verified; %llu data packets, %llu sent again, %llu of them needlessly "
           "(%.3f %%), %llu probes\n",
           middle(series->puts_per_s, rounds), (unsigned long long)totals->puts, (unsigned long long)sent,
           (unsigned long long)totals->retransmitted, (unsigned long long)totals->duplicates,
           100 * share(totals->duplicates, sent), (unsigned long long)totals->probes);
    printf("CPU: %.2f cores, %.2f of them the switch; others on this machine took %.2f\n",
           middle(series->cpu_share, rounds), middle(series->switch_share, rounds),
           middle(series->other_share, rounds));
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
    struct crowd_options options = {
        .processes = 8, .rounds = 1, .settings = {.size_bytes = 8, .duration_ns = 3000000000ull}};
    const struct app_option table[] = {
        {"processes", "N", "all of which talk to all (8)", APP_OPTION_COUNT, &options.processes, 2, MEMBERS_MAX, NULL},
        {"size", "BYTES", "of each put (8)", APP_OPTION_BYTES, &options.settings.size_bytes, CROWD_SIZE_MIN, 65536,
         NULL},
        {"rounds", "N", "each with new processes (1)", APP_OPTION_COUNT, &options.rounds, 1, BENCH_ROUNDS_MAX, NULL},
        {"duration", "TIME", "of each measurement; its first tenth gives no latencies (3s)", APP_OPTION_DURATION,
         &options.settings.duration_ns, 1000000, 600000000000ull, NULL},
        {"gap", "TIME", "between an answer and the next put of a process (0)", APP_OPTION_DURATION,
         &options.settings.gap_ns, 0, 10000000000ull, NULL},
        {"no-raw", NULL, "without the bare frames", APP_OPTION_FLAG, &options.no_raw, 0, 0, NULL},
        {"json", NULL, "one JSON object", APP_OPTION_FLAG, &options.json, 0, 0, NULL},
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
        code = code == APP_EXIT_SUCCESS ? run_group(&options, &fabric, round, totals) : code;
        bench_fabric_destroy(&fabric);
    }
    if (code == APP_EXIT_SUCCESS && options.json) {
        print_json(&options, totals);
    } else if (code == APP_EXIT_SUCCESS) {
        print_text(&options, totals);
    }
    free(totals);
    return code;
}
