#include "dataplane/put/message.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dataplane/core/endpoint.h"

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

/* ---- the sender's side ---- */

static uint32_t waiting_messages(const struct cw_flow *flow, uint32_t count_max)
{
    uint32_t count = 0;
    for (const struct cw_operation *at = flow->sender.queue_credit.first; at != NULL && count < count_max;
         at = at->next) {
        count++;
    }
    return count;
}

static void give_back(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_credit *credit = &flow->credit;
    struct cw_operation *operation = cw_operation_open(endpoint, flow, CW_OPERATION_RETURN, 0, false, true);
    if (operation == NULL) {
        cw_timers_need(endpoint, flow, endpoint->now_ns + CW_ACK_DELAY_NS); /* try again soon */
        return;
    }
    memcpy(operation->slots, credit->slots, credit->count * sizeof(credit->slots[0]));
    operation->bytes = credit->count;
    credit->count = 0;
    credit->give_back = false;
    cw_operation_queue_up(endpoint, operation);
}

void cw_messages_pump(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_credit *credit = &flow->credit;
    struct cw_operation_queue *queue = &flow->sender.queue_credit;
    if (flow->state != CW_PEER_ESTABLISHED) {
        return;
    }
    while (queue->first != NULL) {
        struct cw_operation *operation = queue->first;
        if (flow->session.pool_token == 0 || operation->bytes > flow->session.pool_slot_bytes) {
            /* posted before set-up told what the peer takes: its number goes out void */
            cw_operation_pop(queue);
            operation->status = flow->session.pool_token == 0 ? CW_ERROR_UNSUPPORTED : CW_ERROR_ARGUMENT;
            operation->bytes = 0;
            cw_operation_queue_up(endpoint, operation);
        } else if (credit->count > 0) {
            cw_operation_pop(queue);
            operation->token = flow->session.pool_token;
            operation->offset = (uint64_t)credit->slots[--credit->count] * flow->session.pool_slot_bytes;
            cw_operation_queue_up(endpoint, operation);
        } else {
            break;
        }
    }
    uint32_t wanted = waiting_messages(flow, CW_CREDIT_BATCH);
    if (wanted > credit->wanted) {
        struct cw_operation *operation = cw_operation_open(endpoint, flow, CW_OPERATION_ASK, 0, false, true);
        if (operation != NULL) {
            operation->bytes = wanted - credit->wanted;
            credit->wanted = (uint8_t)wanted;
            cw_operation_queue_up(endpoint, operation);
        } else {
            cw_timers_need(endpoint, flow, endpoint->now_ns + CW_ACK_DELAY_NS); /* try again soon */
        }
    } else if (wanted == 0 && credit->give_back && credit->count > 0) {
        /* with nothing at hand the wish is kept: the slots meant may still be on their way */
        give_back(endpoint, flow);
    }
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
            cw_timers_watch(endpoint, flow); /* it may be gone, and the slots with it */
            continue;
        }
        struct cw_operation *operation = cw_operation_open(endpoint, flow, CW_OPERATION_RECALL, 0, false, true);
        if (operation == NULL) {
            return;
        }
        flow->credit.recalled = true;
        cw_operation_queue_up(endpoint, operation);
        asked++;
    }
}

static bool grant(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_message_pool *pool = &endpoint->messages;
    struct cw_credit *credit = &flow->credit;
    struct cw_operation *operation = cw_operation_open(endpoint, flow, CW_OPERATION_GRANT, 0, false, true);
    if (operation == NULL) {
        return false;
    }
    uint32_t count = credit->owed < pool->free_count ? credit->owed : pool->free_count;
    count = count < (uint32_t)CW_CREDIT_MAX - credit->lent ? count : (uint32_t)CW_CREDIT_MAX - credit->lent;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t slot = pool->free_first;
        pool->free_first = pool->slots[slot].next;
        pool->slots[slot] = (struct cw_slot){.peer = flow->index, .next = NO_SLOT, .state = CW_SLOT_LENT};
        operation->slots[i] = (uint16_t)slot;
    }
    pool->free_count -= count;
    uint32_t lent = endpoint->config.pool_slot_count - pool->free_count;
    pool->lent_most = lent > pool->lent_most ? lent : pool->lent_most;
    operation->bytes = count;
    credit->owed = (uint8_t)(credit->owed - count);
    credit->lent = (uint8_t)(credit->lent + count);
    credit->recalled = false;
    cw_operation_queue_up(endpoint, operation);
    return true;
}

