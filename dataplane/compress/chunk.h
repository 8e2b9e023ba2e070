/* chunk: the data of codecs in an endpoint. A chunk is made in the packet that carries it, and made again for each
 * later transmission: it is not stored. At its target it is expanded before the packet is processed, so a packet is
 * accepted completely or not at all. Both need one memory an endpoint, made with its first chunk. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Data to send: its source, and the rest of it. */
struct cw_chunk_data {
    const struct cw_source *source;
    struct cw_source_cursor *cursor;
    uint64_t position;
    uint64_t left; /* from there on */
};

/* The memory of codecs; NULL: no memory. */
struct cw_codec_scratch *cw_chunk_scratch(struct cw_endpoint *endpoint);

/* Returns the number of bytes of the data at *at, `bytes` at most; in one piece, or at least `likely` of them,
 * gathered, until the next call (0: all). */
uint32_t cw_chunk_source(struct cw_endpoint *endpoint, const struct cw_chunk_data *data, uint32_t bytes,
                         uint32_t likely, const void **at);

/* Fills `to` by a plan with as much of the data as fits `room`: returns the bytes written, and in *taken those that
 * they represent. Before the call *taken is an estimate of the bytes that fit, 0: none. 0: it would not be shorter. */
uint32_t cw_chunk_fill(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const struct cw_chunk_data *data,
                       uint8_t *to, uint32_t room, uint32_t *taken);

/* The same again, for the first `taken` bytes. 0: the source has changed meanwhile. */
uint32_t cw_chunk_refill(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const struct cw_chunk_data *data,
                         uint8_t *to, uint32_t room, uint32_t taken);

/* A chunk that represents `raw_bytes` zeros, at most the limit of a chunk: returns its bytes; 0: no memory. */
uint32_t cw_chunk_blank(struct cw_endpoint *endpoint, uint8_t *to, uint32_t room, uint32_t raw_bytes);

/* Expands a chunk of `bytes` bytes to the `raw_bytes` that it represents, which are at *data until the next call.
 * CW_OK; CW_ERROR_MEMORY; CW_ERROR_DAMAGED: no codec has made it. */
int cw_chunk_expand(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const void *chunk, uint32_t bytes,
                    uint32_t raw_bytes, const void **data);

/* Frees the memory of chunks. */
void cw_chunks_dispose(struct cw_endpoint *endpoint);
