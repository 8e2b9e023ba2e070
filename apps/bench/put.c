/* causeway bench put over real ports: two pinned processes, raw and ours in turn. */
#include "apps/bench/put.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/control.h"
#include "apps/bench/fabric.h"
#include "apps/bench/raw.h"
#include "apps/bench/testpmd.h"
#include "apps/cli/cli.h"
#include "dataplane/wire/wire.h"

enum { REGION_BYTES = 256 << 20, RAW_REGION_BYTES = 1 << 20, RAW_SMALL_FRAME_BYTES = 64 };

/* The frame of an 8-byte put: what the raw ping-pong is played with. */
enum { RAW_PUT_FRAME_BYTES = CW_WIRE_OVERHEAD_BYTES + sizeof(struct cw_wire_put) + 8 };

#define WAIT_NS (BENCH_PUT_CONTROL_TIMEOUT_S * 1000000000ull)

struct raw_results {
    struct bench_series frame_bytes_per_s;
    struct bench_series frame_pps;
    struct bench_series copy_bytes_per_s;
    struct bench_series small_pps;
    struct bench_series latency_p50_ns;
    struct bench_series latency_p99_ns;
};

struct size_results {
    struct bench_series latency_p50_ns;
    struct bench_series latency_p99_ns;
    struct bench_series bytes_per_s;
    struct bench_series puts_per_s;
    struct bench_series alone_puts_per_s;
    struct bench_series packets_per_put;
    struct bench_series ratio_goodput;
    struct bench_series ratio_goodput_copy;
    struct bench_series ratio_latency;
    uint64_t retransmits;
    uint64_t spurious;
};

/* One side of the whole run. */
struct run {
    const struct bench_put_options *options;
    const struct bench_fabric *fabric;
    bool initiator;
    int control;
    struct cw_port *port;
    uint8_t peer_mac[6];
    char driver[32];
    struct raw_results raw;
    struct size_results sizes[BENCH_SIZES_MAX];
    double token_cost_ns;
};

static int fail(int status, const char *what)
{
    return app_error_status(status, what, NULL);
}

/* ---- raw ---- */

static int raw_rate(struct run *run, uint32_t frame_bytes, bool copy, struct bench_raw_rate *rate)
{
    struct bench_raw_settings settings = {
        .frame_bytes = frame_bytes,
        .payload_bytes = copy ? frame_bytes - 42 : 0,
        .region_bytes = copy ? RAW_REGION_BYTES : 0,
        .warmup_ns = run->options->duration_ns / 4,
        .duration_ns = run->options->duration_ns,
        .copy = copy,
    };
    memcpy(settings.peer_mac, run->peer_mac, 6);
    return run->initiator ? bench_raw_rate_initiator(run->port, run->control, &settings, rate)
                          : bench_raw_rate_responder(run->port, run->control, &settings, rate);
}

static int raw_round(struct run *run)
{
    uint32_t full = 14 + run->port->info.mtu_bytes;
    struct bench_raw_rate frames;
    struct bench_raw_rate copies;
    struct bench_raw_rate small;
    struct bench_raw_latency latency;
    int status = raw_rate(run, full, false, &frames);
    status = status == CW_OK ? raw_rate(run, full, true, &copies) : status;
    status = status == CW_OK ? raw_rate(run, RAW_SMALL_FRAME_BYTES, false, &small) : status;
    struct bench_raw_settings settings = {.frame_bytes = RAW_PUT_FRAME_BYTES,
                                          .warmup_ns = run->options->duration_ns / 4,
                                          .duration_ns = run->options->duration_ns};
    memcpy(settings.peer_mac, run->peer_mac, 6);
    if (status == CW_OK) {
        status = run->initiator ? bench_raw_latency_initiator(run->port, run->control, &settings, &latency)
                                : bench_raw_latency_responder(run->port, run->control, &settings, &latency);
    }
    if (status == CW_ERROR_NOT_FOUND) {
        app_error("no raw frame came through", run->options->fabric, "are both cores busy with something else?");
        return APP_EXIT_MACHINE;
    }
    if (status != CW_OK) {
        return fail(status, "the raw measurement failed");
    }
    bench_series_add(&run->raw.frame_bytes_per_s, frames.bytes_per_s);
    bench_series_add(&run->raw.frame_pps, frames.packets_per_s);
    bench_series_add(&run->raw.copy_bytes_per_s, copies.bytes_per_s);
    bench_series_add(&run->raw.small_pps, small.packets_per_s);
    bench_series_add(&run->raw.latency_p50_ns, latency.p50_ns);
    bench_series_add(&run->raw.latency_p99_ns, latency.p99_ns);
    return APP_EXIT_SUCCESS;
}

