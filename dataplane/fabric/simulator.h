/* Simulator: hosts, bridges and links in virtual time, from one seed.
 *
 * A node is a host with one port (struct cw_port, dataplane/fabric/port_sim.h) and a function `turn` that stands for
 * the loop of its process. Nodes hang on bridges by a pair of links (up and down); bridges are joined by trunks. A
 * frame goes from a port over the node's up link into its bridge, over the down link of each node it is for (this
 * link's queue is the bridge's output queue) and into the receive ring of the port, whose node is then turned.
 *
 * Invariants
 *  - The same configuration, seed and calls give the same run bit for bit: same times, same bytes, same order.
 *    cw_simulator_hash is a digest of it. Two events at the same time happen in the order in which they were caused.
 *  - Time never goes back, and passes only in cw_simulator_run_until and cw_simulator_step. A node's turns are at least
 *    turn_ns apart, so that time passes whatever `turn` answers.
 *  - A node is turned once a packet has arrived (after its processing delay), once its deadline is due, once half of a
 *    send queue that refused a packet has left, after cw_port_wake, and when it is resumed. Never while it is stopped
 *    or crashed.
 *  - Everything is bounded; what is full drops and counts, or, a send queue, refuses.
 *  - No clock, no I/O, no globals; any number of simulators in one process, each with one owner.
 *
 * Order of calls
 *    cw_simulator_config_init, cw_simulator_create
 *    cw_simulator_star | cw_simulator_switches |
 *        { cw_simulator_bridge_add | cw_simulator_node_add | cw_simulator_bridges_join }*
 *    for each node: cw_port_sim_open, create what runs on it, cw_simulator_attach
 *    { cw_simulator_run_until | cw_simulator_step | faults | queries }*
 *    for each node: destroy what runs on it, cw_port_close
 *    cw_simulator_destroy
 *
 * Memory: a node takes cw_simulator_node_bytes (11.1 KiB with the defaults, nearly all of it rings), a packet its frame
 * and 32 bytes, a frame on a link 48 bytes more. Packets that were never used are address space only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/fabric/link.h"
#include "dataplane/port/port.h"
#include "dataplane/status.h"

enum {
    CW_SIMULATOR_NODES_MAX = 1 << 16,
    CW_SIMULATOR_BRIDGES_MAX = 8192,
    CW_SIMULATOR_RING_MAX = 1 << 16,
    CW_SIMULATOR_GROUPS_MAX = 1024, /* multicast addresses of one node */
};

#define CW_SIMULATOR_NEVER UINT64_MAX

struct cw_simulator;
struct cw_bridge;

enum cw_simulator_multicast {
    CW_SIMULATOR_SNOOPS = 0, /* to those that have reported their membership; to all, if nobody has */
    CW_SIMULATOR_FLOODS = 1,
    CW_SIMULATOR_DROPS = 2,
};

struct cw_simulator_config {
    uint64_t seed;
    uint32_t mtu_bytes; /* of every port, CW_PORT_MTU_MIN .. CW_PORT_MTU_MAX */
    uint32_t node_count_max;
    uint32_t bridge_count_max;
    uint32_t packet_count_max;   /* buffers: frames on links, in rings and in the hands of nodes */
    uint32_t delivery_count_max; /* frames on links; a multicast frame counts once for each copy */
    uint32_t script_count_max;   /* cw_simulator_at not yet due */
    uint32_t group_count_max;    /* multicast groups a bridge can keep apart */
    uint64_t turn_ns;            /* virtual time a turn takes, >= 1 */
    bool learning;       /* bridges have to learn addresses and groups from frames; false: they know them at once */
    bool group_learning; /* bridges learn groups from reports, as switches that snoop do, but know the addresses */
    enum cw_simulator_multicast multicast; /* what learning bridges do with multicast */
};

