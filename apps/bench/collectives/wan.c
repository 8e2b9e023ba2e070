#include "apps/bench/collectives/wan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/cli/progress.h"
#include "apps/plan/plan.h"
#include "dataplane/fabric/link.h"
#include "dataplane/wire/wire.h"

enum { RANKS_MAX = 64, SENDERS_LIST_MAX = 16, MTU_BYTES = 1500, LIMIT_S = 600 };

void bench_wan_case_init(struct bench_wan_case *of)
{
    *of = (struct bench_wan_case){
        .ranks = 16,
        .bytes = 32000000,
        .rate_bps = 1000000000,
        .delay_ns = 20000,
        .wan_rate_bps = 10000000000,
        .wan_delay_ns = 10000000,
        .wan = PLAN_PUTS_WAN_KNOWN,
        .runs = 1,
        .seed = 1,
    };
}

/* ---- the model ---- */

double bench_wan_payload_bps(uint64_t rate_bps)
{
    uint32_t line_bytes = MTU_BYTES + 14 + CW_ETHERNET_OVERHEAD_BYTES;
    return (double)rate_bps * cw_wire_part_bytes(MTU_BYTES) / line_bytes;
}

double bench_wan_model_ns(const struct bench_wan_case *of, const char *algorithm, uint32_t senders)
{
    static const struct {
        const char *algorithm;
        uint32_t whole;  /* times M/B */
        bool by_senders; /* and M/(nB) */
    } table[] = {
        {"clusters-farfirst", 3, false},   {"clusters-van-de-geijn", 2, true}, {"clusters-heads", 2, true},
        {"clusters-chained", 2, true},     {"clusters-two-tier", 5, false},    {"clusters-rabenseifner", 2, true},
        {"clusters-overlapped", 1, false},
    };
    double whole_ns = (double)of->bytes * 8e9 / bench_wan_payload_bps(of->rate_bps);
    double count = senders == 0 || senders > of->ranks ? of->ranks : senders;
    double carried = (double)of->wan_rate_bps / (double)of->rate_bps;
    if (carried < 1) {
        return 0; /* B is of all links that a sender's data goes by */
    }
    count = count < carried ? count : carried;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].algorithm, algorithm) == 0) {
            return (double)of->wan_delay_ns + table[i].whole * whole_ns + (table[i].by_senders ? whole_ns / count : 0);
        }
    }
    return 0;
}

/* ---- one measurement ---- */

static struct cw_plan *plan_make(const struct bench_wan_case *of, enum cw_collective collective, const char *name,
                                 uint32_t senders, uint64_t segment_bytes, int *code)
{
    uint32_t cluster_of[2 * RANKS_MAX];
    for (uint32_t rank = 0; rank < 2 * of->ranks; rank++) {
        cluster_of[rank] = rank / of->ranks;
    }
    struct cw_problem_request request = {
        .collective = collective,
        .ranks = 2 * of->ranks,
        .element_bytes = 1,
        .count = of->bytes,
        .cluster_count = 2,
        .cluster_of = cluster_of,
    };
    struct cw_problem *problem = NULL;
    struct cw_plan *plan = NULL;
    char error[200] = "";
    int status = cw_problem_create(&request, &problem, error, sizeof(error));
    if (status != CW_OK) {
        *code = app_error_status(status, error, name);
        return NULL;
    }
    const struct cw_algorithm *algorithm = cw_algorithm_find(collective, name);
    struct cw_parameters parameters = cw_parameters_default();
    parameters.senders = senders;
    parameters.segment_bytes = segment_bytes > 0 ? segment_bytes : parameters.segment_bytes;
    status = algorithm == NULL ? CW_ERROR_NOT_FOUND
                               : cw_plan_build(problem, algorithm, &parameters, &plan, error, sizeof(error));
    if (status != CW_OK) {
        cw_problem_destroy(problem);
        *code = app_error_status(status, error[0] != 0 ? error : "no such algorithm", name);
        return NULL;
    }
    return plan;
}

