/* Membership: the kernel as member of a multicast group on behalf of a port that takes the packets itself. So the
 * interface lets the group's MAC address in, and switches that listen to memberships are told, and told again whenever
 * they ask (IGMP), as by any program of this host.
 *
 * Thread: any. */
#pragma once

#include <stdint.h>

/* The group of a MAC address, which keeps 23 bits of it (RFC 1112, 6.4): those of jobs are in 239.0.0.0/9. */
static inline uint32_t cw_membership_ipv4(const uint8_t mac[6])
{
    return 239u << 24 | (mac[3] & 0x7fu) << 16 | (uint32_t)mac[4] << 8 | mac[5];
}

/* Begins one at the interface that has the address `own_ipv4` (host byte order). A descriptor, which receives nothing,
 * and by whose close it ends; or -errno: -ENOBUFS (the kernel has no room for more), -ENODEV (the interface does no
 * multicast), ... */
int cw_membership_open(const uint8_t mac[6], uint32_t own_ipv4);
