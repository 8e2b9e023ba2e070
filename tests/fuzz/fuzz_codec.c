/* Codecs: a chunk of any data, length and place expands to the same data; a damaged chunk is refused, or expands to
 * bytes within its target. Memory is exactly as long as needed, so that a sanitizer sees a byte too many. */
#include "tests/fuzz/fuzz.h"

#include "dataplane/codec/codec.h"

enum { BYTES_MAX = 256 };

static uint64_t made, refused;
static struct cw_codec_scratch *scratch;

/* ---- data ---- */

static void words_fill(struct fuzz_input *input, struct cw_random *random, uint8_t *bytes, size_t length)
{
    uint32_t word_bytes = 1u << fuzz_below(input, 4), noise_bits = (uint32_t)fuzz_below(input, 65);
    uint64_t value = cw_random_next(random);
    uint64_t slope = fuzz_below(input, 3) == 0 ? 0 : cw_random_next(random) >> fuzz_below(input, 64);
    uint64_t low_zeros = fuzz_below(input, 2) == 0 ? 0 : fuzz_below(input, 40), period = 1 + fuzz_below(input, 8);
    for (size_t i = 0; i < length; i++) {
        uint64_t at = i / word_bytes;
        uint64_t noise = noise_bits == 0 ? 0 : cw_random_next(random) >> (64 - noise_bits);
        if (i % word_bytes == 0) {
            value = at % period == 0 ? value + slope + noise : value ^ noise;
            value = value >> low_zeros << low_zeros;
        }
        bytes[i] = (uint8_t)(value >> (8 * (i % word_bytes)));
    }
}

/* Stretches of up to `stretch` bytes: repeated data, noise, and copies of earlier data. Codecs that search in growing
 * steps end in another way than they go on. */
static void stretches_fill(struct cw_random *random, uint8_t *bytes, size_t length, size_t stretch)
{
    for (size_t at = 0, here; at < length; at += here) {
        size_t left = length - at, back = 1 + (size_t)cw_random_below(random, at / 2 + 1);
        uint64_t kind = cw_random_below(random, 3);
        here = 1 + (size_t)cw_random_below(random, left < stretch ? left : stretch);
        for (size_t i = at; i < at + here; i++) {
            bytes[i] = kind == 0 ? (uint8_t)cw_random_next(random) : kind == 1 && at > 0 ? bytes[i - back] : 7;
        }
    }
}

static void data_fill(struct fuzz_input *input, uint8_t *bytes, size_t length)
{
    struct cw_random random;
    cw_random_seed(&random, fuzz_below(input, 1 << 24));
    switch (fuzz_below(input, 6)) {
    case 0:
        cw_random_fill(&random, bytes, length);
        return;
    case 1:
    case 2:
        stretches_fill(&random, bytes, length, fuzz_chance(input, 50) ? 8 : 1500);
        return;
    default:
        words_fill(input, &random, bytes, length);
    }
}

/* ---- one chunk ---- */

struct chunk {
    struct cw_codec_plan plan;
    uint8_t *memory, *source;
    uint32_t available;
    uint32_t capacity;
    uint8_t *bytes; /* of just their length */
    uint32_t length;
    uint32_t taken;
};

/* A place that is aligned to nothing, with nothing behind it. */
static uint8_t *place_draw(struct fuzz_input *input, uint8_t **memory, size_t length)
{
    size_t before = (size_t)fuzz_below(input, 9);
    *memory = malloc(before + length + (before + length == 0));
    return *memory + before;
}

/* Fills chunk->bytes, in the way of a random kind of processor. */
static void fill(struct fuzz_input *input, struct chunk *chunk, uint32_t available)
{
    (void)cw_codec_scratch_limit(scratch, (enum cw_codec_vectors)fuzz_below(input, CW_CODEC_VECTORS));
    uint8_t *to = malloc(chunk->capacity + (chunk->capacity == 0));
    chunk->length = cw_codec_fill(scratch, chunk->plan, chunk->source, available, to, chunk->capacity, &chunk->taken);
    chunk->bytes = malloc(chunk->length + (chunk->length == 0));
    memcpy(chunk->bytes, to, chunk->length);
    free(to);
}

