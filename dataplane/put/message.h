/* Messages: small puts into the receiver's pool, one slot each, by credit.
 *
 * The pool has the same size whatever the number of peers. A slot is free, lent (a sender may put into it) or filled
 * (the application reads it). A sender without a slot asks (ASK); the owner lends some (GRANT), asks idle borrowers to
 * give back (RECALL) when others wait, and gets the unused ones back (RETURN). A slot that the application releases is
 * lent to the same sender again unless others wait.
 *
 * CW_CREDIT_MAX slots keep a LAN busy, but no long path. There a sender that runs short requests as many as it has
 * messages waiting, at least CW_CREDIT_FAR_ASK, up to CW_CREDIT_FAR_MAX, and is lent as many again from then on (as
 * receivers' windows grow by the data of a round trip, Fisk and Feng 2001). Slots lent beyond CW_CREDIT_MAX leave half
 * of the pool free, so memory is bounded as before and no other peer waits for it; a RECALL ends it.
 *
 * Invariant: a slot is in exactly one place: the owner's free list, one sender's list, one message in flight, or the
 * application's hands. */
#pragma once

#include "dataplane/put/reassembly.h"

int cw_messages_init(struct cw_endpoint *endpoint);
void cw_messages_dispose(struct cw_endpoint *endpoint);

/* Sender: gives waiting messages their slots, and asks for more where they do not suffice. */
void cw_messages_pump(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Sender: a message that has a slot and has not been sent waits for one again. */
void cw_messages_reclaim(struct cw_operation *operation);

/* Sender: a message that waits for a slot is not held back any more. */
void cw_messages_resume(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* Sender and owner: a credit frame has come. `check` only validates it. False: malformed. */
bool cw_messages_frame(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_frame *frame,
                       bool check);

/* Owner: true if a put into the pool goes to a slot that is lent to this flow, and stays within it. */
bool cw_messages_expects(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                         const struct cw_reassembly_frame *frame);

/* Owner: the put that was expected has a record, and its slot is for no other one. */
void cw_messages_reserve(struct cw_endpoint *endpoint, const struct cw_reassembly_frame *frame);

/* Owner: the message at this offset of the pool is complete; returns its slot, which is the application's from now
 * on. */
uint32_t cw_messages_fill(struct cw_endpoint *endpoint, uint64_t offset);

/* Both: the session has ended. Slots lent to the flow are free again, those borrowed are forgotten. */
void cw_messages_abandon(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Owner: lends what is owed to a peer that something is sent to now, in the same packet. */
void cw_messages_lend_along(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Owner: the same in a message that leaves by a queue pair, with the slots owned by its operation until it is done; it
 * may be sent again. Packets have no such field: slots lent are taken back before they carry the message. */
void cw_messages_grant_along(struct cw_endpoint *endpoint, struct cw_operation *operation);
void cw_messages_ungrant(struct cw_endpoint *endpoint, struct cw_operation *operation);
/* Sender: `count` slots of the peer's are lent to us. False: more than can be. */
bool cw_messages_granted(struct cw_endpoint *endpoint, struct cw_flow *flow, const uint16_t *slots, uint32_t count);

/* Owner: lends to waiting peers, as far as slots, operations and numbers allow. Once a turn. */
uint32_t cw_messages_turn(struct cw_endpoint *endpoint);

/* ---- between message.c and pool.c ---- */

static inline bool message_slot_is_lent(const struct cw_slot *entry)
{
    return entry->state == CW_SLOT_LENT || entry->state == CW_SLOT_ARRIVING;
}

/* An operation for a frame about slots, which is not ordered with others. NULL: no operation or number is free. */
struct cw_operation *message_credit_open(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                         enum cw_operation_kind kind);
/* The slot is in the free list again. */
void message_slot_free(struct cw_message_pool *pool, uint32_t slot);
/* The flow has one lent slot less. */
void message_slot_returned(struct cw_message_pool *pool, struct cw_flow *flow);
/* Puts a flow that wants slots into the list of cw_messages_turn. */
void message_borrower_add(struct cw_message_pool *pool, struct cw_flow *flow);
