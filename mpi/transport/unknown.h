/* unknown: messages of an unknown context, that is, of communicators that this process has not created yet. When it
 * creates the communicator, they are delivered as if they arrived then.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/state/comm.h"
#include "mpi/transport/message.h"

/* Keeps a message of an unknown context. Drops it if the communicator has been freed. */
void mpi_unknown_keep(uint32_t rank, enum mpi_sent kind, const void *data, uint32_t bytes);
/* Removes the SYNC or OFFER of `rank` with that number; false: there is none. */
bool mpi_unknown_recall(uint32_t rank, uint64_t context, uint32_t number);
typedef void mpi_unknown_deliver_fn(uint32_t rank, enum mpi_sent kind, const void *data, uint32_t bytes);
/* The communicator has been created: passes its messages to `deliver`, in the order of their arrival. */
void mpi_unknown_adopt(struct mpi_comm *comm, mpi_unknown_deliver_fn *deliver);
/* Frees all messages (MPI_Finalize). */
void mpi_unknown_clear(void);
