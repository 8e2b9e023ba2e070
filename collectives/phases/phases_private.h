/* Shared by the schedulers: the order by length, and the used phases of a rank. */
#pragma once

#include "collectives/phases/count_matrix.h"

/* Indices of the messages, longest first, in the list's order where they are equally long. NULL without memory. */
uint32_t *count_matrix_order(const struct cw_count_matrix *count_matrix);

/* For each rank a set of phases (bits), as a sender and as a receiver. */
struct phase_sets {
    uint32_t ranks;
    uint32_t words;
    uint64_t *bits; /* [side * ranks + rank][word] */
};

/* All empty, for up to `phase_count` phases. False without memory. */
bool phase_sets_create(struct phase_sets *sets, uint32_t ranks, uint32_t phase_count);
void phase_sets_dispose(struct phase_sets *sets);

static inline uint64_t *phase_set_out(const struct phase_sets *sets, uint32_t rank)
{
    return &sets->bits[(uint64_t)rank * sets->words];
}

static inline uint64_t *phase_set_in(const struct phase_sets *sets, uint32_t rank)
{
    return &sets->bits[((uint64_t)sets->ranks + rank) * sets->words];
}

static inline void phase_set_add(uint64_t *set, uint32_t phase)
{
    set[phase / 64] |= 1ull << (phase % 64);
}

/* The first phase in neither set; both end with at least one. */
uint32_t phase_sets_first_free(const struct phase_sets *sets, const uint64_t *one, const uint64_t *other);

/* Whole messages with their phases (by message) as phases; `phase_of` stays the caller's. CW_OK or CW_ERROR_MEMORY. */
int phases_collect(const struct cw_count_matrix *count_matrix, const uint32_t *phase_of, uint32_t phase_count,
                   struct cw_phases *phases);
