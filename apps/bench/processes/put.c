/* causeway bench put: two pinned processes, the raw port and puts in turn. */
#include "apps/bench/processes/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "dataplane/port/port.h"
#include "dataplane/verbs/device.h"
#include "dataplane/wire/wire.h"

enum { REGION_BYTES = 256 << 20, RAW_SMALL_FRAME_BYTES = 64 };

/* The frame of an 8-byte put: used for the raw ping-pong. */
enum { RAW_PUT_FRAME_BYTES = CW_WIRE_OVERHEAD_BYTES + sizeof(struct cw_wire_put) + 8 };

/* Of the command line. */
struct options {
    const char *fabric;
    enum bench_fabric_kind kind;
    const char *devices[2]; /* of the initiating side, of the other one; NULL: a fabric is made */
    const char *rdma;       /* a device in addition to the port; NULL: none */
    struct app_list sizes;
    uint64_t mtu_bytes;
    uint64_t rounds;
    uint64_t duration_ns;
    uint64_t core[2];
    struct app_report report;
    bool no_raw;
};

/* The measurement of one side in a round. */
struct put_result {
    char driver[32];
    double full_pps;
    double small_pps;
    struct bench_latency raw_latency;
    struct {
        struct bench_latency latency;
        struct bench_put_rate rate;
        struct bench_put_rate alone;
    } sizes[BENCH_SIZES_MAX];
};

/* Printed figures of a size: medians of all rounds. Those from RAW_P50 on need the raw limit. */
enum figure {
    PUT_P50,
    PUT_P99,
    GOODPUT,
    RATE,
    RATE_ALONE,
    PACKETS,
    RETRANSMITS,
    RAW_P50,
    RAW_P99,
    RAW_GOODPUT,
    RAW_FULL,
    RAW_SMALL,
    RATIO_GOODPUT,
    RATIO_LATENCY,
    FIGURES,
};

static const struct {
    const char *name;
    const char *title;
    int digits;
    double scale;
} figures[FIGURES] = {
    [PUT_P50] = {"latency_p50_ns", "p50 ns", 0, 1},
    [PUT_P99] = {"latency_p99_ns", "p99 ns", 0, 1},
    [GOODPUT] = {"goodput_bps", "Gb/s", 2, 1e-9},
    [RATE] = {"rate_puts_per_s", "Mput/s", 3, 1e-6},
    [RATE_ALONE] = {"rate_alone_puts_per_s", "alone M/s", 3, 1e-6},
    [PACKETS] = {"packets_per_put", "pkt/put", 2, 1},
    [RETRANSMITS] = {"retransmits", "retrans", 0, 1},
    [RAW_P50] = {"raw_latency_p50_ns", NULL, 0, 1},
    [RAW_P99] = {"raw_latency_p99_ns", NULL, 0, 1},
    [RAW_GOODPUT] = {"raw_goodput_bps", NULL, 0, 1},
    [RAW_FULL] = {"raw_rate_pps", NULL, 0, 1},
    [RAW_SMALL] = {"raw_small_rate_pps", NULL, 0, 1},
    [RATIO_GOODPUT] = {"ratio_goodput", "goodput", 3, 1},
    [RATIO_LATENCY] = {"ratio_latency", "latency", 2, 1},
};

/* All rounds. */
struct run {
    const struct options *options;
    char driver[32];
    struct bench_series series[BENCH_SIZES_MAX][FIGURES];
};

/* ---- one side, in one round ---- */

static int raw_run(struct bench_member *member)
{
    const struct options *options = member->settings;
    struct put_result *result = member->result;
    uint64_t duration_ns = options->duration_ns;
    int status = bench_raw_rate(member, 14 + member->port->info.mtu_bytes, duration_ns, &result->full_pps);
    status = status == CW_OK ? bench_raw_rate(member, RAW_SMALL_FRAME_BYTES, duration_ns, &result->small_pps) : status;
    status =
        status == CW_OK ? bench_raw_latency(member, RAW_PUT_FRAME_BYTES, duration_ns, &result->raw_latency) : status;
    if (status == CW_ERROR_NOT_FOUND) {
        app_error("no raw frame came through", options->fabric, "are both cores busy with something else?");
        return APP_EXIT_MACHINE;
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "the raw measurement failed", NULL);
}

static int put_run(struct bench_member *member)
{
    const struct options *options = member->settings;
    struct put_result *result = member->result;
    uint64_t duration_ns = options->duration_ns;
    memcpy(result->driver, member->port->info.driver, sizeof(result->driver));
    for (size_t i = 0; i < options->sizes.count; i++) {
        uint64_t size = options->sizes.values[i];
        int status = bench_put_latency(member, size, duration_ns, &result->sizes[i].latency);
        status = status == CW_OK ? bench_put_rate(member, size, false, duration_ns, &result->sizes[i].rate) : status;
        status = status == CW_OK ? bench_put_rate(member, size, true, duration_ns, &result->sizes[i].alone) : status;
        if (status != CW_OK) {
            return app_error_status(status, "the puts failed", NULL);
        }
    }
    bench_member_leave(member);
    return APP_EXIT_SUCCESS;
}

