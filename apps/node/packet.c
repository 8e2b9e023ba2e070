#include "apps/node/packet.h"

#include <string.h>

enum {
    ETHERNET = 14,
    V4_HEADER = 20,
    V6_HEADER = 40,
    UDP_HEADER = 8,
    IGMP = 2,
    UDP = 17,
    HOP_BY_HOP = 0, /* in front of MLD (RFC 3810, 5) */
};

static uint16_t be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static struct cw_ip v4_at(const uint8_t *at)
{
    return cw_ip_v4((uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]);
}

static void udp_read(struct node_packet *packet, const uint8_t *udp)
{
    packet->kind = NODE_PACKET_UDP;
    packet->from_port = be16(udp);
    packet->to_port = be16(udp + 2);
}

static void v4_read(struct node_packet *packet, const uint8_t *ip, uint32_t length)
{
    if (length < V4_HEADER || ip[0] >> 4 != 4) {
        return;
    }
    bool has_options = ip[0] != 0x45, is_fragment = (be16(ip + 6) & 0x3fff) != 0;
    uint32_t total = be16(ip + 2);
    packet->from = v4_at(ip + 12);
    packet->to = v4_at(ip + 16);
    if (ip[9] == IGMP && !is_fragment) {
        packet->kind = NODE_PACKET_REPORT; /* with the option that routers look at (RFC 2113) */
    } else if (ip[9] == UDP && !is_fragment && !has_options && total >= V4_HEADER + UDP_HEADER && total <= length) {
        udp_read(packet, ip + V4_HEADER);
    }
}

static void v6_read(struct node_packet *packet, const uint8_t *ip, uint32_t length)
{
    if (length < V6_HEADER || ip[0] >> 4 != 6) {
        return;
    }
    uint32_t payload = be16(ip + 4);
    memcpy(packet->from.bytes, ip + 8, 16);
    memcpy(packet->to.bytes, ip + 24, 16);
    if (ip[6] == HOP_BY_HOP) {
        packet->kind = NODE_PACKET_REPORT;
    } else if (ip[6] == UDP && payload >= UDP_HEADER && payload <= length - V6_HEADER) {
        udp_read(packet, ip + V6_HEADER);
    }
}

struct node_packet node_packet_read(const uint8_t *frame, uint32_t length)
{
    struct node_packet packet = {.kind = NODE_PACKET_OTHER};
    if (length < ETHERNET) {
        return packet;
    }
    packet.is_group = (frame[0] & 1) != 0;
    switch (be16(frame + 12)) {
    case 0x0800:
        v4_read(&packet, frame + ETHERNET, length - ETHERNET);
        break;
    case 0x86dd:
        v6_read(&packet, frame + ETHERNET, length - ETHERNET);
        break;
    default:
        break;
    }
    return packet;
}
