/* CRC-32C with carry-less vector products (VPCLMULQDQ) if the processor has them, otherwise with the library. */
#include "dataplane/wire/wire.h"

#include <isa-l/crc.h>
#include <string.h>

enum {
    WORDS_MAX = 128, /* bytes; up to this length a loop over words is faster than the library */
    SLICE = 4096,    /* bytes that stay in the first-level cache between the copy and the CRC */
};

static uint32_t checksum_library(uint32_t checksum, const uint8_t *data, size_t bytes)
{
    return ~crc32_iscsi((unsigned char *)(uintptr_t)data, (int)bytes, ~checksum);
}

static uint32_t copy_library(uint32_t checksum, uint8_t *target, const uint8_t *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += SLICE) {
        size_t slice = bytes - at < SLICE ? bytes - at : SLICE;
        memcpy(target + at, data + at, slice);
        checksum = checksum_library(checksum, target + at, slice);
    }
    return checksum;
}

#if defined(__x86_64__)

#include <immintrin.h>

enum {
    VECTOR = 64,        /* bytes; fewer are summed word by word */
    BLOCK = 4 * VECTOR, /* so that no vector waits for another's product */
};

#define ALWAYS_INLINE static inline __attribute__((always_inline))
#define WORDS_CAN     __attribute__((target("sse4.2")))
#define VECTORS_CAN   __attribute__((target("avx512f,pclmul,vpclmulqdq,sse4.2")))

/* `sum` and the result are not inverted. */
WORDS_CAN ALWAYS_INLINE uint32_t words_sum(uint32_t sum, uint8_t *target, const uint8_t *data, size_t bytes)
{
    uint64_t sum64 = sum;
    size_t at = 0;
    for (; at + sizeof(uint64_t) <= bytes; at += sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, data + at, sizeof(word));
        if (target != NULL) {
            memcpy(target + at, &word, sizeof(word));
        }
        sum64 = __builtin_ia32_crc32di(sum64, word);
    }
    for (; at < bytes; at++) {
        uint8_t byte = data[at];
        if (target != NULL) {
            target[at] = byte;
        }
        sum64 = __builtin_ia32_crc32qi((uint32_t)sum64, byte);
    }
    return (uint32_t)sum64;
}

WORDS_CAN static uint32_t checksum_words(uint32_t checksum, const uint8_t *data, size_t bytes)
{
    return ~words_sum(~checksum, NULL, data, bytes);
}

WORDS_CAN static uint32_t copy_words(uint32_t checksum, uint8_t *target, const uint8_t *data, size_t bytes)
{
    return ~words_sum(~checksum, target, data, bytes);
}

/* x^(N+32) and x^(N-32) modulo the polynomial, bits reversed: products with them move 128 bits by N bits (Gopal et al.,
 * "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", 2009). */
#define BITS_2048 0x0dcb17aa4, 0x0b9e02b86
#define BITS_1536 0x0a87ab8a8, 0x0ab7aff2a
#define BITS_1024 0x06992cea2, 0x00d3b6092
#define BITS_512  0x0740eef02, 0x09e4addf8
#define BITS_384  0x01c291d04, 0x1d82c63da
#define BITS_256  0x1384aa63a, 0x0ba4fc28e
#define BITS_128  0x0f20c0dfe, 0x14cd00bd6
/* All four parts of a vector moved by the same distance; or each moved to the position of the last part. */
#define ALL_BY(...) EACH(__VA_ARGS__, __VA_ARGS__, __VA_ARGS__, __VA_ARGS__)
#define EACH(...)   ((__m512i)(__v8di){__VA_ARGS__})
#define ONTO_LAST   EACH(BITS_384, BITS_256, BITS_128, 0, 0)

VECTORS_CAN ALWAYS_INLINE __m512i moved(__m512i vector, __m512i by, __m512i onto)
{
    enum { XOR_OF_THREE = 0x96 };
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(vector, by, 0x00),
                                     _mm512_clmulepi64_epi128(vector, by, 0x11), onto, XOR_OF_THREE);
}

/* Loads the vector at offset `at`, and stores it to the target if there is one. */
VECTORS_CAN ALWAYS_INLINE __m512i vector_load(uint8_t *target, const uint8_t *data, size_t at)
{
    __m512i vector = _mm512_loadu_si512(data + at);
    if (target != NULL) {
        _mm512_storeu_si512(target + at, vector);
    }
    return vector;
}

/* Folds all whole blocks; `a` is the first vector. *at: offset behind them. */
VECTORS_CAN ALWAYS_INLINE __m512i blocks_fold(__m512i a, uint8_t *target, const uint8_t *data, size_t bytes, size_t *at)
{
    __m512i b = vector_load(target, data, VECTOR), c = vector_load(target, data, 2 * VECTOR),
            d = vector_load(target, data, 3 * VECTOR);
    for (*at = BLOCK; bytes - *at >= BLOCK; *at += BLOCK) {
        a = moved(a, ALL_BY(BITS_2048), vector_load(target, data, *at));
        b = moved(b, ALL_BY(BITS_2048), vector_load(target, data, *at + VECTOR));
        c = moved(c, ALL_BY(BITS_2048), vector_load(target, data, *at + 2 * VECTOR));
        d = moved(d, ALL_BY(BITS_2048), vector_load(target, data, *at + 3 * VECTOR));
    }
    b = moved(b, ALL_BY(BITS_1024), d);
    return moved(a, ALL_BY(BITS_1536), moved(c, ALL_BY(BITS_512), b));
}

