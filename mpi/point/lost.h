/* lost: ranks from which nothing comes any more. A rank is lost if it is down, or if it has given up: it has lost
 * another rank and is in MPI_Finalize. Whoever waits for it gets an error of that class, too.
 *
 * Purpose
 *   With errors that are returned (MPI_ERRORS_RETURN), a rank that has lost another one may end without the messages
 *   that a third rank waits for. It tells all ranks of its communicators when it gives up.
 *
 * Invariants
 *   - A rank gives up one communicator after the other, each in the lane of that communicator: what it has sent before
 *     comes before.
 *   - No receive, send or probe waits for a lost rank, whether it began before or after.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi/state/comm.h"

/* Whether `rank` of the communicator is lost. MPI_ANY_SOURCE: whether any of its ranks is. */
bool mpi_lost(const struct mpi_comm *comm, int rank);

/* A rank of MPI_COMM_WORLD is down (CW_ERROR_PEER_...): ends the job, or notes who is taken for dead and why, and fails
 * what needs that rank. */
void mpi_lost_down(uint32_t rank, int status);

/* If a rank is lost, or a call of this process has ended with MPI_ERR_PROC_ABORTED: tells the others that this process gives
 * up. From MPI_Finalize. */
void mpi_lost_tell(void);
/* A rank has said so: fails what needs it. NULL, or the communicator that it has given up, and its rank there: collective
 * calls are the caller's to fail. */
struct mpi_comm *mpi_lost_take(const void *data, uint32_t bytes, int *source);

void mpi_lost_forget(void);
