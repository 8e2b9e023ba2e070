/* The plan: the schedules of all ranks for one problem, with the name of their builder. */
#pragma once

#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule.h"

/* Parameters of an algorithm. 0 everywhere: its own defaults. */
struct cw_parameters {
    uint64_t segment_bytes; /* pipelines: bytes of a segment; rounded down to whole elements, at least one */
    uint64_t
        eager_max_bytes; /* messages up to this long go without a handshake (0: none but signals; CW_EAGER_ALL: all) */
    uint64_t multicast_eager_max_bytes; /* the same for multicasts, if that is more */
    /* the same for messages that are no segments, to other clusters or, of a problem of one cluster, to all, if that is
     * more and eager_max_bytes is not 0 */
    uint64_t single_eager_max_bytes;
    uint64_t threshold_bytes; /* phased all-to-all: shorter messages share one last phase */
    uint32_t degree;          /* d-ary tree */
    uint32_t concurrency;     /* concurrent exchange: the concurrency index C */
    uint32_t senders;         /* clusters: ranks of one cluster that send to others at the same time */
    const char *inner; /* hierarchical: the algorithm among hosts; NULL: one that always fits. Not kept in files */
};

#define CW_EAGER_ALL UINT64_MAX

struct cw_plan {
    struct cw_problem *problem; /* owned */
    char algorithm[CW_ALGORITHM_NAME_MAX];
    struct cw_parameters parameters;
    struct cw_schedule *schedules; /* problem->ranks of them */
};

/* Frees a plan and its members; NULL is allowed. */
void cw_plan_destroy(struct cw_plan *plan);

/* Frees a plan, but gives its problem back to the caller. */
struct cw_problem *cw_plan_release(struct cw_plan *plan);

/* Memory of all schedules. */
uint64_t cw_plan_memory_bytes(const struct cw_plan *plan);

/* Runs cw_schedule_validate over one rank's schedule, which must be that rank's. Errors as below. */
int cw_plan_validate_rank(const struct cw_plan *plan, uint32_t rank, char *error, size_t error_bytes);

/* Runs cw_schedule_validate over all ranks. CW_OK, or CW_ERROR_ARGUMENT or CW_ERROR_MEMORY with the reason. */
int cw_plan_validate(const struct cw_plan *plan, char *error, size_t error_bytes);