/* At least VECTOR bytes. */
VECTORS_CAN ALWAYS_INLINE uint32_t vectors_sum(uint32_t sum, uint8_t *target, const uint8_t *data, size_t bytes)
{
    size_t at = VECTOR;
    __m512i all = _mm512_xor_si512(vector_load(target, data, 0), _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)sum)));
    if (bytes >= BLOCK) {
        all = blocks_fold(all, target, data, bytes, &at);
    }
    for (; bytes - at >= VECTOR; at += VECTOR) {
        all = moved(all, ALL_BY(BITS_512), vector_load(target, data, at));
    }
    __m512i last = _mm512_maskz_mov_epi64(0xc0, all);
    all = moved(all, ONTO_LAST, last);
    __m256i half = _mm256_xor_si256(_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1));
    __m128i rest = _mm_xor_si128(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    uint64_t sum64 = __builtin_ia32_crc32di(0, (uint64_t)_mm_cvtsi128_si64(rest));
    sum64 = __builtin_ia32_crc32di(sum64, (uint64_t)_mm_extract_epi64(rest, 1));
    return words_sum((uint32_t)sum64, target == NULL ? NULL : target + at, data + at, bytes - at);
}

VECTORS_CAN static uint32_t checksum_vectors(uint32_t checksum, const uint8_t *data, size_t bytes)
{
    return bytes < VECTOR ? ~words_sum(~checksum, NULL, data, bytes) : ~vectors_sum(~checksum, NULL, data, bytes);
}

VECTORS_CAN static uint32_t copy_vectors(uint32_t checksum, uint8_t *target, const uint8_t *data, size_t bytes)
{
    return bytes < VECTOR ? ~words_sum(~checksum, target, data, bytes) : ~vectors_sum(~checksum, target, data, bytes);
}

static bool can(enum cw_wire_checksum_way way)
{
    switch (way) {
    case CW_WIRE_CHECKSUM_VECTORS:
        return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul") &&
               __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("sse4.2");
    case CW_WIRE_CHECKSUM_WORDS:
        return __builtin_cpu_supports("sse4.2");
    default:
        return true;
    }
}

#else

static bool can(enum cw_wire_checksum_way way)
{
    return way == CW_WIRE_CHECKSUM_LIBRARY;
}

static uint32_t checksum_words(uint32_t checksum, const uint8_t *data, size_t bytes)
{
    return checksum_library(checksum, data, bytes);
}

static uint32_t checksum_vectors(uint32_t checksum, const uint8_t *data, size_t bytes)
{
    return checksum_library(checksum, data, bytes);
}

static uint32_t copy_words(uint32_t checksum, uint8_t *target, const uint8_t *data, size_t bytes)
{
    return copy_library(checksum, target, data, bytes);
}

static uint32_t copy_vectors(uint32_t checksum, uint8_t *target, const uint8_t *data, size_t bytes)
{
    return copy_library(checksum, target, data, bytes);
}

#endif

uint32_t cw_wire_checksum(uint32_t checksum, const void *data, size_t bytes)
{
    if (can(CW_WIRE_CHECKSUM_VECTORS)) {
        return checksum_vectors(checksum, data, bytes);
    }
    return bytes <= WORDS_MAX && can(CW_WIRE_CHECKSUM_WORDS) ? checksum_words(checksum, data, bytes)
                                                             : checksum_library(checksum, data, bytes);
}

uint32_t cw_wire_checksum_copy(uint32_t checksum, void *target, const void *data, size_t bytes)
{
    if (can(CW_WIRE_CHECKSUM_VECTORS)) {
        return copy_vectors(checksum, target, data, bytes);
    }
    return bytes <= WORDS_MAX && can(CW_WIRE_CHECKSUM_WORDS) ? copy_words(checksum, target, data, bytes)
                                                             : copy_library(checksum, target, data, bytes);
}

bool cw_wire_checksum_as(enum cw_wire_checksum_way way, uint32_t *checksum, void *target, const void *data,
                         size_t bytes)
{
    static uint32_t (*const sums[])(uint32_t, const uint8_t *, size_t) = {
        [CW_WIRE_CHECKSUM_LIBRARY] = checksum_library,
        [CW_WIRE_CHECKSUM_WORDS] = checksum_words,
        [CW_WIRE_CHECKSUM_VECTORS] = checksum_vectors,
    };
    static uint32_t (*const copies[])(uint32_t, uint8_t *, const uint8_t *, size_t) = {
        [CW_WIRE_CHECKSUM_LIBRARY] = copy_library,
        [CW_WIRE_CHECKSUM_WORDS] = copy_words,
        [CW_WIRE_CHECKSUM_VECTORS] = copy_vectors,
    };
    if (can(way)) {
        *checksum = target == NULL ? sums[way](*checksum, data, bytes) : copies[way](*checksum, target, data, bytes);
    }
    return can(way);
}
