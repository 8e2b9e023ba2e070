/* causeway bench offload: the gain of each offload of a NIC for the core: a packet's nanoseconds with the NIC at work
 * and with software in its place, in rounds that take turns. */
#include <stdio.h>
#include <string.h>

#include "apps/bench/bench.h"
#include "apps/cli/cli.h"
#include "apps/offload/device.h"
#include "dataplane/base/clock.h"
#include "dataplane/limits.h"
#include "dataplane/port/offload/toeplitz.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"

static const double SLOWER = 1.1; /* times as long: more than measurements differ */

enum {
    BURST = 32,
    PORT = CW_UDP_PORT,
    PAYLOAD_BYTES = 1400,
    STEP_NS = 1000000,      /* of virtual time, until a simulated NIC has sent its frames */
    SILENCE_NS = 200000000, /* so long nothing has come: nothing will */
};

struct bench {
    struct offload_device device;
    struct offload_device peer; /* port NULL: none */
    uint64_t duration_ns;       /* of each measurement */
    uint64_t rounds;
    uint64_t sink; /* results of software, so that the compiler keeps the computation */
};

/* ---- what software does in the place of a NIC, for one packet ---- */

static void crc_work(struct bench *bench, const uint8_t *frame)
{
    bench->sink += cw_wire_checksum(0, frame + CW_WIRE_OVERHEAD_BYTES, PAYLOAD_BYTES);
}

/* Looks whose it is. */
static void parse_work(struct bench *bench, const uint8_t *frame)
{
    const struct cw_ip own = cw_ip_v4(0x0a000002);
    const struct cw_wire_header *header;
    bench->sink += cw_wire_parse(frame, CW_WIRE_OVERHEAD_BYTES + PAYLOAD_BYTES, &own, PORT, 1, 0, &header);
}

static void hash_work(struct bench *bench, const uint8_t *frame)
{
    static const uint8_t key[CW_TOEPLITZ_KEY_BYTES] = {0x6d, 0x5a, 0x6d, 0x5a};
    const struct cw_toeplitz_flow flow = {
        .source = cw_ip_v4(0x0a000001), .destination = cw_ip_v4(0x0a000002), .source_port = frame[35]};
    bench->sink += cw_toeplitz_flow(key, &flow, true);
}

static void clock_work(struct bench *bench, const uint8_t *frame)
{
    (void)frame;
    bench->sink += cw_clock_ns();
}

struct row {
    void (*work)(struct bench *bench, const uint8_t *frame); /* NULL: nothing for each packet */
    bool is_out;                                             /* of packets that leave; else of arriving ones */
    bool is_measured;
};

static const struct row rows[CW_PORT_OFFLOADS] = {
    [CW_OFFLOAD_CHECKSUM_OUT] = {crc_work, true, true}, [CW_OFFLOAD_CHECKSUM_IN] = {crc_work, false, true},
    [CW_OFFLOAD_STEER] = {parse_work, false, true},     [CW_OFFLOAD_RSS] = {hash_work, false, true},
    [CW_OFFLOAD_ARRIVAL] = {clock_work, false, true},   [CW_OFFLOAD_DEPARTURE] = {clock_work, true, true},
    [CW_OFFLOAD_SPLIT] = {NULL, false, true},
};

/* ---- packets ---- */

static uint32_t frame_write(const struct cw_port *from, const struct cw_port *to, uint8_t *frame)
{
    struct cw_wire_network network;
    cw_wire_network_init(&network, from->info.mac, to->info.mac, 0x0a000001, 0x0a000002, PORT, PORT);
    cw_wire_network_finish(&network, PAYLOAD_BYTES);
    memcpy(frame, &network, sizeof(network));
    memset(frame + sizeof(network), 0x5a, CW_WIRE_HEADER_BYTES + PAYLOAD_BYTES);
    frame[sizeof(network)] = CW_WIRE_VERSION;
    return CW_WIRE_OVERHEAD_BYTES + PAYLOAD_BYTES;
}

