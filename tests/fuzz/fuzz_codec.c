/* Codecs on data of all kinds, lengths and places, and on chunks that are damaged. Memory is exactly as long as it is
 * said to be, so that a sanitizer sees a byte too many. CW_TEST_PACKETS (100,000) round trips, and as many damaged
 * chunks; the seed is printed with what fails. */
#include "tests/test.h"

#include <stdio.h>
#include <string.h>

#include "dataplane/base/random.h"
#include "dataplane/codec/codec.h"

static struct cw_random random_state;

static uint64_t draw(uint64_t below)
{
    return cw_random_below(&random_state, below);
}

/* ---- data ---- */

static void words_draw(uint8_t *bytes, size_t length, uint32_t word_bytes)
{
    uint64_t value = cw_random_next(&random_state);
    uint64_t slope = draw(3) == 0 ? 0 : cw_random_next(&random_state) >> draw(64);
    uint32_t noise_bits = (uint32_t)draw(65);
    uint64_t low_zeros = draw(2) == 0 ? 0 : draw(40);
    uint64_t period = 1 + draw(8);
    for (size_t i = 0; i < length; i++) {
        uint64_t at = i / word_bytes;
        uint64_t noise = noise_bits == 0 ? 0 : cw_random_next(&random_state) >> (64 - noise_bits);
        if (i % word_bytes == 0) {
            value = at % period == 0 ? value + slope + noise : value ^ noise;
            value = value >> low_zeros << low_zeros;
        }
        bytes[i] = (uint8_t)(value >> (8 * (i % word_bytes)));
    }
}

static void text_draw(uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        size_t back = 1 + draw(200);
        bytes[i] = draw(3) > 0 && i > back ? bytes[i - back] : (uint8_t)('a' + draw(16));
    }
}

/* What can be compressed, a stretch as long as a packet that cannot, and what came before: codecs that search in growing
 * steps end otherwise than they go on. */
static void stretches_draw(uint8_t *bytes, size_t length)
{
    size_t at = 0;
    while (at < length) {
        size_t left = length - at;
        size_t here = 1 + draw(left < 1500 ? left : 1500);
        uint64_t kind = draw(3);
        for (size_t i = 0; i < here; i++) {
            size_t back = 1 + at / 2;
            bytes[at + i] = kind == 0             ? (uint8_t)cw_random_next(&random_state)
                            : kind == 1 && at > 0 ? bytes[at + i - back]
                                                  : 7;
        }
        at += here;
    }
}

static void data_draw(uint8_t *bytes, size_t length)
{
    static const uint32_t widths[] = {1, 2, 4, 8};
    switch (draw(7)) {
    case 6:
        stretches_draw(bytes, length);
        return;
    case 0:
        for (size_t i = 0; i < length; i++) {
            bytes[i] = (uint8_t)cw_random_next(&random_state);
        }
        return;
    case 1:
        text_draw(bytes, length);
        return;
    case 2:
        memset(bytes, (int)draw(256), length);
        for (size_t i = 0; length > 0 && i < draw(4); i++) {
            bytes[draw(length)] ^= 1;
        }
        return;
    default:
        words_draw(bytes, length, widths[draw(4)]);
    }
}

/* ---- one chunk ---- */

struct chunk {
    struct cw_codec_plan plan;
    uint8_t *source;
    uint32_t available;
    uint32_t capacity;
    uint8_t *bytes; /* of just their length */
    uint32_t length;
    uint32_t taken;
};

static uint32_t length_draw(void)
{
    return (uint32_t)(draw(8) == 0 ? draw(1 << 17) : draw(2) == 0 ? draw(6000) : draw(300));
}

/* A place that is aligned to nothing, with nothing behind it. */
static uint8_t *place_draw(uint8_t **memory, size_t length)
{
    size_t before = draw(9);
    *memory = malloc(before + length + (before + length == 0));
    return *memory + before;
}

static bool chunk_make(struct cw_codec_scratch *scratch, struct chunk *chunk, uint8_t **memory)
{
    enum cw_codec codec = CW_CODEC_RUN + (enum cw_codec)draw(CW_CODECS - CW_CODEC_RUN);
    enum cw_element element = (enum cw_element)draw(CW_ELEMENTS);
    if (!cw_codec_takes(codec, element)) {
        return false;
    }
    chunk->available = length_draw();
    chunk->capacity = (uint32_t)(draw(2) == 0 ? 1400 : draw(10000));
    chunk->source = place_draw(memory, chunk->available);
    data_draw(chunk->source, chunk->available);
    chunk->plan = cw_codec_plan(scratch, codec, element, chunk->source, chunk->available);
    uint8_t *to = malloc(chunk->capacity + (chunk->capacity == 0));
    chunk->taken = (uint32_t)(draw(2) == 0 ? 0 : draw(20000));
    chunk->length =
        cw_codec_fill(scratch, chunk->plan, chunk->source, chunk->available, to, chunk->capacity, &chunk->taken);
    chunk->bytes = NULL;
    if (chunk->length == 0) {
        free(to);
        return false;
    }
    assert_true(chunk->length <= chunk->capacity && chunk->length < chunk->taken);
    assert_true(chunk->taken <= chunk->available && chunk->taken <= CW_CHUNK_RAW_MAX);
    chunk->bytes = malloc(chunk->length);
    memcpy(chunk->bytes, to, chunk->length);
    free(to);
    return true;
}

