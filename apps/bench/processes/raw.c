#include "apps/bench/processes/raw.h"

#include "apps/bench/processes/group_shared.h"
#include "dataplane/limits.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/statistics.h"
#include "dataplane/status.h"
#include "dataplane/wire/wire.h"

#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

enum {
    RAW_UDP_PORT = CW_UDP_PORT_GATEWAY, /* no endpoint's: what is left of the raw frames is foreign to it */
    RAW_BURST_DEFAULT = 32,             /* testpmd's, too */
    RAW_SLOTS = 15, /* parts of the measured time; the median counts, so that a hiccup of the machine does not */
    RAW_POLLS_PER_CHECK = 256, /* empty polls between looks at how far the sender is */
};

#define RAW_IPV4     0x0a4d0001u
#define RAW_QUIET_NS UINT64_C(2000000)   /* nothing for this long: the link is empty */
#define RAW_LOST_NS  UINT64_C(200000000) /* both sides spin: among others that compute a slice each passes in between */
/* Whoever has measured nothing goes on for this long: a machine that is busy with something else may keep one of the
 * two from running for a whole measurement. */
#define RAW_PATIENCE_NS UINT64_C(60000000000)

/* In front of the payload of every frame. IPv4 and UDP like the frames it is compared with: where a kernel sees both
 * (af_packet), it takes the same trouble over them. */
struct raw_header {
    struct cw_wire_network network;
    uint16_t reserved;
    uint64_t sequence;
} __attribute__((packed, aligned(2)));

struct raw {
    uint16_t id;
    uint16_t burst;
    struct bench_member *member;
    uint32_t frame_bytes;
    uint32_t payload_bytes; /* 0: no copy */
    uint32_t region_bytes;
    uint32_t region_offset;
    uint8_t *region;
    struct rte_mempool *pool;
    struct raw_header header;
    uint64_t warmup_cycles;
    uint64_t duration_cycles;
};

static uint64_t cycles_of(uint64_t duration_ns)
{
    return (uint64_t)((double)duration_ns * 1e-9 * (double)rte_get_tsc_hz());
}

static double seconds_of(uint64_t cycles)
{
    return (double)cycles / (double)rte_get_tsc_hz();
}

static int raw_open(struct raw *raw, struct bench_member *member, const struct bench_raw_settings *settings)
{
    const struct cw_port *port = member->port;
    uint32_t payload = settings->copy ? settings->payload_bytes : 0;
    if (settings->frame_bytes < BENCH_RAW_FRAME_MIN ||
        settings->frame_bytes > port->info.mtu_bytes + RTE_ETHER_HDR_LEN ||
        payload > settings->frame_bytes - sizeof(struct cw_wire_network) || settings->burst > CW_PORT_BURST_MAX ||
        settings->duration_ns == 0 || (payload != 0 && settings->region_bytes < payload)) {
        return CW_ERROR_ARGUMENT;
    }
    *raw = (struct raw){.id = settings->id,
                        .burst = (uint16_t)(settings->burst != 0 ? settings->burst : RAW_BURST_DEFAULT),
                        .member = member,
                        .frame_bytes = settings->frame_bytes,
                        .payload_bytes = payload,
                        .region_bytes = settings->region_bytes,
                        .pool = settings->pool,
                        .warmup_cycles = cycles_of(settings->warmup_ns),
                        .duration_cycles = cycles_of(settings->duration_ns)};
    cw_wire_network_init(&raw->header.network, port->info.mac, member->macs[1 - member->index], RAW_IPV4, RAW_IPV4 + 1,
                         RAW_UDP_PORT, RAW_UDP_PORT);
    /* short frames have less behind their UDP header than our own header: the sum below is right all the same */
    cw_wire_network_finish(&raw->header.network, settings->frame_bytes - (uint32_t)CW_WIRE_OVERHEAD_BYTES);
    if (payload != 0) {
        raw->region = malloc(settings->region_bytes);
        if (raw->region == NULL) {
            return CW_ERROR_MEMORY;
        }
        memset(raw->region, 0x5a, settings->region_bytes); /* pages are there before the clock runs */
    }
    return CW_OK;
}