/* ---- all rounds ---- */

static void round_add(struct run *run, const struct put_result *responder, const struct put_result *initiator)
{
    memcpy(run->driver, initiator->driver, sizeof(run->driver));
    for (size_t i = 0; i < run->options->sizes.count; i++) {
        const struct bench_latency *latency = &initiator->sizes[i].latency, *raw = &initiator->raw_latency;
        const struct bench_put_rate *rate = &responder->sizes[i].rate, *sent = &initiator->sizes[i].rate;
        double raw_bps = responder->full_pps * (14 + (double)run->options->mtu_bytes) * 8;
        const double values[FIGURES] = {
            [PUT_P50] = latency->p50_ns,
            [PUT_P99] = latency->p99_ns,
            [GOODPUT] = 8 * rate->bytes_per_s,
            [RATE] = rate->puts_per_s,
            [RATE_ALONE] = responder->sizes[i].alone.puts_per_s,
            [PACKETS] = sent->packets_per_put,
            [RETRANSMITS] = (double)(sent->retransmits + initiator->sizes[i].alone.retransmits),
            [RAW_P50] = raw->p50_ns,
            [RAW_P99] = raw->p99_ns,
            [RAW_GOODPUT] = raw_bps,
            [RAW_FULL] = responder->full_pps,
            [RAW_SMALL] = responder->small_pps,
            [RATIO_GOODPUT] = raw_bps > 0 ? 8 * rate->bytes_per_s / raw_bps : 0,
            [RATIO_LATENCY] = raw->p50_ns > 0 ? latency->p50_ns / raw->p50_ns : 0,
        };
        for (enum figure figure = 0; figure < FIGURES; figure++) {
            bench_series_add(&run->series[i][figure], values[figure]);
        }
    }
}

/* Raw and ours in turn, by new processes. */
static int round_run(struct run *run)
{
    const struct options *options = run->options;
    const uint64_t cores[2] = {options->core[1], options->core[0]};
    const char *const devices[2] = {options->devices[1], options->devices[0]}; /* as the cores */
    struct bench_fabric fabric;
    struct bench_group group = {.running = 0};
    const struct bench_group_config config = {
        .doorbell = options->kind == BENCH_FABRIC_SWITCH,
        .rdma = options->rdma,
        .cores = cores,
        .spin = options->kind != BENCH_FABRIC_SWITCH && cores[0] != cores[1],
        .region_bytes = REGION_BYTES,
        .result_bytes = sizeof(struct put_result),
        .limit_ns = BENCH_HANG_NS + 2 * (4 + 3 * options->sizes.count) * options->duration_ns,
        .settings = options,
        .reference = options->no_raw ? NULL : raw_run,
        .run = put_run,
    };
    int code = APP_EXIT_SUCCESS;
    if (options->kind == BENCH_FABRIC_DEVICES) {
        bench_fabric_devices(&fabric, devices, (uint32_t)options->mtu_bytes);
    } else {
        code = bench_fabric_create(&fabric, options->kind, (uint32_t)options->mtu_bytes, NULL);
    }
    code = code == APP_EXIT_SUCCESS ? bench_group_start(&group, &fabric, &config) : code;
    code = code == APP_EXIT_SUCCESS ? bench_group_finish(&group) : code;
    if (code == APP_EXIT_SUCCESS) {
        round_add(run, bench_group_result(&group, 0), bench_group_result(&group, 1));
    }
    bench_group_free(&group);
    bench_fabric_destroy(&fabric);
    return code;
}

/* ---- results ---- */

static void size_report(struct app_report *report, const struct run *run, size_t index)
{
    const struct options *options = run->options;
    struct app_cell cells[6 + FIGURES] = {
        app_text("bench", NULL, 0, "put"),
        app_text("fabric", NULL, 0, options->fabric),
        app_text("driver", NULL, 0, run->driver),
        app_count("mtu_bytes", NULL, options->mtu_bytes),
        app_count("size_bytes", "bytes", options->sizes.values[index]),
        app_count("rounds", NULL, options->rounds),
    };
    for (size_t i = 0; i < FIGURES; i++) {
        double median = bench_series_median(run->series[index][i]);
        cells[6 + i] =
            app_when(i < RAW_P50 || !options->no_raw,
                     app_number(figures[i].name, figures[i].title, figures[i].digits, figures[i].scale, median));
    }
    APP_REPORT(report, cells);
}

