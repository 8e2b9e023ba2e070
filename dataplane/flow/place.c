#include "dataplane/flow/place.h"

#include <assert.h>
#include <string.h>

#include "dataplane/base/prefetch.h"
#include "dataplane/compress/chunk.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/put/get.h"
#include "dataplane/put/message.h"
#include "dataplane/put/reassembly.h"
#include "dataplane/state/rdma.h"

/* Reads the frame at `at`; returns the bytes it takes up, padding included, or 0: it is not well formed. */
static uint32_t parse_frame(const uint8_t *at, uint32_t left, struct cw_frame *frame)
{
    const struct cw_wire_frame *wire = (const struct cw_wire_frame *)at;
    if (left < sizeof(*wire) || wire->flags != 0) {
        return 0;
    }
    frame->wire = wire;
    frame->plain = false;
    uint32_t header_bytes;
    uint32_t data_bytes = 0;
    switch (wire->kind) {
    case CW_FRAME_PUT:
        header_bytes = sizeof(struct cw_wire_put);
        data_bytes = wire->length;
        break;
    case CW_FRAME_PART:
        header_bytes = sizeof(struct cw_wire_part);
        data_bytes = wire->length;
        break;
    case CW_FRAME_CHUNK:
        header_bytes = sizeof(struct cw_wire_chunk);
        data_bytes = wire->length;
        break;
    case CW_FRAME_GET:
        if (wire->length > CW_ELEMENT_PLAIN) {
            return 0;
        }
        header_bytes = sizeof(struct cw_wire_get);
        break;
    case CW_FRAME_VOID_REPLY:
        header_bytes = sizeof(struct cw_wire_void_reply);
        break;
    case CW_FRAME_VOID:
    case CW_FRAME_ASK:
    case CW_FRAME_RECALL:
        header_bytes = sizeof(*wire);
        break;
    case CW_FRAME_RDMA:
        header_bytes = sizeof(*wire);
        data_bytes = wire->length;
        break;
    case CW_FRAME_GRANT:
    case CW_FRAME_RETURN:
        header_bytes = sizeof(*wire);
        data_bytes = wire->length * (uint32_t)sizeof(uint16_t);
        break;
    default:
        return 0;
    }
    if (header_bytes > left || data_bytes > left - header_bytes) {
        return 0;
    }
    frame->data = at + header_bytes;
    uint32_t padded = cw_wire_pad(header_bytes + data_bytes);
    return padded < left ? padded : left;
}

/* The region check of a put, whole or part: sets where its data goes. */
static enum cw_verdict validate_target(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_frame *frame,
                                       uint64_t position)
{
    const struct cw_reassembly_frame *put = &frame->put;
    if (position > put->total || put->bytes > put->total - position) {
        return CW_MALFORMED;
    }
    /* an own get says itself where its answer may go; the region needs no right for that */
    uint32_t rights = put->reply != 0 ? 0 : CW_REGION_WRITE;
    if (put->reply != 0 && !cw_get_expects(endpoint, flow, put)) {
        return CW_REFUSE;
    }
    struct cw_region *region = cw_region_find(&endpoint->regions, put->token, put->offset, put->total, rights);
    if (region == NULL || (region == endpoint->messages.region && !cw_messages_expects(endpoint, flow, put))) {
        return CW_REFUSE;
    }
    frame->target = put->bytes == 0 ? NULL : region->base + put->offset + position;
    frame->is_message = region == endpoint->messages.region;
    frame->plain = put->reply == 0 && !frame->is_message;
    return CW_VALID;
}

