/* Frames: the form of operations in a data packet. */
#include "dataplane/flow/frame.h"

#include <string.h>

#include "dataplane/base/prefetch.h"
#include "dataplane/flow/compress.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/put/operation.h"

uint32_t cw_frame_bytes(const struct cw_operation *operation)
{
    switch (operation->kind) {
    case CW_OPERATION_GET:
        return sizeof(struct cw_wire_get);
    case CW_OPERATION_ASK:
    case CW_OPERATION_RECALL:
        return sizeof(struct cw_wire_frame);
    case CW_OPERATION_RDMA:
        return (uint32_t)(sizeof(struct cw_wire_frame) + operation->bytes);
    case CW_OPERATION_GRANT:
    case CW_OPERATION_RETURN:
        return (uint32_t)(sizeof(struct cw_wire_frame) + operation->bytes * sizeof(uint16_t));
    default:
        return (uint32_t)(sizeof(struct cw_wire_put) + operation->bytes);
    }
}

/* Writes whole words to their final place, because the checksum reads them next. Copying a structure just written, or
 * reading a word that was written in parts, would stall on the stores. */
static void write_put(const struct cw_operation *operation, enum cw_wire_frame_kind kind, uint32_t length,
                      struct cw_wire_put *put)
{
    static_assert(offsetof(struct cw_wire_frame, length) == 2 && offsetof(struct cw_wire_frame, put_number) == 4 &&
                      offsetof(struct cw_wire_put, reply) == 10 && offsetof(struct cw_wire_put, lane_tag) == 12,
                  "as they are shifted here");
    const uint64_t words[] = {
        (uint64_t)kind | (uint64_t)length << 16 | (uint64_t)(uint32_t)operation->number << 32,
        operation->predecessor | (uint64_t)operation->reply << 16 | (uint64_t)operation->lane_tag << 32,
    };
    memcpy(put, &words[0], sizeof(words[0]));
    memcpy((uint8_t *)put + sizeof(words[0]), &words[1], sizeof(words[1]));
    put->token = operation->token;
    put->offset = operation->offset;
}

static uint32_t write_bare(const struct cw_operation *operation, enum cw_wire_frame_kind kind, uint64_t length,
                           uint8_t *at)
{
    struct cw_wire_frame frame = {
        .kind = (uint8_t)kind, .length = (uint16_t)length, .put_number = (uint32_t)operation->number};
    memcpy(at, &frame, sizeof(frame));
    return sizeof(frame);
}

/* The operation is given up. A peer that waits for an answer is notified. */
static uint32_t write_void(const struct cw_operation *operation, uint8_t *at)
{
    if (operation->kind != CW_OPERATION_REPLY) {
        return write_bare(operation, CW_FRAME_VOID, operation->predecessor, at);
    }
    (void)write_bare(operation, CW_FRAME_VOID_REPLY, operation->predecessor, at);
    struct cw_wire_void_reply *frame = (struct cw_wire_void_reply *)at;
    frame->reply = operation->reply;
    memset(frame->reserved, 0, sizeof(frame->reserved));
    return sizeof(*frame);
}

/* Continues the checksum over the data, unless it is NULL. */
static void copy_data(struct cw_operation *operation, uint64_t position, uint32_t bytes, uint8_t *at,
                      uint32_t *checksum)
{
    if (operation->is_inline) {
        memcpy(at, operation->bytes_inline + position, bytes);
        if (checksum != NULL) {
            *checksum = cw_wire_checksum(*checksum, at, bytes);
        }
    } else if (bytes > 0) {
        cw_source_copy(&operation->source, &operation->cursor, position, bytes, at, checksum);
        if (operation->source.kind == CW_SOURCE_CONTIGUOUS) { /* the next packet's */
            cw_prefetch_read((const uint8_t *)operation->source.contiguous.data + position + bytes,
                             operation->bytes - position - bytes);
        }
    }
}

/* Writes a whole operation as one frame, its data included; returns its bytes. */
static uint32_t write_whole(struct cw_operation *operation, uint8_t *at)
{
    if (operation->status < 0) {
        return write_void(operation, at);
    }
    switch (operation->kind) {
    case CW_OPERATION_GET: {
        struct cw_wire_get *get = (struct cw_wire_get *)at;
        write_put(operation, CW_FRAME_GET, operation->local.element, &get->put);
        get->bytes = operation->bytes;
        get->local_token = operation->local.token;
        get->local_offset = operation->local.offset;
        return sizeof(*get);
    }
    case CW_OPERATION_ASK:
        return write_bare(operation, CW_FRAME_ASK, operation->bytes, at);
    case CW_OPERATION_RECALL:
        return write_bare(operation, CW_FRAME_RECALL, 0, at);
    case CW_OPERATION_RDMA: {
        uint32_t bytes = write_bare(operation, CW_FRAME_RDMA, operation->bytes, at);
        memcpy(at + bytes, operation->bytes_inline, operation->bytes);
        return bytes + (uint32_t)operation->bytes;
    }
    case CW_OPERATION_GRANT:
    case CW_OPERATION_RETURN: {
        uint32_t kind = operation->kind == CW_OPERATION_GRANT ? CW_FRAME_GRANT : CW_FRAME_RETURN;
        uint32_t bytes = write_bare(operation, kind, operation->bytes, at);
        memcpy(at + bytes, operation->slots, operation->bytes * sizeof(uint16_t));
        return bytes + (uint32_t)(operation->bytes * sizeof(uint16_t));
    }
    default:
        write_put(operation, CW_FRAME_PUT, (uint32_t)operation->bytes, (struct cw_wire_put *)at);
        copy_data(operation, 0, (uint32_t)operation->bytes, at + sizeof(struct cw_wire_put), NULL);
        return (uint32_t)(sizeof(struct cw_wire_put) + operation->bytes);
    }
}

