/* lost: ranks from which no message arrives any more. A rank is lost if it is down, or if it has abandoned the
 * communicator: it has lost another rank and is in MPI_Finalize. A call that waits for a lost rank ends with
 * MPI_ERR_PROC_ABORTED.
 *
 * Purpose
 *   With MPI_ERRORS_RETURN, a rank that has lost another rank may end and never send the messages that a third rank
 *   waits for. So it notifies all ranks of its communicators in MPI_Finalize.
 *
 * Invariants
 *   - A notification is about one communicator and travels in the lane of that communicator, behind the messages that
 *     the rank has sent there before.
 *   - No receive, send or probe waits for a lost rank, whether the call began before or after the loss.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi/state/comm.h"

/* Whether `rank` of the communicator is lost. MPI_ANY_SOURCE: whether any of its ranks is. */
bool mpi_lost(const struct mpi_comm *comm, int rank);

/* A rank of MPI_COMM_WORLD is down. `status` is CW_ERROR_PEER_RESTARTED, which ends the job, or the cause, which is
 * printed. Fails the requests that need the rank. */
void mpi_lost_down(uint32_t rank, int status);

/* Abandons a communicator that is being freed, or all of them in MPI_Finalize: notifies their ranks, if this process
 * has lost a rank or a call has ended with MPI_ERR_PROC_ABORTED. */
void mpi_lost_abandon(const struct mpi_comm *comm);
void mpi_lost_abandon_all(void);
struct mpi_numbered;
/* Fails the operation of which `numbered` is a part. */
void mpi_numbered_fail(struct mpi_numbered *numbered);

/* Takes a notification and fails the receives that need its sender. Returns the communicator, retained, and sets
 * *source to the sender's rank there, so that the caller can fail sends (mpi_sends_abandoned) and collective calls.
 * NULL: it is not known here. */
struct mpi_comm *mpi_lost_receive(const void *data, uint32_t bytes, int *source);

/* Frees all memory of this file, at the end of MPI_Finalize. */
void mpi_lost_clear(void);