int bench_wan_run(const struct bench_wan_case *of, enum cw_collective collective, const char *algorithm,
                  uint32_t senders, uint64_t segment_bytes, struct bench_wan_result *result)
{
    uint64_t times[BENCH_WAN_RUNS_MAX + 1] = {0};
    double sorted[BENCH_WAN_RUNS_MAX];
    struct plan_puts_options options;
    struct plan_puts_report report;
    char error[4096];
    int code = APP_EXIT_INTERNAL;
    struct cw_plan *plan = plan_make(of, collective, algorithm, senders, segment_bytes, &code);
    if (plan == NULL) {
        return code;
    }
    plan_puts_options_init(&options);
    options.seed = of->seed;
    options.runs = (uint32_t)of->runs + 1;
    options.together = true;
    options.times_ns = times;
    options.rate_bps = of->rate_bps;
    options.delay_ns = of->delay_ns;
    options.wan_rate_bps = of->wan_rate_bps;
    options.wan_delay_ns = of->wan_delay_ns;
    options.wan_loss = of->wan_loss;
    options.wan = of->wan;
    options.smooth = of->smooth;
    options.compression = of->compression;
    options.limit_ns = LIMIT_S * 1000000000ull;
    uint64_t slot_bytes = (plan_puts_message_bytes(plan) + 63) / 64 * 64;
    options.endpoint.pool_slot_bytes =
        slot_bytes > options.endpoint.pool_slot_bytes ? (uint32_t)slot_bytes : options.endpoint.pool_slot_bytes;
    int failed = plan_puts_run(plan, &options, &report, error, sizeof(error));
    cw_plan_destroy(plan);
    if (failed != 0) {
        app_error(error, algorithm, "this is a bug");
        return APP_EXIT_INTERNAL;
    }
    for (uint64_t run = 0; run < of->runs; run++) {
        sorted[run] = (double)times[run + 1];
    }
    const struct plan_puts_counts *counts = &report.counts;
    *result = (struct bench_wan_result){
        .rate = counts->chunk_bytes > 0 ? (double)counts->chunk_raw_bytes / (double)counts->chunk_bytes : 0,
        .median_ns = cw_statistics_median(sorted, of->runs),
        .first_ns = (double)report.first_ns,
        .model_ns = bench_wan_model_ns(of, algorithm, senders),
        .wan_dropped = report.wan_dropped,
        .wan_queue_max_bytes = report.wan_queue_max_bytes,
        .retransmitted = report.retransmitted,
    };
    return APP_EXIT_SUCCESS;
}

/* ---- the command ---- */

struct settings {
    struct bench_wan_case of;
    struct app_list senders;
    struct app_report report;
    const char *only; /* an algorithm; NULL: all */
    const char *csv_path;
    FILE *csv;
    uint64_t done; /* measurements, of all that there are to do */
    uint64_t all;
};

/* A row for `causeway draw --times`, if the model knows the algorithm. */
static void csv_print(const struct settings *settings, enum cw_collective collective, const char *who,
                      const struct bench_wan_result *result)
{
    if (settings->csv != NULL && result->model_ns > 0) {
        fprintf(settings->csv, "%s %s,%.0f,%.0f\n", cw_collective_name(collective), who, result->model_ns,
                result->median_ns);
    }
}

static void line_report(struct settings *settings, enum cw_collective collective, const char *algorithm,
                        uint32_t senders, const struct bench_wan_result *result, const struct bench_wan_result *packed,
                        double baseline_ns)
{
    char who[64];
    bool modelled = result->model_ns > 0;
    bool is_packed = packed->rate > 0;
    double sooner = is_packed ? result->median_ns / packed->median_ns : 0;
    snprintf(who, sizeof(who), senders > 0 ? "%s n=%u" : "%s", algorithm, senders);
    csv_print(settings, collective, who, result);
    const struct app_cell cells[] = {
        app_text("collective", NULL, 0, cw_collective_name(collective)),
        app_text(NULL, "algorithm", 30, who),
        app_text("algorithm", NULL, 0, algorithm),
        app_count("senders", NULL, senders),
        app_count("bytes", NULL, settings->of.bytes),
        app_number("time_p50_ns", "time/ms", 1, 1e-6, result->median_ns),
        app_number("first_run_ns", "first/ms", 1, 1e-6, result->first_ns),
        app_when(modelled, app_number("model_ns", "model/ms", 1, 1e-6, result->model_ns)),
        app_when(modelled, app_number(NULL, "of model", 2, 1, result->median_ns / result->model_ns)),
        app_number("baseline_ratio", "ratio", 2, 1, baseline_ns > 0 ? baseline_ns / result->median_ns : 1),
        app_when(is_packed, app_number("compressed_p50_ns", "packed/ms", 1, 1e-6, packed->median_ns)),
        app_when(is_packed, app_number("speed_up", "speed-up", 2, 1, sooner)),
        app_when(is_packed, app_number("compression_rate", "rate", 2, 1, packed->rate)),
        app_when(is_packed, app_number(NULL, "of rate", 2, 1, is_packed ? sooner / packed->rate : 0)),
        app_count("wan_dropped_frames", "dropped", result->wan_dropped),
        app_count("wan_queue_max_bytes", "queue bytes", result->wan_queue_max_bytes),
        app_count("retransmitted", "sent again", result->retransmitted),
    };
    APP_REPORT(&settings->report, cells);
}

