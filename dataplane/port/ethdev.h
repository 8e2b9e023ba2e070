/* Ethdev port: any DPDK ethdev as a port: physical NICs and the virtual devices memif, af_packet, tap, pcap, ring.
 *
 * Invariants
 *  - A port is one queue pair. Each queue pair of a device is a separate port, with its own owner. If the NIC has put a
 *    packet into the wrong queue, its port passes it on, by the UDP ports that their endpoints claim (cw_port_claim).
 *  - Every received packet is one contiguous buffer, for every driver.
 *  - External pieces (gather) are passed to the driver without a copy; the port counts those that the driver still
 *    uses.
 *  - If a driver lacks a function (multicast filters, interrupts, gather, its own MTU), the port replaces it or reports
 *    it in struct cw_port_info.
 *  - A driver's arguments are the user's; those derived from the MTU are added if the user gave none
 *    (cw_port_ethdev_arguments shows the result).
 *
 * Order of calls
 *    cw_port_ethdev_open { cw_port_ethdev_queue }*, then each as in port.h; with the last cw_port_close the device is
 *    closed. The first open of a process starts EAL (eal.h).
 *
 * memif, the packet rings between two processes of a host, by device_arguments:
 *    server   "role=server,id=0,socket=/run/x.sock,socket-abstract=no"
 *             opened first; its link is up when a client has connected
 *    client   "role=client,id=0,socket=/run/x.sock,socket-abstract=no"
 *             open waits for the server's answer, at most a second
 * A link that is lost later, since the other process has ended, stays down (cw_port_link_up): close the port and open
 * it again. The doorbells of two such ports are the words 0 and 1 of one file; at a `causeway switch`, port I has word
 * 1 + I and rings word 0. */
#pragma once

#include "dataplane/ip.h"
#include "dataplane/port/eal.h"
#include "dataplane/port/offload/offload.h"
#include "dataplane/port/port.h"

enum {
    CW_PORT_ETHDEV_ARGUMENTS_BYTES = 512,
    CW_PORT_ETHDEV_GROUPS_MAX = 128, /* multicast addresses joined at a time */
    CW_PORT_ETHDEV_QUEUES_MAX = 8,
};

enum cw_port_gather {
    CW_PORT_GATHER_AUTO = 0, /* if the driver supports it, and is not known to do it badly */
    CW_PORT_GATHER_OFF = 1,
    CW_PORT_GATHER_ON = 2, /* open fails if the driver cannot */
};

/* The packets of a port on an interface of the kernel; the host keeps using the interface. They are packets to one
 * address at some UDP ports, and to multicast groups at one port, of the address's IP version: IPv4 without options, or
 * IPv6 without extension headers. af_packet gets copies of these only. The kernel keeps memberships in groups
 * (membership.h). */
struct cw_port_selection {
    struct cw_ip ip; /* own address; none: no selection */
    uint16_t udp_port;
    uint16_t udp_port_count;
    uint16_t group_port;
};

struct cw_port_ethdev_config {
    /* A virtual device named after its driver ("net_memif0"), a PCI address, or a device that the EAL arguments have
     * created. */
    const char *device;
    const char *device_arguments; /* the driver's own: "role=server,socket=/run/x"; NULL: none */
    const uint8_t *mac;           /* of the port, if a PCI device has several; NULL: its first */
    uint32_t mtu_bytes;           /* CW_PORT_MTU_MIN to CW_PORT_MTU_ETHERNET_MAX; memif: CW_PORT_MTU_MAX */
    uint64_t rate_bps;            /* nominal link rate; 0: not known */
    /* Queue pairs, at most the device's number; 0: one. Both ends of a memif need the same number: a server with more
     * than its client reads invalid rings. */
    uint32_t queue_count;
    uint32_t descriptor_count; /* of each of the two rings; 0: the driver's default */
    uint32_t pool_packets;     /* buffers; 0: the need of the rings, the caches and the bursts */
    enum cw_port_gather gather;
    const char *doorbell_path;          /* NULL: none; see doorbell.h */
    uint32_t doorbell_own;              /* the word of this port's sleep; that of queue pair I is 2 * I after it */
    uint32_t doorbell_peer;             /* the word that is rung after each transmit; as above */
    struct cw_port_selection selection; /* af_packet; with others CW_ERROR_ARGUMENT */
    /* bits by enum cw_port_offload: those requested of the NIC (offload/offload.h); with several queue pairs always
     * CW_OFFLOAD_STEER */
    uint32_t offloads;
    /* For experiments: called with DPDK's number of the device when it is configured, with its queues, and before it is
     * started: the last moment for much of DPDK's ethdev and flow API. 0; a negative errno rejects the device. NULL:
     * no call. The page of offload/ has an example. */
    int (*before_start)(uint16_t device_id, void *context);
    void *before_start_context;
    struct cw_eal_config eal;
};

