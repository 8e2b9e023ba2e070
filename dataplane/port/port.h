/* Port: the entry and exit of an endpoint's packets.
 *
 * Invariants
 *  - A port has one owner at a time: the thread that turns its endpoint. Only cw_port_wake may be called from
 *    another thread.
 *  - A buffer belongs to exactly one side: received buffers to the caller until cw_port_release; reserved buffers to
 *    the caller until cw_port_transmit accepts them or cw_port_cancel returns them.
 *  - No code above the port knows the driver below it; struct cw_port_info has the differences.
 *
 * Order of calls
 *    open (cw_port_ethdev_open, cw_port_sim_open)
 *    { cw_port_receive .. cw_port_release | cw_port_reserve .. cw_port_transmit .. cw_port_cancel | cw_port_sleep }*
 *    cw_port_close
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/ip.h"
#include "dataplane/port/words.h"

enum {
    CW_PORT_BURST_MAX = 64,          /* packets in one burst */
    CW_PORT_PIECES_MAX = 4,          /* external pieces behind one header */
    CW_PORT_TEXT_BYTES = 256,        /* room for a one-line description or error, with its final 0 */
    CW_PORT_MTU_MAX = 64000,         /* largest IP packet a port carries, in memory: DPDK's buffers have 65,535 bytes */
    CW_PORT_MTU_ETHERNET_MAX = 9600, /* ... in Ethernet's jumbo frames */
    CW_PORT_MTU_MIN = 576,
};

struct cw_cache_counters;

/* How an idle thread waits for this port's packets. Set-up reports it to peers, since it bounds the delay of
 * answers. */
enum cw_port_wait {
    CW_PORT_WAIT_NONE = 0,       /* cannot be waited on: virtual time */
    CW_PORT_WAIT_DESCRIPTOR = 1, /* the driver's receive interrupt, or its socket */
    CW_PORT_WAIT_DOORBELL = 2,   /* a futex word in memory shared with the sender, next to the port */
    CW_PORT_WAIT_TIMED = 3,      /* a timed poll: short naps that lengthen while nothing arrives */
};

/* A port's verdict on the UDP checksum of a received packet. */
enum cw_port_checksum {
    CW_PORT_CHECKSUM_UNKNOWN = 0, /* not verified */
    CW_PORT_CHECKSUM_GOOD = 1,
    CW_PORT_CHECKSUM_BAD = 2,
};

enum cw_port_medium {
    CW_PORT_MEDIUM_NONE = 0,   /* unknown */
    CW_PORT_MEDIUM_KERNEL = 1, /* the kernels of both ends write and verify UDP checksums */
};

/* The work that a NIC may do instead of the core. */
enum cw_port_offload {
    CW_OFFLOAD_CHECKSUM_OUT, /* the port writes UDP checksums */
    CW_OFFLOAD_CHECKSUM_IN,  /* ... verifies them */
    CW_OFFLOAD_STEER,        /* packets to other processes do not reach the queue */
    CW_OFFLOAD_RSS,          /* a hash distributes flows among queues */
    CW_OFFLOAD_ARRIVAL,      /* packets carry the time of their arrival */
    CW_OFFLOAD_DEPARTURE,    /* packets leave at a given time */
    CW_OFFLOAD_MULTICAST,    /* groups are filtered by address */
    CW_OFFLOAD_SPLIT,        /* headers and payloads arrive in separate buffers */
    CW_PORT_OFFLOADS,
};

struct cw_port_info {
    uint8_t mac[6];
    uint32_t mtu_bytes; /* largest IP packet */
    uint64_t rate_bps;  /* nominal link rate, bits per second; 0: not known */
    bool gather;        /* external pieces are transmitted without a copy by the core */
    enum cw_port_wait wait;
    bool writes_checksums;       /* of UDP, itself */
    bool alarms;                 /* an alarm also ends its sleep */
    bool checksum_out;           /* it writes the UDP checksum of packets that request it, and keeps that of others */
    bool checksum_in;            /* it verifies the UDP checksum of received packets */
    bool steers;                 /* only packets that the endpoint claims arrive */
    bool arrivals;               /* it has the time of arrival of packets */
    uint64_t departure_ahead_ns; /* packets may be handed over this long before they must leave; 0: not at all */
    uint32_t link_changes;       /* times that the link went down or came up, as far as the port has noticed */
    uint64_t refused; /* packets that the device or the kernel rejected (too long, a filter), and that are lost */
    uint32_t medium;  /* the protection of payloads between ports with the same number: enum cw_port_medium, or the
                         number of the machine that has the memory (base/machine.h) */
    bool reports;     /* the kernel reports joins to switches and routers (IGMP, MLD), and answers queries */
    char driver[32];  /* the driver's name, for messages */
    /* Counts of registrations of the pieces' memory with a device, and of those found in the cache
     * (register/cache.h); the port owns them. NULL: it needs none, or had none. */
    const struct cw_cache_counters *registrations;
    const char *unwatched; /* with `registrations`: the reason why none is kept; "": they are kept */
};

