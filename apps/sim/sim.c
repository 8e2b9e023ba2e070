/* causeway sim: random traffic and random faults over many seeds, every byte checked; a failing seed can be
 * replayed. */
#include <stdio.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "apps/cli/progress.h"
#include "apps/sim/world.h"
#include "dataplane/limits.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

static const char usage[] = "sim [--seeds N] [OPTION...]\n\n"
                            "Runs random puts, gets and messages between simulated processes under random faults, in "
                            "virtual time, one world a\n"
                            "seed, and checks every byte, every notification and every order; then heals all and "
                            "requires that everything ends.\n"
                            "What is not given is drawn from the seed. The first failing seed is printed with what "
                            "failed and the command that\n"
                            "replays it; the exit code is then 1.";

struct settings {
    struct sim_world_options world;
    uint64_t seeds;
    const char *topology;
    const char *mix;
    bool partitions, no_partitions, crashes, no_crashes, stops, no_stops, tight, no_tight;
    bool twice;
    bool json;
};

struct totals {
    uint64_t seeds, operations, notified, bytes, packets, virtual_ns, faults;
};

static enum sim_world_choice choice(bool always, bool never)
{
    return always ? SIM_WORLD_ALWAYS : never ? SIM_WORLD_NEVER : SIM_WORLD_MAYBE;
}

/* Texts into what they mean. False: reported. */
static bool interpret(struct settings *settings)
{
    struct sim_world_options *world = &settings->world;
    world->partitions = choice(settings->partitions, settings->no_partitions);
    world->crashes = choice(settings->crashes, settings->no_crashes);
    world->stops = choice(settings->stops, settings->no_stops);
    world->tight = choice(settings->tight, settings->no_tight);
    if (settings->topology != NULL) {
        bool star = strcmp(settings->topology, "star") == 0;
        if (!star && strcmp(settings->topology, "clusters") != 0) {
            app_error("no such topology", settings->topology, "there are star and clusters");
            return false;
        }
        world->topology = star ? SIM_WORLD_STAR : SIM_WORLD_CLUSTERS;
    }
    if (settings->mix != NULL) {
        world->mix = sim_world_mix_find(settings->mix);
        if (world->mix == NULL) {
            app_error("no such mix", settings->mix, sim_world_mix_names());
            return false;
        }
    }
    return true;
}

static void print_report(const struct settings *settings, const struct sim_world_report *report)
{
    if (!settings->json) {
        printf("seed %llu: %s; %s; posted %llu, notified %llu, refused %llu, severed %llu, %llu packets, %.3f ms\n",
               (unsigned long long)settings->world.seed, report->failed ? "FAILED" : "ok", report->plan,
               (unsigned long long)report->posted, (unsigned long long)report->notified,
               (unsigned long long)report->refused, (unsigned long long)report->severed,
               (unsigned long long)report->packets, (double)report->virtual_ns / 1e6);
        return;
    }
    json_t *line = app_json_new();
    char hash[20];
    snprintf(hash, sizeof(hash), "%016llx", (unsigned long long)report->hash);
    app_json_count(line, "seed", settings->world.seed);
    app_json_flag(line, "failed", report->failed);
    if (report->failed) {
        app_json_text(line, "failure", report->failure);
    }
    app_json_text(line, "plan", report->plan);
    app_json_text(line, "hash", hash);
    app_json_count(line, "posted", report->posted);
    app_json_count(line, "notified", report->notified);
    app_json_count(line, "notified_bytes", report->bytes);
    app_json_count(line, "completed", report->completed);
    app_json_count(line, "refused", report->refused);
    app_json_count(line, "severed", report->severed);
    app_json_count(line, "faults", report->faults);
    app_json_count(line, "packets", report->packets);
    app_json_count(line, "retransmitted", report->retransmitted);
    app_json_count(line, "virtual_ns", report->virtual_ns);
    if (settings->world.offload) {
        app_json_count(line, "summed", report->summed);
        app_json_count(line, "trials", report->trials);
        app_json_count(line, "lies", report->lies);
        app_json_count(line, "upsets", report->upsets);
        app_json_count(line, "doubts", report->doubts);
    }
    if (settings->world.compress) {
        app_json_count(line, "chunks", report->chunks);
    }
    if (settings->world.rdma) {
        app_json_count(line, "rdma_work", report->rdma_work);
        app_json_count(line, "rdma_up", report->rdma_up);
        app_json_count(line, "rdma_broken", report->rdma_broken);
        app_json_count(line, "rdma_given_up", report->rdma_given_up);
    }
    app_json_emit(line);
}

