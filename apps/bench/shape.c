/* causeway bench shape: how exactly a shaper lets frames out on the real clock, noted where they leave to the port. Two
 * pinned processes, one of which sends full frames over a memif. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/bench/control.h"
#include "apps/bench/departures.h"
#include "apps/bench/fabric.h"
#include "apps/bench/put.h"
#include "apps/cli/cli.h"
#include "control/settings/units.h"

enum { RATES_MAX = 16, FRAMES_MAX = 8 << 20, REGION_BYTES = 16 << 20, PUT_BYTES = 1 << 20, SHAPER = 0 };

#define WAIT_NS (BENCH_PUT_CONTROL_TIMEOUT_S * 1000000000ull)

struct shape {
    uint64_t rates_bps[RATES_MAX];
    uint32_t rate_count;
    uint64_t duration_ns;
    uint64_t catch_up_ns;
    uint64_t core[2];
    bool sleeps;
    bool json;
    const struct bench_fabric *fabric;
    bool initiator;
    int control;
    struct cw_port *port;
    struct cw_port *noted; /* initiator: `port`, with notes */
};

static int rates_take(void *context, const char *text)
{
    struct shape *shape = context;
    char *copy = strdup(text);
    char *rest = copy;
    bool good = copy != NULL;
    shape->rate_count = 0;
    for (char *word = good ? strtok_r(rest, ",", &rest) : NULL; word != NULL && good;
         word = strtok_r(NULL, ",", &rest)) {
        good = shape->rate_count < RATES_MAX && cw_units_rate(word, &shape->rates_bps[shape->rate_count]) &&
               shape->rates_bps[shape->rate_count] > 0;
        shape->rate_count++;
    }
    free(copy);
    if (!good || shape->rate_count == 0) {
        app_error("bad value", text, "--rates takes up to 16 rates like 250Mbps, separated by commas");
        return APP_EXIT_USAGE;
    }
    return APP_EXIT_SUCCESS;
}

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

static void print_result(const struct shape *shape, uint64_t rate_bps, const struct bench_departures *seen)
{
    double burst_ns = seen->burst_bytes * 8e9 / (double)rate_bps;
    if (!shape->json) {
        printf("%10.1f %10llu %8.4f %10.0f %10.0f %10.0f %12.0f %10.1f\n", (double)rate_bps / 1e6,
               (unsigned long long)seen->frames, seen->rate_bps / (double)rate_bps, seen->gap_p50_ns, seen->gap_p99_ns,
               seen->gap_max_ns, seen->burst_bytes, burst_ns / 1e3);
        return;
    }
    json_t *line = app_json_new();
    app_json_text(line, "bench", "shape");
    app_json_count(line, "rate_bps", rate_bps);
    app_json_count(line, "frames", seen->frames);
    app_json_number(line, "ratio_rate", seen->rate_bps / (double)rate_bps);
    app_json_number(line, "gap_deviation_p50_ns", seen->gap_p50_ns);
    app_json_number(line, "gap_deviation_p99_ns", seen->gap_p99_ns);
    app_json_number(line, "gap_deviation_max_ns", seen->gap_max_ns);
    app_json_number(line, "burst_bytes", seen->burst_bytes);
    app_json_number(line, "burst_ns", burst_ns);
    app_json_emit(line);
}

/* One rate, measured by both sides; what was noted is the initiator's. */
static int rate_measure(struct shape *shape, struct bench_side *side, uint64_t rate_bps)
{
    struct bench_put_rate ignored;
    struct bench_departures seen;
    int status = CW_OK;
    if (shape->initiator) {
        struct traffic_call call = {.peer = side->peer, .rate_bps = rate_bps, .catch_up_ns = shape->catch_up_ns};
        status = cw_loop_call(side->loop, traffic_set, &call);
        bench_departures_begin(shape->noted);
    }
    if (status == CW_OK) {
        status = bench_put_rate(side, PUT_BYTES, false, shape->duration_ns / 4, shape->duration_ns, &ignored);
    }
    if (status == CW_OK && shape->initiator) {
        status = bench_departures_judge(shape->noted, rate_bps, &seen);
    }
    if (status != CW_OK) {
        return app_error_status(status, "the puts failed", NULL);
    }
    if (shape->initiator) {
        print_result(shape, rate_bps, &seen);
        fflush(stdout);
    }
    return APP_EXIT_SUCCESS;
}

