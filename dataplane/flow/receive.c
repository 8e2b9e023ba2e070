/* Packets that come in. A packet is hostile until proven otherwise: lengths, version, flow, number, tag and checksum
 * are checked before its frames are looked at, and all its frames are validated before the first byte is stored. It is
 * accepted as a whole or not at all. The sender sends packets that were not acknowledged again. If the target will
 * never accept a frame, it sends a REJECT. */
#include "dataplane/flow/receive.h"

#include <assert.h>
#include <string.h>

#include "dataplane/flow/ack_send.h"
#include "dataplane/flow/acknowledge.h"
#include "dataplane/flow/extension.h"
#include "dataplane/flow/integrity.h"
#include "dataplane/flow/owned.h"
#include "dataplane/flow/place.h"
#include "dataplane/flow/run.h"
#include "dataplane/flow/session.h"
#include "dataplane/flow/timers.h"
#include "dataplane/staging/seal.h"
#include "dataplane/state/wake.h"

enum { PREFETCH = 4 /* packets ahead */ };

/* True if the packet was accepted: not a duplicate, not refused, not dropped for lack of room. */
static bool data_accept(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                        uint64_t number)
{
    struct cw_receiver *receiver = &flow->receiver;
    struct cw_window *packets = &receiver->packets;
    bool ask_now = (header->flags & CW_WIRE_ACK_NOW) != 0;
    if (number < packets->base || cw_window_seen(packets, number)) {
        receiver->duplicates++;
        cw_count(endpoint, CW_COUNTER_DROP_DUPLICATE, 1);
        cw_ack_want(endpoint, flow, ask_now ? CW_ACK_NOW : CW_ACK_SOON);
        return false;
    }
    if (number - packets->base >= cw_window_span()) {
        cw_count(endpoint, CW_COUNTER_DROP_WINDOW, 1);
        return false;
    }
    struct cw_frames frames;
    enum cw_verdict verdict = cw_frames_validate(endpoint, flow, header, &frames);
    uint64_t end_before = packets->end;
    if (verdict == CW_VALID && !cw_window_mark(packets, &endpoint->blocks, number)) {
        verdict = CW_LATER;
    }
    if (verdict != CW_VALID) {
        if (verdict == CW_DAMAGED) {
            cw_count(endpoint, CW_COUNTER_DROP_CHUNK, 1);
            cw_session_end(endpoint, flow, CW_PEER_FAILED, CW_ERROR_DAMAGED);
            return false;
        }
        if (verdict != CW_REFUSE) {
            cw_count(endpoint, verdict == CW_LATER ? CW_COUNTER_DROP_FULL : CW_COUNTER_DROP_MALFORMED, 1);
        }
        if (verdict == CW_LATER) {
            cw_frames_place_credit(endpoint, flow, header);
            cw_ack_want(endpoint, flow, ask_now ? CW_ACK_NOW : CW_ACK_SOON);
        }
        return false;
    }
    if (number < end_before) {
        receiver->focus = number < receiver->focus ? number : receiver->focus;
    }
    receiver->unreported++;
    cw_frames_place(endpoint, flow, &frames);
    if (receiver->reassemblies > 0 || packets->base != packets->end) {
        cw_flow_watch(endpoint, flow);
    }
    bool new_hole = number > end_before;
    enum cw_ack_haste haste = new_hole               ? CW_ACK_NOW
                              : ask_now              ? CW_ACK_ASKED
                              : frames.only_messages ? CW_ACK_MESSAGE
                              : frames.goes_on       ? CW_ACK_STREAM
                                                     : cw_ack_haste_of(flow, header->payload_bytes);
    cw_ack_want(endpoint, flow, haste);
    return true;
}

/* False: it is malformed. */
static bool bye_accept(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                       bool newest)
{
    bool is_narrow = header->payload_bytes == 1 && *(const uint8_t *)(header + 1) == CW_WIRE_BYE_NARROW;
    if (header->payload_bytes != 0 && !is_narrow) {
        return false;
    }
    if (newest && is_narrow) {
        cw_session_end(endpoint, flow, CW_PEER_FAILED, CW_ERROR_PATH_MTU);
    } else if (newest) {
        cw_session_end(endpoint, flow, CW_PEER_CLOSED, CW_ERROR_CLOSED);
    }
    return true;
}

