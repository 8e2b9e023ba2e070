/* causeway bench mcast: collectives by multicast and by puts from one to one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/mcast/mcast.h"
#include "apps/cli/cli.h"

#define SIZE_MAX_BYTES (64u << 20)

static const char usage[] =
    "bench mcast [OPTION...]\n\n"
    "Broadcasts one message at a time (or scatters, or gathers to all) by multicast and by the unicast algorithms, on\n"
    "the real clock or in virtual time.\n"
    "\n"
    "--fabric memif or veth: processes on emulated hosts, with MPI; what follows `--emulate HOSTS,` of causeway run,\n"
    "such as memif,rate=1Gbps,loss=0.1% or veth,mtu=9000. Receivers wait before the root sends. median, p99.9: until\n"
    "the last one has it; each: of many calls, one right behind the other; processor: of all hosts together, each;\n"
    "at root: frames that left its interface, each (veth; with memif `causeway run --explain` counts packets).\n"
    "(chosen): what MPI takes by itself. bcast, scatter and allgather; 2 to 63 members, 5 runs or more.\n"
    "\n"
    "--fabric sim: hosts of one or a few simulated switches. With the tree of acknowledgements and with flat ones\n"
    "(up to 17 members they are the same). A time lasts until the last\n"
    "receiver has the message and its sender may use its memory again. arrived: until the last receiver has it.\n"
    "ratio: the best unicast median over ours, so above 1 multicast is ahead. packets: by all hosts, per message.\n"
    "handled: sent and received (packets_handled; packets_handled_busiest: by the host that has most): what it takes\n"
    "of processors, of which virtual time knows nothing.\n"
    "--collective scatter: all blocks in one message, each member takes its own. --collective allgather: a broadcast\n"
    "by each member, one after the other, or all at once. --collective scatterv: blocks for --to of the members; by a\n"
    "group of these and the root that is there already (explicit: the data only), by the group of all (static: "
    "counts,\n"
    "then the data), or by a group that is opened for it, used once and closed (dynamic).\n"
    "--beside unicast: what a multicast costs others. Half of the members are a group, to which one of them sends all\n"
    "the time; two others (outside; then two of the group: inside) put as much as they can from one to the other, or\n"
    "send 8 bytes to and fro. goodput, latency: of these two; share: of the goodput with nothing beside it; group: "
    "what\n"
    "each of the group gets meanwhile. 8 members or more; only with --fabric sim.\n\n"
    "Half a minute with --fabric sim; sooner: --runs 20.";

enum { BESIDE_MEMBERS_LEAST = 8 };
#define RATE_BPS  10000000000ull
#define DELAY_NS  20000
#define SEED      1
#define LOSS_MOST 0.5

enum { UNICASTS_MAX = 6 };

/* Beside what the model chooses. */
struct kind {
    const char *name;
    enum cw_collective collective;
    const char *multicast; /* the algorithm's name in MPI; NULL: it has none */
    bool is_to_some;       /* only the root knows who gets something: the model, which has to know, does not choose */
    const char *unicasts[UNICASTS_MAX + 1];
};

static const struct kind kinds[] = {
    {"bcast",
     CW_BCAST,
     "multicast",
     false,
     {"flat", "binomial", "segmented-binomial", "segmented-chain", "van-de-geijn"}},
    {"scatter", CW_SCATTER, "multicast", false, {"flat", "binomial", "pipelined-chain"}},
    {"scatterv", CW_SCATTER, NULL, true, {"flat"}},
    {"allgather",
     CW_ALLGATHER,
     "multicasts",
     false,
     {"concurrent", "ring", "bruck", "gather-bcast", "phased-barriers", "phased"}},
};

