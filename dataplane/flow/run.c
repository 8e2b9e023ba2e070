#include "dataplane/flow/run.h"

#include <string.h>

#include "dataplane/base/prefetch.h"
#include "dataplane/compress/choice.h"
#include "dataplane/congestion/congestion.h"
#include "dataplane/flow/ack_send.h"
#include "dataplane/flow/frame.h"
#include "dataplane/flow/session.h"
#include "dataplane/flow/table.h"
#include "dataplane/flow/timers.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/staging/stage.h"
#include "dataplane/state/wake.h"

/* ---- out ---- */

enum {
    RUN_MIN = 2,
    SAME_BYTES = offsetof(struct cw_wire_part, position), /* equal at the start of all frames of a run */
    TEMPLATE_BYTES = 192, /* whole vectors; data overwrite the bytes behind the headers, or these are not sent */
    PART_BYTES_MIN = 256, /* of data: a packet is at least as long as the template and CW_WIRE_KEPT_MIN */
};

static_assert(CW_WIRE_NETWORK_V6_BYTES + CW_WIRE_HEADER_BYTES + sizeof(struct cw_wire_part) <= TEMPLATE_BYTES,
              "the headers fit");
static_assert((int)PART_BYTES_MIN >= (int)TEMPLATE_BYTES && (int)PART_BYTES_MIN >= (int)CW_WIRE_KEPT_MIN, "as it says");
static_assert(offsetof(struct cw_wire_part, total) == SAME_BYTES + sizeof(uint64_t) &&
                  sizeof(struct cw_wire_part) == SAME_BYTES + 2 * sizeof(uint64_t),
              "the fields that differ are at the end");

/* The common part of the packets of a run. */
struct run {
    struct cw_operation *operation;
    const uint8_t *data;           /* of the put */
    struct cw_port_memory *memory; /* the port gathers the data from it; NULL: they are copied */
    uint32_t bytes;                /* of data in a packet */
    bool is_kept;                  /* the CRC leaves data out */
    uint32_t checksum;             /* ... of the frame's header up to the position */
    uint64_t words[CW_WIRE_TAG_WORDS];
    uint8_t headers[TEMPLATE_BYTES];
};

