/* The transport over puts as an execution sees it: posting, and handing over what has been delivered. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "collectives/execute/transport_puts_state.h"

void puts_fail(struct cw_puts_transport *transport, int status, const char *format, ...)
{
    if (transport->status != CW_OK) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(transport->failure, sizeof(transport->failure), format, arguments);
    va_end(arguments);
    transport->status = status;
}

/* ---- Records ---- */

static uint32_t record_take(struct cw_puts_transport *transport, const struct cw_transport_put *put)
{
    uint32_t index = transport->free_first;
    if (index != PUTS_NONE) {
        struct puts_record *record = &transport->records[index];
        transport->free_first = record->next;
        *record = (struct puts_record){
            .context = put->context, .peer_count = put->peer_count, .next = PUTS_NONE, .copy = PUTS_NONE};
    }
    return index;
}

void puts_record_free(struct cw_puts_transport *transport, uint32_t index)
{
    if (transport->records[index].copy != PUTS_NONE) {
        transport->copies_free[transport->copies_free_count++] = transport->records[index].copy;
    }
    transport->records[index].next = transport->free_first;
    transport->free_first = index;
}

/* Copies a message, so that whoever sends it goes on at once: on a long path its acknowledgement takes a while. False:
 * no room. */
static bool copy_take(struct cw_puts_transport *transport, struct puts_record *record,
                      const struct cw_transport_put *put)
{
    if (!put->eager || put->bytes <= CW_INLINE_MAX || transport->copies_free_count == 0) {
        return false;
    }
    record->copy = transport->copies_free[--transport->copies_free_count];
    uint32_t used = transport->copy_count - transport->copies_free_count;
    transport->copies_most = used > transport->copies_most ? used : transport->copies_most;
    memcpy(transport->copies + (uint64_t)record->copy * transport->request.slot_bytes, put->data, put->bytes);
    return true;
}

/* The multicast that was posted in part before, taken out of the list; PUTS_NONE: it was not. */
static uint32_t partial_take(struct cw_puts_transport *transport, const struct cw_transport_put *put)
{
    uint32_t *link = &transport->partial_first;
    for (; put->peer_count > 1 && *link != PUTS_NONE; link = &transport->records[*link].next) {
        uint32_t index = *link;
        struct puts_record *record = &transport->records[index];
        if (record->context == put->context) {
            assert(record->peer_count == put->peer_count);
            *link = record->next;
            return index;
        }
    }
    return PUTS_NONE;
}

/* ---- Posting ---- */

/* The own region that holds the bytes, so that they need not be copied; 0: none. */
static uint64_t region_of(const struct cw_puts_transport *transport, const void *data, uint64_t bytes)
{
    const struct cw_puts_transport_request *request = &transport->request;
    for (uint32_t i = CW_BUFFER_SEND; i <= CW_BUFFER_SCRATCH; i++) {
        uint64_t offset = (uint64_t)((uintptr_t)data - (uintptr_t)request->buffers[i]);
        if (request->buffers[i] != NULL && offset <= request->buffer_bytes[i] &&
            bytes <= request->buffer_bytes[i] - offset) {
            return request->regions[i];
        }
    }
    return 0;
}

/* Whether the execution is told that the last byte has left: schedules wait for no shorter ones (cw_emit_in_turn). */
static bool tells_sent(const struct cw_transport_put *put)
{
    return put->bytes > CW_LONG_PUT_BYTES && put->peer_count == 1;
}

/* One put or message. Errors as cw_put, and CW_ERROR_AGAIN if the target may not have begun the run before. */
static int post(struct cw_puts_transport *transport, const struct cw_transport_put *put, struct puts_partner *partner,
                uint32_t record)
{
    if (partner->down != CW_OK) {
        return partner->down;
    }
    partner->blocks = partner->one_way_to && transport->run > partner->begun + 1;
    if (partner->blocks) {
        return CW_ERROR_AGAIN;
    }
    uint32_t lane_tag = cw_lane_tag(transport->request.lane + (transport->run & 1), put->tag);
    struct cw_source source = {
        .region = put->bytes > 0 ? region_of(transport, put->data, put->bytes) : 0,
        .contiguous = {.data = put->data, .bytes = put->bytes},
    };
    if (put->eager) {
        struct cw_message message = {.peer = partner->peer,
                                     .lane_tag = lane_tag,
                                     .source = source,
                                     .context = record,
                                     .flags = CW_SIGNAL | CW_MORE};
        return cw_message_send(transport->request.endpoint, &message);
    }
    const struct cw_puts_place *place = &transport->request.peers[partner->rank].places[put->buffer];
    if (place->token == 0) {
        return CW_ERROR_REMOTE_ACCESS;
    }
    struct cw_put direct = {.peer = partner->peer,
                            .lane_tag = lane_tag,
                            .region = place->token,
                            .offset = place->offset + put->offset,
                            .source = source,
                            .context = record,
                            .flags = CW_SIGNAL | CW_MORE | (tells_sent(put) ? CW_SIGNAL_SENT : 0u)};
    return cw_put(transport->request.endpoint, &direct);
}

/* Posts what is left of a record. */
static int record_post(struct cw_puts_transport *transport, const struct cw_transport_put *put, uint32_t index)
{
    struct puts_record *record = &transport->records[index];
    while (record->posted < put->peer_count) {
        uint32_t rank = put->peers[record->posted];
        struct puts_partner *partner = puts_partner_of_rank(transport, rank);
        int status = partner != NULL ? post(transport, put, partner, index) : CW_ERROR_ARGUMENT;
        if (status != CW_OK) {
            if (status != CW_ERROR_AGAIN) {
                puts_fail(transport, status, "rank %u: put with tag %u: %s", rank, put->tag, cw_status_text(status));
            }
            return status;
        }
        record->posted++;
        transport->puts_open++;
    }
    return CW_OK;
}

