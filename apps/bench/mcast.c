/* causeway bench mcast: measures collectives by multicast and by unicast algorithms. It starts the MPI program
 * collective_measure with one rank on each simulated or emulated host, and prints its results. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/cli/job.h"
#include "apps/cli/report.h"
#include "control/job/wire.h"

#define SIZE_MAX_BYTES (64u << 20)

static const char usage[] =
    "bench mcast [OPTION...]\n\n"
    "Measures broadcasts, scatters and all-gathers by reliable multicast and by the unicast algorithms. Each host runs "
    "one\n"
    "rank of an MPI program. All receivers wait in their call before the root sends.\n"
    "\n"
    "--fabric sim: simulated hosts, in virtual time, with cpu=0: computation takes no time. Options of the network "
    "follow,\n"
    "as in `causeway run --simulate`: sim,rate=1Gbps,delay=50us,loss=1%. The default is sim,rate=10Gbps,delay=20us.\n"
    "--fabric memif or veth: emulated hosts, on the real clock. Options follow as in `causeway run --emulate HOSTS,`:\n"
    "memif,rate=1Gbps,loss=0.1% or veth,mtu=9000.\n"
    "\n"
    "median, p99.9: until the last rank has returned. first: the first call, which sets up connections. On emulated "
    "hosts\n"
    "also: each: of many calls, one right behind the other; processor: CPU time of all hosts together for one of "
    "these; at\n"
    "root: packets that left its interface for one of these (veth). (chosen): the algorithm that MPI chooses. ratio: "
    "the\n"
    "best unicast median over that of the multicast; above 1, the multicast is faster.\n"
    "\n"
    "--collective scatterv sends blocks to --to of the ranks: by a group of these that is opened before (explicit), by "
    "a\n"
    "group of all that gets counts and data (static), by a group that is opened for each call (dynamic), or one by "
    "one\n"
    "(pairs).";

enum {
    ARGUMENTS = 40,
    TIMEOUT_S = 540,
    NAMES_MAX = 16,
    NAME_BYTES = 48,
    SIZES_BYTES = 400,
    UNICASTS_MAX = 6,
    RUNS_SIMULATED = 5, /* they are nearly the same */
    RUNS_REAL = 200,
    MEMBERS_MAX = 1024,
};

struct kind {
    const char *name;
    const char *multicasts[3]; /* names of the algorithms by multicast; up to the first NULL */
    const char *unicasts[UNICASTS_MAX + 1];
    bool is_chosen; /* the library's own choice is measured as well */
};

static const struct kind kinds[] = {
    {"bcast", {"multicast"}, {"flat", "binomial", "segmented-binomial", "segmented-chain", "van-de-geijn"}, true},
    {"scatter", {"multicast"}, {"flat", "binomial", "pipelined-chain"}, true},
    {"scatterv", {"explicit", "static", "dynamic"}, {"pairs"}, false},
    {"allgather", {"multicasts"}, {"concurrent", "ring", "bruck", "gather-bcast", "phased-barriers", "phased"}, true},
};

struct settings {
    const char *fabric;
    const char *collective;
    const struct kind *kind;
    bool is_simulated;
    uint64_t to;
    uint64_t members;
    uint64_t runs; /* 0: by the fabric */
    struct app_list sizes;
    char network[300]; /* as `causeway run` takes it */
    struct app_report report;
};

/* One algorithm at one size, as collective_measure prints it. */
struct found {
    char name[NAME_BYTES];
    uint64_t bytes;
    double median_us;
    double p999_us;
    double each_us;
    double processor_us;
    double frames;
    double first_us;
};

static const char *fabric_options(const struct settings *settings, const char *name)
{
    size_t length = strlen(name);
    bool is_it = strncmp(settings->fabric, name, length) == 0 && strchr(",", settings->fabric[length]) != NULL;
    return is_it ? settings->fabric + length : NULL;
}

/* ---- The job ---- */

static void sizes_write(const struct settings *settings, char *text)
{
    size_t used = 0;
    for (size_t i = 0; i < settings->sizes.count; i++) {
        used += (size_t)snprintf(text + used, SIZES_BYTES - used, "%s%" PRIu64, i > 0 ? "," : "",
                                 settings->sizes.values[i]);
    }
}

/* All names of algorithms, in the order in which they are measured. */
static size_t names_list(const struct kind *kind, const char *names[NAMES_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof(kind->multicasts) / sizeof(kind->multicasts[0]) && kind->multicasts[i] != NULL; i++) {
        names[count++] = kind->multicasts[i];
    }
    for (size_t i = 0; kind->unicasts[i] != NULL; i++) {
        names[count++] = kind->unicasts[i];
    }
    if (kind->is_chosen) {
        names[count++] = "-";
    }
    return count;
}