static void raw_close(struct raw *raw)
{
    free(raw->region);
}

/* The next piece of the region; the last piece before its end is followed by its beginning, as in a put repeated. */
static inline uint8_t *region_next(struct raw *raw)
{
    uint8_t *piece = raw->region + raw->region_offset;
    raw->region_offset += raw->payload_bytes;
    if (raw->region_offset + raw->payload_bytes > raw->region_bytes) {
        raw->region_offset = 0;
    }
    return piece;
}

/* Throws away what is still under way until nothing has come for a while. */
static void link_drain(struct raw *raw)
{
    struct rte_mbuf *buffers[CW_PORT_BURST_MAX];
    uint64_t quiet_cycles = cycles_of(RAW_QUIET_NS);
    uint64_t last = rte_rdtsc();
    while (rte_rdtsc() - last < quiet_cycles) {
        uint16_t count = rte_eth_rx_burst(raw->id, 0, buffers, CW_PORT_BURST_MAX);
        if (count > 0) {
            rte_pktmbuf_free_bulk(buffers, count);
            last = rte_rdtsc();
        }
    }
}

/* ---- one way ---- */

static inline void frames_fill(struct raw *raw, struct rte_mbuf **buffers, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint8_t *data = rte_pktmbuf_mtod(buffers[i], uint8_t *);
        buffers[i]->data_len = (uint16_t)raw->frame_bytes;
        buffers[i]->pkt_len = raw->frame_bytes;
        memcpy(data, &raw->header, sizeof(raw->header));
        if (raw->payload_bytes != 0) {
            memcpy(data + raw->frame_bytes - raw->payload_bytes, region_next(raw), raw->payload_bytes);
        }
    }
}

/* Sends full bursts until the receiver has measured; frames that the driver does not take are offered again. */
static void rate_send(struct raw *raw)
{
    struct rte_mbuf *buffers[CW_PORT_BURST_MAX];
    while (!bench_member_marked(raw->member, 1)) {
        if (rte_pktmbuf_alloc_bulk(raw->pool, buffers, raw->burst) != 0) {
            rte_eth_tx_done_cleanup(raw->id, 0, 0);
            continue;
        }
        frames_fill(raw, buffers, raw->burst);
        uint16_t sent = rte_eth_tx_burst(raw->id, 0, buffers, raw->burst);
        while (sent < raw->burst && !bench_member_marked(raw->member, 1)) {
            sent = (uint16_t)(sent + rte_eth_tx_burst(raw->id, 0, buffers + sent, (uint16_t)(raw->burst - sent)));
        }
        rte_pktmbuf_free_bulk(buffers + sent, (unsigned int)(raw->burst - sent));
    }
}

/* Gives a burst back. Buffers of our pool that are whole and not shared go there directly: a tenth faster at 64 bytes
 * than freeing them one by one. */
static inline void burst_free(struct raw *raw, struct rte_mbuf **buffers, uint16_t count)
{
    uint32_t plain = 0;
    for (uint16_t i = 0; i < count; i++) {
        plain += buffers[i]->pool == raw->pool && buffers[i]->nb_segs == 1 && rte_mbuf_refcnt_read(buffers[i]) == 1 &&
                 RTE_MBUF_DIRECT(buffers[i]);
    }
    if (likely(plain == count)) {
        rte_mempool_put_bulk(raw->pool, (void **)buffers, count);
    } else {
        rte_pktmbuf_free_bulk(buffers, count);
    }
}

