/* causeway bench scale. */
#include "apps/bench/collectives/scale.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/cli/progress.h"
#include "apps/draw/gnuplot.h"
#include "collectives/algorithms/build.h"

static const enum cw_collective collectives[] = {CW_ALLTOALL, CW_BCAST, CW_ALLREDUCE};

enum { COLLECTIVES = sizeof(collectives) / sizeof(collectives[0]) };

struct settings {
    struct bench_scale_case of;
    struct app_list ranks;
    const char *algorithm; /* of all series, instead of both ways to choose; NULL */
    const char *only;      /* "chosen" or "flat"; NULL: both */
    const char *csv_path;
    const char *plot_path;
    struct app_report report;
    struct app_report csv;
    bool takes[COLLECTIVES];
    struct bench_scale_series series[BENCH_SCALE_SERIES_MAX];
    uint32_t series_count;
    uint32_t series_all; /* that are to be */
};

static void series_head(struct settings *settings, const struct bench_scale_series *series)
{
    const struct bench_scale_case *of = &settings->of;
    bool pairs = series->collective == CW_ALLTOALL;
    settings->report.begun = false;
    if (settings->report.json) {
        return;
    }
    app_progress_hide();
    printf("%s of %" PRIu64 " bytes%s, %s\n", cw_collective_name(series->collective),
           pairs ? of->pair_bytes : of->bytes, pairs ? " a pair" : "",
           settings->algorithm != NULL ? "by the algorithm asked for"
           : series->flat              ? "by the best algorithm that knows nothing of clusters"
                                       : "by the algorithm that the model chooses");
}

/* CSV names the time otherwise, and has no memory of peers. */
static void point_report(struct app_report *report, const struct bench_scale_series *series,
                         const struct bench_scale_point *point)
{
    char who[64];
    const struct plan_puts_memory *memory = &point->memory;
    bool csv = report->form == APP_REPORT_CSV;
    snprintf(who, sizeof(who), point->senders > 0 ? "%s n=%u" : "%s", point->algorithm, point->senders);
    const struct app_cell cells[] = {
        app_text("collective", NULL, 0, cw_collective_name(series->collective)),
        app_text("choice", NULL, 0, series->flat ? "flat" : "chosen"),
        app_text("algorithm", NULL, 0, point->algorithm),
        app_text(NULL, "algorithm", 26, who),
        app_count("senders", NULL, point->senders),
        app_count("ranks", "ranks", point->ranks),
        app_count("clusters", "clusters", point->clusters),
        app_number(csv ? "time_ns" : "time_p50_ns", "time/ms", 1, 1e-6, point->time_ns),
        app_number("first_run_ns", "first/ms", 1, 1e-6, point->first_ns),
        app_number("model_ns", "model/ms", 1, 1e-6, point->model_ns),
        app_number("packets_per_rank", "packets/rank", 1, 1, point->packets),
        app_number("data_packets_per_rank", "with data", 1, 1, point->data),
        app_number("retransmitted_per_rank", "sent again", 2, 1, point->retransmitted),
        app_number("acknowledgements_per_rank", "acks", 1, 1, point->acknowledgements),
        app_number("packets_busiest_rank", "most packets", 0, 1, point->packets_most),
        app_number("wan_frames", "WAN frames", 0, 1, point->wan_frames),
        app_scaled("rank_bytes", "KiB/rank", 0, 1.0 / 1024, memory->rank_bytes),
        app_count("endpoint_bytes", NULL, memory->endpoint_bytes),
        app_count("schedule_bytes", NULL, memory->schedule_bytes),
        app_count("transport_bytes", NULL, memory->transport_bytes),
        app_count(csv ? NULL : "peer_bytes", NULL, memory->peer_bytes),
        app_count("sessions", "sessions", memory->peers),
        app_number("resident_bytes_per_rank", "resident/KiB", 0, 1.0 / 1024, point->resident_bytes),
        app_count("events", NULL, point->events),
        app_number(NULL, "events/s", 0, 1e9, (double)point->events / point->real_ns),
        app_number("real_ns", "real/s", 1, 1e-9, point->real_ns),
    };
    APP_REPORT(report, cells);
}

/* How everything has grown from one number of ranks to the next. */
static void exponents_print(const struct bench_scale_series *series)
{
    app_progress_hide();
    for (uint32_t i = 1; i < series->count; i++) {
        const struct bench_scale_point *one = &series->points[i - 1], *next = &series->points[i];
        double x0 = one->ranks, x1 = next->ranks;
        printf("  from %u to %u ranks: time ~ P^%.2f, packets a rank ~ P^%.2f, memory a rank ~ P^%.2f, WAN frames ~ "
               "P^%.2f, sessions ~ P^%.2f\n",
               one->ranks, next->ranks, bench_scale_exponent(x0, one->time_ns, x1, next->time_ns),
               bench_scale_exponent(x0, one->packets, x1, next->packets),
               bench_scale_exponent(x0, (double)one->memory.rank_bytes, x1, (double)next->memory.rank_bytes),
               bench_scale_exponent(x0, one->wan_frames, x1, next->wan_frames),
               bench_scale_exponent(x0, one->memory.peers, x1, next->memory.peers));
    }
}

