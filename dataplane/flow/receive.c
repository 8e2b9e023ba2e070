/* Packets that come in. A packet is hostile until proven otherwise: lengths, version, flow, number, tag and checksum are checked before
 * its frames are looked at, and all its frames are judged before the first byte is stored. It is accepted as a whole or not at all:
 * what is not accepted is not acknowledged and comes again, but for what the target will never take, which is refused (REJECT).
 */
#include <assert.h>
#include <string.h>

#include "dataplane/core/endpoint.h"

enum { PREFETCH = 4 /* packets ahead */ };

/* ---- frames ---- */

enum verdict {
    ACCEPT,
    ACCEPT_OLD, /* about a put that is done, given up or only waits: nothing to do */
    MALFORMED,
    REFUSE,
    LATER, /* no room now */
};

/* One frame of a packet, checked as far as lengths go. */
struct frame {
    const struct cw_wire_frame *wire;
    const uint8_t *data;
    uint8_t *target; /* where the data goes, once judged */
    bool old;        /* judged ACCEPT_OLD */
    bool
        plain; /* nothing that another frame of the same packet does, one with another number, changes what was judged */
    struct cw_arrival_frame put;
};

/* Reads the frame at `at`; returns the bytes it takes up, padding included, or 0: it is not well formed. */
static uint32_t parse_frame(const uint8_t *at, uint32_t left, struct frame *frame)
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
    case CW_FRAME_GET:
        header_bytes = sizeof(struct cw_wire_get);
        break;
    case CW_FRAME_VOID:
    case CW_FRAME_ASK:
    case CW_FRAME_RECALL:
        header_bytes = sizeof(*wire);
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
static enum verdict judge_target(struct cw_endpoint *endpoint, struct cw_flow *flow, struct frame *frame,
                                 uint64_t position)
{
    const struct cw_arrival_frame *put = &frame->put;
    if (position > put->total || put->bytes > put->total - position) {
        return MALFORMED;
    }
    /* an own get says itself where its answer may go; the region needs no right for that */
    uint32_t rights = put->reply != 0 ? 0 : CW_REGION_WRITE;
    if (put->reply != 0 && !cw_get_expects(endpoint, flow, put)) {
        return REFUSE;
    }
    struct cw_region *region = cw_region_find(&endpoint->regions, put->token, put->offset, put->total, rights);
    if (region == NULL || (region == endpoint->messages.region && !cw_messages_expects(endpoint, flow, put))) {
        return REFUSE;
    }
    frame->target = put->bytes == 0 ? NULL : region->base + put->offset + position;
    frame->plain = put->reply == 0 && region != endpoint->messages.region;
    return ACCEPT;
}

static enum verdict judge_put(struct cw_endpoint *endpoint, struct cw_flow *flow, struct frame *frame)
{
    const struct cw_wire_put *wire = (const struct cw_wire_put *)frame->wire;
    struct cw_arrival_frame *put = &frame->put;
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
            return MALFORMED;
        }
    }
    enum verdict verdict = judge_target(endpoint, flow, frame, position);
    if (verdict == ACCEPT && !cw_arrival_consistent(endpoint, flow, put)) {
        return MALFORMED;
    }
    return verdict;
}

/* What to do with a frame; changes nothing. */
static enum verdict judge(struct cw_endpoint *endpoint, struct cw_flow *flow, struct frame *frame)
{
    const struct cw_window *puts = &flow->receiver.puts;
    uint64_t number = cw_wire_number_expand(puts->base, frame->wire->put_number);
    frame->put = (struct cw_arrival_frame){.number = number, .predecessor = number};
    frame->old = cw_window_seen(puts, number) || cw_arrival_settled(endpoint, flow, number);
    if (frame->old) {
        return ACCEPT_OLD;
    }
    if (number - puts->base >= cw_window_span()) {
        return LATER;
    }
    switch (frame->wire->kind) {
    case CW_FRAME_PUT:
    case CW_FRAME_PART:
        return judge_put(endpoint, flow, frame);
    case CW_FRAME_VOID:
        frame->put.predecessor = number - frame->wire->length;
        frame->put.void_put = true;
        return cw_arrival_consistent(endpoint, flow, &frame->put) ? ACCEPT : MALFORMED;
    case CW_FRAME_GET:
        return cw_get_allowed(endpoint, (const struct cw_wire_get *)frame->wire) ? ACCEPT : REFUSE;
    default:
        return cw_messages_frame(endpoint, flow, frame->wire, true) ? ACCEPT : MALFORMED;
    }
}

