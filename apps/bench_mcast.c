/* causeway bench mcast: one to all, by multicast and by puts from one to one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/apps.h"
#include "apps/bench.h"
#include "apps/bench_mcast.h"

static const char usage[] =
    "bench mcast --fabric sim [options]\n"
    "Broadcasts of one message at a time to a group, with the tree of acknowledgements and with flat ones, beside the\n"
    "unicast algorithms, on hosts of one simulated switch, in virtual time. A time lasts until the last receiver has "
    "the\n"
    "message and the root may use its memory again. ratio: the best unicast median over ours, so above 1 multicast is "
    "ahead.";

/* Beside what the model chooses. */
static const char *const unicasts[] = {"flat", "binomial", "segmented-binomial", "segmented-chain", "van-de-geijn"};

enum { UNICASTS = sizeof(unicasts) / sizeof(unicasts[0]) };

struct settings {
    const char *fabric;
    uint64_t sizes[BENCH_SIZES_MAX];
    size_t size_count;
    uint64_t members;
    uint64_t switches;
    bool json;
    struct bench_mcast_case of;
};

void bench_mcast_times(double *times, uint64_t count, struct bench_mcast_result *result)
{
    result->median_ns = bench_median(times, count);
    result->p999_ns = times[count - 1 - count / 1000];
}

static void result_print(const struct settings *settings, const struct bench_mcast_result *result)
{
    if (settings->json) {
        return;
    }
    printf("%8llu  %-20s %12.1f %12.1f %10.1f", (unsigned long long)settings->of.bytes, result->name,
           result->median_ns / 1e3, result->p999_ns / 1e3, result->packets);
    if (result->data_packets > 0) {
        printf(" %8.3f %7.1f %7.3f %7.3f %7.3f", result->root_packets, result->acks_at_root, result->naks_at_root,
               result->repairs_to_all, result->repairs_to_one);
    }
    printf("\n");
}

static void json_times(json_t *line, const struct bench_mcast_result *result)
{
    json_t *one = app_json_new();
    app_json_number(one, "median_ns", result->median_ns);
    app_json_number(one, "p999_ns", result->p999_ns);
    app_json_number(one, "packets", result->packets);
    if (result->data_packets > 0) {
        app_json_number(one, "root_packets_per_data_packet", result->root_packets);
        app_json_number(one, "acks_at_root", result->acks_at_root);
        app_json_number(one, "naks_at_root", result->naks_at_root);
        app_json_number(one, "repairs_to_all", result->repairs_to_all);
        app_json_number(one, "repairs_to_one", result->repairs_to_one);
    }
    app_json_child(line, result->name, one);
}

static void size_print(const struct settings *settings, const struct bench_mcast_result *results, uint32_t count,
                       uint32_t best)
{
    double ratio = results[best].median_ns / results[0].median_ns;
    double goodput_bps = (double)settings->of.bytes * 8e9 / results[0].median_ns;
    if (!settings->json) {
        printf("%8llu  ratio %.2f (best unicast: %s), goodput %.1f Mb/s to each\n\n",
               (unsigned long long)settings->of.bytes, ratio, results[best].name, goodput_bps / 1e6);
        return;
    }
    json_t *line = app_json_new();
    app_json_count(line, "members", settings->of.members);
    app_json_count(line, "bytes", settings->of.bytes);
    app_json_number(line, "loss", settings->of.loss);
    for (uint32_t i = 0; i < count; i++) {
        json_times(line, &results[i]);
    }
    app_json_text(line, "best_unicast", results[best].name);
    app_json_number(line, "ratio_latency_unicast", ratio);
    app_json_number(line, "goodput_bps", goodput_bps);
    app_json_emit(line);
}

/* All contenders for one size. */
static int size_run(const struct settings *settings)
{
    struct bench_mcast_result results[2 + UNICASTS + 1];
    uint32_t count = 2, best = 2;
    int code = bench_mcast_group(&settings->of, 0, &results[0]);
    if (code == APP_EXIT_SUCCESS) {
        code = bench_mcast_group(&settings->of, settings->of.members, &results[1]);
    }
    for (uint32_t i = 0; i <= UNICASTS && code == APP_EXIT_SUCCESS; i++) {
        struct bench_mcast_result *result = &results[count];
        code = bench_mcast_unicast(&settings->of, i < UNICASTS ? unicasts[i] : NULL, result);
        bool is_new = result->median_ns > 0;
        for (uint32_t known = 2; known < count; known++) {
            is_new = is_new && strcmp(results[known].name, result->name) != 0;
        }
        if (is_new) {
            best = result->median_ns < results[best].median_ns || count == 2 ? count : best;
            count++;
        }
    }
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    for (uint32_t i = 0; i < count; i++) {
        result_print(settings, &results[i]);
    }
    size_print(settings, results, count, best);
    return APP_EXIT_SUCCESS;
}

