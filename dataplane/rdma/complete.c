/* Completions: own work, and arrivals by queue pairs. */
#include <assert.h>
#include <string.h>

#include "dataplane/put/message.h"
#include "dataplane/put/operation.h"
#include "dataplane/rdma/rdma_state.h"

/* ---- own work ---- */

/* All work below this number is done: operations that it was the last of are complete. */
static void work_done(struct rdma *rdma, struct rdma_pair *pair, uint32_t end)
{
    for (; pair->work_done != end; pair->work_done++) {
        rdma_block_return(rdma, pair, pair->work_done);
    }
    struct rdma_flow *flow = pair->flow;
    if (flow == NULL || pair != flow->pair) {
        return;
    }
    while (flow->posted.first != NULL && (int32_t)(end - flow->posted.first->work_end) >= 0) {
        struct cw_operation *operation = cw_operation_pop(&flow->posted);
        cw_operation_done(rdma->endpoint, operation, operation->status);
        flow->tries = 0;
    }
    rdma_wake(rdma, flow);
}

/* The peer's device has refused work: the operation that it belongs to is the oldest one. */
static void work_rejected(struct rdma *rdma, struct rdma_flow *flow)
{
    bool is_posted = flow->posted.first != NULL;
    struct cw_operation *operation = cw_operation_pop(is_posted ? &flow->posted : &flow->queue);
    if (operation != NULL) {
        cw_operation_done(rdma->endpoint, operation, CW_ERROR_REMOTE_ACCESS);
    }
}

static void work_completed(struct rdma *rdma, const struct cw_verbs_completion *completion)
{
    struct rdma_pair *pair = rdma_pair_find(rdma, completion->pair);
    if (pair == NULL) {
        return;
    }
    uint32_t end = completion->id + 1;
    if ((int32_t)(end - pair->work_seen) > 0) {
        rdma->work_open -= end - pair->work_seen;
        pair->work_seen = end;
    }
    if (completion->status == CW_VERBS_OK) {
        work_done(rdma, pair, end);
        return;
    }
    if (pair->is_broken || pair->flow == NULL) {
        return;
    }
    struct rdma_flow *flow = pair->flow;
    work_done(rdma, pair, completion->id); /* earlier work requests have been carried out */
    if (completion->status == CW_VERBS_REFUSED) {
        work_rejected(rdma, flow);
    }
    rdma_pair_broken(rdma, flow);
}

/* ---- what comes ---- */

/* True if an event has to wait: for room, or behind others that do. */
static bool has_to_wait(const struct cw_endpoint *endpoint, uint64_t order)
{
    const struct cw_reassembly *ready = endpoint->reassemblies.ready_first;
    return (endpoint->event_first != NULL && endpoint->event_order < order) || (ready != NULL && ready->order < order);
}

/* Gives an event; `buffer` is the device's again then. False: no room, or others go first. */
static bool event_post(struct rdma *rdma, const struct cw_event *event, uint64_t order, uint32_t buffer)
{
    struct cw_events *events = &rdma->endpoint->events;
    struct cw_event *place = has_to_wait(rdma->endpoint, order) ? NULL : cw_events_reserve(events);
    if (place == NULL) {
        return false;
    }
    *place = *event;
    cw_events_publish(events);
    if (buffer != RDMA_NO_BUFFER) {
        rdma_buffer_release(rdma, buffer);
    }
    return true;
}

/* Gives an event, or keeps it until there is room. */
static void notify(struct rdma *rdma, const struct cw_event *event, uint32_t buffer)
{
    struct cw_endpoint *endpoint = rdma->endpoint;
    if (rdma->notice_count == 0 && event_post(rdma, event, UINT64_MAX, buffer)) {
        return;
    }
    assert(rdma->notice_count < rdma->buffer_count); /* each has a buffer, or is of a message in one */
    uint32_t index = (rdma->notice_first + rdma->notice_count++) % rdma->buffer_count;
    rdma->notices[index] = (struct rdma_notice){.event = *event, .order = endpoint->notify_order++, .buffer = buffer};
    endpoint->rdma_order = rdma->notices[rdma->notice_first].order;
}

