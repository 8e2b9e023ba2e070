/* RDMA state: the common data of the files of rdma/. Private to them.
 *
 *   rdma.c      attached to an endpoint; a turn
 *   connect.c   the life of a queue pair: offered, connected, up, broken
 *   post.c      operations become work requests
 *   complete.c  completions in: own work, notifications, messages
 *   datagram.c  packets to groups
 *   memory.c    receive buffers, staging blocks, regions
 *   token.c     a device's key in the token of a region */
#pragma once

#include "dataplane/base/pool.h"
#include "dataplane/rdma/rdma.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/state/rdma.h"

enum {
    RDMA_BUFFERS_SPARE = 512, /* receive buffers in addition to those of message slots: for notifications and credit */
    RDMA_BUFFERS_LEAST = 16,  /* ... of a device with room for few */
    RDMA_WORK = 128,          /* requests of a pair that are not complete */
    RDMA_BLOCKS = 64,         /* of staging */
    RDMA_BLOCK_BYTES = 16 << 10,
    RDMA_GATHER_MIN = 2048,   /* less is copied, from any region, unless it is a single piece */
    RDMA_UNSIGNALED_MAX = 16, /* work requests in a row that complete with a later one */
    RDMA_TRIES = 8,           /* pairs in a row that failed, before packets carry all data */
    RDMA_BASE_MAX = 1 << 12,  /* of a remote_base in a token: one page */
    RDMA_PATIENCE_SHARE = 16, /* of the failure timeout: the peer of a pair without progress is probed */
    RDMA_NO_BLOCK = UINT16_MAX,
};

#define RDMA_NO_BUFFER      UINT32_MAX
#define RDMA_RETRY_NS       1000000ull    /* before another pair is offered, then twice the time each */
#define RDMA_LOOK_NS        100000000ull  /* between checks that the device has not failed */
#define RDMA_SETTLE_MAX_NS  1000000000ull /* maximum wait for a broken pair's completions */
#define RDMA_INCARNATION_NO UINT32_MAX    /* packets carry all data from now on */

enum rdma_message_kind {
    RDMA_MESSAGE_READY = 1,  /* the first of a pair: it works in this direction */
    RDMA_MESSAGE_SLOT = 2,   /* a message, by the credit of slot `slot` */
    RDMA_MESSAGE_CREDIT = 3, /* a credit frame follows (struct cw_wire_frame) */
};

/* In front of the data in a receive buffer. */
struct rdma_header {
    uint8_t kind;
    uint8_t granted_count; /* SLOT: slots that are lent to the receiver along with it */
    uint16_t slot;
    uint16_t granted[CW_CREDIT_ALONG];
};
static_assert(sizeof(struct rdma_header) == 16, "in front of a message");

/* An event that waits for room, and the receive buffer that the device gets back after that. */
struct rdma_notice {
    struct cw_event event;
    uint64_t order;
    uint32_t buffer; /* RDMA_NO_BUFFER: the application has it */
};

struct rdma_flow;

struct rdma_pair {
    struct cw_verbs_pair *verbs;
    struct rdma_flow *flow; /* NULL: its session has ended */
    struct rdma_pair *next_by_number;
    struct rdma_pair *next_spent;
    uint32_t number;
    uint32_t work_posted; /* number of the next work request */
    uint32_t work_done;   /* all below have been executed */
    uint32_t work_seen;   /* ... or were flushed */
    uint32_t unsignaled;
    uint32_t blocks_held;
    bool is_broken;
    uint64_t broken_ns;
    uint64_t received; /* notifications and messages */
    uint64_t sent;     /* the same, posted */
    uint16_t blocks[]; /* staging block of each work request, by number modulo work_max */
};

