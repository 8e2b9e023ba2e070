/* collective: a collective call, from its arguments to its end (MPI 5.0, chapter 6).
 *
 * Purpose
 *   Each call is made into a `mpi_collective`: buffer descriptors (buffer.h), and either a problem for collectives/,
 *   whose plan is run (plans.h), or, where ranks know only their own counts (MPI_Gatherv, MPI_Scatterv, MPI_Alltoallv,
 *   MPI_Alltoallw), messages between pairs (run/pairs.h), or an exchange of the counts and then a plan
 *   (compiled/count_matrix.h), or counts that the root tells and then a plan (multicast_scatterv.h). Blocking,
 *   non-blocking and persistent calls differ only in who starts and awaits it.
 *
 * Invariants
 *   - A communicator numbers its calls as they are made: the same at all ranks. Persistent ones keep their number and
 *     count their runs, since they may be started in any order.
 *   - Nothing is sent before the start.
 *
 * Within the lock of enter.h only.
 */
#pragma once

#include "mpi/collective/compiled/plans.h"
#include "mpi/collective/operations/op.h"
#include "mpi/collective/state/buffer.h"
#include "mpi/point/request.h"
#include "mpi/runtime/progress.h"

/* What a call of the library itself does when its collective has ended with `code` (MPI_Comm_idup), perhaps on the
 * control thread: it calls no function of the program. Frees itself; an MPI error code. */
struct mpi_after {
    int (*end)(struct mpi_after *after, int code);
};

struct mpi_multicast_scatterv;
struct mpi_count_matrix;
struct mpi_replay_entry;
struct mpi_agreement;

struct mpi_collective {
    struct mpi_progress_user user;
    struct mpi_collective *next_spare;
    struct mpi_request *request;
    struct mpi_comm *comm;
    const char *name; /* of the call, for people */
    uint32_t ordinal; /* of the communicator's calls, from 1 on, for people */
    uint32_t number;
    uint32_t run_count;
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
    uint64_t begun_ns; /* the call, whatever came before the plan; 0: nobody asks */
    char *why;         /* the ranks' calls do not match; NULL: they do, as far as is known */

    /* by messages between pairs */
    bool by_pairs;
    struct mpi_request *pairs;
    int pair_count;

    /* by a plan whose counts are exchanged first, or known from phases */
    struct mpi_count_matrix *count_matrix; /* NULL: neither */

    /* by a plan whose counts the root tells first */
    struct mpi_multicast_scatterv *scatterv; /* NULL: not so */

    /* by a plan from a file (replay.h) */
    struct mpi_replay_entry *planned; /* NULL: by none */
    struct mpi_agreement *agreement;  /* the ranks have to agree on it first; NULL: they know it alike */

    struct mpi_after *after;
};

/* Checks communicator and root (-1: the call has none) and makes an empty one. MPI_SUCCESS or the error, raised. */
int mpi_collective_make(const char *name, MPI_Comm comm, int root, struct mpi_collective **collective);
/* Frees it. It is not under way. */
void mpi_collective_destroy(struct mpi_collective *collective);

/* Frees what is kept for later calls. */
void mpi_collective_spares_free(void);

/* How a call ends: with `code` if it failed so far, which frees it; else blocking, with a request that is started, or
 * with one that is persistent. */
int mpi_collective_block(int code, struct mpi_collective *collective);
int mpi_collective_give(int code, struct mpi_collective *collective, MPI_Request *request);
int mpi_collective_keep(int code, struct mpi_collective *collective, MPI_Info info, MPI_Request *request);

struct mpi_refusal;
/* Instead of starting a communicator's next call, one that always goes by messages: those of the other ranks end with
 * an error, too (refusal.h). */
void mpi_collective_refuse(struct mpi_comm *comm, const struct mpi_refusal *refusal);

/* Of the request that belongs to it (MPI_Start). */
void mpi_collective_start(struct mpi_request *request);

void mpi_collective_after(MPI_Request request, struct mpi_after *after);