/* A received packet: one contiguous buffer that starts at the Ethernet header. Only the receiver reads it, and it
 * may write into it, to open a sealed packet in place. */
struct cw_received {
    const uint8_t *data;
    uint32_t length;
    uint8_t checksum;    /* enum cw_port_checksum */
    void *handle;        /* the port's own buffer */
    uint64_t arrival_ns; /* by the clock of the owner; only with info.arrivals, and 0 if the port does not report it */
};

/* Memory registered with the port (cw_port_memory_register); opaque to the core. */
struct cw_port_memory;

struct cw_piece {
    const void *data;
    uint32_t length;
    struct cw_port_memory *memory; /* that contains `data` */
};

/* A packet to transmit: `length` bytes at `data`, from the Ethernet header on, followed by the external pieces, if
 * any. */
struct cw_transmit {
    uint8_t *data;   /* set by reserve; room for a whole frame (14 + mtu_bytes) */
    uint32_t length; /* set by the caller: bytes written at `data` */
    uint16_t piece_count;
    bool checksum; /* the port writes the UDP checksum, which is 0 so far; only with info.checksum_out */
    bool alone;    /* a retransmission: it is sent outside of batches, since a network may drop only batches */
    struct cw_piece
        pieces[CW_PORT_PIECES_MAX]; /* only if info.gather; their memory stays valid until it is unregistered */
    void *handle;
    /* The time of departure, by the clock of the owner; 0: at once. It is read only within
     * info.departure_ahead_ns. */
    uint64_t departure_ns;
};

/* The packets that an endpoint accepts: to its address at some UDP ports, and to multicast groups at one port. */
struct cw_port_claim {
    struct cw_ip ip;
    uint16_t udp_port;
    uint16_t udp_port_count;
    uint16_t group_port; /* 0: groups use the own ports */
};

struct cw_port;

