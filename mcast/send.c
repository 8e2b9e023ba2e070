/* The sending side of a stream: splits messages into packets, sends them, sends them again, and frees them when all
 * members have them. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mcast/state.h"

enum {
    MEAN_ONE = 16, /* requests_mean counts sixteenths */
};

/* ---- life ---- */

int mcast_sending_make(struct stream *stream)
{
    const struct cw_mcast_group *group = stream->group;
    struct sending *sending = calloc(1, sizeof(*sending));
    if (sending == NULL) {
        return CW_ERROR_MEMORY;
    }
    stream->sending = sending;
    sending->messages = calloc(group->mcast->config.queue_max, sizeof(struct message));
    sending->packets = calloc(CW_MCAST_WINDOW, sizeof(struct packet));
    sending->repairs = calloc(CW_MCAST_WINDOW, sizeof(uint64_t));
    if (sending->messages == NULL || sending->packets == NULL || sending->repairs == NULL) {
        return CW_ERROR_MEMORY;
    }
    sending->base = sending->next = sending->round_end = CW_MCAST_NUMBER_FIRST;
    mcast_congestion_init(stream);
    /* many will have missed what one of many misses, as long as nothing else is known */
    sending->requests_mean = group->tree.live_count > CW_MCAST_EAGER_NAKS ? 4 * MEAN_ONE : MEAN_ONE;
    sending->laggard = NOBODY;
    sending->message_lost = UINT64_MAX;
    mcast_timer_init(&sending->state_timer, TIMER_STATE, stream);
    return CW_OK;
}

static void active_remove(struct stream *stream)
{
    struct cw_mcast *mcast = stream->group->mcast;
    struct stream *before = NULL;
    if (!stream->sending->is_active) {
        return;
    }
    for (struct stream *at = mcast->active_first; at != stream; at = at->sending->active_next) {
        before = at;
    }
    *(before == NULL ? &mcast->active_first : &before->sending->active_next) = stream->sending->active_next;
    mcast->active_last = mcast->active_last == stream ? before : mcast->active_last;
    stream->sending->is_active = false;
}

void mcast_sending_destroy(struct stream *stream)
{
    struct sending *sending = stream->sending;
    if (sending == NULL) {
        return;
    }
    free(sending->messages);
    free(sending->packets);
    free(sending->repairs);
    free(sending->packing);
    free(sending);
    stream->sending = NULL;
}

static struct packet *packet_at(const struct sending *sending, uint64_t number)
{
    return &sending->packets[number % CW_MCAST_WINDOW];
}

void mcast_send_end(struct stream *stream)
{
    struct sending *sending = stream->sending;
    active_remove(stream);
    mcast_timer_stop(&sending->state_timer);
    sending->message_lost = sending->message_base;
    sending->message_base = sending->message_next;
    mcast_send_notify(stream);
}

/* ---- who may send ---- */

static void wake(struct stream *stream)
{
    struct cw_mcast *mcast = stream->group->mcast;
    if (stream->sending->is_active) {
        return;
    }
    stream->sending->is_active = true;
    stream->sending->active_next = NULL;
    *(mcast->active_last == NULL ? &mcast->active_first : &mcast->active_last->sending->active_next) = stream;
    mcast->active_last = stream;
}

/* Whether the slowest member has room for the message. */
static bool has_credit(const struct stream *stream, const struct message *message)
{
    const struct sending *sending = stream->sending;
    return message->is_long ? message->long_before < sending->registered
                            : message->short_before < sending->released + stream->group->mcast->config.slot_count;
}

/* Whether a new packet may leave. */
static bool may_send(struct stream *stream)
{
    struct sending *sending = stream->sending;
    if (sending->message_at == sending->message_next ||
        !has_credit(stream, mcast_message(stream, sending->message_at))) {
        return false;
    }
    if (sending->next - sending->base >= sending->window) {
        sending->is_limited = true;
        return false;
    }
    return true;
}

/* ---- packets ---- */

static const struct message *message_of(const struct stream *stream, uint64_t number)
{
    uint64_t at = stream->sending->message_base;
    while (number >= mcast_message(stream, at)->end) {
        at++;
    }
    assert(at < stream->sending->message_next);
    return mcast_message(stream, at);
}

void mcast_send_noted(struct stream *stream)
{
    struct sending *sending = stream->sending;
    sending->to_group_ns = sending->to_group == 0 ? stream->group->mcast->now_ns : sending->to_group_ns;
    sending->to_group += sending->to_group < CW_MCAST_UNREACHED_PACKETS;
}