/* ---- ours ---- */

static int size_round(struct run *run, struct bench_side *side, size_t index, uint64_t round)
{
    const struct bench_put_options *options = run->options;
    struct size_results *results = &run->sizes[index];
    uint64_t size = options->sizes.values[index];
    struct bench_put_latency latency;
    struct bench_put_rate rate;
    struct bench_put_rate alone;
    int status = bench_put_latency(side, size, options->duration_ns, &latency);
    status = status == CW_OK ? bench_put_rate(side, size, false, options->duration_ns / 4, options->duration_ns, &rate)
                             : status;
    status = status == CW_OK ? bench_put_rate(side, size, true, options->duration_ns / 4, options->duration_ns, &alone)
                             : status;
    if (status != CW_OK) {
        return fail(status, "the puts failed");
    }
    bench_series_add(&results->latency_p50_ns, latency.p50_ns);
    bench_series_add(&results->latency_p99_ns, latency.p99_ns);
    bench_series_add(&results->bytes_per_s, rate.bytes_per_s);
    bench_series_add(&results->puts_per_s, rate.puts_per_s);
    bench_series_add(&results->alone_puts_per_s, alone.puts_per_s);
    bench_series_add(&results->packets_per_put, rate.packets_per_put);
    results->retransmits += rate.retransmits + alone.retransmits;
    results->spurious += rate.spurious + alone.spurious;
    if (!options->no_raw) {
        bench_series_add(&results->ratio_goodput, rate.bytes_per_s / run->raw.frame_bytes_per_s.values[round]);
        bench_series_add(&results->ratio_goodput_copy, rate.bytes_per_s / run->raw.copy_bytes_per_s.values[round]);
        bench_series_add(&results->ratio_latency, latency.p50_ns / run->raw.latency_p50_ns.values[round]);
    }
    return APP_EXIT_SUCCESS;
}

static int our_round(struct run *run, uint64_t round)
{
    struct bench_side side;
    char error[CW_PORT_TEXT_BYTES];
    bool spin = run->fabric->kind != BENCH_FABRIC_SWITCH && run->options->core[0] != run->options->core[1];
    int status =
        bench_side_open(&side, run->port, run->control, run->initiator, spin, REGION_BYTES, error, sizeof(error));
    if (status != CW_OK) {
        bench_side_close(&side);
        return app_error_status(status, error, NULL);
    }
    int code = APP_EXIT_SUCCESS;
    for (size_t i = 0; i < run->options->sizes.count && code == APP_EXIT_SUCCESS; i++) {
        code = size_round(run, &side, i, round);
    }
    if (code == APP_EXIT_SUCCESS && run->initiator) {
        run->token_cost_ns = bench_token_cost_ns(&side);
    }
    /* nobody closes while the other still measures */
    if (code == APP_EXIT_SUCCESS && bench_control_barrier(run->control, 1000 + (uint32_t)round, WAIT_NS) != CW_OK) {
        code = fail(CW_ERROR_CLOSED, "the other side is gone");
    }
    bench_side_close(&side);
    return code;
}

