/* Toeplitz: the hash by which NICs deal flows among their queues (RSS), in software.
 *
 * A NIC hashes addresses and ports of a packet under its key, and looks the queue up by the hash's low bits. Where the
 * flow's destination queue cannot be set (clouds), a sender chooses its UDP ports such that the hash selects the queue
 * that the receiver wants. Pure functions; the key is the receiving NIC's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum {
    CW_TOEPLITZ_KEY_BYTES = 40, /* as much of a key as the longest input needs */
};

/* The hash of `bytes` under a key of CW_TOEPLITZ_KEY_BYTES, shifted bit by bit: at most 36 bytes. */
uint32_t cw_toeplitz(const uint8_t key[CW_TOEPLITZ_KEY_BYTES], const uint8_t *input, size_t bytes);

/* Where a packet comes from and goes to; both addresses of one kind. */
struct cw_toeplitz_flow {
    struct cw_ip source;
    struct cw_ip destination;
    uint16_t source_port;
    uint16_t destination_port;
};

/* Of addresses and ports, as NICs hash UDP over IPv4 and IPv6 ("with_ports"), or of addresses alone. */
uint32_t cw_toeplitz_flow(const uint8_t key[CW_TOEPLITZ_KEY_BYTES], const struct cw_toeplitz_flow *flow,
                          bool with_ports);

/* The table that selects the queue: `entries`, a power of two. */
struct cw_toeplitz_table {
    const uint8_t *key;
    const uint16_t *queues;
    uint32_t entries;
};

static inline uint32_t cw_toeplitz_queue(const struct cw_toeplitz_table *table, uint32_t hash)
{
    return table->queues[hash & (table->entries - 1)];
}

/* The first source port from `flow->source_port` on, of `count` that are allowed, with packets to `queue`; 0: none. */
uint16_t cw_toeplitz_port(const struct cw_toeplitz_table *table, const struct cw_toeplitz_flow *flow, uint32_t count,
                          uint32_t queue);
