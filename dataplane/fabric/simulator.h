/* Simulator: a network of hosts in virtual time, from one seed: to test protocols over puts, messages and multicast.
 *
 * A node is a host with one port. Its turns represent the loop of its process. Nodes are connected to bridges by a pair
 * of links (up and down); bridges are joined by trunks. A frame goes from a port over the up link into a bridge.
 * From there it goes over the down link of each target into the receive ring of its port; the queue of this link is the
 * bridge's output queue. Then the target is turned. A host (cw_simulator_host_start) has an endpoint, which its turns
 * turn; all calls of dataplane.h work on it.
 *
 * Invariants
 *  - The same configuration, seed and calls give the same run bit for bit: same times, same bytes, same order.
 *    cw_simulator_hash is a digest of it. Two events at the same time happen in the order in which they were caused.
 *  - Time never goes back, and passes only in cw_simulator_run, cw_simulator_run_until and cw_simulator_step. A node's
 *    turns are at least turn_ns apart, so that time passes whatever `turn` returns.
 *  - A node is turned when a packet has arrived (after its processing delay), when its deadline is due, after
 *    cw_simulator_wake, and when it is resumed. If its send queue was full, it is turned once half of that has left. It
 *    is not turned while it is stopped or crashed.
 *  - Everything is bounded. A full queue drops and counts; a full send queue refuses.
 *  - No clock, no I/O, no globals. A process may have any number of simulators, each with one owner, which makes all
 *    calls on it and on its endpoints.
 *
 * Order of calls
 *    cw_simulator_config_init, cw_simulator_create
 *    cw_simulator_star | cw_simulator_switches |
 *        { cw_simulator_bridge_add | cw_simulator_node_add | cw_simulator_bridges_join }*
 *    for each node: cw_simulator_host_start
 *    { cw_simulator_run | cw_simulator_run_until | cw_simulator_step | faults | queries | calls of dataplane.h }*
 *    cw_simulator_destroy
 *
 * Memory: a node takes cw_simulator_node_bytes (11.1 KiB with the defaults, nearly all of it rings), a packet its frame
 * and 32 bytes, a frame on a link 48 bytes more. Packets that were never used are address space only. */
#ifndef CW_SIMULATOR_H
#define CW_SIMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/dataplane.h"
#include "dataplane/fabric/link_config.h"
#include "dataplane/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    CW_SIMULATOR_NODES_MAX = 1 << 16,
    CW_SIMULATOR_BRIDGES_MAX = 8192,
    CW_SIMULATOR_RING_MAX = 1 << 16,
    CW_SIMULATOR_GROUPS_MAX = 1024, /* multicast addresses of one node */
};

#define CW_SIMULATOR_NEVER UINT64_MAX

struct cw_simulator;

enum cw_simulator_multicast {
    CW_SIMULATOR_SNOOPS = 0, /* to the nodes that have reported their membership; to all, if none has */
    CW_SIMULATOR_FLOODS = 1, /* to all */
    CW_SIMULATOR_DROPS = 2,  /* to none */
};

struct cw_simulator_config {
    uint64_t seed;
    uint32_t mtu_bytes; /* of every port, 576 to 64,000 */
    uint32_t node_count_max;
    uint32_t bridge_count_max;
    uint32_t packet_count_max;   /* buffers: frames on links, in rings and in the hands of nodes */
    uint32_t delivery_count_max; /* frames on links; a multicast frame counts once for each copy */
    uint32_t script_count_max;   /* cw_simulator_at not yet due */
    uint32_t group_count_max;    /* multicast groups a bridge can keep apart */
    uint64_t turn_ns;            /* virtual time a turn takes, >= 1 */
    bool learning;       /* bridges have to learn addresses and groups from frames; false: they know them at once */
    bool group_learning; /* bridges learn groups from reports, as switches that snoop do, but know the addresses */
    enum cw_simulator_multicast multicast; /* of learning bridges */
};