static void apply(struct cw_endpoint *endpoint, struct cw_flow *flow, struct frame *frame)
{
    if (frame->old) {
        return;
    }
    switch (frame->wire->kind) {
    case CW_FRAME_PUT:
    case CW_FRAME_PART:
        if (frame->target != NULL) {
            memcpy(frame->target, frame->data, frame->put.bytes);
        }
        cw_arrival_accept(endpoint, flow, &frame->put);
        return;
    case CW_FRAME_VOID:
        cw_arrival_accept(endpoint, flow, &frame->put);
        return;
    case CW_FRAME_GET:
        cw_get_answer(endpoint, flow, (const struct cw_wire_get *)frame->wire);
        break;
    default:
        (void)cw_messages_frame(endpoint, flow, frame->wire, false);
        break;
    }
    cw_arrival_pass(endpoint, flow, frame->put.number);
}

static void send_reject(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t number, uint32_t put_number)
{
    uint8_t *payload = cw_transmit_control(endpoint, flow, CW_WIRE_REJECT, sizeof(struct cw_wire_reject));
    if (payload == NULL) {
        return; /* the packet comes again */
    }
    struct cw_wire_reject reject = {.number = number, .put_number = put_number};
    memcpy(payload, &reject, sizeof(reject));
    cw_transmit_control_finish(endpoint, flow, sizeof(reject));
    cw_count(endpoint, CW_COUNTER_REJECTS_OUT, 1);
}

/* How many frames of a packet need what. */
struct needs {
    uint32_t records; /* of arrivals */
    uint32_t passes;
    uint64_t pass_first;
    uint32_t gets;
};

static void count_needs(const struct frame *frame, struct needs *needs)
{
    uint8_t kind = frame->wire->kind;
    if (frame->old) {
        return;
    }
    if (kind == CW_FRAME_PUT || kind == CW_FRAME_PART || kind == CW_FRAME_VOID) {
        needs->records++;
        return;
    }
    needs->gets += kind == CW_FRAME_GET;
    if (needs->passes++ == 0) {
        needs->pass_first = frame->put.number;
    }
}

static bool has_room(const struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t first,
                     const struct needs *needs)
{
    return cw_arrivals_room(endpoint, flow, first, needs->records) &&
           cw_arrival_passable(endpoint, flow, needs->pass_first, needs->passes) &&
           cw_gets_room(endpoint, flow, needs->gets);
}

/* The frames of a packet, judged. */
struct frames {
    uint32_t count;
    bool rising; /* the numbers of their puts rise, as every sender has them */
    struct frame list[CW_OPERATIONS_A_PACKET];
};

/* Judges all frames of a packet. */
static enum verdict judge_packet(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                 const struct cw_wire_header *header, struct frames *frames)
{
    struct needs needs = {0};
    const uint8_t *at = (const uint8_t *)(header + 1);
    uint32_t left = header->payload_bytes;
    enum verdict worst = ACCEPT;
    uint64_t highest = 0;
    frames->count = 0;
    frames->rising = true;
    while (left > 0) {
        struct frame *frame = &frames->list[frames->count];
        uint32_t bytes = frames->count == CW_OPERATIONS_A_PACKET ? 0 : parse_frame(at, left, frame);
        if (bytes == 0) {
            return MALFORMED;
        }
        enum verdict verdict = judge(endpoint, flow, frame);
        if (verdict == MALFORMED) {
            return MALFORMED;
        }
        if (verdict == REFUSE) {
            send_reject(endpoint, flow, header->number, frame->wire->put_number);
            return REFUSE;
        }
        worst = verdict == LATER ? LATER : worst;
        count_needs(frame, &needs);
        frames->rising = frames->rising && (frames->count == 0 || frame->put.number > highest);
        highest = frame->put.number;
        frames->count++;
        at += bytes;
        left -= bytes;
    }
    if (frames->count == 0) {
        return MALFORMED;
    }
    return worst == ACCEPT && has_room(endpoint, flow, frames->list[0].put.number, &needs) ? ACCEPT : LATER;
}