int bench_mcast(int argc, char **argv)
{
    struct settings settings = {
        .fabric = "sim",
        .members = 9,
        .switches = 1,
        .of = {.runs = 200, .rate_bps = 10000000000ull, .delay_ns = 20000, .seed = 1},
    };
    const char *sizes = "1,1K,10K,64K,1M";
    const struct app_option table[] = {
        {"fabric", "NAME", "the network: sim", APP_OPTION_TEXT, &settings.fabric, 0, 0, NULL},
        {"members", "N", "of the group, the root among them (9)", APP_OPTION_COUNT, &settings.members, 2, 1024, NULL},
        {"sizes", "LIST", "of messages, in bytes (1,1K,10K,64K,1M)", APP_OPTION_TEXT, &sizes, 0, 0, NULL},
        {"runs", "N", "messages of each size (200)", APP_OPTION_COUNT, &settings.of.runs, 1, BENCH_MCAST_RUNS_MAX,
         NULL},
        {"loss", "PERCENT", "of frames, at random (0)", APP_OPTION_PERCENT, &settings.of.loss, 0, 0, NULL},
        {"rate", "RATE", "of the links (10Gbps)", APP_OPTION_RATE, &settings.of.rate_bps, 1000000, 0, NULL},
        {"delay", "TIME", "one way, end to end (20us)", APP_OPTION_DURATION, &settings.of.delay_ns, 0, 10000000000ull,
         NULL},
        {"switches", "N", "members in equal blocks, the other switches joined to the first (1)", APP_OPTION_COUNT,
         &settings.switches, 1, 64, NULL},
        {"uplink", "RATE", "of the links between switches (as the others)", APP_OPTION_RATE,
         &settings.of.uplink_rate_bps, 1000000, 0, NULL},
        {"seed", "N", "of everything random (1)", APP_OPTION_COUNT, &settings.of.seed, 0, 0, NULL},
        {"json", NULL, "one JSON object a size", APP_OPTION_FLAG, &settings.json, 0, 0, NULL},
        {0},
    };
    int code;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (settings.switches > settings.members) {
        app_error("--switches wants at most as many as there are members", NULL, NULL);
        return APP_EXIT_USAGE;
    }
    if (strcmp(settings.fabric, "sim") != 0) {
        app_error("no such fabric", settings.fabric, "there is sim; real ones are to come");
        return APP_EXIT_USAGE;
    }
    settings.size_count = app_parse_bytes_list(sizes, settings.sizes, BENCH_SIZES_MAX);
    settings.of.members = (uint32_t)settings.members;
    settings.of.switches = (uint32_t)settings.switches;
    settings.of.uplink_rate_bps = settings.of.uplink_rate_bps > 0 ? settings.of.uplink_rate_bps : settings.of.rate_bps;
    code = settings.size_count == 0 ? APP_EXIT_USAGE : APP_EXIT_SUCCESS;
    for (size_t i = 0; i < settings.size_count && code == APP_EXIT_SUCCESS; i++) {
        code = settings.sizes[i] < 1 || settings.sizes[i] > 64 << 20 ? APP_EXIT_USAGE : APP_EXIT_SUCCESS;
    }
    if (code != APP_EXIT_SUCCESS) {
        app_error("--sizes wants up to 32 sizes from 1 to 64M, such as 1,10K,1M", sizes, NULL);
        return code;
    }
    if (!settings.json) {
        printf("%llu members, %.3g %% loss, %llu messages of each size\n   bytes  way                    median/us     "
               "p99.9/us    packets root/data    acks    naks  to all  to one\n",
               (unsigned long long)settings.members, settings.of.loss * 100, (unsigned long long)settings.of.runs);
    }
    for (size_t i = 0; i < settings.size_count && code == APP_EXIT_SUCCESS; i++) {
        settings.of.bytes = settings.sizes[i];
        code = size_run(&settings);
    }
    return code;
}
