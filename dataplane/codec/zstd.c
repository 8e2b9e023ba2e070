/* Zstandard at its first level, for links so slow that its rate is worth its time. */
#include <zstd.h>

#include "dataplane/codec/codecs.h"

static uint32_t attempt(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t length,
                        uint8_t *to, uint32_t capacity)
{
    (void)parameter;
    scratch->zstd = scratch->zstd != NULL ? scratch->zstd : ZSTD_createCCtx();
    if (scratch->zstd == NULL) {
        return 0;
    }
    size_t bytes = ZSTD_compressCCtx(scratch->zstd, to, capacity, source, length, 1);
    return ZSTD_isError(bytes) ? 0 : (uint32_t)bytes;
}

static uint32_t fill(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t available,
                     uint8_t *to, uint32_t capacity, uint32_t *taken)
{
    return cw_codec_fill_whole(attempt, scratch, parameter, source, available, to, capacity, taken);
}

static bool expand(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *chunk, uint32_t bytes,
                   uint8_t *to, uint32_t raw_bytes)
{
    /* a frame that declares more than the room is invalid, and must not have a window made for it */
    if (parameter != 0 || ZSTD_getFrameContentSize(chunk, bytes) != raw_bytes) {
        return false;
    }
    scratch->zstd_back = scratch->zstd_back != NULL ? scratch->zstd_back : ZSTD_createDCtx();
    return scratch->zstd_back != NULL &&
           ZSTD_decompressDCtx(scratch->zstd_back, to, raw_bytes, chunk, bytes) == raw_bytes;
}

const struct cw_codec_calls cw_codec_zstd = {.name = "zstd", .fill = fill, .expand = expand, .elements = UINT32_MAX};
