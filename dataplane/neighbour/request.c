#include "dataplane/neighbour/request.h"

#include <string.h>

#include "dataplane/neighbour/frames.h"

/* ---- ARP ---- */

static void arp_write(uint8_t frame[CW_ARP_BYTES], const struct cw_ip *own, const uint8_t own_mac[6],
                      const struct cw_ip *ip)
{
    memset(frame, 0, CW_ARP_BYTES);
    memset(frame, 0xff, 6);
    memcpy(frame + AT_SENDER_MAC, own_mac, 6);
    frame[AT_ETHER_TYPE] = 0x08;
    frame[AT_ETHER_TYPE + 1] = 0x06;
    memcpy(frame + ETHERNET, frames_arp_head, sizeof(frames_arp_head));
    frame[ARP_AT_OPERATION + 1] = ARP_REQUEST;
    memcpy(frame + ARP_AT_SENDER_MAC, own_mac, 6);
    memcpy(frame + ARP_AT_SENDER, own->bytes + 12, 4);
    memcpy(frame + ARP_AT_TARGET, ip->bytes + 12, 4);
}

static bool arp_parse(const uint8_t *frame, size_t bytes, struct cw_ip *ip, uint8_t mac[6])
{
    if (bytes < CW_ARP_BYTES || frames_be16(frame + AT_ETHER_TYPE) != 0x0806 ||
        memcmp(frame + ETHERNET, frames_arp_head, sizeof(frames_arp_head)) != 0 ||
        frames_be16(frame + ARP_AT_OPERATION) != ARP_REPLY ||
        (frame[ARP_AT_SENDER_MAC] & GROUP_BIT) != 0 /* a host's address is no group */) {
        return false;
    }
    *ip = cw_ip_v4(0);
    memcpy(ip->bytes + 12, frame + ARP_AT_SENDER, 4);
    memcpy(mac, frame + ARP_AT_SENDER_MAC, 6);
    return !cw_ip_is_none(ip);
}

/* ---- Neighbour Discovery ---- */

static void nd_write(uint8_t frame[CW_ND_BYTES], const struct cw_ip *own, const uint8_t own_mac[6],
                     const struct cw_ip *ip)
{
    struct cw_ip group = cw_solicit_group(ip);
    frames_nd_write(frame, ND_SOLICITATION, own, own_mac, &group, ip);
    cw_wire_group_mac(&group, frame);
    frames_v6_sum_write(frame, CW_ND_BYTES - V6_AT_MESSAGE);
}

static bool nd_parse(const uint8_t *frame, size_t bytes, struct cw_ip *ip, uint8_t mac[6])
{
    bool is_broken;
    if (bytes < ND_AT_OPTIONS || frames_be16(frame + AT_ETHER_TYPE) != 0x86dd || frame[V6_AT_VERSION] >> 4 != 6 ||
        frame[V6_AT_NEXT] != ICMPV6 || frame[V6_AT_HOPS] != ND_HOPS) {
        return false;
    }
    size_t length = frames_be16(frame + V6_AT_LENGTH); /* behind it may be Ethernet's padding */
    if (length < ND_AT_OPTIONS - V6_AT_MESSAGE || length > bytes - V6_AT_MESSAGE ||
        frame[V6_AT_MESSAGE] != ND_ADVERTISEMENT || frame[V6_AT_MESSAGE + 1] != 0 ||
        frames_v6_sum(frame, length) != 0) {
        return false;
    }
    const uint8_t *its = frames_nd_option(frame, length, ND_TARGET_MAC, &is_broken);
    if (its == NULL || (its[0] & GROUP_BIT) != 0 || frame[ND_AT_TARGET] == 0xff) { /* a host's address is no group */
        return false;
    }
    memcpy(ip->bytes, frame + ND_AT_TARGET, sizeof(ip->bytes));
    memcpy(mac, its, 6);
    return !cw_ip_is_none(ip) && !cw_ip_is_v4(ip);
}

struct cw_ip cw_solicit_group(const struct cw_ip *ip)
{
    struct cw_ip group = {{0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff}};
    memcpy(group.bytes + 13, ip->bytes + 13, 3);
    return group;
}

/* ---- both ---- */

size_t cw_solicit_write(uint8_t frame[CW_SOLICIT_BYTES_MAX], const struct cw_ip *own, const uint8_t own_mac[6],
                        const struct cw_ip *ip)
{
    if (cw_ip_is_v4(own)) {
        arp_write(frame, own, own_mac, ip);
        return CW_ARP_BYTES;
    }
    nd_write(frame, own, own_mac, ip);
    return CW_ND_BYTES;
}

bool cw_solicit_parse(const uint8_t *frame, size_t bytes, struct cw_ip *ip, uint8_t mac[6])
{
    return arp_parse(frame, bytes, ip, mac) || nd_parse(frame, bytes, ip, mac);
}

bool cw_solicit_overrides(const uint8_t *frame)
{
    return frames_be16(frame + AT_ETHER_TYPE) != 0x86dd || (frame[ND_AT_FLAGS] & ND_OVERRIDE) != 0;
}
