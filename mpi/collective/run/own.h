/* own: calls of which each rank knows only its own counts, without a schedule that all ranks know: each rank carries
 * out the schedule of its own blocks (collectives/algorithms/own.h). Their lengths may differ from what the target
 * expects: less is right, more is cut off (MPI_ERR_TRUNCATE), as for single messages.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

/* Begins the call as number `number` of its communicator, from the buffer descriptors: with a block per rank, or one
 * for the root, or none. MPI_SUCCESS or MPI_ERR_NO_MEM, not raised; mpi_step_poll goes on. */
int mpi_own_start(struct mpi_collective *collective, uint32_t number);