uint32_t rdma_deliver(struct cw_rdma *base)
{
    struct rdma *rdma = (struct rdma *)base;
    struct cw_endpoint *endpoint = rdma->endpoint;
    uint32_t count = 0;
    while (rdma->notice_count > 0) {
        const struct rdma_notice *notice = &rdma->notices[rdma->notice_first];
        if (!event_post(rdma, &notice->event, notice->order, notice->buffer)) {
            break;
        }
        rdma->notice_first = (rdma->notice_first + 1) % rdma->buffer_count;
        rdma->notice_count--;
        count++;
    }
    endpoint->rdma_order = rdma->notice_count > 0 ? rdma->notices[rdma->notice_first].order : UINT64_MAX;
    return count;
}

/* A message for a slot that was lent to this peer. False: it was not. */
static bool message_arrive(struct rdma *rdma, struct rdma_flow *flow, const struct cw_verbs_completion *completion)
{
    struct cw_endpoint *endpoint = rdma->endpoint;
    const struct rdma_header *header = rdma_buffer(rdma, completion->id);
    uint32_t bytes = completion->bytes - (uint32_t)sizeof(*header);
    uint64_t offset = (uint64_t)header->slot * endpoint->config.pool_slot_bytes;
    const struct cw_reassembly_frame frame = {.offset = offset, .total = bytes, .number = UINT64_MAX};
    uint32_t granted = header->granted_count;
    if (endpoint->messages.region == NULL || !cw_messages_expects(endpoint, flow->flow, &frame) ||
        granted > CW_CREDIT_ALONG) {
        return false;
    }
    if (granted > 0 && !cw_messages_granted(endpoint, flow->flow, header->granted, granted)) {
        return false;
    }
    uint32_t slot = cw_messages_fill(endpoint, offset);
    rdma->buffer_of_slot[slot] = completion->id;
    const struct cw_event event = {.kind = CW_EVENT_MESSAGE,
                                   .peer = flow->flow->index,
                                   .lane_tag = completion->immediate,
                                   .bytes = bytes,
                                   .data = header + 1,
                                   .slot = slot};
    notify(rdma, &event, RDMA_NO_BUFFER);
    return true;
}

static bool credit_arrive(struct rdma *rdma, struct rdma_flow *flow, const struct rdma_header *header, uint32_t bytes)
{
    struct cw_wire_frame frame;
    if (bytes < sizeof(*header) + sizeof(frame)) {
        return false;
    }
    memcpy(&frame, header + 1, sizeof(frame));
    bool has_slots = frame.kind == CW_FRAME_GRANT || frame.kind == CW_FRAME_RETURN;
    const struct cw_wire_frame *place = (const struct cw_wire_frame *)(header + 1);
    if (frame.kind < CW_FRAME_ASK || frame.kind > CW_FRAME_RETURN ||
        bytes != sizeof(*header) + sizeof(frame) + (has_slots ? frame.length * sizeof(uint16_t) : 0) ||
        !cw_messages_frame(rdma->endpoint, flow->flow, place, true)) {
        return false;
    }
    return cw_messages_frame(rdma->endpoint, flow->flow, place, false);
}

/* A message arrived in a buffer. Sets *keeps if the buffer stays the application's. False: malformed. */
static bool sent_arrive(struct rdma *rdma, struct rdma_flow *flow, const struct cw_verbs_completion *completion,
                        bool *keeps)
{
    const struct rdma_header *header = rdma_buffer(rdma, completion->id);
    if (completion->bytes < sizeof(*header)) {
        return false;
    }
    switch (header->kind) {
    case RDMA_MESSAGE_READY:
        rdma_connect_ready(rdma, flow);
        return true;
    case RDMA_MESSAGE_SLOT:
        flow->pair->received++;
        *keeps = message_arrive(rdma, flow, completion);
        return *keeps;
    case RDMA_MESSAGE_CREDIT:
        flow->pair->received++;
        return credit_arrive(rdma, flow, header, completion->bytes);
    default:
        return false;
    }
}