/* How a NIC does what it offers to take over. */
enum cw_simulator_offload {
    CW_SIMULATOR_OFFLOAD_ABSENT = 0,
    CW_SIMULATOR_OFFLOAD_HONEST,
    CW_SIMULATOR_OFFLOAD_SLOW,
    /* Of checksums: calls wrong ones right, or writes wrong ones now and then; of rules: they take other packets, too,
     * and let those of others pass; of arrivals: they jump; of departures: frames leave too soon or too late. */
    CW_SIMULATOR_OFFLOAD_LYING,
    CW_SIMULATOR_OFFLOAD_LYING_LATER, /* as HONEST until the link goes down for the first time, then as LYING */
    CW_SIMULATOR_OFFLOAD_MUTE,        /* of checksums: says that it verifies them, and of no packet whether it has */
};

/* What is zero is a NIC that takes nothing over. */
struct cw_simulator_nic {
    uint8_t offloads[CW_PORT_OFFLOADS]; /* enum cw_simulator_offload */
    bool checks_frames;                 /* drops what its link has corrupted, by Ethernet's check sequence */
    double upsets;    /* share of frames that come in with one bit changed where no frame's check is: in a switch */
    double spoils;    /* ... in the memory of the receiver's host, behind all that its NIC verifies */
    uint64_t slow_ns; /* what each slow offload takes of a frame's time */
    uint32_t medium;  /* struct cw_port_info; KERNEL: UDP checksums are written, and what does not fit is dropped */
};

struct cw_simulator_node_config {
    struct cw_link_config
        up; /* from the node to the bridge; its queue limit is not used: the send queue stands for it */
    struct cw_link_config down;    /* from the bridge to the node */
    uint32_t send_queue_packets;   /* handed to the port and not yet out; more is refused. A power of two */
    uint32_t receive_ring_packets; /* arrived and not yet taken; more is dropped. A power of two */
    uint32_t group_count_max;      /* filters of the NIC */
    uint64_t processing_delay_ns;  /* from an arrival to the turn that sees it: interrupt, wake-up, poll interval */
    bool gather;                   /* the port takes external pieces */
    struct cw_simulator_nic nic;
    uint8_t mac[6]; /* zero: 02:00:00 and the node's number */
};

/* Returns the node's next deadline in virtual time, CW_SIMULATOR_NEVER: none. */
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
    uint64_t dropped_deliveries; /* frames dropped since delivery_count_max were under way */
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

/* CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY. */
int cw_simulator_create(const struct cw_simulator_config *config, struct cw_simulator **simulator);

/* Ports are gone with it. NULL is allowed. */
void cw_simulator_destroy(struct cw_simulator *simulator);

/* ---- topology: indices count up from 0, errors are negative. All before time has passed. ---- */

/* A bridge with so many ports. Its index, CW_ERROR_LIMIT, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY. */
int cw_simulator_bridge_add(struct cw_simulator *simulator, uint32_t port_count);

/* A node on the next free port of a bridge. Its index, or CW_ERROR_LIMIT, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY. */
int cw_simulator_node_add(struct cw_simulator *simulator, uint32_t bridge,
                          const struct cw_simulator_node_config *config);

/* A trunk between the next free ports of two bridges, with `link` in either direction. Bridges joined by plain trunks
 * form a tree. Trunks with `mesh`, after all plain ones, join trees each with each, always from the same bridge of a
 * tree (split horizon keeps frames from circling). Returns the trunk's index, CW_ERROR_LIMIT, or CW_ERROR_ARGUMENT (a
 * loop, no such bridge, bad link). */
int cw_simulator_bridges_join(struct cw_simulator *simulator, uint32_t bridge_a, uint32_t bridge_b,
                              const struct cw_link_config *link, bool mesh);

/* The queues of a bridge's ports share a buffer of so many bytes; 0: no limit but their own. What finds no room is dropped
 * by the link that it is for (dropped_queue). */
void cw_simulator_bridge_buffer(struct cw_simulator *simulator, uint32_t bridge, uint64_t bytes);

/* All multicast packets and reports of bridge_b leave it by this trunk too, as those of a switch do towards a querier. If
 * it snoops, packets of groups without a member here leave by nothing else. */
void cw_simulator_trunk_router(struct cw_simulator *simulator, uint32_t trunk);

/* One bridge with `node_count` equal nodes. Returns the index of the first node, or as the functions above. */
int cw_simulator_star(struct cw_simulator *simulator, uint32_t node_count,
                      const struct cw_simulator_node_config *config);