static bool takes_senders(enum cw_collective collective, const char *name)
{
    const struct cw_algorithm *algorithm = cw_algorithm_find(collective, name);
    return algorithm != NULL && (algorithm->takes & CW_TAKES_SENDERS) != 0;
}

/* One algorithm, for each number of senders if it knows any; the first line of a collective is what the others are held
 * against. */
static int algorithm_run(struct settings *settings, enum cw_collective collective, const char *name,
                         double *baseline_ns)
{
    bool takes = takes_senders(collective, name);
    for (size_t i = 0; i < (takes ? settings->senders.count : 1); i++) {
        struct bench_wan_result result, packed = {.rate = 0};
        uint32_t senders = takes ? (uint32_t)settings->senders.values[i] : 0;
        app_progress_step(settings->done++, settings->all, name);
        struct bench_wan_case of = settings->of;
        int code = bench_wan_run(&of, collective, name, senders, 0, &result);
        of.compression = CW_COMPRESSION_AUTO;
        code = code == APP_EXIT_SUCCESS && of.smooth ? bench_wan_run(&of, collective, name, senders, 0, &packed) : code;
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        line_report(settings, collective, name, senders, &result, &packed, *baseline_ns);
        *baseline_ns = *baseline_ns > 0 ? *baseline_ns : result.median_ns;
    }
    return APP_EXIT_SUCCESS;
}

static const char *const *algorithms_of(enum cw_collective collective)
{
    static const char *const bcasts[] = {"clusters-farfirst",
                                         "van-de-geijn",
                                         "clusters-van-de-geijn",
                                         "clusters-heads",
                                         "clusters-chained",
                                         "clusters-overlapped",
                                         NULL};
    static const char *const allreduces[] = {"clusters-two-tier", "rabenseifner", "clusters-rabenseifner", NULL};
    return collective == CW_BCAST ? bcasts : allreduces;
}

/* How many measurements a collective takes. */
static uint64_t measurements_count(const struct settings *settings, enum cw_collective collective)
{
    const char *const *names = algorithms_of(collective);
    uint64_t count = 0;
    for (size_t i = 0; names[i] != NULL; i++) {
        bool is_asked = settings->only == NULL || strcmp(settings->only, names[i]) == 0;
        count += !is_asked ? 0 : takes_senders(collective, names[i]) ? settings->senders.count : 1;
    }
    return count;
}

static int collective_run(struct settings *settings, enum cw_collective collective)
{
    const char *const *names = algorithms_of(collective);
    double baseline_ns = 0;
    int code = APP_EXIT_SUCCESS;
    settings->report.begun = false;
    if (!settings->report.json) {
        const struct bench_wan_case *of = &settings->of;
        app_progress_hide();
        printf("%s of %" PRIu64
               " bytes, 2 x %u ranks at %.4g Mb/s (%.4g for data), between clusters %.4g Mb/s and %.4g ms\n",
               cw_collective_name(collective), of->bytes, of->ranks, (double)of->rate_bps / 1e6,
               bench_wan_payload_bps(of->rate_bps) / 1e6, (double)of->wan_rate_bps / 1e6,
               (double)of->wan_delay_ns / 1e6);
    }
    for (size_t i = 0; names[i] != NULL && code == APP_EXIT_SUCCESS; i++) {
        if (settings->only == NULL || strcmp(settings->only, names[i]) == 0) {
            code = algorithm_run(settings, collective, names[i], &baseline_ns);
        }
    }
    return code;
}

static bool has(enum cw_collective collective, const char *name)
{
    const char *const *names = algorithms_of(collective);
    while (*names != NULL && strcmp(*names, name) != 0) {
        names++;
    }
    return *names != NULL;
}

static bool only_check(const struct settings *settings, bool takes_bcast, bool takes_allreduce)
{
    const char *only = settings->only;
    if (only == NULL || (takes_bcast && has(CW_BCAST, only)) || (takes_allreduce && has(CW_ALLREDUCE, only))) {
        return true;
    }
    app_error("no such algorithm here", only, "without --algorithm all are listed");
    return false;
}

