/* packet: what a frame between ranks and the NIC is, as far as the host's dataplane has to know: to and from which IP
 * address and UDP port. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum node_packet_kind {
    NODE_PACKET_OTHER,  /* nothing that a rank sends or gets */
    NODE_PACKET_UDP,    /* whole, not fragmented, without options */
    NODE_PACKET_REPORT, /* IGMP, MLD */
};

struct node_packet {
    enum node_packet_kind kind;
    bool is_group; /* to a multicast MAC address */
    struct cw_ip from, to;
    uint16_t from_port, to_port; /* of UDP */
};

/* Any bytes are allowed. */
struct node_packet node_packet_read(const uint8_t *frame, uint32_t length);