/* Fills in the defaults: MTU 1500, offloads that are safe on all devices, all other fields as for 0, EAL's core the
 * caller's. The caller must set the device. */
static inline void cw_port_ethdev_config_init(struct cw_port_ethdev_config *config)
{
    *config =
        (struct cw_port_ethdev_config){.mtu_bytes = 1500, .offloads = CW_OFFLOADS_AUTO, .eal.core = CW_EAL_CORE_CALLER};
}

/* Opens the device and starts it. Nothing of `config` is kept. CW_OK, or with one line in `error`: CW_ERROR_ARGUMENT
 * (MTU, device, driver's or EAL's arguments), CW_ERROR_NOT_FOUND (no such device, driver, interface or memif server, no
 * huge pages), CW_ERROR_PERMISSION, CW_ERROR_UNSUPPORTED (the driver cannot do the MTU, or gather; DPDK cannot be
 * loaded: dpdk.h), CW_ERROR_BUSY (the device is in use, EAL runs with other settings), CW_ERROR_MEMORY,
 * CW_ERROR_SYSTEM. One thread at a time. */
int cw_port_ethdev_open(const struct cw_port_ethdev_config *config, struct cw_port **port, char *error,
                        size_t error_bytes);

/* The port of queue pair `index` of the device that `first`, from cw_port_ethdev_open, has opened: `first` for 0; NULL:
 * no such pair. The caller must close all of them. The first joins groups. Any thread. */
struct cw_port *cw_port_ethdev_queue(struct cw_port *first, uint32_t index);

/* The arguments that the driver of config->device will get; starts nothing.
 * CW_OK; CW_ERROR_ARGUMENT (too long); CW_ERROR_UNSUPPORTED (DPDK cannot be loaded). */
int cw_port_ethdev_arguments(const struct cw_port_ethdev_config *config, char *arguments, size_t arguments_bytes);

/* Accepts all frames, if the driver has a filter. CW_OK; CW_ERROR_SYSTEM. Owner. */
int cw_port_ethdev_promiscuous(struct cw_port *port);

/* The filter of frames to multicast addresses, as text: "by address", "all multicast", "everything", … Owner. */
const char *cw_port_ethdev_multicast(const struct cw_port *port);

/* Received packets that had to be dropped: longer than the MTU, or no buffer was left to make them contiguous.
 * Owner. */
uint64_t cw_port_ethdev_dropped(const struct cw_port *port);

/* The offloads of the NIC, indexed by their numbers. Owner. */
void cw_port_ethdev_offloads(const struct cw_port *port, struct cw_offload_report reports[CW_PORT_OFFLOADS]);

/* Turns an offload that was requested at the open off, or on again, for comparisons. CW_OK; CW_ERROR_UNSUPPORTED (the
 * NIC does not have it, or it was not requested); CW_ERROR_SYSTEM. Owner; an endpoint on the port learns of it only by
 * info. */
int cw_port_ethdev_offload_switch(struct cw_port *port, enum cw_port_offload offload, bool on);

/* The number of the device in DPDK, for tests of its driver. */
uint16_t cw_port_ethdev_id(const struct cw_port *port);
