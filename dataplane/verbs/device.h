/* Verbs: the endpoint's interface to an RDMA device: queue pairs, registered memory, completions.
 *
 * Invariants
 *  - A device has one owner at a time: the owner of its endpoint. No call blocks.
 *  - A pair executes its work in posting order, and completes it in that order (RC: reliable, connected). A pair that
 *    breaks completes all remaining work as CW_VERBS_FLUSHED, and stays broken.
 *  - Work that is not signaled completes with the next signaled work of its pair, without a separate completion.
 *  - Receive buffers are the device's from cw_verbs_receive_post until their completion.
 *  - Datagrams to groups (UD: unreliable datagrams) may get lost, and are lost if a receiver has no buffer.
 *  - No code above the device knows its implementation; struct cw_verbs_info has the differences.
 *
 * Order of calls
 *    open (cw_verbs_open, cw_verbs_sim_open)
 *    { cw_verbs_memory_register | cw_verbs_receive_post | cw_verbs_poll |
 *      cw_verbs_pair_create { cw_verbs_pair_connect { cw_verbs_post } cw_verbs_pair_break } cw_verbs_pair_destroy |
 *      cw_verbs_group_join { cw_verbs_datagram_post | cw_verbs_datagram_receive_post } cw_verbs_group_leave }*
 *    cw_verbs_close */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_VERBS_PIECES_MAX = 4,     /* of memory, in one work request */
    CW_VERBS_BURST = 32,         /* work requests, completions, receive buffers in one call */
    CW_VERBS_NAME_BYTES = 64,    /* of a device, with its final 0 */
    CW_VERBS_ERROR_BYTES = 256,  /* room for a one-line reason, with its final 0 */
    CW_VERBS_TEXT_BYTES = 200,   /* ... for the text of a port */
    CW_VERBS_GROUPS_MAX = 64,    /* joined at a time */
    CW_VERBS_DATAGRAMS_OUT = 64, /* posted to groups, and not complete */
    CW_VERBS_DATAGRAMS_IN = 256, /* buffers for datagrams to groups */
    CW_VERBS_DATAGRAM_HEAD = 40, /* bytes in front of a datagram in its buffer: a global route header */
};

enum cw_verbs_rights {
    CW_VERBS_LOCAL = 0, /* sources, and destinations of reads if the process may write there */
    CW_VERBS_WRITE = 1, /* peers may write */
    CW_VERBS_READ = 2,  /* peers may read */
    CW_VERBS_FILL = 4,  /* own reads may write: rejected if the process may not */
};

enum cw_verbs_opcode {
    CW_VERBS_OP_WRITE,        /* bytes into the peer's memory */
    CW_VERBS_OP_WRITE_NOTIFY, /* the same with 32 bits, which use a receive buffer of the peer but no byte of it */
    CW_VERBS_OP_SEND,         /* bytes and 32 bits into a receive buffer of the peer */
    CW_VERBS_OP_READ,         /* bytes of the peer's memory */
};

enum cw_verbs_status {
    CW_VERBS_OK = 0,
    CW_VERBS_REFUSED,   /* the peer's device does not permit this access to that memory */
    CW_VERBS_FLUSHED,   /* the pair had broken before */
    CW_VERBS_UNREACHED, /* no answer of the peer's device, which may or may not have executed it */
    CW_VERBS_BROKEN,    /* any other error; it may or may not have been executed */
};

enum cw_verbs_kind {
    CW_VERBS_SIMULATED = 0,
    CW_VERBS_INFINIBAND,
    CW_VERBS_ROCE_V1,
    CW_VERBS_ROCE_V2,
    CW_VERBS_IWARP, /* listed, never opened: its pairs need a different set-up protocol */
};

/* A port of a device of this machine, and its address. */
struct cw_verbs_port {
    char name[CW_VERBS_NAME_BYTES]; /* of the device */
    uint8_t number;                 /* of the port, from 1 */
    uint8_t kind;                   /* enum cw_verbs_kind */
    bool is_up;
    uint8_t gid[16]; /* the best match; all zero: none */
    uint16_t lid;    /* InfiniBand */
    uint32_t mtu_bytes;
};