/* A packet's uncompressed contents. */
static void load_plain(const struct message *message, uint64_t position, struct load *load)
{
    load->position = position;
    load->bytes = (uint32_t)earlier(message->bytes - position, message->room);
    load->head_bytes = position == 0 ? message->head_bytes : 0; /* the first packet has room for all of it */
    load->chunk_bytes = 0;
    load->plan = (struct cw_codec_plan){CW_CODEC_NONE, CW_SENT_LONG};
}

static void load_again(struct stream *stream, const struct message *message, uint64_t number, struct load *load)
{
    if (message->is_packed) {
        mcast_pack_load_again(stream, message, number, load);
    } else {
        load_plain(message, (number - message->first) * message->room, load);
    }
}

/* The header of a data packet, as far as the message determines it. */
static struct cw_mcast_data data_of(const struct stream *stream, const struct message *message, uint64_t position)
{
    return (struct cw_mcast_data){
        .round_trip = mcast_time_encode(stream->sending->round_trip_ns),
        .flags = message->is_long ? CW_MCAST_LONG : 0,
        .lane_tag = message->lane_tag,
        .place = (uint32_t)(message->is_long ? message->long_before : message->short_before),
        .message = message->short_before + message->long_before,
        .position = position,
        .total = message->bytes,
    };
}

/* A packet with `bytes` of the uncompressed message from `position` on, `head_bytes` of them of its head. */
static struct outgoing plain_of(const struct message *message, uint64_t position, uint32_t bytes, uint32_t head_bytes)
{
    struct outgoing packet = {.head = message->copy, .head_bytes = head_bytes};
    if (bytes > head_bytes) {
        packet.data = message->data + (position + head_bytes - message->head_bytes);
        packet.data_bytes = bytes - head_bytes;
    }
    return packet;
}

/* Sends a packet that is too long as several parts, all with its number. Continues where the port was full. */
static bool parts_send(struct stream *stream, const struct message *message, const struct load *load,
                       const struct outgoing *packet)
{
    struct sending *sending = stream->sending;
    uint32_t room = mcast_payload_max(stream->group) - (uint32_t)sizeof(struct cw_mcast_part);
    uint32_t count = (load->bytes + room - 1) / room;
    uint64_t number = packet->number;
    uint16_t passes = ((const struct cw_mcast_data *)packet->fixed)->flags & CW_MCAST_PASS_ON;
    assert(count <= CW_MCAST_PARTS_MAX);
    for (uint32_t i = sending->part_number == number ? sending->part_next : 0; i < count; i++) {
        uint64_t position = load->position + (uint64_t)i * room;
        uint32_t bytes = i + 1 < count ? room : load->bytes - i * room;
        struct {
            struct cw_mcast_data data;
            struct cw_mcast_part part;
        } fixed = {.data = data_of(stream, message, position), .part = {(uint16_t)i, (uint16_t)count, 0}};
        fixed.data.flags |= (uint16_t)(CW_MCAST_PART | passes);
        struct outgoing part = plain_of(message, position, bytes, i == 0 ? load->head_bytes : 0);
        part.type = packet->type;
        part.flags = i + 1 < count ? 0 : packet->flags;
        part.to = packet->to;
        part.number = number;
        part.is_repeated = packet->is_repeated;
        part.fixed = &fixed;
        part.fixed_bytes = sizeof(fixed);
        if (!mcast_transmit(stream, &part)) {
            sending->part_number = number;
            sending->part_next = i;
            return false;
        }
    }
    sending->part_number = 0;
    return true;
}

/* Bytes of a packet behind cw_mcast_data, unless it is cut. */
static uint32_t load_bytes(const struct load *load)
{
    return load->chunk_bytes == 0 ? load->bytes
                                  : (uint32_t)sizeof(struct cw_mcast_chunk) + load->head_bytes + load->chunk_bytes;
}

