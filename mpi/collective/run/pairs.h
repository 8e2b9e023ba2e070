/* pairs: collective calls by messages between pairs of ranks, without a schedule: where each rank knows only its own
 * counts. Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

/* Adds a message to or from a rank to a call; prepared, and started with the call. Blocks of no bytes are left out.
 * MPI_SUCCESS or the error, raised. */
int mpi_collective_send(struct mpi_collective *collective, const struct mpi_buffer *descriptor, int block, int dest);
int mpi_collective_receive(struct mpi_collective *collective, const struct mpi_buffer *descriptor, int block,
                           int source);

/* The same for an all-to-all: a message to and from each rank. */
int mpi_pairs_all(struct mpi_collective *collective);

/* In place: what is sent is taken out of the way of what comes, and travels as bytes. Before mpi_pairs_start; an MPI
 * error code, not raised. */
int mpi_pairs_detach(struct mpi_collective *collective);
void mpi_pairs_start(struct mpi_collective *collective);
/* MPI_ERR_PENDING: not all are complete. */
int mpi_pairs_poll(const struct mpi_collective *collective);
