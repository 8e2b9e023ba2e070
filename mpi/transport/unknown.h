/* unknown: messages of communicators that this process has not made yet. They are kept as they came, and given to
 * whoever takes their kind when the communicator is made.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/state/comm.h"
#include "mpi/transport/message.h"

/* Keeps a message whose context no communicator has; dropped if it belonged to one that has gone. */
void mpi_unknown_keep(uint32_t rank, enum mpi_sent kind, const void *data, uint32_t bytes);
/* Takes the SYNC or OFFER that `rank` wants back; false: it is not here. */
bool mpi_unknown_recall(uint32_t rank, uint64_t context, uint32_t number);
/* A communicator has been made: gives its messages, in the order of coming. */
void mpi_unknown_adopt(struct mpi_comm *comm);
/* At the end: frees what is left. */
void mpi_unknown_forget(void);