static enum cw_verdict validate_put(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_frame *frame)
{
    const struct cw_wire_put *wire = (const struct cw_wire_put *)frame->wire;
    struct cw_reassembly_frame *put = &frame->put;
    put->predecessor = put->number - wire->predecessor;
    put->bytes = frame->wire->length;
    put->total = put->bytes;
    put->token = wire->token;
    put->offset = wire->offset;
    put->lane_tag = wire->lane_tag;
    put->reply = wire->reply;
    uint64_t position = 0;
    if (frame->wire->kind == CW_FRAME_PART) {
        const struct cw_wire_part *part = (const struct cw_wire_part *)frame->wire;
        position = part->position;
        put->total = part->total;
        if (put->bytes == 0 || put->bytes == put->total) {
            return CW_MALFORMED;
        }
    }
    if (frame->wire->kind == CW_FRAME_CHUNK) {
        const struct cw_wire_chunk *chunk = (const struct cw_wire_chunk *)frame->wire;
        position = chunk->position;
        put->total = chunk->total;
        put->bytes = chunk->raw_bytes;
        if (chunk->reserved != 0) {
            return CW_MALFORMED;
        }
    }
    enum cw_verdict verdict = validate_target(endpoint, flow, frame, position);
    if (verdict == CW_VALID && !cw_reassembly_consistent(endpoint, flow, put)) {
        return CW_MALFORMED;
    }
    return verdict;
}

/* An endpoint without a device has nothing to say to an offer: packets carry all, as before. */
static bool rdma_accept(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_frame *frame, bool check)
{
    struct cw_rdma *rdma = endpoint->rdma;
    return rdma == NULL ? frame->wire->length == sizeof(struct cw_wire_rdma)
                        : rdma->ops->frame(rdma, flow, frame->data, frame->wire->length, check);
}

/* Slots for messages, or the notices between devices. */
static inline bool is_credit(const struct cw_frame *frame)
{
    return frame->wire->kind >= CW_FRAME_ASK && frame->wire->kind < CW_FRAME_CHUNK;
}

static inline bool bears_put(const struct cw_frame *frame)
{
    uint8_t kind = frame->wire->kind;
    return kind == CW_FRAME_PUT || kind == CW_FRAME_PART || kind == CW_FRAME_CHUNK || kind == CW_FRAME_VOID ||
           kind == CW_FRAME_VOID_REPLY;
}

/* What to do with a frame; changes nothing. */
static enum cw_verdict validate(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_frame *frame)
{
    const struct cw_window *puts = &flow->receiver.puts;
    uint64_t number = cw_wire_number_expand(puts->base, frame->wire->put_number);
    frame->put = (struct cw_reassembly_frame){.number = number, .predecessor = number};
    frame->is_message = false;
    frame->old = cw_window_seen(puts, number) || cw_reassembly_finished(endpoint, flow, number);
    if (frame->old) {
        return CW_VALID_OLD;
    }
    if (number - puts->base >= CW_PUT_WINDOW) {
        return CW_LATER; /* no sender is so far ahead; and so the frames of a packet lie in two blocks of the window */
    }
    if (!bears_put(frame) && cw_reassembly_known(endpoint, flow, number)) {
        return CW_MALFORMED; /* half of a put is here under this number */
    }
    switch (frame->wire->kind) {
    case CW_FRAME_PUT:
    case CW_FRAME_PART:
    case CW_FRAME_CHUNK:
        return validate_put(endpoint, flow, frame);
    case CW_FRAME_VOID_REPLY:
        frame->put.reply = ((const struct cw_wire_void_reply *)frame->wire)->reply;
        frame->put.reply = cw_get_is_open(endpoint, flow, frame->put.reply) ? frame->put.reply : 0;
        frame->put.predecessor = number - frame->wire->length;
        frame->put.void_put = true;
        return cw_reassembly_consistent(endpoint, flow, &frame->put) ? CW_VALID : CW_MALFORMED;
    case CW_FRAME_VOID:
        frame->put.predecessor = number - frame->wire->length;
        frame->put.void_put = true;
        return cw_reassembly_consistent(endpoint, flow, &frame->put) ? CW_VALID : CW_MALFORMED;
    case CW_FRAME_GET:
        return cw_get_allowed(endpoint, (const struct cw_wire_get *)frame->wire) ? CW_VALID : CW_REFUSE;
    case CW_FRAME_RDMA:
        return rdma_accept(endpoint, flow, frame, true) ? CW_VALID : CW_MALFORMED;
    default:
        return cw_messages_frame(endpoint, flow, frame->wire, true) ? CW_VALID : CW_MALFORMED;
    }
}

