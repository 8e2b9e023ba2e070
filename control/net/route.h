/* route: the way that this host's kernel takes to an address, and why nothing may come back. For messages to people:
 * packets go where the kernel sends them, asked or not. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

struct cw_route {
    char interface[16];
    struct cw_ip source;  /* that the kernel would take; none: not told */
    struct cw_ip gateway; /* next hop, which may be of IPv6 though the address is of IPv4; none: the address itself */
    uint32_t mtu_bytes;   /* of the interface, or less where the kernel knows of a narrower path; 0: not known */
    bool is_local;        /* the address is this host's own */
};

/* CW_OK; CW_ERROR_NOT_FOUND: there is none; CW_ERROR_SYSTEM: the kernel does not answer (netlink). */
int cw_route_query(const struct cw_ip *ip, struct cw_route *route);
/* The same by the interface with that index; 0: the kernel's choice. */
int cw_route_query_by(const struct cw_ip *ip, uint32_t interface, struct cw_route *route);

/* The answer of the kernel to RTM_GETROUTE, as far as it is one. CW_OK, CW_ERROR_NOT_FOUND, CW_ERROR_SYSTEM. */
int cw_route_parse(const void *answer, size_t bytes, struct cw_route *route);

/* Sends a datagram to a UDP port that has not answered, waits up to half a second for errors from the network, and
 * writes one line: the interface, the next hop and the likely reason of the silence. */
void cw_route_diagnose(const struct cw_ip *ip, uint16_t udp_port, char *text, size_t bytes);