static void head_print(const struct run *run)
{
    const struct options *options = run->options;
    const struct bench_series *series = run->series[0];
    printf("put over %s (%s), MTU %llu, median of %llu rounds\n", options->fabric, run->driver,
           (unsigned long long)options->mtu_bytes, (unsigned long long)options->rounds);
    if (!options->no_raw) {
        printf("raw: %.2f Gb/s in full frames (%.2f Mpps), %.2f Mpps of 64 bytes, round trip %.0f ns (p99 %.0f)\n",
               bench_series_median(series[RAW_GOODPUT]) * 1e-9, bench_series_median(series[RAW_FULL]) * 1e-6,
               bench_series_median(series[RAW_SMALL]) * 1e-6, bench_series_median(series[RAW_P50]),
               bench_series_median(series[RAW_P99]));
    }
}

static int run_all(const struct options *options)
{
    struct run *run = calloc(1, sizeof(*run));
    int code = APP_EXIT_SUCCESS;
    if (run == NULL) {
        return app_error_status(CW_ERROR_MEMORY, "no memory for the results", NULL);
    }
    run->options = options;
    for (uint64_t round = 0; round < options->rounds && code == APP_EXIT_SUCCESS; round++) {
        code = round_run(run);
    }
    struct app_report report = options->report;
    if (code == APP_EXIT_SUCCESS && !report.json) {
        head_print(run);
    }
    for (size_t i = 0; i < options->sizes.count && code == APP_EXIT_SUCCESS; i++) {
        size_report(&report, run, i);
    }
    free(run);
    return code;
}

/* ---- the command line ---- */

static const char put_usage[] =
    "bench put [--fabric memif|switch | --device DEVICE --peer-device DEVICE] [OPTION...]\n"
    "\n"
    "Latency and goodput of puts with notification between two processes, compared with the raw limit of the same "
    "port\n"
    "in the same run: bare bursts of frames without any protocol. Rounds of both are interleaved; medians are "
    "printed.\n"
    "Ratios: goodput is user bytes over raw frame bytes, latency is ours over raw.";

/* Devices that are given take the fabric's place. False: reported. */
static bool fabric_find(struct options *options)
{
    static const char *const names[] = {
        [BENCH_FABRIC_MEMIF] = "memif",
        [BENCH_FABRIC_SWITCH] = "switch",
    };
    const char **devices = options->devices;
    options->kind = BENCH_FABRIC_DEVICES;
    if ((devices[0] == NULL) != (devices[1] == NULL)) {
        app_error("one device is given", devices[0] != NULL ? devices[0] : devices[1],
                  "two ports that reach each other are wanted: --device and --peer-device");
        return false;
    }
    if (devices[0] != NULL) {
        options->fabric = "devices";
        return true;
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        options->kind = strcmp(options->fabric, names[i]) == 0 ? (enum bench_fabric_kind)i : options->kind;
    }
    if (options->kind == BENCH_FABRIC_DEVICES) {
        app_error("no such fabric", options->fabric, "choose memif or switch");
        return false;
    }
    return true;
}

static bool cores_exist(const struct options *options)
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

/* Whether the RDMA device is there, before each process would say that it is not. */
static int rdma_check(const struct options *options)
{
    const struct cw_verbs_config config = {.name = options->rdma};
    struct cw_verbs_port port;
    char error[CW_VERBS_ERROR_BYTES];
    int status = options->rdma == NULL ? CW_OK : cw_verbs_find(&config, &port, error, sizeof(error));
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, error, "--rdma");
}

int bench_put(int argc, char **argv)
{
    struct options options = {
        .fabric = "memif",
        .sizes = {.values = {8, 32, 1024, 65536, 1 << 20}, .count = 5},
        .mtu_bytes = 1500,
        .rounds = 3,
        .duration_ns = 300000000,
        .core = {0, 1},
    };
    const struct app_option table[] = {
        OPTION_TEXT("fabric", "memif|switch", "the network between the two (memif)", &options.fabric),
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
        OPTION_JSON(" a size", &options.report.json),
        {0},
    };
    int code;
    if (app_options_parse(put_usage, table, 0, argc, argv, &code) < 0) {
        return code;
    }
    if (!fabric_find(&options) || !cores_exist(&options)) {
        return APP_EXIT_USAGE;
    }
    /* bare bursts ring no doorbell: where a switch sleeps between them they are no limit */
    options.no_raw = options.no_raw || options.kind == BENCH_FABRIC_SWITCH || options.rdma != NULL;
    code = rdma_check(&options);
    return code == APP_EXIT_SUCCESS ? run_all(&options) : code;
}
