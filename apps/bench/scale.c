/* causeway bench scale. */
#include "apps/bench/scale.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/draw/gnuplot.h"
#include "collectives/algorithms/build.h"

static const enum cw_collective collectives[] = {CW_ALLTOALL, CW_BCAST, CW_ALLREDUCE};

enum { COLLECTIVES = sizeof(collectives) / sizeof(collectives[0]) };

struct settings {
    struct bench_scale_case of;
    uint64_t ranks[BENCH_SCALE_POINTS_MAX];
    size_t rank_count;
    const char *algorithm; /* of all series, instead of both ways to choose; NULL */
    const char *only;      /* "chosen" or "flat"; NULL: both */
    const char *csv_path;
    FILE *csv;
    const char *plot_path;
    bool json;
    bool takes[COLLECTIVES];
    struct bench_scale_series series[BENCH_SCALE_SERIES_MAX];
    uint32_t series_count;
};

/* ---- what is printed ---- */

static void who_text(const struct bench_scale_point *point, char *text, size_t bytes)
{
    snprintf(text, bytes, point->senders > 0 ? "%s n=%u" : "%s", point->algorithm, point->senders);
}

static void series_head(const struct settings *settings, const struct bench_scale_series *series)
{
    const struct bench_scale_case *of = &settings->of;
    bool pairs = series->collective == CW_ALLTOALL;
    if (settings->json) {
        return;
    }
    printf("%s of %" PRIu64 " bytes%s, %s\n", cw_collective_name(series->collective),
           pairs ? of->pair_bytes : of->bytes, pairs ? " a pair" : "",
           settings->algorithm != NULL ? "by the algorithm asked for"
           : series->flat              ? "by the best algorithm that knows nothing of clusters"
                                       : "by the algorithm that the model chooses");
    printf("  ranks in  algorithm                   time/ms first/ms model/ms  packets a rank (most) sent again  "
           "acks  WAN frames  KiB a rank (sessions)  resident  events/s   real/s\n");
}

static void point_print(const struct bench_scale_point *point)
{
    char who[64];
    who_text(point, who, sizeof(who));
    printf("  %5u %2u  %-26s %8.1f %8.1f %8.1f  %14.1f %6.0f %10.2f %5.1f %11.0f  %10.0f (%8u) %9.0f %9.3g %8.1f\n",
           point->ranks, point->clusters, who, point->time_ns / 1e6, point->first_ns / 1e6, point->model_ns / 1e6,
           point->packets, point->packets_most, point->retransmitted, point->acknowledgements, point->wan_frames,
           (double)point->memory.rank_bytes / 1024, point->memory.peers, point->resident_bytes / 1024,
           (double)point->events * 1e9 / point->real_ns, point->real_ns / 1e9);
    fflush(stdout);
}

static void point_json(const struct bench_scale_series *series, const struct bench_scale_point *point)
{
    json_t *line = app_json_new();
    app_json_text(line, "collective", cw_collective_name(series->collective));
    app_json_text(line, "choice", series->flat ? "flat" : "chosen");
    app_json_text(line, "algorithm", point->algorithm);
    app_json_count(line, "senders", point->senders);
    app_json_count(line, "ranks", point->ranks);
    app_json_count(line, "clusters", point->clusters);
    app_json_number(line, "time_p50_ns", point->time_ns);
    app_json_number(line, "first_run_ns", point->first_ns);
    app_json_number(line, "model_ns", point->model_ns);
    app_json_number(line, "packets_per_rank", point->packets);
    app_json_number(line, "data_packets_per_rank", point->data);
    app_json_number(line, "retransmitted_per_rank", point->retransmitted);
    app_json_number(line, "acknowledgements_per_rank", point->acknowledgements);
    app_json_number(line, "packets_busiest_rank", point->packets_most);
    app_json_number(line, "wan_frames", point->wan_frames);
    app_json_count(line, "rank_bytes", point->memory.rank_bytes);
    app_json_count(line, "endpoint_bytes", point->memory.endpoint_bytes);
    app_json_count(line, "schedule_bytes", point->memory.schedule_bytes);
    app_json_count(line, "transport_bytes", point->memory.transport_bytes);
    app_json_count(line, "peer_bytes", point->memory.peer_bytes);
    app_json_count(line, "sessions", point->memory.peers);
    app_json_number(line, "resident_bytes_per_rank", point->resident_bytes);
    app_json_count(line, "events", point->events);
    app_json_number(line, "real_ns", point->real_ns);
    app_json_emit(line);
}