/* Writes and sends a packet, to one or to all. False: the port has none. */
static bool packet_send(struct stream *stream, const struct message *message, uint64_t number, const struct load *load,
                        uint32_t to, uint16_t flags)
{
    const struct cw_mcast_group *group = stream->group;
    bool passes = group->delivery == CW_MCAST_BY_MEMBERS && to == NOBODY;
    bool is_packed = load->chunk_bytes > 0;
    if (to == NOBODY && !passes) {
        mcast_send_noted(stream);
    }
    struct {
        struct cw_mcast_data data;
        struct cw_mcast_chunk chunk;
    } fixed = {
        .data = data_of(stream, message, load->position),
        .chunk =
            {
                .raw_bytes = (uint16_t)(load->bytes - load->head_bytes),
                .head_bytes = (uint16_t)load->head_bytes,
                .codec = load->plan.codec,
                .parameter = load->plan.parameter,
            },
    };
    fixed.data.flags |= (uint16_t)((passes ? CW_MCAST_PASS_ON : 0) | (is_packed ? CW_MCAST_PACKED : 0));
    struct outgoing packet = plain_of(message, load->position, load->bytes, load->head_bytes);
    packet.type = CW_MCAST_DATA;
    packet.flags = flags;
    packet.to = to;
    packet.number = number;
    packet.is_repeated = number < stream->sending->next;
    packet.fixed = &fixed;
    packet.fixed_bytes = is_packed ? sizeof(fixed) : sizeof(fixed.data);
    if (is_packed) {
        packet.data = load->chunk;
        packet.data_bytes = load->chunk_bytes;
    }
    bool is_cut = load_bytes(load) > mcast_payload_max(group);
    return is_cut ? parts_send(stream, message, load, &packet) : mcast_transmit(stream, &packet);
}

/* A member still asks for a packet that has been sent many times: the path to it may not take packets of this length
 * any more. From now on packets of all groups are shorter. */
static void narrow_consider(struct stream *stream, const struct packet *packet, const struct load *load)
{
    static const uint16_t mtus[] = {CW_PATH_MTU_BASE, CW_PORT_MTU_MIN};
    struct cw_mcast *mcast = stream->group->mcast;
    struct sending *sending = stream->sending;
    uint32_t before = mcast_payload_max(stream->group);
    uint32_t sent = (uint32_t)earlier(load_bytes(load), before); /* the longest of its parts */
    for (uint32_t i = 0; packet->times >= CW_MCAST_NARROW_TIMES && i < 2; i++) {
        mcast_narrow(mcast, mtus[i]);
        if (sent > mcast_payload_max(stream->group)) {
            sending->part_number = 0;
            for (uint64_t number = sending->base; number < sending->next; number++) { /* they begin anew */
                struct packet *other = packet_at(sending, number);
                other->times = other->times > 2 ? 2 : other->times;
            }
            return;
        }
    }
}

static void message_begin(struct stream *stream, struct message *message)
{
    message->first = stream->sending->next;
    message->room = mcast_payload_max(stream->group);
    message->is_packed =
        message->bytes > message->room && message->element != CW_ELEMENT_PLAIN && mcast_pack_wants(stream);
    message->end = message->is_packed ? UINT64_MAX : message->first + mcast_packets(message->bytes, message->room);
}

/* False: the port is full. */
static bool new_send(struct stream *stream)
{
    struct sending *sending = stream->sending;
    struct message *message = mcast_message(stream, sending->message_at);
    uint64_t number = sending->next;
    struct load load;
    if (sending->position == 0) {
        message_begin(stream, message);
    }
    load_plain(message, sending->position, &load);
    if (message->is_packed) {
        mcast_pack_load(stream, message, number, &load);
    }
    bool is_last = load.position + load.bytes == message->bytes;
    /* no packet follows at once: then all members should acknowledge it at once */
    bool pauses = number + 1 - sending->base >= sending->window ||
                  (is_last && (sending->message_at + 1 == sending->message_next ||
                               !has_credit(stream, mcast_message(stream, sending->message_at + 1))));
    if (!packet_send(stream, message, number, &load, NOBODY, pauses ? CW_WIRE_ACK_NOW : 0)) {
        return false;
    }
    *packet_at(sending, number) = (struct packet){
        .sent_ns = stream->group->mcast->now_ns,
        .times = 1,
        .is_packed = message->is_packed,
    };
    if (message->is_packed) {
        mcast_pack_sent(stream, message, number, &load);
    }
    message->end = is_last ? number + 1 : message->end;
    sending->position = is_last ? 0 : load.position + load.bytes;
    stream->group->mcast->counters.data_out++;
    sending->next++;
    sending->round_sent++;
    sending->message_at += is_last;
    return true;
}

