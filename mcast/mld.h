/* MLD: the counterpart of igmp.h over IPv6: reports and dones of version 1 (RFC 2710), which snooping switches
 * understand with any version of their querier. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/ip.h"

enum { CW_MCAST_MLD_BYTES = 86 };

/* Writes a frame of CW_MCAST_MLD_BYTES: this host has joined, or left, the group. Its source is the link's own address
 * that goes with the MAC (RFC 4291, appendix A). */
void cw_mcast_mld_write(uint8_t *frame, const uint8_t mac[6], const struct cw_ip *group, bool has_left);
