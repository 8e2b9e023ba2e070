/* Messages to a group that travel compressed: compressed once for all members. A chunk contains the place of its bytes,
 * as every packet does; its sender keeps the raw length of each chunk, to make it again. */
#include <stdlib.h>

#include "mcast/state.h"

/* A packet in flight of a message that is packed. */
struct part {
    uint64_t position;
    uint32_t bytes; /* of the message */
    uint8_t element;
    struct cw_codec_plan plan;
};

struct packing {
    struct cw_compress_flow choice;
    struct part parts[CW_MCAST_WINDOW]; /* by number modulo */
    /* the last result: a port that has no packet is queried again and again */
    uint64_t made_number; /* 0: nothing */
    struct load made;
    uint8_t chunk[]; /* as long as a packet's payload may be */
};

static struct part *part_at(const struct stream *stream, uint64_t number)
{
    return &stream->sending->packing->parts[number % CW_MCAST_WINDOW];
}

static struct cw_compress_path path_of(const struct stream *stream, const struct message *message)
{
    return (struct cw_compress_path){
        .state = &stream->sending->packing->choice,
        .window_bytes = (stream->sending->next - stream->sending->base) * message->room,
        .part_bytes = message->room,
        .chunk_bytes = message->room - (uint32_t)sizeof(struct cw_mcast_chunk),
    };
}

static struct cw_compress_packet packet_of(const struct part *part, uint32_t chunk_bytes)
{
    return (struct cw_compress_packet){part->element, part->plan, part->bytes, chunk_bytes};
}

bool mcast_pack_wants(struct stream *stream)
{
    struct sending *sending = stream->sending;
    if (!cw_compress_may(stream->group->mcast->endpoint) || stream->group->by_device) {
        return false;
    }
    if (sending->packing == NULL) {
        /* without memory it goes as it is */
        sending->packing =
            calloc(1, sizeof(*sending->packing) + cw_extension_payload_max(stream->group->mcast->endpoint));
    }
    return sending->packing != NULL;
}

/* Where the message's data is that a load has behind its part of the head. */
static struct cw_chunk_data data_of(const struct message *message, const struct load *load, struct cw_source *source,
                                    struct cw_source_cursor *cursor)
{
    uint64_t bytes = message->bytes - message->head_bytes;
    uint64_t position = load->position + load->head_bytes - message->head_bytes;
    *source = (struct cw_source){.kind = CW_SOURCE_CONTIGUOUS, .contiguous = {message->data, bytes}};
    *cursor = (struct cw_source_cursor){.slice = 0};
    return (struct cw_chunk_data){source, cursor, position, bytes - position};
}

/* True if the load of this number was the last that was made, which it is again. */
static bool is_made(const struct packing *packing, uint64_t number, struct load *load)
{
    if (packing->made_number != number) {
        return false;
    }
    *load = packing->made;
    return true;
}

static void made_keep(struct packing *packing, uint64_t number, const struct load *load)
{
    packing->made_number = number;
    packing->made = *load;
}

/* As much of a message as the packet takes compressed. False: it goes as it is. */
static bool chunk_make(struct stream *stream, const struct message *message, struct load *load)
{
    struct cw_endpoint *endpoint = stream->group->mcast->endpoint;
    struct packing *packing = stream->sending->packing;
    const struct cw_compress_path path = path_of(stream, message);
    struct cw_source source;
    struct cw_source_cursor cursor;
    const struct cw_chunk_data data = data_of(message, load, &source, &cursor);
    load->plan = cw_compress_plan(endpoint, &path, message->element, &data);
    if (load->plan.codec == CW_CODEC_NONE) {
        return false;
    }
    uint32_t room = path.chunk_bytes - load->head_bytes;
    uint64_t likely = path.state->kinds[message->element].taken;
    uint32_t taken = (uint32_t)(likely * room / path.chunk_bytes);
    load->chunk = packing->chunk;
    load->chunk_bytes = cw_chunk_fill(endpoint, load->plan, &data, packing->chunk, room, &taken);
    if (load->chunk_bytes == 0) {
        load->plan = (struct cw_codec_plan){CW_CODEC_NONE, CW_SENT_UNFIT};
        return false;
    }
    load->bytes = load->head_bytes + taken;
    return true;
}

void mcast_pack_load(struct stream *stream, const struct message *message, uint64_t number, struct load *load)
{
    struct packing *packing = stream->sending->packing;
    if (is_made(packing, number, load)) {
        return;
    }
    bool is_chunk = cw_compress_may(stream->group->mcast->endpoint) && chunk_make(stream, message, load);
    if (!is_chunk && load->bytes < message->bytes - load->position) { /* the next one begins with a whole element */
        load->bytes -= (load->bytes - load->head_bytes) % 8;
    }
    made_keep(packing, number, load);
}

void mcast_pack_load_again(struct stream *stream, const struct message *message, uint64_t number, struct load *load)
{
    struct cw_endpoint *endpoint = stream->group->mcast->endpoint;
    struct packing *packing = stream->sending->packing;
    const struct part *part = part_at(stream, number);
    struct cw_source source;
    struct cw_source_cursor cursor;
    if (is_made(packing, number, load)) {
        return;
    }
    load->position = part->position;
    load->bytes = part->bytes;
    load->head_bytes = part->position == 0 ? message->head_bytes : 0;
    load->chunk_bytes = 0;
    load->plan = part->plan;
    if (part->plan.codec == CW_CODEC_NONE) {
        return;
    }
    const struct cw_chunk_data data = data_of(message, load, &source, &cursor);
    uint32_t room = message->room - (uint32_t)sizeof(struct cw_mcast_chunk) - load->head_bytes;
    uint32_t raw_bytes = load->bytes - load->head_bytes;
    load->chunk = packing->chunk;
    load->chunk_bytes = cw_chunk_refill(endpoint, load->plan, &data, packing->chunk, room, raw_bytes);
    if (load->chunk_bytes == 0) { /* its owner has changed the buffer during the send: the original bytes are lost */
        load->plan = (struct cw_codec_plan){CW_CODEC_RUN, 0};
        load->chunk_bytes = cw_chunk_blank(endpoint, packing->chunk, room, raw_bytes);
    }
    made_keep(packing, number, load);
}

void mcast_pack_sent(struct stream *stream, const struct message *message, uint64_t number, const struct load *load)
{
    struct part *part = part_at(stream, number);
    const struct cw_compress_path path = path_of(stream, message);
    *part = (struct part){load->position, load->bytes, (uint8_t)message->element, load->plan};
    struct cw_compress_packet packet = packet_of(part, load->chunk_bytes);
    packet.raw_bytes -= load->chunk_bytes > 0 ? load->head_bytes : 0;
    cw_compress_sent(stream->group->mcast->endpoint, &path, &packet);
}

void mcast_pack_acknowledged(struct stream *stream, uint64_t number)
{
    const struct cw_compress_packet packet = packet_of(part_at(stream, number), 0);
    cw_compress_acknowledged(stream->group->mcast->endpoint, &stream->sending->packing->choice, &packet);
}

bool cw_mcast_compression(const struct cw_mcast_group *group, enum cw_element element,
                          struct cw_compression_report *report)
{
    const struct stream *stream = group->streams[group->self];
    if (stream == NULL || stream->sending == NULL || stream->sending->packing == NULL ||
        (unsigned)element >= CW_ELEMENTS) {
        return false;
    }
    const struct cw_compress_path path = path_of(stream, &(struct message){.room = mcast_payload_max(group)});
    cw_compress_report(group->mcast->endpoint, &path, element, report);
    return true;
}