/* Receives one burst; returns the number of our frames in it: stray ones have another length. */
static inline uint32_t burst_receive(struct raw *raw)
{
    struct rte_mbuf *buffers[CW_PORT_BURST_MAX];
    uint16_t count = rte_eth_rx_burst(raw->id, 0, buffers, raw->burst);
    uint32_t ours = 0;
    for (uint16_t i = 0; i < count; i++) {
        bool whole = buffers[i]->pkt_len == raw->frame_bytes;
        ours += whole;
        if (raw->payload_bytes != 0 && whole && buffers[i]->nb_segs == 1) {
            const uint8_t *data = rte_pktmbuf_mtod(buffers[i], const uint8_t *);
            memcpy(region_next(raw), data + raw->frame_bytes - raw->payload_bytes, raw->payload_bytes);
        }
    }
    burst_free(raw, buffers, count);
    return ours;
}

/* Receives for `cycles`; returns the frames, and the exact time it took. */
static uint64_t frames_count(struct raw *raw, uint64_t cycles, uint64_t *elapsed)
{
    uint64_t frames = 0;
    uint64_t start = rte_rdtsc();
    do {
        for (int i = 0; i < 16; i++) {
            frames += burst_receive(raw);
        }
        *elapsed = rte_rdtsc() - start;
    } while (*elapsed < cycles);
    return frames;
}

static void rate_measure(struct raw *raw, struct bench_raw_rate *rate)
{
    double slots[RAW_SLOTS];
    uint64_t elapsed = 0;
    uint64_t end = rte_rdtsc() + cycles_of(RAW_PATIENCE_NS);
    frames_count(raw, raw->warmup_cycles, &elapsed);
    do {
        for (int i = 0; i < RAW_SLOTS; i++) {
            uint64_t frames = frames_count(raw, raw->duration_cycles / RAW_SLOTS, &elapsed);
            slots[i] = (double)frames / seconds_of(elapsed);
            rate->frames += frames;
        }
        rate->packets_per_s = cw_statistics_median(slots, RAW_SLOTS);
    } while (rate->packets_per_s == 0 && rte_rdtsc() < end);
    rate->bytes_per_s = rate->packets_per_s * raw->frame_bytes;
    rate->payload_bytes_per_s = rate->packets_per_s * raw->payload_bytes;
}

/* Keeps receiving until the sender has stopped, so that it does not run against a full ring. */
static void rate_finish(struct raw *raw)
{
    bench_member_mark(raw->member);
    while (!bench_member_marked(raw->member, 0)) {
        for (int i = 0; i < RAW_POLLS_PER_CHECK; i++) {
            burst_receive(raw);
        }
    }
}

int bench_raw_rate(struct bench_member *member, const struct bench_raw_settings *settings, struct bench_raw_rate *rate)
{
    struct raw raw;
    int status = raw_open(&raw, member, settings);
    if (status != CW_OK) {
        return status;
    }
    *rate = (struct bench_raw_rate){0};
    bench_member_meet(member);
    if (member->index == 1) {
        rate_send(&raw);
        bench_member_mark(member);
    } else {
        rate_measure(&raw, rate);
        rate_finish(&raw);
        status = rate->packets_per_s == 0 ? CW_ERROR_NOT_FOUND : CW_OK;
    }
    bench_member_meet(member);
    link_drain(&raw);
    raw_close(&raw);
    return status;
}

/* ---- ping-pong ---- */

static void frame_send(struct raw *raw, uint64_t sequence)
{
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(raw->pool);
    if (buffer == NULL) {
        return;
    }
    raw->header.sequence = sequence;
    buffer->data_len = (uint16_t)raw->frame_bytes;
    buffer->pkt_len = raw->frame_bytes;
    memcpy(rte_pktmbuf_mtod(buffer, void *), &raw->header, sizeof(raw->header));
    if (rte_eth_tx_burst(raw->id, 0, &buffer, 1) == 0) {
        rte_pktmbuf_free(buffer); /* counts as lost */
    }
}

static inline bool is_ours(const struct raw_header *header)
{
    return header->network.destination_port[0] == RAW_UDP_PORT >> 8 &&
           header->network.destination_port[1] == (RAW_UDP_PORT & 0xff);
}

