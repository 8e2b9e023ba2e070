/* Bridge: the forwarding decision of an Ethernet switch: the output ports of a frame.
 *
 * It reads a frame and returns a list of ports; the caller has the queues and links. The simulator and `causeway
 * switch` share it.
 *
 * Invariants
 *  - A frame never leaves by its input port.
 *  - No byte beyond the length of the frame is read. Malformed frames are counted, and dropped (a bad source address, a
 *    reserved address) or forwarded without further effect (bad IGMP).
 *  - All tables are allocated at the start. A full address table stops learning and floods; a full group table floods
 *    the groups it has no room for. Both are counted.
 *  - A known unicast address goes to one port, an unknown one and broadcast to all others.
 *  - Multicast: frames to a group with members (IGMPv1-v3 for IPv4, snooped as in RFC 4541, or static) go to the
 *    members and to the router ports. Frames to a group without members go to all ports, or to the router ports only
 *    (flood_unregistered false). Frames to 224.0.0.x and other protocols than IPv4 always go to all ports, except to
 *    static groups.
 *  - A member stays until it leaves, its port is removed, or, while there is a querier, it has not reported for
 *    group_age_ns. Without a querier reports are not repeated, so members do not age. A port has one host behind it, so
 *    a leave takes effect at once.
 *  - Reports of IGMPv1 and v2 go to router ports only, since a host that receives another's report suppresses its own.
 *    A leave of v2 goes there only if no other port here is a member: a switch behind the router port treats all
 *    members here as one host.
 *  - Mesh ports connect bridges of a full mesh: a frame from one mesh port leaves by no other (split horizon).
 *
 * Order of calls: cw_bridge_create, { cw_bridge_forward | ... }*, cw_bridge_destroy. Times must not go back. One owner.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/status.h"

enum {
    CW_BRIDGE_PORTS_MAX = 4096,
    CW_BRIDGE_ADDRESSES_MAX = 1 << 20,
    CW_BRIDGE_GROUPS_MAX = 1 << 16,
    CW_BRIDGE_FRAME_MIN_BYTES = 14,
};

struct cw_bridge_config {
    uint32_t port_count;        /* 1 .. CW_BRIDGE_PORTS_MAX */
    uint32_t address_count_max; /* 1 .. CW_BRIDGE_ADDRESSES_MAX */
    uint32_t group_count_max;   /* 1 .. CW_BRIDGE_GROUPS_MAX; each takes 10 bytes a port and some 40 more */
    uint64_t address_age_ns;    /* an address not seen for this time is removed; 0: never */
    uint64_t group_age_ns;      /* a member without a report for this time, while there is a querier, is removed */
    uint64_t querier_age_ns;    /* a querier silent for this time is removed, and its port is no router port any more */
    uint64_t hash_seed;         /* unpredictable, so that hostile hosts cannot fill one chain of the table */
    bool snooping;              /* IGMP is processed */
    bool flood_unregistered;    /* multicast to groups without members goes to all ports */
};

struct cw_bridge_counters {
    uint64_t forwarded;        /* frames with at least one port to go to */
    uint64_t flooded_unknown;  /* unicast to an unknown address */
    uint64_t flooded_group;    /* multicast to an unregistered group */
    uint64_t dropped_short;    /* shorter than an Ethernet header */
    uint64_t dropped_source;   /* source address is a multicast address or zero */
    uint64_t dropped_reserved; /* 01:80:c2:00:00:0x, which bridges do not forward */
    uint64_t dropped_home;     /* destination is behind the port it came from, or no other port has a member */
    uint64_t igmp_reports;
    uint64_t igmp_malformed; /* forwarded without further effect */
    uint64_t addresses_full; /* addresses not learnt: the table is full */
    uint64_t groups_full;    /* memberships not noted: the table is full */
    uint64_t addresses_moved;
};

struct cw_bridge;

/* 4,096 addresses, 1,024 groups, ages of 300 s, 260 s and 255 s, snooping and flooding; port_count stays 0 and must be
 * set. */
void cw_bridge_config_init(struct cw_bridge_config *config);

/* CW_OK, CW_ERROR_ARGUMENT (a field is out of range), CW_ERROR_MEMORY. */
int cw_bridge_create(const struct cw_bridge_config *config, struct cw_bridge **bridge);

/* NULL is allowed. */
void cw_bridge_destroy(struct cw_bridge *bridge);

/* Learns from the frame of port `port_in`, and writes its output ports to `ports` (room for
 * port_count). Returns their number, 0: the frame ends here. */
uint32_t cw_bridge_forward(struct cw_bridge *bridge, uint64_t now_ns, uint32_t port_in, const uint8_t *frame,
                           uint32_t length, uint16_t *ports);

/* Adds a static address: never ages, never moves. CW_OK, CW_ERROR_ARGUMENT (no unicast address, no such port),
 * CW_ERROR_LIMIT. */
int cw_bridge_address_set(struct cw_bridge *bridge, const uint8_t mac[6], uint32_t port);

/* Adds a port to a static group (never ages). CW_OK, CW_ERROR_ARGUMENT (not a multicast address, no such port),
 * CW_ERROR_LIMIT. */
int cw_bridge_group_join(struct cw_bridge *bridge, const uint8_t mac[6], uint32_t port);

/* Removes it again. CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_NOT_FOUND. */
int cw_bridge_group_leave(struct cw_bridge *bridge, const uint8_t mac[6], uint32_t port);

/* All multicast frames also go to this port; static, so it does not age. */
void cw_bridge_router_port_set(struct cw_bridge *bridge, uint32_t port, bool is_router);

/* Multicast to groups without members goes to all ports, or to router ports only. */
void cw_bridge_flood_unregistered_set(struct cw_bridge *bridge, bool floods);

void cw_bridge_mesh_port_set(struct cw_bridge *bridge, uint32_t port, bool is_mesh);

/* The port is down: removes its learnt addresses and groups. Static ones stay. */
void cw_bridge_port_flush(struct cw_bridge *bridge, uint32_t port);

/* Current addresses and groups, including old ones that are not removed yet. */
uint32_t cw_bridge_address_count(const struct cw_bridge *bridge);
uint32_t cw_bridge_group_count(const struct cw_bridge *bridge);

const struct cw_bridge_counters *cw_bridge_counters(const struct cw_bridge *bridge);
