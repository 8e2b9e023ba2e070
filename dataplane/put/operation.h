/* Operations: what has been posted and is under way, with its number and its place in its lane.
 *
 * Invariants
 *   - Operations of a flow are numbered in posting order; the numbers of those still open span at most CW_PUT_WINDOW.
 *   - An operation is complete when all its packets are acknowledged, and retired (its number forgotten) when it is
 *     complete and the one before it in its lane is retired. So whatever is still held back at the target has a
 *     predecessor the target also knows.
 *   - The lane table holds the last operation of each lane that is not retired.
 */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/put/source.h"

struct cw_endpoint;
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
    uint16_t predecessor;  /* how many numbers back, as it goes on the wire */
    uint16_t reply;        /* GET, REPLY: number of the get */
    int16_t status;        /* once it has failed: void frames go out instead of data */
    uint8_t kind;
    bool signal;
    bool signal_sent;
    bool alone;
    bool is_inline; /* the data is in bytes_inline, not at the source */
    bool sent;      /* no more new packets */
    bool complete;
    bool waits_for_lane; /* its predecessor is not retired */
    bool in_lanes;       /* took part in the order of its lane */
    bool answered;       /* GET */

    union { /* from here on undefined until set */
        uint8_t bytes_inline[CW_INLINE_MAX];
        uint16_t slots[CW_CREDIT_MAX]; /* GRANT, RETURN: `bytes` of them */
    };
    union {
        struct cw_source source;
        struct {
            uint64_t token;
            uint64_t offset;
        } local; /* GET: where the answer goes */
    };
    struct cw_source_cursor cursor;
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

int cw_lanes_init(struct cw_lanes *lanes, uint32_t operation_count);
void cw_lanes_dispose(struct cw_lanes *lanes);

/* A new operation on a flow, numbered and last in its lane (if `ordered`), not yet queued. `internal` may use the
 * reserve. NULL: no operation or number is free. */
struct cw_operation *cw_operation_open(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_operation_kind kind,
                                       uint32_t lane_tag, bool ordered, bool internal);

/* Puts an operation into a queue by its number: one that had to wait (a message for its slot) goes before those posted
 * later. Older ones first is what keeps a receiver with little memory moving, see cw_reassemblies_room. */
void cw_operation_push_ordered(struct cw_operation_queue *queue, struct cw_operation *operation);

/* Queues an opened operation to be sent. */
void cw_operation_queue_up(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* One packet of it is acknowledged. */
void cw_operation_acknowledged(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* Its last byte has left, in a packet that is not its first. */
void cw_operation_left(struct cw_endpoint *endpoint, const struct cw_operation *operation);

/* The answer of a get is here. */
void cw_operation_answered(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* True if `count` internal operations could be numbered on this flow now. */
bool cw_operation_numbers_free(const struct cw_flow *flow, uint32_t count);

/* The oldest operation that the peer may not know in full, sent or not; NULL: none. */
struct cw_operation *cw_operation_oldest(const struct cw_flow *flow);

/* The peer has refused it: from now on it goes out as a void frame. */
void cw_operation_refuse(struct cw_endpoint *endpoint, struct cw_operation *operation, int status);

/* Ends all operations of a flow with `status` (its session is over). */
void cw_operations_abort(struct cw_endpoint *endpoint, struct cw_flow *flow, int status);

/* Hands over events that found no room before; returns how many. */
uint32_t cw_operations_deliver(struct cw_endpoint *endpoint);
