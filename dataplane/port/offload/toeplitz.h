/* Toeplitz: the hash by which NICs deal flows among their queues (RSS), in software.
 *
 * A NIC hashes addresses and ports of a packet under its key, and looks the queue up by the hash's low bits. Pure
 * functions; the key is the receiving NIC's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum {
    CW_TOEPLITZ_KEY_BYTES = 40, /* as much of a key as the longest input needs */
};

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
