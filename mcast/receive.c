/* The receiving side of a stream: packets are placed as they come, in any order; messages are notified when they and
 * all before them are complete. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mcast/state.h"

int mcast_receiving_make(struct stream *stream)
{
    const struct cw_mcast_config *config = &stream->group->mcast->config;
    struct receiving *receiving = calloc(1, sizeof(*receiving));
    if (receiving == NULL) {
        return CW_ERROR_MEMORY;
    }
    stream->receiving = receiving;
    receiving->messages = calloc(config->queue_max, sizeof(struct incoming));
    receiving->slots = malloc((size_t)config->slot_count * config->slot_bytes);
    receiving->registrations = calloc(config->registration_max, sizeof(struct registration));
    if (receiving->messages == NULL || receiving->slots == NULL || receiving->registrations == NULL) {
        return CW_ERROR_MEMORY;
    }
    receiving->base = receiving->end = receiving->known_next = CW_MCAST_NUMBER_FIRST;
    receiving->round_trip_ns = CW_MCAST_ROUND_TRIP_FIRST_NS;
    mcast_timer_init(&receiving->nak_timer, TIMER_NAK, stream);
    return CW_OK;
}

void mcast_receiving_destroy(struct stream *stream)
{
    struct receiving *receiving = stream->receiving;
    if (receiving == NULL) {
        return;
    }
    mcast_timer_stop(&receiving->nak_timer);
    free(receiving->messages);
    free(receiving->slots);
    free(receiving->registrations);
    free(receiving->assemblies);
    free(receiving);
    stream->receiving = NULL;
}

/* ---- packets ---- */

uint64_t mcast_receive_number(const struct stream *stream, uint32_t low)
{
    return cw_wire_number_expand(stream == NULL ? CW_MCAST_NUMBER_FIRST : stream->receiving->end, low);
}

/* Marks a number of the window, and moves its base. */
static void mark(struct receiving *receiving, uint64_t number)
{
    receiving->seen[number % CW_MCAST_WINDOW / 64] |= 1ull << (number % 64);
    receiving->end = later(receiving->end, number + 1);
    receiving->known_next = later(receiving->known_next, receiving->end);
    while (receiving->base < receiving->end && mcast_is_seen(receiving, receiving->base)) {
        receiving->seen[receiving->base % CW_MCAST_WINDOW / 64] &= ~(1ull << (receiving->base % 64));
        receiving->base++;
    }
}

/* Evaluates the header of a packet: the path, and whether packets arrive that were sent to all members, or only those
 * for this one. */
static void header_note(struct stream *stream, const struct cw_wire_header *header, uint32_t round_trip)
{
    struct receiving *receiving = stream->receiving;
    const struct cw_mcast *mcast = stream->group->mcast;
    uint64_t now_ns = mcast->now_ns;
    if (receiving->echo_ns == 0 || (int32_t)(header->timestamp - receiving->echo) >= 0) {
        receiving->echo = header->timestamp;
        receiving->echo_ns = now_ns;
        receiving->round_trip_ns =
            round_trip != 0 ? (uint64_t)round_trip << CW_MCAST_ROUND_TRIP_SHIFT : receiving->round_trip_ns;
    }
    if (cw_extension_is_to_group(mcast->endpoint, header)) {
        receiving->to_self = 0;
        return;
    }
    receiving->to_self_ns = receiving->to_self == 0 ? now_ns : receiving->to_self_ns;
    receiving->to_self += receiving->to_self < CW_MCAST_UNREACHED_PACKETS;
}

/* ---- messages ---- */

static struct incoming *incoming_at(const struct stream *stream, uint64_t message)
{
    return &stream->receiving->messages[message % stream->group->mcast->config.queue_max];
}

enum place { PLACE_FOUND, PLACE_LATER, PLACE_NEVER };

