/* Bench raw: what the driver can do without any protocol: the limit that `causeway bench put` is held against.
 *
 * Bare rte_eth_rx_burst and rte_eth_tx_burst loops on the device of an ethdev port, between two processes, each pinned
 * to its core by the caller: two members of a group (bench/processes/group.h), which make the same calls with the same
 * settings at the same time. While they run nobody uses the port.
 *
 * The loops are in libcauseway_bench.so, since they need DPDK itself; in the command bench/processes/raw_load.c has the
 * same functions, which load it. */
#pragma once

#include "apps/bench/processes/group.h"

enum {
    BENCH_RAW_FRAME_MIN = 64,        /* frames without the checksum that Ethernet adds; 60 would be legal, too */
    BENCH_RAW_SAMPLES_MAX = 1 << 20, /* round trips kept for the percentiles */
};

struct bench_raw_settings {
    uint32_t frame_bytes;   /* BENCH_RAW_FRAME_MIN to 14 + the port's MTU */
    uint32_t payload_bytes; /* with `copy`: bytes of each frame, at its end, that are copied in and out */
    uint32_t region_bytes;  /* with `copy`: size of the buffers that payloads are copied from and to, walked in order */
    uint32_t burst;         /* frames handed to the driver at once, at most CW_PORT_BURST_MAX; 0: 32 */
    uint64_t warmup_ns;     /* not measured */
    uint64_t duration_ns;   /* measured */
    bool copy;              /* one memcpy of the payload on each side */
    /* the device behind the port, filled in by bench/processes/raw_load.c */
    uint16_t id;
    struct rte_mempool *pool;
};

struct bench_raw_rate {
    double packets_per_s;       /* the median over parts of the measured time */
    double bytes_per_s;         /* whole frames */
    double payload_bytes_per_s; /* with `copy` */
    uint64_t frames;            /* received while it was measured */
};

struct bench_raw_latency {
    double p50_ns; /* of a round trip: there and back */
    double p99_ns;
    uint64_t count;
    uint64_t lost; /* round trips given up after 200 ms; their frames were dropped on the way */
};

/* One way: member 1 sends, member 0 receives and fills `rate`. CW_OK; CW_ERROR_ARGUMENT (settings); CW_ERROR_MEMORY;
 * CW_ERROR_NOT_FOUND (not one frame arrived in ten seconds); CW_ERROR_UNSUPPORTED (libcauseway_bench.so is not
 * there). */
int bench_raw_rate(struct bench_member *member, const struct bench_raw_settings *settings, struct bench_raw_rate *rate);

/* Ping-pong of frames of settings->frame_bytes for settings->duration_ns, one at a time; member 1 fills `latency`. The
 * codes above. */
int bench_raw_latency(struct bench_member *member, const struct bench_raw_settings *settings,
                      struct bench_raw_latency *latency);

/* The functions above as libcauseway_bench.so has them: its symbol bench_raw_table. */
struct bench_raw_table {
    int (*rate)(struct bench_member *member, const struct bench_raw_settings *settings, struct bench_raw_rate *rate);
    int (*latency)(struct bench_member *member, const struct bench_raw_settings *settings,
                   struct bench_raw_latency *latency);
};
