/* transport_puts: the transport of one rank over an endpoint of dataplane/.
 *
 * Purpose
 *   A direct put becomes a notified put into a region of the target, read from an own region without a copy. An eager
 *   put or signal becomes a message into a slot of the target's pool; so plans must be built with eager_max_bytes <=
 *   pool_slot_bytes. A multicast becomes as many of them as it has members, and completes when all have. Messages
 *   complete at once, as MPI's do, since the endpoint copies up to CW_INLINE_MAX bytes and the transport longer ones,
 *   as long as it has room: an execution may be through while they are under way. Puts of more than CW_LONG_PUT_BYTES
 *   give an event SENT; of others, and of multicasts, COMPLETE stands for it.
 *
 * Runs
 *   A transport serves one schedule, run any number of times, and no barrier is needed in between. Runs use two lanes
 *   in turn, which tells them apart: whatever comes on the other lane than the run's own is for the next run, and is
 *   kept until that one begins. Ranks are never more than one run ahead of those that they send to:
 *     - who has heard from a rank in run k - 1 knows that this rank has begun run k - 1, and may send it what belongs
 *       to run k;
 *     - a rank tells those from which it only receives that it has begun, by an empty message on the third lane. One
 *       that runs once tells nobody, and neither does one whose schedule has a barrier. A put that comes too soon is
 *       refused (CW_ERROR_AGAIN).
 *   Valid plans send directly only what the target's own run has asked for, so only messages come early.
 *
 * Invariants
 *   - It never makes others wait for slots: what the execution has no place for yet stays in slots up to
 *     `slots_kept_max`, and is copied to memory of the transport beyond that. That memory holds all messages of two
 *     runs, so nothing can block for want of room: with bounded slots alone, messages that come early could shut out
 *     the one that is waited for.
 *   - Every message slot that it is given by an event is given back once.
 *   - All memory is taken by create.
 *
 * Order of calls
 *   cw_puts_transport_create and the execution's on every rank, before any rank's first poll (what comes for a lane
 *   without a transport is lost)
 *   { poll of the execution | cw_endpoint_turn, cw_endpoint_events and cw_puts_transport_deliver of each event;
 *     cw_puts_transport_open, which posts again what was refused }*
 *     A poll or delivery that has posted something is to be followed by a turn at once: all is posted with CW_MORE, to
 *     share packets.
 *   between two runs, after the execution's CW_OK: cw_execution_reset, cw_puts_transport_begin
 *   if the execution fails: cw_puts_transport_abort until CW_OK
 *   turns and deliveries until cw_puts_transport_open is 0: all that was sent has arrived
 *   cw_puts_transport_destroy
 *   Its lanes may serve another transport once all ranks have destroyed theirs.
 *
 * Failures
 *   A put that fails ends the execution with its code. So does a rank that has gone (CW_ERROR_PEER_FAILED,
 *   CW_ERROR_PEER_RESTARTED, CW_ERROR_CLOSED), if it still owes something or is sent to; one that has done its part may
 *   go. The dataplane watches only peers that owe it an answer: who waits calls cw_puts_transport_probe now and then.
 *   cw_puts_transport_abort lets the others know that this rank has given up, which they hear as CW_ERROR_PEER_FAILED
 *   and pass on, so that nobody waits for ever.
 *
 * Thread: the owner of the endpoint, for all calls and for polling the execution. */
#pragma once

#include "collectives/execute/transport.h"
#include "dataplane/dataplane.h"

enum {
    CW_PUTS_LANES = 3, /* lanes of a transport, from the first on */
    CW_PUTS_DEFAULT_PUTS = 1024,
};

struct cw_puts_transport;

/* Where a buffer lies: in a region, from `offset` on. A token of 0: nowhere. */
struct cw_puts_place {
    uint64_t token;
    uint64_t offset;
};

/* A rank, as this endpoint reaches it. */
struct cw_puts_peer {
    uint32_t peer;                  /* its number in this endpoint (cw_peer_add); of this rank itself: not looked at */
    struct cw_puts_place places[4]; /* by enum cw_buffer: receive and scratch, in regions that may be written to */
};

