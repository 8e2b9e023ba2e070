/* Choice of the next operation of a flow, and its packets. A packet is described by its record first, then written from
 * the record: the first transmission and every later one are the same code. */
#include "dataplane/flow/transmit.h"

#include <assert.h>
#include <string.h>

#include "dataplane/congestion/bandwidth.h"
#include "dataplane/congestion/congestion.h"
#include "dataplane/flow/ack_send.h"
#include "dataplane/flow/compress.h"
#include "dataplane/flow/frame.h"
#include "dataplane/flow/integrity.h"
#include "dataplane/flow/path_mtu.h"
#include "dataplane/flow/run.h"
#include "dataplane/flow/session.h"
#include "dataplane/flow/shaper.h"
#include "dataplane/flow/table.h"
#include "dataplane/flow/timers.h"
#include "dataplane/put/operation.h"
#include "dataplane/staging/stage.h"
#include "dataplane/state/wake.h"

enum {
    SHORT_RUN_MAX = 8, /* short operations that may overtake a bulk packet */
    MUCH_BYTES = 32 << 10,
    MUCH_PACKETS = 64,
    DOUBTFUL_TRANSMISSIONS = 6, /* of one packet: more than random loss explains on most lines */
    GETS_A_PACKET_MAX = 16,     /* the target answers all of them or none: it must have the operations for that */
};

/* ---- packets ---- */

/* Of the payload's first bytes, `in_buffer` of which are in the packet's buffer, the others in its pieces. */
static inline uint32_t payload_checksum(const struct cw_endpoint *endpoint, const struct cw_transmit *packet,
                                        uint32_t in_buffer, uint32_t bytes)
{
    uint32_t here = in_buffer < bytes ? in_buffer : bytes;
    uint32_t checksum = cw_wire_checksum(0, packet->data + endpoint->overhead_bytes, here);
    for (uint32_t i = 0; i < packet->piece_count && here < bytes; i++) {
        uint32_t more = packet->pieces[i].length < bytes - here ? packet->pieces[i].length : bytes - here;
        checksum = cw_wire_checksum(checksum, packet->pieces[i].data, more);
        here += more;
    }
    return checksum;
}

/* When a packet is to leave: now, unless the port lets packets out at a time. */
static inline uint64_t departure(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                 struct cw_transmit *packet)
{
    if (!endpoint->offloads_out) {
        return endpoint->now_ns;
    }
    uint64_t departure_ns = cw_shaper_departure(endpoint, &flow->shaping);
    packet->departure_ns = departure_ns > endpoint->now_ns ? departure_ns : 0;
    return departure_ns;
}

/* Checksum and flags of a payload. */
struct cover {
    uint32_t checksum;
    uint32_t flags;
};

/* Whether the checksum may leave out data, since something else covers them. */
static inline bool may_leave_data(const struct cw_written *written)
{
    return written->header > 0 && written->in_buffer + written->gathered >= CW_WIRE_KEPT_MIN;
}

static inline struct cover cover_of_header(const struct cw_endpoint *endpoint, const struct cw_transmit *packet,
                                           const struct cw_written *written, uint32_t flags)
{
    return (struct cover){payload_checksum(endpoint, packet, written->in_buffer, written->header + CW_WIRE_KEPT_DATA),
                          flags};
}

/* Whether data may be left out of the checksum where they are long enough: the medium or the NICs
 * protect them. */
static inline bool is_kept(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    return flow->session.kept ||
           (endpoint->offloads_out && flow->session.listens && cw_integrity_form(endpoint, flow) == CW_INTEGRITY_SUM);
}

/* Of a session that is not sealed. */
static inline struct cover cover(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                 const struct cw_transmit *packet, const struct cw_written *written)
{
    return flow->session.kept && may_leave_data(written)
               ? cover_of_header(endpoint, packet, written, CW_WIRE_KEPT)
               : (struct cover){.checksum = written->is_summed
                                                ? written->checksum
                                                : payload_checksum(endpoint, packet, written->in_buffer, UINT32_MAX)};
}

/* Where ports take part: of signed DATA perhaps the UDP checksum alone. */
static __attribute__((noinline)) struct cover cover_by_port(struct cw_endpoint *endpoint, struct cw_flow *flow,
                                                            struct cw_transmit *packet, enum cw_wire_type type,
                                                            const struct cw_written *written)
{
    enum cw_integrity_form form =
        flow->session.listens && may_leave_data(written) ? cw_integrity_form(endpoint, flow) : CW_INTEGRITY_CRC;
    /* the UDP checksum of a trial is wrong, and stays so */
    packet->checksum = form != CW_INTEGRITY_CRC || (endpoint->sums_all && type != CW_WIRE_TRIAL);
    if (form == CW_INTEGRITY_SUM) {
        cw_count(endpoint, CW_COUNTER_SUMMED_OUT, 1);
        return cover_of_header(endpoint, packet, written, CW_WIRE_SUMMED);
    }
    struct cover by = {.checksum = 0};
    if (flow->session.seal == NULL) {
        by = cover(endpoint, flow, packet, written);
    }
    return by;
}

