/* process: this process as a member of an MPI job, from MPI_Init to MPI_Finalize.
 *
 * Within the lock of enter.h only, but `state`. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "control/job/control.h"
#include "control/job/job.h"
#include "control/topology/clusters.h"
#include "mpi.h"

enum mpi_process_state {
    MPI_PROCESS_NEW = 0,
    MPI_PROCESS_RUNNING = 1,
    MPI_PROCESS_FINALIZED = 2,
};

struct mpi_process {
    enum mpi_process_state state;
    int thread_level; /* MPI_THREAD_SINGLE .. MPI_THREAD_MULTIPLE */
    uint32_t rank;    /* in MPI_COMM_WORLD */
    uint32_t size;
    uint64_t eager_max_bytes;      /* longer messages are got by the receiver; the least of all paths */
    uint64_t wire_eager_max_bytes; /* the same of those to other hosts */
    uint32_t spin_rounds;          /* looks of a wait before it yields */
    uint32_t crowding;             /* ranks that share a core where most do: the same at all ranks */
    struct cw_job *job;
    struct cw_paths *paths;
    struct cw_control *control;
    struct cw_clusters *clusters; /* NULL: one (init/wan_policy.h) */
    uint64_t questions_taken;     /* messages that only ask (refusal.h): their receiver has not moved on */
    /* its current wait: from then on it sends no questions, so that a second look shows progress */
    bool has_notified_launcher;
    bool returns_errors; /* in MPI_Finalize, when communicators have gone: MPI_COMM_WORLD's were not fatal */
    bool has_lost;       /* a call has ended with an error of class MPI_ERR_PROC_ABORTED */
    uint32_t
        lost_count; /* ranks that are down, and notifications of ranks that abandon a communicator (point/lost.h) */
    uint32_t failed_requests; /* so far, for another reason than a short buffer */
    uint32_t dead_rank;       /* declared failed, though its launcher has not reported it; UINT32_MAX: none */
};

extern struct mpi_process mpi_process;

/* Ends all processes of the job with this exit code. */
_Noreturn void mpi_process_abort(int code);
