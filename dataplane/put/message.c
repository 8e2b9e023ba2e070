#include "dataplane/put/message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dataplane/put/operation.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/state/wake.h"

enum { NO_SLOT = UINT32_MAX };

static uint64_t pool_bytes(const struct cw_endpoint *endpoint)
{
    return (uint64_t)endpoint->config.pool_slot_count * endpoint->config.pool_slot_bytes;
}

int cw_messages_init(struct cw_endpoint *endpoint)
{
    struct cw_message_pool *pool = &endpoint->messages;
    uint32_t count = endpoint->config.pool_slot_count;
    pool->free_first = NO_SLOT;
    if (count == 0) {
        return CW_OK;
    }
    pool->slots = calloc(count, sizeof(*pool->slots));
    void *memory =
        mmap(NULL, pool_bytes(endpoint), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pool->slots == NULL || memory == MAP_FAILED) {
        return CW_ERROR_MEMORY;
    }
    pool->memory = memory;
    uint64_t token;
    int status = cw_region_register(endpoint, memory, pool_bytes(endpoint), CW_REGION_WRITE, &token);
    if (status != CW_OK) {
        return status;
    }
    pool->region = cw_region_of(&endpoint->regions, token);
    for (uint32_t i = count; i-- > 0;) {
        pool->slots[i].next = pool->free_first;
        pool->free_first = i;
    }
    pool->free_count = count;
    return CW_OK;
}

void cw_messages_dispose(struct cw_endpoint *endpoint)
{
    struct cw_message_pool *pool = &endpoint->messages;
    if (pool->memory != NULL) {
        munmap(pool->memory, pool_bytes(endpoint));
    }
    free(pool->slots);
    pool->memory = NULL;
    pool->slots = NULL;
}

/* Operations with credit are not ordered. NULL: no operation or number is free. */
static struct cw_operation *open_credit(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_operation_kind kind)
{
    return cw_operation_open(endpoint, flow, kind, 0,
                             CW_OPERATION_INTERNAL | cw_operation_transport(endpoint, flow, kind, 0, 0));
}

/* ---- the sender's side ---- */

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
    struct cw_credit_store *store = cw_pool_take(&endpoint->credit_stores);
    if (store != NULL) {
        memcpy(store->slots, credit->slots, credit->count * sizeof(credit->slots[0]));
        credit->store = store;
        credit->is_far = true;
    }
}

/* For how many more slots to ask; 0: none. */
static uint32_t slots_to_ask(const struct cw_flow *flow)
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

static void ask(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t more)
{
    struct cw_operation *operation = open_credit(endpoint, flow, CW_OPERATION_ASK);
    if (operation != NULL) {
        operation->bytes = more;
        flow->credit.wanted = (uint16_t)(flow->credit.wanted + more);
        cw_operation_queue_up(endpoint, operation);
    } else {
        cw_flow_wake_at(endpoint, flow, endpoint->now_ns + CW_ACK_DELAY_NS); /* try again soon */
    }
}

