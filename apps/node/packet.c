#include "apps/node/packet.h"

#include <string.h>

#include "dataplane/wire/wire.h"
#include "mcast/igmp.h"
#include "mcast/mld.h"

enum {
    ETHERNET = 14,
    V4_HEADER = 20,
    V6_HEADER = 40,
    UDP_HEADER = 8,
    UDP = 17,
    /* where the reports of mcast/ have their type and group */
    IGMP_AT = ETHERNET + 24,
    MLD_AT = ETHERNET + V6_HEADER + 8,
    IGMP_LEAVE = 0x17,
    MLD_DONE = 132,
};

static uint16_t be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t be32(const uint8_t *at)
{
    return (uint32_t)be16(at) << 16 | be16(at + 2);
}

/* The first byte of an address decides. */
static bool is_multicast(uint8_t first, bool is_v4)
{
    return is_v4 ? first >> 4 == 0xe : first == 0xff;
}

/* An address that one host may have. */
static bool is_host(uint8_t first, bool is_v4)
{
    return is_v4 ? first != 0 && first != 127 && first < 0xe0 : first != 0 && first != 0xff; /* RFC 4291, 2.4 */
}

/* The MAC address belongs to a group's IP address. */
static bool is_group_mac(const uint8_t *frame, const struct node_packet *packet)
{
    struct cw_ip group = cw_ip_v4(be32(packet->to));
    uint8_t mac[6];
    if (!packet->is_v4) {
        memcpy(group.bytes, packet->to, sizeof(group.bytes));
    }
    cw_wire_group_mac(&group, mac);
    return memcmp(frame, mac, sizeof(mac)) == 0;
}

/* A datagram in `bytes` bytes; its MAC address must fit its IP address: a group's for a group, else that of one
 * host. */
static void udp_read(struct node_packet *packet, const uint8_t *frame, const uint8_t *udp, uint32_t bytes)
{
    uint32_t length = bytes < UDP_HEADER ? 0 : be16(udp + 4);
    uint8_t first = packet->to[0];
    bool is_group = is_multicast(first, packet->is_v4);
    bool is_addressed = is_group ? is_group_mac(frame, packet) : is_host(first, packet->is_v4) && (frame[0] & 1) == 0;
    if (length < UDP_HEADER || length > bytes || !is_addressed) {
        return;
    }
    packet->kind = NODE_PACKET_UDP;
    packet->is_group = is_group;
    packet->bytes = (uint32_t)(udp - frame) + bytes;
    packet->from_port = be16(udp);
    packet->to_port = be16(udp + 2);
}

static void v4_read(struct node_packet *packet, const uint8_t *frame, uint32_t length)
{
    const uint8_t *ip = frame + ETHERNET;
    if (length < V4_HEADER || ip[0] != 0x45 || ip[9] != UDP || (be16(ip + 6) & 0xbfff) != 0) {
        return; /* the one flag is "do not fragment" */
    }
    uint32_t total = be16(ip + 2);
    packet->is_v4 = true;
    packet->from = ip + 12;
    packet->to = ip + 16;
    if (total >= V4_HEADER && total <= length) {
        udp_read(packet, frame, ip + V4_HEADER, total - V4_HEADER);
    }
}

static bool is_mapped(const uint8_t *at)
{
    struct cw_ip ip;
    memcpy(ip.bytes, at, sizeof(ip.bytes));
    return cw_ip_is_v4(&ip);
}

static void v6_read(struct node_packet *packet, const uint8_t *frame, uint32_t length)
{
    const uint8_t *ip = frame + ETHERNET;
    if (length < V6_HEADER || ip[0] >> 4 != 6 || ip[6] != UDP) {
        return;
    }
    packet->from = ip + 8;
    packet->to = ip + 24;
    uint32_t payload = be16(ip + 4);
    bool is_v6 = !is_mapped(packet->from) && !is_mapped(packet->to); /* no packet has ::ffff:0:0/96 */
    if (payload <= length - V6_HEADER && is_v6) {
        udp_read(packet, frame, ip + V6_HEADER, payload);
    }
}

struct node_packet node_packet_read(const uint8_t *frame, uint32_t length)
{
    struct node_packet packet = {.kind = NODE_PACKET_OTHER};
    if (length < ETHERNET) {
        return packet;
    }
    switch (be16(frame + 12)) {
    case 0x0800:
        v4_read(&packet, frame, length - ETHERNET);
        break;
    case 0x86dd:
        v6_read(&packet, frame, length - ETHERNET);
        break;
    default:
        break;
    }
    return packet;
}

/* ---- membership ---- */

static bool igmp_read(const uint8_t *frame, const uint8_t mac[6], uint32_t own_ipv4, struct node_report *report)
{
    uint8_t own[CW_MCAST_IGMP_BYTES];
    uint32_t ipv4 = be32(frame + IGMP_AT + 4);
    struct cw_ip group = cw_ip_v4(ipv4);
    report->has_left = frame[IGMP_AT] == IGMP_LEAVE;
    cw_wire_group_mac(&group, report->group);
    cw_mcast_igmp_write(own, mac, own_ipv4, ipv4, report->has_left);
    return is_multicast(group.bytes[12], true) && ipv4 >> 8 != 0xe00000 && memcmp(own, frame, sizeof(own)) == 0;
}

static bool mld_read(const uint8_t *frame, const uint8_t mac[6], struct node_report *report)
{
    uint8_t own[CW_MCAST_MLD_BYTES];
    struct cw_ip group = cw_wire_group(be32(frame + MLD_AT + 20), true);
    report->has_left = frame[MLD_AT] == MLD_DONE;
    cw_wire_group_mac(&group, report->group);
    cw_mcast_mld_write(own, mac, &group, report->has_left);
    return memcmp(own, frame, sizeof(own)) == 0;
}

bool node_report_read(const uint8_t *frame, uint32_t length, const uint8_t mac[6], const struct cw_ip *ip,
                      struct node_report *report)
{
    return cw_ip_is_v4(ip) ? length == CW_MCAST_IGMP_BYTES && igmp_read(frame, mac, cw_ip_to_v4(ip), report)
                           : length == CW_MCAST_MLD_BYTES && mld_read(frame, mac, report);
}
