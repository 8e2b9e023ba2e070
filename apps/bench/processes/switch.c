/* causeway bench switch: the limits of `causeway switch`, measured and told in words. */
#include "apps/bench/processes/switch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "dataplane/fabric/link.h"

#define GAP_MIN_NS 50000ull /* probes of delays: at most 20,000 a second */

#define HELD 0.01 /* a rate that is so exact counts as held */

enum { MTU_BYTES = 1500, MEMBERS = 4, SHORT_BYTES = 64, LONG_BYTES = 1500, OPTION_BYTES = 32, OPTIONS = 6 };

/* What is measured: as fast as it goes without shaping, delays at half of a rate, the rate itself, and samples of
 * statistics every millisecond as fast as it goes. */
enum kind { PASSES, DELAYS, RATES, SAMPLES };

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
    {SAMPLES, SHORT_BYTES, false, 0, 0},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Of one row. */
struct figures {
    double frames_per_s;
    double rate_bps; /* as seen, with what Ethernet adds */
    double error;    /* of the rate, a share */
    double p50_ns;
    double p99_ns;
    double p999_ns;
    double jitter_ns;
    uint64_t received;
    uint64_t early;
    double switch_share; /* of a core */
    uint64_t samples;
    double interval_p50_ns; /* between two samples */
    double interval_p99_ns;
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
    static struct bench_histogram late; /* as large as a page of the stack should not be */
    uint64_t jitter_ns = 0;
    late = (struct bench_histogram){.count = 0};
    for (uint32_t i = 0; i < group->config.count; i++) {
        const struct switch_bench_result *result = bench_group_result(group, i);
        bench_histogram_merge(&late, &result->late);
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
    figures->p50_ns = (double)bench_histogram_percentile(&late, 0.5);
    figures->p99_ns = (double)bench_histogram_percentile(&late, 0.99);
    figures->p999_ns = (double)bench_histogram_percentile(&late, 0.999);
    figures->jitter_ns = figures->received > 1 ? (double)jitter_ns / (double)(figures->received - 1) : 0;
}

/* How far apart the samples in a file of statistics are: those of its first line. */
static void samples_read(const char *path, struct figures *figures)
{
    static struct bench_histogram intervals;
    char line[512], name[64] = "";
    uint64_t before_ns = 0, time_ns;
    FILE *file = fopen(path, "re");
    intervals = (struct bench_histogram){.count = 0};
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char own[64];
        if (sscanf(line, "%" SCNu64 ",%63[^,]", &time_ns, own) != 2 || (name[0] != '\0' && strcmp(name, own) != 0)) {
            continue;
        }
        if (name[0] != '\0') {
            bench_histogram_add(&intervals, time_ns - before_ns);
        }
        memcpy(name, own, sizeof(name));
        before_ns = time_ns;
    }
    if (file != NULL) {
        fclose(file);
    }
    figures->samples = intervals.count;
    figures->interval_p50_ns = (double)bench_histogram_percentile(&intervals, 0.5);
    figures->interval_p99_ns = (double)bench_histogram_percentile(&intervals, 0.99);
}

/* The options of the switch for a row, up to OPTIONS and a NULL. */
struct texts {
    char rate[OPTION_BYTES];
    char delay[OPTION_BYTES];
    char stats[OPTION_BYTES];
    const char *list[OPTIONS + 1];
};

static int texts_make(const struct row *row, struct texts *texts)
{
    snprintf(texts->rate, sizeof(texts->rate), "%" PRIu64, row->rate_bps);
    snprintf(texts->delay, sizeof(texts->delay), "%" PRIu64 "ns", row->delay_ns);
    snprintf(texts->stats, sizeof(texts->stats), "/tmp/causeway-bench-XXXXXX");
    const char *const shaped[] = {"--rate", texts->rate, "--delay", texts->delay, "--queue", "256KB"};
    const char *const sampled[] = {"--stats", texts->stats, "--stats-interval", "1ms"};
    size_t count = row->kind == RATES ? 6 : row->kind == DELAYS ? 4 : 0;
    memcpy(texts->list, shaped, count * sizeof(shaped[0]));
    if (row->kind == SAMPLES) {
        int file = mkstemp(texts->stats);
        if (file < 0) {
            app_error("no temporary file", texts->stats, NULL);
            return APP_EXIT_MACHINE;
        }
        close(file);
        memcpy(texts->list, sampled, sizeof(sampled));
    }
    return APP_EXIT_SUCCESS;
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
    int code = texts_make(row, &texts);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    code = bench_fabric_switch(&fabric, config.count, MTU_BYTES, texts.list);
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
    bench_fabric_destroy(&fabric); /* the switch has ended, and written all */
    if (row->kind == SAMPLES) {
        samples_read(texts.stats, figures);
        unlink(texts.stats);
    }
    return code;
}

static void row_report(struct app_report *report, const struct row *row, const struct figures *figures)
{
    static const char *const kinds[] = {
        [PASSES] = "passes", [DELAYS] = "delays", [RATES] = "rates", [SAMPLES] = "samples"};
    bool delays = row->kind == DELAYS, samples = row->kind == SAMPLES;
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
        app_when(delays, app_number("added_p50_ns", "late: p50/us", 1, 1e-3, figures->p50_ns)),
        app_when(delays, app_number("added_p99_ns", "p99/us", 1, 1e-3, figures->p99_ns)),
        app_when(delays, app_number("added_p999_ns", "p99.9/us", 1, 1e-3, figures->p999_ns)),
        app_when(delays, app_number("jitter_ns", "jitter/us", 1, 1e-3, figures->jitter_ns)),
        app_when(delays, app_count("early_frames", "early", figures->early)),
        app_when(samples, app_count("samples", "samples", figures->samples)),
        app_when(samples, app_number("interval_p50_ns", "apart p50/ms", 3, 1e-6, figures->interval_p50_ns)),
        app_when(samples, app_number("interval_p99_ns", "p99/ms", 3, 1e-6, figures->interval_p99_ns)),
        app_number("ratio_switch_core", "switch: % of a core", 0, 100, figures->switch_share),
    };
    APP_REPORT(report, cells);
}

