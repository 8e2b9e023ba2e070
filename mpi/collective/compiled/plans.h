/* plans: schedules that a communicator has used, ready to run again.
 *
 * A call asks for a problem; the answer is the same at all ranks, since nothing but the call's arguments enters. The
 * algorithm is chosen (choice.h), the schedule is built for the very problem, and both are kept: a repeated call finds
 * a run that only needs its buffers.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "collectives/algorithms/build.h"
#include "collectives/algorithms/own.h"
#include "collectives/choose/measured.h"
#include "collectives/execute/execute.h"
#include "mpi/collective/exchange/exchange.h"

enum {
    MPI_PLANS_MAX = 64, /* of a communicator; then the one used longest ago goes */
    MPI_AHEAD_MAX = 64, /* calls that a rank may be ahead of one that it sends to without being asked ... */
    MPI_AHEAD_SHORT_BYTES = 1024,
    MPI_AHEAD_SHORT_MAX = 1024, /* ... and these, if they are no longer than that */
};

struct mpi_plan {
    struct mpi_plan *next;
    enum cw_collective collective;
    uint32_t ranks;
    uint32_t root;
    uint32_t element_bytes;
    bool ordered;
    uint64_t count;
    uint64_t counts_digest[2]; /* 0: all alike */
    const struct cw_algorithm *algorithm;
    struct cw_parameters parameters;
    double predicted_ns; /* 0: nobody knows */
    enum cw_measured_origin origin;
    struct cw_schedule schedule;
    uint64_t buffer_bytes[4];
    uint32_t runs_open; /* lent */
    bool has_levels;    /* it may have: the problem named the ranks' hosts */
    /* of a plan by a rank's own counts (mpi_plan_find_own), else NULL: the reason, for reports; for each rank the op
     * that waits for its put, or UINT32_MAX */
    const char *own_origin;
    uint32_t *own_waits;
    bool is_dropped; /* to be freed with the last run */
    struct mpi_run *idle;
    bool is_throttled;          /* it is one of these: */
    struct mpi_plan *throttled; /* the same, sent when all are ready only (mpi_plan_throttle); NULL: not made */
    uint64_t calls;
    uint64_t measured_ns; /* all calls together */
};

/* Resources for a run of a plan; lent to one call at a time. */
struct mpi_run {
    struct mpi_run *next;
    struct mpi_plan *plan;
    struct mpi_exchange exchange;
    struct cw_execution *execution;
    void *scratch;
};

/* The plan for a problem, with levels if the communicator has some and they apply; made if there is none yet.
 * MPI_SUCCESS, or MPI_ERR_NO_MEM or MPI_ERR_INTERN, not raised; the reason in `error`. */
int mpi_plan_find(struct mpi_comm *comm, const struct cw_problem_request *request, bool has_levels,
                  struct mpi_plan **plan, char *error, size_t error_bytes);

/* The same for a call in which this rank knows only its own counts. */
struct mpi_own_request {
    enum cw_collective collective; /* gather, scatter, alltoall */
    uint32_t root;
    const struct cw_own_block *sends, *receives; /* by rank; one array, with `receives` after `sends` */
    bool is_throttled;                           /* puts wait until their targets are ready */
    const char *origin;                          /* the reason, for reports; a constant */
};
int mpi_plan_find_own(struct mpi_comm *comm, const struct mpi_own_request *request, struct mpi_plan **plan);

/* The plan for run `number` of a communicator's calls, the same at all ranks: `plan`, or now and then one in which
 * unsolicited sends wait until all are ready. Until that run has ended, later calls of the communicator send nothing
 * (mpi_exchange_throttle). So no rank is ahead by more than MPI_AHEAD_MAX calls, of 64 KiB each per receiver at most (8
 * KiB of pipelines, and where ranks share hosts), or MPI_AHEAD_SHORT_MAX of 1 KiB, and early messages are bounded.
 * Errors as above. */
int mpi_plan_throttle(struct mpi_comm *comm, const struct cw_problem_request *request, uint32_t number,
                      struct mpi_plan **plan);

/* A plan of the caller's own, for the schedule of this rank, which it takes. NULL: no memory; the schedule stays the
 * caller's. */
struct mpi_plan *mpi_plan_make(const struct cw_problem *problem, uint32_t rank, const struct cw_algorithm *algorithm,
                               const struct cw_parameters *parameters, const struct cw_schedule *schedule);
/* The same for this rank's part of a problem, by the algorithm of that name; puts that are not `eager` wait for their
 * receivers, however short. MPI_SUCCESS, MPI_ERR_NO_MEM or MPI_ERR_INTERN, not raised. */
int mpi_plan_make_named(struct mpi_comm *comm, const struct cw_problem_request *request, const char *name, bool eager,
                        struct mpi_plan **plan);
/* Frees such a plan, with its last run. */
void mpi_plan_drop(struct mpi_plan *plan);

/* How elements are combined (collectives/execute/execute.h). */
struct mpi_reduction {
    cw_reduce_function reduce;
    bool (*may_reduce)(void *context);
};

/* A run with these buffers (send, receive); `reduction` NULL: the call has none. NULL: no memory. */
struct mpi_run *mpi_run_acquire(struct mpi_comm *comm, struct mpi_plan *plan, const void *send, void *receive,
                                const struct mpi_reduction *reduction, void *context);
/* Gives it back; `is_whole` if it has come to its end, and may run again. */
void mpi_run_release(struct mpi_run *run, bool is_whole);

void mpi_plans_destroy(struct mpi_plan *plans);
