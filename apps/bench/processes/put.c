/* causeway bench put over real ports: two pinned processes, raw and ours in turn. */
#include "apps/bench/processes/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/processes/raw.h"
#include "apps/bench/processes/testpmd.h"
#include "apps/cli/cli.h"
#include "dataplane/verbs/device.h"
#include "dataplane/wire/wire.h"

enum { REGION_BYTES = 256 << 20, RAW_REGION_BYTES = 1 << 20, RAW_SMALL_FRAME_BYTES = 64 };

/* The frame of an 8-byte put: what the raw ping-pong is played with. */
enum { RAW_PUT_FRAME_BYTES = CW_WIRE_OVERHEAD_BYTES + sizeof(struct cw_wire_put) + 8 };

/* What one side has measured in a round. */
struct put_result {
    char driver[32];
    double token_cost_ns;
    struct bench_raw_rate frames;
    struct bench_raw_rate copies;
    struct bench_raw_rate small;
    struct bench_raw_latency raw_latency;
    struct {
        struct bench_put_latency latency;
        struct bench_put_rate rate;
        struct bench_put_rate alone;
    } sizes[BENCH_SIZES_MAX];
};

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

/* All rounds. */
struct run {
    const struct bench_put_options *options;
    char driver[32];
    struct raw_results raw;
    struct size_results sizes[BENCH_SIZES_MAX];
    double token_cost_ns;
};

/* ---- one side, in one round ---- */

static int raw_rate(struct bench_member *member, uint32_t frame_bytes, bool copy, struct bench_raw_rate *rate)
{
    const struct bench_put_options *options = member->settings;
    struct bench_raw_settings settings = {
        .frame_bytes = frame_bytes,
        .payload_bytes = copy ? frame_bytes - 42 : 0,
        .region_bytes = copy ? RAW_REGION_BYTES : 0,
        .warmup_ns = options->duration_ns / 4,
        .duration_ns = options->duration_ns,
        .copy = copy,
    };
    return bench_raw_rate(member, &settings, rate);
}

static int raw_run(struct bench_member *member)
{
    const struct bench_put_options *options = member->settings;
    struct put_result *result = member->result;
    uint32_t full = 14 + member->port->info.mtu_bytes;
    struct bench_raw_settings settings = {
        .frame_bytes = RAW_PUT_FRAME_BYTES, .warmup_ns = options->duration_ns / 4, .duration_ns = options->duration_ns};
    int status = raw_rate(member, full, false, &result->frames);
    status = status == CW_OK ? raw_rate(member, full, true, &result->copies) : status;
    status = status == CW_OK ? raw_rate(member, RAW_SMALL_FRAME_BYTES, false, &result->small) : status;
    status = status == CW_OK ? bench_raw_latency(member, &settings, &result->raw_latency) : status;
    if (status == CW_ERROR_NOT_FOUND) {
        app_error("no raw frame came through", options->fabric, "are both cores busy with something else?");
        return APP_EXIT_MACHINE;
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "the raw measurement failed", NULL);
}

static int put_run(struct bench_member *member)
{
    const struct bench_put_options *options = member->settings;
    struct put_result *result = member->result;
    uint64_t duration_ns = options->duration_ns;
    memcpy(result->driver, member->port->info.driver, sizeof(result->driver));
    for (size_t i = 0; i < options->sizes.count; i++) {
        uint64_t size = options->sizes.values[i];
        int status = bench_put_latency(member, size, duration_ns, &result->sizes[i].latency);
        if (status == CW_OK) {
            status = bench_put_rate(member, size, false, duration_ns / 4, duration_ns, &result->sizes[i].rate);
        }
        if (status == CW_OK) {
            status = bench_put_rate(member, size, true, duration_ns / 4, duration_ns, &result->sizes[i].alone);
        }
        if (status != CW_OK) {
            return app_error_status(status, "the puts failed", NULL);
        }
    }
    result->token_cost_ns = member->index == 1 ? bench_token_cost_ns(member) : 0;
    bench_member_leave(member);
    return APP_EXIT_SUCCESS;
}

/* ---- all rounds ---- */