static void apply(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_frame *frame)
{
    if (frame->old) {
        return;
    }
    switch (frame->wire->kind) {
    case CW_FRAME_PUT:
    case CW_FRAME_PART:
    case CW_FRAME_CHUNK:
        if (frame->target != NULL) {
            memcpy(frame->target, frame->data, frame->put.bytes);
            if (frame->wire->kind == CW_FRAME_PART) { /* where the next packet's most likely go */
                cw_prefetch_write(frame->target + frame->put.bytes, frame->put.bytes);
            }
        }
        cw_reassembly_place(endpoint, flow, &frame->put);
        return;
    case CW_FRAME_VOID:
    case CW_FRAME_VOID_REPLY:
        cw_reassembly_place(endpoint, flow, &frame->put);
        return;
    case CW_FRAME_GET:
        cw_get_answer(endpoint, flow, (const struct cw_wire_get *)frame->wire);
        break;
    case CW_FRAME_RDMA:
        (void)rdma_accept(endpoint, flow, frame, false);
        break;
    default:
        (void)cw_messages_frame(endpoint, flow, frame->wire, false);
        break;
    }
    cw_reassembly_pass(endpoint, flow, frame->put.number);
}

static void send_reject(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t number, uint32_t put_number)
{
    uint8_t *payload = cw_transmit_control(endpoint, flow, CW_WIRE_REJECT, sizeof(struct cw_wire_reject));
    if (payload == NULL) {
        return; /* the packet is sent again */
    }
    struct cw_wire_reject reject = {.number = number, .put_number = put_number};
    memcpy(payload, &reject, sizeof(reject));
    cw_transmit_control_finish(endpoint, flow, sizeof(reject));
    cw_count(endpoint, CW_COUNTER_REJECTS_OUT, 1);
}

/* How many frames of a packet need what. */
struct needs {
    uint32_t records; /* of reassembly */
    uint32_t passes;
    uint64_t pass_first;
    uint32_t gets;
};

static void count_needs(const struct cw_frame *frame, struct needs *needs)
{
    if (frame->old) {
        return;
    }
    if (bears_put(frame)) {
        needs->records++;
        return;
    }
    needs->gets += frame->wire->kind == CW_FRAME_GET;
    if (needs->passes++ == 0) {
        needs->pass_first = frame->put.number;
    }
}

static bool is_earlier(const struct cw_frames *frames, uint32_t index, uint64_t number)
{
    while (index > 0 && frames->list[index - 1].put.number > number) {
        index--;
    }
    return index > 0 && frames->list[index - 1].put.number == number;
}

/* True if each put of the packet is whole and has its turn, given those before it: then each is reported, or forgotten,
 * before the next. */
static bool reported_at_once(const struct cw_flow *flow, const struct cw_frames *frames)
{
    for (uint32_t i = 0; i < frames->count; i++) {
        const struct cw_frame *frame = &frames->list[i];
        const struct cw_reassembly_frame *put = &frame->put;
        if (frame->old || put->predecessor == put->number) {
            continue;
        }
        if (put->bytes != put->total ||
            (!cw_window_seen(&flow->receiver.puts, put->predecessor) && !is_earlier(frames, i, put->predecessor))) {
            return false;
        }
    }
    return true;
}

static bool has_room(const struct cw_endpoint *endpoint, const struct cw_flow *flow, const struct cw_frames *frames,
                     const struct needs *needs)
{
    bool reassemblies = cw_reassemblies_plenty(endpoint, needs->records) ||
                        cw_reassemblies_room(endpoint, flow, frames->list[0].put.number, needs->records,
                                             reported_at_once(flow, frames));
    return reassemblies && cw_reassembly_passable(endpoint, flow, needs->pass_first, needs->passes) &&
           cw_gets_room(endpoint, flow, needs->gets, needs->passes - needs->gets);
}

static bool has_chunk(const struct cw_frames *frames)
{
    return frames->list[0].wire->kind == CW_FRAME_CHUNK;
}

