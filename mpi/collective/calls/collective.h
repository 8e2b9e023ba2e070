/* collective: a collective call, from its arguments to its end (MPI 5.0, chapter 6).
 *
 * Purpose
 *   Each call is made into a `mpi_collective`: buffer descriptors (buffer.h), and either a problem for collectives/,
 *   whose plan is run (plans.h), or, where ranks know only their own counts (MPI_Gatherv, MPI_Scatterv, MPI_Alltoallv,
 *   MPI_Alltoallw), a schedule of these (run/own.h), or an exchange of the counts and then a plan
 *   (compiled/count_matrix.h), or counts that the root tells and then a plan (multicast_scatterv.h). Blocking,
 *   non-blocking and persistent calls differ only in their start and wait.
 *
 * Invariants
 *   - A communicator numbers its calls as they are made: the same at all ranks. Persistent ones keep their number and
 *     count their runs, since they may be started in any order.
 *   - Nothing is sent before the start.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"
#include "mpi/point/request.h"

/* Checks the communicator and makes an empty call. MPI_SUCCESS or the error, raised. */
int mpi_collective_make(const char *name, MPI_Comm comm, struct mpi_collective **collective);
/* Checks the root of a call that has one; it is 0 before. MPI_SUCCESS or MPI_ERR_ROOT, raised. */
int mpi_collective_set_root(struct mpi_collective *collective, int root);

/* Frees what is kept for later calls. */
void mpi_collective_spares_free(void);

/* How a call ends: with `code` if it failed so far, which frees it; else blocking, with a request that is started, or
 * with one that is persistent. */
int mpi_collective_block(int code, struct mpi_collective *collective);
int mpi_collective_return(int code, struct mpi_collective *collective, MPI_Request *request);
int mpi_collective_keep(int code, struct mpi_collective *collective, MPI_Info info, MPI_Request *request);

/* A communicator ends, and all that collective/ keeps with it. */
void mpi_collectives_abandon(struct mpi_comm *comm);

void mpi_collective_after(MPI_Request request, struct mpi_after *after);