struct cw_simulator_node_config {
    struct cw_link_config up;      /* from the node to the bridge; its queue is the send queue, without a byte limit */
    struct cw_link_config down;    /* from the bridge to the node */
    uint32_t send_queue_packets;   /* posted to the port and not yet out; more is refused. A power of two */
    uint32_t receive_ring_packets; /* arrived and not yet received; more is dropped. A power of two */
    uint32_t group_count_max;      /* filters of the NIC */
    uint64_t processing_delay_ns;  /* from an arrival to the turn that sees it: interrupt, wake-up, poll interval */
    bool gather;                   /* the port sends payloads from registered regions without a copy */
    uint8_t mac[6];                /* zero: 02:00:00 and the node's number */
};

/* Called in each turn of a node. Returns the time of the next turn if no packet arrives before; CW_SIMULATOR_NEVER:
 * none. */
typedef uint64_t (*cw_simulator_turn)(void *context, uint64_t now_ns);

enum cw_simulator_tap_kind {
    CW_SIMULATOR_DEPARTURE, /* out of a node's port, lost later or not: time_ns, when its last bit leaves, lies ahead */
    CW_SIMULATOR_ARRIVAL,   /* into a node's receive ring: time_ns is now */
};

/* Sees frames as they pass; must not call back into the simulator, except for queries. */
typedef void (*cw_simulator_tap)(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                                 const uint8_t *frame, uint32_t length);

struct cw_simulator_counters {
    uint64_t packet_events; /* frames that came to the end of a link: at a bridge or at a node */
    uint64_t turns;
    uint64_t dropped_packets;    /* copies that were not made since packet_count_max buffers were out */
    uint64_t dropped_deliveries; /* frames dropped since delivery_count_max were in flight */
    uint64_t refused_reserve;    /* reserved buffers not given since packet_count_max were out */
    uint32_t packet_count;       /* buffers out */
    uint32_t packet_count_seen_max;
};

struct cw_simulator_node_counters {
    uint64_t sent;
    uint64_t sent_bytes;
    uint64_t received;
    uint64_t received_bytes;
    uint64_t refused;          /* send queue full */
    uint64_t dropped_filter;   /* not for this node's addresses */
    uint64_t dropped_overflow; /* receive ring full */
    uint64_t dropped_closed;   /* crashed, or no port open */
    uint64_t dropped_check;    /* by the frame's check sequence */
    uint64_t dropped_rule;     /* by a rule for packets of others */
    uint64_t upset;            /* with one bit changed on their way */
    uint64_t spoiled;          /* ... in memory */
    uint64_t doubts;           /* offloads that were put away */
    uint64_t turns;
};

/* ---- life ---- */

/* MTU 1500, 1024 nodes, 64 bridges, 65,536 packets, a million deliveries, 4,096 scripted events, 256 groups, turns of
 * 100 ns. */
void cw_simulator_config_init(struct cw_simulator_config *config);

/* 10 Gb/s Ethernet, 5 us each way, 256,000 bytes of queue, no faults, 256 packets to send, 1,024 to receive, 20 groups,
 * a processing delay of 500 ns, gather. */
void cw_simulator_node_config_init(struct cw_simulator_node_config *config);

/* The simulator is the caller's. CW_OK, CW_ERROR_ARGUMENT (a value of `config` is out of range), CW_ERROR_MEMORY. */
int cw_simulator_create(const struct cw_simulator_config *config, struct cw_simulator **simulator);

/* Ends all hosts; their endpoints and ports are invalid afterwards. Destroy multicast (mcast.h) on an endpoint before.
 * NULL is allowed. */
void cw_simulator_destroy(struct cw_simulator *simulator);

/* ---- topology: indices count up from 0, errors are negative. All before time has passed. ---- */

/* Adds a bridge with `port_count` ports. Its index, CW_ERROR_LIMIT, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY. */
int cw_simulator_bridge_add(struct cw_simulator *simulator, uint32_t port_count);

/* Adds a node on the next free port of a bridge. Its index, or CW_ERROR_LIMIT, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY. */
int cw_simulator_node_add(struct cw_simulator *simulator, uint32_t bridge,
                          const struct cw_simulator_node_config *config);