/* Completes the headers of a packet whose payload is written. A sealed one needs no checksum. */
static void finish(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_transmit *packet,
                   enum cw_wire_type type, uint16_t flags, uint64_t number, const struct cw_written *written)
{
    uint8_t *at = packet->data;
    uint32_t payload_bytes = written->in_buffer + written->gathered;
    struct cw_seal *seal = flow->session.seal;
    struct cw_wire_receiver receiver;
    cw_flow_receiver(endpoint, flow, &receiver);
    cw_wire_outer_write(&endpoint->outer, &receiver, at, payload_bytes + (seal != NULL ? CW_WIRE_MAC_BYTES : 0));
    struct cover by = {.checksum = 0};
    if (endpoint->offloads_out) {
        by = cover_by_port(endpoint, flow, packet, type, written);
    } else if (seal == NULL) {
        by = cover(endpoint, flow, packet, written);
    }
    uint64_t departure_ns = departure(endpoint, flow, packet);
    struct cw_wire_header header = {
        .version = CW_WIRE_VERSION,
        .type = (uint8_t)type,
        .flags = endpoint->packet_flags | flags | (uint16_t)by.flags,
        .flow = flow->session.peer_flow,
        .number = (uint32_t)number,
        .timestamp = cw_wire_timestamp(departure_ns),
        .acknowledged = (uint32_t)flow->receiver.packets.base,
        .echo = flow->receiver.echo,
        .echo_delay = cw_echo_delay(departure_ns, flow->receiver.has_echo, flow->receiver.echo_arrival_ns),
        .payload_bytes = (uint16_t)payload_bytes,
        .checksum = by.checksum,
    };
    if (seal != NULL) {
        assert(written->gathered == 0);
        cw_header_sealed(endpoint, packet, &header, seal);
    } else {
        cw_header_signed(endpoint, packet, &header, number, &flow->session.key_out, written->in_buffer);
    }
    cw_shaper_sent(endpoint, &flow->shaping, packet->length + written->gathered);
    cw_count(endpoint, CW_COUNTER_BYTES_OUT, packet->length + written->gathered);
}

uint8_t *cw_transmit_control(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_wire_type type,
                             uint32_t payload_bytes)
{
    assert(flow->state == CW_PEER_ESTABLISHED && payload_bytes <= endpoint->payload_bytes_max);
    struct cw_transmit *packet = cw_stage(endpoint);
    if (packet == NULL) {
        return NULL;
    }
    cw_staged_header(endpoint, packet)->type = (uint8_t)type;
    return packet->data + endpoint->overhead_bytes;
}

void cw_transmit_control_finish(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes)
{
    struct cw_transmit *packet = &endpoint->staged[endpoint->staged_count - 1];
    enum cw_wire_type type = cw_staged_header(endpoint, packet)->type;
    struct cw_written written = {.in_buffer = payload_bytes};
    finish(endpoint, flow, packet, type, 0, flow->sender.control_next++, &written);
}

/* True if the sender pauses after this packet because a window is used up: then an acknowledgement should come at once,
 * but not more often than four times a window. */
static bool wants_report(struct cw_flow *flow, uint64_t number)
{
    struct cw_sender *sender = &flow->sender;
    uint64_t in_flight = number + 1 - sender->sent.base;
    if (number < sender->report_asked || (cw_congestion_open(flow) && in_flight < flow->session.packet_window)) {
        return false;
    }
    sender->report_asked = number + 1 + in_flight / 4;
    return true;
}

