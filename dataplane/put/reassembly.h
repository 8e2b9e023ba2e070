/* reassembly: reassembly records of puts at their target, from the first byte to the notification.
 *
 * Invariants
 *   - A put whose only packet has come, whose predecessor in its lane is done and for which the event queue has room
 *     needs no record: it is notified at once. All others have a record, until they are notified.
 *   - "Done" (seen in the flow's window of put numbers) means notified, or given up. Those that have their turn but
 *     find no room in the event queue wait in one queue, right behind them what waits for them in their lanes; nobody
 *     overtakes it.
 *   - The oldest put of a flow that is not done can always get a record, so that arrival never locks up. */
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
    uint64_t order; /* READY: among all that waits for room in the event queue */
    uint32_t lane_tag;
    uint16_t reply;
    uint8_t state;
    bool void_put; /* given up by the sender: not notified */
    bool detached; /* its session has ended meanwhile */
};

int cw_reassemblies_init(struct cw_reassemblies *reassemblies, uint32_t count);
void cw_reassemblies_dispose(struct cw_reassemblies *reassemblies);

/* What one frame says of a put. */
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

/* True if there are records for `count` puts whatever they wait for. */
bool cw_reassemblies_plenty(const struct cw_endpoint *endpoint, uint32_t count);

/* The same where records are short: true if a packet with `count` frames of puts, the first one of put `first`, may be
 * accepted: cw_reassembly_place will find the records it needs. Only the oldest put of the flow goes on (`first` is
 * that of the packet's first frame of any kind), with others if `at_once`: each is whole and has its turn once those
 * before it are told of. And what has a record already. Senders put nothing into one packet that waits for a put
 * between its first frame and itself, so that this always gets on. */
bool cw_reassemblies_room(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t first,
                          uint32_t count, bool at_once);

/* True if something of this put is here, but it is not done. */
bool cw_reassembly_known(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number);

/* True if all of a put is here, or it was given up, and it only waits for its turn: what still comes of it is late. */
bool cw_reassembly_finished(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number);

/* True if the frame fits what is known of its put: same total, lane and target, and not more bytes than the total. */
bool cw_reassembly_consistent(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                              const struct cw_reassembly_frame *frame);

/* The record of a put of which bytes are missing, if the frame fits it; NULL: there is none, or it does not. */
struct cw_reassembly *cw_reassembly_partial(struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                            const struct cw_reassembly_frame *frame);

/* Takes note of a frame whose bytes are in place, and notifies what is complete. cw_reassemblies_room has said yes. */
void cw_reassembly_place(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_reassembly_frame *frame);

/* Frames that no application is told of and that wait for nobody (credit, requests): done at once, without a record, so
 * that they come through where records are short. True if there is memory to note `count` of them, the first one
 * `number`. */
bool cw_reassembly_passable(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t number,
                            uint32_t count);
void cw_reassembly_pass(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t number);

/* The session is over: forgets what has half arrived from a flow. What is complete and only waits for room is still
 * notified. */
void cw_reassemblies_abort(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Notifies those for which there was no room; returns how many. */
uint32_t cw_reassemblies_deliver(struct cw_endpoint *endpoint);
