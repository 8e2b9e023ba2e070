/* Inside of the ethdev port: the object, and the functions between its files.
 *
 *    ethdev.c         open and close
 *    ethdev_device.c  the device: found or plugged, configured, started, stopped
 *    ethdev_driver.c  needs of single drivers that they do not report
 *    ethdev_fanout.c  plugs af_packet, which may collide with other processes
 *    ethdev_burst.c   the hot path
 *    ethdev_queues.c  several queue pairs of a device: the owner of a packet
 *    ethdev_memory.c  registered memory, external pieces; mappings of the device: register/
 *    offload/         offloads of the NIC, and multicast filters
 *    ethdev_selection.c  the packets to accept of an interface of the kernel
 *    ethdev_wait.c    sleep and wake
 *    ethdev_gate.c    keeps memif's control thread and the owner apart */
#pragma once

#include "dataplane/port/doorbell.h"
#include "dataplane/port/error_text.h"
#include "dataplane/port/ethdev.h"
#include "dataplane/port/offload/hooks.h"
#include "dataplane/port/wake.h"
#include "dataplane/register/cache.h"
#include "dataplane/status.h"

#include <assert.h>
#include <net/if.h>
#include <pthread.h>
#include <stdatomic.h>

#include <rte_ethdev.h>
#include <rte_interrupts.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

enum {
    ETHDEV_FRAME_OVERHEAD = RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN, /* in front of the IP packet */
    ETHDEV_DESCRIPTORS_DEFAULT = 512,                          /* if the driver has no default */
    ETHDEV_POOL_CACHE = 256,                                   /* free buffers in the cache of a thread */
    ETHDEV_POOL_RESERVE =
        1024, /* buffers of the caller, its bursts and the caches of two threads, in addition to the rings */
};

/* Packets that may wait for the owner of another queue pair; more are dropped, as by a ring that is full. */
enum { ETHDEV_HANDED_MAX = 512 };

enum ethdev_multicast {
    ETHDEV_MULTICAST_UNDECIDED = 0, /* no group joined yet */
    ETHDEV_MULTICAST_BY_ADDRESS,
    ETHDEV_MULTICAST_BY_KERNEL, /* the kernel is the member: membership.h */
    ETHDEV_MULTICAST_ALL,
    ETHDEV_MULTICAST_PROMISCUOUS,
    ETHDEV_MULTICAST_UNFILTERED, /* the driver has no filter: all frames are delivered anyway */
};

struct ethdev_group {
    struct rte_ether_addr address;
    uint32_t members; /* joins minus leaves */
    int membership;   /* the kernel's, for BY_KERNEL */
};

/* Needs of a driver that it does not report. */
struct ethdev_driver {
    const char *name;          /* DPDK's; that of a virtual device without its final number */
    bool memory;               /* frames stay in the machine's memory up to the port of the other end */
    bool gated;                /* its callbacks must not run while the owner is in it: ethdev_gate.c */
    bool frame_limit_unset;    /* reports Ethernet's default as its largest frame, but its arguments set the limit */
    bool kernel_interface;     /* works on an interface of the kernel (iface=), and its MTU applies */
    bool packet_socket;        /* no interrupts, but an AF_PACKET socket for waiting */
    bool good_untold;          /* reports wrong UDP checksums, but not correct ones */
    bool copies_pieces;        /* unless gather is requested */
    bool interrupts_fail;      /* its receive interrupts are late, or missing */
    const char *slot_argument; /* the argument with the longest frame; NULL: none */
    const char *role_argument; /* the argument whose value client means that a server answers first; NULL: none */
    uint32_t slot_overhead_bytes;
    bool room_is_slot;        /* our buffers must be as long as its slots */
    const char *probe_remedy; /* what to check if it rejects the device */
    const char *start_remedy; /* … or does not start */
};

/* af_packet's ring of transmit. */
struct ethdev_ring {
    uint8_t *slots;      /* NULL: another driver, or the ring was not found */
    uint32_t slot_bytes; /* 0: not known */
    uint32_t slot_count;
    uint32_t next;           /* the slot that the driver fills next */
    uint32_t head;           /* the first that waited at the last check, */
    uint64_t waits_since_ns; /* since when; 0: none did */
};

struct ethdev_port {
    struct cw_port port;
    uint16_t id;
    uint16_t queue;                 /* its number among the pairs */
    uint16_t queue_count;           /* of the device */
    struct ethdev_port *first;      /* of queue pair 0, which has the device; itself with one pair */
    struct rte_ring *handed;        /* packets for it from other queues; NULL with one pair */
    struct rte_mempool *pool;       /* whole frames */
    struct rte_mempool *piece_pool; /* heads of external pieces; NULL without gather */
    struct cw_doorbell *bell;       /* NULL: none */
    uint32_t bell_peer;
    uint32_t stash_count; /* packets that sleep found and the next receive returns */
    uint32_t stash_first;
    struct rte_mbuf *stash[CW_PORT_BURST_MAX];
    uint64_t nap_ns; /* the next nap, of WAIT_TIMED */
    uint64_t dropped;

