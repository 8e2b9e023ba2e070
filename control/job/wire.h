/* wire: the transport of this process to other hosts, opened: a port, an endpoint on it and its loop; with several
 * dataplane threads as many of each, side by side (dataplane/loop/loop_set.h).
 *
 * Between hosts the port is a socket of the kernel, at the address that all have agreed on (control/net/net.h), and at
 * a UDP port that is free, or one of CAUSEWAY_PORTS; or a NIC of the rank's own (control/net/device.h), whose address
 * and UDP ports are its own, too; or the host's dataplane, which leases UDP ports (control/lease/lease.h).
 *
 * CAUSEWAY_EAL: options of DPDK's EAL, separated by blanks, for such a NIC. CAUSEWAY_TELEMETRY "on": DPDK serves its
 * telemetry, for dpdk-telemetry; default "off".
 *
 * Between emulated hosts: CAUSEWAY_EMULATE, made by `causeway run --emulate`, says that the ranks of the job are on so
 * many emulated hosts, in equal blocks, and how they reach each other:
 *    "4,memif,/path/of/socket"   through a `causeway switch` with a memif port per rank
 * The key that all ranks share: job/key.h.
 *
 * CAUSEWAY_TOPOLOGY, made by `causeway run --emulate topology=FILE,memif`, is the whole name of the file
 * (topology/topology.h); the hosts are its hosts then, in order.
 *
 * CAUSEWAY_MULTICAST "off": no groups of this process. CAUSEWAY_MULTICAST_FILTERS: multicast addresses that a port may
 * let in at a time; default 20.
 *
 * CAUSEWAY_COMPRESSION: "auto" (the default): compress if that shortens delivery; "off"; "on": compress if the result
 * is shorter; or a codec's name: use only that codec (dataplane/codec/codec.h).
 *
 * CAUSEWAY_FAILURE_TIMEOUT: see settings.h. CAUSEWAY_RDMA: control/net/rdma.h.
 *
 * Thread: open and close one at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/job/dedicate.h"
#include "control/net/device.h"
#include "control/net/net.h"
#include "control/net/transport.h"
#include "dataplane/dataplane.h"
#include "dataplane/loop/loop_set.h"
#include "dataplane/neighbour/neighbour.h"
#include "dataplane/port/eal.h"
#include "dataplane/verbs/device.h"
#include "mcast/mcast.h"

enum { CW_EMULATED_RANKS_MAX = 63 }; /* ports of one switch: words of its doorbell file */

/* How the network between emulated hosts handles multicast: a switch that delivers to members (the default), one that
 * floods, one that drops it. */
enum cw_wire_multicast { CW_WIRE_SNOOP = 0, CW_WIRE_FLOOD = 1, CW_WIRE_DROP = 2 };

/* An additional loop, which its dataplane thread turns all the time. Groups belong to the first loop. */
struct cw_wire_further {
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    struct cw_loop *loop;
};

struct cw_wire {
    struct cw_port *port;
    struct cw_endpoint *endpoint;
    struct cw_loop *loop;
    struct cw_wire_further further[CW_LOOP_SET_MAX - 1];
    uint32_t further_count;
    char undivided[96]; /* why it has fewer loops than dataplane threads were found; "": it has as many */
    bool has_rdma;      /* the endpoint also has an RDMA device, by */
    struct cw_verbs_port rdma;
    bool rdma_is_named;                      /* by CAUSEWAY_RDMA: there is no doing without it */
    char without_rdma[CW_VERBS_ERROR_BYTES]; /* why it has none though one was found; "": none was */
    uint32_t message_bytes_max;
    bool is_socket;              /* the port is sockets of the kernel */
    bool messages_registered;    /* as in struct cw_paths_config */
    uint64_t failure_timeout_ns; /* of the endpoint */
    struct cw_address address;
    struct cw_lease *lease;                /* of the transport NODE */
    struct cw_neighbour_cache *neighbours; /* of an address of the rank's own; NULL: the kernel has it */
    struct cw_mcast *mcast;                /* NULL: CAUSEWAY_MULTICAST is "off" */
    uint32_t multicast_base;               /* the first multicast address of the job (groups/groups.h) */
    uint32_t filter_budget;
    uint64_t seed; /* random */
};

/* The emulated host of a rank, from 0; -1: CAUSEWAY_EMULATE is not set. CW_OK, or CW_ERROR_ARGUMENT with a line in
 * `error`. */
int cw_wire_host(uint32_t rank, uint32_t size, int *host, char *error, size_t error_bytes);