static void apply_packet(struct cw_endpoint *endpoint, struct cw_flow *flow, struct frames *frames)
{
    apply(endpoint, flow, &frames->list[0]);
    for (uint32_t i = 1; i < frames->count; i++) {
        struct frame *frame = &frames->list[i];
        /* judged again where what an earlier frame of the same packet has done counts */
        if ((frame->plain && frames->rising) || judge(endpoint, flow, frame) == ACCEPT) {
            apply(endpoint, flow, frame);
        }
    }
}

/* A packet that has to come again, for want of room, still brings its credit: what it wants room for may wait for that. Should it have
 * come before, its put number tells. */
static void apply_credit(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header)
{
    const uint8_t *at = (const uint8_t *)(header + 1);
    uint32_t left = header->payload_bytes;
    while (left > 0) {
        struct frame frame;
        uint32_t bytes = parse_frame(at, left, &frame);
        if (frame.wire->kind >= CW_FRAME_ASK && judge(endpoint, flow, &frame) == ACCEPT &&
            cw_arrival_passable(endpoint, flow, frame.put.number, 1)) {
            apply(endpoint, flow, &frame);
        }
        at += bytes;
        left -= bytes;
    }
}

/* ---- packets ---- */

static void take_data(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                      uint64_t number)
{
    struct cw_receiver *receiver = &flow->receiver;
    struct cw_window *packets = &receiver->packets;
    bool ask_now = (header->flags & CW_WIRE_ACK_NOW) != 0;
    if (number < packets->base || cw_window_seen(packets, number)) {
        receiver->duplicates++;
        cw_count(endpoint, CW_COUNTER_DROP_DUPLICATE, 1);
        cw_report_want(endpoint, flow, ask_now);
        return;
    }
    if (number - packets->base >= cw_window_span()) {
        cw_count(endpoint, CW_COUNTER_DROP_WINDOW, 1);
        return;
    }
    struct frames frames;
    enum verdict verdict = judge_packet(endpoint, flow, header, &frames);
    uint64_t end_before = packets->end;
    if (verdict == ACCEPT && !cw_window_mark(packets, &endpoint->blocks, number)) {
        verdict = LATER;
    }
    if (verdict != ACCEPT) {
        if (verdict != REFUSE) {
            cw_count(endpoint, verdict == LATER ? CW_COUNTER_DROP_FULL : CW_COUNTER_DROP_MALFORMED, 1);
        }
        if (verdict == LATER) {
            apply_credit(endpoint, flow, header);
            cw_report_want(endpoint, flow, ask_now);
        }
        return;
    }
    if (number < end_before) {
        receiver->focus = number < receiver->focus ? number : receiver->focus;
    }
    receiver->unreported++;
    apply_packet(endpoint, flow, &frames);
    if (receiver->arrivals > 0 || packets->base != packets->end) {
        cw_timers_watch(endpoint, flow);
    }
    bool new_hole = number > end_before;
    cw_report_want(endpoint, flow, ask_now || new_hole);
}

/* Everything that is not a data packet. */
static void take_control(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                         uint64_t number)
{
    struct cw_receiver *receiver = &flow->receiver;
    bool newest = number > receiver->control_highest;
    if (newest) {
        receiver->control_highest = number;
    }
    bool good = true;
    switch (header->type) {
    case CW_WIRE_ACK:
        cw_count(endpoint, CW_COUNTER_ACKNOWLEDGEMENTS_IN, 1);
        if (newest) { /* an older picture than we have: replayed or overtaken */
            good = cw_acknowledge_runs(endpoint, flow, header);
        }
        break;
    case CW_WIRE_PROBE:
        good = header->payload_bytes == 0;
        if (good && newest) {
            receiver->report_from_base = true;
            cw_report_want(endpoint, flow, true);
        }
        break;
    case CW_WIRE_REJECT:
        good = cw_acknowledge_reject(endpoint, flow, header);
        break;
    case CW_WIRE_BYE:
        good = header->payload_bytes == 0;
        if (good && newest) {
            cw_session_end(endpoint, flow, CW_PEER_CLOSED, CW_ERROR_CLOSED);
        }
        break;
    default:
        good = false;
        break;
    }
    if (!good) {
        cw_count(endpoint, CW_COUNTER_DROP_MALFORMED, 1);
    }
}