static int port_open(struct shape *shape)
{
    uint8_t mark = 1;
    if (shape->initiator && bench_control_receive(shape->control, &mark, 1, WAIT_NS) != CW_OK) {
        return APP_EXIT_MACHINE; /* the other side has said why */
    }
    int code = bench_fabric_open(shape->fabric, shape->initiator ? 1 : 0, false, &shape->port);
    if (code == APP_EXIT_SUCCESS && !shape->initiator) {
        (void)bench_control_send(shape->control, &mark, 1, WAIT_NS); /* else the side that awaits it notices */
    }
    if (code == APP_EXIT_SUCCESS) {
        code = bench_fabric_await(shape->port);
    }
    if (code == APP_EXIT_SUCCESS && shape->initiator &&
        bench_departures_open(shape->port, FRAMES_MAX, &shape->noted) != CW_OK) {
        app_error("no memory for what is noted", NULL, NULL);
        code = APP_EXIT_MACHINE;
    }
    return code;
}

static int side_run(void *context, bool initiator, int control)
{
    struct shape *shape = context;
    cpu_set_t cores;
    struct bench_side side;
    char error[CW_PORT_TEXT_BYTES];
    shape->initiator = initiator;
    shape->control = control;
    CPU_ZERO(&cores);
    CPU_SET((size_t)shape->core[shape->initiator ? 0 : 1], &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0) {
        app_error("cannot pin to the core asked for", strerror(errno), "choose others: --core N --peer-core M");
        return APP_EXIT_MACHINE;
    }
    int code = port_open(shape);
    if (code == APP_EXIT_SUCCESS) {
        struct cw_port *port = shape->initiator ? shape->noted : shape->port;
        bool spins = !shape->sleeps && shape->core[0] != shape->core[1];
        int status =
            bench_side_open(&side, port, shape->control, shape->initiator, spins, REGION_BYTES, error, sizeof(error));
        code = status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, error, NULL);
        for (uint32_t i = 0; i < shape->rate_count && code == APP_EXIT_SUCCESS; i++) {
            code = rate_measure(shape, &side, shape->rates_bps[i]);
        }
        if (code == APP_EXIT_SUCCESS) { /* nobody closes while the other still measures */
            (void)bench_control_barrier(shape->control, 1, WAIT_NS);
        }
        bench_side_close(&side);
    }
    if (shape->noted != NULL) {
        cw_port_close(shape->noted);
    }
    if (shape->port != NULL) {
        cw_port_close(shape->port);
    }
    return code;
}

int bench_shape(int argc, char **argv)
{
    struct shape shape = {.rates_bps = {100000000, 250000000, 1000000000, 2500000000, 10000000000},
                          .rate_count = 5,
                          .duration_ns = 2000000000,
                          .catch_up_ns = CW_CATCH_UP_MAX_NS,
                          .core = {0, 1}};
    const struct app_option options[] = {
        {"rates", "LIST", "of the shaper (100Mbps,250Mbps,1Gbps,2.5Gbps,10Gbps)", APP_OPTION_EACH, &shape, 0, 0,
         rates_take},
        {"duration", "TIME", "of each rate (2s)", APP_OPTION_DURATION, &shape.duration_ns, 10000000, 0, NULL},
        {"catch-up", "TIME", "what a late turn makes up for at most, up to 1ms (1ms)", APP_OPTION_DURATION,
         &shape.catch_up_ns, 0, CW_CATCH_UP_MAX_NS, NULL},
        {"core", "N", "of the sender (0)", APP_OPTION_COUNT, &shape.core[0], 0, CPU_SETSIZE - 1, NULL},
        {"peer-core", "N", "of the other side (1)", APP_OPTION_COUNT, &shape.core[1], 0, CPU_SETSIZE - 1, NULL},
        {"sleep", NULL, "loops sleep when they have nothing to do, as those of MPI do where cores are shared",
         APP_OPTION_FLAG, &shape.sleeps, 0, 0, NULL},
        {"json", NULL, "one JSON object a line", APP_OPTION_FLAG, &shape.json, 0, 0, NULL},
        {NULL, NULL, NULL, APP_OPTION_FLAG, NULL, 0, 0, NULL},
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
    struct bench_fabric fabric;
    int code = bench_fabric_create(&fabric, BENCH_FABRIC_MEMIF, 2, 1500);
    if (code != APP_EXIT_SUCCESS) {
        return code;
    }
    shape.fabric = &fabric;
    if (!shape.json) {
        printf("%10s %10s %8s %10s %10s %10s %12s %10s\n", "Mb/s", "frames", "of rate", "gap p50 ns", "gap p99 ns",
               "gap max ns", "burst bytes", "burst us");
    }
    code = bench_control_sides(side_run, &shape);
    bench_fabric_destroy(&fabric);
    return code;
}