/* ---- running ---- */

/* What is over, and is to do: a series has as much to do for P ranks as P times P, about. */
static void progress_tell(const struct settings *settings, const struct bench_scale_series *series)
{
    uint64_t before = 0, one = 0;
    char step[64];
    for (size_t i = 0; i < settings->ranks.count; i++) {
        one += settings->ranks.values[i] * settings->ranks.values[i];
        before = i + 1 == series->count ? one : before;
    }
    snprintf(step, sizeof(step), "%s of %" PRIu64 " ranks", cw_collective_name(series->collective),
             settings->ranks.values[series->count]);
    app_progress_step(before + one * (settings->series_count - 1), one * settings->series_all, step);
}

static int series_run(struct settings *settings, enum cw_collective collective, bool flat)
{
    struct bench_scale_series *series = &settings->series[settings->series_count++];
    const char *algorithm = settings->algorithm != NULL ? settings->algorithm : flat ? "flat" : NULL;
    *series = (struct bench_scale_series){.collective = collective, .flat = flat};
    series_head(settings, series);
    for (size_t i = 0; i < settings->ranks.count; i++) {
        struct bench_scale_point *point = &series->points[series->count];
        progress_tell(settings, series);
        int code = bench_scale_run(&settings->of, collective, algorithm, (uint32_t)settings->ranks.values[i], point);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        series->count++;
        point_report(&settings->report, series, point);
        if (settings->csv.csv != NULL) {
            point_report(&settings->csv, series, point);
            fflush(settings->csv.csv);
        }
    }
    if (!settings->report.json) {
        exponents_print(series);
    }
    return APP_EXIT_SUCCESS;
}

static int all_run(struct settings *settings)
{
    int code = APP_EXIT_SUCCESS;
    bool chosen = settings->algorithm != NULL || settings->only == NULL || strcmp(settings->only, "chosen") == 0;
    bool flat = settings->algorithm == NULL && (settings->only == NULL || strcmp(settings->only, "flat") == 0);
    for (uint32_t i = 0; i < COLLECTIVES; i++) {
        settings->series_all += settings->takes[i] ? (uint32_t)chosen + flat : 0;
    }
    for (uint32_t i = 0; i < COLLECTIVES && code == APP_EXIT_SUCCESS; i++) {
        if (settings->takes[i] && chosen) {
            code = series_run(settings, collectives[i], false);
        }
        if (settings->takes[i] && flat && code == APP_EXIT_SUCCESS) {
            code = series_run(settings, collectives[i], true);
        }
    }
    if (code == APP_EXIT_SUCCESS && settings->plot_path != NULL) {
        code = bench_scale_plot(settings->plot_path, settings->series, settings->series_count);
    }
    return code;
}

static bool collectives_take(struct settings *settings, const char *text)
{
    bool all = strcmp(text, "all") == 0;
    bool any = all;
    for (uint32_t i = 0; i < COLLECTIVES; i++) {
        settings->takes[i] = all || strcmp(text, cw_collective_name(collectives[i])) == 0;
        any = any || settings->takes[i];
    }
    if (!any) {
        app_error("no such collective here", text, "--collective alltoall, bcast, allreduce or all");
    }
    return any;
}

static bool only_take(const struct settings *settings)
{
    if (settings->only != NULL && strcmp(settings->only, "chosen") != 0 && strcmp(settings->only, "flat") != 0) {
        app_error("there are two ways to choose", settings->only, "--only chosen or flat");
        return false;
    }
    if (settings->only != NULL && settings->algorithm != NULL) {
        app_error("with an algorithm nothing is left to choose", "--only --algorithm", "leave one of them out");
        return false;
    }
    return true;
}

/* Whether each collective that is asked for has the algorithm. */
static bool algorithm_take(const struct settings *settings)
{
    for (uint32_t i = 0; settings->algorithm != NULL && i < COLLECTIVES; i++) {
        if (settings->takes[i] && cw_algorithm_find(collectives[i], settings->algorithm) == NULL) {
            char todo[100];
            snprintf(todo, sizeof(todo), "causeway plan list has those of %s; --collective names one",
                     cw_collective_name(collectives[i]));
            app_error("no such algorithm", settings->algorithm, todo);
            return false;
        }
    }
    return true;
}

