/* NIC sim: the work of a simulated node's NIC for its process, with or without faults. Private to the simulator's
 * files; the configuration is struct cw_simulator_nic (port_sim.h).
 *
 * Invariant: a node whose NIC has no offloads draws no random number and does nothing here: worlds stay as they are. */
#pragma once

#include "dataplane/fabric/simulator_state.h"

void sim_nic_init(struct sim_node *node, uint64_t seed);
/* It is another one from now on. */
void sim_nic_set(struct sim_node *node, const struct cw_simulator_nic *nic);

/* The link of the node goes down or comes up. */
void sim_nic_flap(struct sim_node *node);

/* Whether a frame that has arrived is for the process: the frame's own check, and the rules. */
bool sim_nic_accepts(struct sim_node *node, const struct sim_packet *packet);

/* In addition to the node's processing delay. */
uint64_t sim_nic_delay_ns(const struct sim_node *node);

/* The NIC's report about a frame that the process receives; no other reference to `packet` exists. False: a kernel
 * drops it. */
bool sim_nic_receive(struct sim_node *node, struct sim_packet *packet, struct cw_received *received);

/* A whole frame leaves; returns the time at which it does. */
uint64_t sim_nic_transmit(struct sim_node *node, const struct cw_transmit *transmit, struct sim_packet *packet);

/* As struct cw_port_ops has them. */
void sim_nic_doubt(struct cw_port *port, enum cw_port_offload offload);
void sim_nic_claim(struct cw_port *port, const struct cw_port_claim *claim);