/* Where a message goes of which this is the first packet that came. */
static enum place place_find(const struct stream *stream, const struct cw_mcast_data *data, struct incoming *incoming)
{
    const struct receiving *receiving = stream->receiving;
    const struct cw_mcast_config *config = &stream->group->mcast->config;
    *incoming = (struct incoming){
        .is_open = true,
        .total = data->total,
        .lane_tag = data->lane_tag,
        .is_long = (data->flags & CW_MCAST_LONG) != 0,
    };
    if (incoming->is_long) {
        uint64_t place = cw_wire_number_expand(receiving->registrations_used, data->place);
        if (place < receiving->registrations_used || place >= receiving->registered) {
            return PLACE_LATER;
        }
        const struct registration *registration = &receiving->registrations[place % config->registration_max];
        incoming->place = place;
        incoming->to = registration->to;
        incoming->room = registration->bytes;
        incoming->context = registration->context;
        return PLACE_FOUND;
    }
    uint64_t place = cw_wire_number_expand(receiving->short_notified, data->place);
    if (data->total > config->slot_bytes || place < receiving->short_notified) {
        return PLACE_NEVER;
    }
    if (place - receiving->short_released >= config->slot_count) {
        return PLACE_LATER;
    }
    incoming->place = place;
    incoming->to = receiving->slots + place % config->slot_count * config->slot_bytes;
    incoming->room = config->slot_bytes;
    return PLACE_FOUND;
}

/* Whether another message in flight goes there: no sender of this version does that. */
static bool is_occupied(const struct stream *stream, const struct incoming *incoming)
{
    for (uint32_t i = 0; i < stream->group->mcast->config.queue_max; i++) {
        const struct incoming *other = &stream->receiving->messages[i];
        if (other->is_open && other->is_long == incoming->is_long && other->place == incoming->place) {
            return true;
        }
    }
    return false;
}

static bool is_complete(const struct incoming *incoming)
{
    return incoming->is_open && incoming->arrived == incoming->total;
}

void mcast_deliver(struct stream *stream)
{
    struct receiving *receiving = stream->receiving;
    struct cw_mcast *mcast = stream->group->mcast;
    struct incoming *incoming = incoming_at(stream, receiving->message_base);
    bool is_waiting = false;
    for (; is_complete(incoming); incoming = incoming_at(stream, receiving->message_base)) {
        if (incoming->place != (incoming->is_long ? receiving->registrations_used : receiving->short_notified)) {
            /* it is not the next one of its kind: its sender counts wrongly, permanently */
            mcast->counters.drop_malformed++;
            break;
        }
        bool is_long = incoming->is_long;
        struct cw_event event = {
            .status = incoming->total > incoming->room ? CW_ERROR_LIMIT : CW_OK,
            .peer = stream->sender,
            .lane_tag = incoming->lane_tag,
            .bytes = incoming->total,
            .context = incoming->context,
        };
        if (!is_long) {
            event.data = incoming->to;
        }
        is_waiting = !mcast_notify(stream, is_long ? NOTICE_ARRIVED : NOTICE_MESSAGE, event);
        if (is_waiting) {
            break;
        }
        *(incoming->is_long ? &receiving->registrations_used : &receiving->short_notified) += 1;
        incoming->is_open = false;
        receiving->message_base++;
    }
    uint64_t taken = atomic_load_explicit(&receiving->short_taken, memory_order_relaxed);
    if (receiving->short_released != taken) {
        receiving->short_released = taken;
        mcast_ack_changed(stream);
    }
    if (is_waiting || receiving->short_released != receiving->short_notified) {
        mcast_wait(stream);
    }
}

/* The message of a packet that has not been here before; NULL: it is dropped, and counted. */
static struct incoming *incoming_find(struct stream *stream, const struct cw_mcast_data *data, uint32_t bytes)
{
    const struct receiving *receiving = stream->receiving;
    struct cw_mcast_counters *counters = &stream->group->mcast->counters;
    uint64_t ahead = data->message - receiving->message_base;
    if (data->message < receiving->message_base || data->position > data->total ||
        bytes > data->total - data->position) {
        counters->drop_malformed++;
        return NULL;
    }
    if (ahead >= stream->group->mcast->config.queue_max) {
        counters->drop_room++;
        return NULL;
    }
    struct incoming *incoming = incoming_at(stream, data->message);
    if (!incoming->is_open) {
        struct incoming made;
        enum place place = place_find(stream, data, &made);
        if (place == PLACE_FOUND && is_occupied(stream, &made)) {
            place = PLACE_NEVER;
        }
        if (place != PLACE_FOUND) {
            *(place == PLACE_LATER ? &counters->drop_room : &counters->drop_malformed) += 1;
            return NULL;
        }
        *incoming = made;
    } else if (incoming->total != data->total || bytes > incoming->total - incoming->arrived) {
        counters->drop_malformed++;
        return NULL;
    }
    return incoming;
}

