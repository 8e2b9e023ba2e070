/* Codecs: what compresses the chunks of a put's data.
 *
 * A chunk is what one packet carries. It stands alone, so that packets are placed in whatever order they come and are
 * repaired one by one; no state of a codec outlives it.
 *
 * Invariants
 *   - cw_codec_fill is a function of its arguments alone. What it has taken once, asked for no more than that, it takes
 *     again into no more bytes: a packet that is sent again is made anew.
 *   - cw_codec_expand writes the bytes it is told of and no other, reads nothing outside of the chunk, and allocates
 *     nothing that the chunk could swell, whatever the chunk is: what cannot be a chunk is refused.
 *   - Elements are compared as bits. NaNs, zeros with a sign and denormal numbers come back as they were.
 *
 * Order of calls: a scratch is made with the first chunk of an endpoint; cw_codec_plan looks at a sample of a kind of
 * data; cw_codec_fill makes chunk after chunk by that plan, until the rate changes.
 *
 * Sources: DFCM is the predictor of Ke, Burtscher and Speight (cMPI, 2004), sections 2.2 and 2.3. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/codec/kinds.h"

enum {
    CW_CHUNK_RAW_MAX = 65528, /* bytes of a put in a packet: what 16 bits can say, whole elements */
    CW_CHUNK_MAX = 65535,     /* bytes that they may become */
    CW_CHUNK_RAW_MIN = 64,    /* below that nothing is compressed */
    CW_CODEC_SAMPLE = 4096,   /* bytes that a plan is made from, at most */
};

/* How a kind of data is compressed: travels with each chunk. */
struct cw_codec_plan {
    uint8_t codec;     /* enum cw_codec */
    uint8_t parameter; /* the codec's own: which predictor, how wide elements are */
};

/* Memory that all codecs work in, for one thread at a time: some 0.7 MiB of address space, of which a codec touches
 * its part only. NULL: no memory. */
struct cw_codec_scratch;
struct cw_codec_scratch *cw_codec_scratch_create(void);
void cw_codec_scratch_destroy(struct cw_codec_scratch *scratch);

/* Vector instructions that codecs may use; what they make is the same with all. */
enum cw_codec_vectors { CW_CODEC_PLAIN, CW_CODEC_AVX2, CW_CODEC_AVX512, CW_CODEC_VECTORS };

/* Fewer than the processor has, which tests compare. False: it has not got these. */
bool cw_codec_scratch_limit(struct cw_codec_scratch *scratch, enum cw_codec_vectors vectors);

/* The name of a codec, as settings have it ("lorenzo"), and the codec of a name; CW_CODECS: there is none of it. */
const char *cw_codec_name(enum cw_codec codec);
enum cw_codec cw_codec_named(const char *name);

/* True if the codec takes such elements at all: LORENZO and DFCM want numbers. */
bool cw_codec_takes(enum cw_codec codec, enum cw_element element);

/* Finds the parameter by which the codec makes least of a sample (at most CW_CODEC_SAMPLE bytes of it are looked at).
 * The codec must take the element. */
struct cw_codec_plan cw_codec_plan(struct cw_codec_scratch *scratch, enum cw_codec codec, enum cw_element element,
                                   const void *sample, uint32_t bytes);

/* Compresses as much of `source` as fits `capacity` bytes: returns the bytes written, and in *taken those of the source
 * that they stand for, at most `available` and CW_CHUNK_RAW_MAX. *taken says before what is likely to fit, or 0: a codec that
 * has to know begins with that. 0: the chunk would not be shorter than its source, or
 * the source is too short. Codecs of numbers take whole elements; of a source
 * with a broken element at its end, all before it. */
uint32_t cw_codec_fill(struct cw_codec_scratch *scratch, struct cw_codec_plan plan, const void *source,
                       uint32_t available, void *to, uint32_t capacity, uint32_t *taken);

/* Expands a chunk of `bytes` bytes to the `raw_bytes` that it stands for. False: it is no such chunk; then what is in
 * `to` is undefined, and nothing outside of it was written. */
bool cw_codec_expand(struct cw_codec_scratch *scratch, struct cw_codec_plan plan, const void *chunk, uint32_t bytes,
                     void *to, uint32_t raw_bytes);
