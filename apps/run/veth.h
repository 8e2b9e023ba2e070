/* Run veth: emulated hosts as network namespaces of the kernel, for `causeway run --emulate HOSTS,veth`.
 *
 *        host 0               host 1          namespaces, one a host; ranks are started in them
 *     cw0       cw1             cw2           an interface per rank, as if each had a NIC: 10.0.0.1, 10.0.0.2, ...
 *      |         |               |            veth
 *     port0    port1           port2
 *      '------- bridge ----------'            in a namespace of its own
 *
 * Invariants
 *   - Namespaces have no names: they are held by our descriptors and by the processes in them, and vanish with these,
 *     however those end. Nothing of all this is seen from outside.
 *   - The kernel's own TCP and UDP work between the interfaces, too.
 *   - The bridge snoops on IGMP and is the querier: a group's frames go to those that have reported. For the first
 *     seconds, until it knows all there are, the kernel floods.
 *
 * Thread: the process must have no other one, since it enters namespaces itself for a moment. */
#pragma once

#include <signal.h>
#include <stdint.h>

#include "control/job/wire.h"

enum { RUN_VETH_HOSTS_MAX = 63 };

struct run_veth {
    uint32_t host_count;
    int networks[RUN_VETH_HOSTS_MAX]; /* the hosts' namespaces */
    int bridge;                       /* the bridge's; -1: none */
};

/* Makes all of it; `host_of[rank]` is the host of each rank. 0, or the exit code of the command, with the reason
 * reported; run_veth_stop is due in both cases. Signals of `handled`, which are blocked, end it. */
int run_veth_start(struct run_veth *veth, uint32_t hosts, const uint32_t *host_of, uint32_t ranks, uint32_t mtu_bytes,
                   enum cw_wire_multicast multicast, const sigset_t *handled);
/* Releases the namespaces. One with `bridge` -1 and no hosts is allowed. */
void run_veth_stop(struct run_veth *veth);