/* The parts of a message in a data packet, in sequence. */
struct pieces {
    const void *data[2];
    uint32_t bytes[2];
};

/* Of a packet with a chunk. CW_ERROR_MEMORY; others: it is malformed. */
static int pieces_expand(const struct stream *stream, const struct cw_mcast_data *data, uint32_t bytes,
                         struct pieces *pieces)
{
    const struct cw_mcast_chunk *chunk = (const struct cw_mcast_chunk *)(data + 1);
    if (bytes < sizeof(*chunk) || bytes - sizeof(*chunk) < chunk->head_bytes || chunk->raw_bytes == 0) {
        return CW_ERROR_ARGUMENT;
    }
    const uint8_t *head = (const uint8_t *)(chunk + 1);
    const struct cw_codec_plan plan = {chunk->codec, chunk->parameter};
    *pieces = (struct pieces){.data = {head}, .bytes = {chunk->head_bytes, chunk->raw_bytes}};
    return cw_chunk_expand(stream->group->mcast->endpoint, plan, head + chunk->head_bytes,
                           bytes - (uint32_t)sizeof(*chunk) - chunk->head_bytes, chunk->raw_bytes, &pieces->data[1]);
}

static void store(struct incoming *incoming, uint64_t position, const struct pieces *pieces)
{
    for (uint32_t i = 0; i < 2; i++) {
        if (position < incoming->room && pieces->bytes[i] > 0) {
            memcpy(incoming->to + position, pieces->data[i], earlier(pieces->bytes[i], incoming->room - position));
        }
        position += pieces->bytes[i];
        incoming->arrived += pieces->bytes[i];
    }
}

/* ---- parts ---- */

/* Forgets the parts of a packet that have arrived: it arrives in another form. False: the packet is malformed. */
static bool assembly_clear(struct stream *stream, uint64_t number, const struct cw_mcast_data *data)
{
    struct assembly *assembly = &stream->receiving->assemblies[number % CW_MCAST_WINDOW];
    if (assembly->come == 0) {
        return true;
    }
    if (assembly->message != data->message) {
        stream->group->mcast->counters.drop_malformed++;
        return false;
    }
    incoming_at(stream, data->message)->arrived -= assembly->bytes;
    *assembly = (struct assembly){.come = 0};
    return true;
}

static bool part_fits(const struct cw_mcast_data *data, const struct cw_mcast_part *part, uint32_t bytes)
{
    return (data->flags & CW_MCAST_PACKED) == 0 && bytes > sizeof(*part) && part->count >= 2 &&
           part->count <= CW_MCAST_PARTS_MAX && part->index < part->count;
}

/* Stores a part of a packet. True: all parts have come now. */
static bool part_store(struct stream *stream, const struct cw_mcast_data *data, uint64_t number, uint32_t bytes)
{
    struct receiving *receiving = stream->receiving;
    struct cw_mcast_counters *counters = &stream->group->mcast->counters;
    const struct cw_mcast_part *part = (const struct cw_mcast_part *)(data + 1);
    if (!part_fits(data, part, bytes)) {
        counters->drop_malformed++;
        return false;
    }
    if (receiving->assemblies == NULL &&
        (receiving->assemblies = calloc(CW_MCAST_WINDOW, sizeof(struct assembly))) == NULL) {
        counters->drop_room++;
        return false;
    }
    struct assembly *assembly = &receiving->assemblies[number % CW_MCAST_WINDOW];
    if ((assembly->count != part->count || assembly->message != data->message) &&
        !assembly_clear(stream, number, data)) {
        return false;
    }
    uint64_t bit = 1ull << (part->index % 64), *word = &assembly->seen[part->index / 64];
    if ((*word & bit) != 0) {
        counters->duplicates++;
        return false;
    }
    const struct pieces pieces = {.data = {part + 1}, .bytes = {bytes - (uint32_t)sizeof(*part)}};
    struct incoming *incoming = incoming_find(stream, data, pieces.bytes[0]);
    if (incoming == NULL) {
        return false;
    }
    store(incoming, data->position, &pieces);
    *word |= bit;
    assembly->message = data->message;
    assembly->count = part->count;
    assembly->bytes += pieces.bytes[0];
    assembly->come++;
    bool is_all = assembly->come == assembly->count;
    if (is_all) {
        *assembly = (struct assembly){.come = 0};
    }
    return is_all;
}

