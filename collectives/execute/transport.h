/* transport: the small interface through which an execution sees the network.
 *
 * A transport serves one rank of one plan. The execution puts; the transport gives each event to its sink as soon as it
 * happens. Events may come in any order that the meaning of ops in schedule.h allows. Errors are negative codes of
 * dataplane/status.h; CW_ERROR_AGAIN: call again later, nothing has happened. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule.h"

enum cw_transport_event_kind {
    CW_TRANSPORT_SENT = 1,     /* the last byte of a put has left; optional, never after its COMPLETE */
    CW_TRANSPORT_COMPLETE = 2, /* the source of a put may be reused */
    CW_TRANSPORT_ARRIVED = 3,  /* a put of `peer` with `tag` has arrived */
    CW_TRANSPORT_FAILED = 4,   /* the execution cannot continue: `status` */
};

struct cw_transport_event {
    enum cw_transport_event_kind kind;
    uint32_t peer;
    uint32_t tag;
    uint64_t context; /* SENT, COMPLETE: that of the put */
    bool eager;       /* ARRIVED */
    const void *data; /* ARRIVED, eager: the bytes; NULL: they are in the place of the wait that matches it */
    uint64_t bytes;   /* ARRIVED */
    uint64_t buffer;  /* ARRIVED, eager: handle for `release`; 0: `data` is valid during the call only */
    int status;       /* FAILED */
};

/* Where the events of a transport go: its execution. */
struct cw_transport_sink {
    void *context;
    /* Takes an event, and may `put`; from within `put` only FAILED. True: `data` is held until `release`. */
    bool (*event)(void *context, const struct cw_transport_event *event);
};

struct cw_transport_put {
    const uint32_t
        *peers; /* one; a multicast has several, and completes when the source has been read for all of them */
    uint32_t peer_count;
    uint32_t tag;
    bool eager;
    const void *data;
    uint64_t bytes;
    enum cw_buffer buffer; /* direct: the target's buffer and the offset in it */
    uint64_t offset;
    uint64_t context;
};

/* A call among the ranks of a host (CW_OP_HOST). */
struct cw_transport_host {
    uint32_t number;        /* of the schedule's host ops, the same at all of these ranks */
    const uint32_t *others; /* the other ranks, rising */
    uint32_t other_count;
    enum cw_collective collective;
    uint32_t root;  /* a rank */
    bool is_whole;  /* the call is the whole problem: its counts are the lengths of blocks */
    uint64_t bytes; /* of a block; whole: 0 */
    const void *from;
    void *to;
    uint64_t context;
};

enum { CW_TRANSPORT_DONE = 1 };

struct cw_transport {
    void *state;
    /* Sets the sink, before the first put. */
    void (*serve)(void *state, const struct cw_transport_sink *sink);
    /* Starts a put. CW_OK: events follow; CW_TRANSPORT_DONE: it is complete already; CW_ERROR_AGAIN; any other code
     * ends the execution with it. */
    int (*put)(void *state, const struct cw_transport_put *put);
    /* Starts a call among the ranks of this host; combines operands by the function that the owner of the transport
     * knows. Results as of `put`: COMPLETE follows, or it is DONE. NULL: the transport serves no schedules that have
     * any. */
    int (*host)(void *state, const struct cw_transport_host *host);
    /* The wait for the eager put of `peer` with `tag` has started: a transport that held it back for lack of a buffer
     * may deliver it now. NULL if the transport never holds back. */
    void (*expect)(void *state, uint32_t peer, uint32_t tag);
    /* Copies bytes that are valid during the event's call only, and sets their handle. NULL: no memory. The member is
     * NULL if all events have a handle. */
    const void *(*keep)(void *state, const void *data, uint64_t bytes, uint64_t *buffer);
    /* Gives the bytes of an eager arrival back. */
    void (*release)(void *state, uint64_t buffer);
};
