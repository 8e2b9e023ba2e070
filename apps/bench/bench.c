/* causeway bench: measurements, each beside the limit of the same run. */
#include "apps/bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/cli/cli.h"
#include "apps/cli/progress.h"
#include "dataplane/port/port.h"

static const char put_usage[] =
    "bench put [--fabric memif|veth-af_packet|veth-af_xdp|switch|sim | --device DEVICE --peer-device DEVICE | --net "
    "HOST --device DEVICE] [OPTION...]\n\n"
    "Latency and goodput of puts with notification between two processes, beside the raw limit of the same port in "
    "the\n"
    "same run: bare bursts of frames without any protocol, and the same with one copy on each side. Rounds of both "
    "are\n"
    "interleaved; medians are printed. Ratios: goodput is user bytes over raw frame bytes, latency is ours over raw.";

#define NOT_GIVEN UINT64_MAX

/* Options of the simulated fabric: their defaults, or an error where there is another fabric. */
static bool sim_options_finish(struct bench_put_options *options)
{
    bool given = options->rate_bps != NOT_GIVEN || options->delay_ns != NOT_GIVEN || options->loss >= 0 ||
                 options->seed != NOT_GIVEN;
    if (given && strcmp(options->fabric, "sim") != 0) {
        app_error("--rate, --delay, --loss and --seed are for --fabric sim only", options->fabric,
                  "leave them out, or emulate a network with causeway switch");
        return false;
    }
    options->rate_bps = options->rate_bps != NOT_GIVEN ? options->rate_bps : 10000000000ull;
    options->delay_ns = options->delay_ns != NOT_GIVEN ? options->delay_ns : 20000;
    options->loss = options->loss >= 0 ? options->loss : 0;
    options->seed = options->seed != NOT_GIVEN ? options->seed : 1;
    /* bare bursts ring no doorbell: where a switch sleeps between them they are no limit (bench crowd has bare frames
     * that do) */
    options->no_raw = options->no_raw || strcmp(options->fabric, "switch") == 0 || options->rdma != NULL;
    return true;
}

/* Devices that are given take the fabric's place: false after an error, since one has no other end. */
static bool devices_finish(struct bench_put_options *options)
{
    const char **devices = options->devices;
    if (options->host != NULL && devices[1] == NULL) {
        devices[1] = devices[0];
    }
    if (options->is_member ? devices[1] == NULL : (devices[0] == NULL) != (devices[1] == NULL)) {
        app_error("one device is given",
                  devices[0] != NULL   ? devices[0]
                  : devices[1] != NULL ? devices[1]
                                       : "--member",
                  "two ports that reach each other are wanted: --device and --peer-device, or --device and --net HOST");
        return false;
    }
    if (options->host != NULL && devices[0] == NULL) {
        app_error("by which device?", options->host,
                  "--device 0000:03:00.0, or of an interface as root --device net_af_packet0,iface=eth1");
        return false;
    }
    options->fabric = options->host != NULL ? "hosts" : devices[1] != NULL ? "devices" : options->fabric;
    options->launcher = options->launcher != NULL ? options->launcher : "ssh";
    return true;
}

static bool cores_exist(const struct bench_put_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    for (uint32_t side = 0; side < 2; side++) {
        bool is_here = side == 0 ? !options->is_member : options->host == NULL;
        if (is_here && cores > 0 && options->core[side] >= (uint64_t)cores) {
            char where[64];
            snprintf(where, sizeof(where), "%s %llu", side == 0 ? "--core" : "--peer-core",
                     (unsigned long long)options->core[side]);
            app_error("no such core", where, "causeway doctor lists them; with one core give 0 for both");
            return false;
        }
    }
    return true;
}