/* Writes and accounts for one transmission of a recorded packet. */
static void send_record(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_transmit *packet, uint64_t number,
                        struct cw_sent *record)
{
    bool sealed = flow->session.seal != NULL; /* in place: not in the application's memory */
    uint32_t how = sealed ? 0 : CW_WRITE_GATHERS | (is_kept(endpoint, flow) ? 0u : (uint32_t)CW_WRITE_SUMS);
    struct cw_written written;
    cw_frames_write(endpoint, record, packet, packet->data + endpoint->overhead_bytes, how, &written);
    uint32_t payload_bytes = written.in_buffer + written.gathered;
    record->time_ns = departure(endpoint, flow, packet);
    record->frame_bytes = (uint16_t)(endpoint->overhead_bytes + payload_bytes + (sealed ? CW_WIRE_MAC_BYTES : 0));
    packet->alone = record->transmissions > 0;
    if (record->transmissions < UINT8_MAX) {
        record->transmissions++;
    }
    if (record->transmissions % DOUBTFUL_TRANSMISSIONS == 0 || record->transmissions == UINT8_MAX) {
        cw_path_mtu_doubt(endpoint, flow, payload_bytes);
    }
    if (flow->bandwidth != NULL && flow->sender.in_flight_bytes == 0) {
        cw_bandwidth_idle(flow);
    }
    flow->sender.in_flight_bytes += record->frame_bytes;
    flow->sender.packets_sent++;
    flow->congestion.round_sent++;
    finish(endpoint, flow, packet, CW_WIRE_DATA, wants_report(flow, number) ? CW_WIRE_ACK_NOW : 0, number, &written);
    cw_ack_carried(flow);
    cw_timers_sent(endpoint, flow);
    if (flow->timers.rate_bps != 0) {
        cw_timers_paced(endpoint, flow, record->frame_bytes);
    }
}

/* ---- choice ---- */

/* Operations that are to share a packet. */
struct bundle {
    struct cw_operation *first;
    struct cw_operation *last;
    uint32_t bytes;
    uint32_t count;
    uint32_t gets;
    bool consecutive;
};

/* Adds an operation if it fits. A frame must not share a packet if it waits for a put that travels between the packet's
 * first frame and itself, but elsewhere: the target could neither take the packet nor do without it (see
 * cw_reassemblies_room). */
static bool bundle_add(struct bundle *bundle, struct cw_operation *operation, uint32_t bytes_max)
{
    uint32_t needed = cw_wire_pad(bundle->bytes) + cw_frame_bytes(operation);
    uint32_t gets = bundle->gets + (operation->kind == CW_OPERATION_GET);
    if (bundle->count > 0) {
        bool consecutive = bundle->consecutive && operation->number == bundle->last->number + 1;
        bool waits_outside = !consecutive && operation->predecessor != 0 &&
                             operation->number - operation->predecessor >= bundle->first->number;
        if (needed > bytes_max || gets > GETS_A_PACKET_MAX || bundle->count == CW_OPERATIONS_A_PACKET ||
            bundle->first->alone || operation->alone || operation->number < bundle->last->number || waits_outside) {
            return false;
        }
        bundle->consecutive = consecutive;
        bundle->last->chain = operation;
    } else {
        bundle->first = operation;
        bundle->consecutive = true;
    }
    bundle->last = operation;
    bundle->bytes = needed;
    bundle->gets = gets;
    bundle->count++;
    operation->chain = NULL;
    operation->sent = true;
    operation->position = operation->bytes;
    operation->packets_open++;
    return true;
}

/* Fills a packet with short operations; with the oldest one at most if only that may go. */
static void short_fill(struct cw_flow *flow, uint32_t payload_bytes_max, bool oldest_only, struct cw_sent *record)
{
    struct cw_sender *sender = &flow->sender;
    struct cw_operation_queue *queue = &sender->queue_short;
    struct bundle bundle = {0};
    bool more = !oldest_only || (queue->first != NULL && cw_flow_oldest(flow) == queue->first);
    while (more && queue->first != NULL && bundle_add(&bundle, queue->first, payload_bytes_max)) {
        cw_operation_pop(queue);
        more = !oldest_only;
    }
    queue = &sender->queue_credit_frames;
    while (queue->first != NULL && bundle_add(&bundle, queue->first, payload_bytes_max)) {
        cw_operation_pop(queue);
    }
    const struct cw_operation *first = bundle.first;
    bool bears_data =
        first->kind == CW_OPERATION_PUT || first->kind == CW_OPERATION_MESSAGE || first->kind == CW_OPERATION_REPLY;
    uint16_t bytes = bundle.count == 1 && bears_data ? (uint16_t)first->bytes : 0;
    *record = (struct cw_sent){.operation = bundle.first, .count = (uint8_t)bundle.count, .bytes = bytes};
}

uint32_t cw_transmit_part_bytes(const struct cw_flow *flow)
{
    uint32_t payload_bytes_max = flow->session.payload_bytes_max;
    return flow->state == CW_PEER_ESTABLISHED ? (payload_bytes_max - (uint32_t)sizeof(struct cw_wire_part)) & ~7u : 0;
}