/* Opens both ports, side 0 first. */
static int open_port(struct run *run)
{
    uint8_t mark = 1;
    if (run->initiator && bench_control_receive(run->control, &mark, 1, WAIT_NS) != CW_OK) {
        return APP_EXIT_MACHINE; /* the other side has said why */
    }
    bool doorbell = run->fabric->kind == BENCH_FABRIC_SWITCH;
    int code = bench_fabric_open(run->fabric, run->initiator ? 1 : 0, doorbell, &run->port);
    if (code == APP_EXIT_SUCCESS && !run->initiator && bench_control_send(run->control, &mark, 1, WAIT_NS) != CW_OK) {
        code = fail(CW_ERROR_CLOSED, "the other side is gone");
    }
    if (code == APP_EXIT_SUCCESS) {
        code = bench_fabric_await(run->port);
    }
    if (code != APP_EXIT_SUCCESS && run->port != NULL) {
        cw_port_close(run->port);
    }
    return code;
}

static int run_side(struct run *run)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((size_t)run->options->core[run->initiator ? 0 : 1], &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0) {
        app_error("cannot pin to the core asked for", strerror(errno), "choose others: --core N --peer-core M");
        return APP_EXIT_MACHINE;
    }
    int code = open_port(run);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    int status = bench_control_send(run->control, run->port->info.mac, 6, WAIT_NS);
    status = status == CW_OK ? bench_control_receive(run->control, run->peer_mac, 6, WAIT_NS) : status;
    if (status != CW_OK) {
        code = fail(status, "the other side is gone");
    }
    for (uint64_t round = 0; round < run->options->rounds && code == APP_EXIT_SUCCESS; round++) {
        code = run->options->no_raw ? APP_EXIT_SUCCESS : raw_round(run);
        code = code == APP_EXIT_SUCCESS ? our_round(run, round) : code;
    }
    memcpy(run->driver, run->port->info.driver, sizeof(run->driver));
    cw_port_close(run->port);
    return code;
}

/* ---- results ---- */

struct testpmd_results {
    bool measured;
    double full_pps;
    double small_pps;
};

/* The raw limit is taken to be one only if it stands up to testpmd. The two cannot run at once, so the best of each is
 * compared: what the machine can do while nobody else wants it. */
static double ratio_testpmd(const struct bench_series *raw, double testpmd_pps)
{
    double best = 0;
    for (uint64_t i = 0; i < raw->count; i++) {
        best = raw->values[i] > best ? raw->values[i] : best;
    }
    return best / testpmd_pps;
}

