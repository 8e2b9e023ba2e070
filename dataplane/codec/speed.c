#include "dataplane/codec/speed.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/random.h"
#include "dataplane/base/virtual.h"
#include "dataplane/status.h"

enum {
    FIELD_BYTES = 32 << 10,
    CHUNK_BYTES = 1400,
    CHUNKS_MAX = 4 * FIELD_BYTES / CHUNK_BYTES,
    SHORT_BYTES = 256,
    ROUNDS = 4,
};

/* One field, and its compressed forms. */
struct bench {
    struct cw_codec_scratch *scratch;
    struct cw_codec_plan plan;
    uint8_t field[FIELD_BYTES];
    uint8_t back[FIELD_BYTES];
    uint8_t chunks[CHUNKS_MAX][CHUNK_BYTES];
    uint32_t bytes[CHUNKS_MAX];
    uint32_t taken[CHUNKS_MAX];
    uint32_t count;
};

static void field_make(struct bench *bench, bool numbers)
{
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (uint32_t i = 0; i + 8 <= FIELD_BYTES; i += 8) {
        double number = 3 + sin(i * 1e-3) + 1e-7 * cw_random_fraction(&random);
        memcpy(bench->field + i, &number, 8);
    }
    static const char *const words[] = {"put ", "notify ", "region ", "the ", "of ", "lane\n", "and ", "peer "};
    for (uint32_t at = 0; !numbers && at < FIELD_BYTES;) {
        const char *word = words[cw_random_below(&random, 8)];
        for (uint32_t i = 0; word[i] != 0 && at < FIELD_BYTES; i++) {
            bench->field[at++] = (uint8_t)word[i];
        }
    }
}

static uint64_t fill(struct bench *bench)
{
    uint64_t begin_ns = cw_virtual_cpu_ns();
    uint32_t at = 0;
    uint32_t likely = 0;
    bench->count = 0;
    while (at < FIELD_BYTES && bench->count < CHUNKS_MAX) {
        uint32_t taken = likely;
        uint32_t bytes = cw_codec_fill(bench->scratch, bench->plan, bench->field + at, FIELD_BYTES - at,
                                       bench->chunks[bench->count], CHUNK_BYTES, &taken);
        if (bytes == 0) {
            break; /* the rest is too short */
        }
        bench->bytes[bench->count] = bytes;
        bench->taken[bench->count++] = taken;
        likely = (uint32_t)((uint64_t)taken * (CHUNK_BYTES - CHUNK_BYTES / 32) / bytes);
        at += taken;
    }
    return cw_virtual_cpu_ns() - begin_ns;
}

static uint64_t expand(struct bench *bench, uint32_t *expanded)
{
    uint64_t begin_ns = cw_virtual_cpu_ns();
    *expanded = 0;
    for (uint32_t i = 0; i < bench->count; i++) {
        (void)cw_codec_expand(bench->scratch, bench->plan, bench->chunks[i], bench->bytes[i], bench->back + *expanded,
                              bench->taken[i]);
        *expanded += bench->taken[i];
    }
    return cw_virtual_cpu_ns() - begin_ns;
}

/* The cost of a chunk in addition to its bytes: measured with short ones. */
static float fixed(struct bench *bench, const struct cw_codec_speed *speed)
{
    float best = 1e9f;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint64_t begin_ns = cw_virtual_cpu_ns();
        uint32_t count = 0;
        for (uint32_t at = 0; at + SHORT_BYTES <= FIELD_BYTES / 4; at += SHORT_BYTES) {
            uint32_t taken = SHORT_BYTES;
            uint32_t bytes = cw_codec_fill(bench->scratch, bench->plan, bench->field + at, SHORT_BYTES,
                                           bench->chunks[0], CHUNK_BYTES, &taken);
            count +=
                bytes > 0 && cw_codec_expand(bench->scratch, bench->plan, bench->chunks[0], bytes, bench->back, taken);
        }
        float ns = count == 0 ? 0 : (float)(cw_virtual_cpu_ns() - begin_ns) / (float)count;
        best = ns < best ? ns : best;
    }
    float bytes_ns = SHORT_BYTES * (speed->fill_ns + speed->expand_ns);
    return best > bytes_ns ? best - bytes_ns : 0;
}

static void measure(struct bench *bench, enum cw_codec codec, struct cw_codec_speed *speed)
{
    bool numbers = codec != CW_CODEC_LZ4 && codec != CW_CODEC_ZSTD;
    enum cw_element element = numbers ? CW_ELEMENT_DOUBLE : CW_ELEMENT_BYTES;
    field_make(bench, numbers);
    bench->plan = cw_codec_plan(bench->scratch, codec, element, bench->field, FIELD_BYTES);
    float best[2] = {1e9f, 1e9f};
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t bytes;
        float fill_ns = (float)fill(bench);
        float expand_ns = (float)expand(bench, &bytes);
        if (bytes == 0) {
            break; /* codecs that find no run here */
        }
        best[0] = fill_ns / (float)bytes < best[0] ? fill_ns / (float)bytes : best[0];
        best[1] = expand_ns / (float)bytes < best[1] ? expand_ns / (float)bytes : best[1];
    }
    *speed = (struct cw_codec_speed){.fill_ns = best[0], .expand_ns = best[1]};
    speed->fixed_ns = fixed(bench, speed);
}

int cw_codec_measure(struct cw_codec_speed *speeds)
{
    struct bench *bench = malloc(sizeof(*bench));
    struct cw_codec_scratch *scratch = cw_codec_scratch_create();
    if (bench == NULL || scratch == NULL) {
        free(bench);
        cw_codec_scratch_destroy(scratch);
        return CW_ERROR_MEMORY;
    }
    bench->scratch = scratch;
    memset(speeds, 0, CW_CODECS * sizeof(*speeds));
    for (enum cw_codec codec = CW_CODEC_LORENZO; codec < CW_CODECS; codec++) {
        measure(bench, codec, &speeds[codec]);
    }
    cw_codec_scratch_destroy(scratch);
    free(bench);
    return CW_OK;
}