/* ---- in words ---- */

/* The limits that follow from all rows. */
struct limits {
    double short_per_s; /* one client to another, the fewer of one and all */
    double long_bps;
    double p50_ns; /* the worst of all delays */
    double p99_ns;
    double p999_ns;
    double error;      /* the worst of the rates that are exact to a hundredth, */
    uint64_t held_bps; /* and the highest of these */
    uint64_t early;
};

static double least(double a, double b)
{
    return a > 0 && a < b ? a : b;
}

static double most(double a, double b)
{
    return a > b ? a : b;
}

static void limits_find(const struct figures figures[ROWS], struct limits *limits)
{
    for (int i = 0; i < ROWS; i++) {
        const struct figures *own = &figures[i];
        double error = own->error < 0 ? -own->error : own->error;
        if (rows[i].kind == PASSES && rows[i].frame_bytes == SHORT_BYTES) {
            limits->short_per_s = least(limits->short_per_s, own->frames_per_s);
        } else if (rows[i].kind == PASSES) {
            limits->long_bps = least(limits->long_bps, own->rate_bps);
        } else if (rows[i].kind == DELAYS) {
            limits->p50_ns = most(limits->p50_ns, own->p50_ns);
            limits->p99_ns = most(limits->p99_ns, own->p99_ns);
            limits->p999_ns = most(limits->p999_ns, own->p999_ns);
            limits->early += own->early;
        } else if (rows[i].kind == RATES && error < HELD) {
            limits->error = most(limits->error, error);
            limits->held_bps = rows[i].rate_bps > limits->held_bps ? rows[i].rate_bps : limits->held_bps;
        }
    }
}

static void limits_print(const struct limits *limits, const struct figures figures[ROWS])
{
    printf("\nIts limits on this machine, %ld cores of which the clients share:\n", sysconf(_SC_NPROCESSORS_ONLN));
    printf("- Frames: it passes %.2f million short ones a second, or %.1f Gb/s of long ones, all ports together. A "
           "frame that crosses a wide\n"
           "  area takes more of its time for each link; what is more than it can take waits in the clients' rings.\n",
           limits->short_per_s / 1e6, limits->long_bps / 1e9);
    printf("- Delays: frames arrive later than the link says by up to %.1f us (half of them), %.1f us (99 %%), %.1f us "
           "(99.9 %%), the\n"
           "  client's own waking included. Differences of delays below that are not seen through it.%s\n",
           limits->p50_ns / 1e3, limits->p99_ns / 1e3, limits->p999_ns / 1e3,
           limits->early > 0 ? " (Some came early by a clock that differs.)" : " None came early.");
    printf("- Rates: filled links, as a client sees them, are exact to %.3f %% up to %.0f Mb/s, as far as was tried, "
           "but for:",
           100 * limits->error, (double)limits->held_bps / 1e6);
    uint32_t others = 0;
    for (int i = 0; i < ROWS; i++) {
        if (rows[i].kind == RATES && (figures[i].error >= HELD || figures[i].error <= -HELD)) {
            printf("%s %.0f Mb/s with %.0f ms in frames of %u bytes, off by %+.1f %%", others++ > 0 ? ";" : "",
                   (double)rows[i].rate_bps / 1e6, (double)rows[i].delay_ns / 1e6, rows[i].frame_bytes,
                   100 * figures[i].error);
        }
    }
    printf("%s.\n", others == 0 ? " none" : "");
    printf("- Memory: what lines and queues hold has room, in frames of any size from 60 bytes, up to about a gigabyte "
           "in all.\n");
}

static void limits_emit(struct app_report *report, const struct limits *limits)
{
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "switch"),
        app_text("kind", NULL, 0, "limits"),
        app_number("short_frames_per_s", NULL, 0, 1, limits->short_per_s),
        app_number("long_rate_bps", NULL, 0, 1, limits->long_bps),
        app_number("added_p50_ns", NULL, 0, 1, limits->p50_ns),
        app_number("added_p99_ns", NULL, 0, 1, limits->p99_ns),
        app_number("added_p999_ns", NULL, 0, 1, limits->p999_ns),
        app_count("held_rate_bps", NULL, limits->held_bps),
        app_number("ratio_rate_error", NULL, 0, 1, limits->error),
    };
    APP_REPORT(report, cells);
}

static const char usage[] = "bench switch [OPTION...]\n\n"
                            "What causeway switch can do on this machine: frames a second, how late it lets frames "
                            "arrive beyond the delay that\n"
                            "it emulates, how exact its rates are; and what that means in words. Real processes on the "
                            "real clock: nothing else\n"
                            "should be running.";

int bench_switch(int argc, char **argv)
{
    struct options options = {.duration_ns = 1000000000};
    const struct app_option table[] = {
        OPTION_TIME("duration", "of each measurement (1s)", &options.duration_ns, 10000000, 60000000000ull),
        OPTION_JSON(" a line", &options.report.json),
        {0},
    };
    struct figures figures[ROWS];
    struct limits limits = {.early = 0};
    int code;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    for (int i = 0; i < ROWS; i++) {
        code = row_run(&rows[i], &options, &figures[i]);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        row_report(&options.report, &rows[i], &figures[i]);
    }
    limits_find(figures, &limits);
    if (options.report.json) {
        limits_emit(&options.report, &limits);
    } else {
        limits_print(&limits, figures);
    }
    return APP_EXIT_SUCCESS;
}
