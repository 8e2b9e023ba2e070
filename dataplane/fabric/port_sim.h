/* Port of a simulated node: port.h over the simulator.
 *
 * It behaves like a NIC with a bounded send queue, a bounded receive ring and a few multicast filters. Pieces are
 * copied behind their header when the packet is transmitted; memory they came from counts as busy until the packet is
 * out, as with a real NIC. It cannot be waited on: cw_port_sleep returns at once, cw_port_wake has the node turned.
 *
 * This is a node without an endpoint of its own (cw_simulator_host_start): its owner attaches a function `turn`, which
 * represents the loop of its process.
 *
 * Order of calls: cw_port_sim_nic; cw_port_sim_open; create what runs on the port; cw_simulator_attach; as in port.h.
 * Owner: the simulator's. */
#pragma once

#include "dataplane/fabric/link.h"
#include "dataplane/fabric/simulator.h"
#include "dataplane/port/port.h"

struct cw_bridge;

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

/* All zero: a NIC without offloads. */
struct cw_simulator_nic {
    uint8_t offloads[CW_PORT_OFFLOADS]; /* enum cw_simulator_offload */
    bool checks_frames;                 /* drops what its link has corrupted, by Ethernet's check sequence */
    double upsets;    /* share of frames that come in with one bit changed where no frame's check is: in a switch */
    double spoils;    /* ... in the memory of the receiver's host, behind all that its NIC verifies */
    uint64_t slow_ns; /* delay of a frame by each slow offload */
    uint32_t medium;  /* struct cw_port_info; KERNEL: UDP checksums are written, and wrong ones dropped */
};

/* CW_OK, CW_ERROR_ARGUMENT (no such node), CW_ERROR_BUSY (open already), CW_ERROR_CLOSED (the node has crashed). */
int cw_port_sim_open(struct cw_simulator *simulator, uint32_t node, struct cw_port **port);

/* Gives a node another NIC: before an endpoint is created on its port. */
void cw_port_sim_nic(struct cw_simulator *simulator, uint32_t node, const struct cw_simulator_nic *nic);

/* Sets the function that a node's turns call; NULL: none. It is turned at once. Replaces the turn of a host. */
void cw_simulator_attach(struct cw_simulator *simulator, uint32_t node, cw_simulator_turn turn, void *context);

/* A node that has crashed may be opened again. After cw_simulator_crash and before this call, its owner destroys what
 * ran there and closes the port. */
void cw_simulator_restart(struct cw_simulator *simulator, uint32_t node);

/* The port of a node, open or not. */
struct cw_port *cw_port_sim(struct cw_simulator *simulator, uint32_t node);

const struct cw_bridge *cw_simulator_bridge(const struct cw_simulator *simulator, uint32_t bridge);
