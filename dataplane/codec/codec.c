#include "dataplane/codec/codec.h"

#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "dataplane/codec/codecs.h"

enum { ATTEMPTS = 4 };

static const struct cw_codec_calls none = {.name = "none"};

static const struct cw_codec_calls *const codecs[CW_CODECS] = {
    [CW_CODEC_NONE] = &none,          [CW_CODEC_RUN] = &cw_codec_run, [CW_CODEC_LORENZO] = &cw_codec_lorenzo,
    [CW_CODEC_DFCM] = &cw_codec_dfcm, [CW_CODEC_LZ4] = &cw_codec_lz4, [CW_CODEC_SHUFFLE] = &cw_codec_shuffle,
    [CW_CODEC_ZSTD] = &cw_codec_zstd,
};

static bool has_vectors(enum cw_codec_vectors vectors)
{
#if defined(__x86_64__)
    switch (vectors) {
    case CW_CODEC_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq");
    case CW_CODEC_AVX2:
        return __builtin_cpu_supports("avx2");
    default:
        return true;
    }
#else
    return vectors == CW_CODEC_PLAIN;
#endif
}

bool cw_codec_scratch_limit(struct cw_codec_scratch *scratch, enum cw_codec_vectors vectors)
{
    bool has = has_vectors(vectors);
    scratch->vectors = has ? vectors : scratch->vectors;
    return has;
}

struct cw_codec_scratch *cw_codec_scratch_create(void)
{
    struct cw_codec_scratch *scratch = calloc(1, sizeof(*scratch)); /* fresh pages: unused ones take no memory */
    if (scratch == NULL) {
        return NULL;
    }
    scratch->lz4 = malloc((size_t)LZ4_sizeofState());
    if (scratch->lz4 == NULL) {
        free(scratch);
        return NULL;
    }
    while (scratch->vectors + 1 < CW_CODEC_VECTORS && has_vectors(scratch->vectors + 1)) {
        scratch->vectors++;
    }
    return scratch;
}

void cw_codec_scratch_destroy(struct cw_codec_scratch *scratch)
{
    if (scratch != NULL) {
        ZSTD_freeCCtx(scratch->zstd);
        ZSTD_freeDCtx(scratch->zstd_back);
        free(scratch->lz4);
        free(scratch);
    }
}

const char *cw_codec_name(enum cw_codec codec)
{
    return codecs[codec]->name;
}

enum cw_codec cw_codec_named(const char *name)
{
    enum cw_codec codec = CW_CODEC_NONE;
    while (codec < CW_CODECS && strcmp(codecs[codec]->name, name) != 0) {
        codec++;
    }
    return codec;
}

bool cw_codec_accepts(enum cw_codec codec, enum cw_element element)
{
    return (codecs[codec]->elements >> element & 1) != 0;
}

struct cw_codec_plan cw_codec_plan(struct cw_codec_scratch *scratch, enum cw_codec codec, enum cw_element element,
                                   const void *sample, uint32_t bytes)
{
    const struct cw_codec_calls *calls = codecs[codec];
    bytes = bytes < CW_CODEC_SAMPLE ? bytes : CW_CODEC_SAMPLE;
    return (struct cw_codec_plan){
        .codec = (uint8_t)codec,
        .parameter = calls->plan != NULL ? calls->plan(scratch, element, sample, bytes) : 0,
    };
}

uint32_t cw_codec_fill_whole(cw_codec_attempt_call attempt, struct cw_codec_scratch *scratch, uint8_t parameter,
                             const uint8_t *source, uint32_t available, uint8_t *to, uint32_t capacity, uint32_t *taken)
{
    bool is_known = *taken != 0;
    uint32_t length = is_known ? *taken : 2 * capacity;
    for (uint32_t i = 0; i < ATTEMPTS; i++) {
        length = length < available ? length & ~7u : available; /* the rest of a source with its end */
        uint32_t bytes = attempt(scratch, parameter, source, length, to, capacity < length ? capacity : length - 1);
        if (bytes > 0 && (is_known || bytes > capacity / 2 || length == available || i + 1 == ATTEMPTS)) {
            *taken = length;
            return bytes;
        }
        if (bytes == 0 && length <= capacity) {
            return 0; /* nothing is gained */
        }
        if (bytes > 0) {
            length = (uint32_t)((uint64_t)length * capacity / bytes / 16 * 15);
        } else if (i == 0 && length > 4 * capacity) {
            length = 2 * capacity; /* the former estimate is not valid any more */
        } else {
            length = length / 4 * 3;
        }
        is_known = bytes == 0;
    }
    return 0;
}

uint32_t cw_codec_fill(struct cw_codec_scratch *scratch, struct cw_codec_plan plan, const void *source,
                       uint32_t available, void *to, uint32_t capacity, uint32_t *taken)
{
    available = available < CW_CHUNK_RAW_MAX ? available : CW_CHUNK_RAW_MAX;
    capacity = capacity < CW_CHUNK_MAX ? capacity : CW_CHUNK_MAX;
    if (available < CW_CHUNK_RAW_MIN || plan.codec == CW_CODEC_NONE) {
        return 0;
    }
    uint32_t length = *taken;
    uint32_t bytes = codecs[plan.codec]->fill(scratch, plan.parameter, source, available, to, capacity, &length);
    if (bytes == 0 || bytes >= length || length < CW_CHUNK_RAW_MIN) {
        return 0;
    }
    *taken = length;
    return bytes;
}

bool cw_codec_expand(struct cw_codec_scratch *scratch, struct cw_codec_plan plan, const void *chunk, uint32_t bytes,
                     void *to, uint32_t raw_bytes)
{
    return plan.codec != CW_CODEC_NONE && plan.codec < CW_CODECS && bytes <= CW_CHUNK_MAX && bytes < raw_bytes &&
           raw_bytes <= CW_CHUNK_RAW_MAX &&
           codecs[plan.codec]->expand(scratch, plan.parameter, chunk, bytes, to, raw_bytes);
}