/* False: it does not fit. */
static bool network_write(const struct settings *settings, char *text, size_t text_bytes)
{
    const char *options = fabric_options(settings, "sim");
    int length;
    if (options == NULL) {
        length = snprintf(text, text_bytes, "%" PRIu64 ",%s", settings->members, settings->fabric);
    } else if (options[0] == '\0') {
        length = snprintf(text, text_bytes, "cpu=0,rate=10Gbps,delay=20us");
    } else {
        length = snprintf(text, text_bytes, "cpu=0%s", options);
    }
    return length >= 0 && (size_t)length < text_bytes;
}

/* Returns the output of the job, or NULL with an exit code. */
static char *job_run(const struct settings *settings, int *code)
{
    char program[600], count[16], sizes[SIZES_BYTES], runs[24], timeout[16], collective[32];
    const char *names[NAMES_MAX];
    size_t at = 0, length;
    char *arguments[ARGUMENTS] = {"causeway",
                                  "run",
                                  "-n",
                                  count,
                                  settings->is_simulated ? "--simulate" : "--emulate",
                                  (char *)(uintptr_t)settings->network,
                                  "--timeout",
                                  timeout,
                                  program};
    if (!app_job_program("collective_measure", program, sizeof(program))) {
        *code = APP_EXIT_MACHINE;
        return NULL;
    }
    snprintf(count, sizeof(count), "%" PRIu64, settings->members);
    snprintf(timeout, sizeof(timeout), "%d", TIMEOUT_S);
    snprintf(runs, sizeof(runs), "%" PRIu64, settings->runs);
    bool is_to_some = strcmp(settings->kind->name, "scatterv") == 0;
    snprintf(collective, sizeof(collective), is_to_some ? "%s:%" PRIu64 : "%s", settings->kind->name, settings->to);
    sizes_write(settings, sizes);
    while (arguments[at] != NULL) {
        at++;
    }
    if (settings->is_simulated) {
        arguments[at++] = "--alone";
    }
    arguments[at++] = collective;
    arguments[at++] = sizes;
    arguments[at++] = runs;
    size_t name_count = names_list(settings->kind, names);
    for (size_t i = 0; i < name_count; i++) {
        arguments[at++] = (char *)(uintptr_t)names[i];
    }
    return app_job_run(arguments, NULL, settings->network, &length, code);
}

/* ---- What it found ---- */

static bool line_take(char **text, struct found *found)
{
    char *end = strchr(*text, '\n');
    int words = end == NULL ? 0
                            : sscanf(*text, "%47s %" SCNu64 " %lf %lf %lf %lf %lf %lf", found->name, &found->bytes,
                                     &found->median_us, &found->p999_us, &found->each_us, &found->processor_us,
                                     &found->frames, &found->first_us);
    *text = end == NULL ? *text : end + 1;
    return words == 8;
}

static void found_report(struct settings *settings, json_t *line, const struct found *found)
{
    bool is_chosen = strcmp(found->name, "-") == 0;
    const char *name = is_chosen ? "chosen" : found->name;
    const struct app_cell cells[] = {
        app_count(NULL, "bytes", found->bytes),
        app_text(NULL, "algorithm", 20, is_chosen ? "(chosen)" : found->name),
        app_number("median_ns", "median/us", 1, 1e-3, found->median_us * 1e3),
        app_number("p999_ns", "p99.9/us", 1, 1e-3, found->p999_us * 1e3),
        app_number("first_ns", "first/us", 1, 1e-3, found->first_us * 1e3),
        app_number("each_ns", "each/us", 1, 1e-3, found->each_us * 1e3),
        app_number("processor_ns", "processor/us", 1, 1e-3, found->processor_us * 1e3),
        app_number("root_frames", "at root", 1, 1, found->frames),
    };
    size_t count = sizeof(cells) / sizeof(cells[0]);
    app_report_part(&settings->report, line, name, cells, settings->is_simulated ? count - 3 : count);
}