static bool may_run(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    const struct cw_sender *sender = &flow->sender;
    const struct cw_operation *operation = sender->queue_bulk.first;
    return operation != NULL && sender->queue_short.first == NULL && sender->queue_credit_frames.first == NULL &&
           sender->lost_count == 0 && sender->sent.next != sender->sent.base && flow->session.seal == NULL &&
           !endpoint->offloads_out && flow->timers.rate_bps == 0 && flow->bandwidth == NULL &&
           flow->shaping.shaper == CW_SHAPER_NONE && operation->status >= 0 && !operation->is_inline &&
           operation->source.kind == CW_SOURCE_CONTIGUOUS &&
           (operation->source.element == CW_ELEMENT_PLAIN || !cw_compress_may(endpoint)) &&
           flow->session.payload_bytes_max >= cw_session_agreed(endpoint, &flow->session) &&
           !cw_flow_restrained(endpoint, flow);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Packets that can be sent before the last one of the put, with the windows still open after each. */
static uint64_t run_length(const struct cw_flow *flow, uint32_t part_bytes)
{
    const struct cw_sent_records *sent = &flow->sender.sent;
    const struct cw_operation *operation = flow->sender.queue_bulk.first;
    uint64_t open = least(cw_congestion_room(flow), flow->session.packet_window - (sent->next - sent->base));
    uint64_t count = open == 0 ? 0 : open - 1;
    count = least(count, (operation->bytes - operation->position - 1) / part_bytes);
    return least(count, CW_SENT_CHUNK - sent->next % CW_SENT_CHUNK);
}

static void run_begin(struct run *run, const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                      uint32_t part_bytes)
{
    const struct cw_session *session = &flow->session;
    struct cw_operation *operation = flow->sender.queue_bulk.first;
    struct cw_wire_part *part = (struct cw_wire_part *)(run->headers + endpoint->overhead_bytes);
    struct cw_wire_receiver receiver;
    uint32_t payload_bytes = (uint32_t)sizeof(*part) + part_bytes;
    run->operation = operation;
    run->data = operation->source.contiguous.data;
    run->memory = cw_frame_memory(endpoint, operation, part_bytes);
    run->bytes = part_bytes;
    run->is_kept = session->kept;
    cw_flow_receiver(endpoint, flow, &receiver);
    cw_wire_outer_write(&endpoint->outer, &receiver, run->headers, payload_bytes);
    cw_frame_part_write(operation, part_bytes, part);
    run->checksum = cw_wire_checksum(0, part, SAME_BYTES);
    const struct cw_wire_header header = {
        .version = CW_WIRE_VERSION,
        .type = CW_WIRE_DATA,
        .flags = (uint16_t)(endpoint->packet_flags | (run->is_kept ? CW_WIRE_KEPT : 0)),
        .flow = session->peer_flow,
        .timestamp = cw_wire_timestamp(endpoint->now_ns),
        .acknowledged = (uint32_t)flow->receiver.packets.base,
        .echo = flow->receiver.echo,
        .echo_delay = cw_echo_delay(endpoint->now_ns, flow->receiver.has_echo, flow->receiver.echo_arrival_ns),
        .payload_bytes = (uint16_t)payload_bytes,
    };
    cw_wire_header_words(&header, run->words);
}

/* Writes the packet with the data at `position`. */
static void packet_write(const struct run *run, struct cw_endpoint *endpoint, const struct cw_flow *flow,
                         struct cw_transmit *packet, uint64_t number, uint64_t position)
{
    const struct cw_operation *operation = run->operation;
    const uint8_t *data = run->data + position;
    uint8_t *payload = packet->data + endpoint->overhead_bytes, *target = payload + sizeof(struct cw_wire_part);
    uint64_t differs[4] = {position, operation->bytes};
    memcpy(packet->data, run->headers, sizeof(run->headers));
    memcpy(payload + offsetof(struct cw_wire_part, position), &position, sizeof(position));
    uint32_t checksum;
    if (run->is_kept) {
        static_assert(CW_WIRE_KEPT_DATA == 2 * sizeof(uint64_t), "as much of the data");
        memcpy(&differs[2], data, CW_WIRE_KEPT_DATA);
        checksum = cw_wire_checksum(run->checksum, differs, sizeof(differs));
    } else {
        checksum = cw_wire_checksum(run->checksum, differs, 2 * sizeof(uint64_t));
    }
    if (run->memory != NULL) {
        packet->pieces[0] = (struct cw_piece){.data = data, .length = run->bytes, .memory = run->memory};
        packet->piece_count = 1;
        checksum = run->is_kept ? checksum : cw_wire_checksum(checksum, data, run->bytes);
    } else {
        if (run->is_kept) {
            memcpy(target, data, run->bytes);
        } else {
            checksum = cw_wire_checksum_copy(checksum, target, data, run->bytes);
        }
        cw_prefetch_read(data + run->bytes, operation->bytes - position - run->bytes); /* the next one's */
    }
    const uint64_t words[CW_WIRE_TAG_WORDS] = {run->words[0], run->words[1] | (uint32_t)number, run->words[2],
                                               run->words[3] | (uint64_t)checksum << 32};
    cw_words_signed(endpoint, packet, words, number, &flow->session.key_out,
                    (uint32_t)sizeof(struct cw_wire_part) + (run->memory != NULL ? 0 : run->bytes));
}

/* Accounts for `count` more packets in flight. */
static void run_end(const struct run *run, struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t frame_bytes,
                    uint32_t count)
{
    struct cw_sender *sender = &flow->sender;
    struct cw_operation *operation = run->operation;
    operation->position += (uint64_t)count * run->bytes;
    operation->packets_open += count;
    operation->chain = NULL;
    sender->sent.next += count;
    sender->in_flight_bytes += (uint64_t)count * frame_bytes;
    sender->packets_sent += count;
    sender->short_run = 0;
    sender->again_last = false;
    flow->congestion.round_sent += count;
    cw_ack_carried(flow);
    cw_timers_sent(endpoint, flow);
    cw_count(endpoint, CW_COUNTER_DATA_OUT, count);
    cw_count(endpoint, CW_COUNTER_RUN_OUT, count);
    cw_count(endpoint, CW_COUNTER_BYTES_OUT, (uint64_t)count * frame_bytes);
}

bool cw_run_send(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t count_max, uint32_t *sent)
{
    struct cw_sent_records *records = &flow->sender.sent;
    uint32_t part_bytes = cw_transmit_part_bytes(flow);
    *sent = 0;
    if (!may_run(endpoint, flow) || part_bytes < PART_BYTES_MIN) {
        return true;
    }
    uint32_t count = (uint32_t)least(run_length(flow, part_bytes), count_max);
    if (count < RUN_MIN || !cw_sent_prepare(records, &endpoint->sent_chunks, &endpoint->blocks)) {
        return true;
    }
    if (cw_flow_restrained(endpoint, flow)) { /* the general path checks this before each packet */
        count = 1;
    }
    struct run run;
    run_begin(&run, endpoint, flow, part_bytes);
    struct cw_sent_chunk *chunk = cw_sent_chunk_of(records, records->next);
    uint32_t frame_bytes = endpoint->overhead_bytes + (uint32_t)sizeof(struct cw_wire_part) + part_bytes;
    uint64_t position = run.operation->position;
    for (; *sent < count; ++*sent) {
        struct cw_transmit *packet = cw_stage(endpoint);
        if (packet == NULL) {
            break;
        }
        uint64_t number = records->next + *sent, bit = 1ull << (number % CW_SENT_CHUNK);
        chunk->acknowledged &= ~bit;
        chunk->lost &= ~bit;
        chunk->records[number % CW_SENT_CHUNK] = (struct cw_sent){.time_ns = endpoint->now_ns,
                                                                  .operation = run.operation,
                                                                  .position = position,
                                                                  .bytes = (uint16_t)part_bytes,
                                                                  .frame_bytes = (uint16_t)frame_bytes,
                                                                  .count = 1,
                                                                  .transmissions = 1};
        packet_write(&run, endpoint, flow, packet, number, position);
        position += part_bytes;
    }
    if (*sent > 0) {
        run_end(&run, endpoint, flow, frame_bytes, *sent);
    }
    return *sent == count;
}

/* ---- in ---- */

bool cw_run_lead(struct cw_run *run, struct cw_endpoint *endpoint, struct cw_flow *flow,
                 const struct cw_wire_header *header, uint64_t number)
{
    const struct cw_window *packets = &flow->receiver.packets;
    const struct cw_wire_part *part = (const struct cw_wire_part *)(header + 1);
    const uint16_t alone = CW_WIRE_ACK_NOW | CW_WIRE_SUMMED | CW_WIRE_ENCRYPTED;
    if ((header->flags & alone) != 0 || endpoint->offloads_in || flow->state != CW_PEER_ESTABLISHED ||
        packets->base != packets->end || packets->end != number + 1 || part->put.reply != 0) {
        return false;
    }
    const struct cw_wire_put *wire = &part->put;
    uint64_t put_number = cw_wire_number_expand(flow->receiver.puts.base, wire->frame.put_number);
    const struct cw_reassembly_frame frame = {.number = put_number,
                                              .predecessor = put_number - wire->predecessor,
                                              .bytes = wire->frame.length,
                                              .total = part->total,
                                              .token = wire->token,
                                              .offset = wire->offset,
                                              .lane_tag = wire->lane_tag};
    struct cw_reassembly *put = cw_reassembly_partial(endpoint, flow, &frame);
    const struct cw_region *region =
        put == NULL ? NULL : cw_region_find(&endpoint->regions, put->token, put->offset, put->total, CW_REGION_WRITE);
    if (region == NULL || region == endpoint->messages.region) {
        return false;
    }
    *run = (struct cw_run){.leader = header,
                           .part = part,
                           .put = put,
                           .target = region->base + put->offset,
                           .received = put->received,
                           .checksum = cw_wire_checksum(0, part, SAME_BYTES),
                           .echo = flow->receiver.echo};
    return true;
}

bool cw_run_follow(struct cw_run *run, const struct cw_wire_header *header)
{
    const struct cw_wire_header *leader = run->leader;
    const struct cw_wire_part *part = (const struct cw_wire_part *)(header + 1);
    uint64_t bytes = run->part->put.frame.length, total = run->part->total;
    if (header->type != leader->type || header->flags != leader->flags || header->flow != leader->flow ||
        header->acknowledged != leader->acknowledged || header->echo != leader->echo ||
        header->payload_bytes != leader->payload_bytes || memcmp(part, run->part, SAME_BYTES) != 0 ||
        part->total != total || part->position > total - bytes || run->received + bytes >= total) {
        return false;
    }
    uint32_t summed = (header->flags & CW_WIRE_KEPT) != 0 ? sizeof(*part) + CW_WIRE_KEPT_DATA : header->payload_bytes;
    if (cw_wire_checksum(run->checksum, &part->position, summed - SAME_BYTES) != header->checksum) {
        return false;
    }
    uint8_t *target = run->target + part->position;
    memcpy(target, part + 1, bytes);
    cw_prefetch_write(target + bytes, bytes); /* where the next packet's most likely go */
    run->received += bytes;
    run->echo = (int32_t)(header->timestamp - run->echo) >= 0 ? header->timestamp : run->echo;
    run->count++;
    return true;
}

void cw_run_account(const struct cw_run *run, struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_receiver *receiver = &flow->receiver;
    if (run->count == 0) {
        return;
    }
    receiver->packets.base = receiver->packets.end += run->count;
    receiver->unreported = (uint16_t)(receiver->unreported + run->count);
    if (run->echo != receiver->echo) {
        receiver->echo = run->echo;
        receiver->echo_arrival_ns = endpoint->now_ns;
    }
    run->put->received = run->received;
    cw_count(endpoint, CW_COUNTER_RUN_IN, run->count);
    cw_ack_want(endpoint, flow, cw_ack_haste_of(flow, run->leader->payload_bytes));
}
