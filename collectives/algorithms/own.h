/* own: the schedule of a rank that knows only its own counts: of MPI_Alltoallv and its like, where no rank knows what
 * the others send each other.
 *
 * One eager put to each rank that gets something, and one wait for each that sends something, all at once; each rank
 * begins with its neighbour, so that nobody is sent to by all at once. An eager put needs no place at its target: the
 * target's wait has it. The schedules of all ranks together are a plan like any other, and pass the checker. */
#pragma once

#include "collectives/algorithms/build.h"

/* What goes to, or comes from, a rank: where in the caller's buffer. */
struct cw_own_block {
    uint64_t bytes; /* 0: nothing */
    uint64_t offset;
};

/* Its name, for people; it is not in the registry, since it needs no problem that all ranks know. */
extern const struct cw_algorithm cw_own_algorithm;

/* `sends` and `receives` by rank. What a rank has for itself is copied, as much as there is room for. To be given to
 * cw_schedule_dispose. CW_OK, CW_ERROR_MEMORY. Any thread. */
int cw_own_build(uint32_t rank, uint32_t ranks, const struct cw_own_block *sends, const struct cw_own_block *receives,
                 struct cw_schedule *schedule);
