/* causeway bench alltoallv: options, and what is told. */
#include <stdio.h>
#include <string.h>

#include "apps/bench/alltoallv.h"
#include "apps/bench/bench.h"
#include "apps/cli/cli.h"

static const char usage[] =
    "bench alltoallv [OPTION...]\n\n"
    "Many to many by pairs (direct, rotated: all at once), and in phases at the three levels of mpi/COMPILED.md, on\n"
    "hosts of one or a few simulated switches, in virtual time. Level 3: the phases alone. Level 2: they are "
    "scheduled\n"
    "before, which takes --schedule-time of each rank; it is measured on this machine if not given. Level 1: before\n"
    "that, the counts are brought to all by an all-gather. ratio: the better pairs over level 1, so above 1 the\n"
    "exchange, the scheduling and the phases pay. --random: of all pairs two thirds have 64 KiB for each other, a\n"
    "twelfth 16 KiB, a quarter 100 bytes.";

enum { PAIRS = 2, ALGORITHMS_MAX = 8, NAME_BYTES = 40 };

static const char *const pairs[PAIRS] = {"direct", "rotated"};

struct settings {
    uint64_t members;
    uint64_t switches;
    uint64_t sizes[BENCH_SIZES_MAX];
    size_t size_count;
    char algorithms[ALGORITHMS_MAX][NAME_BYTES];
    size_t algorithm_count;
    bool is_random;
    bool json;
    struct bench_alltoallv_case of;
};

/* ---- what is told ---- */

static void line_tell(const struct settings *settings, uint64_t bytes, const char *name,
                      const struct bench_alltoallv_line *line, json_t *object)
{
    if (!settings->json && line->phases == 0) {
        printf("%8llu  %-26s %6s %13s %12s %12s %12.1f\n", (unsigned long long)bytes, name, "", "", "", "",
               line->level_ns[3] / 1e3);
    } else if (!settings->json) {
        printf("%8llu  %-26s %6u %13.1f %12.1f %12.1f %12.1f\n", (unsigned long long)bytes, name, line->phases,
               line->schedule_ns / 1e3, line->level_ns[1] / 1e3, line->level_ns[2] / 1e3, line->level_ns[3] / 1e3);
    } else if (line->phases == 0) {
        json_t *one = app_json_new();
        app_json_number(one, "median_ns", line->level_ns[3]);
        app_json_child(object, name, one);
    } else {
        json_t *one = app_json_new();
        app_json_count(one, "phases", line->phases);
        app_json_number(one, "schedule_ns", line->schedule_ns);
        app_json_number(one, "level1_median_ns", line->level_ns[1]);
        app_json_number(one, "level2_median_ns", line->level_ns[2]);
        app_json_number(one, "level3_median_ns", line->level_ns[3]);
        app_json_child(object, name, one);
    }
}

static json_t *object_begin(const struct settings *settings, uint64_t bytes)
{
    json_t *object = app_json_new();
    app_json_count(object, "members", settings->members);
    app_json_count(object, "switches", settings->switches);
    app_json_text(object, "pattern", settings->is_random ? "random" : "equal");
    app_json_count(object, "bytes", bytes);
    app_json_number(object, "counts_exchange_ns", settings->of.exchange_ns);
    return object;
}

/* The counts are brought to all: the same for all sizes. */
static int exchange_run(struct settings *settings)
{
    struct bench_mcast_result result;
    int code = bench_alltoallv_exchange(&settings->of, &result);
    settings->of.exchange_ns = result.median_ns;
    if (code == APP_EXIT_SUCCESS && !settings->json) {
        printf("%llu members on %llu switches; the counts, %llu bytes of each member, are with all after %.1f us (%s)\n"
               "   bytes  way                        phases scheduling/us   level 1/us   level 2/us   level 3/us\n",
               (unsigned long long)settings->members, (unsigned long long)settings->switches,
               (unsigned long long)(2 * settings->members * sizeof(uint64_t)), result.median_ns / 1e3, result.name);
    }
    return code;
}

static int size_run(struct settings *settings, uint64_t bytes)
{
    settings->of.network.bytes = bytes;
    json_t *object = settings->json ? object_begin(settings, bytes) : NULL;
    double best_pairs_ns = 0, best_ns = 0;
    int code = APP_EXIT_SUCCESS;
    for (size_t i = 0; i < PAIRS + settings->algorithm_count && code == APP_EXIT_SUCCESS; i++) {
        bool has_phases = i >= PAIRS;
        const char *name = has_phases ? settings->algorithms[i - PAIRS] : pairs[i];
        struct bench_alltoallv_line line;
        code = bench_alltoallv_run(&settings->of, name, &line);
        if (code != APP_EXIT_SUCCESS) {
            break;
        }
        double *best = has_phases ? &best_ns : &best_pairs_ns;
        double time_ns = line.level_ns[1];
        *best = *best == 0 || time_ns < *best ? time_ns : *best;
        line_tell(settings, bytes, name, &line, object);
    }
    if (code == APP_EXIT_SUCCESS && settings->json) {
        app_json_number(object, "ratio_pairs_level1", best_pairs_ns / best_ns);
        app_json_emit(object);
    } else if (code == APP_EXIT_SUCCESS) {
        printf("%8llu  ratio %.2f\n\n", (unsigned long long)bytes, best_pairs_ns / best_ns);
    } else {
        json_decref(object);
    }
    return code;
}