/* The address and parameters of a pair. */
struct cw_verbs_address {
    uint8_t gid[16];
    uint32_t number;    /* of the pair: 24 bits */
    uint32_t first;     /* packet number: 24 bits */
    uint32_t mtu_bytes; /* largest payload of a packet: 256 .. 4096 */
    uint16_t lid;       /* InfiniBand; 0: by GID */
    uint8_t reads;      /* number of reads that the device answers at a time */
};

struct cw_verbs_info {
    struct cw_verbs_port port;
    uint32_t pair_count_max;
    uint32_t work_max;                         /* posted to a pair and not complete */
    uint32_t receive_max;                      /* buffers of the shared receive queue */
    uint32_t pieces_max;                       /* up to CW_VERBS_PIECES_MAX */
    uint32_t inline_max;                       /* bytes that are copied when they are posted */
    uint64_t message_max;                      /* bytes of one work request */
    uint64_t settle_ns;                        /* data may still arrive this long after a pair was broken */
    uint32_t datagram_bytes;                   /* longest datagram to a group; 0: there are no groups ... */
    char without_groups[CW_VERBS_ERROR_BYTES]; /* ... and the reason */
    int descriptor;                            /* readable after an armed completion; -1: no waiting */
};

/* Registered memory; the device owns the fields. */
struct cw_verbs_memory {
    void *handle; /* NULL: none */
    uint32_t local_key;
    uint32_t remote_key;
    uint64_t remote_base; /* address of the first byte, for peers: below one page */
    uint64_t shift;       /* address of this process minus that of the device */
};

struct cw_verbs_piece {
    const void *data;
    uint32_t bytes;
    const struct cw_verbs_memory *memory; /* that contains it; not read for inline work */
};

struct cw_verbs_work {
    enum cw_verbs_opcode opcode;
    uint32_t id; /* returned with its completion */
    bool signaled;
    bool is_inline; /* the memory of all pieces, inline_max bytes at most, is the caller's again after the call */
    uint32_t piece_count;
    struct cw_verbs_piece pieces[CW_VERBS_PIECES_MAX];
    uint64_t remote; /* address in the peer's memory, beginning with its remote_base */
    uint32_t remote_key;
    uint32_t immediate;
};

struct cw_verbs_buffer {
    uint32_t id;
    void *data;
    uint32_t bytes;
    const struct cw_verbs_memory *memory;
};

enum cw_verbs_queue {
    CW_VERBS_SENT,      /* own work */
    CW_VERBS_RECEIVED,  /* notifications and messages of peers */
    CW_VERBS_DATAGRAMS, /* own datagrams that have left, and received ones: their ids distinguish them */
    CW_VERBS_QUEUES,
};

struct cw_verbs_completion {
    uint32_t id;   /* of the work, or of the receive buffer */
    uint32_t pair; /* its number */
    enum cw_verbs_status status;
    bool is_write;      /* RECEIVED: a notified write; else a message */
    uint32_t bytes;     /* RECEIVED: of the write, or of the message; DATAGRAMS: with the head */
    uint32_t immediate; /* RECEIVED */
};

struct cw_verbs_device;
struct cw_verbs_pair;

struct cw_verbs_ops {
    int (*memory_register)(struct cw_verbs_device *device, void *base, uint64_t bytes, uint32_t rights,
                           struct cw_verbs_memory *memory);
    void (*memory_unregister)(struct cw_verbs_device *device, struct cw_verbs_memory *memory);
    int (*pair_create)(struct cw_verbs_device *device, struct cw_verbs_pair **pair, struct cw_verbs_address *address);
    int (*pair_connect)(struct cw_verbs_pair *pair, const struct cw_verbs_address *peer);
    void (*pair_break)(struct cw_verbs_pair *pair);
    void (*pair_destroy)(struct cw_verbs_pair *pair);
    uint32_t (*post)(struct cw_verbs_pair *pair, const struct cw_verbs_work *work, uint32_t count);
    uint32_t (*receive_post)(struct cw_verbs_device *device, const struct cw_verbs_buffer *buffers, uint32_t count);
    uint32_t (*poll)(struct cw_verbs_device *device, enum cw_verbs_queue queue, struct cw_verbs_completion *completions,
                     uint32_t count_max);
    int (*group_join)(struct cw_verbs_device *device, const uint8_t address[16], uint32_t *group);
    void (*group_leave)(struct cw_verbs_device *device, uint32_t group);
    bool (*group_is_joined)(struct cw_verbs_device *device, uint32_t group);
    bool (*datagram_post)(struct cw_verbs_device *device, uint32_t group, const struct cw_verbs_buffer *datagram);
    uint32_t (*datagram_receive_post)(struct cw_verbs_device *device, const struct cw_verbs_buffer *buffers,
                                      uint32_t count);
    bool (*has_failed)(struct cw_verbs_device *device);
    void (*arm)(struct cw_verbs_device *device);
    void (*close)(struct cw_verbs_device *device);
};