/* A trunk between the next free ports of two bridges, with `link` in either direction. Bridges joined by plain trunks
 * form a tree. Trunks with `mesh`, after all plain ones, join trees each with each, always from the same bridge of a
 * tree (split horizon keeps frames from circling). Returns the trunk's index, CW_ERROR_LIMIT, or CW_ERROR_ARGUMENT (a
 * loop, no such bridge, bad link). */
int cw_simulator_bridges_join(struct cw_simulator *simulator, uint32_t bridge_a, uint32_t bridge_b,
                              const struct cw_link_config *link, bool mesh);

/* The queues of a bridge's ports share a buffer of `bytes`; 0: no limit except their own. A frame that finds no room is
 * dropped. */
void cw_simulator_bridge_buffer(struct cw_simulator *simulator, uint32_t bridge, uint64_t bytes);

/* All multicast packets and reports of bridge_b leave it by this trunk too, as those of a switch do towards a querier.
 * If it snoops, packets of groups without a member here leave by nothing else. */
void cw_simulator_trunk_router(struct cw_simulator *simulator, uint32_t trunk);

/* One bridge with `node_count` equal nodes. Returns the index of the first node, or as the functions above. */
int cw_simulator_star(struct cw_simulator *simulator, uint32_t node_count,
                      const struct cw_simulator_node_config *config);

/* `switch_count` bridges, all joined to the first one by plain trunks; `node_count` equal nodes in blocks as equal as
 * can be, the first ones on the first bridge. Trunks are in the order (0,1), (0,2), .. Returns as above. */
int cw_simulator_switches(struct cw_simulator *simulator, uint32_t switch_count, uint32_t node_count,
                          const struct cw_simulator_node_config *config, const struct cw_link_config *trunk);

/* Calls `tap` for each frame from now on. NULL: none. */
void cw_simulator_tap_set(struct cw_simulator *simulator, cw_simulator_tap tap, void *context);

/* ---- hosts: an endpoint on a node ---- */

/* Fills in the defaults of cw_endpoint_config_init, with tables of a modest size, and a job key. Endpoints with this
 * configuration accept each other as peers; a network may have `host_count` of them. */
void cw_simulator_endpoint_config_init(struct cw_endpoint_config *config, uint32_t host_count);

/* Starts a process at a node: opens the port, and creates an endpoint on it. The node may have had processes before.
 * `config` is copied. If its IP address is zero, node N gets 10.0.0.1 + N; if its UDP port is zero, CW_UDP_PORT; if its
 * seed is zero, one derived from the simulator's.
 *
 * Each turn of the node turns the endpoint and then calls `turn`, which accepts events (cw_endpoint_events), and posts.
 * `turn` may be NULL: the caller then accepts the events between runs. `context` is passed to it.
 *
 * CW_OK, CW_ERROR_ARGUMENT (no such node), CW_ERROR_BUSY (a process runs there, or its port is open), or as
 * cw_endpoint_create, with one line in `error`. */
int cw_simulator_host_start(struct cw_simulator *simulator, uint32_t node, const struct cw_endpoint_config *config,
                            cw_simulator_turn turn, void *context, char *error, size_t error_bytes);

/* Ends the process of a node, which says goodbye to its peers. cw_simulator_crash ends it without. */
void cw_simulator_host_close(struct cw_simulator *simulator, uint32_t node);

/* The endpoint of a node, which stays the simulator's; NULL: no process runs there. */
struct cw_endpoint *cw_simulator_endpoint(const struct cw_simulator *simulator, uint32_t node);

/* Adds the endpoint of `to` as a peer of `from`, as cw_peer_add. CW_ERROR_CLOSED: one of them runs no process. */
int cw_simulator_peer(struct cw_simulator *simulator, uint32_t from, uint32_t to, uint32_t *peer);

/* Turns a node now. Required after calls on its endpoint outside of its own turns, so that posted operations leave. */
void cw_simulator_wake(struct cw_simulator *simulator, uint32_t node);

/* ---- time ---- */

/* Nanoseconds since the simulator was created. */
uint64_t cw_simulator_now(const struct cw_simulator *simulator);

/* Runs the next event: an arrival, a turn, or a callback. False: there is none, and time stands still. */
bool cw_simulator_step(struct cw_simulator *simulator);