static void expand_check(struct fuzz_input *input, const struct chunk *chunk)
{
    uint8_t *memory, *back = place_draw(input, &memory, chunk->taken);
    assert_true(cw_codec_expand(scratch, chunk->plan, chunk->bytes, chunk->length, back, chunk->taken));
    assert_memory_equal(back, chunk->source, chunk->taken);
    free(memory);
}

static bool chunk_make(struct fuzz_input *input, struct chunk *chunk, enum cw_codec codec, enum cw_element element)
{
    static const uint32_t lengths[] = {300, 300, 300, 6000, 6000, 6000, 6000, 1 << 17};
    chunk->available = (uint32_t)fuzz_below(input, lengths[fuzz_below(input, 8)]);
    chunk->capacity = (uint32_t)(fuzz_chance(input, 50) ? 1400 : fuzz_below(input, 10000));
    chunk->source = place_draw(input, &chunk->memory, chunk->available);
    data_fill(input, chunk->source, chunk->available);
    chunk->plan = cw_codec_plan(scratch, codec, element, chunk->source, chunk->available);
    chunk->taken = (uint32_t)(fuzz_chance(input, 50) ? 0 : fuzz_below(input, 20000));
    fill(input, chunk, chunk->available);
    if (chunk->length == 0) {
        return false;
    }
    assert_true(chunk->length <= chunk->capacity && chunk->length < chunk->taken);
    assert_true(chunk->taken <= chunk->available && chunk->taken <= CW_CHUNK_RAW_MAX);
    return true;
}

/* Made again from the same data, by any kind of processor, for a packet that may be larger: it fits, and takes all. */
static void chunk_again(struct fuzz_input *input, const struct chunk *chunk)
{
    struct chunk again = *chunk;
    again.capacity += (uint32_t)(fuzz_chance(input, 50) ? 0 : fuzz_below(input, 8000));
    fill(input, &again, chunk->taken);
    assert_true(again.length > 0);
    assert_int_equal(again.taken, chunk->taken);
    expand_check(input, &again);
    free(again.bytes);
}

/* Bits flipped, cut off, made longer, expanded by another codec or to another length. */
static void damaged_expand(struct fuzz_input *input, const struct chunk *chunk)
{
    uint32_t length = fuzz_chance(input, 50) ? chunk->length : (uint32_t)fuzz_below(input, chunk->length + 40);
    uint32_t taken = fuzz_chance(input, 50) ? chunk->taken : (uint32_t)fuzz_below(input, CW_CHUNK_RAW_MAX + 40);
    uint8_t *damaged = malloc(length + (length == 0));
    fuzz_fill(input, damaged, length);
    memcpy(damaged, chunk->bytes, length < chunk->length ? length : chunk->length);
    if (length > 0 && fuzz_chance(input, 80)) {
        fuzz_change(input, damaged, 0, length < 24 || fuzz_chance(input, 50) ? length : 24);
    }
    struct cw_codec_plan plan = chunk->plan;
    plan.parameter = fuzz_chance(input, 25) ? (uint8_t)fuzz_below(input, 256) : plan.parameter;
    plan.codec = fuzz_chance(input, 12) ? (uint8_t)fuzz_below(input, 16) : plan.codec;
    uint8_t *memory, *back = place_draw(input, &memory, taken);
    refused += !cw_codec_expand(scratch, plan, damaged, length, back, taken);
    free(memory);
    free(damaged);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input input = {data, size};
    struct chunk chunk;
    enum cw_codec codec = CW_CODEC_RUN + (enum cw_codec)fuzz_below(&input, CW_CODECS - CW_CODEC_RUN);
    enum cw_element element = (enum cw_element)fuzz_below(&input, CW_ELEMENTS);
    if (!cw_codec_accepts(codec, element)) {
        return 0;
    }
    scratch = scratch == NULL ? cw_codec_scratch_create() : scratch;
    if (chunk_make(&input, &chunk, codec, element)) {
        expand_check(&input, &chunk);
        chunk_again(&input, &chunk);
        damaged_expand(&input, &chunk);
        expand_check(&input, &chunk); /* the damage has left nothing behind in the scratch */
        made++;
    }
    free(chunk.bytes);
    free(chunk.memory);
    return 0;
}

static void end(uint64_t inputs)
{
    assert_true(made > inputs / 4);
    assert_true(refused > inputs / 10);
    cw_codec_scratch_destroy(scratch);
}

const struct fuzz_target fuzz_target = {.bytes_max = BYTES_MAX, .packets = 1, .end = end};