/* `switch_count` bridges, all joined to the first one by plain trunks; `node_count` equal nodes in blocks as equal as
 * can be, the first ones on the first bridge. Trunks are in the order (0,1), (0,2), .. Returns as above. */
int cw_simulator_switches(struct cw_simulator *simulator, uint32_t switch_count, uint32_t node_count,
                          const struct cw_simulator_node_config *config, const struct cw_link_config *trunk);

/* What runs on a node; NULL: nothing. It is turned at once. */
void cw_simulator_attach(struct cw_simulator *simulator, uint32_t node, cw_simulator_turn turn, void *context);

/* NULL: none. */
void cw_simulator_tap_set(struct cw_simulator *simulator, cw_simulator_tap tap, void *context);

/* ---- time ---- */

uint64_t cw_simulator_now(const struct cw_simulator *simulator);

/* The next event; false: there is none, and time stands still. */
bool cw_simulator_step(struct cw_simulator *simulator);

/* The time of the next event, CW_SIMULATOR_NEVER: there is none. */
uint64_t cw_simulator_next(struct cw_simulator *simulator);

/* All events up to and including `time_ns`, which is then the time. */
void cw_simulator_run_until(struct cw_simulator *simulator, uint64_t time_ns);

/* Calls `callback` at `time_ns` (now, if that is past). CW_OK, CW_ERROR_LIMIT. */
int cw_simulator_at(struct cw_simulator *simulator, uint64_t time_ns, void (*callback)(void *context), void *context);

/* ---- faults; each at the time it is called ---- */

/* The links of a node, of a trunk (direction 0: from bridge_a to bridge_b): to be reconfigured, taken down, queried. */
struct cw_link *cw_simulator_link_up(struct cw_simulator *simulator, uint32_t node);
struct cw_link *cw_simulator_link_down(struct cw_simulator *simulator, uint32_t node);
struct cw_link *cw_simulator_link_trunk(struct cw_simulator *simulator, uint32_t trunk, uint32_t direction);

/* Cuts a node off, or heals it: both its links. Its NIC sees its link go down, or come up. */
void cw_simulator_partition(struct cw_simulator *simulator, uint32_t node, bool cut);

/* A bridge forgets the groups that it has learnt from reports, as switches do that restart. */
void cw_simulator_groups_forget(struct cw_simulator *simulator, uint32_t bridge);

/* Stopped: not turned, packets fill its ring. */
void cw_simulator_stop(struct cw_simulator *simulator, uint32_t node);
void cw_simulator_resume(struct cw_simulator *simulator, uint32_t node);

/* Crashed: detached, what is in the ring or arrives is dropped, and what its port is given is swallowed; what the port
 * had taken before still leaves. The owner destroys what ran there and closes the port. Before a restart is seen by
 * anyone it opens the port again and attaches. */
void cw_simulator_crash(struct cw_simulator *simulator, uint32_t node);
void cw_simulator_restart(struct cw_simulator *simulator, uint32_t node);

/* Sends any bytes towards a node over its down link, as if its bridge did. CW_OK, CW_ERROR_ARGUMENT (empty, or above 14
 * + mtu_bytes), CW_ERROR_LIMIT (no buffer). */
int cw_simulator_inject(struct cw_simulator *simulator, uint32_t node, const uint8_t *frame, uint32_t length);

/* ---- queries ---- */

/* Digest of every frame that has come into a receive ring so far: time, node, length, bytes, in order. */
uint64_t cw_simulator_hash(const struct cw_simulator *simulator);

const struct cw_simulator_counters *cw_simulator_counters(const struct cw_simulator *simulator);
const struct cw_simulator_node_counters *cw_simulator_node_counters(const struct cw_simulator *simulator,
                                                                    uint32_t node);
const struct cw_bridge *cw_simulator_bridge(const struct cw_simulator *simulator, uint32_t bridge);
uint32_t cw_simulator_node_count(const struct cw_simulator *simulator);

/* The node's address, as in its port's info. */
const uint8_t *cw_simulator_mac(const struct cw_simulator *simulator, uint32_t node);

/* Memory of one node, its rings included, frames not. */
size_t cw_simulator_node_bytes(const struct cw_simulator_node_config *config);