/* False: the port is full. */
static bool repair_send(struct stream *stream)
{
    struct sending *sending = stream->sending;
    struct cw_mcast *mcast = stream->group->mcast;
    uint64_t number = sending->repairs[sending->repair_first];
    if (number >= sending->base) {
        struct packet *packet = packet_at(sending, number);
        uint32_t to = packet->to_all ? NOBODY : packet->requester;
        if (to != NOBODY && !stream->group->members[to].is_live) {
            to = NOBODY;
        }
        const struct message *message = message_of(stream, number);
        struct load load;
        load_again(stream, message, number, &load);
        narrow_consider(stream, packet, &load);
        if (!packet_send(stream, message, number, &load, to, 0)) {
            return false;
        }
        *(to == NOBODY ? &mcast->counters.repairs_out : &mcast->counters.repairs_one_out) += 1;
        packet->sent_ns = mcast->now_ns;
        packet->times = (uint8_t)(packet->times < UINT8_MAX ? packet->times + 1 : UINT8_MAX);
        packet->is_queued = false;
        sending->round_sent++;
    }
    sending->repair_first = (sending->repair_first + 1) % CW_MCAST_WINDOW;
    sending->repair_count--;
    return true;
}

/* Up to a burst of a stream. False: the port is full. */
static bool stream_send(struct stream *stream, uint32_t *count)
{
    struct sending *sending = stream->sending;
    for (uint32_t burst = 0; burst < CW_MCAST_FLOW_BURST; burst++) {
        if (sending->repair_count > 0) {
            if (!repair_send(stream)) {
                return false;
            }
        } else if (!may_send(stream)) {
            return true;
        } else if (!new_send(stream)) {
            return false;
        }
        ++*count;
    }
    return true;
}

uint32_t mcast_send_turn(struct cw_mcast *mcast)
{
    uint32_t count = 0;
    mcast->port_full = false;
    struct stream *last = mcast->active_last;
    for (struct stream *stream = mcast->active_first; stream != NULL; stream = mcast->active_first) {
        bool is_last = stream == last;
        if (stream->group->tree.live_count == 1) { /* no other member is left: all have everything */
            mcast_ack_changed(stream);
        }
        if (!stream_send(stream, &count)) {
            mcast->port_full = true;
            return count;
        }
        active_remove(stream);
        if (stream->group->tree.live_count == 1) {
            mcast_ack_changed(stream);
        }
        if (stream->sending->repair_count > 0 || may_send(stream)) {
            wake(stream);
        }
        if (is_last) {
            break;
        }
    }
    return count;
}

/* ---- messages ---- */

int cw_mcast_send(struct cw_mcast_group *group, const struct cw_mcast_put *put)
{
    struct cw_mcast *mcast = group->mcast;
    struct stream *stream = mcast_stream(group, group->self);
    if (stream == NULL) {
        return CW_ERROR_MEMORY;
    }
    struct sending *sending = stream->sending;
    uint64_t bytes = put->head_bytes + put->bytes;
    if (put->head_bytes > CW_MCAST_INLINE_MAX || (unsigned)put->element > CW_ELEMENT_PLAIN || bytes < put->bytes ||
        (!put->is_long && bytes > mcast->config.slot_bytes)) {
        return CW_ERROR_ARGUMENT;
    }
    if (sending->message_next - sending->message_noted == mcast->config.queue_max) {
        return CW_ERROR_AGAIN;
    }
    struct message *message = mcast_message(stream, sending->message_next++);
    *message = (struct message){
        .data = put->data,
        .bytes = bytes,
        .head_bytes = put->head_bytes,
        .short_before = sending->short_next,
        .long_before = sending->long_next,
        .context = put->context,
        .lane_tag = put->lane_tag,
        .flags = put->flags,
        .element = put->element,
        .is_long = put->is_long,
    };
    if (put->head_bytes > 0) {
        memcpy(message->copy, put->head, put->head_bytes);
    }
    if (!put->is_long && put->bytes > 0 && bytes <= CW_MCAST_INLINE_MAX) {
        memcpy(message->copy + put->head_bytes, put->data, put->bytes);
        message->head_bytes = (uint32_t)bytes;
    }
    *(put->is_long ? &sending->long_next : &sending->short_next) += 1;
    mcast->now_ns = later(mcast->now_ns, cw_extension_now(mcast->endpoint));
    if (sending->message_base + 1 == sending->message_next) {
        sending->moved_ns = mcast->now_ns;
        sending->state_interval_ns = 0;
    }
    if (!mcast_timer_runs(&sending->state_timer)) {
        mcast_timer_by(&sending->state_timer, mcast->now_ns + mcast_congestion_patience(sending));
    }
    wake(stream);
    if (!mcast->port_full) {
        (void)mcast_send_turn(mcast);
        cw_extension_flush(mcast->endpoint);
    }
    return CW_OK;
}

/* ---- what comes back ---- */

