#include <string.h>

#include "apps/bench/processes/group_shared.h"
#include "apps/bench/processes/put.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/port.h"
#include "dataplane/statistics.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"

enum {
    RAW_UDP_PORT = CW_UDP_PORT_GATEWAY, /* no endpoint's: late raw frames are foreign to it */
    RAW_BURST = 32,                     /* testpmd's, too */
    RAW_PARTS = 15,  /* of the measured time; the median counts, so that a hiccup of the machine does not */
    RAW_POLLS = 256, /* between looks at the clock, or at how far the other side is */
};

#define RAW_IPV4     0x0a4d0001u
#define RAW_QUIET_NS 2000000ull   /* nothing for this long: the link is empty */
#define RAW_LOST_NS  200000000ull /* both sides spin: among others that compute a slice each passes in between */
/* A process without a measurement continues for this long: other load may keep one of the two from running for a whole
 * measurement. */
#define RAW_PATIENCE_NS 60000000000ull

/* IPv4 and UDP like the frames it is compared with: where a kernel sees both (af_packet), it takes the same trouble
 * over them. */
struct raw_header {
    struct cw_wire_network network;
    uint16_t reserved;
    uint64_t sequence;
} __attribute__((packed, aligned(2)));

struct raw {
    struct bench_member *member;
    struct cw_port *port;
    uint32_t frame_bytes;
    struct raw_header header;
};

static struct raw raw_make(struct bench_member *member, uint32_t frame_bytes)
{
    struct raw raw = {.member = member, .port = member->port, .frame_bytes = frame_bytes};
    cw_wire_network_init(&raw.header.network, member->port->info.mac, member->peer_mac, RAW_IPV4, RAW_IPV4 + 1,
                         RAW_UDP_PORT, RAW_UDP_PORT);
    cw_wire_network_finish(&raw.header.network, frame_bytes - (uint32_t)CW_WIRE_OVERHEAD_BYTES);
    return raw;
}

/* Sends up to `count` frames; returns how many left. */
static uint32_t burst_send(struct raw *raw, uint32_t count)
{
    struct cw_transmit frames[RAW_BURST];
    count = cw_port_reserve(raw->port, frames, count);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(frames[i].data, &raw->header, sizeof(raw->header));
        frames[i].length = raw->frame_bytes;
    }
    uint32_t sent = cw_port_transmit(raw->port, frames, count);
    if (sent < count) {
        cw_port_cancel(raw->port, frames + sent, count - sent);
    }
    return sent;
}

/* Receives one burst; returns the number of our frames in it, and the sequence number of the last of them. */
static uint32_t burst_receive(struct raw *raw, uint64_t *sequence)
{
    struct cw_received frames[RAW_BURST];
    uint32_t count = cw_port_receive(raw->port, frames, RAW_BURST), ours = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct raw_header header;
        if (frames[i].length == raw->frame_bytes) {
            memcpy(&header, frames[i].data, sizeof(header));
            if (memcmp(header.network.destination_port, raw->header.network.destination_port, 2) == 0) {
                *sequence = header.sequence;
                ours++;
            }
        }
    }
    cw_port_release(raw->port, frames, count);
    return ours;
}

/* Throws away what is still in flight until nothing has come for a while. */
static void link_drain(struct raw *raw)
{
    struct cw_received frames[RAW_BURST];
    bench_member_meet(raw->member);
    uint64_t last_ns = cw_clock_ns();
    while (cw_clock_ns() - last_ns < RAW_QUIET_NS) {
        uint32_t count = cw_port_receive(raw->port, frames, RAW_BURST);
        cw_port_release(raw->port, frames, count);
        last_ns = count > 0 ? cw_clock_ns() : last_ns;
    }
}

/* Receives for `duration_ns`; returns the frames per second. */
static double frames_count(struct raw *raw, uint64_t duration_ns)
{
    uint64_t frames = 0, sequence, start_ns = cw_clock_ns(), elapsed_ns;
    do {
        for (int i = 0; i < RAW_POLLS / 16; i++) {
            frames += burst_receive(raw, &sequence);
        }
        elapsed_ns = cw_clock_ns() - start_ns;
    } while (elapsed_ns < duration_ns);
    return (double)frames * 1e9 / (double)elapsed_ns;
}

static double rate_measure(struct raw *raw, uint64_t duration_ns)
{
    double parts[RAW_PARTS], median;
    uint64_t end_ns = cw_clock_ns() + RAW_PATIENCE_NS;
    (void)frames_count(raw, duration_ns / 4);
    do {
        for (int i = 0; i < RAW_PARTS; i++) {
            parts[i] = frames_count(raw, duration_ns / RAW_PARTS);
        }
        median = cw_statistics_median(parts, RAW_PARTS);
    } while (median == 0 && cw_clock_ns() < end_ns);
    return median;
}

int bench_raw_rate(struct bench_member *member, uint32_t frame_bytes, uint64_t duration_ns, double *frames_per_s)
{
    struct raw raw = raw_make(member, frame_bytes);
    int status = CW_OK;
    bench_member_meet(member);
    if (member->index == 1) {
        while (!bench_member_marked(member, 1)) { /* until the receiver has measured */
            (void)burst_send(&raw, RAW_BURST);
        }
        bench_member_mark(member);
    } else {
        uint64_t sequence;
        *frames_per_s = rate_measure(&raw, duration_ns);
        status = *frames_per_s == 0 ? CW_ERROR_NOT_FOUND : CW_OK;
        bench_member_mark(member);
        while (!bench_member_marked(member, 0)) { /* the sender does not run against a full ring */
            (void)burst_receive(&raw, &sequence);
        }
    }
    link_drain(&raw);
    return status;
}

/* One round trip; its duration, or 0 if it was lost. */
static uint64_t round_trip(struct raw *raw)
{
    uint64_t start_ns = cw_clock_ns(), elapsed_ns = 0, received = 0;
    raw->header.sequence++;
    (void)burst_send(raw, 1);
    while (elapsed_ns <= RAW_LOST_NS) {
        bool found = burst_receive(raw, &received) > 0;
        elapsed_ns = cw_clock_ns() - start_ns;
        if (found && received == raw->header.sequence) {
            return elapsed_ns;
        }
    }
    return 0;
}

/* Sends back what comes until the other side has stopped. */
static void latency_answer(struct raw *raw)
{
    uint64_t sequence;
    for (uint32_t idle = 0; ++idle % RAW_POLLS != 0 || !bench_member_marked(raw->member, 1);) {
        if (burst_receive(raw, &sequence) > 0) {
            raw->header.sequence = sequence;
            (void)burst_send(raw, 1);
            idle = 0;
        }
    }
}

int bench_raw_latency(struct bench_member *member, uint32_t frame_bytes, uint64_t duration_ns,
                      struct bench_latency *latency)
{
    struct raw raw = raw_make(member, frame_bytes);
    struct bench_samples samples;
    int status = bench_samples_begin(&samples, duration_ns, RAW_PATIENCE_NS);
    bench_member_meet(member);
    if (member->index == 1) {
        while (status == CW_OK && bench_samples_continue(&samples)) {
            bench_samples_add(&samples, round_trip(&raw));
        }
        *latency = bench_samples_end(&samples);
        status = status == CW_OK && latency->count == 0 ? CW_ERROR_NOT_FOUND : status;
    } else {
        latency_answer(&raw);
    }
    link_drain(&raw);
    return status;
}
