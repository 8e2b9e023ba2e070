/* The queue pairs of flows: created, found by their number, stopped, destroyed. */
#include <string.h>

#include "dataplane/rdma/rdma_state.h"

void rdma_restless(struct rdma *rdma, struct rdma_flow *flow)
{
    if (!flow->is_restless) {
        flow->is_restless = true;
        flow->next_restless = rdma->restless_first;
        rdma->restless_first = flow;
    }
}

static uint32_t place_of(const struct rdma *rdma, uint32_t number)
{
    return (number * 0x9e3779b1u >> 7) & rdma->number_mask;
}

struct rdma_pair *rdma_pair_find(const struct rdma *rdma, uint32_t number)
{
    struct rdma_pair *pair = rdma->by_number[place_of(rdma, number)];
    while (pair != NULL && pair->number != number) {
        pair = pair->next_by_number;
    }
    return pair;
}

bool rdma_pair_create(struct rdma *rdma, struct rdma_flow *flow, struct cw_verbs_address *address)
{
    struct rdma_pair *pair = rdma->has_failed ? NULL : cw_pool_acquire(&rdma->pairs);
    if (pair == NULL) {
        return false;
    }
    memset(pair, 0, sizeof(*pair));
    if (cw_verbs_pair_create(rdma->device, &pair->verbs, address) != CW_OK) {
        cw_pool_release(&rdma->pairs, pair);
        return false;
    }
    for (uint32_t i = 0; i < rdma->device->info.work_max; i++) {
        pair->blocks[i] = RDMA_NO_BLOCK;
    }
    pair->flow = flow;
    pair->number = address->number;
    struct rdma_pair **bucket = &rdma->by_number[place_of(rdma, pair->number)];
    pair->next_by_number = *bucket;
    *bucket = pair;
    flow->pair = pair;
    return true;
}

void rdma_pair_destroy(struct rdma *rdma, struct rdma_pair *pair)
{
    struct rdma_pair **link = &rdma->by_number[place_of(rdma, pair->number)];
    while (*link != pair) {
        link = &(*link)->next_by_number;
    }
    *link = pair->next_by_number;
    rdma->work_open -= pair->work_posted - pair->work_seen;
    cw_verbs_pair_destroy(pair->verbs);
    for (uint32_t i = 0; i < rdma->device->info.work_max; i++) {
        rdma_block_return(rdma, pair, i);
    }
    cw_pool_release(&rdma->pairs, pair);
}

void rdma_pair_break(struct rdma *rdma, struct rdma_pair *pair)
{
    if (!pair->is_broken) {
        pair->is_broken = true;
        pair->broken_ns = rdma->endpoint->now_ns;
        cw_verbs_pair_break(pair->verbs);
    }
}

bool rdma_pair_drained(const struct rdma *rdma, const struct rdma_pair *pair)
{
    uint64_t since_ns = rdma->endpoint->now_ns - pair->broken_ns;
    bool is_settled = pair->work_seen == pair->work_posted || since_ns >= RDMA_SETTLE_MAX_NS;
    return is_settled && since_ns >= rdma->device->info.settle_ns;
}

void rdma_pair_broken(struct rdma *rdma, struct rdma_flow *flow)
{
    if (flow->state == CW_RDMA_BREAKING || flow->state == CW_RDMA_BY_PACKETS) {
        return;
    }
    cw_count(rdma->endpoint, CW_COUNTER_RDMA_BROKEN, 1);
    flow->base.is_up = false;
    bool has_served = flow->base.open_count == 0 && flow->pair->received > 0;
    flow->tries = has_served ? 1 : (uint8_t)(flow->tries + 1);
    flow->state = CW_RDMA_BREAKING;
    flow->wanted = flow->tries < RDMA_TRIES ? flow->incarnation + 1 : RDMA_INCARNATION_NO;
    flow->retry_ns = rdma->endpoint->now_ns + (RDMA_RETRY_NS << flow->tries) - 2 * RDMA_RETRY_NS;
    rdma_pair_break(rdma, flow->pair);
    rdma_restless(rdma, flow);
}
