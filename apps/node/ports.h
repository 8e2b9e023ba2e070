/* ports: the leased UDP ports of the host's address, and their users.
 *
 * Invariants
 *  - A port has one lease. Ports that were leased when the node ended are kept for their users for NODE_HOLD_NS: the
 *    users request them again (a file next to the socket lists them).
 *
 * Order of calls: node_ports_begin { node_ports_acquire, node_ports_release, node_ports_record }*. Thread: one. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "apps/node/handoff.h"
#include "apps/node/lines.h"
#include "apps/node/nic.h"
#include "control/net/reservation.h"

#define NODE_HOLD_NS 10000000000ull

enum { NODE_PATH_BYTES = 108, NODE_PORTS = 65536 };

struct node_ports {
    const struct node_nic *nic;
    char record_path[NODE_PATH_BYTES + 16];
    uint16_t first, last;
    uint32_t each;                 /* of them, to a core (dataplane.h) */
    uint16_t next[NODE_CORES_MAX]; /* tried first: ports that others had last come last again */
    uint64_t held_until_ns;
    struct node_lines lines; /* about the record */
    uint8_t states[NODE_PORTS];
    uid_t users[NODE_PORTS]; /* of ports that are leased or held */
};

/* `ports` is zeroed; `path`: of the socket; `cores`: how many share them. */
void node_ports_begin(struct node_ports *ports, const struct node_nic *nic, uint16_t first, uint16_t last,
                      uint32_t cores, const char *path);
/* The ports of a core, of `span` ports. */
static inline uint32_t node_ports_each(uint32_t span, uint32_t cores)
{
    return (span + cores - 1) / cores;
}

/* The core of a port. */
static inline uint32_t node_ports_core(const struct node_ports *ports, uint32_t port)
{
    return (port - ports->first) / ports->each;
}

/* `count` ports of one core in sequence, from `wanted` on, which the user had before; 0: any of `core`. If the address
 * is also the kernel's, its sockets avoid them. Returns the first one; 0: there are none. */
uint16_t node_ports_acquire(struct node_ports *ports, uid_t user, uint16_t wanted, uint32_t count, uint32_t core,
                            struct cw_reservation *reservation);
void node_ports_release(struct node_ports *ports, uint16_t first, uint32_t count, struct cw_reservation *reservation);

/* Writes down which are leased, for a node that is started again. */
void node_ports_record(struct node_ports *ports);
