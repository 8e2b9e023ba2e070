/* collective: a collective call as data (calls/collective.h has its life).
 *
 * Invariants
 *   - A communicator numbers its calls as they are made: the same at all ranks. Persistent ones keep their number and
 *     count their runs, since they may be started in any order.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "collectives/schedule/problem.h"
#include "mpi/collective/operations/op.h"
#include "mpi/collective/state/buffer.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/waiting.h"

/* Action of a call of the library itself when its collective has ended with `code` (MPI_Comm_idup), perhaps on the
 * control thread: it calls no function of the program. Frees itself; an MPI error code. */
struct mpi_after {
    int (*end)(struct mpi_after *after, int code);
};

struct mpi_host;
struct mpi_plan;
struct mpi_request;
struct mpi_run;
struct mpi_multicast_scatterv;
struct mpi_count_matrix;
struct mpi_replay_entry;
struct mpi_agreement;

/* The current step of a call (run/steps.h). */
enum mpi_step {
    MPI_STEP_DATA = 0,   /* the call itself: the last step, and mostly the only one */
    MPI_STEP_AGREE = 1,  /* on a plan from a file (run/agreement.h) */
    MPI_STEP_COUNTS = 2, /* all ranks' counts are exchanged (compiled/count_matrix.h) */
    MPI_STEP_TELL = 3,   /* the root sends its counts (run/multicast_scatterv.h) */
};

struct mpi_collective {
    struct mpi_progress_user user;
    struct mpi_collective *next_spare;
    struct mpi_request *request;
    struct mpi_comm *comm;
    const char *name; /* of the call, for users */
    uint32_t ordinal; /* of the communicator's calls, from 1 on, for users */
    uint32_t number;
    uint32_t run_count;
    enum mpi_step step;
    uint32_t step_count; /* runs of plans that it has begun (steps.h) */
    bool is_joined;      /* has a turn in each round of progress */
    bool has_rows;       /* each rank knows only its own counts: record.h */
    bool exchanges;      /* counts, in this run */
    uint32_t mode;       /* CW_RECORDING_NONBLOCKING, CW_RECORDING_PERSISTENT, or 0 */

    struct mpi_buffer send;
    struct mpi_buffer receive;
    bool send_must_pack;     /* it lies where the result will be */
    bool receive_is_dropped; /* the result is there already (MPI_Scatter in place) */
    uint8_t *send_packed;
    uint8_t *receive_packed;

    /* by a plan */
    struct cw_problem_request problem;
    uint64_t *counts;
    struct mpi_plan *plan; /* of the last run; may be gone with it */
    const struct cw_algorithm *algorithm;
    struct mpi_run *run;
    struct mpi_op *op;
    struct mpi_type *element; /* of a reduction; held */
    int reduce_error;
    uint64_t started_ns;
    uint64_t begun_ns; /* the whole call, with all steps before the plan; 0: not needed */
    char *why;         /* the ranks' calls do not match; NULL: they do, as far as is known */

    struct mpi_host *own_host; /* of a persistent call; NULL: it has none */

    bool by_pairs; /* by the schedules of the ranks' own counts (own.h) */

    /* by a plan whose counts are exchanged first, or known from phases */
    struct mpi_count_matrix *count_matrix; /* NULL: neither */

    /* by a plan with counts that the root sends first */
    struct mpi_multicast_scatterv *scatterv; /* NULL: not so */

    /* by a plan from a file (replay.h) */
    struct mpi_replay_entry *planned; /* NULL: by none */
    struct mpi_agreement *agreement;  /* the ranks have to agree on it first; NULL: they know it alike */

    struct mpi_after *after;
};

/* "call 17 (MPI_Bcast, root 0) on MPI_COMM_WORLD": which call it is, as all ranks count a communicator's calls. */
void mpi_collective_describe(const struct mpi_collective *collective, struct mpi_said *said);
