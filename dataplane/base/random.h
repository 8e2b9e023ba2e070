/* Random: the seeded generator of the fabric and the core: xoshiro256** (Blackman and Vigna, 2018), seeded through
 * splitmix64.
 *
 * Invariants
 *  - The same seed gives the same numbers on every machine, compiler and optimisation level.
 *  - Not for secrets: a few numbers reveal the next ones. Order of calls: cw_random_seed, then any. Owner: one
 * thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cw_random {
    uint64_t state[4];
};

/* Any seed will do, 0 too. */
void cw_random_seed(struct cw_random *random, uint64_t seed);

/* A seed for the part number `stream` of something that was seeded with `seed`: unrelated for each pair. */
uint64_t cw_random_derive(uint64_t seed, uint64_t stream);

/* Writes `length` random bytes. */
void cw_random_fill(struct cw_random *random, void *bytes, size_t length);

/* 64 random bits. */
static inline uint64_t cw_random_next(struct cw_random *random)
{
    uint64_t *state = random->state;
    uint64_t product = state[1] * 5;
    uint64_t result = ((product << 7) | (product >> 57)) * 9;
    uint64_t shifted = state[1] << 17;

    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = (state[3] << 45) | (state[3] >> 19);
    return result;
}

/* A number from 0 to `bound` - 1; `bound` > 0. The bias is below bound / 2^64. */
static inline uint64_t cw_random_below(struct cw_random *random, uint64_t bound)
{
    return (uint64_t)(((unsigned __int128)cw_random_next(random) * bound) >> 64);
}

/* A number from `low` to `high`, both included; `low` <= `high`, and not the whole range of 64 bits. */
static inline uint64_t cw_random_between(struct cw_random *random, uint64_t low, uint64_t high)
{
    return low + cw_random_below(random, high - low + 1);
}

/* A number in [0, 1). */
static inline double cw_random_fraction(struct cw_random *random)
{
    return (double)(cw_random_next(random) >> 11) * 0x1p-53;
}

/* True with the given probability; draws nothing for 0 or less. */
static inline bool cw_random_chance(struct cw_random *random, double probability)
{
    return probability > 0 && cw_random_fraction(random) < probability;
}