static void receive_completed(struct rdma *rdma, const struct cw_verbs_completion *completion)
{
    struct rdma_pair *pair = rdma_pair_find(rdma, completion->pair);
    struct rdma_flow *flow = pair != NULL ? pair->flow : NULL;
    bool keeps = false;
    if (flow != NULL && completion->status == CW_VERBS_OK) {
        cw_count(rdma->endpoint, CW_COUNTER_RDMA_IN, 1);
        if (completion->is_write) {
            pair->received++;
            cw_count(rdma->endpoint, CW_COUNTER_PUTS_ARRIVED, 1);
            const struct cw_event event = {.kind = CW_EVENT_PUT,
                                           .peer = flow->flow->index,
                                           .lane_tag = completion->immediate,
                                           .bytes = completion->bytes};
            notify(rdma, &event, completion->id);
            keeps = true;
        } else if (!sent_arrive(rdma, flow, completion, &keeps)) {
            cw_count(rdma->endpoint, CW_COUNTER_DROP_MALFORMED, 1);
        }
    }
    if (!keeps) {
        rdma_buffer_release(rdma, completion->id);
    }
}

/* ---- a turn ---- */

uint32_t rdma_fetch(struct cw_rdma *base)
{
    struct rdma *rdma = (struct rdma *)base;
    uint32_t count = 0;
    for (uint32_t queue = 0; queue < CW_VERBS_QUEUES; queue++) {
        struct rdma_fetched *fetched = &rdma->fetched[queue];
        bool is_of_use = queue == CW_VERBS_SENT        ? rdma->work_open > 0
                         : queue == CW_VERBS_DATAGRAMS ? rdma_has_datagrams(rdma)
                                                       : true;
        if (fetched->count < CW_VERBS_BURST && is_of_use) { /* behind what an earlier look has found */
            fetched->count +=
                cw_verbs_poll(rdma->device, queue, fetched->list + fetched->count, CW_VERBS_BURST - fetched->count);
        }
        count += fetched->count;
    }
    return count;
}

/* At most the number of the device's buffers, which it gets back afterwards. Fetched completions are from before the
 * clock was read: to find a pair drained there must be a poll after that. */
uint32_t rdma_poll_all(struct rdma *rdma, enum cw_verbs_queue queue, rdma_completion_handler take)
{
    struct rdma_fetched *fetched = &rdma->fetched[queue];
    bool has_broken = rdma->restless_first != NULL || rdma->spent_first != NULL;
    uint32_t total = 0;
    uint32_t count = fetched->count;
    fetched->count = 0;
    take(rdma, fetched->list, count);
    while (count == CW_VERBS_BURST || has_broken) {
        has_broken = false;
        total += count;
        count = cw_verbs_poll(rdma->device, queue, fetched->list, CW_VERBS_BURST);
        take(rdma, fetched->list, count);
    }
    return total + count;
}

static void work_dispatch(struct rdma *rdma, const struct cw_verbs_completion *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        work_completed(rdma, &list[i]);
    }
}

static void receive_dispatch(struct rdma *rdma, const struct cw_verbs_completion *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        receive_completed(rdma, &list[i]);
    }
}

uint32_t rdma_complete_turn(struct rdma *rdma)
{
    uint32_t count = rdma_poll_all(rdma, CW_VERBS_SENT, work_dispatch);
    rdma_feed(rdma);
    count += rdma_poll_all(rdma, CW_VERBS_RECEIVED, receive_dispatch);
    return count;
}