/* Polls once; true if one of our frames came: the last one's sequence number. */
static inline bool frame_receive(struct raw *raw, uint64_t *sequence)
{
    struct rte_mbuf *buffers[CW_PORT_BURST_MAX];
    uint16_t count = rte_eth_rx_burst(raw->id, 0, buffers, raw->burst);
    bool found = false;
    for (uint16_t i = 0; i < count; i++) {
        const struct raw_header *header = rte_pktmbuf_mtod(buffers[i], const struct raw_header *);
        if (buffers[i]->data_len >= sizeof(*header) && is_ours(header)) {
            *sequence = header->sequence;
            found = true;
        }
        rte_pktmbuf_free(buffers[i]);
    }
    return found;
}

/* One round trip; its duration, or 0 if it was lost. */
static uint64_t round_trip(struct raw *raw, uint64_t sequence, uint64_t lost_cycles)
{
    uint64_t start = rte_rdtsc();
    frame_send(raw, sequence);
    for (;;) {
        uint64_t received = 0;
        bool found = frame_receive(raw, &received);
        uint64_t elapsed = rte_rdtsc() - start;
        if (found && received == sequence) {
            return elapsed;
        }
        if (elapsed > lost_cycles) {
            return 0;
        }
    }
}

static void latency_measure(struct raw *raw, double *samples, struct bench_raw_latency *latency)
{
    uint64_t lost_cycles = cycles_of(RAW_LOST_NS);
    uint64_t sequence = 0;
    uint64_t start = rte_rdtsc();
    while (rte_rdtsc() - start < raw->warmup_cycles) {
        round_trip(raw, ++sequence, lost_cycles);
    }
    uint64_t count = 0;
    start = rte_rdtsc();
    for (uint64_t elapsed = 0; elapsed < raw->duration_cycles || (count == 0 && elapsed < cycles_of(RAW_PATIENCE_NS));
         elapsed = rte_rdtsc() - start) {
        uint64_t cycles = round_trip(raw, ++sequence, lost_cycles);
        if (cycles == 0) {
            latency->lost++;
        } else {
            samples[count++ % BENCH_RAW_SAMPLES_MAX] = seconds_of(cycles) * 1e9;
        }
    }
    latency->count = count;
    size_t kept = RTE_MIN(count, (uint64_t)BENCH_RAW_SAMPLES_MAX);
    latency->p50_ns = cw_statistics_median(samples, kept);
    latency->p99_ns = cw_statistics_percentile(samples, kept, 0.99);
}

/* Sends back what comes until the other side has stopped. */
static void latency_answer(struct raw *raw)
{
    uint64_t sequence;
    for (uint32_t idle = 0; ++idle % 65536 != 0 || !bench_member_marked(raw->member, 1);) {
        if (frame_receive(raw, &sequence)) {
            frame_send(raw, sequence);
            idle = 0;
        }
    }
}

int bench_raw_latency(struct bench_member *member, const struct bench_raw_settings *settings,
                      struct bench_raw_latency *latency)
{
    struct raw raw;
    double *samples = malloc(BENCH_RAW_SAMPLES_MAX * sizeof(*samples));
    int status = samples == NULL ? CW_ERROR_MEMORY : raw_open(&raw, member, settings);
    if (status != CW_OK) {
        free(samples);
        return status;
    }
    *latency = (struct bench_raw_latency){0};
    bench_member_meet(member);
    if (member->index == 1) {
        latency_measure(&raw, samples, latency);
        status = latency->count == 0 ? CW_ERROR_NOT_FOUND : CW_OK;
    } else {
        latency_answer(&raw);
    }
    bench_member_meet(member);
    link_drain(&raw);
    free(samples);
    raw_close(&raw);
    return status;
}

extern const struct bench_raw_table bench_raw_table;
const struct bench_raw_table bench_raw_table = {
    .rate = bench_raw_rate,
    .latency = bench_raw_latency,
};
