/* A chunk is made in the packet that carries it, and made again for each later transmission: nothing of it is kept. At
 * its target it is expanded before anything of the packet is done, so that a packet is still taken whole or not at all.
 * Both need one memory an endpoint, made with its first chunk. */
#include "dataplane/flow/chunk.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/codec/codec.h"

/* What chunks of an endpoint work in. */
struct cw_chunks {
    struct cw_codec_scratch *scratch;
    uint8_t bytes[CW_CHUNK_RAW_MAX]; /* out: a source in many pieces; in: what a chunk stands for */
};

enum { GATHER_MORE = 4 /* one in so many more bytes than the last chunk took are gathered for the next */ };

static struct cw_chunks *chunks_of(struct cw_endpoint *endpoint)
{
    if (endpoint->chunks != NULL) {
        return endpoint->chunks;
    }
    struct cw_chunks *chunks = malloc(sizeof(*chunks));
    if (chunks == NULL) {
        return NULL;
    }
    chunks->scratch = cw_codec_scratch_create();
    if (chunks->scratch == NULL) {
        free(chunks);
        return NULL;
    }
    endpoint->chunks = chunks;
    return chunks;
}

struct cw_codec_scratch *cw_chunk_scratch(struct cw_endpoint *endpoint)
{
    struct cw_chunks *chunks = chunks_of(endpoint);
    return chunks != NULL ? chunks->scratch : NULL;
}

void cw_chunks_dispose(struct cw_endpoint *endpoint)
{
    if (endpoint->chunks != NULL) {
        cw_codec_scratch_destroy(endpoint->chunks->scratch);
        free(endpoint->chunks);
        endpoint->chunks = NULL;
    }
}

uint32_t cw_chunk_room(const struct cw_flow *flow)
{
    return flow->session.payload_bytes_max - (uint32_t)sizeof(struct cw_wire_chunk);
}

uint32_t cw_chunk_source(struct cw_endpoint *endpoint, struct cw_operation *operation, uint64_t position,
                         uint32_t bytes, uint32_t likely, const void **data)
{
    uint32_t run = cw_source_run(&operation->source, &operation->cursor, position, bytes, data);
    struct cw_chunks *chunks = chunks_of(endpoint);
    uint32_t wanted = likely == 0 || likely > bytes ? bytes : likely;
    if (run >= wanted || chunks == NULL) {
        return run;
    }
    cw_source_copy(&operation->source, &operation->cursor, position, wanted, chunks->bytes);
    *data = chunks->bytes;
    return wanted;
}

uint32_t cw_chunk_fill(struct cw_endpoint *endpoint, struct cw_sent *record, uint8_t *at)
{
    struct cw_operation *operation = record->operation;
    const struct cw_flow *flow = operation->flow;
    struct cw_codec_scratch *scratch = cw_chunk_scratch(endpoint);
    bool is_first = record->transmissions == 0;
    /* the path may pass less than when it was sent first: still the packet is what it was */
    uint32_t payload_bytes = is_first ? flow->session.payload_bytes_max : flow->session.payload_bytes_agreed;
    uint32_t room = payload_bytes - (uint32_t)sizeof(struct cw_wire_chunk);
    uint32_t taken = is_first ? cw_compress_of(endpoint, flow)->kinds[operation->source.element].taken : record->bytes;
    const void *data;
    uint32_t likely = is_first && taken > 0 ? taken + taken / GATHER_MORE : 0;
    uint32_t available = cw_chunk_source(endpoint, operation, record->position, record->bytes, likely, &data);
    uint32_t bytes = scratch == NULL ? 0 : cw_codec_fill(scratch, record->plan, data, available, at, room, &taken);
    if (bytes == 0 || (!is_first && taken != record->bytes)) {
        return 0;
    }
    record->bytes = (uint16_t)taken;
    return bytes;
}

enum cw_verdict cw_chunk_expand(struct cw_endpoint *endpoint, struct cw_frame *frame)
{
    const struct cw_wire_chunk *wire = (const struct cw_wire_chunk *)frame->wire;
    struct cw_chunks *chunks = chunks_of(endpoint);
    if (chunks == NULL) {
        return CW_LATER;
    }
    struct cw_codec_plan plan = {.codec = wire->codec, .parameter = wire->parameter};
    if (!cw_codec_expand(chunks->scratch, plan, frame->data, wire->put.frame.length, chunks->bytes, wire->raw_bytes)) {
        return CW_DAMAGED;
    }
    frame->data = chunks->bytes;
    return CW_VALID;
}