/* The command that repeats one world: the given options and this seed. */
static void print_replay(int argc, char **argv, uint64_t seed)
{
    printf("replay: causeway sim");
    for (int i = 1; i < argc; i++) {
        bool counts = strncmp(argv[i], "--seeds", 7) == 0 || strncmp(argv[i], "--first-seed", 12) == 0;
        if (counts) {
            i += strchr(argv[i], '=') == NULL;
        } else if (strcmp(argv[i], "--json") != 0 && strcmp(argv[i], "--twice") != 0) {
            printf(" %s", argv[i]);
        }
    }
    printf(" --seeds 1 --first-seed %llu --verbose\n", (unsigned long long)seed);
}

/* One world. One of enum app_exit. */
static int run_seed(const struct settings *settings, struct totals *totals)
{
    struct sim_world_report report;
    int status = sim_world_run(&settings->world, &report);
    if (status == CW_OK && settings->twice && !report.failed) {
        struct sim_world_report again;
        status = sim_world_run(&settings->world, &again);
        if (status == CW_OK && again.hash != report.hash) {
            report.failed = true;
            snprintf(report.failure, sizeof(report.failure),
                     "a second run of the seed took another course: hash %016llx, then %016llx",
                     (unsigned long long)report.hash, (unsigned long long)again.hash);
        }
    }
    if (status != CW_OK) {
        return app_error_status(status, "the world cannot be made", NULL);
    }
    totals->seeds++;
    totals->operations += report.posted;
    totals->notified += report.notified;
    totals->bytes += report.bytes;
    totals->packets += report.packets;
    totals->virtual_ns += report.virtual_ns;
    totals->faults += report.faults;
    app_progress_hide();
    if (settings->json || report.failed || settings->world.verbose || settings->seeds <= 20) {
        print_report(settings, &report);
    }
    if (report.failed && !settings->json) {
        printf("  %s\n", report.failure);
    }
    return report.failed ? APP_EXIT_FAILURE : APP_EXIT_SUCCESS;
}

static int run_seeds(struct settings *settings, int argc, char **argv)
{
    struct totals totals = {0};
    uint64_t first = settings->world.seed;
    app_progress_begin("sim", settings->json || settings->world.verbose);
    for (uint64_t i = 0; i < settings->seeds; i++) {
        settings->world.seed = first + i;
        app_progress_step(i, settings->seeds, "");
        int code = run_seed(settings, &totals);
        if (code != APP_EXIT_SUCCESS) {
            if (code == APP_EXIT_FAILURE && !settings->json) {
                print_replay(argc, argv, settings->world.seed);
            }
            return code;
        }
    }
    app_progress_end();
    if (!settings->json) {
        printf("%llu seeds from %llu on: ok; %llu operations, %llu notified, %.1f MB, %llu faults, %llu packets, %.1f "
               "s of virtual time\n",
               (unsigned long long)totals.seeds, (unsigned long long)first, (unsigned long long)totals.operations,
               (unsigned long long)totals.notified, (double)totals.bytes / 1e6, (unsigned long long)totals.faults,
               (unsigned long long)totals.packets, (double)totals.virtual_ns / 1e9);
    }
    return APP_EXIT_SUCCESS;
}