/* Implementations have these first in their own structures. */
struct cw_verbs_device {
    const struct cw_verbs_ops *ops;
    struct cw_verbs_info info;
};

struct cw_verbs_pair {
    struct cw_verbs_device *device;
};

/* Registers memory with exactly these rights for peers, and exactly these bytes. CW_OK; CW_ERROR_LIMIT: the limit of
 * locked memory (`ulimit -l`) or of the device is reached; CW_ERROR_SYSTEM. */
static inline int cw_verbs_memory_register(struct cw_verbs_device *device, void *base, uint64_t bytes, uint32_t rights,
                                           struct cw_verbs_memory *memory)
{
    return device->ops->memory_register(device, base, bytes, rights, memory);
}

/* No peer reads or writes the memory once this has returned. */
static inline void cw_verbs_memory_unregister(struct cw_verbs_device *device, struct cw_verbs_memory *memory)
{
    device->ops->memory_unregister(device, memory);
    memory->handle = NULL;
}

/* Creates a pair that is not connected; *address is for its peer. CW_OK, CW_ERROR_LIMIT, CW_ERROR_SYSTEM. */
static inline int cw_verbs_pair_create(struct cw_verbs_device *device, struct cw_verbs_pair **pair,
                                       struct cw_verbs_address *address)
{
    return device->ops->pair_create(device, pair, address);
}

/* Connects the pair: from now on it accepts work, and data of its peer. CW_OK, CW_ERROR_ARGUMENT (no route to the
 * address), CW_ERROR_SYSTEM. */
static inline int cw_verbs_pair_connect(struct cw_verbs_pair *pair, const struct cw_verbs_address *peer)
{
    return pair->device->ops->pair_connect(pair, peer);
}

/* Breaks the pair: it receives no more data, and its unfinished work completes as CW_VERBS_FLUSHED. */
static inline void cw_verbs_pair_break(struct cw_verbs_pair *pair)
{
    pair->device->ops->pair_break(pair);
}

/* True: the device, or one of its queues (completions without room), has reported a failure. Stays true. May cost a
 * call of the kernel. */
static inline bool cw_verbs_has_failed(struct cw_verbs_device *device)
{
    return device->ops->has_failed(device);
}

/* Destroys a pair. Completions that have not been polled are lost, or have the pair's old number. */
static inline void cw_verbs_pair_destroy(struct cw_verbs_pair *pair)
{
    pair->device->ops->pair_destroy(pair);
}

/* Posts up to CW_VERBS_BURST work requests; returns the number that the pair has accepted (the first ones). */
static inline uint32_t cw_verbs_post(struct cw_verbs_pair *pair, const struct cw_verbs_work *work, uint32_t count)
{
    return pair->device->ops->post(pair, work, count);
}

/* Gives at most CW_VERBS_BURST buffers to the shared receive queue; returns the number that it has accepted. */
static inline uint32_t cw_verbs_receive_post(struct cw_verbs_device *device, const struct cw_verbs_buffer *buffers,
                                             uint32_t count)
{
    return device->ops->receive_post(device, buffers, count);
}

/* Joins the group with an IP address (IPv4 after ::ffff:0:0); *group: its number here. The join is reported to the
 * network (rdma_cm: IGMP, MLD, or the subnet manager), which answers later: earlier datagrams are lost. CW_OK;
 * CW_ERROR_LIMIT: CW_VERBS_GROUPS_MAX, or the device's limit; CW_ERROR_UNSUPPORTED: it has no groups;
 * CW_ERROR_SYSTEM. */
