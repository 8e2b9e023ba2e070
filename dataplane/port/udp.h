/* UDP port: sockets of the kernel as a port. It takes no privilege and no driver, and goes wherever the kernel routes.
 *
 * What travels are the same packets as on any other port: the kernel writes Ethernet, IP and UDP headers on the way
 * out; on the way in the port writes those that the endpoint reads, without MAC addresses. So a process with a NIC and
 * one with a socket talk to each other.
 *
 * Invariants
 *  - Packets to one peer that leave together go down in one piece, and are cut as late as the network allows
 *    (UDP_SEGMENT; Linux 4.18); packets that came together come up in one (UDP_GRO; Linux 5.0).
 *  - Packets are never fragmented by IP.
 *  - A multicast group has a socket of its own, since the kernel lets 20 memberships into one (igmp_max_memberships).
 *    Groups are addresses in 239.0.0.0/9 or ff15::/96, which their MAC addresses tell apart, and packets to them go to
 *    one UDP port that all members know, whatever ports they have themselves. Other members on the same host get them, too; what
 *    this port has sent does not come back to it.
 *  - What the kernel drops for want of room is counted (cw_port_udp_dropped).
 *
 * Order of calls: cw_port_udp_open, then as in port.h. */
#pragma once

#include "dataplane/ip.h"
#include "dataplane/port/port.h"

enum {
    CW_PORT_UDP_BUFFER_BYTES =
        8 << 20, /* asked of the kernel, each way; it gives as much as net.core.rmem_max lets it */
};

struct cw_port_udp_config {
    struct cw_ip ip;       /* own address: one that this host has, and not of a link alone (fe80::) */
    uint16_t udp_port;     /* 0: the kernel gives one; only with one stream */
    uint32_t stream_count; /* sockets, at so many ports from that one on; at least 1 */
    uint32_t mtu_bytes;    /* CW_PORT_MTU_MIN to CW_PORT_MTU_ETHERNET_MAX */
    uint32_t buffer_bytes; /* 0: CW_PORT_UDP_BUFFER_BYTES */
    /* Never UDP_SEGMENT: between namespaces of a machine what it makes arrives uncut, which a peer that is no socket
     * cannot take apart. */
    bool never_segments;
    uint16_t group_port; /* of packets to multicast groups; 0: there are none, and joining is CW_ERROR_UNSUPPORTED */
};

/* Opens the sockets. CW_OK, or with one line in `error`: CW_ERROR_ARGUMENT; CW_ERROR_NOT_FOUND (the host has no such
 * address); CW_ERROR_BUSY (somebody has the port); CW_ERROR_PERMISSION; CW_ERROR_MEMORY; CW_ERROR_SYSTEM. */
int cw_port_udp_open(const struct cw_port_udp_config *config, struct cw_port **port, char *error, size_t error_bytes);

/* The first of its UDP ports. Owner. */
uint16_t cw_port_udp_number(const struct cw_port *port);

/* Packets that the kernel has dropped since it had no room for more. Owner. */
uint64_t cw_port_udp_dropped(const struct cw_port *port);
