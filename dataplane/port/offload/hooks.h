/* Hooks: an offload as functions over DPDK, a file each. Private to port/.
 *
 * Order of calls, for each port
 *    has, when the device has described itself; configure, queues, before it is configured; begin, when it has started;
 *    { receive, transmit }* while the offload is on; end, before the device stops, or when the offload is doubted.
 *
 * A function that an offload has no use for is NULL. `why` has room for CW_OFFLOAD_WHY_BYTES, and may be written by has
 * and begin, with any result. */
#pragma once

#include <rte_ethdev.h>
#include <rte_flow.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "dataplane/port/offload/offload.h"
#include "dataplane/port/offload/toeplitz.h"

struct ethdev_port;

struct ethdev_offload {
    /* Whether the NIC says that it can. */
    bool (*has)(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why);
    void (*configure)(struct ethdev_port *port, const struct rte_eth_dev_info *info, struct rte_eth_conf *conf);
    void (*queues)(struct ethdev_port *port, struct rte_eth_rxconf *receive);
    /* 0, or a negative errno: it stays off. */
    int (*begin)(struct ethdev_port *port, char *why);
    /* For each burst: the buffers are the packets' handles. */
    void (*receive)(struct ethdev_port *port, struct cw_received *packets, uint32_t count);
    void (*transmit)(struct ethdev_port *port, const struct cw_transmit *packets, uint32_t count);
    void (*end)(struct ethdev_port *port);
};

extern const struct ethdev_offload ethdev_offload_checksum_out;
extern const struct ethdev_offload ethdev_offload_checksum_in;
extern const struct ethdev_offload ethdev_offload_steer;
extern const struct ethdev_offload ethdev_offload_rss;
extern const struct ethdev_offload ethdev_offload_arrival;
extern const struct ethdev_offload ethdev_offload_departure;
extern const struct ethdev_offload ethdev_offload_multicast;
extern const struct ethdev_offload ethdev_offload_split;

enum { OFFLOAD_RULES_MAX = 24, OFFLOAD_SPLIT_BYTES = 128 /* in the first buffer: headers of IPv6 and ours */ };

/* The device's clock against the owner's: two readings of both give the rate. */
struct offload_clock {
    uint64_t device, host_ns; /* when it was read last */
    double tick_ns;           /* 0: not known yet */
};

/* Of a port. */
struct ethdev_offloads {
    uint32_t wanted; /* bits by enum cw_port_offload */
    uint32_t has;
    uint32_t used;
    uint32_t receivers; /* of those used, with a function for it */
    uint32_t transmitters;
    char why[CW_PORT_OFFLOADS][CW_OFFLOAD_WHY_BYTES];
    uint64_t done[CW_PORT_OFFLOADS];
    uint64_t undone[CW_PORT_OFFLOADS];
    struct cw_port_claim claim;
    struct rte_flow *rules[OFFLOAD_RULES_MAX];
    uint32_t rule_count;
    uint8_t key[CW_TOEPLITZ_KEY_BYTES];
    int arrival_offset; /* of the field in a buffer */
    uint64_t arrival_flag;
    int departure_offset;
    uint64_t departure_flag;
    struct offload_clock clock;
    struct rte_mempool *heads; /* of split packets */
    union rte_eth_rxseg segments[2];
    uint64_t link_look; /* time of the next link check, by the time stamp counter */
    bool link_was_up;
    bool link_interrupts;           /* the driver reports changes */
    _Atomic uint32_t link_reported; /* ... so often, on EAL's thread */
};

/* The calls for ethdev's files. */
void ethdev_offloads_find(struct ethdev_port *port, const struct rte_eth_dev_info *info, uint32_t wanted);
void ethdev_offloads_configure(struct ethdev_port *port, const struct rte_eth_dev_info *info,
                               struct rte_eth_conf *conf);
void ethdev_offloads_queues(struct ethdev_port *port, struct rte_eth_rxconf *receive);
/* A further queue pair has those of the first, counts and claims for itself. */
void ethdev_offloads_share(struct ethdev_port *port, const struct ethdev_port *first);
/* The device cannot be configured with them: none is used. */
void ethdev_offloads_forgo(struct ethdev_port *port);
void ethdev_offloads_begin(struct ethdev_port *port);
void ethdev_offloads_end(struct ethdev_port *port);
void ethdev_offloads_receive(struct ethdev_port *port, struct cw_received *packets, uint32_t count);
void ethdev_offloads_transmit(struct ethdev_port *port, const struct cw_transmit *packets, uint32_t count);
/* As struct cw_port_ops has them. */
void ethdev_doubt(struct cw_port *port, enum cw_port_offload offload);
void ethdev_claim(struct cw_port *port, const struct cw_port_claim *claim);

/* What offloads share. */
static inline bool offload_used(const struct ethdev_offloads *offloads, enum cw_port_offload offload)
{
    return (offloads->used >> offload & 1) != 0;
}

/* A field of 64 bits that DPDK has registered in buffers. */
static inline uint64_t *offload_field(struct rte_mbuf *buffer, int offset)
{
    return (uint64_t *)(void *)((uint8_t *)buffer + offset);
}

/* Reads both clocks: now and then, before a conversion. False: the device has none. */
bool offload_clock_read(struct ethdev_port *port);
/* 0: the rate is not known yet. */
uint64_t offload_clock_host_ns(const struct offload_clock *clock, uint64_t device);
uint64_t offload_clock_device(const struct offload_clock *clock, uint64_t host_ns);