struct cw_puts_transport_request {
    struct cw_endpoint *endpoint;
    const struct cw_schedule *schedule; /* validated; read by create only */
    uint32_t ranks;
    const struct cw_puts_peer *peers; /* by rank; stays the caller's, unchanged until destroy */
    const void *buffers[4];           /* own ones, by enum cw_buffer, with their sizes */
    uint64_t buffer_bytes[4];
    uint64_t regions[4];     /* tokens of own regions that hold them; 0: none, and puts from there are copied */
    uint32_t lane;           /* the first of CW_PUTS_LANES, which are this transport's alone, the same on all ranks */
    uint32_t slot_bytes;     /* pool_slot_bytes of the ranks' endpoints */
    uint32_t slots_kept_max; /* of the own pool that may wait here for the execution, all transports together less than
                                 there are; 0: all messages are copied */
    uint32_t put_count_max;  /* under way; a multicast is one. 0: CW_PUTS_DEFAULT_PUTS */
};

/* Which of `ranks` ranks a valid schedule names, those it sends to and those it waits for: named[] by rank. Others need
 * no place in `peers`. CW_OK, CW_ERROR_MEMORY. */
int cw_puts_transport_named(const struct cw_schedule *schedule, uint32_t ranks, bool *named);

/* CW_OK; CW_ERROR_ARGUMENT with a line in `error`: a message of the plan is longer than a slot, ...; CW_ERROR_LIMIT:
 * more messages than can be kept; CW_ERROR_MEMORY. */
int cw_puts_transport_create(const struct cw_puts_transport_request *request, struct cw_puts_transport **transport,
                             char *error, size_t error_bytes);

/* Gives slots back and frees; the endpoint must still be there. What is still under way may be read from buffers and
 * the transport: no turn of the endpoint any more unless cw_puts_transport_open was 0. NULL is allowed. */
void cw_puts_transport_destroy(struct cw_puts_transport *transport);

/* For cw_execution_create; stays the transport's. */
const struct cw_transport *cw_puts_transport_interface(struct cw_puts_transport *transport);

/* The next run begins. Only after the execution's CW_OK and cw_execution_reset, before its first poll of the next run.
 * */
void cw_puts_transport_begin(struct cw_puts_transport *transport);

/* Takes an event of the endpoint. CW_EVENT_PEER_UP and CW_EVENT_PEER_DOWN are to be given to all transports of the
 * endpoint, others until one does not answer CW_ERROR_NOT_FOUND. CW_OK; CW_ERROR_NOT_FOUND: the lane or the peer is
 * none of this transport's. */
int cw_puts_transport_deliver(struct cw_puts_transport *transport, const struct cw_event *event);

/* Asks those that still owe something for a sign of life, if they have not been asked yet; costs each an empty message.
 * To be called every tenth of a second or so while an execution waits. */
void cw_puts_transport_probe(struct cw_puts_transport *transport);

/* This rank gives up, and says so to the ranks it deals with. CW_OK: all has been posted; CW_ERROR_AGAIN: call again
 * after a turn. */
int cw_puts_transport_abort(struct cw_puts_transport *transport);

/* Posts messages of its own that the endpoint did not take before. Returns how many puts and messages are under way or
 * still to be posted. */
uint32_t cw_puts_transport_open(struct cw_puts_transport *transport);

/* How often something has been refused so far. If a poll of the execution has added to it, another one is due without
 * waiting for an event. */
uint64_t cw_puts_transport_refusals(const struct cw_puts_transport *transport);

/* Memory of the transport, all of it taken by create; what is kept for messages that come early is touched only if any
 * do; of copies, those that were made. */
uint64_t cw_puts_transport_memory_bytes(const struct cw_puts_transport *transport);

/* Why it failed ("rank 5: ..."); NULL: it has not. */
const char *cw_puts_transport_failure(const struct cw_puts_transport *transport);