static void packet_drop(struct sending *sending, uint64_t number, uint64_t now_ns, uint64_t pause_ns, bool is_newest)
{
    const struct packet *packet = packet_at(sending, number);
    if (packet->requests > 0) {
        uint32_t requests = packet->requests < 64 ? packet->requests : 64;
        sending->requests_mean = (sending->requests_mean * 7 + requests * MEAN_ONE) / 8;
    }
    /* where an acknowledgement was lost, and asked for, the time says nothing of the path */
    if (is_newest && packet->times == 1 && packet->sent_ns > sending->state_ns) {
        mcast_congestion_sample(sending, now_ns - packet->sent_ns, pause_ns);
    }
}

void mcast_send_acknowledged(struct stream *stream, const struct counts *counts, uint32_t laggard, uint64_t pause_ns)
{
    struct sending *sending = stream->sending;
    uint64_t now_ns = stream->group->mcast->now_ns;
    uint64_t received = earlier(counts->received, sending->next);
    uint64_t released = earlier(counts->released, sending->short_next);
    bool moved = received > sending->base || released > sending->released || counts->registered > sending->registered;
    sending->laggard = laggard;
    sending->released = later(sending->released, released);
    sending->registered = later(sending->registered, counts->registered);
    for (; sending->base < received; sending->base++) {
        if (packet_at(sending, sending->base)->is_packed) {
            mcast_pack_acknowledged(stream, sending->base);
        }
        packet_drop(sending, sending->base, now_ns, later(pause_ns, mcast_pause(stream->group->mcast)),
                    sending->base + 1 == received);
    }
    while (sending->message_base < sending->message_at &&
           mcast_message(stream, sending->message_base)->end <= sending->base) {
        sending->message_base++;
    }
    mcast_send_notify(stream);
    if (moved) {
        sending->moved_ns = now_ns;
        sending->named_ns = 0;
        sending->state_interval_ns = 0;
    }
    mcast_congestion_progress(stream);
    /* else it may serve the next message */
    if (sending->message_base == sending->message_next &&
        sending->state_timer.entry.time_ns > now_ns + mcast_congestion_patience(sending)) {
        mcast_timer_stop(&sending->state_timer);
    }
    if (may_send(stream)) {
        wake(stream);
    }
}

static void repair_queue(struct stream *stream, uint64_t number)
{
    struct sending *sending = stream->sending;
    packet_at(sending, number)->is_queued = true;
    assert(sending->repair_count < CW_MCAST_WINDOW);
    sending->repairs[(sending->repair_first + sending->repair_count++) % CW_MCAST_WINDOW] = number;
    wake(stream);
}

/* A packet is missing at a member, which has seen what was sent up to `echo`. */
static void packet_request(struct stream *stream, uint64_t number, uint32_t from, uint32_t echo)
{
    struct sending *sending = stream->sending;
    struct packet *packet = packet_at(sending, number);
    packet->requests = (uint16_t)(packet->requests < UINT16_MAX ? packet->requests + 1 : UINT16_MAX);
    /* a second member requests the same packet: the loss is not that member's alone */
    packet->to_all = packet->to_all || (packet->is_queued && packet->requester != from) ||
                     sending->requests_mean > MEAN_ONE + MEAN_ONE / 2;
    if (packet->is_queued || (int32_t)(echo - cw_wire_timestamp(packet->sent_ns)) < 0) {
        return; /* it is on its way already */
    }
    sending->round_lost += packet->times == 1;
    packet->requester = (uint16_t)from;
    repair_queue(stream, number);
}

void mcast_send_nak(struct stream *stream, uint32_t from, const struct cw_wire_header *header,
                    const struct cw_mcast_nak *nak)
{
    const struct sending *sending = stream->sending;
    const struct cw_wire_run *runs = (const struct cw_wire_run *)(nak + 1);
    uint64_t number = nak->from;
    for (uint32_t i = 0; i < nak->run_count; i++) {
        for (uint64_t end = number + runs[i].missing; number < end; number++) {
            if (number >= sending->base && number < sending->next) {
                packet_request(stream, number, from, header->echo);
            }
        }
        number += runs[i].received;
    }
}

/* ---- another way ---- */

void cw_mcast_delivery_set(struct cw_mcast_group *group, enum cw_mcast_delivery delivery)
{
    struct stream *stream = group->streams[group->self];
    bool has_changed = group->delivery != delivery;
    group->delivery = delivery;
    if (!has_changed || stream == NULL) {
        return;
    }
    struct sending *sending = stream->sending;
    sending->to_group = 0;
    sending->state_interval_ns = 0;
    for (uint64_t number = sending->base; number < sending->next; number++) { /* it may have gone nowhere */
        packet_at(sending, number)->to_all = true;
        if (!packet_at(sending, number)->is_queued) {
            repair_queue(stream, number);
        }
    }
}
