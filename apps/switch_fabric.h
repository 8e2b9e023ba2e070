/* Switch fabric: the bridge and the links between real ports, on the real clock: what `causeway switch` runs.
 *
 * A frame that comes in by a port is taken to the bridge, which names the ports it leaves by, and offered to the link of
 * each: lost, refused, sent at once, or held until it has arrived at the far end of that link.
 *
 * Invariants
 *  - Frames leave a port in the order of their arrival times; held frames lie in a pool of fixed size.
 *  - Every frame offered to a port ends in exactly one of its counters, or is still held:
 *    offered = out + loss + queue + port_full + port_down + pool + oversize + held.
 *  - A port whose other side does not take its frames holds a burst back for SWITCH_FULL_NS at most, then drops; no other
 *    port waits for it.
 *  - Nothing is lost by sleeping: the doorbell is armed before the last look at the ports.
 *
 * Order of calls: switch_fabric_open, switch_fabric_run, switch_fabric_report, switch_fabric_close. One thread.
 */
#ifndef SWITCH_FABRIC_H
#define SWITCH_FABRIC_H

#include <signal.h>
#include <stdio.h>

#include "apps/switch_config.h"
#include "dataplane/core/crowding.h"
#include "dataplane/fabric/bridge.h"
#include "dataplane/fabric/heap.h"
#include "dataplane/fabric/link.h"
#include "dataplane/port/port.h"

/* How long a burst waits for room in the ring of a port: longer than a reader on a shared core is usually off it. */
#define SWITCH_FULL_NS 10000000ull

struct switch_counters {
    uint64_t in_frames;
    uint64_t in_bytes;
    uint64_t out_frames;
    uint64_t out_bytes;
    uint64_t dropped_port_full; /* the other side does not take them */
    uint64_t dropped_port_down; /* there is no other side */
    uint64_t dropped_pool;      /* more frames on their way than the switch has room for */
    uint64_t dropped_oversize;  /* longer than the MTU */
};

struct switch_port {
    struct cw_port *port;
    struct cw_link link;
    uint64_t full_since_ns; /* 0: the last burst went out */
    uint32_t pending_count; /* frames whose time has come */
    struct cw_transmit pending[CW_PORT_BURST_MAX];
    struct switch_counters counters;
};

/* A frame on its way. */
struct switch_held {
    struct switch_held *next; /* while free */
    uint32_t port;
    uint32_t length;
    uint8_t data[];
};

struct switch_fabric {
    const struct switch_config *config;
    struct switch_port ports[SWITCH_PORTS_MAX];
    struct cw_bridge *bridge;
    struct cw_doorbell *bell; /* NULL without memif ports */
    bool bell_found;          /* the bell's file was there before */
    bool socket_owned;
    bool naps; /* some port cannot ring */
    struct cw_heap heap;
    uint64_t held_sequence;
    uint8_t *pool; /* pool_count frames of pool_stride bytes, touched only as used */
    size_t pool_stride;
    uint32_t pool_count;
    uint32_t pool_used; /* so many have been touched */
    struct switch_held *pool_free;
    uint64_t idle_since_ns; /* 0: the last turn did something */
    uint64_t nap_ns;
    struct cw_crowding crowding;
};

/* Set by signal handlers, cleared by switch_fabric_run. */
struct switch_signals {
    volatile sig_atomic_t stop;
    volatile sig_atomic_t report;
};

/* Opens ports, bridge and pool. APP_EXIT_SUCCESS, or an exit code after reporting the error; nothing is left behind then. */
int switch_fabric_open(struct switch_fabric *fabric, const struct switch_config *config);

/* Closes the ports and removes the socket and the bell. */
void switch_fabric_close(struct switch_fabric *fabric);

/* Forwards until signals->stop is set or the configured time is over. */
void switch_fabric_run(struct switch_fabric *fabric, struct switch_signals *signals);

/* One turn: frames that are due, a burst from each port. Returns how many frames it moved. */
uint32_t switch_fabric_turn(struct switch_fabric *fabric, uint64_t now_ns);

/* Prints the counters of all ports and of the bridge. */
void switch_fabric_report(const struct switch_fabric *fabric, uint64_t elapsed_ns);

#endif
