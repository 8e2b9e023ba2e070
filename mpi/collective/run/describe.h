/* describe: what a collective call waits for, for people (runtime/waiting.h). Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

/* "call 17 (MPI_Bcast, root 0) on MPI_COMM_WORLD ..." */
void mpi_describe_collective(const struct mpi_collective *collective, struct mpi_said *said);

/* What this rank tells others about its call (exchange/call_kind.h). */
uint32_t mpi_describe_kind(const struct mpi_collective *collective, bool has_levels);
