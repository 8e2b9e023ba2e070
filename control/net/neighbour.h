/* neighbour: finds the next hops on this host's links and their MAC addresses, for ports that write Ethernet headers
 * themselves. The kernel's routes give the next hop (route.h), and its neighbour table has most MAC addresses
 * (RTM_GETNEIGH, read once). For neighbours that are missing there or stale, we send requests of our own (solicit.h),
 * all at the same time, a few times within a second. For a router of IPv6 on the way to an address of IPv4 the kernel
 * asks itself, when it has a datagram for the host.
 *
 * Needs CAP_NET_RAW if a request must be sent. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum { CW_HOP_TEXT_BYTES = 64 };

/* A host, and the way to it. */
struct cw_hop {
    struct cw_ip ip;   /* of the host: the caller's */
    struct cw_ip next; /* that the frames go to: a router, or the host itself */
    uint8_t mac[6];
    bool is_known;                  /* mac is its */
    char reason[CW_HOP_TEXT_BYTES]; /* if not: why */
};

/* Finds the next hops of one address family by the interface with the address `own` and the MAC address `own_mac`.
 * Hosts with the own address have that one. CW_OK, with is_known set in those that were found; CW_ERROR_SYSTEM,
 * CW_ERROR_PERMISSION, ...: no search is possible, with a line in `error`. */
int cw_hops_find(const char *interface, const struct cw_ip *own, const uint8_t own_mac[6], struct cw_hop *hops,
                 uint32_t count, char *error, size_t error_bytes);

/* ---- what comes from outside, for tests ---- */

/* Takes MAC addresses from a piece of the kernel's neighbour table: of the interface with that index, those with an
 * owner that has answered (`sure`), or did once. CW_OK: more follows; CW_ERROR_NOT_FOUND: that was all;
 * CW_ERROR_SYSTEM: it is none. */
struct cw_neighbour {
    struct cw_ip ip;
    uint8_t mac[6];
    bool is_sure;
};
int cw_neighbours_parse(const void *answer, size_t bytes, uint32_t interface, struct cw_neighbour *neighbours,
                        uint32_t count_max, uint32_t *count);