static const char csv_header[] = "name,predicted_ns,measured_ns\n";

static const char usage[] =
    "bench wan [OPTION...]\n\n"
    "Broadcasts and all-reduces across two clusters in virtual time, every byte verified: the "
    "algorithms of Matsuda et al. (2006) for each number of senders, those\n"
    "that do not know of clusters, and the overlapped form, beside the paper's cost model (B: "
    "what links leave for data). The first line\n"
    "of each collective is the baseline of the ratios. Takes minutes; within a minute: --size 4M.";

int bench_wan(int argc, char **argv)
{
    struct settings settings = {.senders = {.values = {1, 4, 8, 16}, .count = 4, .count_max = SENDERS_LIST_MAX}};
    struct bench_wan_case *of = &settings.of;
    const char *collective = "both";
    const char *wan = "known";
    uint64_t ranks;
    int code;
    bench_wan_case_init(of);
    ranks = of->ranks;
    const struct app_option table[] = {
        OPTION_TEXT("collective", "bcast|allreduce|both", "which one (both)", &collective),
        OPTION_BYTES("size", "of the message (32000000)", &of->bytes, 1, 1 << 30),
        OPTION_COUNT("ranks", "of each cluster (16)", &ranks, 2, RANKS_MAX),
        OPTION_SIZES("senders", "numbers of ranks that send across at a time (1,4,8,16)", &settings.senders, 1,
                     RANKS_MAX),
        OPTION_RATE("rate", "of hosts' links (1Gbps)", &of->rate_bps, 1000000),
        OPTION_TIME("delay", "inside clusters, one way (20us)", &of->delay_ns, 0, 1000000000),
        OPTION_RATE("wan-rate", "between clusters (10Gbps)", &of->wan_rate_bps, 1000000),
        OPTION_TIME("wan-delay", "between clusters, one way (10ms)", &of->wan_delay_ns, 0, 1000000000),
        OPTION_PERCENT("wan-loss", "of frames between clusters (0)", &of->wan_loss),
        OPTION_TEXT("wan", "known|found|lan|free", "as for `causeway plan run` (known)", &wan),
        OPTION_COUNT("runs", "after the first, which sets connections up (1)", &of->runs, 1, BENCH_WAN_RUNS_MAX),
        OPTION_COUNT("seed", "of everything random (1)", &of->seed, 0, 0),
        OPTION_FLAG("compress",
                    "doubles in place of random bytes, and each algorithm once more with compression: packed/ms, its "
                    "speed-up, and that beside the rate; codecs take no time here",
                    &of->smooth),
        OPTION_TEXT("algorithm", "NAME", "just this one of them (all)", &settings.only),
        OPTION_TEXT("csv", "FILE", "also writes the model's times and these as CSV, for `causeway draw --times`",
                    &settings.csv_path),
        OPTION_JSON(" a line", &settings.report.json),
        {0},
    };
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    of->ranks = (uint32_t)ranks;
    bool both = strcmp(collective, "both") == 0;
    enum cw_collective one = cw_collective_find(collective);
    if (!both && one != CW_BCAST && one != CW_ALLREDUCE) {
        app_error("no such collective here", collective, "--collective bcast, allreduce or both");
        return APP_EXIT_USAGE;
    }
    if (!plan_wan_take(wan, &of->wan)) {
        return APP_EXIT_USAGE;
    }
    bool takes_bcast = both || one == CW_BCAST, takes_allreduce = both || one == CW_ALLREDUCE;
    if (!only_check(&settings, takes_bcast, takes_allreduce) ||
        !app_csv_open("the times", settings.csv_path, csv_header, &settings.csv)) {
        return APP_EXIT_USAGE;
    }
    settings.all = takes_bcast ? measurements_count(&settings, CW_BCAST) : 0;
    settings.all += takes_allreduce ? measurements_count(&settings, CW_ALLREDUCE) : 0;
    code = takes_bcast ? collective_run(&settings, CW_BCAST) : APP_EXIT_SUCCESS;
    if (code == APP_EXIT_SUCCESS && takes_allreduce) {
        code = collective_run(&settings, CW_ALLREDUCE);
    }
    return app_csv_close("the times", settings.csv_path, settings.csv) ? code : APP_EXIT_MACHINE;
}