static const struct kind *kind_find(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

struct settings {
    const char *fabric;
    const char *collective;
    const struct kind *kind;
    uint64_t to;
    struct app_list sizes;
    uint64_t members;
    uint64_t switches;
    struct app_report *report;
    const char *beside; /* NULL: nothing */
    struct bench_mcast_case of;
};

void bench_mcast_times(double *times, uint64_t count, struct bench_mcast_result *result)
{
    result->median_ns = cw_statistics_median(times, count);
    result->p999_ns = times[count - 1 - count / 1000];
}

static void result_report(const struct settings *settings, json_t *line, const struct bench_mcast_result *result)
{
    bool has_root = result->data_packets > 0;
    const struct app_cell cells[] = {
        app_count(NULL, "bytes", settings->of.bytes),
        app_text(NULL, "way", 20, result->name),
        app_number("median_ns", "median/us", 1, 1e-3, result->median_ns),
        app_number("p999_ns", "p99.9/us", 1, 1e-3, result->p999_ns),
        app_when(result->arrived_ns > 0, app_number("arrived_median_ns", "arrived/us", 1, 1e-3, result->arrived_ns)),
        app_number("packets", "packets", 1, 1, result->packets),
        app_number("packets_handled", "handled", 1, 1, result->handled),
        app_number("packets_handled_busiest", "busiest", 1, 1, result->handled_busiest),
        app_when(has_root, app_number("root_packets_per_data_packet", "root/data", 3, 1, result->root_packets)),
        app_when(has_root, app_number("acks_at_root", "acks", 1, 1, result->acks_at_root)),
        app_when(has_root, app_number("naks_at_root", "naks", 3, 1, result->naks_at_root)),
        app_when(has_root, app_number("repairs_to_all", "to all", 3, 1, result->repairs_to_all)),
        app_when(has_root, app_number("repairs_to_one", "to one", 3, 1, result->repairs_to_one)),
    };
    APP_REPORT_PART(settings->report, line, result->name, cells);
}

static void size_report(const struct settings *settings, const struct bench_mcast_result *results, uint32_t count,
                        uint32_t best)
{
    double best_ns = results[best].median_ns;
    bool has_at_once = settings->of.collective == CW_ALLGATHER;
    double blocks = has_at_once ? (double)(settings->of.members - 1) : 1;
    const struct app_cell head[] = {
        app_count("members", NULL, settings->of.members),
        app_text("collective", NULL, 0, settings->kind->name),
        app_when(settings->kind->is_to_some, app_count("to", NULL, settings->to)),
        app_count("switches", NULL, settings->switches),
        app_count("bytes", NULL, settings->of.bytes),
        app_number("loss", NULL, 0, 1, settings->of.loss),
    };
    const struct app_cell tail[] = {
        app_text("best_unicast", "best unicast", 0, results[best].name),
        app_number("ratio_latency_unicast", "ratio", 2, 1, best_ns / results[0].median_ns),
        app_when(has_at_once, app_number("ratio_latency_unicast_at_once", "at once: ratio", 2, 1,
                                         has_at_once ? best_ns / results[2].median_ns : 0)),
        app_number("goodput_bps", "goodput to each, Mb/s", 1, 1e-6,
                   blocks * (double)settings->of.bytes * 8e9 / results[0].median_ns),
    };
    json_t *line = APP_REPORT_BEGIN(settings->report, head);
    for (uint32_t i = 0; i < count; i++) {
        result_report(settings, line, &results[i]);
    }
    APP_REPORT_END(settings->report, line, tail);
}

/* By multicast; for an all-gather at once, too; to some by each kind of group. */
static int groups_run(const struct settings *settings, struct bench_mcast_result *results, uint32_t *count)
{
    if (settings->kind->is_to_some) {
        int status = APP_EXIT_SUCCESS;
        for (*count = 0; status == APP_EXIT_SUCCESS && *count <= BENCH_MCAST_DYNAMIC; (*count)++) {
            status = bench_mcast_scatterv(&settings->of, (enum bench_mcast_way) * count, &results[*count]);
        }
        return status;
    }
    int code = bench_mcast_group(&settings->of, 0, &results[0]);
    if (code == APP_EXIT_SUCCESS) {
        code = bench_mcast_group(&settings->of, settings->of.members, &results[1]);
    }
    *count = 2;
    if (code == APP_EXIT_SUCCESS && settings->of.collective == CW_ALLGATHER) {
        struct bench_mcast_case at_once = settings->of;
        at_once.at_once = true;
        code = bench_mcast_group(&at_once, 0, &results[(*count)++]);
    }
    return code;
}

/* All contenders for one size. */
static int size_run(const struct settings *settings)
{
    struct bench_mcast_result results[3 + UNICASTS_MAX + 1];
    const char *const *unicasts = settings->kind->unicasts;
    uint32_t count;
    int code = groups_run(settings, results, &count);
    uint32_t first = count, best = count;
    for (bool is_more = true; is_more && code == APP_EXIT_SUCCESS; unicasts++) {
        struct bench_mcast_result *result = &results[count];
        is_more = *unicasts != NULL; /* NULL is the model's choice, and the last */
        if (!is_more && settings->kind->is_to_some) {
            break;
        }
        code = bench_mcast_unicast(&settings->of, *unicasts, result);
        bool is_new = result->median_ns > 0;
        for (uint32_t known = first; known < count; known++) {
            is_new = is_new && strcmp(results[known].name, result->name) != 0;
        }
        if (is_new) {
            best = result->median_ns < results[best].median_ns || count == first ? count : best;
            count++;
        }
    }
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    size_report(settings, results, count, best);
    return APP_EXIT_SUCCESS;
}

static bool fabric_is(const struct settings *settings, const char *name)
{
    size_t length = strlen(name);
    return strncmp(settings->fabric, name, length) == 0 && strchr(",", settings->fabric[length]) != NULL;
}

static void head_print(const struct settings *settings)
{
    if (settings->beside != NULL) {
        printf("unicast beside a group of half of %llu members on %llu switches, %.3g %% loss\n",
               (unsigned long long)settings->members, (unsigned long long)settings->switches, settings->of.loss * 100);
        return;
    }
    printf("%s, %llu members on %llu switches, %.3g %% loss, %llu messages of each size\n", settings->collective,
           (unsigned long long)settings->members, (unsigned long long)settings->switches, settings->of.loss * 100,
           (unsigned long long)settings->of.runs);
}

/* Whether the simulated network is another than it is by default. */
static bool has_network(const struct settings *settings)
{
    const struct bench_mcast_case *of = &settings->of;
    return of->loss > 0 || of->rate_bps != RATE_BPS || of->delay_ns != DELAY_NS || of->uplink_rate_bps != 0 ||
           of->seed != SEED || settings->switches != 1;
}

/* What the table of options cannot check. */
static int settings_check(struct settings *settings)
{
    bool is_real = fabric_is(settings, "memif") || fabric_is(settings, "veth");
    if (!is_real && strcmp(settings->fabric, "sim") != 0) {
        app_error("no such fabric", settings->fabric, "there are sim, memif and veth");
        return APP_EXIT_USAGE;
    }
    settings->kind = kind_find(settings->collective);
    if (settings->kind == NULL) {
        app_error("no such collective", settings->collective, "there are bcast, scatter, scatterv and allgather");
        return APP_EXIT_USAGE;
    }
    if (settings->kind->is_to_some && settings->to >= settings->members) {
        app_error("--to wants fewer than there are members", NULL, NULL);
        return APP_EXIT_USAGE;
    }
    settings->of.collective = settings->kind->collective;
    settings->of.to = settings->kind->is_to_some ? (uint32_t)settings->to : 0;
    if (settings->beside != NULL && (is_real || strcmp(settings->beside, "unicast") != 0 ||
                                     settings->members < BESIDE_MEMBERS_LEAST || settings->of.collective != CW_BCAST)) {
        app_error("--beside knows unicast, with --fabric sim, bcast and at least 8 members", settings->beside, NULL);
        return APP_EXIT_USAGE;
    }
    if (is_real && has_network(settings)) {
        app_error("--loss, --rate, --delay, --switches, --uplink and --seed are of --fabric sim", settings->fabric,
                  "emulated hosts have it with their network: --fabric memif,loss=1%,rate=1Gbps,delay=50us");
        return APP_EXIT_USAGE;
    }
    if (settings->of.loss > LOSS_MOST) {
        app_error("--loss is 50 % at most", NULL, "beyond that hardly a message comes to its end");
        return APP_EXIT_USAGE;
    }
    if (settings->switches > settings->members) {
        app_error("more switches than members", NULL, NULL);
        return APP_EXIT_USAGE;
    }
    settings->of.members = (uint32_t)settings->members;
    settings->of.switches = (uint32_t)settings->switches;
    settings->of.uplink_rate_bps =
        settings->of.uplink_rate_bps > 0 ? settings->of.uplink_rate_bps : settings->of.rate_bps;
    return APP_EXIT_SUCCESS;
}

static int wire_run(const struct settings *settings)
{
    struct bench_mcast_wire of = {
        .fabric = settings->fabric,
        .collective = settings->kind->name,
        .multicast = settings->kind->multicast,
        .unicasts = settings->kind->unicasts,
        .members = settings->of.members,
        .sizes = &settings->sizes,
        .runs = settings->of.runs,
        .report = settings->report,
    };
    if (of.multicast == NULL) {
        app_error("only with --fabric sim", settings->collective, NULL);
        return APP_EXIT_USAGE;
    }
    return bench_mcast_wire(&of);
}

int bench_mcast(int argc, char **argv)
{
    struct app_report report = {.json = false};
    struct settings settings = {
        .report = &report,
        .sizes = {.values = {1, 1 << 10, 10 << 10, 64 << 10, 1 << 20}, .count = 5},
        .fabric = "sim",
        .collective = "bcast",
        .members = 9,
        .to = 5,
        .switches = 1,
        .of = {.runs = 200, .rate_bps = RATE_BPS, .delay_ns = DELAY_NS, .seed = SEED},
    };
    const struct app_option table[] = {
        OPTION_TEXT("fabric", "sim|memif[,...]|veth[,...]", "what carries the frames (sim)", &settings.fabric),
        OPTION_TEXT("collective", "bcast|scatter|scatterv|allgather", "which one (bcast)", &settings.collective),
        OPTION_COUNT("members", "of the group, the root among them (9)", &settings.members, 2, 1024),
        OPTION_COUNT("to", "scatterv: members that get a block (5)", &settings.to, 1, 1023),
        OPTION_SIZES("sizes", "of messages or blocks, in bytes (1,1K,10K,64K,1M)", &settings.sizes, 1, SIZE_MAX_BYTES),
        OPTION_COUNT("runs", "messages of each size (200)", &settings.of.runs, 1, BENCH_MCAST_RUNS_MAX),
        OPTION_PERCENT("loss", "of frames, at random (0)", &settings.of.loss),
        OPTION_RATE("rate", "of the links (10Gbps)", &settings.of.rate_bps, 1000000),
        OPTION_TIME("delay", "one way, end to end (20us)", &settings.of.delay_ns, 0, 10000000000ull),
        OPTION_COUNT("switches", "members in equal blocks, the other switches joined to the first (1)",
                     &settings.switches, 1, 64),
        OPTION_RATE("uplink", "of the links between switches (as the others)", &settings.of.uplink_rate_bps, 1000000),
        OPTION_COUNT("seed", "of everything random (1)", &settings.of.seed, 0, 0),
        OPTION_TEXT("beside", "unicast", "others' traffic, while a group multicasts", &settings.beside),
        OPTION_JSON(" a size", &report.json),
        {0},
    };
    int code;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    code = settings_check(&settings);
    if (code != APP_EXIT_SUCCESS || strcmp(settings.fabric, "sim") != 0) {
        return code != APP_EXIT_SUCCESS ? code : wire_run(&settings);
    }
    if (!report.json) {
        head_print(&settings);
    }
    for (size_t i = 0; i < settings.sizes.count && code == APP_EXIT_SUCCESS; i++) {
        settings.of.bytes = settings.sizes.values[i];
        code = settings.beside != NULL ? bench_mcast_beside_run(&settings.of, &report) : size_run(&settings);
    }
    return code;
}