/* Stores a packet that is whole. False: it is dropped, and counted. */
static bool whole_store(struct stream *stream, const struct cw_mcast_data *data, uint64_t number, uint32_t bytes)
{
    struct cw_mcast_counters *counters = &stream->group->mcast->counters;
    struct pieces pieces = {.data = {data + 1}, .bytes = {bytes}};
    if ((data->flags & CW_MCAST_PACKED) != 0) { /* before its message is begun: taken whole, or not at all */
        int status = pieces_expand(stream, data, bytes, &pieces);
        if (status != CW_OK) {
            *(status == CW_ERROR_MEMORY ? &counters->drop_room : &counters->drop_malformed) += 1;
            return false;
        }
    }
    if (stream->receiving->assemblies != NULL && !assembly_clear(stream, number, data)) {
        return false;
    }
    struct incoming *incoming = incoming_find(stream, data, pieces.bytes[0] + pieces.bytes[1]);
    if (incoming == NULL) {
        return false;
    }
    store(incoming, data->position, &pieces);
    return true;
}

void mcast_receive_data(struct stream *stream, const struct cw_wire_header *header, const struct cw_mcast_data *data,
                        uint64_t number, uint32_t bytes)
{
    struct receiving *receiving = stream->receiving;
    struct cw_mcast *mcast = stream->group->mcast;
    header_note(stream, header, data->round_trip);
    if (number < receiving->base || (number < receiving->end && mcast_is_seen(receiving, number))) {
        mcast->counters.duplicates++;
        return;
    }
    if (number - receiving->base >= CW_MCAST_WINDOW) {
        mcast->counters.drop_window++;
        return;
    }
    bool is_part = (data->flags & CW_MCAST_PART) != 0;
    if (is_part ? !part_store(stream, data, number, bytes) : !whole_store(stream, data, number, bytes)) {
        return;
    }
    receiving->pause_ns = mcast_pause(mcast);
    mark(receiving, number);
    if ((header->flags & CW_WIRE_ACK_NOW) != 0) {
        stream->report.urgent = later(stream->report.urgent, number + 1);
    }
    if (is_complete(incoming_at(stream, receiving->message_base))) {
        mcast_deliver(stream);
    }
    mcast_ack_changed(stream);
    if (receiving->base < receiving->known_next || mcast_timer_runs(&receiving->nak_timer)) {
        mcast_nak_consider(stream, false);
    }
}

/* ---- state ---- */

void mcast_receive_state(struct stream *stream, const struct cw_wire_header *header, const struct cw_mcast_state *state)
{
    struct receiving *receiving = stream->receiving;
    struct cw_mcast *mcast = stream->group->mcast;
    if (state->next > receiving->base + CW_MCAST_WINDOW) {
        mcast->counters.drop_malformed++;
        return;
    }
    header_note(stream, header, state->round_trip);
    receiving->known_next = later(receiving->known_next, state->next);
    mcast_nak_consider(stream, true);
    if ((header->flags & CW_WIRE_ACK_NOW) != 0) {
        mcast_ack_requested(stream);
    }
}

/* ---- calls ---- */

int cw_mcast_register(struct cw_mcast_group *group, uint32_t sender, void *to, uint64_t bytes, uint64_t context)
{
    if (sender >= group->member_count || sender == group->self || (to == NULL && bytes > 0)) {
        return CW_ERROR_ARGUMENT;
    }
    struct stream *stream = mcast_stream(group, sender);
    if (stream == NULL) {
        return CW_ERROR_MEMORY;
    }
    struct receiving *receiving = stream->receiving;
    uint32_t most = group->mcast->config.registration_max;
    if (receiving->registered - receiving->registrations_used == most) {
        return CW_ERROR_AGAIN;
    }
    receiving->registrations[receiving->registered++ % most] = (struct registration){to, bytes, context};
    group->mcast->now_ns = later(group->mcast->now_ns, cw_extension_now(group->mcast->endpoint));
    mcast_ack_changed(stream);
    cw_extension_flush(group->mcast->endpoint);
    return CW_OK;
}
