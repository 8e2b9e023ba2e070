/* Verbs: an RDMA device, as the endpoint above it sees it: queue pairs, registered memory, completions.
 *
 * Invariants
 *  - A device has one owner at a time: the owner of its endpoint. Nothing here blocks.
 *  - A pair carries out its work in the order in which it was posted, and completes it in that order (RC: reliable,
 *    connected). A pair that breaks completes all that is left as CW_VERBS_FLUSHED; only a new pair helps.
 *  - Work that is not signaled completes with the next signaled work of its pair, without a completion of its own.
 *  - Receive buffers are the device's from cw_verbs_receive_post until their completion.
 *  - Datagrams to groups (UD: unreliable datagrams) may get lost, and do where nobody has given a buffer.
 *  - Nothing above the device knows which implementation is below it; struct cw_verbs_info has the differences.
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
    CW_VERBS_TEXT_BYTES = 200,   /* ... for a port in words */
    CW_VERBS_GROUPS_MAX = 64,    /* joined at a time */
    CW_VERBS_DATAGRAMS_OUT = 64, /* posted to groups, and not complete */
    CW_VERBS_DATAGRAMS_IN = 256, /* buffers for what comes to groups */
    CW_VERBS_DATAGRAM_HEAD = 40, /* bytes in front of it in its buffer: a global route header */
};

enum cw_verbs_rights {
    CW_VERBS_LOCAL = 0, /* sources, and destinations of reads if the process may write there */
    CW_VERBS_WRITE = 1, /* peers may write */
    CW_VERBS_READ = 2,  /* peers may read */
    CW_VERBS_FILL = 4,  /* own reads may write, whoever comes: refused where the process may not */
};

enum cw_verbs_opcode {
    CW_VERBS_OP_WRITE,        /* bytes into the peer's memory */
    CW_VERBS_OP_WRITE_NOTIFY, /* the same with 32 bits, which take a receive buffer of the peer and no byte of it */
    CW_VERBS_OP_SEND,         /* bytes and 32 bits into a receive buffer of the peer */
    CW_VERBS_OP_READ,         /* bytes of the peer's memory */
};

enum cw_verbs_status {
    CW_VERBS_OK = 0,
    CW_VERBS_REFUSED,   /* the peer's device lets nobody at that memory, or not so */
    CW_VERBS_FLUSHED,   /* the pair had broken before */
    CW_VERBS_UNREACHED, /* no answer of the peer's device, which may or may not have carried it out */
    CW_VERBS_BROKEN,    /* anything else; the same is true */
};

enum cw_verbs_kind {
    CW_VERBS_SIMULATED = 0,
    CW_VERBS_INFINIBAND,
    CW_VERBS_ROCE_V1,
    CW_VERBS_ROCE_V2,
    CW_VERBS_IWARP, /* listed, never opened: its pairs are set up by a protocol of their own */
};

/* A port of a device of this machine, and the address by which it is reached. */
struct cw_verbs_port {
    char name[CW_VERBS_NAME_BYTES]; /* of the device */
    uint8_t number;                 /* of the port, from 1 */
    uint8_t kind;                   /* enum cw_verbs_kind */
    bool is_up;
    uint8_t gid[16]; /* the best one that fits; all zero: none */
    uint16_t lid;    /* InfiniBand */
    uint32_t mtu_bytes;
};

/* Where a pair is reached, and how. */
struct cw_verbs_address {
    uint8_t gid[16];
    uint32_t number;    /* of the pair: 24 bits */
    uint32_t first;     /* packet number: 24 bits */
    uint32_t mtu_bytes; /* largest payload of a packet: 256 .. 4096 */
    uint16_t lid;       /* InfiniBand; 0: by GID */
    uint8_t reads;      /* that the device answers at a time */
};

