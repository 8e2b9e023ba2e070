/* transport: how packets of the ranks of a host reach other hosts.
 *
 *    udp        sockets of the kernel: no privilege, any route
 *    af_packet  frames by a raw socket on the kernel's interface: root, or CAP_NET_RAW; only for `causeway node`
 *    device     a NIC of the rank's own, which bypasses the kernel (device.h)
 *    node       the dataplane of the host, which owns a NIC for all ranks of the host (control/lease/): no privilege
 *
 * All transports carry IPv4 and IPv6. CAUSEWAY_TRANSPORT names one, alone or with the interface, address or subnet to
 * choose from: "udp:eth0", "udp:10.1.0.0/16", "udp:fd77::/16", "0000:03:00.0", "node",
 * "node:/run/causeway/node"; "eth0" names no transport. All ranks apply the same rule to the offers of all ranks:
 *   1. Ranks that share their interfaces use one transport, since a rank does not see the frames that other ranks send
 *      to its own host. If two transports are named, that is an error. A device belongs to one rank: each has to name
 *      one.
 *   2. If none is named: sockets, which stream fastest and need no privilege (docs/internals/jobs.md).
 * Hosts may differ: the packets are the same.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_net_offer;

enum cw_net_transport {
    CW_NET_TRANSPORT_NONE = 0, /* not named */
    CW_NET_TRANSPORT_UDP = 1,
    CW_NET_TRANSPORT_AF_PACKET = 2,
    CW_NET_TRANSPORT_DEVICE = 3,
    CW_NET_TRANSPORT_NODE = 4,
};

#define CW_NET_TRANSPORT_WORDS \
    "udp, alone or as in udp:eth0, node, and devices, like 0000:03:00.0; for `causeway node`, af_packet:eth0"

/* "af_packet" */
const char *cw_net_transport_name(enum cw_net_transport transport);

/* The transport that a text of CAUSEWAY_TRANSPORT begins with. *what: the rest ("": nothing is left); for a device or
 * NONE: all of the text. */
enum cw_net_transport cw_net_transport_read(const char *text, const char **what);

/* The transport of the rank `own`. CW_OK; CW_ERROR_ARGUMENT: the rule has none, with a line in `error`. */
int cw_net_transport_choose(const struct cw_net_offer *offers, uint32_t count, uint32_t own,
                            enum cw_net_transport *transport, char *error, size_t error_bytes);
/* Whether all ranks use sockets. */
bool cw_net_transport_all_sockets(const struct cw_net_offer *offers, uint32_t count);

/* Whether this process can use af_packet on the interface: privileges, VLAN tags.
 * CW_OK; CW_ERROR_PERMISSION, CW_ERROR_UNSUPPORTED, CW_ERROR_SYSTEM with a line in `error` that names
 * the remedy. */
int cw_net_transport_check(const char *interface, char *error, size_t error_bytes);