static void size_report(struct settings *settings, const struct found *found, size_t count)
{
    size_t best = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; settings->kind->unicasts[k] != NULL; k++) {
            bool is_unicast = strcmp(settings->kind->unicasts[k], found[i].name) == 0;
            best = is_unicast && (best == 0 || found[i].median_us < found[best].median_us) ? i : best;
        }
    }
    const struct app_cell head[] = {
        app_count("members", NULL, settings->members),
        app_text("collective", NULL, 0, settings->kind->name),
        app_text("fabric", NULL, 0, settings->fabric),
        app_count("bytes", NULL, found[0].bytes),
    };
    const struct app_cell tail[] = {
        app_text("best_unicast", "best unicast", 0, found[best].name),
        app_number("ratio_latency_unicast", "ratio", 2, 1, found[best].median_us / found[0].median_us),
        app_when(!settings->is_simulated, app_number("ratio_processor_unicast", "processors", 2, 1,
                                                     found[best].processor_us / found[0].processor_us)),
    };
    json_t *line = APP_REPORT_BEGIN(&settings->report, head);
    for (size_t i = 0; i < count; i++) {
        found_report(settings, line, &found[i]);
    }
    APP_REPORT_END(&settings->report, line, tail);
}

static int all_print(struct settings *settings, char *text)
{
    const char *names[NAMES_MAX];
    size_t count = names_list(settings->kind, names);
    if (!settings->report.json) {
        printf("%s, %" PRIu64 " hosts, %s, %" PRIu64 " messages of each size\n", settings->kind->name,
               settings->members, settings->fabric, settings->runs);
    }
    for (size_t size = 0; size < settings->sizes.count; size++) {
        struct found found[NAMES_MAX];
        for (size_t i = 0; i < count; i++) {
            if (!line_take(&text, &found[i])) {
                app_error("the measuring job wrote what cannot be understood", text, NULL);
                return APP_EXIT_INTERNAL;
            }
        }
        size_report(settings, found, count);
    }
    return APP_EXIT_SUCCESS;
}

/* ---- Options ---- */

static int usage_refuse(const char *what, const char *where, const char *todo)
{
    app_error(what, where, todo);
    return APP_EXIT_USAGE;
}

/* Checks values that the table of options cannot check. */
static int settings_check(struct settings *settings)
{
    settings->is_simulated = fabric_options(settings, "sim") != NULL;
    bool is_real = fabric_options(settings, "memif") != NULL || fabric_options(settings, "veth") != NULL;
    if (!settings->is_simulated && !is_real) {
        return usage_refuse("no such fabric", settings->fabric, "there are sim, memif and veth");
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        settings->kind = strcmp(kinds[i].name, settings->collective) == 0 ? &kinds[i] : settings->kind;
    }
    if (settings->kind == NULL) {
        return usage_refuse("no such collective", settings->collective,
                            "there are bcast, scatter, scatterv and allgather");
    }
    if (settings->to >= settings->members && strcmp(settings->kind->name, "scatterv") == 0) {
        return usage_refuse("scatterv sends to fewer ranks than there are members", "--to", NULL);
    }
    if (is_real && settings->members > CW_EMULATED_RANKS_MAX) {
        return usage_refuse("too many members for emulated hosts", "--members", "63 are possible");
    }
    if (!network_write(settings, settings->network, sizeof(settings->network))) {
        return usage_refuse("too long", "--fabric", "a network takes up to 290 characters; a topology file takes more");
    }
    if (settings->runs == 0) {
        settings->runs = is_real ? RUNS_REAL : RUNS_SIMULATED;
    }
    return APP_EXIT_SUCCESS;
}

int bench_mcast(int argc, char **argv)
{
    struct settings settings = {
        .sizes = {.values = {1, 1 << 10, 10 << 10, 64 << 10, 1 << 20}, .count = 5},
        .fabric = "sim",
        .collective = "bcast",
        .members = 9,
        .to = 5,
    };
    const struct app_option table[] = {
        OPTION_TEXT("fabric", "sim|memif|veth[,...]", "the network (sim)", &settings.fabric),
        OPTION_TEXT("collective", "bcast|scatter|scatterv|allgather", "which one (bcast)", &settings.collective),
        OPTION_COUNT("members", "of the group, the root among them (9)", &settings.members, 2, MEMBERS_MAX),
        OPTION_COUNT("to", "scatterv: ranks that get a block (5)", &settings.to, 1, MEMBERS_MAX - 1),
        OPTION_SIZES("sizes", "of messages or blocks, in bytes (1,1K,10K,64K,1M)", &settings.sizes, 1, SIZE_MAX_BYTES),
        OPTION_COUNT("runs", "messages of each size (sim: 5; others: 200)", &settings.runs, 1, 10000),
        OPTION_JSON(" a size", &settings.report.json),
        {0},
    };
    int code;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    code = settings_check(&settings);
    char *text = code == APP_EXIT_SUCCESS ? job_run(&settings, &code) : NULL;
    if (text != NULL) {
        code = all_print(&settings, text);
    }
    free(text);
    return code;
}
