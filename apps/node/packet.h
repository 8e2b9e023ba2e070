/* packet: a frame between ranks and the NIC, as far as the host's dataplane must know it. It is a list of the forms
 * that a rank may send and get: every other form is NODE_PACKET_OTHER. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "dataplane/ip.h"

enum node_packet_kind {
    NODE_PACKET_OTHER, /* a rank neither sends nor gets it */
    NODE_PACKET_UDP, /* a whole datagram: IPv4 without options, not a fragment; or UDP directly behind an IPv6 header */
};

struct node_packet {
    enum node_packet_kind kind;
    bool is_group; /* to a multicast IP address, and to the MAC address that belongs to it */
    bool is_v4;
    uint32_t bytes;           /* of the frame, without what pads it */
    const uint8_t *from, *to; /* IP addresses, in the frame: 4 bytes or 16 */
    uint16_t from_port, to_port;
};

/* Any bytes are allowed. Only of a datagram is more than the kind set. */
struct node_packet node_packet_read(const uint8_t *frame, uint32_t length);

/* Whether an address of a datagram is this one. */
static inline bool node_packet_ip_is(const struct node_packet *packet, const uint8_t *at, const struct cw_ip *ip)
{
    return packet->is_v4 ? cw_ip_is_v4(ip) && memcmp(at, ip->bytes + CW_IP_V4_BITS / 8, 4) == 0
                         : memcmp(at, ip->bytes, sizeof(ip->bytes)) == 0;
}

/* A membership report or leave of this host, byte for byte as mcast/igmp.h and mcast/mld.h write it. */
struct node_report {
    uint8_t group[6]; /* its MAC address */
    bool has_left;
};

/* False: the frame does not belong to a host with this MAC and IP address, or its group is one of those that routers
 * and hosts need themselves (224.0.0.0/24; over IPv6 all but ff15::/96). Any bytes are allowed. */
bool node_report_read(const uint8_t *frame, uint32_t length, const uint8_t mac[6], const struct cw_ip *ip,
                      struct node_report *report);
