/* internal: messages of the library's own within a communicator, apart from the program's by tags below 0. Within the
 * lock of enter.h only. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "mpi/state/comm.h"

/* Tags: + 0 .. 0x3fffffff. */
#define MPI_TAG_CREATE_GROUP INT32_MIN
#define MPI_TAG_COLLECTIVE   (INT32_MIN + 0x40000000)

/* Sends `data` from rank 0 of a group, all in `comm`, to all its members, down a binomial tree. All members call it.
 * MPI_SUCCESS or the error, raised. */
int mpi_internal_bcast(struct mpi_comm *comm, const struct mpi_group *group, int tag, void *data, size_t bytes);

/* The intersection of the bits of all ranks of `comm`, known to all of them. All call it. MPI_SUCCESS or the error,
 * raised. */
int mpi_internal_agree(struct mpi_comm *comm, int tag, uint32_t *bits);

/* Waits until nothing that this process has sent or awaits in `comm` is in progress. */
void mpi_internal_drain(struct mpi_comm *comm);