struct cw_port_ops {
    uint32_t (*receive)(struct cw_port *port, struct cw_received *packets, uint32_t count_max);
    void (*release)(struct cw_port *port, struct cw_received *packets, uint32_t count);
    uint32_t (*reserve)(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
    uint32_t (*transmit)(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
    void (*cancel)(struct cw_port *port, struct cw_transmit *packets, uint32_t count);
    int (*join)(struct cw_port *port, const uint8_t mac[6]);
    int (*leave)(struct cw_port *port, const uint8_t mac[6]);
    int (*memory_register)(struct cw_port *port, void *base, size_t bytes, struct cw_port_memory **memory);
    int (*memory_unregister)(struct cw_port *port, struct cw_port_memory *memory);
    bool (*link_up)(struct cw_port *port);
    void (*sleep)(struct cw_port *port, uint64_t timeout_ns);
    void (*wake)(struct cw_port *port);
    void (*close)(struct cw_port *port);
    void (*claim)(struct cw_port *port, const struct cw_port_claim *claim); /* NULL: it filters nothing */
    void (*doubt)(struct cw_port *port, enum cw_port_offload offload);      /* NULL: it has no offloads */
    int (*descriptor)(struct cw_port *port);                                /* NULL, with the next two: none */
    bool (*arm)(struct cw_port *port);
    void (*disarm)(struct cw_port *port);
};

/* Implementations put this first in their own structure. */
/* An alarm ends a sleep, in addition to packets and cw_port_wake: a word that changes, and a descriptor that is
 * readable by then. */
struct cw_port_alarm {
    struct cw_word word;
    int descriptor; /* a pipe, which the port reads empty; -1: none. Needed if a port waits for descriptors */
    int companion;  /* set by cw_port_sleep_alarm; 0 or less: none */
};

struct cw_port {
    const struct cw_port_ops *ops;
    struct cw_port_info info;
    const struct cw_port_alarm *alarm; /* of the current sleep; NULL: none */
    int companion; /* a descriptor that also ends sleeps when it is readable; it is not read; 0 or less: none */
};

/* Takes up to `count_max` (<= CW_PORT_BURST_MAX) packets that have arrived; returns their number. Never blocks. */
static inline uint32_t cw_port_receive(struct cw_port *port, struct cw_received *packets, uint32_t count_max)
{
    return port->ops->receive(port, packets, count_max);
}

/* Returns received buffers; they must not be read afterwards. */
static inline void cw_port_release(struct cw_port *port, struct cw_received *packets, uint32_t count)
{
    port->ops->release(port, packets, count);
}

/* Gets up to `count` (<= CW_PORT_BURST_MAX) empty buffers for frames; returns their number, fewer when the pool is
 * low. Sets data and handle, and zeroes all other fields except the pieces. */
static inline uint32_t cw_port_reserve(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    return port->ops->reserve(port, packets, count);
}

/* Passes written packets to the driver, in order; returns the number that it accepted (the first ones). The caller
 * keeps the rest. */
static inline uint32_t cw_port_transmit(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    return port->ops->transmit(port, packets, count);
}

/* Returns reserved buffers unsent. */
static inline void cw_port_cancel(struct cw_port *port, struct cw_transmit *packets, uint32_t count)
{
    port->ops->cancel(port, packets, count);
}

/* Accepts frames to a multicast address, until it has been left as often as it was joined. CW_OK,
 * CW_ERROR_LIMIT (the driver's filters are used up), CW_ERROR_UNSUPPORTED, CW_ERROR_NOT_FOUND (leave without join),
 * CW_ERROR_SYSTEM. */
static inline int cw_port_join(struct cw_port *port, const uint8_t mac[6])
{
    return port->ops->join(port, mac);
}

static inline int cw_port_leave(struct cw_port *port, const uint8_t mac[6])
{
    return port->ops->leave(port, mac);
}

/* Registers memory of pieces with the driver (mapped for DMA if the device needs it).
 * Registrations may share pages. CW_OK, CW_ERROR_UNSUPPORTED (no gather: the core copies), CW_ERROR_LIMIT,
 * CW_ERROR_BUSY (some of its pages
 * were freed, and are still mapped for another registration), CW_ERROR_SYSTEM. */
static inline int cw_port_memory_register(struct cw_port *port, void *base, size_t bytes,
                                          struct cw_port_memory **memory)
{
    return port->ops->memory_register(port, base, bytes, memory);
}

/* CW_OK, or CW_ERROR_BUSY while the driver still holds packets with pieces in it (try again later). */
static inline int cw_port_memory_unregister(struct cw_port *port, struct cw_port_memory *memory)
{
    return port->ops->memory_unregister(port, memory);
}

/* True if the link is up (memif: connected). */
static inline bool cw_port_link_up(struct cw_port *port)
{
    return port->ops->link_up(port);
}

/* Sleeps until the link is up. False: it is not after at least `timeout_ms`. Owner. */
bool cw_port_link_await(struct cw_port *port, uint32_t timeout_ms);

/* Blocks the owner until a packet may have arrived, cw_port_wake is called (before or during), or `timeout_ns` has
 * passed. May return early. Loses no wake-up: a packet or signal between the last receive and the sleep ends the
 * sleep at once. */
static inline void cw_port_sleep(struct cw_port *port, uint64_t timeout_ns)
{
    port->ops->sleep(port, timeout_ns); /* without a companion */
}

/* As cw_port_sleep, and ends by an alarm (NULL: none) that goes off during it or before. A port without alarms polls
 * often. */
static inline void cw_port_sleep_alarm(struct cw_port *port, uint64_t timeout_ns, const struct cw_port_alarm *alarm)
{
    bool has_companion = port->companion > 0;
    bool is_deaf = (alarm != NULL && !port->info.alarms) ||
                   (has_companion && (!port->info.alarms || port->info.wait == CW_PORT_WAIT_DOORBELL));
    struct cw_port_alarm with = alarm != NULL ? *alarm : (struct cw_port_alarm){.descriptor = -1};
    with.companion = port->companion;
    port->alarm = alarm != NULL || has_companion ? &with : NULL;
    port->ops->sleep(port, is_deaf && timeout_ns > CW_WORDS_PATIENCE_NS ? CW_WORDS_PATIENCE_NS : timeout_ns);
    port->alarm = NULL;
}

/* Ends the current cw_port_sleep, or the next one. Any number of threads. */
static inline void cw_port_wake(struct cw_port *port)
{
    port->ops->wake(port);
}

/* A descriptor for poll and epoll: it is readable while the port is armed and has packets. The port owns it. -1: the
 * port has none. */
static inline int cw_port_descriptor(struct cw_port *port)
{
    return port->ops->descriptor != NULL ? port->ops->descriptor(port) : -1;
}

/* For a caller that waits for the descriptor instead of cw_port_sleep. True: packets have arrived already. The caller
 * disarms the port before the next receive. Only with a descriptor. */
static inline bool cw_port_arm(struct cw_port *port)
{
    return port->ops->arm(port);
}

static inline void cw_port_disarm(struct cw_port *port)
{
    port->ops->disarm(port);
}

/* Sets the packets that the endpoint accepts: a port may drop others, and need not. */
static inline void cw_port_claim(struct cw_port *port, const struct cw_port_claim *claim)
{
    if (port->ops->claim != NULL) {
        port->ops->claim(port, claim);
    }
}

/* Turns an offload off permanently, since its results are wrong; info shows it from then on. */
static inline void cw_port_doubt(struct cw_port *port, enum cw_port_offload offload)
{
    if (port->ops->doubt != NULL) {
        port->ops->doubt(port, offload);
    }
}

/* Closes the port and frees it. The caller must have none of its buffers. */
static inline void cw_port_close(struct cw_port *port)
{
    port->ops->close(port);
}