static void give_back(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_credit *credit = &flow->credit;
    while (credit->count > 0) {
        struct cw_operation *operation = open_credit(endpoint, flow, CW_OPERATION_RETURN);
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
            /* posted before set-up told what the peer takes: its number goes out void */
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
    uint32_t more = has_use ? slots_to_ask(flow) : 0;
    if (more > 0) {
        ask(endpoint, flow, more);
    } else if (!has_use && credit->give_back && credit->count > 0) {
        /* with nothing at hand the wish is kept: the slots meant may still be on their way */
        give_back(endpoint, flow);
    }
}

void cw_messages_take_back(struct cw_operation *operation)
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
void cw_messages_go_on(struct cw_endpoint *endpoint, struct cw_operation *operation)
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

/* ---- the owner's side ---- */

static void free_slot(struct cw_message_pool *pool, uint32_t slot)
{
    pool->slots[slot].state = CW_SLOT_FREE;
    pool->slots[slot].next = pool->free_first;
    pool->free_first = slot;
    pool->free_count++;
}

static void enlist(struct cw_message_pool *pool, struct cw_flow *flow)
{
    if (flow->credit.waiting) {
        return;
    }
    flow->credit.waiting = true;
    flow->credit.waiting_next = NULL;
    if (pool->waiting_first == NULL) {
        pool->waiting_first = flow;
    } else {
        pool->waiting_last->credit.waiting_next = flow;
    }
    pool->waiting_last = flow;
}

/* A slot that was lent to this sender is no longer: if it asked for more than there is for one, it may have another. */
static void slot_came_back(struct cw_message_pool *pool, struct cw_flow *flow)
{
    bool had_most = flow->credit.lent-- >= CW_CREDIT_MAX;
    if (had_most && flow->credit.owed > 0) {
        enlist(pool, flow);
    }
}

static void unlist_first(struct cw_message_pool *pool)
{
    pool->waiting_first->credit.waiting = false;
    pool->waiting_first = pool->waiting_first->credit.waiting_next;
}

/* Asks borrowers to give back what they do not use: a few at a time, each in its turn. */
static void recall(struct cw_endpoint *endpoint)
{
    struct cw_message_pool *pool = &endpoint->messages;
    uint32_t peers = endpoint->flows.fresh;
    uint32_t asked = 0;
    for (uint32_t looked = 0; looked < peers && asked < CW_CREDIT_BATCH; looked++) {
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, pool->recall_next++ % peers);
        if (flow->state != CW_PEER_ESTABLISHED || flow->credit.lent == 0) {
            continue;
        }
        if (flow->credit.recalled) {
            cw_flow_watch(endpoint, flow); /* it may be gone, and the slots with it */
            continue;
        }
        struct cw_operation *operation = open_credit(endpoint, flow, CW_OPERATION_RECALL);
        if (operation == NULL) {
            return;
        }
        flow->credit.recalled = true;
        flow->credit.far = 0;
        cw_operation_queue_up(endpoint, operation);
        asked++;
    }
}

/* How many slots this sender may be lent now, in one frame. */
static uint32_t grantable(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    const struct cw_credit *credit = &flow->credit;
    uint32_t half = endpoint->config.pool_slot_count / 2;
    uint32_t most = endpoint->messages.free_count;
    uint32_t room = CW_CREDIT_MAX - credit->lent;
    if (credit->lent >= CW_CREDIT_MAX) {
        most = most > half ? most - half : 0; /* the other half is for peers with few */
        room = credit->far > credit->lent ? credit->far - credit->lent : 0;
    }
    most = most < room ? most : room;
    most = most < credit->owed ? most : credit->owed;
    return most < CW_CREDIT_MAX ? most : CW_CREDIT_MAX;
}

/* Lends `count` slots, as many as grantable says or fewer. */
static void lend(struct cw_endpoint *endpoint, struct cw_flow *flow, uint16_t *slots, uint32_t count)
{
    struct cw_message_pool *pool = &endpoint->messages;
    struct cw_credit *credit = &flow->credit;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = pool->free_first;
        pool->free_first = pool->slots[slot].next;
        pool->slots[slot] = (struct cw_slot){.peer = flow->index, .next = NO_SLOT, .state = CW_SLOT_LENT};
        slots[i] = (uint16_t)slot;
    }
    pool->free_count -= count;
    uint32_t lent = endpoint->config.pool_slot_count - pool->free_count;
    pool->lent_most = lent > pool->lent_most ? lent : pool->lent_most;
    credit->owed = (uint16_t)(credit->owed - count);
    credit->lent = (uint16_t)(credit->lent + count);
    credit->recalled = false;
}

static bool grant(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_operation *operation = open_credit(endpoint, flow, CW_OPERATION_GRANT);
    if (operation == NULL) {
        return false;
    }
    operation->bytes = grantable(endpoint, flow);
    lend(endpoint, flow, operation->slots, (uint32_t)operation->bytes);
    cw_operation_queue_up(endpoint, operation);
    return true;
}