/* Hands one burst over, with `work` for each packet if software does it. The time that took; *count: packets taken. */
static uint64_t burst_send(struct bench *bench, struct cw_port *from, const struct cw_port *to, const struct row *row,
                           bool by_nic, uint32_t *count)
{
    struct cw_simulator *simulator = bench->device.simulator;
    struct cw_transmit packets[BURST];
    uint32_t ready = cw_port_reserve(from, packets, BURST);
    for (uint32_t i = 0; i < ready; i++) {
        packets[i].length = frame_write(from, to, packets[i].data);
    }
    uint64_t start_ns = cw_clock_ns();
    uint64_t later_ns = (simulator != NULL ? cw_simulator_now(simulator) : start_ns) + 1000;
    for (uint32_t i = 0; i < ready; i++) {
        if (!by_nic && row != NULL && row->work != NULL) {
            row->work(bench, packets[i].data);
        }
        packets[i].checksum = by_nic && row == &rows[CW_OFFLOAD_CHECKSUM_OUT];
        packets[i].departure_ns = by_nic && row == &rows[CW_OFFLOAD_DEPARTURE] ? later_ns : 0;
    }
    *count = cw_port_transmit(from, packets, ready);
    uint64_t took_ns = cw_clock_ns() - start_ns;
    cw_port_cancel(from, packets + *count, ready - *count);
    if (simulator != NULL) {
        cw_simulator_run_until(simulator, cw_simulator_now(simulator) + STEP_NS);
    }
    return took_ns;
}

static uint64_t burst_receive(struct bench *bench, const struct row *row, bool by_nic, uint32_t *count)
{
    struct cw_received packets[BURST];
    uint64_t start_ns = cw_clock_ns();
    *count = cw_port_receive(bench->device.port, packets, BURST);
    for (uint32_t i = 0; i < *count; i++) {
        bool is_ours = packets[i].length >= CW_WIRE_OVERHEAD_BYTES + PAYLOAD_BYTES;
        if (!by_nic && row->work != NULL && is_ours) {
            row->work(bench, packets[i].data);
        }
        bench->sink += packets[i].checksum;
    }
    cw_port_release(bench->device.port, packets, *count);
    return cw_clock_ns() - start_ns;
}

/* A simulated port's ring is of one size. */
static void mate_empty(struct bench *bench)
{
    struct cw_received packets[BURST];
    for (uint32_t count = BURST; count == BURST;) {
        count = cw_port_receive(bench->device.mate, packets, BURST);
        cw_port_release(bench->device.mate, packets, count);
    }
}

/* A packet's nanoseconds; negative: none came, or left. */
static double measure(struct bench *bench, const struct row *row, bool by_nic)
{
    struct cw_port *own = bench->device.port;
    struct cw_port *peer = bench->peer.port != NULL     ? bench->peer.port
                           : bench->device.mate != NULL ? bench->device.mate
                                                        : own;
    uint64_t spent_ns = 0, packets = 0, begin_ns = cw_clock_ns(), last_ns = begin_ns;
    while (spent_ns < bench->duration_ns && cw_clock_ns() - last_ns < SILENCE_NS) {
        uint32_t count = 0, sent = 0;
        if (row->is_out) {
            if (bench->device.mate != NULL) {
                mate_empty(bench);
            }
            spent_ns += burst_send(bench, own, peer, row, by_nic, &count);
        } else {
            (void)burst_send(bench, peer, own, NULL, true, &sent);
            uint64_t took_ns = burst_receive(bench, row, by_nic, &count);
            spent_ns += count > 0 ? took_ns : 0;
        }
        packets += count;
        last_ns = count > 0 ? cw_clock_ns() : last_ns;
    }
    return packets > 0 ? (double)spent_ns / (double)packets : -1;
}

/* The cost of software alone. */
static double work_measure(struct bench *bench, const struct row *row)
{
    static uint8_t frame[14 + CW_PORT_MTU_MAX];
    uint64_t packets = 0, begin_ns = cw_clock_ns(), took_ns;
    (void)frame_write(bench->device.port, bench->device.port, frame);
    do {
        for (uint32_t i = 0; i < 256; i++) {
            frame[CW_WIRE_OVERHEAD_BYTES] = (uint8_t)i;
            row->work(bench, frame);
        }
        packets += 256;
        took_ns = cw_clock_ns() - begin_ns;
    } while (took_ns < bench->duration_ns);
    return (double)took_ns / (double)packets;
}

/* ---- a row ---- */

static void row_print(struct app_report *report, const struct cw_offload_report *said, struct bench_series software,
                      struct bench_series off, struct bench_series on, const char *note)
{
    double off_ns = bench_series_median(off), on_ns = bench_series_median(on);
    const struct app_cell cells[] = {
        app_text("bench", NULL, 0, "offload"),
        app_text("offload", "offload", 16, cw_offload_name(said->offload)),
        app_flag("has", NULL, said->has),
        app_text(NULL, "has", 3, said->has ? "yes" : "no"),
        app_when(software.count > 0, app_number("software_ns", "software ns", 1, 1, bench_series_median(software))),
        app_when(off.count > 0, app_number("off_ns", "off ns", 1, 1, off_ns)),
        app_when(on.count > 0, app_number("on_ns", "on ns", 1, 1, on_ns)),
        app_when(off.count > 0 && on.count > 0, app_number("ratio", "on/off", 3, 1, off_ns > 0 ? on_ns / off_ns : 0)),
        app_text("note", "note", 0, note),
    };
    APP_REPORT(report, cells);
}

