/* ports: which UDP ports of the host's address are leased, and whose they are.
 *
 * Invariants
 *  - A port has one lease. Those that were leased when the node ended are kept for their users for NODE_HOLD_NS: they
 *    come back for them (a file beside the socket says which those are).
 *
 * Order of calls: node_ports_begin { node_ports_take, node_ports_give, node_ports_record }*. Thread: one. */
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
    uint16_t next[NODE_CORES_MAX]; /* that is tried first: those that others had last come last again */
    uint64_t held_until_ns;
    struct node_lines lines; /* about the record */
    uint8_t states[NODE_PORTS];
    uid_t users[NODE_PORTS]; /* of those that are leased or held */
};

/* `ports` is zeroed; `path`: of the socket; `cores`: how many share them. */
void node_ports_begin(struct node_ports *ports, const struct node_nic *nic, uint16_t first, uint16_t last,
                      uint32_t cores, const char *path);
/* Of `span` ports, so many are a core's. */
static inline uint32_t node_ports_each(uint32_t span, uint32_t cores)
{
    return (span + cores - 1) / cores;
}

/* Whose a port is. */
static inline uint32_t node_ports_core(const struct node_ports *ports, uint32_t port)
{
    return (port - ports->first) / ports->each;
}

/* So many ports side by side of one core, from `wanted` on, which the user had before; 0: any of `core`. Where the address is the kernel's,
 * its sockets keep off them. The first one; 0: there are none. */
uint16_t node_ports_take(struct node_ports *ports, uid_t user, uint16_t wanted, uint32_t count, uint32_t core,
                         struct cw_reservation *reservation);
void node_ports_give(struct node_ports *ports, uint16_t first, uint32_t count, struct cw_reservation *reservation);

/* Writes down which are leased, for a node that is started again. */
void node_ports_record(struct node_ports *ports);
