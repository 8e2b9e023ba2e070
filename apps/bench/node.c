/* causeway bench node: the cost of a rank's frame for the node's thread (apps/node/forward.c), by length: taken from
 * its memory, copied, checked, given to a NIC that does nothing. The rank's part and the node's are timed apart, on one
 * core. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/node/state.h"
#include "dataplane/base/clock.h"
#include "dataplane/limits.h"
#include "dataplane/status.h"

enum {
    MTU_BYTES = 9000,
    HEADER = 14,
    IP = 20,
    UDP_PORT = 29400,
    VERIFIED = 1000,
    NIC_IP = 0x0a000001,
    LENGTH_MIN = 64
};

/* A NIC that takes all there is, and can look at it. */
struct nic {
    struct cw_port port; /* first */
    uint8_t buffers[CW_PORT_BURST_MAX][HEADER + MTU_BYTES];
    uint64_t sent, wrong;
    uint32_t length;
    bool looks;
};

struct bench {
    struct nic nic;
    struct node_dataplane dataplane;
    struct node_lease lease;
    struct node_share share;
    struct cw_port *rank;
};

/* The frame of that number: UDP from the lease's port, and bytes that follow from the number. */
static void frame_fill(uint8_t *data, uint32_t length, uint64_t number)
{
    static const uint8_t header[] = {2,  0, 0, 0, 0, 2, 2,  0, 0, 0,  0, 1, 8, 0,  0x45, 0, 0,
                                     28, 0, 0, 0, 0, 9, 17, 0, 0, 10, 0, 0, 1, 10, 0,    0, 2};
    memset(data, (int)(number % 251), length);
    memcpy(data, header, sizeof(header));
    data[16] = (uint8_t)((length - HEADER) >> 8);
    data[17] = (uint8_t)(length - HEADER);
    data[34] = data[36] = UDP_PORT >> 8;
    data[35] = data[37] = UDP_PORT & 0xff;
    data[38] = (uint8_t)((length - HEADER - IP) >> 8);
    data[39] = (uint8_t)(length - HEADER - IP);
    data[40] = data[41] = 0; /* no checksum */
}

static uint32_t nic_receive(struct cw_port *port, struct cw_received *packets, uint32_t count_max)
{
    (void)port;
    (void)packets;
    (void)count_max;
    return 0;
}

static void nic_release(struct cw_port *port, struct cw_received *packets, uint32_t count)
{
    (void)port;
    (void)packets;
    (void)count;
}

static uint32_t nic_reserve(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    struct nic *nic = (struct nic *)port;
    for (uint32_t i = 0; i < count; i++) {
        packets[i].data = nic->buffers[i];
    }
    return count;
}

static uint32_t nic_transmit(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    struct nic *nic = (struct nic *)port;
    uint8_t expected[HEADER + MTU_BYTES];
    for (uint32_t i = 0; i < count && nic->looks; i++) {
        frame_fill(expected, nic->length, nic->sent + i);
        nic->wrong += packets[i].length != nic->length || memcmp(packets[i].data, expected, nic->length) != 0;
    }
    nic->sent += count;
    return count;
}

static void nic_cancel(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    (void)port;
    (void)packets;
    (void)count;
}

static const struct cw_port_ops operations = {.receive = nic_receive,
                                              .release = nic_release,
                                              .reserve = nic_reserve,
                                              .transmit = nic_transmit,
                                              .cancel = nic_cancel};

static int bench_open(struct bench *bench)
{
    const struct cw_shm_port_config config = {.mac = {2, 0, 0, 0, 0, 1}, .mtu_bytes = MTU_BYTES};
    struct node_dataplane *dataplane = &bench->dataplane;
    char error[CW_PORT_TEXT_BYTES];
    int status = cw_shm_port_create(&config, &bench->rank, error, sizeof(error));
    if (status == CW_OK) {
        status =
            cw_shm_port_open(cw_shm_port_memory(bench->rank), MTU_BYTES, &bench->lease.shm_port, error, sizeof(error));
    }
    if (status != CW_OK) {
        return app_error_status(status, error, NULL);
    }
    bench->nic.port.ops = &operations;
    dataplane->config = (struct node_dataplane_config){
        .nic = &bench->nic.port, .ip = cw_ip_v4(NIC_IP), .mac = {2, 0, 0, 0, 0, 1}, .count = 1, .ports_each = 1};
    bench->lease.share = &bench->share;
    bench->lease.turn.weight = bench->share.turn.weight = 1;
    bench->lease.first = UDP_PORT;
    bench->lease.ports = 1;
    bench->share.round.turns = bench->share.turns;
    bench->share.turns[bench->share.round.count++] = &bench->lease.turn;
    dataplane->shares.turns = dataplane->share_turns;
    dataplane->share_turns[dataplane->shares.count++] = &bench->share.turn;
    dataplane->leases[dataplane->lease_count++] = &bench->lease;
    return APP_EXIT_SUCCESS;
}

