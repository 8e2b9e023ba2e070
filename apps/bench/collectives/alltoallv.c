/* causeway bench alltoallv: options, and what is told. */
#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/collectives/alltoallv.h"
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
    struct app_list sizes;
    char algorithms[ALGORITHMS_MAX][NAME_BYTES];
    size_t algorithm_count;
    bool is_random;
    struct app_report report;
    struct bench_alltoallv_case of;
};

/* Pairs have no phases, and all levels are alike. */
static void line_report(struct settings *settings, uint64_t bytes, const char *name,
                        const struct bench_alltoallv_line *line, json_t *object)
{
    bool phases = line->phases > 0;
    const struct app_cell cells[] = {
        app_count(NULL, "bytes", bytes),
        app_text(NULL, "way", 26, name),
        app_when(phases, app_count("phases", "phases", line->phases)),
        app_when(phases, app_number("schedule_ns", "scheduling/us", 1, 1e-3, line->schedule_ns)),
        app_when(phases, app_number("level1_median_ns", "level 1/us", 1, 1e-3, line->level_ns[1])),
        app_when(phases, app_number("level2_median_ns", "level 2/us", 1, 1e-3, line->level_ns[2])),
        app_number(phases ? "level3_median_ns" : "median_ns", "level 3/us", 1, 1e-3, line->level_ns[3]),
    };
    APP_REPORT_PART(&settings->report, object, name, cells);
}

/* The counts are brought to all: the same for all sizes. */
static int exchange_run(struct settings *settings)
{
    struct bench_mcast_result result;
    int code = bench_alltoallv_exchange(&settings->of, &result);
    settings->of.exchange_ns = result.median_ns;
    if (code == APP_EXIT_SUCCESS && !settings->report.json) {
        printf(
            "%llu members on %llu switches; the counts, %llu bytes of each member, are with all after %.1f us (%s)\n",
            (unsigned long long)settings->members, (unsigned long long)settings->switches,
            (unsigned long long)(2 * settings->members * sizeof(uint64_t)), result.median_ns / 1e3, result.name);
    }
    return code;
}

static int size_run(struct settings *settings, uint64_t bytes)
{
    settings->of.network.bytes = bytes;
    const struct app_cell head[] = {
        app_count("members", NULL, settings->members),
        app_count("switches", NULL, settings->switches),
        app_text("pattern", NULL, 0, settings->is_random ? "random" : "equal"),
        app_count("bytes", NULL, bytes),
        app_number("counts_exchange_ns", NULL, 0, 1, settings->of.exchange_ns),
    };
    json_t *object = APP_REPORT_BEGIN(&settings->report, head);
    double best_pairs_ns = 0, best_ns = 0;
    int code = APP_EXIT_SUCCESS;
    for (size_t i = 0; i < PAIRS + settings->algorithm_count && code == APP_EXIT_SUCCESS; i++) {
        bool has_phases = i >= PAIRS;
        const char *name = has_phases ? settings->algorithms[i - PAIRS] : pairs[i];
        struct bench_alltoallv_line line;
        code = bench_alltoallv_run(&settings->of, name, &line);
        if (code != APP_EXIT_SUCCESS) {
            json_decref(object);
            return code;
        }
        double *best = has_phases ? &best_ns : &best_pairs_ns;
        double time_ns = line.level_ns[1];
        *best = *best == 0 || time_ns < *best ? time_ns : *best;
        line_report(settings, bytes, name, &line, object);
    }
    const struct app_cell tail[] = {app_number("ratio_pairs_level1", "ratio", 2, 1, best_pairs_ns / best_ns)};
    APP_REPORT_END(&settings->report, object, tail);
    return APP_EXIT_SUCCESS;
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

static int settings_check(struct settings *settings, const char *algorithms)
{
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
    const char *algorithms = "all-to-all-based,greedy";
    settings = (struct settings){
        .members = 16,
        .switches = 1,
        .sizes = {.values = {2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10}, .count = 6},
        .of = {.network = {.runs = 10, .rate_bps = 10000000000ull, .delay_ns = 20000, .seed = 1},
               .schedule_ns = BENCH_ALLTOALLV_MEASURED},
    };
    const struct app_option table[] = {
        OPTION_COUNT("members", "hosts (16)", &settings.members, 2, BENCH_ALLTOALLV_MEMBERS_MAX),
        OPTION_SIZES("sizes", "of messages, in bytes (2K,4K,8K,16K,32K,64K)", &settings.sizes, 1, 1 << 20),
        OPTION_FLAG("random", "lengths at random instead; told as 0 bytes", &settings.is_random),
        OPTION_TEXT("algorithms", "LIST",
                    "that make phases (all-to-all-based,greedy); -barriers behind these two keeps them apart",
                    &algorithms),
        OPTION_BYTES("threshold", "messages below it share one last phase (0)", &settings.of.threshold_bytes, 0, 0),
        OPTION_TIME("schedule-time", "that scheduling takes (measured)", &settings.of.schedule_ns, 0, 10000000000ull),
        OPTION_COUNT("runs", "of each, of which the median is told (10)", &settings.of.network.runs, 1,
                     BENCH_MCAST_RUNS_MAX),
        OPTION_PERCENT("loss", "of frames, at random (0)", &settings.of.network.loss),
        OPTION_RATE("rate", "of the links (10Gbps)", &settings.of.network.rate_bps, 1000000),
        OPTION_TIME("delay", "one way, end to end (20us)", &settings.of.network.delay_ns, 0, 10000000000ull),
        OPTION_COUNT("switches", "members in equal blocks, the other switches joined to the first (1)",
                     &settings.switches, 1, 64),
        OPTION_RATE("uplink", "of the links between switches (as the others)", &settings.of.network.uplink_rate_bps,
                    1000000),
        OPTION_COUNT("seed", "of everything random (1)", &settings.of.network.seed, 0, 0),
        OPTION_JSON(" a size", &settings.report.json),
        {0},
    };
    int code;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    code = settings_check(&settings, algorithms);
    code = code == APP_EXIT_SUCCESS ? exchange_run(&settings) : code;
    if (code == APP_EXIT_SUCCESS && settings.is_random) {
        return size_run(&settings, BENCH_ALLTOALLV_RANDOM);
    }
    for (size_t i = 0; i < settings.sizes.count && code == APP_EXIT_SUCCESS; i++) {
        code = size_run(&settings, settings.sizes.values[i]);
    }
    return code;
}
