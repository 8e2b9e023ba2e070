#include "dataplane/put/message.h"

#include <string.h>

#include "dataplane/put/operation.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/state/wake.h"

/* Operations with credit are not ordered. NULL: no operation or number is free. */
struct cw_operation *message_credit_open(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                         enum cw_operation_kind kind)
{
    return cw_operation_open(endpoint, flow, kind, 0,
                             CW_OPERATION_INTERNAL | cw_operation_transport(endpoint, flow, kind, 0, 0));
}

static uint16_t *slots_at_hand(struct cw_credit *credit)
{
    return credit->is_far ? credit->store->slots : credit->slots;
}

static uint32_t slots_at_hand_max(const struct cw_credit *credit)
{
    return credit->is_far ? CW_CREDIT_FAR_MAX : CW_CREDIT_MAX;
}

/* A sender that runs short on a long path makes room for more slots, if there is any: if it wants more than a batch, or
 * the slots lent before do not suffice. */
static void look_far(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_credit *credit = &flow->credit;
    uint32_t enough = credit->was_lent ? 0 : CW_CREDIT_BATCH;
    if (credit->is_far || flow->sender.queue_credit_count <= enough || flow->round_trip.smoothed_ns == 0 ||
        flow->round_trip.min_ns < CW_CREDIT_FAR_NS) {
        return;
    }
    struct cw_credit_store *store = cw_pool_acquire(&endpoint->credit_stores);
    if (store != NULL) {
        memcpy(store->slots, credit->slots, credit->count * sizeof(credit->slots[0]));
        credit->store = store;
        credit->is_far = true;
    }
}

/* For how many more slots to ask; 0: none. */
static uint32_t slots_to_request(const struct cw_flow *flow)
{
    const struct cw_credit *credit = &flow->credit;
    uint32_t waiting = flow->sender.queue_credit_count;
    uint32_t most = credit->is_far ? CW_CREDIT_FAR_MAX : CW_CREDIT_BATCH;
    waiting = waiting < most ? waiting : most;
    if (waiting <= credit->wanted) {
        return 0;
    }
    uint32_t more = waiting - credit->wanted;
    if (credit->is_far && more < CW_CREDIT_FAR_ASK) {
        more = (uint32_t)credit->wanted + CW_CREDIT_FAR_ASK <= most ? CW_CREDIT_FAR_ASK : 0;
    }
    return more;
}

static void credit_request(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t more)
{
    struct cw_operation *operation = message_credit_open(endpoint, flow, CW_OPERATION_ASK);
    if (operation != NULL) {
        operation->bytes = more;
        flow->credit.wanted = (uint16_t)(flow->credit.wanted + more);
        cw_operation_queue_up(endpoint, operation);
    } else {
        cw_flow_wake_at(endpoint, flow, endpoint->now_ns + CW_ACK_DELAY_NS); /* try again soon */
    }
}

static void credit_return(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_credit *credit = &flow->credit;
    while (credit->count > 0) {
        struct cw_operation *operation = message_credit_open(endpoint, flow, CW_OPERATION_RETURN);
        if (operation == NULL) {
            cw_flow_wake_at(endpoint, flow, endpoint->now_ns + CW_ACK_DELAY_NS); /* try again soon */
            return;
        }
        uint32_t count = credit->count < CW_CREDIT_MAX ? credit->count : CW_CREDIT_MAX;
        credit->count = (uint16_t)(credit->count - count);
        memcpy(operation->slots, slots_at_hand(credit) + credit->count, count * sizeof(credit->slots[0]));
        operation->bytes = count;
        cw_operation_queue_up(endpoint, operation);
    }
    credit->give_back = false;
}

/* The first one that is not held back: a slot that waits for another operation would keep others waiting. NULL:
 * none. */
static struct cw_operation *first_to_go(const struct cw_operation_queue *queue)
{
    struct cw_operation *operation = queue->first;
    while (operation != NULL && operation->is_held) {
        operation = operation->next;
    }
    return operation;
}

/* The last message of a queue that has a slot and has not begun to leave; NULL: none. */
static struct cw_operation *last_waiting(const struct cw_operation_queue *queue)
{
    struct cw_operation *last = NULL;
    for (struct cw_operation *at = queue->first; at != NULL; at = at->next) {
        last = at->kind == CW_OPERATION_MESSAGE && at->position == 0 && at->status == 0 ? at : last;
    }
    return last;
}