void cw_messages_grant_along(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_flow *flow = operation->flow;
    bool plenty = endpoint->messages.free_count > endpoint->config.pool_slot_count / 2;
    if (flow->credit.owed == 0 || !plenty || operation->granted_count > 0) { /* it is sent again */
        return;
    }
    uint32_t count = grantable(endpoint, flow);
    operation->granted_count = (uint8_t)(count < CW_CREDIT_ALONG ? count : CW_CREDIT_ALONG);
    lend(endpoint, flow, operation->granted, operation->granted_count);
}

void cw_messages_ungrant(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_credit *credit = &operation->flow->credit;
    for (uint32_t i = 0; i < operation->granted_count; i++) {
        const struct cw_slot *slot = &endpoint->messages.slots[operation->granted[i]];
        if (slot->state == CW_SLOT_LENT && slot->peer == operation->flow->index) { /* else it has guessed it */
            free_slot(&endpoint->messages, operation->granted[i]);
            credit->lent--;
            credit->owed++;
        }
    }
    if (operation->granted_count > 0) {
        enlist(&endpoint->messages, operation->flow);
    }
    operation->granted_count = 0;
}

/* Slots that a sender who is likely to send again is lent at once. By a queue pair a frame of credit has a work request
 * of its own, and a completion at both ends: it goes half as often, as long as there are slots for all. */
static uint32_t batch_of(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    bool is_own = flow->rdma != NULL && flow->rdma->is_up;
    bool plenty = endpoint->messages.free_count > endpoint->config.pool_slot_count / 2;
    return is_own && plenty ? 2 * CW_CREDIT_BATCH : CW_CREDIT_BATCH;
}

void cw_messages_lend_along(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    const struct cw_credit *credit = &flow->credit;
    if (batch_of(endpoint, flow) == CW_CREDIT_BATCH && credit->owed >= CW_CREDIT_BATCH / 4 && !credit->waiting &&
        flow->state == CW_PEER_ESTABLISHED && endpoint->messages.waiting_first == NULL &&
        grantable(endpoint, flow) > 0) {
        (void)grant(endpoint, flow);
    }
}

uint32_t cw_messages_turn(struct cw_endpoint *endpoint)
{
    struct cw_message_pool *pool = &endpoint->messages;
    uint32_t count = 0;
    while (pool->waiting_first != NULL && pool->free_count > 0) {
        struct cw_flow *flow = pool->waiting_first;
        /* a peer with the maximum credit waits until a slot comes back */
        bool wants = flow->state == CW_PEER_ESTABLISHED && grantable(endpoint, flow) > 0;
        bool granted = wants && grant(endpoint, flow);
        unlist_first(pool);
        if (wants && flow->credit.owed > 0) {
            enlist(pool, flow); /* behind the others: one that asks and asks must not keep them waiting */
        }
        if (wants && !granted) {
            return count; /* no operation or number is free: next turn, and another peer first */
        }
        count += granted;
    }
    if (pool->waiting_first != NULL) {
        recall(endpoint);
    }
    return count;
}

bool cw_messages_expects(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                         const struct cw_reassembly_frame *frame)
{
    const struct cw_message_pool *pool = &endpoint->messages;
    uint64_t slot = frame->offset / endpoint->config.pool_slot_bytes;
    if (slot >= endpoint->config.pool_slot_count || frame->offset % endpoint->config.pool_slot_bytes != 0 ||
        frame->total > endpoint->config.pool_slot_bytes) {
        return false;
    }
    const struct cw_slot *entry = &pool->slots[slot];
    return entry->peer == flow->index &&
           (entry->state == CW_SLOT_LENT || (entry->state == CW_SLOT_ARRIVING && entry->number == frame->number));
}

void cw_messages_reserve(struct cw_endpoint *endpoint, const struct cw_reassembly_frame *frame)
{
    struct cw_slot *entry = &endpoint->messages.slots[frame->offset / endpoint->config.pool_slot_bytes];
    entry->state = CW_SLOT_ARRIVING;
    entry->number = frame->number;
}