static void size_report(struct app_report *report, const struct run *run, size_t index,
                        const struct testpmd_results *testpmd)
{
    const struct bench_put_options *options = run->options;
    const struct size_results *own = &run->sizes[index];
    const struct raw_results *raw = &run->raw;
    bool has_raw = !options->no_raw, has_testpmd = testpmd->measured;
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "put"),
        app_text("fabric", NULL, 0, options->fabric),
        app_text("driver", NULL, 0, run->driver),
        app_count("mtu_bytes", NULL, options->mtu_bytes),
        app_count("size_bytes", "bytes", options->sizes.values[index]),
        app_count("rounds", NULL, options->rounds),
        app_number("latency_p50_ns", "p50 ns", 0, 1, bench_series_median(own->latency_p50_ns)),
        app_number("latency_p99_ns", "p99 ns", 0, 1, bench_series_median(own->latency_p99_ns)),
        app_number("goodput_bps", "Gb/s", 2, 1e-9, 8 * bench_series_median(own->bytes_per_s)),
        app_number("rate_puts_per_s", "Mput/s", 3, 1e-6, bench_series_median(own->puts_per_s)),
        app_number("rate_alone_puts_per_s", "alone M/s", 3, 1e-6, bench_series_median(own->alone_puts_per_s)),
        app_number("packets_per_put", "pkt/put", 2, 1, bench_series_median(own->packets_per_put)),
        app_count("retransmits", "retrans", own->retransmits),
        app_count("spurious", "spurious", own->spurious),
        app_number("token_cost_ns", NULL, 0, 1, run->token_cost_ns),
        app_when(has_raw, app_number("raw_latency_p50_ns", NULL, 0, 1, bench_series_median(raw->latency_p50_ns))),
        app_when(has_raw, app_number("raw_latency_p99_ns", NULL, 0, 1, bench_series_median(raw->latency_p99_ns))),
        app_when(has_raw, app_number("raw_goodput_bps", NULL, 0, 1, 8 * bench_series_median(raw->frame_bytes_per_s))),
        app_when(has_raw,
                 app_number("raw_copy_goodput_bps", NULL, 0, 1, 8 * bench_series_median(raw->copy_bytes_per_s))),
        app_when(has_raw, app_number("raw_rate_pps", NULL, 0, 1, bench_series_median(raw->frame_pps))),
        app_when(has_raw, app_number("raw_small_rate_pps", NULL, 0, 1, bench_series_median(raw->small_pps))),
        app_when(has_raw, app_number("ratio_goodput", "goodput", 3, 1, bench_series_median(own->ratio_goodput))),
        app_when(has_raw,
                 app_number("ratio_goodput_copy", "/copies", 3, 1, bench_series_median(own->ratio_goodput_copy))),
        app_when(has_raw, app_number("ratio_latency", "latency", 2, 1, bench_series_median(own->ratio_latency))),
        app_when(has_testpmd, app_number("testpmd_rate_pps", NULL, 0, 1, testpmd->full_pps)),
        app_when(has_testpmd, app_number("testpmd_small_rate_pps", NULL, 0, 1, testpmd->small_pps)),
        app_when(has_testpmd,
                 app_number("ratio_raw_testpmd", NULL, 0, 1, ratio_testpmd(&raw->frame_pps, testpmd->full_pps))),
        app_when(has_testpmd,
                 app_number("ratio_raw_testpmd_small", NULL, 0, 1, ratio_testpmd(&raw->small_pps, testpmd->small_pps))),
    };
    APP_REPORT(report, cells);
}

static void head_print(const struct run *run, const struct testpmd_results *testpmd)
{
    const struct bench_put_options *options = run->options;
    const struct raw_results *raw = &run->raw;
    printf("put over %s (%s), MTU %llu, median of %llu rounds; the loop's token costs %.1f ns a call\n",
           options->fabric, run->driver, (unsigned long long)options->mtu_bytes, (unsigned long long)options->rounds,
           run->token_cost_ns);
    if (!options->no_raw) {
        printf("raw: %.2f Gb/s in full frames (%.2f Mpps), %.2f Gb/s with a copy on each side, %.2f Mpps of 64 bytes, "
               "round trip %.0f ns "
               "(p99 %.0f)\n",
               bench_series_median(raw->frame_bytes_per_s) * 8e-9, bench_series_median(raw->frame_pps) * 1e-6,
               bench_series_median(raw->copy_bytes_per_s) * 8e-9, bench_series_median(raw->small_pps) * 1e-6,
               bench_series_median(raw->latency_p50_ns), bench_series_median(raw->latency_p99_ns));
    }
    if (testpmd->measured) {
        printf("dpdk-testpmd: %.2f Mpps in full frames, %.2f Mpps of 64 bytes at best; raw at best is %.2f and %.2f of "
               "that\n",
               testpmd->full_pps * 1e-6, testpmd->small_pps * 1e-6, ratio_testpmd(&raw->frame_pps, testpmd->full_pps),
               ratio_testpmd(&raw->small_pps, testpmd->small_pps));
    }
}