static int puts_put(void *state, const struct cw_transport_put *put)
{
    struct cw_puts_transport *transport = state;
    assert(put->peer_count > 0 && put->tag < 1u << CW_SCHEDULE_TAG_BITS);
    assert(put->eager || put->buffer == CW_BUFFER_RECEIVE || put->buffer == CW_BUFFER_SCRATCH);
    if (transport->status != CW_OK) {
        return transport->status;
    }
    if (put->eager && put->bytes > transport->request.slot_bytes) {
        puts_fail(transport, CW_ERROR_ARGUMENT, "rank %u: a message of %llu bytes, but slots have %u", put->peers[0],
                  (unsigned long long)put->bytes, transport->request.slot_bytes);
        return CW_ERROR_ARGUMENT;
    }
    uint32_t index = partial_take(transport, put);
    index = index != PUTS_NONE ? index : record_take(transport, put);
    int status = CW_ERROR_AGAIN;
    if (index != PUTS_NONE) {
        struct puts_record *record = &transport->records[index];
        struct cw_transport_put copy = *put;
        bool copied = record->copy != PUTS_NONE || copy_take(transport, record, put);
        if (copied) {
            copy.data = transport->copies + (uint64_t)record->copy * transport->request.slot_bytes;
        }
        status = record_post(transport, &copy, index);
        copied = copied || put->bytes <= CW_INLINE_MAX; /* by the endpoint */
        if (status == CW_OK) {                          /* what is copied need not be waited for: a whole round trip */
            record->notified = copied;
            return copied ? CW_TRANSPORT_DONE : CW_OK;
        }
    }
    transport->refusals++;
    if (index == PUTS_NONE) {
        return status;
    }
    struct puts_record *record = &transport->records[index];
    if (record->posted == 0) {
        puts_record_free(transport, index);
    } else {
        record->next = transport->partial_first;
        transport->partial_first = index;
    }
    return status;
}

/* ---- Handing over ---- */

static void puts_serve(void *state, const struct cw_transport_sink *sink)
{
    ((struct cw_puts_transport *)state)->sink = *sink;
}

void puts_arrive(struct cw_puts_transport *transport, const struct cw_transport_event *event)
{
    assert(transport->sink.event != NULL && "the execution is created before anything is delivered");
    bool is_held = transport->sink.event(transport->sink.context, event);
    if (event->eager && !is_held) {
        puts_slot_release(transport, event->buffer);
    }
}

void puts_failure_tell(struct cw_puts_transport *transport)
{
    if (transport->status != CW_OK && !transport->failure_notified) {
        assert(transport->sink.event != NULL && "the execution is created before anything is delivered");
        transport->failure_notified = true;
        (void)transport->sink.event(transport->sink.context, &(struct cw_transport_event){.kind = CW_TRANSPORT_FAILED,
                                                                                          .status = transport->status});
    }
}

void puts_slot_release(struct cw_puts_transport *transport, uint64_t buffer)
{
    if (buffer != PUTS_NO_SLOT) {
        int status = cw_message_release(transport->request.endpoint, (uint32_t)(buffer - 1));
        assert(status == CW_OK && transport->slots_kept > 0);
        (void)status;
        transport->slots_kept--;
    }
}

static void puts_release(void *state, uint64_t buffer)
{
    puts_slot_release(state, buffer);
}

/* ---- Runs ---- */

void cw_puts_transport_begin(struct cw_puts_transport *transport)
{
    uint32_t parity = transport->run & 1;
    transport->arenas[parity].used = 0;
    transport->run++;
    transport->failure_notified = false; /* of the run before, which may have been over by then */
    for (uint32_t i = 0; i < transport->partner_count; i++) {
        struct puts_partner *partner = &transport->partners[i];
        partner->got[parity] = 0;
        if (partner->one_way_from && partner->down == CW_OK) {
            partner->owes++;
            transport->control_wanted++;
        }
        if (partner->down != CW_OK && partner->got[parity ^ 1] < partner->due) {
            puts_fail(transport, partner->down, "rank %u: it has gone before this run", partner->rank);
        }
    }
    uint64_t count = transport->early_count;
    transport->early_count = 0; /* none comes for the run after this one before all of these are taken */
    for (uint64_t i = 0; i < count; i++) {
        puts_arrive(transport, &transport->early[i]);
    }
    puts_control_pump(transport);
    puts_failure_tell(transport);
}

const struct cw_transport *cw_puts_transport_interface(struct cw_puts_transport *transport)
{
    transport->interface = (struct cw_transport){
        .state = transport,
        .serve = puts_serve,
        .put = puts_put,
        .expect = NULL, /* it holds nothing back */
        .release = puts_release,
    };
    return &transport->interface;
}

uint32_t cw_puts_transport_open(struct cw_puts_transport *transport)
{
    puts_control_pump(transport);
    puts_failure_tell(transport);
    return transport->puts_open + transport->control_wanted;
}

uint64_t cw_puts_transport_refusals(const struct cw_puts_transport *transport)
{
    return transport->refusals;
}

const char *cw_puts_transport_failure(const struct cw_puts_transport *transport)
{
    return transport->status != CW_OK ? transport->failure : NULL;
}
