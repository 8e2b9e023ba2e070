/* LZ4, for bytes of which nothing is known. */
#include <lz4.h>
#include <stdlib.h>

#include "dataplane/codec/codecs.h"

/* LZ4 ends a block otherwise than it goes on: its last bytes are literals. A source that ends where an earlier chunk
 * had to end may take a few bytes more than that chunk, which must not keep it from being sent again. */
enum { END_MARGIN = 32 };

static uint32_t fill(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t available,
                     uint8_t *to, uint32_t capacity, uint32_t *taken)
{
    (void)parameter;
    if (capacity <= 2 * END_MARGIN) {
        return 0;
    }
    int length = (int)available;
    int bytes = LZ4_compress_destSize((const char *)source, (char *)to, &length, (int)(capacity - END_MARGIN));
    *taken = (uint32_t)length;
    if (bytes > 0 && *taken < available && available - *taken <= 2 * END_MARGIN) {
        int all = LZ4_compress_fast_extState(scratch->lz4, (const char *)source, (char *)scratch->packed,
                                             (int)available, (int)capacity, 1);
        if (all > 0) {
            *taken = available;
            bytes = all;
            __builtin_memcpy(to, scratch->packed, (size_t)all);
        }
    }
    bool is_short = *taken == available || (uint32_t)bytes + END_MARGIN < *taken; /* and stays so, with its own end */
    return bytes > 0 && is_short ? (uint32_t)bytes : 0;
}

static bool expand(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *chunk, uint32_t bytes,
                   uint8_t *to, uint32_t raw_bytes)
{
    (void)scratch;
    return parameter == 0 &&
           LZ4_decompress_safe((const char *)chunk, (char *)to, (int)bytes, (int)raw_bytes) == (int)raw_bytes;
}

const struct cw_codec_calls cw_codec_lz4 = {.name = "lz4", .fill = fill, .expand = expand, .elements = UINT32_MAX};
