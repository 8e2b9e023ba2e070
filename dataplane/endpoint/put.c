/* Posting: puts, messages and gets, as the application calls them. */
#include <assert.h>
#include <string.h>

#include "dataplane/endpoint/turn.h"
#include "dataplane/flow/session.h"
#include "dataplane/put/get.h"
#include "dataplane/put/message.h"
#include "dataplane/put/operation.h"
#include "dataplane/state/endpoint.h"

/* Sets the source of an operation: small ones are copied into it. */
static void set_source(struct cw_operation *operation, const struct cw_source *source, uint64_t bytes,
                       struct cw_region *region)
{
    operation->bytes = bytes;
    if (source->kind == CW_SOURCE_CONTIGUOUS && bytes <= CW_INLINE_MAX) {
        operation->is_inline = true;
        if (bytes > 0) {
            memcpy(operation->bytes_inline, source->contiguous.data, bytes);
        }
        return;
    }
    operation->source = *source;
    operation->cursor = (struct cw_source_cursor){0};
    if (region != NULL) {
        operation->region = region;
        region->users++;
    }
}

/* The region a source says it lies in. False: it does not. */
static bool source_region(const struct cw_endpoint *endpoint, const struct cw_source *source, struct cw_region **region)
{
    *region = NULL;
    if (source->region == 0) {
        return true;
    }
    *region = cw_region_of(&endpoint->regions, source->region);
    return *region != NULL && cw_source_within(source, (*region)->base, (*region)->bytes);
}

#ifdef CW_DEBUG_OVERLAP
static bool overlaps_one(const struct cw_operation *first, uint64_t token, uint64_t offset, uint64_t bytes)
{
    for (const struct cw_operation *at = first; at != NULL; at = at->open_next) {
        if (at->kind == CW_OPERATION_PUT && !at->complete && at->token == token && bytes > 0 && at->bytes > 0 &&
            at->offset < offset + bytes && offset < at->offset + at->bytes) {
            return true;
        }
    }
    return false;
}

static bool overlaps_open(const struct cw_flow *flow, uint64_t token, uint64_t offset, uint64_t bytes)
{
    return overlaps_one(flow->sender.open_first, token, offset, bytes) ||
           (flow->rdma != NULL && overlaps_one(flow->rdma->open_first, token, offset, bytes));
}
#endif

int cw_put(struct cw_endpoint *endpoint, const struct cw_put *put)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, put->peer);
    uint64_t bytes;
    if (flow == NULL || put->region == 0 ||
        (put->flags & ~(uint32_t)(CW_SIGNAL | CW_MORE | CW_ALONE | CW_SIGNAL_SENT)) != 0 ||
        !cw_source_measure(&put->source, &bytes)) {
        return CW_ERROR_ARGUMENT;
    }
    if (flow->state == CW_PEER_FAILED) {
        return CW_ERROR_PEER_FAILED;
    }
    struct cw_region *region;
    if (!source_region(endpoint, &put->source, &region)) {
        return CW_ERROR_NOT_FOUND;
    }
#ifdef CW_DEBUG_OVERLAP
    if (overlaps_open(flow, put->region, put->offset, bytes)) {
        cw_count(endpoint, CW_COUNTER_OVERLAPS, 1);
        return CW_ERROR_OVERLAP;
    }
#endif
    uint32_t transport = cw_operation_transport(endpoint, flow, CW_OPERATION_PUT, put->region, 0);
    struct cw_operation *operation =
        cw_operation_open(endpoint, flow, CW_OPERATION_PUT, put->lane_tag, CW_OPERATION_ORDERED | transport);
    if (operation == NULL) {
        return CW_ERROR_AGAIN;
    }
    operation->token = put->region;
    operation->offset = put->offset;
    operation->context = put->context;
    operation->signal = (put->flags & CW_SIGNAL) != 0;
    operation->alone = (put->flags & CW_ALONE) != 0;
    operation->signal_sent = (put->flags & CW_SIGNAL_SENT) != 0;
    set_source(operation, &put->source, bytes, region);
    cw_count(endpoint, CW_COUNTER_PUTS_POSTED, 1);
    cw_operation_queue_up(endpoint, operation);
    if (flow->state != CW_PEER_ESTABLISHED) {
        cw_session_start(endpoint, flow);
    }
    cw_endpoint_push(endpoint, put->flags);
    return CW_OK;
}

int cw_message_send(struct cw_endpoint *endpoint, const struct cw_message *message)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, message->peer);
    uint64_t bytes;
    if (flow == NULL || (message->flags & ~(uint32_t)(CW_SIGNAL | CW_MORE)) != 0 ||
        !cw_source_measure(&message->source, &bytes)) {
        return CW_ERROR_ARGUMENT;
    }
    if (flow->state == CW_PEER_FAILED) {
        return CW_ERROR_PEER_FAILED;
    }
    if (flow->state == CW_PEER_ESTABLISHED &&
        (flow->session.pool_token == 0 || bytes > flow->session.pool_slot_bytes)) {
        return flow->session.pool_token == 0 ? CW_ERROR_UNSUPPORTED : CW_ERROR_ARGUMENT;
    }
    struct cw_region *region;
    if (!source_region(endpoint, &message->source, &region)) {
        return CW_ERROR_NOT_FOUND;
    }
    uint32_t transport = cw_operation_transport(endpoint, flow, CW_OPERATION_MESSAGE, 0, 0);
    struct cw_operation *operation =
        cw_operation_open(endpoint, flow, CW_OPERATION_MESSAGE, message->lane_tag, CW_OPERATION_ORDERED | transport);
    if (operation == NULL) {
        return CW_ERROR_AGAIN;
    }
    operation->context = message->context;
    operation->signal = (message->flags & CW_SIGNAL) != 0;
    set_source(operation, &message->source, bytes, region);
    cw_operation_push(&flow->sender.queue_credit, operation);
    flow->sender.queue_credit_count++;
    if (flow->state != CW_PEER_ESTABLISHED) {
        cw_session_start(endpoint, flow);
    }
    cw_messages_lend_along(endpoint, flow);
    cw_messages_pump(endpoint, flow);
    cw_endpoint_push(endpoint, message->flags);
    return CW_OK;
}

int cw_get(struct cw_endpoint *endpoint, const struct cw_get *get)
{
    struct cw_flow *flow = cw_endpoint_flow(endpoint, get->peer);
    if (flow == NULL || get->region == 0 || get->bytes > INT64_MAX || (unsigned)get->element > CW_ELEMENT_PLAIN ||
        (get->flags & ~(uint32_t)CW_MORE) != 0) {
        return CW_ERROR_ARGUMENT;
    }
    if (flow->state == CW_PEER_FAILED) {
        return CW_ERROR_PEER_FAILED;
    }
    int status = cw_get_open(endpoint, flow, get);
    if (status != CW_OK) {
        return status;
    }
    cw_session_start(endpoint, flow);
    cw_endpoint_push(endpoint, get->flags);
    return CW_OK;
}