struct rdma_flow {
    struct cw_rdma_flow base;
    struct cw_flow *flow;
    struct rdma_pair *pair; /* NULL: none */
    struct rdma_flow *next_restless;
    struct rdma_flow *next_pushed;
    struct cw_operation_queue queue;  /* not posted, or not in full */
    struct cw_operation_queue posted; /* in full, not complete */
    uint32_t incarnation;             /* of the pair */
    uint32_t wanted;                  /* BREAKING: of the next one */
    uint32_t work_known;              /* work_done of the pair at the last check */
    uint8_t state;                    /* enum cw_rdma_state */
    uint8_t tries;                    /* pairs in a row without a delivered operation and without received data */
    bool is_restless : 1;
    bool is_pushed : 1;
    bool owes_offer : 1; /* to be sent in packets, once an operation is free */
    bool owes_accept : 1;
    bool peer_accepted : 1;
    bool was_connected : 1;
    bool ready_in : 1;
    bool ready_out : 1;
    bool is_resolved : 1;   /* the operations that the previous pair has executed are known */
    uint64_t received;      /* notifications of the last connected pair ... */
    uint32_t previous;      /* ... and its incarnation */
    uint32_t posted_by;     /* incarnation of the pair that carried the operations of `posted`; 0: none */
    uint64_t peer_received; /* of that pair, reported by the peer ... */
    bool has_peer_received; /* ... if it has reported it */
    uint64_t retry_ns;      /* BREAKING: no offer before */
    uint64_t token;         /* the last one that was read */
    uint64_t remote_base;   /* ... and its meaning */
    uint32_t remote_key;
    struct cw_wire_rdma offer; /* the peer's last one; kind 0: none */
    struct cw_verbs_address own_address;
};

struct rdma_group {
    struct cw_ip ip;
    uint32_t joins;
    uint32_t number; /* at the device */
};

/* Datagrams to groups, out and in. */
struct rdma_datagrams {
    struct rdma_group groups[CW_VERBS_GROUPS_MAX];
    uint32_t group_count;
    uint32_t leaving_count; /* of them without a member here */
    bool has_failed;        /* the device no longer carries any */
    uint8_t *memory;        /* NULL: no group so far */
    uint64_t memory_bytes;
    uint32_t buffer_bytes; /* from one to the next; receive buffers are first */
    struct cw_verbs_memory registered;
    uint16_t idle[CW_VERBS_DATAGRAMS_IN]; /* to be posted to the device */
    uint32_t idle_count;
    uint16_t free[CW_VERBS_DATAGRAMS_OUT];
    uint32_t free_count;
};

/* Polled completions that wait for the turn. */
struct rdma_fetched {
    uint32_t count;
    struct cw_verbs_completion list[CW_VERBS_BURST];
};

struct rdma {
    struct cw_rdma base;
    struct cw_endpoint *endpoint;
    struct cw_verbs_device *device;
    struct rdma_fetched fetched[CW_VERBS_QUEUES];
    uint64_t work_open; /* requests of all pairs without a completion so far */
    struct cw_pool flows;
    struct cw_pool pairs;
    struct rdma_pair **by_number;
    uint32_t number_mask;
    struct rdma_pair *spent_first;    /* broken, of sessions that have ended */
    struct rdma_flow *restless_first; /* have work that waits for a time or for room */
    struct rdma_flow *pushed_first;   /* have work to post */
    struct rdma_flow *starved_first;  /* ... once there are staging blocks */
    uint64_t look_ns;                 /* time of the next check of the device */
    bool has_failed;                  /* it has failed: packets carry all data permanently */
    uint64_t ask_ns;                  /* time of the next check of flows with open operations; 0: not set */
    uint8_t token_key[16];

