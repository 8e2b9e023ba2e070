/* IGMP: reports of a host to the switches, so that they forward a group's frames to it, and to no other port:
 * membership reports and leaves of version 2 (RFC 2236), which snooping switches understand with any version of their
 * querier (RFC 4541). Queries are not answered. Instead, reports are repeated more often than switches forget. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { CW_MCAST_IGMP_BYTES = 60 }; /* a frame of the least length */

/* Writes a frame of CW_MCAST_IGMP_BYTES: this host has joined, or left, the group. Addresses in host byte order. */
void cw_mcast_igmp_write(uint8_t *frame, const uint8_t mac[6], uint32_t own_ipv4, uint32_t group_ipv4, bool has_left);
