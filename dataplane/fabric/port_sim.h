/* Port of a simulated node: port.h over the simulator.
 *
 * It behaves like a NIC with a bounded send queue, a bounded receive ring and a few multicast filters. Pieces are
 * copied behind their header when the packet is transmitted; memory they came from counts as busy until the packet is
 * out, as with a real NIC. It cannot be waited on: cw_port_sleep returns at once, cw_port_wake has the node turned.
 *
 * Order of calls: as in port.h; cw_port_sim_open instead of another open. Owner: the simulator's. */
#pragma once

#include "dataplane/fabric/simulator.h"
#include "dataplane/port/port.h"

/* CW_OK, CW_ERROR_ARGUMENT (no such node), CW_ERROR_BUSY (open already), CW_ERROR_CLOSED (the node has crashed). */
int cw_port_sim_open(struct cw_simulator *simulator, uint32_t node, struct cw_port **port);

/* Gives a node another NIC: before an endpoint is created on its port. */
void cw_port_sim_nic(struct cw_simulator *simulator, uint32_t node, const struct cw_simulator_nic *nic);
