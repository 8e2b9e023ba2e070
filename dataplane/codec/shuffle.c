/* Shuffled LZ4: the first bytes of all elements, then the second ones, and so on, by LZ4. Integers are replaced by the
 * differences to their predecessors first, so that evenly rising numbers are the same byte again and again.
 *
 * The parameter: two bits of the logarithm of an element's bytes, one for the differences. */
#include <lz4.h>
#include <string.h>

#include "dataplane/codec/codecs.h"

enum { DIFFERENCES = 4 };

#define BODY static inline __attribute__((always_inline))

/* For element type `type`: transposes n elements into planes of n bytes, or back. */
#define TRANSPOSE(type, name)                                                                   \
    BODY void name##_apart(const uint8_t *source, uint32_t n, bool differences, uint8_t *to)    \
    {                                                                                           \
        type before = 0;                                                                        \
        for (uint32_t i = 0; i < n; i++) {                                                      \
            type element;                                                                       \
            memcpy(&element, source + i * sizeof(type), sizeof(type));                          \
            type value = differences ? (type)(element - before) : element;                      \
            before = element;                                                                   \
            for (uint32_t byte = 0; byte < sizeof(type); byte++) {                              \
                to[byte * n + i] = (uint8_t)(value >> (8 * byte));                              \
            }                                                                                   \
        }                                                                                       \
    }                                                                                           \
    BODY void name##_together(const uint8_t *planes, uint32_t n, bool differences, uint8_t *to) \
    {                                                                                           \
        type before = 0;                                                                        \
        for (uint32_t i = 0; i < n; i++) {                                                      \
            type value = 0;                                                                     \
            for (uint32_t byte = 0; byte < sizeof(type); byte++) {                              \
                value = (type)(value | (type)((type)planes[byte * n + i] << (8 * byte)));       \
            }                                                                                   \
            before = differences ? (type)(value + before) : value;                              \
            memcpy(to + i * sizeof(type), &before, sizeof(type));                               \
        }                                                                                       \
    }

TRANSPOSE(uint16_t, two)
TRANSPOSE(uint32_t, four)
TRANSPOSE(uint64_t, eight)

static void apart(uint8_t parameter, const uint8_t *source, uint32_t n, uint8_t *to)
{
    bool differences = (parameter & DIFFERENCES) != 0;
    switch (parameter & 3) {
    case 1:
        two_apart(source, n, differences, to);
        return;
    case 2:
        four_apart(source, n, differences, to);
        return;
    default:
        eight_apart(source, n, differences, to);
    }
}

static void together(uint8_t parameter, const uint8_t *planes, uint32_t n, uint8_t *to)
{
    bool differences = (parameter & DIFFERENCES) != 0;
    switch (parameter & 3) {
    case 1:
        two_together(planes, n, differences, to);
        return;
    case 2:
        four_together(planes, n, differences, to);
        return;
    default:
        eight_together(planes, n, differences, to);
    }
}

static uint32_t attempt(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t length,
                        uint8_t *to, uint32_t capacity)
{
    uint8_t *planes = scratch->words.bytes;
    apart(parameter, source, length >> (parameter & 3), planes);
    int bytes =
        LZ4_compress_fast_extState(scratch->lz4, (const char *)planes, (char *)to, (int)length, (int)capacity, 1);
    return bytes > 0 ? (uint32_t)bytes : 0;
}

static uint32_t fill(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t available,
                     uint8_t *to, uint32_t capacity, uint32_t *taken)
{
    available &= ~((1u << (parameter & 3)) - 1);
    return cw_codec_fill_whole(attempt, scratch, parameter, source, available, to, capacity, taken);
}

static bool expand(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *chunk, uint32_t bytes,
                   uint8_t *to, uint32_t raw_bytes)
{
    uint32_t logarithm = parameter & 3;
    if (parameter > (DIFFERENCES | 3) || logarithm == 0 || raw_bytes % (1u << logarithm) != 0) {
        return false;
    }
    uint8_t *planes = scratch->words.bytes;
    if (LZ4_decompress_safe((const char *)chunk, (char *)planes, (int)bytes, (int)raw_bytes) != (int)raw_bytes) {
        return false;
    }
    together(parameter, planes, raw_bytes >> logarithm, to);
    return true;
}

static uint8_t plan(struct cw_codec_scratch *scratch, enum cw_element element, const uint8_t *sample, uint32_t bytes)
{
    (void)scratch;
    (void)sample;
    (void)bytes;
    switch (element) {
    case CW_ELEMENT_INTEGER_2:
        return 1 | DIFFERENCES;
    case CW_ELEMENT_INTEGER_4:
        return 2 | DIFFERENCES;
    case CW_ELEMENT_INTEGER_8:
        return 3 | DIFFERENCES;
    case CW_ELEMENT_FLOAT:
        return 2;
    default:
        return 3;
    }
}

const struct cw_codec_calls cw_codec_shuffle = {
    .name = "shuffle",
    .fill = fill,
    .expand = expand,
    .plan = plan,
    .elements = ~(1u << CW_ELEMENT_BYTES),
};
