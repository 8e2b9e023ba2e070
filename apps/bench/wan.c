#include "apps/bench/wan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
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
    *result = (struct bench_wan_result){
        .median_ns = bench_median(sorted, of->runs),
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
    uint64_t senders[SENDERS_LIST_MAX];
    size_t sender_count;
    bool json;
    const char *only; /* an algorithm; NULL: all */
    const char *csv_path;
    FILE *csv;
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

static void line_print(const struct settings *settings, enum cw_collective collective, const char *algorithm,
                       uint32_t senders, const struct bench_wan_result *result, double baseline_ns)
{
    double ratio = baseline_ns > 0 ? baseline_ns / result->median_ns : 0;
    char who[64];
    snprintf(who, sizeof(who), senders > 0 ? "%s n=%u" : "%s", algorithm, senders);
    csv_print(settings, collective, who, result);
    if (settings->json) {
        json_t *line = app_json_new();
        app_json_text(line, "collective", cw_collective_name(collective));
        app_json_text(line, "algorithm", algorithm);
        app_json_count(line, "senders", senders);
        app_json_count(line, "bytes", settings->of.bytes);
        app_json_number(line, "time_p50_ns", result->median_ns);
        app_json_number(line, "first_run_ns", result->first_ns);
        app_json_number(line, "model_ns", result->model_ns);
        app_json_number(line, "baseline_ratio", ratio);
        app_json_count(line, "wan_dropped_frames", result->wan_dropped);
        app_json_count(line, "wan_queue_max_bytes", result->wan_queue_max_bytes);
        app_json_count(line, "retransmitted", result->retransmitted);
        app_json_emit(line);
        return;
    }
    printf("  %-30s %9.1f ms  first %9.1f", who, result->median_ns / 1e6, result->first_ns / 1e6);
    if (result->model_ns > 0) {
        printf("  model %9.1f (%.2f)", result->model_ns / 1e6, result->median_ns / result->model_ns);
    } else {
        printf("  %22s", "");
    }
    if (ratio > 0) {
        printf("  %5.2f x", ratio);
    }
    printf("  queue %7" PRIu64 ", dropped %" PRIu64 "\n", result->wan_queue_max_bytes, result->wan_dropped);
    fflush(stdout);
}

/* One algorithm, for each number of senders if it knows any; the first line of a collective is what the others are held
 * against. */
static int algorithm_run(const struct settings *settings, enum cw_collective collective, const char *name,
                         double *baseline_ns)
{
    const struct cw_algorithm *algorithm = cw_algorithm_find(collective, name);
    bool takes = algorithm != NULL && (algorithm->takes & CW_TAKES_SENDERS) != 0;
    for (size_t i = 0; i < (takes ? settings->sender_count : 1); i++) {
        struct bench_wan_result result;
        uint32_t senders = takes ? (uint32_t)settings->senders[i] : 0;
        int code = bench_wan_run(&settings->of, collective, name, senders, 0, &result);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
        line_print(settings, collective, name, senders, &result, *baseline_ns);
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

static int collective_run(const struct settings *settings, enum cw_collective collective)
{
    const char *const *names = algorithms_of(collective);
    double baseline_ns = 0;
    int code = APP_EXIT_SUCCESS;
    if (!settings->json) {
        const struct bench_wan_case *of = &settings->of;
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

static bool senders_take(struct settings *settings, const char *text)
{
    settings->sender_count = app_parse_bytes_list(text, settings->senders, SENDERS_LIST_MAX);
    bool right = settings->sender_count > 0;
    for (size_t i = 0; i < settings->sender_count; i++) {
        right = right && settings->senders[i] >= 1 && settings->senders[i] <= RANKS_MAX;
    }
    if (!right) {
        app_error("--senders wants up to 16 numbers from 1 to 64, such as 1,4,8", text, NULL);
    }
    return right;
}

static const char usage[] = "bench wan [OPTION...]\n\n"
                            "Broadcasts and all-reduces across two clusters in virtual time, every byte verified: the "
                            "algorithms of Matsuda et al. (2006) for each number of senders, those\n"
                            "that do not know of clusters, and the overlapped form, beside the paper's cost model (B: "
                            "what links leave for data). The first line\n"
                            "of each collective is the baseline of the ratios.";

int bench_wan(int argc, char **argv)
{
    struct settings settings = {.json = false};
    struct bench_wan_case *of = &settings.of;
    const char *collective = "both";
    const char *senders = "1,4,8,16";
    const char *wan = "known";
    uint64_t ranks;
    int code;
    bench_wan_case_init(of);
    ranks = of->ranks;
    const struct app_option table[] = {
        {"collective", "bcast|allreduce|both", "which one (both)", APP_OPTION_TEXT, &collective, 0, 0, NULL},
        {"size", "BYTES", "of the message (32000000)", APP_OPTION_BYTES, &of->bytes, 1, 1 << 30, NULL},
        {"ranks", "N", "of each cluster (16)", APP_OPTION_COUNT, &ranks, 2, RANKS_MAX, NULL},
        {"senders", "LIST", "numbers of ranks that send across at a time (1,4,8,16)", APP_OPTION_TEXT, &senders, 0, 0,
         NULL},
        {"rate", "RATE", "of hosts' links (1Gbps)", APP_OPTION_RATE, &of->rate_bps, 1000000, 0, NULL},
        {"delay", "TIME", "inside clusters, one way (20us)", APP_OPTION_DURATION, &of->delay_ns, 0, 1000000000, NULL},
        {"wan-rate", "RATE", "between clusters (10Gbps)", APP_OPTION_RATE, &of->wan_rate_bps, 1000000, 0, NULL},
        {"wan-delay", "TIME", "between clusters, one way (10ms)", APP_OPTION_DURATION, &of->wan_delay_ns, 0, 1000000000,
         NULL},
        {"wan-loss", "PERCENT", "of frames between clusters (0)", APP_OPTION_PERCENT, &of->wan_loss, 0, 0, NULL},
        {"wan", "known|found|lan|free", "as for `causeway plan run` (known)", APP_OPTION_TEXT, &wan, 0, 0, NULL},
        {"runs", "N", "after the first, which sets connections up (1)", APP_OPTION_COUNT, &of->runs, 1,
         BENCH_WAN_RUNS_MAX, NULL},
        {"seed", "N", "of everything random (1)", APP_OPTION_COUNT, &of->seed, 0, 0, NULL},
        {"algorithm", "NAME", "just this one of them (all)", APP_OPTION_TEXT, &settings.only, 0, 0, NULL},
        {"csv", "FILE", "also writes the model's times and these as CSV, for `causeway draw --times`", APP_OPTION_TEXT,
         &settings.csv_path, 0, 0, NULL},
        {"json", NULL, "one JSON object a line", APP_OPTION_FLAG, &settings.json, 0, 0, NULL},
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
    if (!senders_take(&settings, senders) || !plan_wan_take(wan, &of->wan)) {
        return APP_EXIT_USAGE;
    }
    bool takes_bcast = both || one == CW_BCAST, takes_allreduce = both || one == CW_ALLREDUCE;
    if (!only_check(&settings, takes_bcast, takes_allreduce) ||
        !app_csv_open("the times", settings.csv_path, csv_header, &settings.csv)) {
        return APP_EXIT_USAGE;
    }
    code = takes_bcast ? collective_run(&settings, CW_BCAST) : APP_EXIT_SUCCESS;
    if (code == APP_EXIT_SUCCESS && takes_allreduce) {
        code = collective_run(&settings, CW_ALLREDUCE);
    }
    return app_csv_close("the times", settings.csv_path, settings.csv) ? code : APP_EXIT_MACHINE;
}