static void round_add(struct run *run, const struct put_result *responder, const struct put_result *initiator)
{
    const struct bench_raw_latency *raw_latency = &initiator->raw_latency;
    bench_series_add(&run->raw.frame_bytes_per_s, responder->frames.bytes_per_s);
    bench_series_add(&run->raw.frame_pps, responder->frames.packets_per_s);
    bench_series_add(&run->raw.copy_bytes_per_s, responder->copies.bytes_per_s);
    bench_series_add(&run->raw.small_pps, responder->small.packets_per_s);
    bench_series_add(&run->raw.latency_p50_ns, raw_latency->p50_ns);
    bench_series_add(&run->raw.latency_p99_ns, raw_latency->p99_ns);
    memcpy(run->driver, initiator->driver, sizeof(run->driver));
    run->token_cost_ns = initiator->token_cost_ns;
    for (size_t i = 0; i < run->options->sizes.count; i++) {
        struct size_results *results = &run->sizes[i];
        const struct bench_put_latency *latency = &initiator->sizes[i].latency;
        const struct bench_put_rate *rate = &responder->sizes[i].rate;
        bench_series_add(&results->latency_p50_ns, latency->p50_ns);
        bench_series_add(&results->latency_p99_ns, latency->p99_ns);
        bench_series_add(&results->bytes_per_s, rate->bytes_per_s);
        bench_series_add(&results->puts_per_s, rate->puts_per_s);
        bench_series_add(&results->alone_puts_per_s, responder->sizes[i].alone.puts_per_s);
        bench_series_add(&results->packets_per_put, initiator->sizes[i].rate.packets_per_put);
        results->retransmits += initiator->sizes[i].rate.retransmits + initiator->sizes[i].alone.retransmits;
        results->spurious += rate->spurious + responder->sizes[i].alone.spurious;
        bench_series_add(&results->ratio_goodput, rate->bytes_per_s / responder->frames.bytes_per_s);
        bench_series_add(&results->ratio_goodput_copy, rate->bytes_per_s / responder->copies.bytes_per_s);
        bench_series_add(&results->ratio_latency, latency->p50_ns / raw_latency->p50_ns);
    }
}

/* Raw and ours in turn, by new processes. */
static int round_run(struct run *run, enum bench_fabric_kind kind)
{
    const struct bench_put_options *options = run->options;
    const uint64_t cores[2] = {options->core[1], options->core[0]};
    struct bench_fabric fabric;
    struct bench_group group = {.running = 0};
    const struct bench_group_config config = {
        .count = 2,
        .doorbell = kind == BENCH_FABRIC_SWITCH,
        .rdma = options->rdma,
        .cores = cores,
        .spin = kind != BENCH_FABRIC_SWITCH && cores[0] != cores[1],
        .region_bytes = REGION_BYTES,
        .result_bytes = sizeof(struct put_result),
        .limit_ns = BENCH_HANG_NS + 2 * (4 + 3 * options->sizes.count) * options->duration_ns,
        .settings = options,
        .reference = options->no_raw ? NULL : raw_run,
        .run = put_run,
    };
    int code = APP_EXIT_SUCCESS;
    if (kind == BENCH_FABRIC_DEVICES) {
        const char *const devices[2] = {options->devices[1], options->devices[0]}; /* as the cores */
        bench_fabric_devices(&fabric, devices, (uint32_t)options->mtu_bytes);
    } else {
        code = bench_fabric_create(&fabric, kind, 2, (uint32_t)options->mtu_bytes);
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
        app_text("rdma", NULL, 0, options->rdma != NULL ? options->rdma : ""),
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
        [BENCH_FABRIC_SWITCH] = "switch",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            *kind = (enum bench_fabric_kind)i;
            return APP_EXIT_SUCCESS;
        }
    }
    app_error("no such fabric", name, "choose memif, veth-af_packet, switch or sim");
    return APP_EXIT_USAGE;
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

/* Whether the RDMA device is there, before each process would say that it is not. */
static int rdma_check(const struct bench_put_options *options)
{
    const struct cw_verbs_config config = {.name = options->rdma};
    struct cw_verbs_port port;
    char error[CW_VERBS_ERROR_BYTES];
    int status = options->rdma == NULL ? CW_OK : cw_verbs_find(&config, &port, error, sizeof(error));
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, error, "--rdma");
}

int bench_put_run(const struct bench_put_options *options)
{
    enum bench_fabric_kind kind = BENCH_FABRIC_DEVICES;
    int code = options->devices[1] != NULL ? APP_EXIT_SUCCESS : parse_fabric(options->fabric, &kind);
    code = code == APP_EXIT_SUCCESS ? rdma_check(options) : code;
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    struct run *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return app_error_status(CW_ERROR_MEMORY, "no memory for the results", NULL);
    }
    struct testpmd_results testpmd = {0};
    run->options = options;
    for (uint64_t round = 0; round < options->rounds && code == APP_EXIT_SUCCESS; round++) {
        code = round_run(run, kind);
    }
    bool wants_testpmd =
        !options->no_raw && !options->no_testpmd && kind != BENCH_FABRIC_SWITCH && kind != BENCH_FABRIC_DEVICES;
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
