/* transport: the small interface through which an execution sees the network.
 *
 * A transport serves one rank of one plan. It may deliver in any order that the meaning of ops in schedule.h allows.
 * Errors are negative codes of dataplane/status.h; CW_ERROR_AGAIN: call again later, nothing has happened.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectives/schedule/schedule.h"

enum cw_transport_event_kind {
    CW_TRANSPORT_SENT = 1,     /* the last byte of a put has left; optional, never after its COMPLETE */
    CW_TRANSPORT_COMPLETE = 2, /* the source of a put may be reused */
    CW_TRANSPORT_ARRIVED = 3,  /* a put of `peer` with `tag` has arrived */
};

struct cw_transport_event {
    enum cw_transport_event_kind kind;
    uint32_t peer;
    uint32_t tag;
    uint64_t context; /* SENT, COMPLETE: that of the put */
    bool eager;       /* ARRIVED */
    const void *data; /* ARRIVED, eager: the bytes, until `release` */
    uint64_t bytes;   /* ARRIVED */
    uint64_t buffer;  /* ARRIVED, eager: handle for `release` */
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

struct cw_transport {
    void *state;
    /* Starts a put. CW_OK; CW_ERROR_AGAIN; any other code ends the execution with it. */
    int (*put)(void *state, const struct cw_transport_put *put);
    /* Fills in up to count_max events; returns how many. A failure is a negative code. */
    int (*poll)(void *state, struct cw_transport_event *events, uint32_t count_max);
    /* The wait for the eager put of `peer` with `tag` has started: a transport that held it back for want of a buffer
     * may let it come now. NULL if the transport never holds back. */
    void (*expect)(void *state, uint32_t peer, uint32_t tag);
    /* Gives the anonymous buffer of an eager arrival back. */
    void (*release)(void *state, uint64_t buffer);
};