static void measure_row(struct bench *bench, struct app_report *report, const struct cw_offload_report *said)
{
    const struct row *row = &rows[said->offload];
    struct bench_series software = {.count = 0}, off = {.count = 0}, on = {.count = 0};
    const char *note = said->why;
    bool is_real = bench->device.simulator == NULL && !bench->device.is_socket;
    for (uint64_t round = 0; round < bench->rounds && row->is_measured; round++) {
        if (row->work != NULL) {
            bench_series_add(&software, work_measure(bench, row));
        }
        if (!said->used) {
            continue;
        }
        if (is_real) {
            (void)cw_port_ethdev_offload_switch(bench->device.port, said->offload, false);
        }
        double off_ns = measure(bench, row, false);
        if (is_real) {
            (void)cw_port_ethdev_offload_switch(bench->device.port, said->offload, true);
        }
        double on_ns = measure(bench, row, true);
        if (off_ns < 0 || on_ns < 0) {
            note = "nothing comes in: join it to another device, and give that as --peer";
            break;
        }
        bench_series_add(&off, off_ns);
        bench_series_add(&on, on_ns);
    }
    if (on.count > 0 && bench_series_median(on) > SLOWER * bench_series_median(off)) {
        note = bench->device.simulator == NULL ? "slower here when on"
                                               : "simulated: slower when on, since a core does the NIC's work";
    }
    row_print(report, said, software, off, on, note);
}

static int run(struct bench *bench, const char *device, const char *peer, struct app_report *report)
{
    char error[CW_PORT_TEXT_BYTES] = "";
    uint32_t mtu_bytes = PAYLOAD_BYTES + CW_WIRE_OVERHEAD_BYTES - 14;
    mtu_bytes = mtu_bytes < 1500 ? 1500 : mtu_bytes;
    int status = offload_device_open(&bench->device, device, CW_OFFLOADS_ALL, mtu_bytes, error, sizeof(error));
    if (status == CW_OK && peer != NULL) {
        status = offload_device_open(&bench->peer, peer, CW_OFFLOADS_AUTO, mtu_bytes, error, sizeof(error));
    }
    if (status == CW_OK) {
        struct cw_offload_report reports[CW_PORT_OFFLOADS];
        offload_device_reports(&bench->device, reports);
        for (uint32_t i = 0; i < CW_PORT_OFFLOADS; i++) {
            measure_row(bench, report, &reports[i]);
        }
    }
    offload_device_close(&bench->peer);
    offload_device_close(&bench->device);
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, error, NULL);
}

int bench_offload(int argc, char **argv)
{
    struct bench bench = {.sink = 0};
    struct app_report report = {.form = APP_REPORT_TABLE};
    uint64_t rounds = 5, duration_ns = 20000000;
    const char *peer = NULL;
    const struct app_option options[] = {
        OPTION_TEXT("peer", "DEVICE", "joined to the device: sends what comes in (the device itself)", &peer),
        OPTION_COUNT("rounds", "on and off in turn; medians are printed (5)", &rounds, 1, BENCH_ROUNDS_MAX),
        OPTION_TIME("duration", "of each measurement (20ms)", &duration_ns, 1000000, 10000000000ull),
        OPTION_JSON(" a line", &report.json),
        {0},
    };
    int code;
    int first = app_options_parse("bench offload DEVICE[,ARGUMENTS] [OPTION...]\n"
                                  "\n"
                                  "Measures the gain of each offload of a NIC: nanoseconds of the core for a packet, "
                                  "with software in its place (off) and\n"
                                  "with the NIC at work (on), and the time of software alone.\n"
                                  "\n" OFFLOAD_DEVICE_HELP,
                                  options, 1, argc, argv, &code);
    if (first < 0) {
        return code;
    }
    if (first == argc) {
        app_error("no device given", NULL, "causeway bench offload sim, or net_tap0,iface=x");
        return APP_EXIT_USAGE;
    }
    bench.rounds = rounds;
    bench.duration_ns = duration_ns;
    return run(&bench, argv[first], peer, &report);
}
