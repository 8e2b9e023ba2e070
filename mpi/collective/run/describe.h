/* describe: what a collective call waits for, for people (runtime/waiting.h). Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/calls/collective.h"
#include "mpi/runtime/waiting.h"

struct host_call;

/* "call 17 (MPI_Bcast, root 0) on MPI_COMM_WORLD ..." */
void mpi_describe_collective(const struct mpi_collective *collective, struct mpi_said *said);

/* One by shared memory that waits for the data of rank `owner`, or (UINT32_MAX) for all to arrive. */
void mpi_describe_host(const struct host_call *call, uint32_t owner, struct mpi_said *said);

/* What one rank tells another about its call: which one it is, its root, and a digest of how many bytes it is about,
 * where all ranks know. And that it differs, into the exchange's `why`. */
uint32_t mpi_describe_kind(const struct mpi_collective *collective);
void mpi_describe_mismatch(struct mpi_exchange *exchange, int rank, uint32_t kind);
/* The same of a call that was over here when it was heard, into `text`. */
void mpi_describe_late(const struct mpi_comm *comm, int rank, uint32_t theirs, uint32_t ours, char *text,
                       size_t text_bytes);
