/* Messages to a group that travel compressed: once for all members, however many there are. A chunk says where its bytes
 * belong, as every packet does; its sender keeps what each stands for, to make it again. */
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
};

static struct part *part_at(const struct stream *stream, uint64_t number)
{
    return &stream->sending->packing->parts[number % CW_MCAST_WINDOW];
}

static struct cw_compress_path path_of(const struct stream *stream, const struct message *message)
{
    return (struct cw_compress_path){
        .state = &stream->sending->packing->choice,
        .window_bytes = (uint64_t)stream->sending->window * message->room,
        .part_bytes = message->room,
        .chunk_bytes = message->room - (uint32_t)sizeof(struct cw_mcast_chunk),
    };
}

static struct cw_compress_packet packet_of(const struct part *part, uint32_t chunk_bytes)
{
    return (struct cw_compress_packet){part->element, part->plan, part->bytes, chunk_bytes};
}

bool mcast_pack_wants(struct stream *stream, const struct message *message)
{
    struct sending *sending = stream->sending;
    if (!cw_compress_may(stream->group->mcast->endpoint) || stream->group->by_device ||
        message->element == CW_ELEMENT_PLAIN || message->bytes <= message->room) {
        return false;
    }
    if (sending->packing == NULL) {
        sending->packing = calloc(1, sizeof(*sending->packing)); /* without memory it goes as it is */
    }
    return sending->packing != NULL;
}

void mcast_pack_end(struct stream *stream)
{
    struct sending *sending = stream->sending;
    struct message *message = mcast_message(stream, sending->message_at);
    if (message->is_packed && message->end == UINT64_MAX) {
        message->end = sending->next + mcast_packets(message->bytes - sending->position, message->room);
    }
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

void mcast_pack_load(struct stream *stream, const struct message *message, struct load *load)
{
    struct cw_endpoint *endpoint = stream->group->mcast->endpoint;
    const struct cw_compress_path path = path_of(stream, message);
    if (message->end != UINT64_MAX) { /* so many packets are left, each with as much as it takes */
        return;
    }
    struct cw_source source;
    struct cw_source_cursor cursor;
    const struct cw_chunk_data data = data_of(message, load, &source, &cursor);
    uint32_t taken = path.state->kinds[message->element].taken;
    load->plan = cw_compress_plan(endpoint, &path, message->element, &data);
    if (load->plan.codec != CW_CODEC_NONE) {
        uint32_t room = path.chunk_bytes - load->head_bytes;
        load->chunk_bytes = cw_chunk_fill(endpoint, load->plan, &data, load->chunk, room, &taken);
        if (load->chunk_bytes > 0) {
            load->bytes = load->head_bytes + taken;
            return;
        }
        load->plan = (struct cw_codec_plan){CW_CODEC_NONE, CW_SENT_UNFIT};
    }
    if (load->bytes < message->bytes - load->position) { /* the next one begins with a whole element */
        load->bytes -= (load->bytes - load->head_bytes) % 8;
    }
}

void mcast_pack_load_again(struct stream *stream, const struct message *message, uint64_t number, struct load *load)
{
    struct cw_endpoint *endpoint = stream->group->mcast->endpoint;
    const struct part *part = part_at(stream, number);
    struct cw_source source;
    struct cw_source_cursor cursor;
    load->position = part->position;
    load->bytes = part->bytes;
    load->head_bytes = part->position == 0 ? message->head_bytes : 0;
    load->plan = part->plan;
    if (part->plan.codec == CW_CODEC_NONE) {
        return;
    }
    const struct cw_chunk_data data = data_of(message, load, &source, &cursor);
    uint32_t room = message->room - (uint32_t)sizeof(struct cw_mcast_chunk) - load->head_bytes;
    uint32_t raw_bytes = load->bytes - load->head_bytes;
    load->chunk_bytes = cw_chunk_refill(endpoint, load->plan, &data, load->chunk, room, raw_bytes);
    if (load->chunk_bytes == 0) { /* its owner has changed what he was not to change: nobody can tell what it was */
        load->plan = (struct cw_codec_plan){CW_CODEC_RUN, 0};
        load->chunk_bytes = cw_chunk_blank(endpoint, load->chunk, room, raw_bytes);
    }
}

void mcast_pack_sent(struct stream *stream, const struct message *message, uint64_t number, const struct load *load)
{
    struct part *part = part_at(stream, number);
    const struct cw_compress_path path = path_of(stream, message);
    *part = (struct part){load->position, load->bytes, (uint8_t)message->element, load->plan};
    const struct cw_compress_packet packet = packet_of(part, load->head_bytes + load->chunk_bytes);
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
    cw_compress_tell(group->mcast->endpoint, &path, element, report);
    return true;
}