/* A burst of the rank's, and the node's turns until all of it has left. Adds to the times of both. */
static bool burst(struct bench *bench, uint32_t length, uint64_t *rank_ns, uint64_t *node_ns)
{
    struct cw_transmit packets[CW_PORT_BURST_MAX];
    uint64_t begin_ns = cw_clock_ns(), before = bench->nic.sent;
    uint32_t count = cw_port_reserve(bench->rank, packets, CW_PORT_BURST_MAX);
    for (uint32_t i = 0; i < count; i++) {
        frame_fill(packets[i].data, length, before + i);
        packets[i].length = length;
    }
    bool is_well = cw_port_transmit(bench->rank, packets, count) == count && count > 0;
    uint64_t middle_ns = cw_clock_ns();
    for (uint32_t turns = 0; turns < CW_PORT_BURST_MAX && bench->nic.sent < before + count; turns++) {
        (void)node_forward(&bench->dataplane, middle_ns);
    }
    *rank_ns += middle_ns - begin_ns;
    *node_ns += cw_clock_ns() - middle_ns;
    return is_well && bench->nic.sent == before + count;
}

/* Nanoseconds a frame of the rank's part and the node's. False: told. */
static bool measure(struct bench *bench, uint32_t length, uint64_t frames, double *rank_ns, double *node_ns)
{
    uint64_t ranks = 0, nodes = 0, begin = bench->nic.sent;
    bool is_well = true;
    bench->nic.length = length;
    bench->nic.looks = true;
    while (bench->nic.sent < begin + VERIFIED && is_well) {
        is_well = burst(bench, length, &ranks, &nodes);
    }
    bench->nic.looks = false;
    ranks = nodes = 0;
    begin = bench->nic.sent;
    while (bench->nic.sent < begin + frames && is_well) {
        is_well = burst(bench, length, &ranks, &nodes);
    }
    if (!is_well || bench->nic.wrong > 0 || bench->lease.counters.refused > 0) {
        app_error("frames are missing, refused or altered", NULL, "this is a bug: please report it");
        return false;
    }
    *rank_ns = (double)ranks / (double)(bench->nic.sent - begin);
    *node_ns = (double)nodes / (double)(bench->nic.sent - begin);
    return true;
}

static int rounds_run(struct bench *bench, const struct app_list *sizes, uint64_t rounds, uint64_t frames,
                      struct app_report *report)
{
    struct bench_series ranks[APP_LIST_MAX] = {0}, nodes[APP_LIST_MAX] = {0};
    for (uint64_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < sizes->count; i++) {
            double rank_ns, node_ns;
            if (!measure(bench, HEADER + (uint32_t)sizes->values[i], frames, &rank_ns, &node_ns)) {
                return APP_EXIT_INTERNAL;
            }
            bench_series_add(&ranks[i], rank_ns);
            bench_series_add(&nodes[i], node_ns);
        }
    }
    for (size_t i = 0; i < sizes->count; i++) {
        double node_ns = bench_series_median(nodes[i]);
        const struct app_cell cells[] = {
            app_text("bench", NULL, 0, "node"),
            app_scaled("mtu_bytes", "MTU", 0, 1, sizes->values[i]),
            app_number("rank_ns", "rank ns", 1, 1, bench_series_median(ranks[i])),
            app_number("node_ns", "node ns", 1, 1, node_ns),
            app_number("goodput_bps", "node Gb/s", 1, 1e-9, (double)sizes->values[i] * 8e9 / node_ns),
        };
        APP_REPORT(report, cells);
    }
    return APP_EXIT_SUCCESS;
}

int bench_node(int argc, char **argv)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    struct app_report report = {.form = APP_REPORT_TABLE};
    struct app_list sizes = {.values = {64, 512, 1500, 9000}, .count = 4};
    uint64_t rounds = 5, frames = 200000;
    const struct app_option options[] = {
        OPTION_SIZES("sizes", "of IP packets (64,512,1500,9000)", &sizes, LENGTH_MIN, MTU_BYTES),
        OPTION_COUNT("rounds", "all in turn; medians are printed (5)", &rounds, 1, BENCH_ROUNDS_MAX),
        OPTION_COUNT("frames", "of each measurement (200000)", &frames, 1, 100000000),
        OPTION_JSON(" a line", &report.json),
        {0},
    };
    int code;
    if (bench == NULL) {
        app_error("no memory", NULL, NULL);
        return APP_EXIT_MACHINE;
    }
    int first =
        app_options_parse("bench node [OPTION...]\n\nWhat a frame costs a rank, which writes it, and the node's "
                          "thread, which copies it, looks at it and gives it to the NIC.",
                          options, 0, argc, argv, &code);
    if (first >= 0) {
        code = bench_open(bench);
        code = code == APP_EXIT_SUCCESS ? rounds_run(bench, &sizes, rounds, frames, &report) : code;
        cw_shm_port_close(bench->lease.shm_port);
        if (bench->rank != NULL) {
            cw_port_close(bench->rank);
        }
    }
    free(bench);
    return code;
}
