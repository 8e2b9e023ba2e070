/* causeway bench switch: the limits of `causeway switch`, measured. */
#include "apps/bench/processes/switch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "dataplane/fabric/link.h"

#define GAP_MIN_NS 50000ull /* probes of delays: at most 20,000 a second */

enum { MTU_BYTES = 1500, MEMBERS = 4, SHORT_BYTES = 64, LONG_BYTES = 1500, OPTION_BYTES = 32, OPTIONS = 6 };

/* What is measured: as fast as it goes without shaping, delays at half of a rate, and the rate itself. */
enum kind { PASSES, DELAYS, RATES };

struct row {
    enum kind kind;
    uint32_t frame_bytes;
    bool all;
    uint64_t rate_bps;
    uint64_t delay_ns;
};

static const struct row rows[] = {
    {PASSES, SHORT_BYTES, false, 0, 0},
    {PASSES, LONG_BYTES, false, 0, 0},
    {PASSES, SHORT_BYTES, true, 0, 0},
    {PASSES, LONG_BYTES, true, 0, 0},
    {DELAYS, LONG_BYTES, false, 1000000000, 0},
    {DELAYS, LONG_BYTES, false, 100000000, 10000000},
    {DELAYS, LONG_BYTES, false, 1000000000, 10000000},
    {DELAYS, LONG_BYTES, false, 1000000000, 200000000},
    {DELAYS, SHORT_BYTES, false, 1000000000, 200000000},
    {RATES, LONG_BYTES, false, 10000000, 10000000},
    {RATES, LONG_BYTES, false, 100000000, 10000000},
    {RATES, LONG_BYTES, false, 1000000000, 10000000},
    {RATES, LONG_BYTES, false, 1000000000, 200000000},
    {RATES, SHORT_BYTES, false, 100000000, 10000000},
    {RATES, SHORT_BYTES, false, 1000000000, 200000000},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Of one row. */
struct figures {
    double frames_per_s;
    double rate_bps;   /* measured, with the overhead of Ethernet */
    double error;      /* of the rate, a share */
    double late_ns[3]; /* median, 99th and 99.9th percentile */
    double jitter_ns;
    uint64_t received;
    uint64_t early;
    double switch_share; /* of a core */
};

struct options {
    uint64_t duration_ns;
    struct app_report report;
};

/* ---- one row ---- */

static uint64_t line_bits(const struct row *row)
{
    return ((uint64_t)row->frame_bytes + CW_ETHERNET_OVERHEAD_BYTES) * 8;
}

static void settings_make(const struct row *row, const struct options *options, struct switch_bench_settings *settings)
{
    *settings = (struct switch_bench_settings){.frame_bytes = row->frame_bytes,
                                               .all = row->all,
                                               .duration_ns = options->duration_ns,
                                               .expected_ns = row->delay_ns};
    if (row->rate_bps != 0) {
        settings->expected_ns += line_bits(row) * 1000000000 / row->rate_bps;
    }
    if (row->kind == DELAYS) {
        uint64_t half_ns = 2 * line_bits(row) * 1000000000 / row->rate_bps;
        settings->gap_ns = half_ns > GAP_MIN_NS ? half_ns : GAP_MIN_NS;
    }
}

static void figures_read(const struct row *row, const struct bench_group *group, struct figures *figures)
{
    uint64_t jitter_ns = 0;
    for (uint32_t i = 0; i < group->config.count; i++) {
        const struct switch_bench_result *result = bench_group_result(group, i);
        for (int k = 0; k < 3; k++) { /* one member receives frames with a gap */
            figures->late_ns[k] += result->late_ns[k];
        }
        figures->received += result->received;
        figures->early += result->early;
        jitter_ns += result->jitter_ns;
        if (result->last_ns > result->first_ns) {
            figures->frames_per_s += (double)result->between * 1e9 / (double)(result->last_ns - result->first_ns);
        }
    }
    if (row->rate_bps ==
        0) { /* a receiver that was off its core for some of the time has seen fewer, not a shorter time */
        const struct switch_bench_settings *settings = group->config.settings;
        uint64_t time_ns = settings->duration_ns - settings->duration_ns / SWITCH_BENCH_WARMUP_SHARE;
        figures->frames_per_s = (double)figures->received * 1e9 / (double)time_ns;
    }
    figures->rate_bps = figures->frames_per_s * (double)line_bits(row);
    figures->error = row->rate_bps != 0 ? figures->rate_bps / (double)row->rate_bps - 1 : 0;
    figures->jitter_ns = figures->received > 1 ? (double)jitter_ns / (double)(figures->received - 1) : 0;
}

/* The options of the switch for a row, up to OPTIONS and a NULL. */
struct texts {
    char rate[OPTION_BYTES];
    char delay[OPTION_BYTES];
    const char *list[OPTIONS + 1];
};

static void texts_make(const struct row *row, struct texts *texts)
{
    snprintf(texts->rate, sizeof(texts->rate), "%" PRIu64, row->rate_bps);
    snprintf(texts->delay, sizeof(texts->delay), "%" PRIu64 "ns", row->delay_ns);
    const char *const shaped[] = {"--rate", texts->rate, "--delay", texts->delay, "--queue", "256KB"};
    size_t count = row->kind == RATES ? 6 : row->kind == DELAYS ? 4 : 0;
    memcpy(texts->list, shaped, count * sizeof(shaped[0]));
}

static int row_run(const struct row *row, const struct options *options, struct figures *figures)
{
    struct texts texts = {.list = {NULL}};
    struct switch_bench_settings settings;
    struct bench_fabric fabric;
    struct bench_group group = {.running = 0};
    settings_make(row, options, &settings);
    const struct bench_group_config config = {
        .count = row->all ? (uint32_t)MEMBERS : 2,
        .doorbell = true,
        .result_bytes = sizeof(struct switch_bench_result),
        .limit_ns = BENCH_HANG_NS + 2 * options->duration_ns,
        .settings = &settings,
        .reference = switch_bench_member,
    };
    *figures = (struct figures){.received = 0};
    texts_make(row, &texts);
    int code = bench_fabric_switch(&fabric, config.count, MTU_BYTES, texts.list);
    code = code == APP_EXIT_SUCCESS ? bench_group_start(&group, &fabric, &config) : code;
    code = code == APP_EXIT_SUCCESS ? bench_group_await(&group, BENCH_STEP_REFERENCE) : code;
    uint64_t before_ns = code == APP_EXIT_SUCCESS ? bench_process_cpu_ns(fabric.switch_process) : 0;
    uint64_t start_ns = bench_member_clock_ns();
    code = code == APP_EXIT_SUCCESS ? bench_group_await(&group, BENCH_STEP_LEAVE) : code;
    if (code == APP_EXIT_SUCCESS) {
        figures->switch_share = (double)(bench_process_cpu_ns(fabric.switch_process) - before_ns) /
                                (double)(bench_member_clock_ns() - start_ns);
        figures_read(row, &group, figures);
    }
    code = code == APP_EXIT_SUCCESS ? bench_group_finish(&group) : code;
    bench_group_free(&group);
    bench_fabric_destroy(&fabric);
    return code;
}

static void row_report(struct app_report *report, const struct row *row, const struct figures *figures)
{
    static const char *const kinds[] = {[PASSES] = "passes", [DELAYS] = "delays", [RATES] = "rates"};
    bool delays = row->kind == DELAYS;
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "switch"),
        app_text("kind", "kind", 7, kinds[row->kind]),
        app_count("frame_bytes", "bytes", row->frame_bytes),
        app_count("senders", "senders", row->all ? MEMBERS : 1),
        app_scaled("rate_bps", "Mb/s", 1, 1e-6, row->rate_bps),
        app_scaled("delay_ns", "delay/ms", 1, 1e-6, row->delay_ns),
        app_count("received_frames", "frames", figures->received),
        app_number("frames_per_s", "frames/s", 0, 1, figures->frames_per_s),
        app_number("seen_rate_bps", "seen Mb/s", 3, 1e-6, figures->rate_bps),
        app_when(row->kind == RATES, app_number("ratio_rate_error", "off by %", 3, 100, figures->error)),
        app_when(delays, app_number("added_p50_ns", "late: p50/us", 1, 1e-3, figures->late_ns[0])),
        app_when(delays, app_number("added_p99_ns", "p99/us", 1, 1e-3, figures->late_ns[1])),
        app_when(delays, app_number("added_p999_ns", "p99.9/us", 1, 1e-3, figures->late_ns[2])),
        app_when(delays, app_number("jitter_ns", "jitter/us", 1, 1e-3, figures->jitter_ns)),
        app_when(delays, app_count("early_frames", "early", figures->early)),
        app_number("ratio_switch_core", "switch: % of a core", 0, 100, figures->switch_share),
    };
    APP_REPORT(report, cells);
}

static const char usage[] = "bench switch [OPTION...]\n\n"
                            "What causeway switch can do on this machine: frames a second, how late it lets frames "
                            "arrive beyond the delay that\n"
                            "it emulates, how exact its rates are. Real processes on the real clock: nothing else "
                            "should be running.";

int bench_switch(int argc, char **argv)
{
    struct options options = {.duration_ns = 1000000000};
    const struct app_option table[] = {
        OPTION_TIME("duration", "of each measurement (1s)", &options.duration_ns, 10000000, 60000000000ull),
        OPTION_JSON(" a line", &options.report.json),
        {0},
    };
    struct figures figures;
    int code;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    for (int i = 0; i < ROWS; i++) {
        code = row_run(&rows[i], &options, &figures);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        row_report(&options.report, &rows[i], &figures);
    }
    return APP_EXIT_SUCCESS;
}
