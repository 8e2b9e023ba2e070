/* chunk: packets whose data travels compressed. */
#pragma once

#include "dataplane/flow/place.h"

/* What codecs work in; NULL: no memory. */
struct cw_codec_scratch *cw_chunk_scratch(struct cw_endpoint *endpoint);

/* Bytes of an operation's source from `position` on: returns how many there are at *data, `bytes` at most; in one piece,
 * or at least `likely` of them, gathered, until the next call (0: all). */
uint32_t cw_chunk_source(struct cw_endpoint *endpoint, struct cw_operation *operation, uint64_t position,
                         uint32_t bytes, uint32_t likely, const void **data);

/* Data bytes, compressed, of a packet of this flow at most. */
uint32_t cw_chunk_room(const struct cw_flow *flow);

/* Fills `at` by the record's plan with as much of its operation, from the record's position on, as fits, at most what
 * the record has; sets the record's bytes to that. Returns the bytes written; 0: it would become no shorter, or, where
 * it was sent before, the source has changed meanwhile. */
uint32_t cw_chunk_fill(struct cw_endpoint *endpoint, struct cw_sent *record, uint8_t *at);

/* Expands the chunk of a frame to memory of the endpoint, where the frame's data is then. CW_VALID; CW_LATER: no
 * memory; CW_DAMAGED. */
enum cw_verdict cw_chunk_expand(struct cw_endpoint *endpoint, struct cw_frame *frame);

/* Gives back what chunks have taken. */
void cw_chunks_dispose(struct cw_endpoint *endpoint);