/* Takes the next part of the first bulk operation. */
static void part_fill(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_sent *record)
{
    struct cw_operation *operation = flow->sender.queue_bulk.first;
    uint32_t room = cw_transmit_part_bytes(flow);
    uint64_t left = operation->bytes - operation->position;
    uint32_t bytes = left < room ? (uint32_t)left : room;
    bool is_much = left >= MUCH_BYTES || flow->sender.packets_sent >= MUCH_PACKETS; /* in addition to a probe or two */
    if (left > room && is_much && flow->session.payload_bytes_max < cw_session_agreed(endpoint, &flow->session)) {
        cw_path_mtu_want(endpoint, flow);
    }
    *record =
        (struct cw_sent){.operation = operation, .count = 1, .position = operation->position, .bytes = (uint16_t)bytes};
    if (cw_compress_may(endpoint) && operation->bytes > room && operation->source.element != CW_ELEMENT_PLAIN) {
        record->plan = cw_flow_compress_plan(endpoint, flow, operation);
        if (record->plan.codec != CW_CODEC_NONE) {
            record->bytes = (uint16_t)(left < CW_CHUNK_RAW_MAX ? left : CW_CHUNK_RAW_MAX);
        }
    }
    operation->packets_open++;
    operation->chain = NULL;
}

/* It is written, and has taken what it has taken. */
static void part_commit(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_sent *record)
{
    struct cw_operation *operation = record->operation;
    operation->position += record->bytes;
    if (cw_flow_compress_counts(record)) {
        cw_flow_compress_sent(endpoint, flow, record);
    }
    if (operation->position == operation->bytes) {
        operation->sent = true;
        cw_operation_pop(&flow->sender.queue_bulk);
        cw_operation_left(endpoint, operation);
    }
}

enum outcome { SENT, BLOCKED, NO_BUFFER };

static enum outcome send_new(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_sender *sender = &flow->sender;
    bool oldest_only = cw_flow_restrained(endpoint, flow); /* judged before this packet takes a record */
    if (sender->sent.next - sender->sent.base >= flow->session.packet_window) {
        return BLOCKED; /* an acknowledgement wakes the flow */
    }
    if (!cw_sent_prepare(&sender->sent, &endpoint->sent_chunks, &endpoint->blocks)) {
        cw_flow_wake_at(endpoint, flow,
                        endpoint->now_ns + CW_ACK_DELAY_NS); /* others hold the records: look again soon */
        return BLOCKED;
    }
    struct cw_transmit *packet = cw_stage(endpoint);
    if (packet == NULL) {
        return NO_BUFFER;
    }
    uint32_t payload_bytes_max = flow->session.payload_bytes_max;
    struct cw_operation *first = sender->queue_short.first;
    while (first != NULL && cw_frame_bytes(first) > payload_bytes_max) {
        /* posted when larger packets were expected than are known to arrive */
        cw_operation_push_ordered(&sender->queue_bulk, cw_operation_pop(&sender->queue_short));
        first = sender->queue_short.first;
    }
    uint64_t number = sender->sent.next;
    struct cw_sent_chunk *chunk = cw_sent_chunk_of(&sender->sent, number);
    struct cw_sent *record = &chunk->records[number % CW_SENT_CHUNK];
    uint64_t bit = 1ull << (number % CW_SENT_CHUNK);
    chunk->acknowledged &= ~bit;
    chunk->lost &= ~bit;
    bool none_short = first == NULL && sender->queue_credit_frames.first == NULL;
    bool bulk = sender->queue_bulk.first != NULL && (none_short || sender->short_run >= SHORT_RUN_MAX);
    if (oldest_only) {
        bulk = sender->queue_credit_frames.first == NULL && cw_flow_oldest(flow) == sender->queue_bulk.first;
    }
    sender->short_run = bulk ? 0 : sender->short_run + 1;
    if (bulk) {
        part_fill(endpoint, flow, record);
    } else {
        short_fill(flow, payload_bytes_max, oldest_only, record);
    }
    sender->sent.next++;
    send_record(endpoint, flow, packet, number, record);
    if (bulk) {
        part_commit(endpoint, flow, record);
    }
    cw_count(endpoint, CW_COUNTER_DATA_OUT, 1);
    return SENT;
}

/* The first packet from `number` on that counts as lost; `next` if there is none. */
static uint64_t find_lost(const struct cw_sent_records *sent, uint64_t number)
{
    while (number < sent->next) {
        const struct cw_sent_chunk *chunk = cw_sent_chunk_of(sent, number);
        uint64_t bits = chunk == NULL ? 0 : chunk->lost >> (number % CW_SENT_CHUNK);
        if (bits != 0) {
            return number + (uint64_t)__builtin_ctzll(bits);
        }
        number = (number | (CW_SENT_CHUNK - 1)) + 1;
    }
    return sent->next;
}

