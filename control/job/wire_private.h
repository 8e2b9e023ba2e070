/* The files of wire: job/wire.c the endpoint on the port, wire_port.c the port between emulated hosts, wire_socket.c
 * and wire_nic.c between others, wire_rdma.c the device of its queue pairs, wire_multicast.c its groups. */
#pragma once

#include <stdbool.h>

#include "control/job/wire.h"

/* CAUSEWAY_EMULATE, read. */
struct wire_emulation {
    uint32_t hosts;   /* 0: none */
    char socket[200]; /* of the switch or the simulator */
    uint32_t mtu_bytes;
    bool is_simulated;
    uint64_t rate_bps; /* of a simulated host's link */
};

/* The port on the network of a simulator, as wire_port_open. Joins the simulation. */
int wire_simulated_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                        size_t error_bytes);

/* Opens the rank's port and waits for its link; sets wire->port and wire->address. Undone by cw_wire_close also after
 * failures. */
int wire_port_open(uint32_t rank, const struct wire_emulation *emulation, struct cw_wire *wire, char *error,
                   size_t error_bytes);

/* Opens a device of DPDK and waits for its link, which `what` names in errors. NULL in *port: it is not open. */
struct cw_port_ethdev_config;
int wire_ethdev_open(const struct cw_port_ethdev_config *config, struct cw_port **port, const char *what, char *error,
                     size_t error_bytes);

/* The port of loop 0, 1, ... */
static inline struct cw_port **wire_port_of(struct cw_wire *wire, uint32_t loop)
{
    return loop == 0 ? &wire->port : &wire->further[loop - 1].port;
}

/* The same with sockets, of all loops. */
int wire_socket_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes);

/* The same by the host's dataplane. */
int wire_node_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes);

/* Has the endpoint answer for the address of a NIC of the rank's own. */
int wire_nic_own(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes);

/* Finds the RDMA device to attach, and attaches it to the first endpoint. CW_OK also if there is none, or it cannot be
 * used, unless CAUSEWAY_RDMA names it. */
int wire_rdma_find(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes);
int wire_rdma_attach(struct cw_wire *wire, const struct cw_endpoint_config *endpoint, char *error, size_t error_bytes);

/* Has the endpoint take part in groups, unless switched off; undone by cw_wire_close. */
int wire_multicast_open(const struct cw_wire_request *request, bool asks_itself, struct cw_wire *wire, char *error,
                        size_t error_bytes);
