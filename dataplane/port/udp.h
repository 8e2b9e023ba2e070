/* UDP port: sockets of the kernel as a port. It needs no privilege and no driver, and uses all routes of the kernel.
 *
 * Packets are the same as on any other port: the kernel writes Ethernet, IP and UDP headers of outgoing packets. For
 * received ones the port writes the headers that the endpoint reads, without MAC addresses. So a process with a NIC and
 * one with a socket can communicate.
 *
 * Invariants
 *  - Packets to one peer that leave together pass the kernel in one piece, and are split as late as the network allows
 *    (UDP_SEGMENT; Linux 4.18); packets that arrive together pass it in one piece (UDP_GRO; Linux 5.0).
 *  - Packets are never fragmented by IP.
 *  - A multicast group has a separate socket, since the kernel permits 20 memberships in one (igmp_max_memberships).
 *    Groups are addresses in 239.0.0.0/9 or ff15::/96, with different MAC addresses. Packets to them use one UDP port
 *    that all members know, independent of their own ports. Other members on the same host also get them. The port does
 *    not receive its own packets.
 *  - Packets that the kernel drops for lack of room are counted (cw_port_udp_dropped).
 *
 * Order of calls: cw_port_udp_open, then as in port.h. */
#pragma once

#include "dataplane/ip.h"
#include "dataplane/port/port.h"

enum {
    CW_PORT_UDP_BUFFER_BYTES = 8 << 20, /* requested of the kernel, in each direction; net.core.rmem_max is its limit */
};

struct cw_port_udp_config {
    struct cw_ip ip;       /* own address: one of this host, not link-local (fe80::) */
    uint16_t udp_port;     /* 0: the kernel chooses one; only with one stream */
    uint32_t stream_count; /* sockets, and their ports from that one on; at least 1 */
    uint32_t mtu_bytes;    /* CW_PORT_MTU_MIN to CW_PORT_MTU_ETHERNET_MAX */
    uint32_t buffer_bytes; /* 0: CW_PORT_UDP_BUFFER_BYTES */
    /* Never UDP_SEGMENT: between namespaces of a machine its pieces arrive unsplit, and only a socket can split them.
     * */
    bool never_segments;
    uint16_t group_port; /* of packets to multicast groups; 0: there are none, and joining is CW_ERROR_UNSUPPORTED */
};

/* Opens the sockets. CW_OK, or with one line in `error`: CW_ERROR_ARGUMENT; CW_ERROR_NOT_FOUND (the host has no such
 * address); CW_ERROR_BUSY (the port is in use); CW_ERROR_PERMISSION; CW_ERROR_MEMORY; CW_ERROR_SYSTEM. */
int cw_port_udp_open(const struct cw_port_udp_config *config, struct cw_port **port, char *error, size_t error_bytes);

/* The first of its UDP ports. Owner. */
uint16_t cw_port_udp_number(const struct cw_port *port);

/* Packets that the kernel has dropped since it had no room for more. Owner. */
uint64_t cw_port_udp_dropped(const struct cw_port *port);
