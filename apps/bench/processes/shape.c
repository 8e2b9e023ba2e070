/* causeway bench shape: how exactly a shaper lets frames out on the real clock, noted where they leave to the port. Two
 * pinned processes, one of which sends full frames over a memif. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/processes/departures.h"
#include "apps/bench/processes/put.h"
#include "apps/cli/cli.h"

enum { RATES_MAX = 16, FRAMES_MAX = 8 << 20, REGION_BYTES = 16 << 20, PUT_BYTES = 1 << 20, SHAPER = 0 };

struct shape {
    struct app_list rates_bps;
    uint64_t duration_ns;
    uint64_t catch_up_ns;
    uint64_t core[2];
    bool sleeps;
    struct app_report report;
};

struct traffic_call {
    uint32_t peer;
    uint64_t rate_bps;
    uint64_t catch_up_ns;
};

static int traffic_set(struct cw_endpoint *endpoint, void *context)
{
    const struct traffic_call *call = context;
    const struct cw_traffic traffic = {.control = CW_TRAFFIC_RATE, .shaper = SHAPER, .rate_bps = call->rate_bps};
    int status = cw_shaper_set(endpoint, SHAPER, call->rate_bps, call->catch_up_ns);
    return status == CW_OK ? cw_peer_traffic(endpoint, call->peer, &traffic) : status;
}

static void result_report(struct app_report *report, uint64_t rate_bps, const struct bench_departures *seen)
{
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "shape"),
        app_scaled("rate_bps", "Mb/s", 1, 1e-6, rate_bps),
        app_count("frames", "frames", seen->frames),
        app_number("ratio_rate", "of rate", 4, 1, seen->rate_bps / (double)rate_bps),
        app_number("gap_deviation_p50_ns", "gap p50 ns", 0, 1, seen->gap_p50_ns),
        app_number("gap_deviation_p99_ns", "gap p99 ns", 0, 1, seen->gap_p99_ns),
        app_number("gap_deviation_max_ns", "gap max ns", 0, 1, seen->gap_max_ns),
        app_number("burst_bytes", "burst bytes", 0, 1, seen->burst_bytes),
        app_number("burst_ns", "burst us", 1, 1e-3, seen->burst_bytes * 8e9 / (double)rate_bps),
    };
    APP_REPORT(report, cells);
}

/* One rate, measured by both sides; what was noted is the initiator's. */
static int rate_measure(struct bench_member *member, struct app_report *report, uint64_t rate_bps)
{
    const struct shape *shape = member->settings;
    bool initiator = member->index == 1;
    struct bench_put_rate ignored;
    struct bench_departures seen;
    int status = CW_OK;
    if (initiator) {
        struct traffic_call call = {.peer = member->peers[0], .rate_bps = rate_bps, .catch_up_ns = shape->catch_up_ns};
        status = cw_loop_call(member->loop, traffic_set, &call);
        bench_departures_begin(member->port);
    }
    if (status == CW_OK) {
        status = bench_put_rate(member, PUT_BYTES, false, shape->duration_ns / 4, shape->duration_ns, &ignored);
    }
    if (status == CW_OK && initiator) {
        status = bench_departures_judge(member->port, rate_bps, &seen);
    }
    if (status != CW_OK) {
        return app_error_status(status, "the puts failed", NULL);
    }
    if (initiator) {
        result_report(report, rate_bps, &seen);
    }
    return APP_EXIT_SUCCESS;
}

/* Notes what leaves the initiator. */
static int port_note(struct bench_member *member)
{
    if (member->index == 1 && bench_departures_note(member->port, FRAMES_MAX) != CW_OK) {
        app_error("no memory for what is noted", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}

static int side_run(struct bench_member *member)
{
    const struct shape *shape = member->settings;
    struct app_report report = shape->report;
    for (size_t i = 0; i < shape->rates_bps.count; i++) {
        int code = rate_measure(member, &report, shape->rates_bps.values[i]);
        if (code != APP_EXIT_SUCCESS) {
            return code;
        }
    }
    bench_member_leave(member);
    return APP_EXIT_SUCCESS;
}

int bench_shape(int argc, char **argv)
{
    struct shape shape = {.rates_bps = {.values = {100000000, 250000000, 1000000000, 2500000000, 10000000000},
                                        .count = 5,
                                        .count_max = RATES_MAX},
                          .duration_ns = 2000000000,
                          .catch_up_ns = CW_CATCH_UP_MAX_NS,
                          .core = {0, 1}};
    const struct app_option options[] = {
        OPTION_RATES("rates", "of the shaper (100Mbps,250Mbps,1Gbps,2.5Gbps,10Gbps)", &shape.rates_bps),
        OPTION_TIME("duration", "of each rate (2s)", &shape.duration_ns, 10000000, 0),
        OPTION_TIME("catch-up", "what a late turn makes up for at most, up to 1ms (1ms)", &shape.catch_up_ns, 0,
                    CW_CATCH_UP_MAX_NS),
        OPTION_COUNT("core", "of the sender (0)", &shape.core[0], 0, CPU_SETSIZE - 1),
        OPTION_COUNT("peer-core", "of the other side (1)", &shape.core[1], 0, CPU_SETSIZE - 1),
        OPTION_FLAG("sleep", "loops sleep when they have nothing to do, as those of MPI do where cores are shared",
                    &shape.sleeps),
        OPTION_JSON(" a line", &shape.report.json),
        {0},
    };
    int exit_code;
    if (app_options_parse(
            "bench shape [OPTION...]\n\nHow exactly a shaper lets full frames out on the real clock, noted "
            "where they leave to the port (memif).\nPrints the "
            "share of the rate that was used, how far gaps between frames were from what the rate makes "
            "of them, and the most by which any time T saw more "
            "than rate x T and one frame, in bytes and in time at that rate.",
            options, 0, argc, argv, &exit_code) < 0) {
        return exit_code;
    }
    const uint64_t cores[2] = {shape.core[1], shape.core[0]};
    struct bench_fabric fabric;
    struct bench_group group = {.running = 0};
    const struct bench_group_config config = {
        .count = 2,
        .cores = cores,
        .spin = !shape.sleeps && cores[0] != cores[1],
        .region_bytes = REGION_BYTES,
        .limit_ns = BENCH_HANG_NS + 2 * shape.rates_bps.count * shape.duration_ns,
        .settings = &shape,
        .reference = port_note,
        .run = side_run,
    };
    int code = bench_fabric_create(&fabric, BENCH_FABRIC_MEMIF, 2, 1500);
    code = code == APP_EXIT_SUCCESS ? bench_group_start(&group, &fabric, &config) : code;
    code = code == APP_EXIT_SUCCESS ? bench_group_finish(&group) : code;
    bench_group_free(&group);
    bench_fabric_destroy(&fabric);
    return code;
}