static void point_csv(FILE *csv, const struct bench_scale_series *series, const struct bench_scale_point *point)
{
    fprintf(csv, "%s,%s,%s,%u,%u,%u,%.0f,%.0f,%.0f,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,",
            cw_collective_name(series->collective), series->flat ? "flat" : "chosen", point->algorithm, point->senders,
            point->ranks, point->clusters, point->time_ns, point->first_ns, point->model_ns, point->packets,
            point->data, point->retransmitted, point->acknowledgements, point->packets_most, point->wan_frames);
    fprintf(csv, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%u,%.0f,%" PRIu64 ",%.0f\n", point->memory.rank_bytes,
            point->memory.endpoint_bytes, point->memory.schedule_bytes, point->memory.transport_bytes,
            point->memory.peers, point->resident_bytes, point->events, point->real_ns);
    fflush(csv);
}

/* How everything has grown from one number of ranks to the next. */
static void exponents_print(const struct bench_scale_series *series)
{
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

static int series_run(struct settings *settings, enum cw_collective collective, bool flat)
{
    struct bench_scale_series *series = &settings->series[settings->series_count++];
    const char *algorithm = settings->algorithm != NULL ? settings->algorithm : flat ? "flat" : NULL;
    *series = (struct bench_scale_series){.collective = collective, .flat = flat};
    series_head(settings, series);
    for (size_t i = 0; i < settings->rank_count; i++) {
        struct bench_scale_point *point = &series->points[series->count];
        int code = bench_scale_run(&settings->of, collective, algorithm, (uint32_t)settings->ranks[i], point);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        series->count++;
        if (settings->json) {
            point_json(series, point);
        } else {
            point_print(point);
        }
        if (settings->csv != NULL) {
            point_csv(settings->csv, series, point);
        }
    }
    if (!settings->json) {
        exponents_print(series);
    }
    return APP_EXIT_SUCCESS;
}

static int all_run(struct settings *settings)
{
    int code = APP_EXIT_SUCCESS;
    for (uint32_t i = 0; i < COLLECTIVES && code == APP_EXIT_SUCCESS; i++) {
        bool chosen = settings->algorithm != NULL || settings->only == NULL || strcmp(settings->only, "chosen") == 0;
        bool flat = settings->algorithm == NULL && (settings->only == NULL || strcmp(settings->only, "flat") == 0);
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

/* ---- options ---- */

static bool ranks_take(struct settings *settings, const char *text)
{
    settings->rank_count = app_parse_bytes_list(text, settings->ranks, BENCH_SCALE_POINTS_MAX);
    bool right = settings->rank_count > 0;
    for (size_t i = 0; i < settings->rank_count; i++) {
        bool rises = i == 0 || settings->ranks[i] > settings->ranks[i - 1];
        right = right && rises && settings->ranks[i] >= 2 && settings->ranks[i] <= BENCH_SCALE_RANKS_MAX;
    }
    if (!right) {
        app_error("--ranks wants up to 16 rising numbers from 2 to 4096, such as 16,64,256", text, NULL);
    }
    return right;
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

static const char csv_header[] =
    "collective,choice,algorithm,senders,ranks,clusters,time_ns,first_run_ns,model_ns,packets_per_rank,"
    "data_packets_per_rank,retransmitted_per_rank,acknowledgements_per_rank,packets_busiest_rank,wan_frames,"
    "rank_bytes,endpoint_bytes,schedule_bytes,transport_bytes,sessions,resident_bytes_per_rank,events,real_ns\n";

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
    "one P and the next. Nothing is chosen that needs more than 6 GiB of buffers, all ranks together.";

static int settings_take(struct settings *settings, int argc, char **argv)
{
    struct bench_scale_case *of = &settings->of;
    const char *collective = "all", *ranks = "16,64,256,1024", *wan = "known";
    uint64_t clusters = of->clusters_max;
    int code;
    const struct app_option table[] = {
        {"collective", "alltoall|bcast|allreduce|all", "which one (all)", APP_OPTION_TEXT, &collective, 0, 0, NULL},
        {"ranks", "LIST", "numbers of ranks, rising (16,64,256,1024)", APP_OPTION_TEXT, &ranks, 0, 0, NULL},
        {"clusters", "N", "at most; of four ranks at least (16)", APP_OPTION_COUNT, &clusters, 1, 64, NULL},
        {"sessions", "N", "nothing is chosen by which rank 0 deals with more others (128)", APP_OPTION_COUNT,
         &of->sessions_max, 1, BENCH_SCALE_RANKS_MAX, NULL},
        {"pair", "BYTES", "all-to-all: of each pair of ranks (64)", APP_OPTION_BYTES, &of->pair_bytes, 1, 1 << 20,
         NULL},
        {"size", "BYTES", "broadcast, all-reduce: of the vector (1M)", APP_OPTION_BYTES, &of->bytes, 1, 1 << 28, NULL},
        {"rate", "RATE", "of hosts' links (1Gbps)", APP_OPTION_RATE, &of->rate_bps, 1000000, 0, NULL},
        {"delay", "TIME", "inside clusters, one way (20us)", APP_OPTION_DURATION, &of->delay_ns, 0, 1000000000, NULL},
        {"wan-rate", "RATE", "between each two clusters (10Gbps)", APP_OPTION_RATE, &of->wan_rate_bps, 1000000, 0,
         NULL},
        {"wan-delay", "TIME", "between clusters, one way (10ms)", APP_OPTION_DURATION, &of->wan_delay_ns, 0, 1000000000,
         NULL},
        {"wan-loss", "PERCENT", "of frames between clusters (0)", APP_OPTION_PERCENT, &of->wan_loss, 0, 0, NULL},
        {"wan", "known|found|lan|free", "as for `causeway plan run` (known)", APP_OPTION_TEXT, &wan, 0, 0, NULL},
        {"runs", "N", "after the first, which sets sessions up (1)", APP_OPTION_COUNT, &of->runs, 1, 20, NULL},
        {"seed", "N", "of everything random (1)", APP_OPTION_COUNT, &of->seed, 0, 0, NULL},
        {"only", "chosen|flat", "chosen: what the model chooses; flat: the best that knows nothing of clusters (both)",
         APP_OPTION_TEXT, &settings->only, 0, 0, NULL},
        {"algorithm", "NAME", "this one, with the parameters that the model finds for it", APP_OPTION_TEXT,
         &settings->algorithm, 0, 0, NULL},
        {"csv", "FILE", "also writes the table as CSV", APP_OPTION_TEXT, &settings->csv_path, 0, 0, NULL},
        {"plot", "FILE", "also draws it, .svg or .png, by gnuplot", APP_OPTION_TEXT, &settings->plot_path, 0, 0, NULL},
        {"json", NULL, "one JSON object a line", APP_OPTION_FLAG, &settings->json, 0, 0, NULL},
        {0},
    };
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code == APP_EXIT_SUCCESS ? -1 : code; /* help is all that was asked for */
    }
    of->clusters_max = (uint32_t)clusters;
    bool right = ranks_take(settings, ranks) && collectives_take(settings, collective) && only_take(settings) &&
                 algorithm_take(settings) && plan_wan_take(wan, &of->wan) &&
                 (settings->plot_path == NULL || gnuplot_check(settings->plot_path) == APP_EXIT_SUCCESS);
    return right && app_csv_open("the table", settings->csv_path, csv_header, &settings->csv) ? APP_EXIT_SUCCESS
                                                                                              : APP_EXIT_USAGE;
}

int bench_scale(int argc, char **argv)
{
    static struct settings settings;
    settings = (struct settings){.json = false};
    bench_scale_case_init(&settings.of);
    int code = settings_take(&settings, argc, argv);
    if (code != APP_EXIT_SUCCESS) {
        return code < 0 ? APP_EXIT_SUCCESS : code;
    }
    code = all_run(&settings);
    bool written = app_csv_close("the table", settings.csv_path, settings.csv);
    return code == APP_EXIT_SUCCESS && !written ? APP_EXIT_MACHINE : code;
}
