#include "dataplane/put/get.h"

#include <assert.h>
#include <stdlib.h>

#include "dataplane/put/operation.h"
#include "dataplane/state/endpoint.h"

int cw_gets_init(struct cw_gets *gets, uint32_t count)
{
    gets->count = count + 1; /* 0 is no get */
    gets->table = calloc(gets->count, sizeof(struct cw_operation *));
    gets->next_free = calloc(gets->count, sizeof(*gets->next_free));
    if (gets->table == NULL || gets->next_free == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 1; i < count; i++) {
        gets->next_free[i] = (uint16_t)(i + 1);
    }
    gets->free = 1;
    gets->free_count = count;
    return CW_OK;
}

void cw_gets_dispose(struct cw_gets *gets)
{
    free(gets->table);
    free(gets->next_free);
    gets->table = NULL;
    gets->next_free = NULL;
}

bool cw_get_number(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_gets *gets = &endpoint->gets;
    if (gets->free_count == 0) {
        return false;
    }
    operation->reply = gets->free;
    gets->free = gets->next_free[operation->reply];
    gets->free_count--;
    operation->flow->get_count++;
    gets->table[operation->reply] = operation;
    return true;
}

int cw_get_open(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_get *get)
{
    struct cw_region *region = cw_region_find(&endpoint->regions, get->local_region, get->local_offset, get->bytes, 0);
    if (region == NULL) {
        return CW_ERROR_NOT_FOUND;
    }
    struct cw_gets *gets = &endpoint->gets;
    /* a device reads nothing, and looks at nothing, where there are no bytes */
    uint32_t transport =
        get->bytes > 0 ? cw_operation_transport(endpoint, flow, CW_OPERATION_GET, get->region, get->local_region) : 0;
    if (transport == 0 &&
        flow->get_count >= gets->free_count) { /* as with operations: as many as are left for others */
        return CW_ERROR_AGAIN;
    }
    struct cw_operation *operation = cw_operation_open(endpoint, flow, CW_OPERATION_GET, get->lane_tag, transport);
    if (operation == NULL) {
        return CW_ERROR_AGAIN;
    }
    if (transport == 0) {
        (void)cw_get_number(endpoint, operation);
    }
    operation->bytes = get->bytes;
    operation->token = get->region;
    operation->offset = get->offset;
    operation->context = get->context;
    operation->signal = true;
    operation->local.token = get->local_region;
    operation->local.offset = get->local_offset;
    operation->local.element = get->element;
    operation->region = region;
    region->users++;
    cw_operation_queue_up(endpoint, operation);
    return CW_OK;
}

bool cw_get_expects(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                    const struct cw_reassembly_frame *frame)
{
    if (frame->reply >= endpoint->gets.count) {
        return false;
    }
    const struct cw_operation *operation = endpoint->gets.table[frame->reply];
    return operation != NULL && operation->flow == flow && operation->status == 0 &&
           operation->local.token == frame->token && operation->local.offset == frame->offset &&
           operation->bytes == frame->total;
}

bool cw_get_is_open(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint16_t reply)
{
    return reply != 0 && reply < endpoint->gets.count && endpoint->gets.table[reply] != NULL &&
           endpoint->gets.table[reply]->flow == flow;
}

void cw_get_fail(struct cw_endpoint *endpoint, uint16_t reply, int status)
{
    struct cw_operation *operation = endpoint->gets.table[reply];
    if (operation != NULL && operation->status == 0) {
        operation->status = (int16_t)status;
        cw_operation_answered(endpoint, operation);
    }
}

void cw_get_finish(struct cw_endpoint *endpoint, uint16_t reply)
{
    struct cw_operation *operation = endpoint->gets.table[reply];
    if (operation != NULL) {
        cw_operation_answered(endpoint, operation);
    }
}

void cw_get_release(struct cw_endpoint *endpoint, struct cw_operation *operation)
{
    struct cw_gets *gets = &endpoint->gets;
    if (gets->table[operation->reply] == operation) {
        gets->table[operation->reply] = NULL;
        gets->next_free[operation->reply] = gets->free;
        gets->free = operation->reply;
        gets->free_count++;
        operation->flow->get_count--;
    }
}

bool cw_get_allowed(const struct cw_endpoint *endpoint, const struct cw_wire_get *frame)
{
    return frame->put.reply != 0 && cw_region_find(&endpoint->regions, frame->put.token, frame->put.offset,
                                                   frame->bytes, CW_REGION_READ) != NULL;
}

bool cw_gets_room(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint32_t count, uint32_t others)
{
    /* the other half of the reserve is for credit: a storm of requests must not stop messages */
    return count == 0 || (cw_pool_available(&endpoint->operations) >= count + others + CW_OPERATIONS_RESERVED / 2 &&
                          cw_operation_numbers_free(flow, count + others));
}

void cw_get_answer(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_get *frame)
{
    struct cw_region *region = cw_region_of(&endpoint->regions, frame->put.token);
    struct cw_operation *operation = cw_operation_open(endpoint, flow, CW_OPERATION_REPLY, frame->put.lane_tag,
                                                       CW_OPERATION_ORDERED | CW_OPERATION_INTERNAL);
    assert(region != NULL && operation != NULL); /* cw_get_allowed, cw_gets_room */
    operation->bytes = frame->bytes;
    operation->token = frame->local_token;
    operation->offset = frame->local_offset;
    operation->reply = frame->put.reply;
    operation->source =
        (struct cw_source){.kind = CW_SOURCE_CONTIGUOUS,
                           .element = (enum cw_element)frame->put.frame.length,
                           .contiguous = {.data = region->base + frame->put.offset, .bytes = frame->bytes}};
    operation->cursor = (struct cw_source_cursor){0};
    operation->region = region;
    region->users++;
    cw_operation_queue_up(endpoint, operation);
}