static inline int cw_verbs_group_join(struct cw_verbs_device *device, const uint8_t address[16], uint32_t *group)
{
    return device->ops->group_join(device, address, group);
}

/* True: the network has answered. From now on datagrams to the group arrive, or never will. */
static inline bool cw_verbs_group_is_joined(struct cw_verbs_device *device, uint32_t group)
{
    return device->ops->group_is_joined(device, group);
}

static inline void cw_verbs_group_leave(struct cw_verbs_device *device, uint32_t group)
{
    device->ops->group_leave(device, group);
}

/* Sends `bytes` <= datagram_bytes to all members of the group, perhaps also to the sender itself. The device owns the
 * bytes until the completion. False: it accepts no more, or the network has not answered yet. */
static inline bool cw_verbs_datagram_post(struct cw_verbs_device *device, uint32_t group,
                                          const struct cw_verbs_buffer *datagram)
{
    return device->ops->datagram_post(device, group, datagram);
}

/* As cw_verbs_receive_post, for datagrams to groups: buffers of CW_VERBS_DATAGRAM_HEAD + datagram_bytes, up to
 * CW_VERBS_DATAGRAMS_IN of them. */
static inline uint32_t cw_verbs_datagram_receive_post(struct cw_verbs_device *device,
                                                      const struct cw_verbs_buffer *buffers, uint32_t count)
{
    return device->ops->datagram_receive_post(device, buffers, count);
}

/* Takes up to `count_max` completions, at most CW_VERBS_BURST; returns their number. */
static inline uint32_t cw_verbs_poll(struct cw_verbs_device *device, enum cw_verbs_queue queue,
                                     struct cw_verbs_completion *completions, uint32_t count_max)
{
    return device->ops->poll(device, queue, completions, count_max);
}

/* Arms the descriptor: the next completion of any queue makes it readable. Earlier completions do not: poll again
 * before waiting. */
static inline void cw_verbs_arm(struct cw_verbs_device *device)
{
    device->ops->arm(device);
}

/* Closes the device. Destroy pairs and unregister memory before. */
static inline void cw_verbs_close(struct cw_verbs_device *device)
{
    device->ops->close(device);
}

/* The configuration of a device. */
struct cw_verbs_config {
    const char *name; /* as printed by `ibv_devices` and `rdma link`; NULL: the one with the address */
    /* Of the interface whose address peers use: an IPv4 address after ::ffff:0:0, or an IPv6 one; all zero: any,
     * RoCE v2 with an IPv4 address first. */
    uint8_t gid[16];
    uint8_t ip[16]; /* address of the interface, with which an InfiniBand port joins groups; all zero: no groups */
    uint32_t work_max;
    uint32_t receive_max;
    uint32_t pair_count_max;
};

/* The errors of the following functions: CW_ERROR_NOT_FOUND: no such device, or none with that address and a port that
 * is up; CW_ERROR_UNSUPPORTED: this build has no verbs, or this machine no libibverbs, or the device is an iWARP one;
 * CW_ERROR_LIMIT; CW_ERROR_SYSTEM; each with a line in `error`. If the kernel has no RDMA device, libibverbs is not
 * loaded. */

/* Opens a device of libibverbs. Its GID is that of RoCE v2 with the address, else of RoCE v1; on InfiniBand the first
 * one, with the port's LID. CW_OK, or an error as above. */
int cw_verbs_open(const struct cw_verbs_config *config, struct cw_verbs_device **device, char *error,
                  size_t error_bytes);

/* True: the kernel has an RDMA device. */
bool cw_verbs_are_there(void);

/* Finds the port that cw_verbs_open would open: of `config` it reads name and gid. CW_OK, or an error as above. */
int cw_verbs_find(const struct cw_verbs_config *config, struct cw_verbs_port *port, char *error, size_t error_bytes);

/* Up to `count_max` ports of all devices of this machine, each with its default GID; no port is also an
 * error. CW_OK, or an error as above. */
int cw_verbs_list(struct cw_verbs_port *ports, uint32_t count_max, uint32_t *count, char *error, size_t error_bytes);

/* "rxe0 port 1: RoCE v2, GID ::ffff:10.9.0.1, MTU 4096". */
void cw_verbs_port_write(const struct cw_verbs_port *port, char text[CW_VERBS_TEXT_BYTES]);
