/* causeway bench put: its command line. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/processes/put.h"
#include "apps/cli/cli.h"
#include "dataplane/port/port.h"

static const char put_usage[] =
    "bench put [--fabric memif|veth-af_packet|switch | --device DEVICE --peer-device DEVICE] [OPTION...]\n\n"
    "Latency and goodput of puts with notification between two processes, beside the raw limit of the same port in "
    "the\n"
    "same run: bare bursts of frames without any protocol, and the same with one copy on each side. Rounds of both "
    "are\n"
    "interleaved; medians are printed. Ratios: goodput is user bytes over raw frame bytes, latency is ours over raw.";

/* Devices that are given take the fabric's place: false after an error, since one has no other end. */
static bool devices_finish(struct bench_put_options *options)
{
    const char **devices = options->devices;
    if ((devices[0] == NULL) != (devices[1] == NULL)) {
        app_error("one device is given", devices[0] != NULL ? devices[0] : devices[1],
                  "two ports that reach each other are wanted: --device and --peer-device");
        return false;
    }
    options->fabric = devices[1] != NULL ? "devices" : options->fabric;
    return true;
}

static bool cores_exist(const struct bench_put_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    for (uint32_t side = 0; side < 2; side++) {
        if (cores > 0 && options->core[side] >= (uint64_t)cores) {
            char where[64];
            snprintf(where, sizeof(where), "%s %llu", side == 0 ? "--core" : "--peer-core",
                     (unsigned long long)options->core[side]);
            app_error("no such core", where, "causeway doctor lists them; with one core give 0 for both");
            return false;
        }
    }
    return true;
}

int bench_put(int argc, char **argv)
{
    struct bench_put_options options = {
        .fabric = "memif",
        .sizes = {.values = {8, 32, 1024, 65536, 1 << 20}, .count = 5},
        .mtu_bytes = 1500,
        .rounds = 3,
        .duration_ns = 300000000,
        .core = {0, 1},
    };
    const struct app_option table[] = {
        OPTION_TEXT("fabric", "memif|veth-af_packet|switch", "the network between the two (memif)", &options.fabric),
        OPTION_TEXT("device", "DEVICE",
                    "instead of a fabric: the initiating side's port, like 0000:03:00.0 or net_tap0,iface=x",
                    &options.devices[0]),
        OPTION_TEXT("peer-device", "DEVICE", "the other side's, at the other end of its cable", &options.devices[1]),
        OPTION_TEXT("rdma", "DEVICE", "queue pairs of this RDMA device (rxe0, mlx5_0) carry the puts", &options.rdma),
        OPTION_BYTES("mtu", "largest IP packet (1500)", &options.mtu_bytes, CW_PORT_MTU_MIN, CW_PORT_MTU_MAX),
        OPTION_SIZES("sizes", "sizes of puts (8,32,1024,65536,1M)", &options.sizes, 0, 64 << 20),
        OPTION_COUNT("rounds", "interleaved rounds (3)", &options.rounds, 1, BENCH_ROUNDS_MAX),
        OPTION_TIME("duration", "of each measurement (300ms)", &options.duration_ns, 1000000, 60000000000ull),
        OPTION_COUNT("core", "of the initiating side (0)", &options.core[0], 0, 1023),
        OPTION_COUNT("peer-core", "of the other side (1)", &options.core[1], 0, 1023),
        OPTION_FLAG("no-raw", "without the raw limit", &options.no_raw),
        OPTION_FLAG("no-testpmd", "without dpdk-testpmd beside the raw limit", &options.no_testpmd),
        OPTION_JSON(" a size", &options.report.json),
        {0},
    };
    int code;
    if (app_options_parse(put_usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (!devices_finish(&options) || !cores_exist(&options)) {
        return APP_EXIT_USAGE;
    }
    /* bare bursts ring no doorbell: where a switch sleeps between them they are no limit */
    options.no_raw = options.no_raw || strcmp(options.fabric, "switch") == 0 || options.rdma != NULL;
    return bench_put_run(&options);
}
