/* LORENZO: numbers predicted by their neighbours in the chunk, as integers, so that processors agree; the differences
 * are packed in as many bits as a group of 16 or 32 needs. For doubles, floats, and integers of 4 and 8 bytes.
 *
 * Its sources: floats as integers that keep their order, and Lorenzo's predictor of integers, from ndzip and fpzip;
 * groups with one width, side by side in lanes, from SIMD-BP128 (Lemire, Boytsov); zeros at the end of all words, which
 * floats stored as doubles have, from SPDP. */
#include "dataplane/codec/lorenzo.h"

#include <string.h>

/* The parameter: which predictor, and whether words are narrow, and floats. */
enum {
    NARROW = 0x80,
    INTEGER = 0x40,
    PREDICTORS = 0x40,
    SHIFTED = 0x80,
    BITS = 0x7f,
};

static const struct cw_lorenzo predictors[PREDICTORS] = {
    {{1}},       {{2}},        {{3}},        {{4}},         {{5}},       {{6}},      {{7}},      {{8}},
    {{9}},       {{10}},       {{12}},       {{15}},        {{16}},      {{20}},     {{24}},     {{25}},
    {{1, 1}},    {{2, 2}},     {{3, 3}},     {{4, 4}},      {{5, 5}},    {{6, 6}},   {{7, 7}},   {{8, 8}},
    {{1, 1, 1}}, {{2, 2, 2}},  {{3, 3, 3}},  {{4, 4, 4}},   {{5, 5, 5}}, {{1, 5}},   {{1, 8}},   {{1, 10}},
    {{1, 12}},   {{1, 16}},    {{1, 20}},    {{1, 24}},     {{1, 32}},   {{1, 34}},  {{1, 36}},  {{1, 40}},
    {{1, 48}},   {{1, 50}},    {{1, 60}},    {{1, 64}},     {{1, 66}},   {{1, 68}},  {{1, 80}},  {{1, 100}},
    {{1, 128}},  {{1, 1, 32}}, {{1, 1, 64}}, {{5, 50}},     {{5, 60}},   {{5, 80}},  {{5, 100}}, {{5, 120}},
    {{5, 160}},  {{5, 320}},   {{5, 5, 60}}, {{5, 5, 160}}, {{2, 64}},   {{4, 128}}, {{3, 96}},  {{1, 256}},
};

#define BODY static inline __attribute__((always_inline))

/* Each loop for every processor, and for those with wider vectors. */
#if defined(__x86_64__)
#define VERSIONS(version)                                           \
    version(, plain) version(__attribute__((target("avx2"))), avx2) \
        version(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))), avx512)
#else
#define VERSIONS(version) version(, plain)
#endif

#define WORD      uint64_t
#define SIGNED    int64_t
#define WORD_BITS 64
#define LANES     8
#define FIELD     wide
#define CLZ       __builtin_clzll
#define CTZ       __builtin_ctzll
#define NAME(x)   wide_##x
#include "dataplane/codec/lorenzo_words.h"
#undef WORD
#undef SIGNED
#undef WORD_BITS
#undef LANES
#undef FIELD
#undef CLZ
#undef CTZ
#undef NAME

#define WORD      uint32_t
#define SIGNED    int32_t
#define WORD_BITS 32
#define LANES     16
#define FIELD     narrow
#define CLZ       __builtin_clz
#define CTZ       __builtin_ctz
#define NAME(x)   narrow_##x
#include "dataplane/codec/lorenzo_words.h"

static const struct cw_lorenzo_calls *calls_of(const struct cw_codec_scratch *scratch, uint8_t parameter)
{
    static const struct cw_lorenzo_calls *const calls[2][CW_CODEC_VECTORS] = {
#if defined(__x86_64__)
        {&wide_calls_plain, &wide_calls_avx2, &wide_calls_avx512},
        {&narrow_calls_plain, &narrow_calls_avx2, &narrow_calls_avx512},
#else
        {&wide_calls_plain, &wide_calls_plain, &wide_calls_plain},
        {&narrow_calls_plain, &narrow_calls_plain, &narrow_calls_plain},
#endif
    };
    return calls[(parameter & NARROW) != 0][scratch->vectors];
}

static uint32_t fill(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t available,
                     uint8_t *to, uint32_t capacity, uint32_t *taken)
{
    uint32_t word_bytes = (parameter & NARROW) != 0 ? 4 : 8;
    struct cw_lorenzo_source words = {source, available / word_bytes, (parameter & INTEGER) == 0};
    uint32_t bytes = 0;
    *taken =
        word_bytes *
        calls_of(scratch, parameter)->fill(scratch, predictors[parameter % PREDICTORS], &words, to, capacity, &bytes);
    return bytes;
}

static bool expand(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *chunk, uint32_t bytes,
                   uint8_t *to, uint32_t raw_bytes)
{
    uint32_t word_bytes = (parameter & NARROW) != 0 ? 4 : 8;
    return raw_bytes % word_bytes == 0 && calls_of(scratch, parameter)
                                              ->expand(scratch, predictors[parameter % PREDICTORS], chunk, bytes, to,
                                                       raw_bytes / word_bytes, (parameter & INTEGER) == 0);
}

static uint8_t plan(struct cw_codec_scratch *scratch, enum cw_element element, const uint8_t *sample, uint32_t bytes)
{
    bool is_float = element == CW_ELEMENT_DOUBLE || element == CW_ELEMENT_FLOAT;
    bool narrow = element == CW_ELEMENT_FLOAT || element == CW_ELEMENT_INTEGER_4;
    uint8_t kind = (uint8_t)((narrow ? NARROW : 0) | (is_float ? 0 : INTEGER));
    const struct cw_lorenzo_calls *calls = calls_of(scratch, kind);
    struct cw_lorenzo_source words = {sample, bytes / (narrow ? 4 : 8), is_float};
    calls->load(scratch, &words);
    uint32_t best = 0;
    uint32_t best_bits = UINT32_MAX;
    for (uint32_t i = 0; i < PREDICTORS; i++) {
        const uint16_t *steps = predictors[i].steps;
        if (2 * ((uint32_t)steps[0] + steps[1] + steps[2]) <= words.count) {
            uint32_t bits = calls->price(scratch, predictors[i], words.count, best_bits);
            best = bits < best_bits ? i : best;
            best_bits = bits < best_bits ? bits : best_bits;
        }
    }
    return (uint8_t)(kind | best);
}

const struct cw_codec_calls cw_codec_lorenzo = {
    .name = "lorenzo",
    .fill = fill,
    .expand = expand,
    .plan = plan,
    .elements =
        1u << CW_ELEMENT_INTEGER_4 | 1u << CW_ELEMENT_INTEGER_8 | 1u << CW_ELEMENT_FLOAT | 1u << CW_ELEMENT_DOUBLE,
};