/* The time of the next event, CW_SIMULATOR_NEVER: there is none. */
uint64_t cw_simulator_next(struct cw_simulator *simulator);

/* Runs all events up to and including `time_ns`, which is then the time. */
void cw_simulator_run_until(struct cw_simulator *simulator, uint64_t time_ns);

/* Runs until no event is left: all operations have ended, and no timer runs. The time is then that of the last event.
 * False: events are left that are later than `limit_ns`, which is then the time. */
bool cw_simulator_run(struct cw_simulator *simulator, uint64_t limit_ns);

/* Calls `callback` at `time_ns` (now, if that is past). CW_OK, CW_ERROR_LIMIT. */
int cw_simulator_at(struct cw_simulator *simulator, uint64_t time_ns, void (*callback)(void *context), void *context);

/* ---- faults; each at the time of the call, or at a later time ---- */

/* The links of a node, and of a trunk (direction 0: from bridge_a to bridge_b), for cw_link_configure. They stay the
 * simulator's. */
struct cw_link *cw_simulator_link_up(struct cw_simulator *simulator, uint32_t node);
struct cw_link *cw_simulator_link_down(struct cw_simulator *simulator, uint32_t node);
struct cw_link *cw_simulator_link_trunk(struct cw_simulator *simulator, uint32_t trunk, uint32_t direction);

/* Cuts a node off, or heals it: both its links. Its NIC reports that its link goes down, or comes up. */
void cw_simulator_partition(struct cw_simulator *simulator, uint32_t node, bool cut);

/* Cuts a node off from one time to another, or stops it. Periods of one node and kind must not overlap. CW_OK,
 * CW_ERROR_ARGUMENT (no such node, or the end is before the start), CW_ERROR_LIMIT (script_count_max). */
int cw_simulator_partition_at(struct cw_simulator *simulator, uint32_t node, uint64_t start_ns, uint64_t end_ns);
int cw_simulator_stop_at(struct cw_simulator *simulator, uint32_t node, uint64_t start_ns, uint64_t end_ns);

/* Heals all links: they are up, and lose, duplicate, corrupt and reorder nothing from now on. Nodes that are stopped
 * stay so. */
void cw_simulator_heal(struct cw_simulator *simulator);

/* A bridge forgets the groups that it has learnt from reports, as switches do that restart. */
void cw_simulator_groups_flush(struct cw_simulator *simulator, uint32_t bridge);

/* A stopped node is not turned, as after SIGSTOP. Packets fill its ring. */
void cw_simulator_stop(struct cw_simulator *simulator, uint32_t node);
void cw_simulator_resume(struct cw_simulator *simulator, uint32_t node);

/* Ends the process of a node without a goodbye; not within cw_endpoint_turn. Packets in its ring are dropped, and
 * later ones, too. Packets that the port had accepted still leave. cw_simulator_host_start starts another one. */
void cw_simulator_crash(struct cw_simulator *simulator, uint32_t node);

/* Sends any bytes to a node over its down link, as if its bridge did. CW_OK, CW_ERROR_ARGUMENT (empty, or above 14
 * + mtu_bytes), CW_ERROR_LIMIT (no buffer). */
int cw_simulator_inject(struct cw_simulator *simulator, uint32_t node, const uint8_t *frame, uint32_t length);

/* ---- queries ---- */

/* Digest of every frame that has come into a receive ring so far: time, node, length, bytes, in order. */
uint64_t cw_simulator_hash(const struct cw_simulator *simulator);

const struct cw_simulator_counters *cw_simulator_counters(const struct cw_simulator *simulator);
const struct cw_simulator_node_counters *cw_simulator_node_counters(const struct cw_simulator *simulator,
                                                                    uint32_t node);
uint32_t cw_simulator_node_count(const struct cw_simulator *simulator);

/* The node's address, as in its port's info. */
const uint8_t *cw_simulator_mac(const struct cw_simulator *simulator, uint32_t node);

/* Memory of one node, its rings included, frames not. */
size_t cw_simulator_node_bytes(const struct cw_simulator_node_config *config);

#ifdef __cplusplus
}
#endif
#endif
