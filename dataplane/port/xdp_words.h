/* What the XDP program (selection.bpf.c) is told: written into its constants before it is loaded. */
#pragma once

#include <stdint.h>

#define CW_XDP_MAGIC UINT64_C(0xd1b54a32d192ed03) /* by which they are found in the program's file: embed.py */
#define CW_XDP_NAME  "causeway_xdp"               /* of the program, in the kernel; at most 15 bytes */

struct cw_xdp_words { /* host byte order; as struct cw_port_selection */
    uint64_t magic;
    uint32_t ip[4]; /* of an IPv4 address, the last is it */
    uint16_t udp_port;
    uint16_t udp_port_count;
    uint16_t group_port;
    uint16_t is_v6;
};
