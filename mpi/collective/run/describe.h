/* describe: the waits of a collective call, for messages (runtime/waiting.h). Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

/* "call 17 (MPI_Bcast, root 0) on MPI_COMM_WORLD ..." */
void mpi_describe_collective(const struct mpi_collective *collective, struct mpi_said *said);

/* This rank's description of its call for others (exchange/call_kind.h). */
uint32_t mpi_describe_kind(const struct mpi_collective *collective, bool has_levels);