/* A packet of a burst. Tags are computed for all of them first, under the keys of the sessions as they are then. */
struct incoming {
    enum cw_wire_verdict verdict;
    const struct cw_wire_header *header;
    uint64_t number; /* that the tag is for */
    uint32_t tag;    /* its index; UINT32_MAX: none computed */
};

struct burst {
    struct incoming packets[CW_BURST];
    struct cw_wire_tags tags;
};

static inline bool is_set_up(const struct cw_wire_header *header)
{
    return header->type == CW_WIRE_HELLO || header->type == CW_WIRE_HELLO_REPLY;
}

/* The number of a packet under the present session of its flow. */
static inline uint64_t number_of(const struct cw_flow *flow, const struct cw_wire_header *header)
{
    const struct cw_receiver *receiver = &flow->receiver;
    uint64_t expected = header->type == CW_WIRE_DATA ? receiver->packets.end : receiver->control_highest;
    return cw_wire_number_expand(expected, header->number);
}

static inline void look(const struct cw_endpoint *endpoint, const struct cw_received *packet, struct incoming *incoming)
{
    incoming->tag = UINT32_MAX;
    incoming->verdict = cw_wire_parse(packet->data, packet->length, endpoint->config.address.ipv4,
                                      endpoint->config.address.udp_port, &incoming->header);
}

/* Has the tag computed that the packet should have. */
static void expect_tag(const struct cw_endpoint *endpoint, struct burst *burst, struct incoming *incoming)
{
    if (incoming->verdict != CW_WIRE_GOOD || is_set_up(incoming->header)) {
        return;
    }
    const struct cw_wire_header *header = incoming->header;
    const struct cw_flow *flow = cw_endpoint_flow(endpoint, header->flow);
    if (flow == NULL || flow->state != CW_PEER_ESTABLISHED) {
        return;
    }
    incoming->number = number_of(flow, header);
    uint64_t words[CW_WIRE_TAG_WORDS];
    memcpy(words, header, sizeof(words));
    words[0] = (words[0] & UINT32_MAX) | (incoming->number >> 32) << 32;
    incoming->tag = burst->tags.count;
    cw_wire_tags_add(&burst->tags, words, &flow->session.key_in);
}

/* True if the tag fits under the present session. An earlier packet of the burst may have changed that, or moved the numbers. */
static bool fits_session(const struct cw_flow *flow, const struct burst *burst, const struct incoming *incoming,
                         uint64_t number)
{
    const struct cw_wire_header *header = incoming->header;
    if (incoming->tag != UINT32_MAX && incoming->number == number &&
        cw_wire_tags_key_is(&burst->tags, incoming->tag, &flow->session.key_in)) {
        return burst->tags.value[incoming->tag] == header->tag;
    }
    return cw_wire_tag(header, (uint32_t)(number >> 32), &flow->session.key_in) == header->tag;
}

/* The number and tag under the present session, or under the candidate's, which it then replaces. */
static bool authenticate(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct burst *burst,
                         const struct incoming *incoming, uint64_t *number)
{
    const struct cw_wire_header *header = incoming->header;
    if (flow->state == CW_PEER_ESTABLISHED) {
        *number = number_of(flow, header);
        if (fits_session(flow, burst, incoming, *number)) {
            return true;
        }
    }
    const struct cw_candidate *candidate = flow->session.candidate;
    if (candidate != NULL) {
        bool data = header->type == CW_WIRE_DATA;
        *number = cw_wire_number_expand(data ? candidate->data_number : candidate->control_number, header->number);
        if (cw_wire_tag(header, (uint32_t)(*number >> 32), &candidate->key_in) == header->tag &&
            cw_wire_checksum(0, header + 1, header->payload_bytes) == header->checksum) {
            cw_session_promote(endpoint, flow);
            return true;
        }
    }
    cw_count(endpoint,
             flow->state == CW_PEER_ESTABLISHED || candidate != NULL ? CW_COUNTER_DROP_TAG : CW_COUNTER_DROP_FLOW, 1);
    return false;
}