    int epoll_descriptor;  /* the driver's interrupt; -1: the driver has none */
    int packet_descriptor; /* the driver's AF_PACKET socket, for waiting; -1: none */
    struct ethdev_ring ring;
    bool interrupt_switched; /* the interrupt is off except during a wait */

    struct ethdev_driver driver;
    char device[RTE_ETH_NAME_MAX_LEN];
    bool plugged; /* by us: unplug it at close */
    bool started;
    bool needs_dma; /* pieces must be mapped for the device */
    uint64_t owner; /* ethdev's owner number, 0: none */
    struct cw_port_memory *memories;
    pthread_mutex_t cache_lock; /* of the first, like the next fields: any owner registers */
    bool has_cache;             /* needs_dma, and memory has been registered: */
    struct cw_cache cache;
    struct cw_mappings mappings;
    struct cw_memory_watch watch;
    char unwatched[CW_PORT_TEXT_BYTES]; /* why memory cannot be watched, so that none stays registered; "" */

    struct ethdev_offloads offloads;
    struct cw_port_selection selection; /* ip none: none */
    enum ethdev_multicast multicast;
    uint32_t group_count;
    struct ethdev_group groups[CW_PORT_ETHDEV_GROUPS_MAX];

    const _Atomic uint32_t *barred; /* not 0: keep out of the driver; see ethdev_gate.c */
    bool fences;
    uint32_t refusals; /* in a row, by the gate */
    struct ethdev_port *gate_next;

    struct ethdev_port *queues[CW_PORT_ETHDEV_QUEUES_MAX]; /* of the first: all of the device, including itself */

    /* Read or written by other threads: on separate lines. */
    _Alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t claimed; /* UDP ports: the lowest, and above bit 16 their number */
    _Atomic uint32_t open_count;                            /* of the first: queue pairs that are not closed */
    _Alignas(RTE_CACHE_LINE_SIZE) _Atomic uint32_t inside;  /* the owner is in the driver, or about to enter */
    struct cw_wake wake;                                    /* its descriptor -1 with a doorbell */
};

struct cw_port_memory {
    struct rte_mbuf_ext_shared_info shared; /* its count is 1 + the pieces that the driver has */
    uint8_t *base;
    size_t bytes;
    struct cw_cached *mapped; /* for the device, if needs_dma; else NULL */
    struct cw_port_memory *next;
};