int sim_main(int argc, char **argv)
{
    struct settings settings = {.seeds = 1};
    struct sim_world_options *world = &settings.world;
    sim_world_options_init(world);
    world->seed = 1;
    const struct app_option table[] = {
        {"seeds", "N", "worlds to run (1)", APP_OPTION_COUNT, &settings.seeds, 1, 0, NULL},
        {"first-seed", "S", "of the first world; the others count up (1)", APP_OPTION_COUNT, &world->seed, 0, 0, NULL},
        {"nodes", "N", "processes, one a node", APP_OPTION_COUNT, &world->nodes, 2, 24, NULL},
        {"topology", "star|clusters", "of the nodes", APP_OPTION_TEXT, &settings.topology, 0, 0, NULL},
        {"loss", "PERCENT", "of frames, on each link", APP_OPTION_PERCENT, &world->loss, 0, 0, NULL},
        {"duplicate", "PERCENT", "of frames arrive twice", APP_OPTION_PERCENT, &world->duplicate, 0, 0, NULL},
        {"corrupt", "PERCENT", "of frames have bits turned over", APP_OPTION_PERCENT, &world->corrupt, 0, 0, NULL},
        {"reorder", "PERCENT", "of frames are late", APP_OPTION_PERCENT, &world->reorder, 0, 0, NULL},
        {"partitions", NULL, "cut nodes and trunks off", APP_OPTION_FLAG, &settings.partitions, 0, 0, NULL},
        {"no-partitions", NULL, "do not", APP_OPTION_FLAG, &settings.no_partitions, 0, 0, NULL},
        {"crashes", NULL, "crash, close and restart processes", APP_OPTION_FLAG, &settings.crashes, 0, 0, NULL},
        {"no-crashes", NULL, "do not", APP_OPTION_FLAG, &settings.no_crashes, 0, 0, NULL},
        {"stops", NULL, "stop processes for a while", APP_OPTION_FLAG, &settings.stops, 0, 0, NULL},
        {"no-stops", NULL, "do not", APP_OPTION_FLAG, &settings.no_stops, 0, 0, NULL},
        {"tight", NULL, "the smallest tables that can work", APP_OPTION_FLAG, &settings.tight, 0, 0, NULL},
        {"no-tight", NULL, "tables of a modest size", APP_OPTION_FLAG, &settings.no_tight, 0, 0, NULL},
        {"ipv6", NULL, "packets over IPv6", APP_OPTION_FLAG, &world->ipv6, 0, 0, NULL},
        {"encrypt", NULL, "half of the sessions are sealed", APP_OPTION_FLAG, &world->encrypt, 0, 0, NULL},
        {"offload", NULL, "NICs that take work over, honestly or not", APP_OPTION_FLAG, &world->offload, 0, 0, NULL},
        {"rdma", NULL, "RDMA devices beside the NICs, whose queue pairs break", APP_OPTION_FLAG, &world->rdma, 0, 0,
         NULL},
        {"compress", NULL, "half of the processes compress what they send", APP_OPTION_FLAG, &world->compress, 0, 0,
         NULL},
        {"mtu", "BYTES", "largest IP packet", APP_OPTION_BYTES, &world->mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX,
         NULL},
        {"rate", "RATE", "of the nodes' links", APP_OPTION_RATE, &world->rate_bps, 1000000, 0, NULL},
        {"delay", "TIME", "one way between nodes of a cluster", APP_OPTION_DURATION, &world->delay_ns, 0, 1000000000,
         NULL},
        {"operations", "N", "to post", APP_OPTION_COUNT, &world->operations, 1, 1000000, NULL},
        {"mix", "default|puts|large|messages|gets", "of operations", APP_OPTION_TEXT, &settings.mix, 0, 0, NULL},
        {"twice", NULL, "run each seed twice: both must take the same course", APP_OPTION_FLAG, &settings.twice, 0, 0,
         NULL},
        {"verbose", NULL, "every event to stderr", APP_OPTION_FLAG, &world->verbose, 0, 0, NULL},
        {"json", NULL, "one JSON object a seed", APP_OPTION_FLAG, &settings.json, 0, 0, NULL},
        {0},
    };
    int code;
    if (app_options_parse(usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    return interpret(&settings) ? run_seeds(&settings, argc, argv) : APP_EXIT_USAGE;
}