struct cw_verbs_info {
    struct cw_verbs_port port;
    uint32_t pair_count_max;
    uint32_t work_max;                         /* posted to a pair and not complete */
    uint32_t receive_max;                      /* buffers of the shared receive queue */
    uint32_t pieces_max;                       /* up to CW_VERBS_PIECES_MAX */
    uint32_t inline_max;                       /* bytes that are copied when they are posted */
    uint64_t message_max;                      /* bytes of one work request */
    uint64_t settle_ns;                        /* after a pair was broken something may still come by it for so long */
    uint32_t datagram_bytes;                   /* of a datagram to a group, at most; 0: there are no groups ... */
    char without_groups[CW_VERBS_ERROR_BYTES]; /* ... and why */
    int descriptor; /* readable once an armed completion has come; -1: it cannot be waited for */
};

/* Registered memory; the fields are the device's. */
struct cw_verbs_memory {
    void *handle; /* NULL: none */
    uint32_t local_key;
    uint32_t remote_key;
    uint64_t remote_base; /* address of the first byte, for peers: below one page */
    uint64_t shift;       /* an address of this process is so much above that of the device */
};

struct cw_verbs_piece {
    const void *data;
    uint32_t bytes;
    const struct cw_verbs_memory *memory; /* that it lies in; not read of inline work */
};

