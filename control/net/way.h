/* way: by what the ranks of a host reach other hosts.
 *
 *    udp        sockets of the kernel: no privilege, any route
 *    af_packet  frames by a raw socket on the kernel's interface: root, or CAP_NET_RAW
 *    af_xdp     frames before the kernel takes them (XDP); one rank an interface, which has one queue, and an MTU of
 *               CW_WAY_XDP_MTU_MAX at most; root
 *    device     a NIC of the rank's own, past the kernel (device.h)
 *    node       the host's dataplane, which has a NIC for all ranks of the host (control/lease/): no privilege
 *
 * Each goes over IPv4 and IPv6. CAUSEWAY_NET names one, with or without what the addresses are chosen from:
 * "af_packet", "af_packet:eth0", "udp:10.1.0.0/16", "af_xdp:fd77::/16", "0000:03:00.0", "node",
 * "node:/run/causeway/node"; "eth0" names none. The rule, the same at all ranks, on what all have offered:
 *   1. Ranks that share their interfaces go one way, since they do not see what the others' send to the own host: the
 *      one that is named. Two that are named are an error. A device is a rank's own: each has to name one.
 *   2. None is named: sockets, which stream fastest and need no privilege (ARCHITECTURE.md, "Jobs across hosts").
 * Hosts may differ: the packets are the same.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_net_offer;

enum { CW_WAY_XDP_MTU_MAX = 3434 /* a frame, and what the kernel keeps in front of it, fit a page */ };

enum cw_way {
    CW_WAY_NONE = 0, /* not named */
    CW_WAY_UDP = 1,
    CW_WAY_AF_PACKET = 2,
    CW_WAY_AF_XDP = 3,
    CW_WAY_DEVICE = 4,
    CW_WAY_NODE = 5,
};

#define CW_WAY_WORDS "udp, af_packet and af_xdp, alone or as in af_packet:eth0, node, and devices, like 0000:03:00.0"

/* "af_packet" */
const char *cw_way_name(enum cw_way way);

/* The way that a text of CAUSEWAY_NET begins with, and what is behind it ("": nothing; of a device: all of the text);
 * NONE: the text is all. */
enum cw_way cw_way_read(const char *text, const char **what);

/* The way of the rank `own`. CW_OK; CW_ERROR_ARGUMENT: the rule has none, with a line in `error`. */
int cw_way_choose(const struct cw_net_offer *offers, uint32_t count, uint32_t own, enum cw_way *way, char *error,
                  size_t error_bytes);
/* Whether all ranks go by sockets. */
bool cw_way_all_sockets(const struct cw_net_offer *offers, uint32_t count);

/* Whether this process can go that way by that interface: privileges, VLAN tags, queues, MTU, another program. CW_OK;
 * CW_ERROR_PERMISSION, CW_ERROR_BUSY, CW_ERROR_UNSUPPORTED, CW_ERROR_SYSTEM with a line in `error` that says what to
 * do. */
int cw_way_check(enum cw_way way, const char *interface, char *error, size_t error_bytes);