/* Last of all that is validated: memory of the endpoint has one. */
static enum cw_verdict chunk_accept(struct cw_endpoint *endpoint, struct cw_frames *frames)
{
    struct cw_frame *frame = &frames->list[0];
    const struct cw_wire_chunk *chunk = (const struct cw_wire_chunk *)frame->wire;
    frames->goes_on = chunk->position + chunk->raw_bytes < chunk->total;
    if (frame->old) {
        return CW_VALID;
    }
    const void *data = NULL;
    struct cw_codec_plan plan = {.codec = chunk->codec, .parameter = chunk->parameter};
    int status = cw_chunk_expand(endpoint, plan, frame->data, chunk->put.frame.length, chunk->raw_bytes, &data);
    frame->data = data;
    return status == CW_OK ? CW_VALID : status == CW_ERROR_MEMORY ? CW_LATER : CW_DAMAGED;
}

enum cw_verdict cw_frames_validate(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                   const struct cw_wire_header *header, struct cw_frames *frames)
{
    struct needs needs = {0};
    const uint8_t *at = (const uint8_t *)(header + 1);
    uint32_t left = header->payload_bytes;
    enum cw_verdict worst = CW_VALID;
    bool is_kept =
        (header->flags & (CW_WIRE_SUMMED | CW_WIRE_KEPT)) != 0; /* the header of the first frame alone has a checksum */
    frames->count = 0;
    frames->only_messages = true;
    frames->goes_on = false;
    while (left > 0) {
        struct cw_frame *frame = &frames->list[frames->count];
        uint32_t bytes = frames->count == CW_OPERATIONS_A_PACKET ? 0 : parse_frame(at, left, frame);
        if (bytes == 0) {
            return CW_MALFORMED;
        }
        enum cw_verdict verdict = validate(endpoint, flow, frame);
        bool is_only = frames->count == 0 && bytes == left;
        if (verdict == CW_MALFORMED || (!is_only && (is_kept || frame->wire->kind == CW_FRAME_CHUNK)) ||
            (is_kept && frame->wire->kind != CW_FRAME_PUT && frame->wire->kind != CW_FRAME_PART)) {
            return CW_MALFORMED;
        }
        if (verdict == CW_REFUSE) {
            send_reject(endpoint, flow, header->number, frame->wire->put_number);
            return CW_REFUSE;
        }
        if (frames->count > 0 && frame->put.number <= frame[-1].put.number) {
            return CW_MALFORMED; /* every sender has the numbers rise */
        }
        frames->only_messages = frames->only_messages && (frame->is_message || is_credit(frame)); /* slots for them */
        worst = verdict == CW_LATER ? CW_LATER : worst;
        count_needs(frame, &needs);
        frames->count++;
        at += bytes;
        left -= bytes;
    }
    if (frames->count == 0) {
        return CW_MALFORMED;
    }
    worst = worst == CW_VALID && has_room(endpoint, flow, frames, &needs) ? CW_VALID : CW_LATER;
    return worst == CW_VALID && has_chunk(frames) ? chunk_accept(endpoint, frames) : worst;
}

void cw_frames_place(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_frames *frames)
{
    apply(endpoint, flow, &frames->list[0]);
    for (uint32_t i = 1; i < frames->count; i++) {
        struct cw_frame *frame = &frames->list[i];
        /* validated again if an earlier frame of the same packet may have changed the result */
        if (frame->plain || validate(endpoint, flow, frame) == CW_VALID) {
            apply(endpoint, flow, frame);
        }
    }
}

void cw_frames_place_credit(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    uint32_t left = header->payload_bytes;
    while (left > 0) {
        struct cw_frame frame;
        uint32_t bytes = parse_frame(at, left, &frame);
        if (is_credit(&frame) && validate(endpoint, flow, &frame) == CW_VALID &&
            cw_reassembly_passable(endpoint, flow, frame.put.number, 1)) {
            apply(endpoint, flow, &frame);
        }
        at += bytes;
        left -= bytes;
    }
}
