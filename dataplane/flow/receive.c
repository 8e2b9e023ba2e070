/* Packets that come in. A packet is hostile until proven otherwise: lengths, version, flow, number, tag and checksum are checked before
 * its frames are looked at, and all its frames are judged before the first byte is stored. It is accepted as a whole or not at all:
 * what is not accepted is not acknowledged and comes again, but for what the target will never take, which is refused (REJECT).
 */
#include <assert.h>
#include <string.h>

#include "dataplane/core/endpoint.h"
#include "dataplane/flow/accept.h"

enum { PREFETCH = 4 /* packets ahead */ };

static void take_data(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                      uint64_t number)
{
    struct cw_receiver *receiver = &flow->receiver;
    struct cw_window *packets = &receiver->packets;
    bool ask_now = (header->flags & CW_WIRE_ACK_NOW) != 0;
    if (number < packets->base || cw_window_seen(packets, number)) {
        receiver->duplicates++;
        cw_count(endpoint, CW_COUNTER_DROP_DUPLICATE, 1);
        cw_report_want(endpoint, flow, ask_now, false);
        return;
    }
    if (number - packets->base >= cw_window_span()) {
        cw_count(endpoint, CW_COUNTER_DROP_WINDOW, 1);
        return;
    }
    struct cw_frames frames;
    enum cw_verdict verdict = cw_frames_judge(endpoint, flow, header, &frames);
    uint64_t end_before = packets->end;
    if (verdict == CW_ACCEPT && !cw_window_mark(packets, &endpoint->blocks, number)) {
        verdict = CW_LATER;
    }
    if (verdict != CW_ACCEPT) {
        if (verdict != CW_REFUSE) {
            cw_count(endpoint, verdict == CW_LATER ? CW_COUNTER_DROP_FULL : CW_COUNTER_DROP_MALFORMED, 1);
        }
        if (verdict == CW_LATER) {
            cw_frames_apply_credit(endpoint, flow, header);
            cw_report_want(endpoint, flow, ask_now, false);
        }
        return;
    }
    if (number < end_before) {
        receiver->focus = number < receiver->focus ? number : receiver->focus;
    }
    receiver->unreported++;
    cw_frames_apply(endpoint, flow, &frames);
    if (receiver->arrivals > 0 || packets->base != packets->end) {
        cw_timers_watch(endpoint, flow);
    }
    bool new_hole = number > end_before;
    bool is_full =
        header->payload_bytes + sizeof(uint64_t) > flow->session.payload_bytes_max; /* parts end at multiples of 8 */
    cw_report_want(endpoint, flow, ask_now || new_hole, is_full);
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
            cw_report_want(endpoint, flow, true, false);
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

/* Of no established session: set-up packets, and a guest's. */
static inline bool has_no_session(const struct cw_wire_header *header)
{
    return header->type <= CW_WIRE_HELLO_REPLY || header->type >= CW_WIRE_GUEST_FIRST;
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
    if (incoming->verdict != CW_WIRE_GOOD || has_no_session(incoming->header)) {
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
    cw_wire_tag_number(words, (uint32_t)(incoming->number >> 32));
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
    if (incoming->header->type >= CW_WIRE_GUEST_FIRST && incoming->header->type <= CW_WIRE_GUEST_LAST) {
        if (endpoint->guest != NULL) {
            endpoint->guest->receive(endpoint->guest, incoming->header, endpoint->now_ns);
        } else {
            cw_count(endpoint, CW_COUNTER_DROP_FLOW, 1);
        }
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
