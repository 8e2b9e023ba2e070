/* ask: the request for the MAC address of an IP address on a link, and its answer, as frames: ARP (RFC 826), and over
 * IPv6 Neighbour Discovery (RFC 4861). Frames may come from any host, and are trusted as far as a kernel would: an
 * answer must be well formed, for ND with a hop limit that no router has decremented. No I/O. Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum { CW_ARP_BYTES = 42, CW_ND_BYTES = 86, CW_SOLICIT_BYTES_MAX = CW_ND_BYTES };

/* The group of all who might have an IPv6 address: solicited-node (RFC 4291, 2.7.1). */
struct cw_ip cw_solicit_group(const struct cw_ip *ip);
/* The request for an address of the same kind as the own one, from the Ethernet header on. Its length. */
size_t cw_solicit_write(uint8_t frame[CW_SOLICIT_BYTES_MAX], const struct cw_ip *own, const uint8_t own_mac[6],
                        const struct cw_ip *ip);
/* An answer of either kind: the sender's address, and its MAC address. False: it is none. */
bool cw_solicit_parse(const uint8_t *frame, size_t bytes, struct cw_ip *ip, uint8_t mac[6]);
/* Whether an answer that has been parsed may replace another: an advertisement by a proxy may not (RFC 4861, 7.2.5, the
 * override flag). */
bool cw_solicit_overrides(const uint8_t *frame);
