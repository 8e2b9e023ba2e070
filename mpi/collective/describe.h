/* describe: what a collective call waits for, for people (runtime/waiting.h). Within the lock of enter.h only. */
#ifndef MPI_COLLECTIVE_DESCRIBE_H
#define MPI_COLLECTIVE_DESCRIBE_H

#include "mpi/collective/collective.h"
#include "mpi/runtime/waiting.h"

struct host_call;

/* "call 17 (MPI_Bcast, root 0) on MPI_COMM_WORLD ..." */
void mpi_describe_collective(const struct mpi_collective *collective, struct mpi_said *said);

/* One by shared memory that waits for the data of rank `owner`, or (UINT32_MAX) for all to arrive. */
void mpi_describe_host(const struct host_call *call, uint32_t owner, struct mpi_said *said);

/* What one rank says to another about its call, in 32 bits, and in words. */
uint32_t mpi_describe_kind(const struct mpi_collective *collective);
void mpi_describe_kind_text(uint32_t kind, char *text, size_t text_bytes);

#endif
