/* An endpoint's state of puts, messages and gets. Each part is written by one file of put/.
 *
 *   operation.c    posted operations, and their lanes     struct cw_operation, cw_lanes
 *   reassembly.c   arrivals, until they are notified      struct cw_reassemblies
 *   pool.c         the pool that messages go to           struct cw_message_pool
 *   get.c          requests to peers                      struct cw_gets */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/base/pool.h"
#include "dataplane/state/source.h"

struct cw_flow;

enum cw_operation_kind {
    CW_OPERATION_PUT,
    CW_OPERATION_MESSAGE, /* a put into the peer's pool; waits for a slot first */
    CW_OPERATION_GET,
    CW_OPERATION_REPLY, /* the put that answers a peer's get */
    CW_OPERATION_ASK,   /* these four carry message credit */
    CW_OPERATION_GRANT,
    CW_OPERATION_RECALL,
    CW_OPERATION_RETURN,
    CW_OPERATION_RDMA, /* notices between the two ends of a queue pair, by packets */
};

/* In the order of use: posting, sending and retiring a short put touch the first three cache lines only. */
struct cw_operation {
    struct cw_operation *next;  /* in a queue of the flow, or among those with an event to give */
    struct cw_operation *chain; /* the next one in the same packet */
    struct cw_operation *open_next;
    struct cw_operation *open_previous;
    struct cw_operation *successor; /* the next one in the lane */
    struct cw_flow *flow;
    uint64_t number;
    uint64_t context;

    struct cw_region *region; /* of the source, a user of it */
    uint64_t position;        /* bytes that are in packets already */
    uint64_t bytes;
    uint64_t token;
    uint64_t offset;
    uint32_t lane_tag;
    uint32_t packets_open; /* sent and not acknowledged */
    uint16_t predecessor;  /* distance in numbers, in its wire format */
    uint16_t reply;        /* GET, REPLY: number of the get */
    int16_t status;        /* once it has failed: void frames go out instead of data */
    uint8_t kind;
    bool signal : 1;
    bool signal_sent : 1;
    bool alone : 1;
    bool is_inline : 1; /* the data is in bytes_inline, not at the source */
    bool sent : 1;      /* no more new packets */
    bool complete : 1;
    bool waits_for_lane : 1; /* its predecessor is not retired */
    bool in_lanes : 1;       /* took part in the order of its lane */
    bool answered : 1;       /* GET */
    bool by_rdma : 1;        /* by the flow's queue pair, not by packets (state/rdma.h) */
    bool is_held : 1;        /* not to be queued yet, since the one before it in its lane goes another way */
    bool is_wanted : 1;      /* ... and would have been */
    bool is_queued : 1;      /* BY_RDMA: handed to the queue pair */
    uint8_t granted_count;   /* MESSAGE, BY_RDMA: slots in `granted` */
    uint32_t work_end;       /* BY_RDMA: number of the work request behind its last one */

    union { /* from here on undefined until set */
        uint8_t bytes_inline[CW_INLINE_MAX];
        uint16_t slots[CW_CREDIT_MAX]; /* GRANT, RETURN: `bytes` of them */
    };
    union {
        struct cw_source source;
        struct {
            uint64_t token;
            uint64_t offset;
            enum cw_element element;
        } local; /* GET: the target of the answer, and its kind */
    };
    struct cw_source_cursor cursor;
    uint16_t granted[CW_CREDIT_ALONG]; /* MESSAGE, BY_RDMA: lent to the peer along with it */
};

static_assert(offsetof(struct cw_operation, bytes_inline) == 128, "two cache lines in front of the data");

/* A first-in first-out queue through `next`. */
struct cw_operation_queue {
    struct cw_operation *first;
    struct cw_operation *last;
};

static inline void cw_operation_push(struct cw_operation_queue *queue, struct cw_operation *operation)
{
    operation->next = NULL;
    if (queue->first == NULL) {
        queue->first = operation;
    } else {
        queue->last->next = operation;
    }
    queue->last = operation;
}

static inline struct cw_operation *cw_operation_pop(struct cw_operation_queue *queue)
{
    struct cw_operation *operation = queue->first;
    if (operation != NULL) {
        queue->first = operation->next;
    }
    return operation;
}

/* The last open operation of each lane of each flow: open addressing, twice as many places as operations. */
struct cw_lanes {
    struct cw_operation **table;
    uint32_t mask;
};

struct cw_reassemblies {
    struct cw_pool pool;
    struct cw_reassembly **by_number;
    struct cw_reassembly **by_predecessor;
    uint32_t mask;
    struct cw_reassembly *ready_first; /* in the order of their notifications */
    struct cw_reassembly *ready_last;
};

enum cw_slot_state {
    CW_SLOT_FREE = 0,
    CW_SLOT_LENT = 1,
    CW_SLOT_ARRIVING = 2, /* lent, and a message is on its way into it that has a record: no other one may come */
    CW_SLOT_FILLED = 3,
};

struct cw_slot {
    uint32_t peer;   /* LENT, ARRIVING: to whom */
    uint32_t next;   /* FREE: chain */
    uint64_t number; /* ARRIVING: of the put */
    uint8_t state;
};

struct cw_message_pool {
    uint8_t *memory;
    struct cw_slot *slots;
    struct cw_region *region; /* NULL: this endpoint takes no messages */
    uint32_t free_first;
    uint32_t free_count;
    uint32_t lent_most;            /* slots that were not free at a time */
    struct cw_flow *waiting_first; /* senders that asked in vain, in their order */
    struct cw_flow *waiting_last;
    uint32_t recall_next; /* peer to ask next for slots back */
};

/* The gets in progress by the 16-bit number that their answers carry; 0 is none. */
struct cw_gets {
    struct cw_operation **table;
    uint16_t *next_free;
    uint16_t free;
    uint32_t count;
    uint32_t free_count;
};