struct cw_verbs_work {
    enum cw_verbs_opcode opcode;
    uint32_t id; /* comes back with its completion */
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
    CW_VERBS_DATAGRAMS, /* own ones that have left, and what has come to groups: ids tell them apart */
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

/* Registers memory with exactly these rights for peers, and exactly these bytes. CW_OK; CW_ERROR_LIMIT: no more may be
 * locked (`ulimit -l`), or the device has no more room; CW_ERROR_SYSTEM. */
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

/* A pair that is not connected; *address is for its peer. CW_OK, CW_ERROR_LIMIT, CW_ERROR_SYSTEM. */
static inline int cw_verbs_pair_create(struct cw_verbs_device *device, struct cw_verbs_pair **pair,
                                       struct cw_verbs_address *address)
{
    return device->ops->pair_create(device, pair, address);
}

/* The pair takes work from now on, and what comes from its peer. CW_OK, CW_ERROR_ARGUMENT (an address that no route
 * leads to), CW_ERROR_SYSTEM. */
static inline int cw_verbs_pair_connect(struct cw_verbs_pair *pair, const struct cw_verbs_address *peer)
{
    return pair->device->ops->pair_connect(pair, peer);
}

/* Nothing comes in by the pair any more; what it has not carried out completes as CW_VERBS_FLUSHED. */
static inline void cw_verbs_pair_break(struct cw_verbs_pair *pair)
{
    pair->device->ops->pair_break(pair);
}

/* Whether the device has told that it can do no more: it failed as a whole, or a queue of its did (completions that
 * found no room). Stays true. May cost a call of the kernel. */
static inline bool cw_verbs_has_failed(struct cw_verbs_device *device)
{
    return device->ops->has_failed(device);
}

/* Completions that have not been polled are lost, or carry the pair's old number. */
static inline void cw_verbs_pair_destroy(struct cw_verbs_pair *pair)
{
    pair->device->ops->pair_destroy(pair);
}

/* Posts up to CW_VERBS_BURST work requests; returns how many of the first ones the pair has taken. */
static inline uint32_t cw_verbs_post(struct cw_verbs_pair *pair, const struct cw_verbs_work *work, uint32_t count)
{
    return pair->device->ops->post(pair, work, count);
}

/* Gives up to CW_VERBS_BURST buffers to the shared receive queue; returns how many it has taken. */
static inline uint32_t cw_verbs_receive_post(struct cw_verbs_device *device, const struct cw_verbs_buffer *buffers,
                                             uint32_t count)
{
    return device->ops->receive_post(device, buffers, count);
}

/* Has the port join the group with an IP address, an IPv4 one behind ::ffff:0:0; *group: its number here. The network is
 * told (rdma_cm: IGMP, MLD, or the subnet manager), and answers later: datagrams from before are lost. CW_OK;
 * CW_ERROR_LIMIT: CW_VERBS_GROUPS_MAX, or what the device has; CW_ERROR_UNSUPPORTED: it has no groups;
 * CW_ERROR_SYSTEM. */
static inline int cw_verbs_group_join(struct cw_verbs_device *device, const uint8_t address[16], uint32_t *group)
{
    return device->ops->group_join(device, address, group);
}

/* Whether the network has answered: what is sent to the group from now on comes, or never will. */
static inline bool cw_verbs_group_is_joined(struct cw_verbs_device *device, uint32_t group)
{
    return device->ops->group_is_joined(device, group);
}

static inline void cw_verbs_group_leave(struct cw_verbs_device *device, uint32_t group)
{
    device->ops->group_leave(device, group);
}

/* Sends `bytes` <= datagram_bytes to all who have joined the group, the sender itself perhaps, which are the device's
 * until the completion. False: it takes no more, or the network has not answered yet. */
static inline bool cw_verbs_datagram_post(struct cw_verbs_device *device, uint32_t group,
                                          const struct cw_verbs_buffer *datagram)
{
    return device->ops->datagram_post(device, group, datagram);
}

/* As cw_verbs_receive_post, for what comes to groups: buffers of CW_VERBS_DATAGRAM_HEAD + datagram_bytes, up to
 * CW_VERBS_DATAGRAMS_IN of them. */
static inline uint32_t cw_verbs_datagram_receive_post(struct cw_verbs_device *device,
                                                      const struct cw_verbs_buffer *buffers, uint32_t count)
{
    return device->ops->datagram_receive_post(device, buffers, count);
}

/* Takes up to `count_max` completions, at most CW_VERBS_BURST; returns how many. */
static inline uint32_t cw_verbs_poll(struct cw_verbs_device *device, enum cw_verbs_queue queue,
                                     struct cw_verbs_completion *completions, uint32_t count_max)
{
    return device->ops->poll(device, queue, completions, count_max);
}

/* Has the next completion of any queue make the descriptor readable. Completions that came before do not: poll once
 * more before waiting. */
static inline void cw_verbs_arm(struct cw_verbs_device *device)
{
    device->ops->arm(device);
}

/* Pairs and memory are gone before. */
static inline void cw_verbs_close(struct cw_verbs_device *device)
{
    device->ops->close(device);
}

/* What a device is opened with. */
struct cw_verbs_config {
    const char *name; /* as `ibv_devices` and `rdma link` have it; NULL: the one that has the address */
    /* Of the interface whose address peers use: an IPv4 address behind ::ffff:0:0, or an IPv6 one; all zero: any,
     * RoCE v2 with an IPv4 address first. */
    uint8_t gid[16];
    uint8_t ip[16]; /* address of the interface, as above: by it an InfiniBand port joins groups; all zero: in none */
    uint32_t work_max;
    uint32_t receive_max;
    uint32_t pair_count_max;
};

/* What all of these tell: CW_ERROR_NOT_FOUND: no such device, or none with that address and a port that is up;
 * CW_ERROR_UNSUPPORTED: this build has no verbs, or this machine no libibverbs, or the device is an iWARP one;
 * CW_ERROR_LIMIT; CW_ERROR_SYSTEM; each with a line in `error`. Where the kernel has no RDMA device libibverbs is not
 * even loaded. */

/* Opens a device of libibverbs. Its GID is that of RoCE v2 with the address, else of RoCE v1; on InfiniBand the first
 * one, with the port's LID. CW_OK, or an error as above. */
int cw_verbs_open(const struct cw_verbs_config *config, struct cw_verbs_device **device, char *error,
                  size_t error_bytes);

/* Whether the kernel has any RDMA device. */
bool cw_verbs_are_there(void);

/* The port that cw_verbs_open would take: of `config` it reads name and gid. CW_OK, or an error as above. */
int cw_verbs_find(const struct cw_verbs_config *config, struct cw_verbs_port *port, char *error, size_t error_bytes);

/* Up to `count_max` ports of all devices of this machine, each with the GID that is taken if any will do; none is an
 * error here, too. CW_OK, or an error as above. */
int cw_verbs_list(struct cw_verbs_port *ports, uint32_t count_max, uint32_t *count, char *error, size_t error_bytes);

/* "rxe0 port 1: RoCE v2, GID ::ffff:10.9.0.1, MTU 4096". */
void cw_verbs_port_write(const struct cw_verbs_port *port, char text[CW_VERBS_TEXT_BYTES]);
