/* The owner's part of messages (message.h): the receive pool, and the slots that it lends. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dataplane/put/message.h"
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

void message_slot_free(struct cw_message_pool *pool, uint32_t slot)
{
    pool->slots[slot].state = CW_SLOT_FREE;
    pool->slots[slot].next = pool->free_first;
    pool->free_first = slot;
    pool->free_count++;
}

void message_borrower_add(struct cw_message_pool *pool, struct cw_flow *flow)
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
void message_slot_returned(struct cw_message_pool *pool, struct cw_flow *flow)
{
    bool had_most = flow->credit.lent-- >= CW_CREDIT_MAX;
    if (had_most && flow->credit.owed > 0) {
        message_borrower_add(pool, flow);
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
        struct cw_operation *operation = message_credit_open(endpoint, flow, CW_OPERATION_RECALL);
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
    struct cw_operation *operation = message_credit_open(endpoint, flow, CW_OPERATION_GRANT);
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
            message_slot_free(&endpoint->messages, operation->granted[i]);
            credit->lent--;
            credit->owed++;
        }
    }
    if (operation->granted_count > 0) {
        message_borrower_add(&endpoint->messages, operation->flow);
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
            message_borrower_add(pool, flow); /* behind the others: one that asks and asks must not keep them waiting */
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

uint32_t cw_messages_fill(struct cw_endpoint *endpoint, uint64_t offset)
{
    uint32_t slot = (uint32_t)(offset / endpoint->config.pool_slot_bytes);
    struct cw_slot *entry = &endpoint->messages.slots[slot];
    if (message_slot_is_lent(entry)) {
        entry->state = CW_SLOT_FILLED;
        message_slot_returned(&endpoint->messages, cw_pool_at(&endpoint->flows, entry->peer));
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
    message_slot_free(pool, slot);
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
            message_borrower_add(pool, flow);
        }
    }
    return CW_OK;
}