/* Where only the oldest operation may go, and it is a message without a slot, it gets that of a later one. Messages
 * that were held back, or were a queue pair's, get their numbers later than their slots. */
static void serve_oldest(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_sender *sender = &flow->sender;
    struct cw_operation *oldest = cw_flow_restrained(endpoint, flow) ? cw_flow_oldest(flow) : NULL;
    if (oldest == NULL || oldest->kind != CW_OPERATION_MESSAGE || oldest->sent || oldest->token != 0 ||
        oldest->status < 0) {
        return;
    }
    struct cw_operation_queue *queue = &sender->queue_short;
    struct cw_operation *later = last_waiting(queue);
    if (later == NULL) {
        queue = &sender->queue_bulk;
        later = last_waiting(queue);
    }
    if (later == NULL || !cw_operation_queue_remove(&sender->queue_credit, oldest)) {
        return;
    }
    (void)cw_operation_queue_remove(queue, later);
    oldest->token = later->token;
    oldest->offset = later->offset;
    later->token = later->offset = 0;
    later->next = sender->queue_credit.first; /* later messages in its lane must not have a slot before it has */
    sender->queue_credit.last = later->next == NULL ? later : sender->queue_credit.last;
    sender->queue_credit.first = later;
    cw_operation_queue_up(endpoint, oldest);
}

void cw_messages_pump(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_credit *credit = &flow->credit;
    struct cw_operation_queue *queue = &flow->sender.queue_credit;
    if (flow->state != CW_PEER_ESTABLISHED) {
        return;
    }
    struct cw_operation *operation;
    while ((operation = first_to_go(queue)) != NULL) {
        if (flow->session.pool_token == 0 || operation->bytes > flow->session.pool_slot_bytes) {
            /* posted before set-up reported the peer's limits: its number goes out void */
            operation->status = flow->session.pool_token == 0 ? CW_ERROR_UNSUPPORTED : CW_ERROR_ARGUMENT;
            operation->bytes = 0;
        } else if (credit->count > 0) {
            operation->token = flow->session.pool_token;
            operation->offset = (uint64_t)slots_at_hand(credit)[--credit->count] * flow->session.pool_slot_bytes;
        } else {
            break;
        }
        (void)cw_operation_queue_remove(queue, operation);
        flow->sender.queue_credit_count--;
        cw_operation_queue_up(endpoint, operation);
    }
    if (queue->first != NULL && flow->rdma != NULL) {
        serve_oldest(endpoint, flow);
    }
    look_far(endpoint, flow);
    bool has_use = first_to_go(queue) != NULL;
    uint32_t more = has_use ? slots_to_request(flow) : 0;
    if (more > 0) {
        credit_request(endpoint, flow, more);
    } else if (!has_use && credit->give_back && credit->count > 0) {
        /* with nothing at hand the wish is kept: the slots meant may still be on their way */
        credit_return(endpoint, flow);
    }
}

void cw_messages_reclaim(struct cw_operation *operation)
{
    struct cw_flow *flow = operation->flow;
    struct cw_credit *credit = &flow->credit;
    if (credit->count <
        slots_at_hand_max(credit)) { /* it came from there; a peer that lends more than it may loses it */
        slots_at_hand(credit)[credit->count++] = (uint16_t)(operation->offset / flow->session.pool_slot_bytes);
    }
    operation->token = operation->offset = 0;
    cw_operation_push(&flow->sender.queue_credit, operation);
    flow->sender.queue_credit_count++;
}

/* Slots go to messages in the order of their numbers, or a later one might have the slot that the oldest waits for. */
void cw_messages_resume(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_operation_queue *queue = &operation->flow->sender.queue_credit;
    if (!operation->by_rdma && cw_operation_queue_remove(queue, operation)) {
        struct cw_operation *before = NULL;
        struct cw_operation *next = queue->first;
        while (next != NULL && next->number < operation->number) { /* those without a number are passed */
            before = next;
            next = next->next;
        }
        operation->next = next;
        *(before != NULL ? &before->next : &queue->first) = operation;
        queue->last = next == NULL ? operation : queue->last;
    }
    cw_messages_pump(endpoint, operation->flow);
}

/* ---- frames ---- */