static const char usage[] =
    "bench scale [OPTION...]\n\n"
    "How collectives grow with the number of ranks P, which are in up to 16 clusters, each "
    "joined with each, in virtual "
    "time: all-to-all, broadcast and all-reduce by the algorithm that the price\n"
    "model chooses, and by the best one that knows nothing of clusters. Every byte is "
    "verified. Packets are those of one "
    "run after the first, which sets sessions up; KiB a rank: what the rank's\n"
    "endpoint has touched, its schedule and its transport, of the rank that takes most; "
    "resident: of the whole process, "
    "buffers and simulator included, divided by P. Exponents b of P^b: between\n"
    "one P and the next. Nothing is chosen that needs more than 6 GiB of buffers, all ranks together.\n"
    "Takes minutes; within a minute: --ranks 16,64.";

static int settings_take(struct settings *settings, int argc, char **argv)
{
    struct bench_scale_case *of = &settings->of;
    const char *collective = "all", *wan = "known";
    uint64_t clusters = of->clusters_max;
    int code;
    const struct app_option table[] = {
        OPTION_TEXT("collective", "alltoall|bcast|allreduce|all", "which one (all)", &collective),
        OPTION_SIZES("ranks", "numbers of ranks, rising (16,64,256,1024)", &settings->ranks, 2, BENCH_SCALE_RANKS_MAX),
        OPTION_COUNT("clusters", "at most; of four ranks at least (16)", &clusters, 1, 64),
        OPTION_COUNT("sessions", "nothing is chosen by which rank 0 deals with more others (128)", &of->sessions_max, 1,
                     BENCH_SCALE_RANKS_MAX),
        OPTION_BYTES("pair", "all-to-all: of each pair of ranks (64)", &of->pair_bytes, 1, 1 << 20),
        OPTION_BYTES("size", "broadcast, all-reduce: of the vector (1M)", &of->bytes, 1, 1 << 28),
        OPTION_RATE("rate", "of hosts' links (1Gbps)", &of->rate_bps, 1000000),
        OPTION_TIME("delay", "inside clusters, one way (20us)", &of->delay_ns, 0, 1000000000),
        OPTION_RATE("wan-rate", "between each two clusters (10Gbps)", &of->wan_rate_bps, 1000000),
        OPTION_TIME("wan-delay", "between clusters, one way (10ms)", &of->wan_delay_ns, 0, 1000000000),
        OPTION_PERCENT("wan-loss", "of frames between clusters (0)", &of->wan_loss),
        OPTION_TEXT("wan", "known|found|lan|free", "as for `causeway plan run` (known)", &wan),
        OPTION_COUNT("runs", "after the first, which sets sessions up (1)", &of->runs, 1, 20),
        OPTION_COUNT("seed", "of everything random (1)", &of->seed, 0, 0),
        OPTION_TEXT("only", "chosen|flat",
                    "chosen: what the model chooses; flat: the best that knows nothing of clusters (both)",
                    &settings->only),
        OPTION_TEXT("algorithm", "NAME", "this one, with the parameters that the model finds for it",
                    &settings->algorithm),
        OPTION_TEXT("csv", "FILE", "also writes the table as CSV", &settings->csv_path),
        OPTION_TEXT("plot", "FILE", "also draws it, .svg or .png, by gnuplot", &settings->plot_path),
        OPTION_JSON(" a line", &settings->report.json),
        {0},
    };
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code == APP_EXIT_SUCCESS ? -1 : code; /* help is all that was asked for */
    }
    of->clusters_max = (uint32_t)clusters;
    bool right = collectives_take(settings, collective) && only_take(settings) && algorithm_take(settings) &&
                 plan_wan_take(wan, &of->wan) &&
                 (settings->plot_path == NULL || gnuplot_check(settings->plot_path) == APP_EXIT_SUCCESS);
    return right && app_csv_open("the table", settings->csv_path, "", &settings->csv.csv) ? APP_EXIT_SUCCESS
                                                                                          : APP_EXIT_USAGE;
}

int bench_scale(int argc, char **argv)
{
    static struct settings settings;
    settings = (struct settings){
        .csv = {.form = APP_REPORT_CSV},
        .ranks = {.values = {16, 64, 256, 1024}, .count = 4, .count_max = BENCH_SCALE_POINTS_MAX, .rising = true}};
    bench_scale_case_init(&settings.of);
    int code = settings_take(&settings, argc, argv);
    if (code != APP_EXIT_SUCCESS) {
        return code < 0 ? APP_EXIT_SUCCESS : code;
    }
    code = all_run(&settings);
    bool written = app_csv_close("the table", settings.csv_path, settings.csv.csv);
    return code == APP_EXIT_SUCCESS && !written ? APP_EXIT_MACHINE : code;
}