/* ---- options ---- */

static bool algorithms_read(struct settings *settings, const char *list)
{
    for (settings->algorithm_count = 0; settings->algorithm_count < ALGORITHMS_MAX; list++) {
        size_t length = strcspn(list, ",");
        char *name = settings->algorithms[settings->algorithm_count++];
        snprintf(name, NAME_BYTES, "%.*s", (int)(length < NAME_BYTES ? length : NAME_BYTES - 1), list);
        list += length;
        if (!bench_alltoallv_has_phases(name)) {
            return false;
        }
        if (*list == '\0') {
            return true;
        }
    }
    return false;
}

static int settings_check(struct settings *settings, const char *sizes, const char *algorithms)
{
    bool is_good = true;
    settings->size_count = app_parse_bytes_list(sizes, settings->sizes, BENCH_SIZES_MAX);
    for (size_t i = 0; i < settings->size_count; i++) {
        is_good = is_good && settings->sizes[i] >= 1 && settings->sizes[i] <= 1 << 20;
    }
    if (settings->size_count == 0 || !is_good) {
        app_error("--sizes wants up to 32 sizes from 1 to 1M, such as 2K,64K", sizes, NULL);
        return APP_EXIT_USAGE;
    }
    if (!algorithms_read(settings, algorithms)) {
        app_error("--algorithms wants up to 8 of all-to-all-based, greedy, colouring, splitting", algorithms,
                  "-barriers may stand behind the first two");
        return APP_EXIT_USAGE;
    }
    if (settings->switches > settings->members) {
        app_error("more switches than members", NULL, NULL);
        return APP_EXIT_USAGE;
    }
    settings->of.network.members = (uint32_t)settings->members;
    settings->of.network.switches = (uint32_t)settings->switches;
    return APP_EXIT_SUCCESS;
}

int bench_alltoallv(int argc, char **argv)
{
    static struct settings settings;
    const char *sizes = "2K,4K,8K,16K,32K,64K", *algorithms = "all-to-all-based,greedy";
    settings = (struct settings){
        .members = 16,
        .switches = 1,
        .of = {.network = {.runs = 10, .rate_bps = 10000000000ull, .delay_ns = 20000, .seed = 1},
               .schedule_ns = BENCH_ALLTOALLV_MEASURED},
    };
    const struct app_option table[] = {
        {"members", "N", "hosts (16)", APP_OPTION_COUNT, &settings.members, 2, BENCH_ALLTOALLV_MEMBERS_MAX, NULL},
        {"sizes", "LIST", "of messages, in bytes (2K,4K,8K,16K,32K,64K)", APP_OPTION_TEXT, &sizes, 0, 0, NULL},
        {"random", NULL, "lengths at random instead; told as 0 bytes", APP_OPTION_FLAG, &settings.is_random, 0, 0,
         NULL},
        {"algorithms", "LIST",
         "that make phases (all-to-all-based,greedy); -barriers behind these two keeps them apart", APP_OPTION_TEXT,
         &algorithms, 0, 0, NULL},
        {"threshold", "BYTES", "messages below it share one last phase (0)", APP_OPTION_BYTES,
         &settings.of.threshold_bytes, 0, 0, NULL},
        {"schedule-time", "TIME", "that scheduling takes (measured)", APP_OPTION_DURATION, &settings.of.schedule_ns, 0,
         10000000000ull, NULL},
        {"runs", "N", "of each, of which the median is told (10)", APP_OPTION_COUNT, &settings.of.network.runs, 1,
         BENCH_MCAST_RUNS_MAX, NULL},
        {"loss", "PERCENT", "of frames, at random (0)", APP_OPTION_PERCENT, &settings.of.network.loss, 0, 0, NULL},
        {"rate", "RATE", "of the links (10Gbps)", APP_OPTION_RATE, &settings.of.network.rate_bps, 1000000, 0, NULL},
        {"delay", "TIME", "one way, end to end (20us)", APP_OPTION_DURATION, &settings.of.network.delay_ns, 0,
         10000000000ull, NULL},
        {"switches", "N", "members in equal blocks, the other switches joined to the first (1)", APP_OPTION_COUNT,
         &settings.switches, 1, 64, NULL},
        {"uplink", "RATE", "of the links between switches (as the others)", APP_OPTION_RATE,
         &settings.of.network.uplink_rate_bps, 1000000, 0, NULL},
        {"seed", "N", "of everything random (1)", APP_OPTION_COUNT, &settings.of.network.seed, 0, 0, NULL},
        {"json", NULL, "one JSON object a size", APP_OPTION_FLAG, &settings.json, 0, 0, NULL},
        {0},
    };
    int code;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    code = settings_check(&settings, sizes, algorithms);
    code = code == APP_EXIT_SUCCESS ? exchange_run(&settings) : code;
    if (code == APP_EXIT_SUCCESS && settings.is_random) {
        return size_run(&settings, BENCH_ALLTOALLV_RANDOM);
    }
    for (size_t i = 0; i < settings.size_count && code == APP_EXIT_SUCCESS; i++) {
        code = size_run(&settings, settings.sizes[i]);
    }
    return code;
}