static inline bool is_lent(const struct cw_slot *entry)
{
    return entry->state == CW_SLOT_LENT || entry->state == CW_SLOT_ARRIVING;
}

uint32_t cw_messages_fill(struct cw_endpoint *endpoint, uint64_t offset)
{
    uint32_t slot = (uint32_t)(offset / endpoint->config.pool_slot_bytes);
    struct cw_slot *entry = &endpoint->messages.slots[slot];
    if (is_lent(entry)) {
        entry->state = CW_SLOT_FILLED;
        slot_came_back(&endpoint->messages, cw_pool_at(&endpoint->flows, entry->peer));
    }
    return slot;
}

int cw_message_release(struct cw_endpoint *endpoint, uint32_t slot)
{
    struct cw_message_pool *pool = &endpoint->messages;
    if (slot >= endpoint->config.pool_slot_count || pool->slots[slot].state != CW_SLOT_FILLED) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_flow *flow = cw_pool_at(&endpoint->flows, pool->slots[slot].peer);
    free_slot(pool, slot);
    if (endpoint->rdma != NULL) {
        endpoint->rdma->ops->slot_released(endpoint->rdma, slot);
    }
    struct cw_credit *credit = &flow->credit;
    if (flow->state != CW_PEER_ESTABLISHED) {
        return CW_OK;
    }
    /* A sender is likely to send again: lend the slot again, a few at once, unless others wait. A sender with one slot
     * gets a few more, or each of its messages would cost a packet of ours. */
    uint32_t batch = batch_of(endpoint, flow);
    uint32_t again = credit->far > batch ? credit->far : batch;
    bool plenty = pool->waiting_first == NULL || pool->free_count > endpoint->config.pool_slot_count / 2;
    if (plenty && (uint32_t)credit->lent + credit->owed < again) {
        credit->owed++;
        if (credit->lent == 0 && credit->owed < CW_CREDIT_BATCH &&
            pool->free_count > endpoint->config.pool_slot_count / 2) {
            credit->owed = CW_CREDIT_BATCH;
        }
        if (credit->owed >= batch / 2 || credit->lent == 0) {
            enlist(pool, flow);
        }
    }
    return CW_OK;
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

static bool take_grant(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_frame *frame,
                       bool check)
{
    uint16_t slots[CW_CREDIT_MAX];
    if (!slots_of(frame, slots) || frame->length + flow->credit.count > slots_at_hand_max(&flow->credit)) {
        return false;
    }
    return check || cw_messages_granted(endpoint, flow, slots, frame->length);
}

static bool take_return(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_frame *frame,
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
            free_slot(pool, slots[i]);
            slot_came_back(pool, flow);
        }
    }
    return true;
}

/* A sender on a long path, with room for them, requests more than a batch at once. It gets twice as many: the request
 * is the number of messages that had to wait, and the next time none should. */
static void take_ask(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t wanted)
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
    enlist(&endpoint->messages, flow);
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
            take_ask(endpoint, flow, frame->length);
        }
        return true;
    case CW_FRAME_GRANT:
        return take_grant(endpoint, flow, frame, check);
    case CW_FRAME_RECALL:
        if (!check) {
            credit->give_back = true;
            cw_messages_pump(endpoint, flow);
        }
        return true;
    default:
        return take_return(endpoint, flow, frame, check);
    }
}

void cw_messages_abandon(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_message_pool *pool = &endpoint->messages;
    for (uint32_t i = 0; i < endpoint->config.pool_slot_count && flow->credit.lent > 0; i++) {
        if (is_lent(&pool->slots[i]) && pool->slots[i].peer == flow->index) {
            free_slot(pool, i);
            flow->credit.lent--;
        }
    }
    bool waiting = flow->credit.waiting;
    struct cw_flow *next = flow->credit.waiting_next;
    if (flow->credit.is_far) {
        cw_pool_give(&endpoint->credit_stores, flow->credit.store);
    }
    flow->credit = (struct cw_credit){.waiting = waiting, .waiting_next = next}; /* unlisted in its turn */
}