/* Whether the ranks run on a simulated network, in virtual time (`causeway run --simulate`). */
bool cw_wire_is_simulated(void);

struct cw_wire_request {
    uint32_t rank;
    uint32_t size;
    uint64_t bound_ns;                                /* how long a silent peer is waited for; 0: forever */
    bool (*is_excused)(void *context, uint32_t peer); /* as struct cw_endpoint_config has it */
    void *excuse_context;
    const uint8_t *key;               /* of the job; NULL: there is none */
    const struct cw_net_address *own; /* that others use; NULL: hosts are emulated */
    enum cw_net_transport transport;  /* with `own`: not NONE */
    const char *interface;            /* that has the address */
    const struct cw_device
        *device;           /* of the transport DEVICE; its address none: the link-local one of its MAC address */
    uint32_t device_ranks; /* ranks of this host that have one each */
    const char *node;      /* of the transport NODE: the socket of the host's dataplane; NULL: the usual one */
    const char *job;       /* its name, for users */
    bool has_devices;      /* some rank of the job has another transport than sockets */
    bool may_have_rdma;    /* ... or may have an RDMA device */
    const struct cw_mcast_handler *multicast;
    bool no_groups; /* multicast would not reach all ranks of this host */
    /* Cores of dataplane threads: one stands by at the first loop (cw_loop_stand_in), further ones have a loop each. */
    const struct cw_dedicated *dedicated;
    bool may_seal; /* sessions may come to be sealed; to be able to costs some 40 ms of a core and 15 MiB (EAL) */
};

/* Its loops. */
struct cw_loop_set cw_wire_set(const struct cw_wire *wire);

/* Opens it. CW_OK, or errors of opening a port, an endpoint and a loop, with a line in `error`. */
int cw_wire_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes);
/* Has its endpoints compress what CAUSEWAY_COMPRESSION says; `crowding`: processes that share a core here. CW_OK;
 * CW_ERROR_ARGUMENT, CW_ERROR_MEMORY with a line in `error`. */
int cw_wire_compress(struct cw_wire *wire, uint32_t crowding, char *error, size_t error_bytes);
/* Sends a goodbye to all peers, and closes it except the lease of its UDP ports: packets that still arrive there are
 * dropped. A zeroed one is allowed. */
void cw_wire_quiet(struct cw_wire *wire);

/* The configuration of a NIC of the process's own, except its MTU; `nic` keeps the data that the configuration points
 * into, and `device` must outlive both. `device_ranks`: processes of this host that have one each. Errors of
 * cw_device_check, and CW_ERROR_ARGUMENT: CAUSEWAY_EAL, CAUSEWAY_TELEMETRY. */
struct cw_port_ethdev_config;
enum { CW_WIRE_EAL_BYTES = 1024 };
struct cw_wire_nic {
    struct cw_device_access access;
    char arguments[CW_DEVICE_ARGUMENTS_BYTES + 32];
    char eal_text[CW_WIRE_EAL_BYTES];
    const char *eal_words[CW_EAL_ARGUMENTS_MAX];
};
int cw_wire_nic_config(const struct cw_device *device, uint32_t device_ranks, struct cw_wire_nic *nic,
                       struct cw_port_ethdev_config *config, char *error, size_t error_bytes);

/* The port by a NIC of the process's own, and its address, into `wire`; of the request it takes own, interface, device
 * and device_ranks. Errors as cw_wire_open. */
int cw_wire_nic_open(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes);
/* Admits requests for that address. CW_OK, or errors of cw_port_join, with a line in `error`. */
int cw_wire_nic_listen(const struct cw_wire_request *request, struct cw_wire *wire, char *error, size_t error_bytes);
/* The cache that answers for it; NULL: no memory. */
struct cw_neighbour_cache *cw_wire_nic_neighbours(const struct cw_wire_request *request, const struct cw_wire *wire);
/* Whether this process may have an RDMA device at one of the addresses, before it is known which of them is chosen.
 * CW_OK, or CW_ERROR_ARGUMENT: CAUSEWAY_RDMA. */
int cw_wire_rdma_may(const struct cw_net_offer *offer, bool *may, char *error, size_t error_bytes);
/* The kind of queue pairs, or the reason why there are none, as text; "": there is no RDMA device. */
void cw_wire_rdma_write(const struct cw_wire *wire, char *text, size_t text_bytes);
/* Whether this process's environment can have its sessions sealed: CAUSEWAY_ENCRYPT, or clusters. */
bool cw_wire_may_seal(void);
/* Closes all of it. A zeroed one, and one that is quiet, is allowed. */
void cw_wire_close(struct cw_wire *wire);
