/* Ethdev port: any DPDK ethdev as a port: physical NICs and the virtual devices memif, af_packet, tap, pcap, ring.
 *
 * Invariants
 *  - A port is one queue pair. Of a device with several each is a port, with an owner of its own; a packet that the NIC
 *    has put into the queue of another is handed to it, by the UDP ports that their endpoints claim (cw_port_claim).
 *  - Every received packet is one contiguous buffer, whatever the driver delivered.
 *  - External pieces (gather) are handed to the driver where they lie; the port keeps count of those it still holds.
 *  - What a driver cannot do (multicast filters, interrupts, gather, its own MTU) is made up for here or said in struct
 *    cw_port_info.
 *  - A driver's arguments are the user's; those that follow from the MTU are added where the user gave none
 *    (cw_port_ethdev_arguments shows the result).
 *
 * Order of calls
 *    cw_port_ethdev_open { cw_port_ethdev_queue }*, then each as in port.h; with the last cw_port_close the device is
 *    closed. The first open of a process starts EAL (eal.h).
 *
 * memif, the packet rings between two processes of a host, by device_arguments:
 *    server   "role=server,id=0,socket=/run/x.sock,socket-abstract=no"
 *             opened first; its link is up once a client is there
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
    CW_PORT_GATHER_AUTO = 0, /* if the driver can, and is not known to do it badly */
    CW_PORT_GATHER_OFF = 1,
    CW_PORT_GATHER_ON = 2, /* open fails if the driver cannot */
};

/* What a port on an interface of the kernel takes, beside which the host goes on as before: packets to one address at
 * some UDP ports, and to multicast groups at one port, all of the kind of that address: IPv4 without options, or IPv6
 * without extension headers. af_packet gets copies of these and no others.
 * Memberships in groups are the kernel's (membership.h). */
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
    const uint8_t *mac;           /* of the port that is meant, where a PCI device may have several; NULL: its first */
    uint32_t mtu_bytes;           /* CW_PORT_MTU_MIN to CW_PORT_MTU_ETHERNET_MAX; memif: CW_PORT_MTU_MAX */
    uint64_t rate_bps;            /* nominal link rate; 0: not known */
    /* Queue pairs, as many as the device has, at most; 0: one. Both ends of a memif have the same: a server that has
     * more than its client reads rings that are none. */
    uint32_t queue_count;
    uint32_t descriptor_count; /* of each of the two rings; 0: the driver's default */
    uint32_t pool_packets;     /* buffers; 0: what the rings, the caches and the bursts need */
    enum cw_port_gather gather;
    const char *doorbell_path;          /* NULL: none; see doorbell.h */
    uint32_t doorbell_own;              /* the word this port sleeps on; that of queue pair I is 2 * I behind it */
    uint32_t doorbell_peer;             /* the word that is rung after each transmit; as well */
    struct cw_port_selection selection; /* af_packet; with others CW_ERROR_ARGUMENT */
    /* bits by enum cw_port_offload: those that the NIC is asked for (offload/offload.h); with several queue pairs
     * CW_OFFLOAD_STEER in any case */
    uint32_t offloads;
    /* For experiments: called with DPDK's number of the device when it is configured, with its queues, and before it is
     * started: the last moment for much of DPDK's ethdev and flow API. 0; a negative errno refuses the device. NULL:
     * nobody asks. The page of offload/ has an example. */
    int (*before_start)(uint16_t device_id, void *context);
    void *before_start_context;
    struct cw_eal_config eal;
};

/* Fills in the defaults: MTU 1500, offloads that are safe wherever they are, everything else as 0 above, EAL's core the
 * caller's. The device is the caller's to set. */
static inline void cw_port_ethdev_config_init(struct cw_port_ethdev_config *config)
{
    *config =
        (struct cw_port_ethdev_config){.mtu_bytes = 1500, .offloads = CW_OFFLOADS_AUTO, .eal.core = CW_EAL_CORE_CALLER};
}

/* Opens the device and starts it. Nothing of `config` is kept. CW_OK, or with one line in `error`: CW_ERROR_ARGUMENT
 * (MTU, device, driver's or EAL's arguments), CW_ERROR_NOT_FOUND (no such device, driver, interface or memif server, no
 * huge pages), CW_ERROR_PERMISSION, CW_ERROR_UNSUPPORTED (the driver cannot do the MTU, or gather; DPDK cannot be
 * loaded: dpdk.h), CW_ERROR_BUSY (the device is in use, EAL runs with other settings), CW_ERROR_MEMORY,
 * CW_ERROR_SYSTEM. Not from two threads at a time. */
int cw_port_ethdev_open(const struct cw_port_ethdev_config *config, struct cw_port **port, char *error,
                        size_t error_bytes);

/* The port of queue pair `index` of the device that `first`, from cw_port_ethdev_open, has opened: `first` for 0; NULL:
 * there are not as many. All of them are the caller's to close. Groups are joined by the first. Any thread. */
struct cw_port *cw_port_ethdev_queue(struct cw_port *first, uint32_t index);

/* The arguments that the driver of config->device will get; starts nothing.
 * CW_OK; CW_ERROR_ARGUMENT (too long); CW_ERROR_UNSUPPORTED (DPDK cannot be loaded). */
int cw_port_ethdev_arguments(const struct cw_port_ethdev_config *config, char *arguments, size_t arguments_bytes);

/* Lets all frames in, as far as the driver has a filter at all. CW_OK; CW_ERROR_SYSTEM. Owner. */
int cw_port_ethdev_promiscuous(struct cw_port *port);

/* How frames to multicast addresses get in, for people: "by address", "all multicast", "everything", … Owner. */
const char *cw_port_ethdev_multicast(const struct cw_port *port);

/* Received packets that had to be dropped: longer than the MTU, or no buffer was left to make them contiguous.
 * Owner. */
uint64_t cw_port_ethdev_dropped(const struct cw_port *port);

/* What the NIC takes over, each offload in its place. Owner. */
void cw_port_ethdev_offloads(const struct cw_port *port, struct cw_offload_report reports[CW_PORT_OFFLOADS]);

/* Turns an offload that was asked for at the open off, or on again, for those who compare. CW_OK; CW_ERROR_UNSUPPORTED
 * (the NIC has it not, or was not asked); CW_ERROR_SYSTEM. Owner; an endpoint on the port learns of it by info
 * alone. */
int cw_port_ethdev_offload_switch(struct cw_port *port, enum cw_port_offload offload, bool on);

/* The number of the device in DPDK, for tests of its driver. */
uint16_t cw_port_ethdev_id(const struct cw_port *port);
