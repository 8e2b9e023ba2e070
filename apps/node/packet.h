/* packet: what a frame between ranks and the NIC is, as far as the host's dataplane has to know. It is a list of the forms
 * that a rank may send and get: every other form is NODE_PACKET_OTHER. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum node_packet_kind {
    NODE_PACKET_OTHER, /* a rank neither sends nor gets it */
    NODE_PACKET_UDP, /* a whole datagram: IPv4 without options, not a fragment; or UDP directly behind an IPv6 header */
};

struct node_packet {
    enum node_packet_kind kind;
    bool is_group;  /* to a multicast IP address, and to the MAC address that belongs to it */
    uint32_t bytes; /* of the frame, without what pads it */
    struct cw_ip from, to;
    uint16_t from_port, to_port;
};

/* Any bytes are allowed. */
struct node_packet node_packet_read(const uint8_t *frame, uint32_t length);

/* A membership report or leave of this host, byte for byte as mcast/igmp.h and mcast/mld.h write it. */
struct node_report {
    uint8_t group[6]; /* its MAC address */
    bool has_left;
};

/* False: the frame is none of a host with this MAC and IP address, or its group is one of those that routers and hosts
 * need themselves (224.0.0.0/24; over IPv6 all but ff15::/96). Any bytes are allowed. */
bool node_report_read(const uint8_t *frame, uint32_t length, const uint8_t mac[6], const struct cw_ip *ip,
                      struct node_report *report);