static bool slots_of(const struct cw_wire_frame *frame, uint16_t slots[CW_CREDIT_MAX])
{
    if (frame->length > CW_CREDIT_MAX) {
        return false;
    }
    memcpy(slots, frame + 1, frame->length * sizeof(uint16_t));
    return true;
}

bool cw_messages_granted(struct cw_endpoint *endpoint, struct cw_flow *flow, const uint16_t *slots, uint32_t count)
{
    struct cw_credit *credit = &flow->credit;
    if (count + credit->count > slots_at_hand_max(credit)) {
        return false;
    }
    memcpy(slots_at_hand(credit) + credit->count, slots, count * sizeof(slots[0]));
    credit->count = (uint16_t)(credit->count + count);
    credit->was_lent = true;
    credit->wanted = credit->wanted > count ? (uint16_t)(credit->wanted - count) : 0;
    cw_messages_pump(endpoint, flow);
    return true;
}

static bool grant_accept(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_frame *frame,
                         bool check)
{
    uint16_t slots[CW_CREDIT_MAX];
    if (!slots_of(frame, slots) || frame->length + flow->credit.count > slots_at_hand_max(&flow->credit)) {
        return false;
    }
    return check || cw_messages_granted(endpoint, flow, slots, frame->length);
}

static bool return_accept(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_frame *frame,
                          bool check)
{
    uint16_t slots[CW_CREDIT_MAX];
    struct cw_message_pool *pool = &endpoint->messages;
    if (!slots_of(frame, slots)) {
        return false;
    }
    for (uint32_t i = 0; i < frame->length; i++) {
        if (slots[i] >= endpoint->config.pool_slot_count || pool->slots[slots[i]].state != CW_SLOT_LENT ||
            pool->slots[slots[i]].peer != flow->index) {
            return false;
        }
        if (!check) {
            message_slot_free(pool, slots[i]);
            message_slot_returned(pool, flow);
        }
    }
    return true;
}

/* A sender on a long path, with room for them, requests more than a batch at once. It gets twice as many: the request
 * is the number of messages that had to wait, and the next time none should. */
static void request_accept(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t wanted)
{
    struct cw_credit *credit = &flow->credit;
    if (wanted > CW_CREDIT_BATCH) {
        wanted *= 2;
        uint32_t far = (uint32_t)credit->lent + credit->owed + wanted;
        far = far < CW_CREDIT_FAR_MAX ? far : CW_CREDIT_FAR_MAX;
        credit->far = far > credit->far ? (uint16_t)far : credit->far;
    }
    uint32_t owed = credit->owed + wanted; /* never less than the peer waits for: it does not ask again */
    credit->owed = (uint16_t)(owed < CW_CREDIT_FAR_MAX ? owed : CW_CREDIT_FAR_MAX);
    message_borrower_add(&endpoint->messages, flow);
}

bool cw_messages_frame(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_frame *frame,
                       bool check)
{
    struct cw_credit *credit = &flow->credit;
    switch (frame->kind) {
    case CW_FRAME_ASK:
        if (endpoint->messages.region == NULL || frame->length == 0 || frame->length > CW_CREDIT_FAR_MAX) {
            return false;
        }
        if (!check) {
            request_accept(endpoint, flow, frame->length);
        }
        return true;
    case CW_FRAME_GRANT:
        return grant_accept(endpoint, flow, frame, check);
    case CW_FRAME_RECALL:
        if (!check) {
            credit->give_back = true;
            cw_messages_pump(endpoint, flow);
        }
        return true;
    default:
        return return_accept(endpoint, flow, frame, check);
    }
}

void cw_messages_abandon(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_message_pool *pool = &endpoint->messages;
    for (uint32_t i = 0; i < endpoint->config.pool_slot_count && flow->credit.lent > 0; i++) {
        if (message_slot_is_lent(&pool->slots[i]) && pool->slots[i].peer == flow->index) {
            message_slot_free(pool, i);
            flow->credit.lent--;
        }
    }
    bool waiting = flow->credit.waiting;
    struct cw_flow *next = flow->credit.waiting_next;
    if (flow->credit.is_far) {
        cw_pool_release(&endpoint->credit_stores, flow->credit.store);
    }
    flow->credit = (struct cw_credit){.waiting = waiting, .waiting_next = next}; /* unlisted in its turn */
}
