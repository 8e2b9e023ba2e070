/* Membership: the kernel as member of a multicast group on behalf of a port that receives the packets itself. So the
 * interface admits the group's MAC address, and the kernel reports the membership to switches (IGMP, MLD), also on each
 * query, as for any program of this host.
 *
 * Thread: any. */
#pragma once

#include <stdint.h>

#include "dataplane/ip.h"

/* The group of a MAC address, which keeps 23 bits of it, over IPv6 32 (RFC 1112, 6.4; RFC 2464, 7): those of jobs are
 * in 239.0.0.0/9, and in ff15::/96. */
static inline struct cw_ip cw_membership_group(const uint8_t mac[6], bool is_v6)
{
    struct cw_ip group = {{0xff, 0x15}};
    memcpy(group.bytes + 12, mac + 2, 4);
    return is_v6 ? group : cw_ip_v4(239u << 24 | (mac[3] & 0x7fu) << 16 | (uint32_t)mac[4] << 8 | mac[5]);
}

/* Begins one at the interface with that index. Returns a descriptor, which receives nothing, and whose close ends the
 * membership; or -errno: -ENOBUFS (the kernel has no room for more), -ENODEV (the interface does no multicast), ... */
int cw_membership_open(const uint8_t mac[6], uint32_t interface, bool is_v6);