static int parse_fabric(const char *name, enum bench_fabric_kind *kind)
{
    static const char *const names[] = {
        [BENCH_FABRIC_MEMIF] = "memif",
        [BENCH_FABRIC_VETH_AF_PACKET] = "veth-af_packet",
        [BENCH_FABRIC_VETH_AF_XDP] = "veth-af_xdp",
        [BENCH_FABRIC_SWITCH] = "switch",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *kind = (enum bench_fabric_kind)i;
            return APP_EXIT_SUCCESS;
        }
    }
    app_error("no such fabric", name, "choose memif, veth-af_packet, veth-af_xdp, switch or sim");
    return APP_EXIT_USAGE;
}

static int side_run(void *context, bool initiator, int control)
{
    struct run *run = context;
    run->initiator = initiator;
    run->control = control;
    return run_side(run);
}

/* Without dpdk-testpmd a line says so, and nothing is measured. */
static int run_testpmd(const struct bench_put_options *options, enum bench_fabric_kind kind,
                       struct testpmd_results *results)
{
    uint32_t frames[2] = {14 + (uint32_t)options->mtu_bytes, RAW_SMALL_FRAME_BYTES};
    double *pps[2] = {&results->full_pps, &results->small_pps};
    for (uint32_t i = 0; i < 2; i++) {
        struct bench_fabric fabric;
        int status = CW_OK;
        int code = bench_fabric_create(&fabric, kind, 2, (uint32_t)options->mtu_bytes);
        if (code == APP_EXIT_SUCCESS) {
            char devices[2][BENCH_FABRIC_VDEV_BYTES];
            bench_fabric_vdev(&fabric, 0, devices[0], sizeof(devices[0]));
            bench_fabric_vdev(&fabric, 1, devices[1], sizeof(devices[1]));
            struct bench_testpmd_settings settings = {
                .receive_device = devices[0],
                .transmit_device = devices[1],
                .receive_network = bench_fabric_network(&fabric, 0),
                .transmit_network = bench_fabric_network(&fabric, 1),
                .frame_bytes = frames[i],
                .receive_core = (uint32_t)options->core[1],
                .transmit_core = (uint32_t)options->core[0],
                .samples = 3,
            };
            char error[CW_PORT_TEXT_BYTES];
            status = bench_testpmd_run(&settings, pps[i], error, sizeof(error));
            if (status == CW_ERROR_NOT_FOUND) {
                fprintf(stderr, "causeway bench put: %s\n", error);
            } else if (status != CW_OK) {
                code = app_error_status(status, error, "or leave it out: --no-testpmd");
            }
        }
        bench_fabric_destroy(&fabric);
        if (code != APP_EXIT_SUCCESS || status != CW_OK) {
            return code;
        }
    }
    results->measured = true;
    return APP_EXIT_SUCCESS;
}

int bench_put_real(const struct bench_put_options *options)
{
    enum bench_fabric_kind kind;
    int code = parse_fabric(options->fabric, &kind);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    struct run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return fail(CW_ERROR_MEMORY, "no memory for the results");
    }
    struct testpmd_results testpmd = {0};
    struct bench_fabric fabric;
    code = bench_fabric_create(&fabric, kind, 2, (uint32_t)options->mtu_bytes);
    run->options = options;
    run->fabric = &fabric;
    code = code == APP_EXIT_SUCCESS ? bench_control_sides(side_run, run) : code;
    bench_fabric_destroy(&fabric);
    bool wants_testpmd = !options->no_raw && !options->no_testpmd && kind != BENCH_FABRIC_SWITCH;
    if (code == APP_EXIT_SUCCESS && wants_testpmd) {
        code = run_testpmd(options, kind, &testpmd);
    }
    if (code == APP_EXIT_SUCCESS) {
        struct app_report report = options->report;
        if (!report.json) {
            head_print(run, &testpmd);
        }
        for (size_t i = 0; i < options->sizes.count; i++) {
            size_report(&report, run, i, &testpmd);
        }
    }
    free(run);
    return code;
}
