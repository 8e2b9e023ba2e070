/* Posting: regions, puts and messages, as the application calls them. */
#include <assert.h>
#include <string.h>

#include "dataplane/core/endpoint.h"
#include "dataplane/core/turn.h"
#include "dataplane/flow/session.h"

int cw_region_register(struct cw_endpoint *endpoint, void *base, uint64_t bytes, uint32_t rights, uint64_t *token)
{
    if ((base == NULL && bytes > 0) || bytes > INT64_MAX ||
        (rights & ~(uint32_t)(CW_REGION_WRITE | CW_REGION_READ)) != 0) {
        return CW_ERROR_ARGUMENT;
    }
    /* Peers see keys of regions and nonces of sessions; neither may tell the next key, so it goes through BLAKE2b under
     * the job key. */
    struct cw_wire_key key;
    uint64_t bits;
    cw_wire_key_derive(&key, endpoint->config.job_key, cw_random_next(&endpoint->random), endpoint->incarnation);
    memcpy(&bits, key.bytes, sizeof(bits));
    struct cw_region *region;
    int status = cw_regions_add(&endpoint->regions, base, bytes, rights, bits >> 16, &region);
    if (status != CW_OK) {
        return status;
    }
    if (endpoint->port->info.gather && bytes >= CW_GATHER_MIN &&
        cw_port_memory_register(endpoint->port, base, bytes, &region->memory) != CW_OK) {
        region->memory = NULL; /* its pieces are copied */
    }
    *token = region->token;
    return CW_OK;
}

/* True if a packet that waits for the port has a piece of this memory. */
static bool staged_uses(const struct cw_endpoint *endpoint, const struct cw_port_memory *memory)
{
    for (uint32_t i = 0; i < endpoint->staged_count; i++) {
        const struct cw_transmit *packet = &endpoint->staged[i];
        for (uint32_t piece = 0; piece < packet->piece_count; piece++) {
            if (packet->pieces[piece].memory == memory) {
                return true;
            }
        }
    }
    return false;
}

int cw_region_deregister(struct cw_endpoint *endpoint, uint64_t token)
{
    struct cw_region *region = cw_region_of(&endpoint->regions, token);
    if (region == NULL || region == endpoint->messages.region) {
        return CW_ERROR_NOT_FOUND;
    }
    if (region->users > 0) {
        return CW_ERROR_BUSY;
    }
    if (region->memory != NULL) {
        cw_flush(endpoint); /* packets with pieces of it may wait for the port */
        if (staged_uses(endpoint, region->memory) ||
            cw_port_memory_unregister(endpoint->port, region->memory) != CW_OK) {
            return CW_ERROR_BUSY;
        }
    }
    cw_regions_remove(region);
    return CW_OK;
}

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
static bool overlaps_open(const struct cw_flow *flow, uint64_t token, uint64_t offset, uint64_t bytes)
{
    for (const struct cw_operation *at = flow->sender.open_first; at != NULL; at = at->open_next) {
        if (at->kind == CW_OPERATION_PUT && !at->complete && at->token == token && bytes > 0 && at->bytes > 0 &&
            at->offset < offset + bytes && offset < at->offset + at->bytes) {
            return true;
        }
    }
    return false;
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
    struct cw_operation *operation = cw_operation_open(endpoint, flow, CW_OPERATION_PUT, put->lane_tag, true, false);
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
    struct cw_operation *operation =
        cw_operation_open(endpoint, flow, CW_OPERATION_MESSAGE, message->lane_tag, true, false);
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
