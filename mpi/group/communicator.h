/* communicator: how communicators begin and end (MPI 5.0, 7.4).
 *
 * Contexts are numbered by rank 0 of the new communicator: its rank in MPI_COMM_WORLD and how many it has numbered. So
 * a context is never used twice, and making a communicator takes no agreement but one message from rank 0. Messages may
 * come before this process has made the communicator: they wait as messages of an unknown context (point/match.h).
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdint.h>

#include "mpi/state/comm.h"

/* The communicator of a handle, for calls: MPI_SUCCESS, or MPI_ERR_COMM, raised. */
int mpi_comm_lookup(MPI_Comm handle, struct mpi_comm **comm);
/* Raises MPI_ERR_COMM, and returns it: the handle is of no communicator. */
int mpi_comm_unknown(MPI_Comm handle);

/* A new communicator with one reference, its handle's; it holds `group` and takes error handler from `parent` (NULL:
 * MPI_ERRORS_ARE_FATAL). NULL: no memory. */
struct mpi_comm *mpi_comm_make(const struct mpi_comm *parent, struct mpi_group *group, uint64_t context);
/* The same for some ranks of `parent`, in that order, by a context that all of them know. */
struct mpi_comm *mpi_comm_among(const struct mpi_comm *parent, const int *ranks, int count, uint64_t context);

/* Releases a communicator's handle: it lives on while an operation in it is in progress. */
void mpi_comm_handle_release(struct mpi_comm *comm);

/* The next context that this process numbers, for communicators in which it is rank 0. */
uint64_t mpi_context_next(void);

/* An owner of data on communicators: it is notified when one has been made, and when it ends, in the order of the
 * table. Either may be NULL. */
struct mpi_comm_owner {
    void (*adopt)(struct mpi_comm *comm);
    void (*abandon)(struct mpi_comm *comm);
};

/* MPI_COMM_WORLD and MPI_COMM_SELF; `owners` stays the caller's. MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_comm_start(uint32_t rank, uint32_t size, const struct mpi_comm_owner *owners, uint32_t owner_count);
/* All communicators end. */
void mpi_comm_stop(void);