/* Points the packet's pieces at the source's data if that pays. False: the data must be copied. */
static bool gather(const struct cw_endpoint *endpoint, struct cw_operation *operation, const struct cw_sent *record,
                   struct cw_transmit *packet)
{
    struct cw_port_memory *memory = cw_frame_memory(endpoint, operation, record->bytes);
    if (memory == NULL) {
        return false;
    }
    uint64_t position = record->position;
    uint32_t left = record->bytes;
    uint32_t count = 0;
    while (left > 0) {
        if (count == CW_PORT_PIECES_MAX) {
            return false;
        }
        struct cw_piece *piece = &packet->pieces[count++];
        piece->length = cw_source_run(&operation->source, &operation->cursor, position, left, &piece->data);
        piece->memory = memory;
        position += piece->length;
        left -= piece->length;
    }
    packet->piece_count = (uint16_t)count;
    return true;
}

static inline bool is_part(const struct cw_sent *record)
{
    return record->count == 1 && record->bytes > 0;
}

/* A chunk; 0: it cannot be made. */
static uint32_t write_chunk(struct cw_endpoint *endpoint, struct cw_sent *record, uint8_t *at)
{
    struct cw_operation *operation = record->operation;
    struct cw_wire_chunk *chunk = (struct cw_wire_chunk *)at;
    uint32_t bytes = cw_flow_chunk_fill(endpoint, record, at + sizeof(*chunk));
    if (bytes == 0) {
        return 0;
    }
    write_put(operation, CW_FRAME_CHUNK, bytes, &chunk->put);
    chunk->position = record->position;
    chunk->total = operation->bytes;
    chunk->raw_bytes = record->bytes;
    chunk->codec = record->plan.codec;
    chunk->parameter = record->plan.parameter;
    chunk->reserved = 0;
    return (uint32_t)sizeof(*chunk) + bytes;
}

void cw_frame_part_write(const struct cw_operation *operation, uint32_t bytes, struct cw_wire_part *part)
{
    write_put(operation, CW_FRAME_PART, bytes, &part->put);
    part->position = 0;
    part->total = operation->bytes;
}

void cw_frames_write(struct cw_endpoint *endpoint, struct cw_sent *record, struct cw_transmit *packet, uint8_t *at,
                     uint32_t how, struct cw_written *written)
{
    struct cw_operation *operation = record->operation;
    /* field by field: a structure that is copied as a whole waits for the stores */
    written->in_buffer = written->gathered = written->header = written->checksum = 0;
    written->is_summed = false;
    if (!is_part(record)) {
        uint32_t used = 0;
        for (uint32_t i = 0; i < record->count; i++, operation = operation->chain) {
            uint32_t padded = cw_wire_pad(used);
            memset(at + used, 0, padded - used);
            used = padded + write_whole(operation, at + padded);
        }
        written->in_buffer = used;
        return;
    }
    if (operation->status < 0) {
        written->in_buffer = write_void(operation, at);
        return;
    }
    if (record->plan.codec != CW_CODEC_NONE) {
        uint32_t bytes = write_chunk(endpoint, record, at);
        if (bytes > 0) {
            written->in_buffer = bytes;
            return;
        }
        if (record->transmissions > 0) { /* its owner has changed what he was not to change */
            cw_operation_reject(endpoint, operation, CW_ERROR_ARGUMENT);
            written->in_buffer = write_void(operation, at);
            return;
        }
        uint32_t room = cw_transmit_part_bytes(operation->flow);
        record->plan = (struct cw_codec_plan){CW_CODEC_NONE, CW_SENT_UNFIT};
        record->bytes = record->bytes < room ? record->bytes : (uint16_t)room;
    }
    uint32_t header_bytes;
    if (record->bytes == operation->bytes) {
        write_put(operation, CW_FRAME_PUT, record->bytes, (struct cw_wire_put *)at);
        header_bytes = sizeof(struct cw_wire_put);
    } else {
        struct cw_wire_part *part = (struct cw_wire_part *)at;
        cw_frame_part_write(operation, record->bytes, part);
        part->position = record->position;
        header_bytes = sizeof(*part);
    }
    if ((how & CW_WRITE_GATHERS) != 0 && gather(endpoint, operation, record, packet)) {
        written->in_buffer = written->header = header_bytes;
        written->gathered = record->bytes;
        return;
    }
    written->in_buffer = header_bytes + record->bytes;
    written->header = header_bytes;
    if ((how & CW_WRITE_SUMS) != 0) {
        written->is_summed = true;
        written->checksum = cw_wire_checksum(0, at, header_bytes);
    }
    copy_data(operation, record->position, record->bytes, at + header_bytes,
              written->is_summed ? &written->checksum : NULL);
}