static void take_packet(struct cw_endpoint *endpoint, const struct burst *burst, const struct incoming *incoming)
{
    const struct cw_wire_header *header = incoming->header;
    struct cw_flow *flow = cw_endpoint_flow(endpoint, header->flow);
    uint64_t number;
    if (flow == NULL) {
        cw_count(endpoint, CW_COUNTER_DROP_FLOW, 1);
        return;
    }
    if (!authenticate(endpoint, flow, burst, incoming, &number)) {
        return;
    }
    if (cw_wire_checksum(0, header + 1, header->payload_bytes) != header->checksum) {
        cw_count(endpoint, CW_COUNTER_DROP_CHECKSUM, 1);
        return;
    }
    struct cw_receiver *receiver = &flow->receiver;
    if (!receiver->has_echo || (int32_t)(header->timestamp - receiver->echo) >= 0) {
        receiver->has_echo = true;
        receiver->echo = header->timestamp;
        receiver->echo_arrival_ns = endpoint->now_ns;
    }
    flow->session.peer_waiting = header->flags & CW_WIRE_WAITING_MASK;
    cw_timers_heard(endpoint, flow);
    uint64_t acknowledged = cw_wire_number_expand(flow->sender.sent.base, header->acknowledged);
    bool advances = acknowledged > flow->sender.sent.base && acknowledged <= flow->sender.sent.next;
    if (advances || header->type == CW_WIRE_ACK) {
        cw_acknowledge_echo(endpoint, flow, header);
    }
    if (advances) {
        cw_acknowledge_below(endpoint, flow, acknowledged);
    }
    if (header->type == CW_WIRE_DATA) {
        take_data(endpoint, flow, header, number);
    } else {
        take_control(endpoint, flow, header, number);
    }
}

static void take_frame(struct cw_endpoint *endpoint, const struct burst *burst, const struct incoming *incoming)
{
    static const enum cw_counter counters[] = {
        [CW_WIRE_SHORT] = CW_COUNTER_DROP_SHORT,
        [CW_WIRE_FOREIGN] = CW_COUNTER_DROP_FOREIGN,
        [CW_WIRE_OTHER_VERSION] = CW_COUNTER_DROP_VERSION,
        [CW_WIRE_MALFORMED] = CW_COUNTER_DROP_MALFORMED,
    };
    if (incoming->verdict != CW_WIRE_GOOD) {
        cw_count(endpoint, counters[incoming->verdict], 1);
        return;
    }
    switch (incoming->header->type) {
    case CW_WIRE_HELLO:
    case CW_WIRE_HELLO_REPLY:
        cw_session_hello(endpoint, incoming->header);
        break;
    case CW_WIRE_DATA:
    case CW_WIRE_ACK:
    case CW_WIRE_PROBE:
    case CW_WIRE_REJECT:
    case CW_WIRE_BYE:
        take_packet(endpoint, burst, incoming);
        break;
    default:
        cw_count(endpoint, CW_COUNTER_DROP_MALFORMED, 1);
        break;
    }
}

void cw_receive_frames(struct cw_endpoint *endpoint, const struct cw_received *packets, uint32_t count)
{
    assert(count <= CW_BURST);
    struct burst burst;
    burst.tags.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH < count) {
            __builtin_prefetch(packets[i + PREFETCH].data);
            __builtin_prefetch(packets[i + PREFETCH].data + 64);
        }
        look(endpoint, &packets[i], &burst.packets[i]);
        if (count > CW_WIRE_TAGS_FEW) {
            expect_tag(endpoint, &burst, &burst.packets[i]);
        }
    }
    cw_wire_tags_compute(&burst.tags);
    for (uint32_t i = 0; i < count; i++) {
        take_frame(endpoint, &burst, &burst.packets[i]);
    }
}