    /* memory of the device */
    uint8_t *memory;
    uint64_t memory_bytes;
    struct cw_verbs_memory registered;
    bool has_cache; /* of registrations that are kept: */
    struct cw_cache cache;
    struct cw_memory_watch watch;
    uint32_t buffer_count;
    uint32_t buffer_bytes; /* from one to the next */
    uint32_t idle_most;    /* are not posted to the device, to save calls */
    uint32_t *buffer_of_slot;
    uint32_t *idle_buffers; /* to be posted to the device */
    uint32_t idle_count;
    struct rdma_notice *notices; /* received, without room in the event queue: a ring, one place a buffer */
    uint32_t notice_first;
    uint32_t notice_count;
    uint8_t *blocks;
    uint32_t block_bytes;
    uint16_t free_blocks[RDMA_BLOCKS];
    uint32_t free_block_count;
    struct rdma_datagrams datagrams;
};

static inline struct rdma_flow *rdma_flow_of(const struct cw_flow *flow)
{
    return (struct rdma_flow *)flow->rdma; /* its first member */
}

/* ---- connect.c ---- */

void rdma_session_begin(struct cw_rdma *base, struct cw_flow *flow);
void rdma_session_stop(struct cw_rdma *base, struct cw_flow *flow);
void rdma_session_end(struct cw_rdma *base, struct cw_flow *flow);
void rdma_retry(struct cw_rdma *base, struct cw_flow *flow);
bool rdma_frame(struct cw_rdma *base, struct cw_flow *flow, const void *data, uint32_t bytes, bool check);

/* The first message of the pair has arrived. */
void rdma_connect_ready(struct rdma *rdma, struct rdma_flow *flow);
/* Serves restless flows, and pairs of ended sessions. */
uint32_t rdma_connect_turn(struct rdma *rdma);
uint64_t rdma_connect_deadline(const struct rdma *rdma);

/* ---- pair.c ---- */

/* A pair for the flow, and in `address` what the peer needs to connect to it. False: the pool is empty, or the device
 * failed. */
bool rdma_pair_create(struct rdma *rdma, struct rdma_flow *flow, struct cw_verbs_address *address);
/* NULL: no such pair. */
struct rdma_pair *rdma_pair_find(const struct rdma *rdma, uint32_t number);
void rdma_pair_destroy(struct rdma *rdma, struct rdma_pair *pair);
/* Stops the pair; its earlier arrivals can still be processed. */
void rdma_pair_break(struct rdma *rdma, struct rdma_pair *pair);
/* The pair of a flow has failed: it is stopped, and another one must replace it. */
void rdma_pair_broken(struct rdma *rdma, struct rdma_flow *flow);
/* True if all that came by a broken pair has been taken, and nothing more will come. Both completion queues must be
 * empty (rdma_complete_turn). */
bool rdma_pair_drained(const struct rdma *rdma, const struct rdma_pair *pair);
/* The next rdma_connect_turn serves the flow. */
void rdma_restless(struct rdma *rdma, struct rdma_flow *flow);

/* ---- post.c ---- */

bool rdma_accepts(struct cw_rdma *base, const struct cw_flow *flow, enum cw_operation_kind kind, uint64_t token,
                  uint64_t local);
void rdma_queue(struct cw_rdma *base, struct cw_operation *operation);
void rdma_push(struct cw_rdma *base);
/* The next rdma_push will process the flow's queue. */
void rdma_wake(struct rdma *rdma, struct rdma_flow *flow);
/* Flows that wait for blocks continue, if blocks are free. */
void rdma_feed(struct rdma *rdma);
/* Posts the first message of a pair. False: there is no staging block. */
bool rdma_post_ready(struct rdma *rdma, struct rdma_flow *flow);

/* ---- complete.c ---- */

uint32_t rdma_fetch(struct cw_rdma *base);
/* Own work, then all received data: both completion queues are empty then. */
uint32_t rdma_complete_turn(struct rdma *rdma);
/* Takes all completions of a queue, fetched ones first. */
typedef void (*rdma_completion_handler)(struct rdma *rdma, const struct cw_verbs_completion *list, uint32_t count);
uint32_t rdma_poll_all(struct rdma *rdma, enum cw_verbs_queue queue, rdma_completion_handler take);
uint32_t rdma_deliver(struct cw_rdma *base);

