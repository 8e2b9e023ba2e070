/* reassembly: reassembly records of puts at their target, from the first byte to the notification.
 *
 * Invariants
 *   - A put needs no record if its only packet has arrived, its predecessor in its lane is done, and the event queue
 *     has room: it is notified at once. All others have a record, until they are notified.
 *   - "Done" (in the flow's window of put numbers) means notified, or cancelled. Puts that have their turn but find no
 *     room in the event queue wait in one queue. Their successors in their lanes follow directly after them; no put
 *     overtakes another there.
 *   - The oldest put of a flow that is not done can always get a record, so arrival never deadlocks. */
#pragma once

#include "dataplane/state/endpoint.h"

enum cw_reassembly_state {
    CW_REASSEMBLY_PARTIAL, /* bytes are missing */
    CW_REASSEMBLY_HELD,    /* complete, its predecessor is not done */
    CW_REASSEMBLY_READY,   /* has its turn, waits for room in the event queue */
};

struct cw_reassembly {
    struct cw_reassembly *next_by_number; /* in a bucket */
    struct cw_reassembly *next_by_predecessor;
    struct cw_reassembly *next_ready;
    struct cw_flow *flow;
    uint64_t number;
    uint64_t predecessor; /* number of the put before it in its lane; its own number: none */
    uint64_t received;    /* bytes */
    uint64_t total;
    uint64_t token;
    uint64_t offset;
    uint64_t order; /* READY: its place in the line for room in the event queue */
    uint32_t lane_tag;
    uint16_t reply;
    uint8_t state;
    bool void_put; /* cancelled by the sender: not notified */
    bool detached; /* its session has ended meanwhile */
};

int cw_reassemblies_init(struct cw_reassemblies *reassemblies, uint32_t count);
void cw_reassemblies_dispose(struct cw_reassemblies *reassemblies);

/* The contents of one frame of a put. */
struct cw_reassembly_frame {
    uint64_t number;
    uint64_t predecessor; /* as in struct cw_reassembly */
    uint64_t bytes;       /* in this frame */
    uint64_t total;
    uint64_t token;
    uint64_t offset; /* of the whole put */
    uint32_t lane_tag;
    uint16_t reply;
    bool void_put;
    bool detached;
};

/* True if there are records for `count` puts in any case. */
bool cw_reassemblies_plenty(const struct cw_endpoint *endpoint, uint32_t count);

/* The same when few records are left: true if a packet with `count` frames of puts, the first one of put `first`, may
 * be accepted: cw_reassembly_place will find the records it needs. That holds for puts with a record, and for the
 * oldest put of the flow (`first` is that of the packet's first frame of any kind), with others if `at_once`: each is
 * whole and has its turn once those before it are notified. No put of a packet waits for a put between the packet's
 * first frame and itself, so the oldest one always makes progress. */
bool cw_reassemblies_room(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t first,
                          uint32_t count, bool at_once);

/* True if some bytes of this put have arrived, but it is not done. */
bool cw_reassembly_known(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number);

/* True if all of a put has arrived, or it was cancelled, and it only waits for its turn: further frames of it are late.
 * */
bool cw_reassembly_finished(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number);

/* True if the frame agrees with earlier frames of its put: same total, lane and target, and not more bytes than the
 * total. */
bool cw_reassembly_consistent(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                              const struct cw_reassembly_frame *frame);

/* The record of an incomplete put, if the frame agrees with it; NULL: there is none, or it does not agree. */
struct cw_reassembly *cw_reassembly_partial(struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                            const struct cw_reassembly_frame *frame);

/* Records a frame whose bytes are in place, and notifies complete puts. cw_reassemblies_room must have returned true.
 * */
void cw_reassembly_place(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_reassembly_frame *frame);

/* For frames without a notification and without a predecessor (credit, requests): done at once, without a record, so
 * they pass when few records are left. True if there is memory to note `count` of them, the first one `number`. */
bool cw_reassembly_passable(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number,
                            uint32_t count);
void cw_reassembly_pass(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t number);

/* The session has ended: removes incomplete puts of a flow. Complete puts that only wait for room are still
 * notified. */
void cw_reassemblies_abort(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Notifies puts that found no room before; returns their number. */
uint32_t cw_reassemblies_deliver(struct cw_endpoint *endpoint);