/* Made again from what it stands for, in whatever way the processor has: it fits, and takes all. */
static void chunk_again(struct cw_codec_scratch *scratch, const struct chunk *chunk)
{
    enum cw_codec_vectors vectors = (enum cw_codec_vectors)draw(CW_CODEC_VECTORS);
    (void)cw_codec_scratch_limit(scratch, vectors);
    uint32_t capacity =
        chunk->capacity + (uint32_t)(draw(2) == 0 ? 0 : draw(8000)); /* the path may pass more by then */
    uint8_t *to = malloc(capacity);
    uint32_t taken = chunk->taken;
    uint32_t length = cw_codec_fill(scratch, chunk->plan, chunk->source, chunk->taken, to, capacity, &taken);
    if (length == 0) {
        fail_msg("seed %llu: %s by %d of %u bytes in %u does not fit again", (unsigned long long)test_seed_now,
                 cw_codec_name(chunk->plan.codec), chunk->plan.parameter, chunk->taken, chunk->capacity);
    }
    assert_int_equal(taken, chunk->taken);
    uint8_t *memory;
    uint8_t *back = place_draw(&memory, chunk->taken);
    uint8_t *exact = malloc(length);
    memcpy(exact, to, length);
    assert_true(cw_codec_expand(scratch, chunk->plan, exact, length, back, chunk->taken));
    assert_memory_equal(back, chunk->source, chunk->taken);
    free(exact);
    free(memory);
    free(to);
}

static void chunk_expand(struct cw_codec_scratch *scratch, const struct chunk *chunk)
{
    uint8_t *memory;
    uint8_t *back = place_draw(&memory, chunk->taken);
    assert_true(cw_codec_expand(scratch, chunk->plan, chunk->bytes, chunk->length, back, chunk->taken));
    assert_memory_equal(back, chunk->source, chunk->taken);
    free(memory);
}

static void chunks_come_back(void **state)
{
    struct cw_codec_scratch *scratch = cw_codec_scratch_create();
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_PACKETS", 100000));
    uint64_t made = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        cw_random_seed(&random_state, seed);
        struct chunk chunk;
        uint8_t *memory = NULL;
        (void)cw_codec_scratch_limit(scratch, (enum cw_codec_vectors)draw(CW_CODEC_VECTORS));
        if (chunk_make(scratch, &chunk, &memory)) {
            chunk_expand(scratch, &chunk);
            chunk_again(scratch, &chunk);
            free(chunk.bytes);
            made++;
        }
        free(memory);
    }
    assert_true(!seeds.is_all || made > seeds.count / 4);
    cw_codec_scratch_destroy(scratch);
}

/* Bits turned, cut, made longer, said to be something else: an error, or bytes that may be wrong but lie where they
 * should. What follows is not touched by it: the next chunk is right. */
static void damaged_chunks_stay_inside(void **state)
{
    struct cw_codec_scratch *scratch = cw_codec_scratch_create();
    struct test_seeds seeds = test_seeds(1, test_count("CW_TEST_PACKETS", 100000));
    uint64_t refused = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        cw_random_seed(&random_state, seed ^ 0xda3a6ed);
        struct chunk chunk;
        uint8_t *memory = NULL;
        if (!chunk_make(scratch, &chunk, &memory)) {
            free(memory);
            continue;
        }
        uint32_t length = draw(2) == 0 ? chunk.length : (uint32_t)draw(chunk.length + 40);
        uint32_t taken = draw(2) == 0 ? chunk.taken : (uint32_t)draw(CW_CHUNK_RAW_MAX + 40);
        uint8_t *damaged = malloc(length + (length == 0));
        for (uint32_t i = 0; i < length; i++) {
            damaged[i] = i < chunk.length ? chunk.bytes[i] : (uint8_t)cw_random_next(&random_state);
        }
        for (uint64_t turned = draw(5); turned > 0 && length > 0; turned--) {
            damaged[draw(draw(2) == 0 ? length : length < 24 ? length : 24)] ^= (uint8_t)(1 << draw(8));
        }
        struct cw_codec_plan plan = chunk.plan;
        plan.parameter = draw(4) == 0 ? (uint8_t)cw_random_next(&random_state) : plan.parameter;
        plan.codec = draw(8) == 0 ? (uint8_t)draw(16) : plan.codec;
        uint8_t *back_memory;
        uint8_t *back = place_draw(&back_memory, taken);
        refused += !cw_codec_expand(scratch, plan, damaged, length, back, taken);
        free(back_memory);
        free(damaged);
        chunk_expand(scratch, &chunk);
        free(chunk.bytes);
        free(memory);
    }
    assert_true(!seeds.is_all || refused > seeds.count / 10);
    cw_codec_scratch_destroy(scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_come_back),
        cmocka_unit_test(damaged_chunks_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
