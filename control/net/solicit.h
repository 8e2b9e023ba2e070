/* solicit: who has an address on a link, asked and answered in frames: ARP (RFC 826), and over IPv6 Neighbour Discovery
 * (RFC 4861). What comes in is anybody's, and is believed as far as the kernel would: an answer that is well formed, for
 * ND with a hop limit that no router has passed on.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum { CW_ARP_BYTES = 42, CW_ND_BYTES = 86, CW_SOLICIT_BYTES_MAX = CW_ND_BYTES };

/* A raw socket, which does not block, for the answers of one kind on that interface; or -errno. */
int cw_solicit_open(uint32_t interface, bool is_v6);

/* The request for an address of the same kind as the own one, from the Ethernet header on. Its length. */
size_t cw_solicit_write(uint8_t frame[CW_SOLICIT_BYTES_MAX], const struct cw_ip *own, const uint8_t own_mac[6],
                        const struct cw_ip *ip);
/* An answer of either kind: who says it, and that he has which MAC address. False: it is none. */
bool cw_solicit_parse(const uint8_t *frame, size_t bytes, struct cw_ip *ip, uint8_t mac[6]);