/* Everything that is not a data packet. */
static void control_accept(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                           uint64_t number, enum cw_port_checksum said)
{
    struct cw_receiver *receiver = &flow->receiver;
    bool newest = number >= receiver->control_end;
    if (newest) {
        receiver->control_end = number + 1;
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
        if (newest) {
            if (header->payload_bytes > 0) {
                uint32_t word = cw_wire_probe_word(header->payload_bytes, *(const uint8_t *)(header + 1));
                flow->session.mtu.in = word & CW_WIRE_PROBE_WORD;
            }
            receiver->report_from_base = true;
            cw_ack_want(endpoint, flow, CW_ACK_NOW);
        }
        break;
    case CW_WIRE_REJECT:
        good = cw_acknowledge_reject(endpoint, flow, header);
        break;
    case CW_WIRE_BYE:
        good = bye_accept(endpoint, flow, header, newest);
        break;
    case CW_WIRE_TRIAL:
        if (newest) { /* an older one may be from before the link went down */
            cw_integrity_trial(endpoint, header, said);
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

/* A packet of a burst. Tags are computed, and sealed packets opened, for all of them first, under the keys of the
 * sessions as they are then. */
struct incoming {
    enum cw_wire_verdict verdict;
    const struct cw_wire_header *header;
    union {
        uint64_t number; /* that the tag is for */
        uint64_t count;  /* of a sealed packet */
    };
    uint32_t tag; /* its index; UINT32_MAX: none computed */
    uint8_t said; /* by the port of its UDP checksum: enum cw_port_checksum */
    bool owned;   /* a packet that a kernel would process for our address */
    bool sealed;  /* it came so */
    bool opened;  /* and has the form of any other now */
    struct cw_seal
        *seal;       /* that opens it, NULL: there is none; not to be followed when the burst has begun to be taken */
    uint64_t serial; /* of that seal */
    uint64_t arrival_ns; /* as the port says it; only with offloads_in */
};

struct burst {
    struct incoming packets[CW_BURST];
    struct cw_wire_tags tags;
};

/* Of no established session: set-up packets, and an extension's. */
static inline bool has_no_session(const struct cw_wire_header *header)
{
    return header->type <= CW_WIRE_HELLO_REPLY || header->type >= CW_WIRE_EXTENSION_FIRST;
}

/* The number of a packet under the present session of its flow. */
static inline uint64_t number_of(const struct cw_flow *flow, const struct cw_wire_header *header)
{
    const struct cw_receiver *receiver = &flow->receiver;
    uint64_t expected = header->type == CW_WIRE_DATA ? receiver->packets.end : receiver->control_end;
    return cw_wire_number_expand(expected, header->number);
}

static inline void look(struct cw_endpoint *endpoint, const struct cw_received *packet, struct incoming *incoming)
{
    incoming->tag = UINT32_MAX;
    incoming->sealed = false;
    incoming->said = packet->checksum;
    if (endpoint->offloads_in) {
        incoming->arrival_ns = endpoint->port->info.arrivals ? packet->arrival_ns : 0;
    }
    incoming->seal = NULL;
    incoming->verdict =
        cw_wire_parse(packet->data, packet->length, &endpoint->config.address.ip, endpoint->config.address.udp_port,
                      endpoint->config.stream_count, endpoint->config.group_port, &incoming->header);
    incoming->owned = (incoming->verdict == CW_WIRE_FOREIGN || incoming->verdict == CW_WIRE_SHORT) &&
                      endpoint->neighbours != NULL && cw_owned_receive(endpoint, packet->data, packet->length);
}

/* Has the tag computed that the packet should have. */
static void expect_tag(const struct cw_endpoint *endpoint, struct burst *burst, struct incoming *incoming)
{
    if (incoming->verdict != CW_WIRE_GOOD || incoming->sealed || has_no_session(incoming->header)) {
        return;
    }
    const struct cw_wire_header *header = incoming->header;
    const struct cw_flow *flow = cw_endpoint_flow(endpoint, header->flow);
    if (flow == NULL || flow->state != CW_PEER_ESTABLISHED || flow->session.seal != NULL) {
        return;
    }
    incoming->number = number_of(flow, header);
    uint64_t words[CW_WIRE_TAG_WORDS];
    memcpy(words, header, sizeof(words));
    cw_wire_tag_number(words, (uint32_t)(incoming->number >> 32));
    incoming->tag = burst->tags.count;
    cw_wire_tags_add(&burst->tags, words, &flow->session.key_in);
}

/* ---- sealed packets ---- */

static struct cw_flow *flow_of_sealed(const struct cw_endpoint *endpoint, const struct cw_wire_header *header)
{
    return cw_endpoint_flow(endpoint, header->flow & ((1u << CW_WIRE_FLOW_BITS) - 1));
}

/* Finds the seal that a packet says it is under. */
static void find_seal(struct cw_endpoint *endpoint, struct incoming *incoming)
{
    const struct cw_wire_header *header = incoming->header;
    if (incoming->verdict != CW_WIRE_GOOD || (header->flags & CW_WIRE_ENCRYPTED) == 0 || has_no_session(header)) {
        return;
    }
    incoming->sealed = true;
    incoming->opened = false;
    struct cw_flow *flow = flow_of_sealed(endpoint, header);
    if (flow == NULL || cw_wire_sealed_bytes(header) < CW_WIRE_FIELDS_BYTES) {
        return;
    }
    uint32_t phase = header->flow >> CW_WIRE_FLOW_BITS;
    if (flow->session.seal != NULL && phase == cw_seal_phase(flow->session.local)) {
        incoming->seal = flow->session.seal;
    }
    incoming->serial = incoming->seal == NULL ? 0 : incoming->seal->serial;
    memcpy(&incoming->count, &((const struct cw_wire_sealed *)header)->count, sizeof(incoming->count));
}

/* Opens the packets from `first` on that are under the same seal as that one, in place: a port lets us write into what
 * we have received. */
static void open_alike(struct burst *burst, uint32_t first, uint32_t count)
{
    struct cw_aead_packet packets[CW_BURST];
    uint32_t places[CW_BURST];
    uint32_t found = 0;
    struct cw_seal *seal = burst->packets[first].seal;
    for (uint32_t i = first; i < count; i++) {
        struct incoming *incoming = &burst->packets[i];
        if (!incoming->sealed || incoming->seal != seal) {
            continue;
        }
        struct cw_wire_sealed *header = (struct cw_wire_sealed *)(uintptr_t)incoming->header;
        places[found] = i;
        packets[found++] = (struct cw_aead_packet){
            .readable = (uint8_t *)header,
            .data = header->fields,
            .bytes = cw_wire_sealed_bytes(incoming->header),
            .count = incoming->count,
        };
        incoming->seal = NULL;
    }
    cw_aead_unseal(seal->in, packets, found);
    for (uint32_t i = 0; i < found; i++) {
        struct incoming *incoming = &burst->packets[places[i]];
        incoming->opened = packets[i].good;
        if (incoming->opened &&
            !cw_wire_sealed_restore((struct cw_wire_header *)(uintptr_t)incoming->header, packets[i].bytes)) {
            incoming->verdict = CW_WIRE_MALFORMED;
        }
    }
}

/* True if a sealed packet was opened under the present session, and came for the first time.
 * An earlier packet of the burst may have ended the session that its seal belonged to. */
static bool admit_sealed(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct incoming *incoming)
{
    if (incoming->serial != 0 && !incoming->opened) {
        cw_count(endpoint, CW_COUNTER_DROP_SEAL, 1);
        return false;
    }
    struct cw_seal *seal = flow->session.seal;
    if (!incoming->opened || seal == NULL || seal->serial != incoming->serial) {
        cw_count(endpoint, CW_COUNTER_DROP_FLOW, 1);
        return false;
    }
    if (!cw_seal_fresh(seal, incoming->count)) {
        cw_count(endpoint, CW_COUNTER_DROP_REPLAY, 1);
        return false;
    }
    return true;
}

/* ---- signed packets ---- */

/* True if the tag fits under the present session. An earlier packet of the burst may have changed that, or moved the
 * numbers. */
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

/* The number and tag under the present session. */
static bool authenticate(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct burst *burst,
                         const struct incoming *incoming, uint64_t *number)
{
    if (flow->state != CW_PEER_ESTABLISHED) {
        cw_count(endpoint, CW_COUNTER_DROP_FLOW, 1);
        return false;
    }
    *number = number_of(flow, incoming->header);
    if (!fits_session(flow, burst, incoming, *number)) {
        cw_count(endpoint, CW_COUNTER_DROP_TAG, 1);
        return false;
    }
    return true;
}

/* Verifies the payload of an authentic packet, as far as its form requires. */
static inline bool is_covered(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct incoming *incoming)
{
    const struct cw_wire_header *header = incoming->header;
    if ((header->flags & (CW_WIRE_SUMMED | CW_WIRE_KEPT)) == 0 || header->type != CW_WIRE_DATA) {
        return cw_wire_checksum(0, header + 1, header->payload_bytes) == header->checksum;
    }
    if ((header->flags & CW_WIRE_SUMMED) != 0 && !cw_integrity_summed(endpoint, flow, header, incoming->said)) {
        return false;
    }
    return ((header->flags & CW_WIRE_KEPT) == 0 || flow->session.kept) && cw_wire_kept_right(header);
}

/* The flow of a packet that is authentic, and its number; NULL: it is not, and was counted. */
static struct cw_flow *admit(struct cw_endpoint *endpoint, const struct burst *burst, const struct incoming *incoming,
                             uint64_t *number)
{
    const struct cw_wire_header *header = incoming->header;
    struct cw_flow *flow =
        incoming->sealed ? flow_of_sealed(endpoint, header) : cw_endpoint_flow(endpoint, header->flow);
    if (flow == NULL) {
        cw_count(endpoint, CW_COUNTER_DROP_FLOW, 1);
        return NULL;
    }
    if (incoming->sealed) {
        if (!admit_sealed(endpoint, flow, incoming)) {
            return NULL;
        }
        *number = number_of(flow, header);
        return flow;
    }
    if (flow->encrypt) {
        cw_count(endpoint, CW_COUNTER_DROP_SEAL, 1);
        return NULL;
    }
    if (!authenticate(endpoint, flow, burst, incoming, number)) {
        return NULL;
    }
    bool is_right = is_covered(endpoint, flow, incoming);
    if (is_right && endpoint->offloads_in && endpoint->integrity.listens && header->type == CW_WIRE_DATA &&
        (header->flags & (CW_WIRE_SUMMED | CW_WIRE_KEPT)) == 0) {
        cw_integrity_seen(endpoint, flow, header, incoming->said);
    }
    if (!is_right) {
        cw_count(endpoint, CW_COUNTER_DROP_CHECKSUM, 1);
        return NULL;
    }
    return flow;
}

/* True if it was a data packet and was accepted. */
static bool packet_accept(struct cw_endpoint *endpoint, const struct burst *burst, const struct incoming *incoming)
{
    const struct cw_wire_header *header = incoming->header;
    uint64_t number;
    struct cw_flow *flow = admit(endpoint, burst, incoming, &number);
    if (flow == NULL || cw_session_spent(endpoint, flow)) {
        return false;
    }
    cw_session_confirm(endpoint, flow);
    uint64_t arrival_ns =
        endpoint->offloads_in ? cw_integrity_arrival(endpoint, incoming->arrival_ns) : endpoint->now_ns;
    struct cw_receiver *receiver = &flow->receiver;
    if (!receiver->has_echo || (int32_t)(header->timestamp - receiver->echo) >= 0 ||
        endpoint->now_ns - receiver->echo_arrival_ns > CW_ECHO_KEEP_NS) {
        receiver->has_echo = true;
        receiver->echo = header->timestamp;
        receiver->echo_arrival_ns = arrival_ns;
    }
    flow->session.peer_waiting = header->flags & CW_WIRE_WAITING_MASK;
    cw_timers_received(endpoint, flow, header->echo);
    uint64_t acknowledged = cw_wire_number_expand(flow->sender.sent.base, header->acknowledged);
    bool advances = acknowledged > flow->sender.sent.base && acknowledged <= flow->sender.sent.next;
    if (advances || header->type == CW_WIRE_ACK) {
        cw_acknowledge_echo(endpoint, flow, header, arrival_ns);
    }
    if (advances) {
        cw_acknowledge_below(endpoint, flow, acknowledged);
    }
    if (header->type == CW_WIRE_DATA) {
        return data_accept(endpoint, flow, header, number);
    }
    control_accept(endpoint, flow, header, number, incoming->said);
    return false;
}

/* As packet_accept. */
static bool frame_accept(struct cw_endpoint *endpoint, const struct burst *burst, const struct incoming *incoming)
{
    static const enum cw_counter counters[] = {
        [CW_WIRE_SHORT] = CW_COUNTER_DROP_SHORT,
        [CW_WIRE_FOREIGN] = CW_COUNTER_DROP_FOREIGN,
        [CW_WIRE_OTHER_VERSION] = CW_COUNTER_DROP_VERSION,
        [CW_WIRE_MALFORMED] = CW_COUNTER_DROP_MALFORMED,
    };
    if (incoming->verdict != CW_WIRE_GOOD) {
        cw_count(endpoint, counters[incoming->verdict], incoming->owned ? 0 : 1);
        return false;
    }
    if (incoming->header->type >= CW_WIRE_EXTENSION_FIRST && incoming->header->type <= CW_WIRE_EXTENSION_LAST) {
        if (endpoint->extension != NULL) {
            endpoint->extension->receive(endpoint->extension, incoming->header, endpoint->now_ns);
        } else {
            cw_count(endpoint, CW_COUNTER_DROP_FLOW, 1);
        }
        return false;
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
    case CW_WIRE_TRIAL:
        return packet_accept(endpoint, burst, incoming);
    default:
        cw_count(endpoint, CW_COUNTER_DROP_MALFORMED, 1);
        break;
    }
    return false;
}

/* Accepts the packets behind a leader that belong to its run. Returns their number. */
static __attribute__((noinline)) uint32_t followers_accept(struct cw_endpoint *endpoint, const struct burst *burst,
                                                           uint32_t at, uint32_t count)
{
    const struct incoming *leader = &burst->packets[at];
    struct cw_run run;
    if (leader->tag == UINT32_MAX || !cw_run_may_lead(leader->header)) {
        return 0;
    }
    struct cw_flow *flow = cw_endpoint_flow(endpoint, leader->header->flow);
    if (flow == NULL || !cw_wire_tags_key_is(&burst->tags, leader->tag, &flow->session.key_in) ||
        !cw_run_lead(&run, endpoint, flow, leader->header, leader->number)) {
        return 0;
    }
    for (uint32_t i = at + 1; i < count; i++) {
        const struct incoming *incoming = &burst->packets[i];
        /* same flow, and tags of a burst are computed together: so the same key as the leader's */
        if (incoming->verdict != CW_WIRE_GOOD || incoming->tag == UINT32_MAX ||
            incoming->number != leader->number + (i - at) || incoming->header->flow != leader->header->flow ||
            burst->tags.value[incoming->tag] != incoming->header->tag || !cw_run_follow(&run, incoming->header)) {
            break;
        }
    }
    cw_run_account(&run, endpoint, flow);
    return run.count;
}

/* Takes packets up to the first set-up packet, and that one: those behind it may be of the session that it begins.
 * Returns how many. */
static uint32_t burst_accept(struct cw_endpoint *endpoint, const struct cw_received *packets, uint32_t count)
{
    struct burst burst;
    burst.tags.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH < count) {
            __builtin_prefetch(packets[i + PREFETCH].data);
            __builtin_prefetch(packets[i + PREFETCH].data + 64);
        }
        struct incoming *incoming = &burst.packets[i];
        look(endpoint, &packets[i], incoming);
        if (incoming->verdict == CW_WIRE_GOOD && incoming->header->type <= CW_WIRE_HELLO_REPLY) {
            count = i + 1;
            break;
        }
        find_seal(endpoint, incoming);
        if (count > CW_WIRE_TAGS_FEW) {
            expect_tag(endpoint, &burst, incoming);
        }
    }
    cw_wire_tags_compute(&burst.tags);
    for (uint32_t i = 0; i < count; i++) {
        if (burst.packets[i].seal != NULL) {
            open_alike(&burst, i, count);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        bool has_data = frame_accept(endpoint, &burst, &burst.packets[i]);
        if (has_data && packets[i].length >= CW_WIRE_KEPT_MIN && i + 1 < count) { /* others lead no run */
            i += followers_accept(endpoint, &burst, i, count);
        }
    }
    return count;
}

void cw_receive_frames(struct cw_endpoint *endpoint, const struct cw_received *packets, uint32_t count)
{
    assert(count <= CW_BURST);
    for (uint32_t taken = 0; taken < count;) {
        taken += burst_accept(endpoint, packets + taken, count - taken);
    }
}
