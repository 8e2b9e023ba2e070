/* Switch fabric: bridges and lines between real ports, on the real clock, for `causeway switch`.
 *
 * There is a bridge for each cluster, one without --topology. A frame that arrives at a port crosses the line from its
 * host, if there is one, to the bridge of its cluster, which chooses the ports and clusters to forward it to. Towards a
 * port it crosses the line to the port's host; towards a cluster the lines of its route, one after the other, to the
 * bridge there (switch/wan.h).
 *
 *    port --> [line up] --> bridge --+--> line down --> port
 *                                    '--> line ... line --> bridge of another cluster --> line down --> port
 *
 * Invariants
 *  - Frames leave a line in the order in which they entered it; frames in flight lie in a pool of fixed size
 *    (switch/pool.h).
 *  - Every frame offered towards a port ends in exactly one of its counters, or is still held: offered = out + loss +
 *    queue + link_down + port_full + port_down + pool + oversize + held.
 *  - Frames in flight go before new ones: as long as some are due, no port is polled.
 *  - A port whose other side does not take its frames holds a burst back for SWITCH_FULL_NS at most, then drops; no
 *    other port waits for it.
 *  - Nothing is lost by sleeping: the doorbell is armed before the last look at the ports.
 *
 * Order of calls: switch_fabric_open, switch_fabric_run, switch_fabric_report, switch_fabric_close. One thread. */
#pragma once

#include <stdio.h>

#include "apps/cli/process.h"
#include "apps/switch/config.h"
#include "apps/switch/line.h"
#include "apps/switch/pool.h"
#include "apps/switch/streams.h"
#include "dataplane/base/yield_policy.h"
#include "dataplane/fabric/bridge.h"
#include "dataplane/port/port.h"

/* How long a burst waits for room in the ring of a port: longer than a reader on a shared core is usually off it. */
#define SWITCH_FULL_NS 10000000ull

enum {
    SWITCH_CLUSTERS_MAX = SWITCH_PORTS_MAX, /* each has a host */
    SWITCH_LINES_MAX = 2 * SWITCH_PORTS_MAX + 2 * CW_TOPOLOGY_LINKS_MAX,
};

struct switch_counters {
    uint64_t in_frames;
    uint64_t in_bytes;
    uint64_t offered_frames; /* towards this port */
    uint64_t out_frames;
    uint64_t out_bytes;
    uint64_t dropped_loss;
    uint64_t dropped_queue;
    uint64_t dropped_link_down;
    uint64_t dropped_port_full; /* the other side does not take them */
    uint64_t dropped_port_down; /* there is no other side */
    uint64_t dropped_pool;      /* more frames on their way than the switch has room for */
    uint64_t dropped_oversize;  /* longer than the MTU */
};

struct switch_port {
    struct cw_port *port;
    struct switch_line *down; /* of its host */
    struct switch_line *up;   /* NULL: frames are at the bridge at once */
    uint32_t cluster;
    uint32_t bridge_port;   /* its number there */
    uint64_t full_since_ns; /* 0: the last burst went out */
    uint32_t pending_count; /* frames whose time has come */
    struct cw_transmit pending[CW_PORT_BURST_MAX];
    struct switch_counters counters;
};

/* Ports of a cluster's bridge: those of its hosts in their order, then one for each other cluster (mesh ports), in
 * theirs. */
struct switch_cluster {
    struct cw_bridge *bridge;
    uint32_t port_first; /* of the switch */
    uint32_t port_count;
};

struct switch_stats;
struct app_pcap;
struct switch_command;

struct switch_fabric {
    const struct switch_config *config;
    struct switch_port ports[SWITCH_PORTS_MAX];
    struct switch_cluster clusters[SWITCH_CLUSTERS_MAX];
    uint32_t cluster_count;
    struct switch_line *lines; /* to the hosts; from them, then those between sites, twice a link, with --topology */
    uint32_t line_count;
    uint32_t host_count;      /* without --topology each port is a host */
    struct cw_doorbell *bell; /* NULL without memif ports */
    bool bell_found;          /* the bell's file was there before */
    bool socket_owned;
    bool naps;           /* some port cannot ring */
    uint64_t now_ns;     /* of this turn */
    struct cw_heap heap; /* the lines with frames, by the time at which the next one arrives */
    struct switch_pool pool;
    struct switch_streams streams; /* with stats and a topology */
    struct switch_stats *stats;    /* NULL: none */
    /* likewise. Frames at the ends of the link of --pcap-at, with their times of arrival by the model: on a link
     * without loss exactly the delay apart. Lost frames are not in it. */
    struct app_pcap *tap;
    uint64_t tap_epoch_ns;          /* time since 1970 when cw_clock_ns was 0 */
    struct switch_command *command; /* likewise */
    uint64_t idle_since_ns;         /* 0: the last turn did something */
    uint64_t nap_ns;
    struct cw_yield_policy yield_policy;
};

/* Opens ports, bridges and pool. APP_EXIT_SUCCESS, or an exit code after reporting the error; nothing is left behind
 * then. */
int switch_fabric_open(struct switch_fabric *fabric, const struct switch_config *config);

/* Closes the ports and removes the socket and the bell. APP_EXIT_SUCCESS, or that of files that could not be
 * written. */
int switch_fabric_close(struct switch_fabric *fabric);

/* Forwards until signals->stop is set or the configured time has passed. */
void switch_fabric_run(struct switch_fabric *fabric, struct app_signals *signals);

/* One turn: frames that are due, a burst from each port. Returns how many frames it moved. */
uint32_t switch_fabric_turn(struct switch_fabric *fabric, uint64_t now_ns);

/* Whether frames are still on a line that are due to arrive at `now_ns`. */
bool switch_fabric_is_behind(const struct switch_fabric *fabric, uint64_t now_ns);

/* Prints the counters of all ports, of the lines of a topology and of the bridges. */
void switch_fabric_report(const struct switch_fabric *fabric, uint64_t elapsed_ns);

/* Puts a frame that has crossed all lines into the burst of its port. */
void switch_port_send(struct switch_port *port, uint64_t now_ns, const uint8_t *data, uint32_t length);

/* Sends what waits at the port; drops it where the port has been down or full for SWITCH_FULL_NS. */
void switch_port_flush(struct switch_port *port, uint64_t now_ns);
