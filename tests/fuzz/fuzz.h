/* A target of hostile input: LLVMFuzzerTestOneInput, and its description for the shared driver (driver.c). A target
 * asserts with cmocka's macros. It starts afresh with each input, so that an input that fails can be repeated alone.
 *
 * An input is either a seed of the target's corpus, with damage, or any bytes: then they are the choices that the
 * target makes (struct fuzz_input). */
#pragma once

#include "dataplane/base/random.h"
#include "tests/test.h"

struct fuzz_target {
    /* Writes seed `index`, made by the real encoders, and returns its length; 0: there are no more. NULL: no corpus. */
    size_t (*seed)(uint32_t index, uint8_t *bytes);
    size_t bytes_max;             /* of an input */
    uint32_t packets;             /* of CW_TEST_PACKETS that one input counts for */
    void (*end)(uint64_t inputs); /* checks sums over many inputs; NULL: nothing to check */
};

extern const struct fuzz_target fuzz_target;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- an input as choices ---- */

struct fuzz_input {
    const uint8_t *bytes;
    size_t left;
};

/* A number below `below`, above 0, from the next 1 to 8 bytes; 0 at the end of the input. */
static inline uint64_t fuzz_below(struct fuzz_input *input, uint64_t below)
{
    uint64_t value = 0;
    for (uint64_t rest = below - 1; rest > 0 && input->left > 0; rest >>= 8, input->left--) {
        value = value << 8 | *input->bytes++;
    }
    return value % below;
}

static inline bool fuzz_chance(struct fuzz_input *input, uint32_t percent)
{
    return fuzz_below(input, 256) < percent * 256 / 100;
}

static inline uint64_t fuzz_between(struct fuzz_input *input, uint64_t low, uint64_t high)
{
    return low + fuzz_below(input, high - low + 1);
}

/* Random bytes, of which the input has the seed. */
static inline void fuzz_fill(struct fuzz_input *input, void *bytes, size_t length)
{
    struct cw_random random;
    cw_random_seed(&random, fuzz_below(input, 1 << 16));
    cw_random_fill(&random, bytes, length);
}

/* Changes 1 to 6 bytes from `from` to `to` - 1: bits, anything, and numbers at the edges. */
static inline void fuzz_change(struct fuzz_input *input, uint8_t *bytes, uint32_t from, uint32_t to)
{
    for (uint64_t i = fuzz_between(input, 1, 6); i > 0; i--) {
        uint8_t *at = &bytes[fuzz_between(input, from, to - 1)];
        const uint8_t values[] = {(uint8_t)(*at ^ 1 << fuzz_below(input, 8)), (uint8_t)fuzz_below(input, 256), 0, 0xff};
        *at = values[fuzz_below(input, sizeof(values))];
    }
}
