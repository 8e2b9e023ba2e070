/* The files of the simulator: simulator.c (life, time), simulator_topology.c (connections), simulator_hosts.c
 * (endpoints on nodes), simulator_traffic.c (frames in flight), port_sim.c (the port), nic_sim.c (offloads of its NIC).
 * Private to them.
 *
 * Invariants
 *  - A packet has as many references as places hold it: deliveries in the heap, receive rings, the caller of a port. It
 *    is not written to once it has been transmitted: copies of it may be anywhere.
 *  - Links keep the order, so of the deliveries on a wire only the first one must be in the heap; one that is reordered
 *    to before the last one has an entry of its own. The size of the heap is the number of busy links.
 *  - A node is in `timers` exactly if it has a time for its next turn. */
#pragma once

#include "dataplane/fabric/bridge.h"
#include "dataplane/fabric/heap.h"
#include "dataplane/fabric/port_sim.h"
#include "dataplane/fabric/simulator.h"

struct sim_packet {
    struct sim_packet *next; /* free list */
    uint64_t hash;           /* of the frame, once `hashed` */
    uint32_t references;
    uint32_t length;
    bool hashed;
    bool corrupt;                                 /* by a link */
    uint8_t frame[] __attribute__((aligned(32))); /* its headers share a cache line with the fields above */
};

/* A packet on its way over a wire. */
struct sim_delivery {
    struct sim_packet *packet;
    struct sim_wire *wire;
    struct sim_delivery *next; /* on the same wire, later; or free list */
    uint64_t arrival_ns;
    uint64_t sequence;
    bool in_line; /* among wire->first .. wire->last; reordered ones are not */
};

struct sim_node;

/* A link and where it ends. */
struct sim_wire {
    struct cw_link link;
    struct sim_node *node; /* NULL: at a bridge */
    uint32_t bridge;
    uint32_t bridge_port;
    struct sim_delivery *first; /* in progress, by time of arrival; only the first one is in the heap */
    struct sim_delivery *last;
};

struct sim_bridge {
    struct cw_bridge *bridge;
    struct sim_wire **wires; /* [port_count]: out of each port */
    int32_t *peers;          /* [port_count]: the bridge at the other end, -1: a node */
    uint32_t port_count;
    uint32_t port_used;
    uint64_t buffer_bytes; /* of all queues together; 0: no limit */
    bool gateway;          /* has mesh trunks */
    uint32_t tree;         /* bridges joined by plain trunks have the same */
};

struct sim_trunk {
    struct sim_wire wires[2];
};

enum sim_node_state { SIM_NODE_RUNNING, SIM_NODE_STOPPED, SIM_NODE_CRASHED };

struct cw_port_memory {
    struct cw_port_memory *next;
    const uint8_t *base;
    size_t bytes;
    uint64_t busy_until_ns; /* the last packet with a piece of it is out */
};

struct sim_nic {
    struct cw_simulator_nic config;
    struct cw_random random;
    struct cw_port_claim claim;
    uint8_t states[CW_PORT_OFFLOADS]; /* enum cw_simulator_offload */
    bool is_plain;                    /* nothing of it does anything */
};

struct sim_node {
    struct cw_port port; /* first: port_sim.c casts */
    struct cw_simulator *simulator;
    uint32_t index;
    uint32_t bridge;
    enum sim_node_state state;
    bool open;
    struct cw_simulator_node_config config;
    struct sim_wire up;
    struct sim_wire down;

    cw_simulator_turn turn;
    void *turn_context;
    uint64_t turn_earliest_ns;
    uint32_t timer_position; /* in simulator.timers */

    struct cw_endpoint *endpoint; /* of a host; NULL: it runs no process */
    cw_simulator_turn host_turn;  /* after the endpoint's; NULL: none */
    void *host_context;
    uint32_t lives; /* processes that were started here */

    struct sim_packet **ring; /* arrived and not taken */
    uint32_t ring_head, ring_tail;
    uint64_t *departures; /* when the packets in the send queue are out */
    uint32_t departure_head, departure_tail;
    uint64_t *groups;      /* multicast filters */
    uint32_t *group_joins; /* how often each was joined */
    uint32_t group_count;
    struct cw_port_memory *memories;
    struct sim_nic nic;
    struct cw_simulator_node_counters counters;
};

struct sim_script {
    void (*callback)(void *context);
    void *context;
    struct sim_script *next;
};

struct cw_simulator {
    struct cw_simulator_config config;
    uint64_t now_ns;
    uint64_t sequence;
    uint64_t hash;
    struct cw_heap deliveries; /* object: delivery */
    struct cw_heap timers;     /* object: node; tracked */
    struct cw_heap scripted;   /* object: script */
    struct sim_script *scripts;
    struct sim_script *script_free;

    struct sim_delivery *delivery_records;
    struct sim_delivery *delivery_free;
    uint32_t delivery_fresh; /* records from here on were never used */
    uint8_t *packets;
    struct sim_packet *packet_free;
    size_t packet_bytes;
    uint32_t packet_fresh; /* packets from here on were never used */

    struct sim_node *nodes;
    uint32_t node_count;
    struct sim_bridge *bridges;
    uint32_t bridge_count;
    struct sim_trunk *trunks; /* [trunk_count_max] */
    uint32_t trunk_count;
    uint32_t trunk_count_max;
    bool has_mesh;
    uint16_t *ports; /* scratch for cw_bridge_forward */

    cw_simulator_tap tap;
    void *tap_context;
    struct cw_simulator_counters counters;
};

/* simulator.c */

/* Has the node turned at `time_ns`, or earlier if that was planned already. */
void sim_node_wake(struct sim_node *node, uint64_t time_ns);
/* Not to be turned any more. */
void sim_node_rest(struct sim_node *node);

/* simulator_hosts.c */

/* The process of a host ends; its port takes its goodbyes, if the node has not crashed. */
void sim_host_end(struct sim_node *node);

/* simulator_traffic.c */

/* A packet with one reference, NULL: all are out. */
struct sim_packet *sim_packet_acquire(struct cw_simulator *simulator);
void sim_packet_drop(struct cw_simulator *simulator, struct sim_packet *packet);
/* Hashes the frame, once, however many get it; best when it has just been written and lies in the cache. */
void sim_packet_digest(struct sim_packet *packet);
/* Offers the packet to the wire's link at a time, now or later; the caller keeps its own reference. Returns when the
 * link has it behind itself. */
uint64_t sim_wire_send(struct cw_simulator *simulator, struct sim_wire *wire, struct sim_packet *packet,
                       uint64_t time_ns);
/* The next delivery, the first one of the heap, is due. */
void sim_delivery_run(struct cw_simulator *simulator);
void sim_node_ring_clear(struct sim_node *node);

/* simulator_topology.c */

void sim_node_dispose(struct sim_node *node);
/* The node has joined or left a group: bridges with a full view are notified. */
void sim_group_joined(struct sim_node *node, const uint8_t mac[6]);
void sim_group_left(struct sim_node *node, const uint8_t mac[6]);

/* port_sim.c */

void sim_port_init(struct sim_node *node);
uint64_t sim_mac_key(const uint8_t mac[6]);
/* The NIC's filter: the node's own address, broadcast, the groups it has joined. */
bool sim_port_accepts(const struct sim_node *node, const struct sim_packet *packet);
