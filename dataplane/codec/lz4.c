/* LZ4, for bytes of which nothing is known.
 *
 * LZ4_compress_destSize would fill a packet to its end, but the same bytes need not fit again: a source that ends there
 * is searched in other steps. */
#include <lz4.h>

#include "dataplane/codec/codecs.h"

static uint32_t attempt(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t length,
                        uint8_t *to, uint32_t capacity)
{
    (void)parameter;
    int bytes =
        LZ4_compress_fast_extState(scratch->lz4, (const char *)source, (char *)to, (int)length, (int)capacity, 1);
    return bytes > 0 ? (uint32_t)bytes : 0;
}

static uint32_t fill(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t available,
                     uint8_t *to, uint32_t capacity, uint32_t *taken)
{
    return cw_codec_fill_whole(attempt, scratch, parameter, source, available, to, capacity, taken);
}

static bool expand(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *chunk, uint32_t bytes,
                   uint8_t *to, uint32_t raw_bytes)
{
    (void)scratch;
    return parameter == 0 &&
           LZ4_decompress_safe((const char *)chunk, (char *)to, (int)bytes, (int)raw_bytes) == (int)raw_bytes;
}

const struct cw_codec_calls cw_codec_lz4 = {.name = "lz4", .fill = fill, .expand = expand, .elements = UINT32_MAX};