/* The lost packet whose turn it is: they go round, since the lowest may be lost forever to a receiver that has no room
 * for it before a higher one has come. */
static uint64_t choose_lost(struct cw_flow *flow)
{
    struct cw_sender *sender = &flow->sender;
    const struct cw_sent_records *sent = &sender->sent;
    uint64_t number = sender->lost_turn > sent->base ? find_lost(sent, sender->lost_turn) : sent->next;
    if (number >= sent->next) {
        number = find_lost(sent, sender->lost_lowest > sent->base ? sender->lost_lowest : sent->base);
        sender->lost_lowest = number;
    }
    assert(number < sent->next);
    sender->lost_turn = number + 1;
    return number;
}

static enum outcome send_lost(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_transmit *packet = cw_stage(endpoint);
    if (packet == NULL) {
        return NO_BUFFER;
    }
    uint64_t number = choose_lost(flow);
    struct cw_sent_chunk *chunk = cw_sent_chunk_of(&flow->sender.sent, number);
    chunk->lost &= ~(1ull << (number % CW_SENT_CHUNK));
    flow->sender.lost_count--;
    flow->sender.packets_retransmitted++;
    cw_count(endpoint, CW_COUNTER_RETRANSMITTED, 1);
    send_record(endpoint, flow, packet, number, &chunk->records[number % CW_SENT_CHUNK]);
    return SENT;
}

/* True if the flow has more to send and nothing but its turn to wait for. */
static bool send_burst(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t budget, uint32_t *sent)
{
    for (*sent = 0; *sent < budget;) {
        bool lost = flow->sender.lost_count > 0;
        if (flow->state != CW_PEER_ESTABLISHED || (!lost && !cw_flow_has_new(endpoint, flow))) {
            if (flow->bandwidth != NULL) {
                cw_bandwidth_dry(flow);
            }
            flow->timers.paced = false; /* as above */
            cw_flow_wake_soon(endpoint, flow);
            return false;
        }
        if (!cw_congestion_open(flow)) {
            flow->congestion.limited = true;
            flow->timers.paced = false;
            return false;
        }
        bool is_paced = flow->timers.rate_bps != 0 && !cw_timers_pace(endpoint, flow);
        if (is_paced || !cw_shaper_pass(endpoint, flow)) {
            /* on the line, a window that is hardly used need not grow */
            flow->congestion.limited |= is_paced || flow->shaping.shaper != CW_SHAPER_LINE ||
                                        2 * flow->sender.in_flight_bytes >= flow->congestion.window_bytes;
            return false;
        }
        /* packets dropped by a full receiver are lost again and again, until the oldest operation has arrived, or
         * credit for it: they take turns with those */
        bool helps = cw_flow_has_oldest(flow) || flow->sender.queue_credit_frames.first != NULL;
        bool again = lost && (!flow->sender.again_last || !cw_flow_has_new(endpoint, flow) || !helps);
        uint32_t run = 0;
        bool may_run = !lost && flow->sender.queue_bulk.first != NULL;
        bool has_room = !may_run || cw_run_send(endpoint, flow, budget - *sent, &run);
        *sent += run;
        if (!has_room) {
            return true;
        }
        if (run > 0) {
            continue;
        }
        flow->sender.again_last = again;
        enum outcome outcome = again ? send_lost(endpoint, flow) : send_new(endpoint, flow);
        if (outcome == BLOCKED && lost) {
            outcome = send_lost(endpoint, flow);
        }
        if (outcome != SENT) {
            return outcome == NO_BUFFER;
        }
        ++*sent;
    }
    return true;
}

uint32_t cw_transmit_turn(struct cw_endpoint *endpoint)
{
    uint32_t total = 0;
    while (endpoint->active_first != NULL && !endpoint->port_full && total < 2 * CW_BURST) {
        struct cw_flow *flow = endpoint->active_first;
        endpoint->active_first = flow->sender.active_next;
        flow->sender.is_active = false;
        uint32_t sent;
        bool more = send_burst(endpoint, flow, CW_FLOW_BURST, &sent);
        cw_shaper_done(endpoint, flow);
        if (more) {
            cw_flow_wake(endpoint, flow);
        }
        if (more && sent == 0) {
            break; /* no buffers: next turn */
        }
        total += sent;
    }
    return total;
}