static inline bool ethdev_link_is_up(const struct ethdev_port *port)
{
    struct rte_eth_link link;
    return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

static inline struct ethdev_port *ethdev_of(struct cw_port *port)
{
    return (struct ethdev_port *)port;
}

/* True if the device is the client of a server that may refuse it. */
bool ethdev_driver_dials(const struct ethdev_driver *driver, const char *arguments);
/* Connections of this process to the server that such a client's arguments name; UINT32_MAX: not known. */
uint32_t ethdev_driver_connections(const char *arguments);

/* ethdev_ring.c: finds the ring of a port whose packet_descriptor and ring.slot_bytes are known. */
void ethdev_ring_open(struct ethdev_port *port);
/* After a burst of which the driver accepted `sent`. Only with ring.slots. Owner. */
void ethdev_ring_turn(struct ethdev_port *port, uint32_t sent);

/* ethdev_driver.c */
void ethdev_driver_find(const char *device, struct ethdev_driver *driver);
void ethdev_driver_named(const char *name, struct ethdev_driver *driver); /* as DPDK calls it: "net_ixgbe" */
int ethdev_driver_check(const struct ethdev_driver *driver, const struct cw_port_ethdev_config *config, char *error,
                        size_t error_bytes);

/* The interface of the kernel that `arguments` name. False: none. */
bool ethdev_driver_interface(const char *arguments, char interface[IF_NAMESIZE]);

/* ethdev_fanout.c: plugs an af_packet device, for all process ids and interfaces of other processes; returns the
 * result of rte_eal_hotplug_add. */
int ethdev_fanout_plug(const char *device, const char *arguments);

uint32_t ethdev_driver_room(const struct ethdev_driver *driver, const char *arguments); /* bytes; 0: does not say */

/* ethdev_device.c: sets id, plugged, owner, needs_dma; pools; info. ethdev_device_close undoes completed steps only. */
int ethdev_device_open(struct ethdev_port *port, const struct cw_port_ethdev_config *config, char *error,
                       size_t error_bytes);
void ethdev_device_close(struct ethdev_port *port);
bool ethdev_is_pci(const char *device); /* "0000:03:00.0" or "03:00.0" */

/* ethdev_queues.c. make: further ports of the device, which is being opened with first->queue_count; begin, when it has
 * started: they are like the first, except their own fields; drain, before it is closed: frees all that they have of
 * it; dispose, after that: frees all of them except the first. sort: passes packets to their owners, and returns the
 * number of the buffers that are left, in order. take: packets that were passed to this one. */
int ethdev_queues_make(struct ethdev_port *first, const struct cw_port_ethdev_config *config, char *error,
                       size_t error_bytes);
int ethdev_queues_begin(struct ethdev_port *first, char *error, size_t error_bytes);
void ethdev_queues_drain(struct ethdev_port *first);
void ethdev_queues_dispose(struct ethdev_port *first);

/* ethdev_sort.c */
uint32_t ethdev_queues_sort(struct ethdev_port *port, struct rte_mbuf **buffers, uint32_t count);
uint32_t ethdev_queues_pop(struct ethdev_port *port, struct rte_mbuf **buffers, uint32_t count_max);
void ethdev_wake(struct cw_port *port);

/* ethdev_burst.c */
uint32_t ethdev_receive(struct cw_port *port, struct cw_received *packets, uint32_t count_max);
void ethdev_release(struct cw_port *port, struct cw_received *packets, uint32_t count);
uint32_t ethdev_reserve(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
uint32_t ethdev_transmit(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
void ethdev_cancel(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
enum ethdev_peek { ETHDEV_PEEK_NOTHING, ETHDEV_PEEK_PACKETS, ETHDEV_PEEK_BARRED };
enum ethdev_peek
ethdev_peek(struct ethdev_port *port); /* into the stash; barred: it could not be looked, though the link is up */

/* ethdev_memory.c */
int ethdev_memory_register(struct cw_port *base, void *address, size_t bytes, struct cw_port_memory **memory);
int ethdev_memory_unregister(struct cw_port *base, struct cw_port_memory *memory);
void ethdev_memory_clear(struct ethdev_port *port); /* all of them, at close */

/* Bytes 4 * index to 4 * index + 3 of an address as a number, as programs of the kernel compare it. */
static inline uint32_t ethdev_ip_word(const struct cw_ip *ip, uint32_t index)
{
    const uint8_t *at = ip->bytes + 4 * index;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* ethdev_selection.c: has the kernel give the port what it is to take, and no more; after ethdev_wait_open. */
int ethdev_selection_apply(struct ethdev_port *port, char *error, size_t error_bytes);

/* offload/multicast.c */
void ethdev_filter_close(struct ethdev_port *port);
int ethdev_join(struct cw_port *port, const uint8_t mac[6]);
int ethdev_leave(struct cw_port *port, const uint8_t mac[6]);

/* ethdev_gate.c. Each call into the driver's bursts is `if (ethdev_gate_enter(port)) { ...; ethdev_gate_leave(port);
 * }`, else ethdev_gate_barred. hold: returns with the interrupt thread out of the driver, until let_go; for stop, close
 * and remove, which is called in between. */
void ethdev_gate_init(struct ethdev_port *port); /* no gate */
int ethdev_gate_add(struct ethdev_port *port, char *error, size_t error_bytes);
void ethdev_gate_remove(struct ethdev_port *port);
void ethdev_gate_hold(const struct ethdev_port *port);
void ethdev_gate_let_go(const struct ethdev_port *port);
bool ethdev_gate_barred(struct ethdev_port *port); /* true if the link is up: try again soon */
bool ethdev_link_up(struct cw_port *port);

static inline bool ethdev_gate_enter(struct ethdev_port *port)
{
    atomic_store_explicit(&port->inside, 1, memory_order_relaxed);
    if (unlikely(port->fences)) {
        atomic_thread_fence(memory_order_seq_cst);
    } else {
        atomic_signal_fence(memory_order_seq_cst); /* pairs with membarrier in gate_open */
    }
    /* Acquire pairs with the release in gate_callback. */
    return likely(atomic_load_explicit(port->barred, memory_order_acquire) == 0);
}

static inline void ethdev_gate_leave(struct ethdev_port *port)
{
    atomic_store_explicit(&port->inside, 0, memory_order_release);
}

/* ethdev_wait.c: chooses info.wait and opens what it needs; ethdev_wait_close undoes it. */
enum { ETHDEV_NAP_MIN_NS = 50000, ETHDEV_NAP_MAX_NS = 3000000 };
int ethdev_wait_open(struct ethdev_port *port, char *error, size_t error_bytes);
void ethdev_wait_close(struct ethdev_port *port);
/* The doorbell of the queue pair, if the device has one. */
int ethdev_bell_open(struct ethdev_port *port, const struct cw_port_ethdev_config *config, char *error,
                     size_t error_bytes);
void ethdev_sleep(struct cw_port *port, uint64_t timeout_ns);
int ethdev_descriptor(struct cw_port *port);
bool ethdev_arm(struct cw_port *port);
void ethdev_disarm(struct cw_port *port);
