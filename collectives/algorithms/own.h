/* own: the schedule of a rank that knows only its own counts, for calls such as MPI_Alltoallv, in which no rank knows
 * the counts of other ranks.
 *
 * It has one eager put to each rank that receives bytes, and one wait for each rank that sends bytes, all at the same
 * time. Each rank starts with its neighbour, so that not all ranks send to the same rank first. An eager put names no
 * place at its target, since the wait of the target has it. The schedules of all ranks together are a plan like any
 * other, and pass the checker. */
#pragma once

#include "collectives/algorithms/build.h"

/* The bytes for a rank, or from a rank, in the caller's buffer. */
struct cw_own_block {
    uint64_t bytes; /* 0: nothing */
    uint64_t offset;
};

/* Has its name, for reports. It is not in the registry, since it needs no problem that all ranks know. */
extern const struct cw_algorithm cw_own_algorithm;

/* `sends` and `receives` are indexed by rank. The block of a rank for itself is copied, as far as there is room. The
 * caller must pass the schedule to cw_schedule_dispose. CW_OK, CW_ERROR_MEMORY. Any thread. */
int cw_own_build(uint32_t rank, uint32_t ranks, const struct cw_own_block *sends, const struct cw_own_block *receives,
                 struct cw_schedule *schedule);
