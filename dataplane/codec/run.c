/* Runs: eight bytes that repeat, be they zeros, one double or one character. A chunk is the eight bytes. */
#include <string.h>

#include "dataplane/codec/codecs.h"

enum { PATTERN = 8, STEP = 64 };

/* True if the bytes from `at` on repeat those eight bytes before. */
static inline bool repeats(const uint8_t *at, uint32_t bytes)
{
    return memcmp(at, at - PATTERN, bytes) == 0;
}

static uint32_t fill(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *source, uint32_t available,
                     uint8_t *to, uint32_t capacity, uint32_t *taken)
{
    (void)scratch;
    (void)parameter;
    if (capacity < PATTERN) {
        return 0;
    }
    uint32_t length = PATTERN;
    while (length + STEP <= available && repeats(source + length, STEP)) {
        length += STEP;
    }
    while (length + PATTERN <= available && repeats(source + length, PATTERN)) {
        length += PATTERN;
    }
    if (length < available && available - length < PATTERN && repeats(source + length, available - length)) {
        length = available;
    }
    memcpy(to, source, PATTERN);
    *taken = length;
    return PATTERN;
}

static bool expand(struct cw_codec_scratch *scratch, uint8_t parameter, const uint8_t *chunk, uint32_t bytes,
                   uint8_t *to, uint32_t raw_bytes)
{
    (void)scratch;
    if (bytes != PATTERN || parameter != 0) {
        return false;
    }
    uint64_t pattern;
    memcpy(&pattern, chunk, PATTERN);
    uint32_t done = 0;
    for (; done + PATTERN <= raw_bytes; done += PATTERN) {
        memcpy(to + done, &pattern, PATTERN);
    }
    memcpy(to + done, &pattern, raw_bytes - done);
    return true;
}

const struct cw_codec_calls cw_codec_run = {.name = "run", .fill = fill, .expand = expand, .elements = UINT32_MAX};
