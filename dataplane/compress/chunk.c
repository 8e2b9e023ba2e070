#include "dataplane/compress/chunk.h"

#include <stdlib.h>
#include <string.h>

/* Work memory for chunks of an endpoint. */
struct cw_chunks {
    struct cw_codec_scratch *scratch;
    uint8_t bytes[CW_CHUNK_RAW_MAX]; /* out: a source in many pieces; in: the expanded chunk */
};

enum { GATHER_MORE = 4 /* the next chunk gathers this fraction more bytes than the last one consumed */ };

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

uint32_t cw_chunk_source(struct cw_endpoint *endpoint, const struct cw_chunk_data *data, uint32_t bytes,
                         uint32_t likely, const void **at)
{
    uint32_t run = cw_source_run(data->source, data->cursor, data->position, bytes, at);
    struct cw_chunks *chunks = chunks_of(endpoint);
    uint32_t wanted = likely == 0 || likely > bytes ? bytes : likely;
    if (run >= wanted || chunks == NULL) {
        return run;
    }
    cw_source_copy(data->source, data->cursor, data->position, wanted, chunks->bytes, NULL);
    *at = chunks->bytes;
    return wanted;
}

uint32_t cw_chunk_fill(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const struct cw_chunk_data *data,
                       uint8_t *to, uint32_t room, uint32_t *taken)
{
    struct cw_codec_scratch *scratch = cw_chunk_scratch(endpoint);
    const void *at;
    uint32_t likely = *taken + *taken / GATHER_MORE;
    uint32_t most = data->left < CW_CHUNK_RAW_MAX ? (uint32_t)data->left : CW_CHUNK_RAW_MAX;
    uint32_t available = cw_chunk_source(endpoint, data, most, likely, &at);
    return scratch == NULL ? 0 : cw_codec_fill(scratch, plan, at, available, to, room, taken);
}

uint32_t cw_chunk_refill(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const struct cw_chunk_data *data,
                         uint8_t *to, uint32_t room, uint32_t taken)
{
    struct cw_codec_scratch *scratch = cw_chunk_scratch(endpoint);
    const void *at;
    uint32_t again = taken;
    uint32_t available = cw_chunk_source(endpoint, data, taken, 0, &at);
    uint32_t bytes = scratch == NULL ? 0 : cw_codec_fill(scratch, plan, at, available, to, room, &again);
    return again == taken ? bytes : 0;
}

uint32_t cw_chunk_blank(struct cw_endpoint *endpoint, uint8_t *to, uint32_t room, uint32_t raw_bytes)
{
    struct cw_chunks *chunks = chunks_of(endpoint);
    if (chunks == NULL) {
        return 0;
    }
    memset(chunks->bytes, 0, raw_bytes);
    uint32_t taken = raw_bytes;
    return cw_codec_fill(chunks->scratch, (struct cw_codec_plan){CW_CODEC_RUN, 0}, chunks->bytes, raw_bytes, to, room,
                         &taken);
}

int cw_chunk_expand(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const void *chunk, uint32_t bytes,
                    uint32_t raw_bytes, const void **data)
{
    struct cw_chunks *chunks = chunks_of(endpoint);
    if (chunks == NULL) {
        return CW_ERROR_MEMORY;
    }
    if (!cw_codec_expand(chunks->scratch, plan, chunk, bytes, chunks->bytes, raw_bytes)) {
        return CW_ERROR_DAMAGED;
    }
    cw_count(endpoint, CW_COUNTER_CHUNKS_IN, 1);
    cw_count(endpoint, CW_COUNTER_CHUNK_RAW_IN, raw_bytes);
    *data = chunks->bytes;
    return CW_OK;
}