void cw_messages_lend_along(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    const struct cw_credit *credit = &flow->credit;
    const struct cw_message_pool *pool = &endpoint->messages;
    if (credit->owed >= CW_CREDIT_BATCH / 4 && credit->lent < CW_CREDIT_MAX && !credit->waiting &&
        flow->state == CW_PEER_ESTABLISHED && pool->waiting_first == NULL && pool->free_count > 0) {
        (void)grant(endpoint, flow);
    }
}

uint32_t cw_messages_turn(struct cw_endpoint *endpoint)
{
    struct cw_message_pool *pool = &endpoint->messages;
    uint32_t count = 0;
    while (pool->waiting_first != NULL && pool->free_count > 0) {
        struct cw_flow *flow = pool->waiting_first;
        /* who has been lent the most there is comes back with a slot */
        bool wants = flow->state == CW_PEER_ESTABLISHED && flow->credit.owed > 0 && flow->credit.lent < CW_CREDIT_MAX;
        bool granted = wants && grant(endpoint, flow);
        unlist_first(pool);
        if (wants && flow->credit.owed > 0) {
            enlist(pool, flow); /* behind the others: one that asks and asks must not keep them waiting */
        }
        if (wants && !granted) {
            return count; /* no operation or number is free: next turn, and somebody else first */
        }
        count += granted;
    }
    if (pool->waiting_first != NULL) {
        recall(endpoint);
    }
    return count;
}

bool cw_messages_expects(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                         const struct cw_arrival_frame *frame)
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

void cw_messages_reserve(struct cw_endpoint *endpoint, const struct cw_arrival_frame *frame)
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
    struct cw_credit *credit = &flow->credit;
    if (flow->state != CW_PEER_ESTABLISHED) {
        return CW_OK;
    }
    /* Who has sent is likely to send again: lend the slot again, a few at once, unless others wait. Who had but one gets a few more, or each of its
     * messages would cost a packet of ours. */
    if (pool->waiting_first == NULL && credit->lent + credit->owed < CW_CREDIT_BATCH) {
        credit->owed++;
        if (credit->lent == 0 && pool->free_count > endpoint->config.pool_slot_count / 2) {
            credit->owed = CW_CREDIT_BATCH;
        }
        if (credit->owed >= CW_CREDIT_BATCH / 2 || credit->lent == 0) {
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

static bool take_grant(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_frame *frame,
                       bool check)
{
    uint16_t slots[CW_CREDIT_MAX];
    struct cw_credit *credit = &flow->credit;
    if (!slots_of(frame, slots) || frame->length + credit->count > CW_CREDIT_MAX) {
        return false;
    }
    if (!check) {
        memcpy(&credit->slots[credit->count], slots, frame->length * sizeof(slots[0]));
        credit->count = (uint8_t)(credit->count + frame->length);
        credit->wanted = credit->wanted > frame->length ? (uint8_t)(credit->wanted - frame->length) : 0;
        cw_messages_pump(endpoint, flow);
    }
    return true;
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

bool cw_messages_frame(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_frame *frame,
                       bool check)
{
    struct cw_credit *credit = &flow->credit;
    switch (frame->kind) {
    case CW_FRAME_ASK:
        if (endpoint->messages.region == NULL || frame->length == 0 || frame->length > CW_CREDIT_BATCH) {
            return false;
        }
        if (!check) {
            uint32_t owed = (uint32_t)credit->owed + frame->length;
            credit->owed = (uint8_t)(owed < CW_CREDIT_BATCH ? owed : CW_CREDIT_BATCH);
            enlist(&endpoint->messages, flow);
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
    flow->credit = (struct cw_credit){.waiting = waiting, .waiting_next = next}; /* unlisted in its turn */
}