static int bench_put(int argc, char **argv)
{
    struct bench_put_options options = {
        .fabric = "memif",
        .sizes = {.values = {8, 32, 1024, 65536, 1 << 20}, .count = 5},
        .mtu_bytes = 1500,
        .rounds = 3,
        .duration_ns = 300000000,
        .core = {0, 1},
        .rate_bps = NOT_GIVEN,
        .delay_ns = NOT_GIVEN,
        .loss = -1,
        .seed = NOT_GIVEN,
    };
    const struct app_option table[] = {
        OPTION_TEXT("fabric", "memif|veth-af_packet|veth-af_xdp|switch|sim", "the network between the two (memif)",
                    &options.fabric),
        OPTION_TEXT("device", "DEVICE",
                    "instead of a fabric: the initiating side's port, like 0000:03:00.0 or net_tap0,iface=x",
                    &options.devices[0]),
        OPTION_TEXT("peer-device", "DEVICE", "the other side's, at the other end of its cable", &options.devices[1]),
        OPTION_TEXT("net", "HOST",
                    "the other side is on that host, by its --peer-device, or one of the same name; on one network",
                    &options.host),
        OPTION_TEXT("launcher", "ssh|COMMAND",
                    "with --net: what starts it; a command gets the host and a command line (ssh)", &options.launcher),
        OPTION_TEXT("rdma", "DEVICE", "queue pairs of this RDMA device (rxe0, mlx5_0) carry the puts", &options.rdma),
        OPTION_FLAG("member", "what --net starts on the other host; nobody else does", &options.is_member),
        OPTION_BYTES("mtu", "largest IP packet (1500)", &options.mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX),
        OPTION_SIZES("sizes", "sizes of puts (8,32,1024,65536,1M)", &options.sizes, 0, 64 << 20),
        OPTION_COUNT("rounds", "interleaved rounds (3)", &options.rounds, 1, BENCH_ROUNDS_MAX),
        OPTION_TIME("duration", "of each measurement (300ms)", &options.duration_ns, 1000000, 60000000000ull),
        OPTION_COUNT("core", "of the initiating side (0)", &options.core[0], 0, 1023),
        OPTION_COUNT("peer-core", "of the other side (1)", &options.core[1], 0, 1023),
        OPTION_FLAG("no-raw", "without the raw limit", &options.no_raw),
        OPTION_FLAG("no-testpmd", "without dpdk-testpmd beside the raw limit", &options.no_testpmd),
        OPTION_RATE("rate", "sim: of the links (10Gbps)", &options.rate_bps, 1000000),
        OPTION_TIME("delay", "sim: one way, end to end (20us)", &options.delay_ns, 0, 10000000000ull),
        OPTION_PERCENT("loss", "sim: of frames, at random (0)", &options.loss),
        OPTION_COUNT("seed", "sim: of everything random (1)", &options.seed, 0, 0),
        OPTION_JSON(" a size", &options.report.json),
        {0},
    };
    int code;
    if (app_options_parse(put_usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (!devices_finish(&options)) {
        return APP_EXIT_USAGE;
    }
    bool real = strcmp(options.fabric, "sim") != 0;
    if (!sim_options_finish(&options) || (real && !cores_exist(&options))) {
        return APP_EXIT_USAGE;
    }
    if (strcmp(options.fabric, "sim") == 0) {
        return bench_put_sim(&options);
    }
#ifdef CW_HAVE_DPDK
    return bench_put_real(&options);
#else
    app_error("this build has no DPDK, so the only fabric is sim", options.fabric,
              "install libdpdk-dev and configure with -Ddpdk=enabled");
    return APP_EXIT_MACHINE;
#endif
}

#ifndef CW_HAVE_DPDK
static int bench_without_dpdk(int argc, char **argv)
{
    static const struct app_option none[] = {{0}};
    char usage[128];
    snprintf(usage, sizeof(usage), "bench %s\n\nThis build has no DPDK, which this benchmark needs.", argv[0]);
    int code;
    if (app_options_parse(usage, none, 0, argc, argv, &code) < 0) {
        return code;
    }
    app_error("this build has no DPDK, which this benchmark needs", argv[0],
              "install libdpdk-dev and configure with -Ddpdk=enabled");
    return APP_EXIT_MACHINE;
}
#define bench_crowd  bench_without_dpdk
#define bench_idle   bench_without_dpdk
#define bench_node   bench_without_dpdk
#define bench_shape  bench_without_dpdk
#define bench_switch bench_without_dpdk
#endif

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} benchmarks[] = {
    {"put", bench_put, "latency and goodput of puts, beside the raw limit of the same port"},
    {"cost", bench_cost, "what the protocol costs a core, without driver and second core"},
    {"crypt", bench_crypt, "what sealing packets costs a core, by each driver there is"},
    {"codec", bench_codec, "what codecs make of data, what they take, and for which links they pay"},
    {"offload", bench_offload, "what each offload of a NIC is worth to a core: on and off, in turn"},
    {"loops", bench_loops, "what several loops of a process move, beside one"},
    {"node", bench_node, "what a frame costs the node's thread, by length"},
    {"crowd", bench_crowd, "many processes on few cores, through a switch"},
    {"idle", bench_idle, "what processes cost that have nothing to do"},
    {"shape", bench_shape, "how exactly a shaper lets frames out on the real clock"},
    {"switch", bench_switch, "the limits of the emulator: frames a second, exactness of delays and rates"},
    {"incast", bench_incast, "many senders to one port, in virtual time"},
    {"pace", bench_pace, "paced flows, in virtual time"},
    {"mcast", bench_mcast, "collectives by multicast and by unicast algorithms"},
    {"plan", bench_plan, "building, checking, pricing and choosing schedules of collectives"},
};

static void list_print(void)
{
    printf("usage: causeway bench SUBCOMMAND [OPTION...]\n\nMeasures puts, multicast and collectives; everything that "
           "is moved is verified.\n\n"
           "subcommands:\n");
    for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++) {
        printf("  %-9s %s\n", benchmarks[i].name, benchmarks[i].help);
    }
    printf("\n`causeway bench SUBCOMMAND --help` tells the options.\n");
}

/* Programs that read JSON are told nothing else; and what ends at once needs no progress. */
static bool is_quiet(int argc, char **argv)
{
    bool quiet = false;
    for (int i = 1; i < argc; i++) {
        quiet = quiet || strcmp(argv[i], "--json") == 0 || strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
    }
    return quiet;
}

static int bench_run(size_t number, int argc, char **argv)
{
    char what[32];
    snprintf(what, sizeof(what), "bench %s", benchmarks[number].name);
    app_progress_begin(what, is_quiet(argc, argv));
    int code = benchmarks[number].run(argc, argv);
    app_progress_end();
    return code;
}

int bench_main(int argc, char **argv)
{
    char list[400] = "there are";
    for (size_t i = 0; i < sizeof(benchmarks) / sizeof(benchmarks[0]); i++) {
        if (argc > 1 && strcmp(argv[1], benchmarks[i].name) == 0) {
            return bench_run(i, argc - 1, argv + 1);
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s %s", i == 0 ? "" : ",", benchmarks[i].name);
    }
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        list_print();
        return APP_EXIT_SUCCESS;
    }
    size_t used = strlen(list);
    snprintf(list + used, sizeof(list) - used, "; each has --help");
    app_error(argc < 2 ? "which benchmark?" : "no such benchmark", argv[1], list);
    return APP_EXIT_USAGE;
}
