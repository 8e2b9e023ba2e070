/* build: from a problem, an algorithm and its parameters to schedules.
 *
 * Purpose
 *   The registry has the name, the inputs and the requirements of every algorithm of every collective. Any of them
 *   serves any number of ranks, any root, any size and, where the collective has them, any counts, unless its needs say
 *   otherwise.
 *
 * Invariants
 *   - A rank's schedule is made in time proportional to its own ops (all-to-all by phases excepted: its count matrix is
 *     global).
 *   - Ranks that build with the same arguments fit together; nothing is exchanged.
 *
 * Thread: any; the registry is constant. */
#pragma once

#include "collectives/schedule/plan.h"

/* Which of struct cw_parameters an algorithm looks at (all look at eager_max_bytes). */
enum cw_algorithm_takes {
    CW_TAKES_SEGMENT = 1,
    CW_TAKES_DEGREE = 2,
    CW_TAKES_CONCURRENCY = 4,
    CW_TAKES_SENDERS = 8,
    CW_TAKES_THRESHOLD = 16,
    CW_TAKES_INNER = 32,
};

enum cw_algorithm_needs {
    CW_NEEDS_COMMUTATIVE = 1, /* an operation whose operands may change places */
    CW_NEEDS_EQUAL = 2,       /* the same count everywhere */
    CW_NEEDS_CLUSTERS = 4,    /* makes sense with at least two clusters only */
    CW_NEEDS_COUNTS = 16,     /* pays with different counts only: with equal ones it finds the phases of `phased` */
    CW_NEEDS_ONE_HOST = 32,   /* all ranks share memory */
    CW_NEEDS_HOSTS = 64,      /* several hosts, at least one of which has more than one rank */
    CW_NEEDS_ALL = 128,       /* barriers among all ranks: it is no level of a hierarchy */
    CW_NEEDS_MULTICAST = 8,   /* a network that multicasts; elsewhere a multicast is as many puts */
};

struct cw_algorithm {
    enum cw_collective collective;
    const char *name;
    uint32_t takes;
    uint32_t needs;
    const char *summary; /* one line: how it works */
    const char *source;  /* where it comes from */
};

/* Algorithm number `index`, by collective; NULL beyond the last one. */
const struct cw_algorithm *cw_algorithm_at(uint32_t index);

/* NULL if there is none of that name. */
const struct cw_algorithm *cw_algorithm_find(enum cw_collective collective, const char *name);

/* CW_OK if the algorithm can serve the problem; else CW_ERROR_UNSUPPORTED and the reason. */
int cw_algorithm_fits(const struct cw_algorithm *algorithm, const struct cw_problem *problem, char *error,
                      size_t error_bytes);

/* The problem among the heads of the hosts (cw_problem_head), the level of `hierarchical` between them; of an
 * all-to-all all that two hosts send each other is one block. CW_OK, or as cw_problem_create with the reason. */
int cw_problem_heads(const struct cw_problem *problem, struct cw_problem **heads, char *error, size_t error_bytes);

/* Parameters for a caller without better ones (causeway plan choose). */
struct cw_parameters cw_parameters_default(void);

/* One rank's schedule; to be given to cw_schedule_dispose. CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_UNSUPPORTED,
 * CW_ERROR_LIMIT or CW_ERROR_MEMORY with the reason. */
int cw_schedule_build(const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                      const struct cw_parameters *parameters, uint32_t rank, struct cw_schedule *schedule, char *error,
                      size_t error_bytes);

/* Estimates the memory of a plan: from the schedules of a few ranks, or from the count matrix of an all-to-all. Beyond
 * CW_PLAN_BYTES_MAX the result is only a larger number. With few ranks 0. Errors as above. */
int cw_plan_estimate(const struct cw_problem *problem, const struct cw_algorithm *algorithm,
                     const struct cw_parameters *parameters, uint64_t *bytes, char *error, size_t error_bytes);

/* All ranks' schedules. The plan owns the problem from then on; after a failure it is still the caller's. */
int cw_plan_build(struct cw_problem *problem, const struct cw_algorithm *algorithm,
                  const struct cw_parameters *parameters, struct cw_plan **plan, char *error, size_t error_bytes);
