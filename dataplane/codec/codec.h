/* Codecs: compression of the chunks of a put's data.
 *
 * One packet carries one chunk. A chunk is independent of others, so packets are placed in any order of arrival and
 * repaired one by one. No state of a codec outlives a chunk.
 *
 * Invariants
 *   - cw_codec_fill depends on its arguments only. With `available` set to the bytes that it has taken before, it takes
 *     the same bytes again, into at most the same length: a packet that is sent again is compressed again.
 *   - For any chunk, cw_codec_expand writes only the `raw_bytes` bytes, reads only the chunk, and allocates no memory
 *     that depends on the chunk. Invalid chunks are rejected.
 *   - Elements are compared as bits. NaNs, signed zeros and denormal numbers are restored exactly.
 *
 * Order of calls: a scratch is made with the first chunk of an endpoint; cw_codec_plan reads a sample of a kind of
 * data; cw_codec_fill makes chunk after chunk by that plan, until the ratio changes.
 *
 * Sources: DFCM is the predictor of Ke, Burtscher and Speight (cMPI, 2004), sections 2.2 and 2.3. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/codec/kinds.h"

enum {
    CW_CHUNK_RAW_MAX = 65528, /* bytes of a put in a packet: the limit of 16 bits, whole elements */
    CW_CHUNK_MAX = 65535,     /* bytes that they may become */
    CW_CHUNK_RAW_MIN = 64,    /* shorter data is not compressed */
    CW_CODEC_SAMPLE = 4096,   /* bytes of a sample, at most */
};

/* The compression of a kind of data: sent with each chunk. */
struct cw_codec_plan {
    uint8_t codec;     /* enum cw_codec */
    uint8_t parameter; /* of the codec: the predictor, the width of elements */
};

/* The memory of all codecs, for one thread at a time: some 0.7 MiB of address space, of which a codec touches only its
 * part. NULL: no memory. */
struct cw_codec_scratch;
struct cw_codec_scratch *cw_codec_scratch_create(void);
void cw_codec_scratch_destroy(struct cw_codec_scratch *scratch);

/* Vector instructions that codecs may use; the chunks are the same with all. */
enum cw_codec_vectors { CW_CODEC_PLAIN, CW_CODEC_AVX2, CW_CODEC_AVX512, CW_CODEC_VECTORS };

/* Limits the vector instructions, for tests that compare them. False: the processor does not have these. */
bool cw_codec_scratch_limit(struct cw_codec_scratch *scratch, enum cw_codec_vectors vectors);

/* The name of a codec in settings ("lorenzo"), and the codec of a name; CW_CODECS: no such codec. */
const char *cw_codec_name(enum cw_codec codec);
enum cw_codec cw_codec_named(const char *name);

/* True if the codec accepts such elements: LORENZO and DFCM need numbers. */
bool cw_codec_accepts(enum cw_codec codec, enum cw_element element);

/* Finds the parameter with the shortest chunks of a sample (it reads at most CW_CODEC_SAMPLE bytes). The codec must
 * accept the element. */
struct cw_codec_plan cw_codec_plan(struct cw_codec_scratch *scratch, enum cw_codec codec, enum cw_element element,
                                   const void *sample, uint32_t bytes);

/* Compresses as much of `source` as fits `capacity` bytes: returns the bytes written, and in *taken the bytes of the
 * source that they represent, at most `available` and CW_CHUNK_RAW_MAX. Before the call, *taken is an estimate of the
 * bytes that fit, or 0: a codec that needs an estimate begins with it. Returns 0 if the chunk would not be shorter than
 * its source, or if the source is too short. Codecs of numbers take whole elements, and stop before an incomplete one
 * at the end. */
uint32_t cw_codec_fill(struct cw_codec_scratch *scratch, struct cw_codec_plan plan, const void *source,
                       uint32_t available, void *to, uint32_t capacity, uint32_t *taken);

/* Expands a chunk of `bytes` bytes to the `raw_bytes` that it represents. False: the chunk is invalid; then `to` is
 * undefined, and no byte outside of it was written. */
bool cw_codec_expand(struct cw_codec_scratch *scratch, struct cw_codec_plan plan, const void *chunk, uint32_t bytes,
                     void *to, uint32_t raw_bytes);