/* ---- datagram.c ---- */

/* True: the endpoint waits for datagrams, or has sent some. */
static inline bool rdma_has_datagrams(const struct rdma *rdma)
{
    const struct rdma_datagrams *datagrams = &rdma->datagrams;
    return datagrams->memory != NULL && (datagrams->group_count > 0 || datagrams->free_count < CW_VERBS_DATAGRAMS_OUT);
}

uint32_t rdma_datagram_bytes(const struct cw_rdma *base);
int rdma_group_join(struct cw_rdma *base, const struct cw_ip *ip);
bool rdma_group_is_joined(struct cw_rdma *base, const struct cw_ip *ip);
int rdma_group_leave(struct cw_rdma *base, const struct cw_ip *ip);
uint32_t rdma_datagram_room(const struct cw_rdma *base);
void rdma_datagram_send(struct cw_rdma *base, const struct cw_ip *ip, const void *frame, uint32_t bytes);
uint32_t rdma_datagrams_turn(struct rdma *rdma);
void rdma_datagrams_dispose(struct rdma *rdma);
/* After the device has been closed: it may write until then. */
void rdma_datagrams_free(struct rdma *rdma);

/* ---- memory.c ---- */

int rdma_memory_init(struct rdma *rdma, char *error, size_t error_bytes);
void rdma_memory_dispose(struct rdma *rdma);
bool rdma_memory_register(struct cw_rdma *base, struct cw_region *region, void *memory, uint64_t bytes, uint32_t rights,
                          uint64_t *key);
bool rdma_means_key(const struct cw_rdma *base, uint64_t bits);
bool rdma_memory_is_busy(const struct cw_rdma *base, const struct cw_region *region);
void rdma_memory_unregister(struct cw_rdma *base, struct cw_region *region);
void rdma_slot_released(struct cw_rdma *base, uint32_t slot);
/* A receive buffer: a header, then the data. */
static inline struct rdma_header *rdma_buffer(const struct rdma *rdma, uint32_t buffer)
{
    return (struct rdma_header *)(rdma->memory + (uint64_t)buffer * rdma->buffer_bytes + 64 -
                                  sizeof(struct rdma_header));
}
/* Returns the buffer to the device, by the next rdma_buffers_post. */
void rdma_buffer_release(struct rdma *rdma, uint32_t buffer);
void rdma_buffers_post(struct rdma *rdma);
/* A staging block for a pair, or RDMA_NO_BLOCK: a pair has at most as many as are left for all others, so that a peer
 * that accepts no data does not delay others. */
uint16_t rdma_block_acquire(struct rdma *rdma, const struct rdma_pair *pair);
void rdma_block_release(struct rdma *rdma, uint16_t block);
/* Returns the block of one of a pair's work requests, if it has one. */
static inline void rdma_block_return(struct rdma *rdma, struct rdma_pair *pair, uint32_t number)
{
    uint16_t *block = &pair->blocks[number % rdma->device->info.work_max];
    if (*block != RDMA_NO_BLOCK) {
        rdma_block_release(rdma, *block);
        *block = RDMA_NO_BLOCK;
        pair->blocks_held--;
    }
}
static inline uint8_t *rdma_block(const struct rdma *rdma, uint16_t block)
{
    return rdma->blocks + (uint64_t)block * rdma->block_bytes;
}

/* ---- token.c ---- */

/* The 48 bits of a token with the device's key and base address for peers' access to a region. They are a permutation
 * under a key of the job, so a changed token represents another one, most likely none. */
uint64_t rdma_token_key(const struct rdma *rdma, uint32_t remote_key, uint64_t remote_base);
/* False: no device knows the region of the token. */
bool rdma_token_read(const struct rdma *rdma, uint64_t token, uint32_t *remote_key, uint64_t *remote_base);
