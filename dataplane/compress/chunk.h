/* chunk: what codecs work on in an endpoint. A chunk is made in the packet that carries it, and made again for each
 * later transmission: nothing of it is kept. At its target it is expanded before anything of the packet is done, so
 * that a packet is still taken whole or not at all. Both need one memory an endpoint, made with its first chunk. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Data that is on its way: where it comes from, and how much of it is left. */
struct cw_chunk_data {
    const struct cw_source *source;
    struct cw_source_cursor *cursor;
    uint64_t position;
    uint64_t left; /* from there on */
};

/* What codecs work in; NULL: no memory. */
struct cw_codec_scratch *cw_chunk_scratch(struct cw_endpoint *endpoint);

/* Returns how many bytes of the data there are at *at, `bytes` at most; in one piece, or at least `likely` of them,
 * gathered, until the next call (0: all). */
uint32_t cw_chunk_source(struct cw_endpoint *endpoint, const struct cw_chunk_data *data, uint32_t bytes,
                         uint32_t likely, const void **at);

/* Fills `to` by a plan with as much of the data as fits `room`: returns the bytes written, and in *taken those that
 * they stand for; *taken says before what is likely to fit, 0 that nothing is known. 0: it would become no shorter. */
uint32_t cw_chunk_fill(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const struct cw_chunk_data *data,
                       uint8_t *to, uint32_t room, uint32_t *taken);

/* The same again, for the first `taken` bytes. 0: the source has changed meanwhile. */
uint32_t cw_chunk_refill(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const struct cw_chunk_data *data,
                         uint8_t *to, uint32_t room, uint32_t taken);

/* A chunk that stands for so many zeros, as many as a chunk may: returns its bytes; 0: no memory. */
uint32_t cw_chunk_blank(struct cw_endpoint *endpoint, uint8_t *to, uint32_t room, uint32_t raw_bytes);

/* Expands a chunk of `bytes` bytes to the `raw_bytes` that it stands for, which are at *data until the next call.
 * CW_OK; CW_ERROR_MEMORY; CW_ERROR_DAMAGED: no codec has made it. */
int cw_chunk_expand(struct cw_endpoint *endpoint, struct cw_codec_plan plan, const void *chunk, uint32_t bytes,
                    uint32_t raw_bytes, const void **data);

/* Gives back what chunks have taken. */
void cw_chunks_dispose(struct cw_endpoint *endpoint);
