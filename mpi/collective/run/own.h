/* own: calls in which each rank knows only its own counts. Each rank executes the schedule of its own blocks
 * (collectives/algorithms/own.h). A block may be shorter than its target expects. A longer block is truncated, and the
 * call ends with MPI_ERR_TRUNCATE at the target, as for a point-to-point message.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

/* Starts the call with `number` in its communicator. Each buffer descriptor has a block per rank, one block for the
 * root, or none. MPI_SUCCESS or MPI_ERR_NO_MEM, not raised; then mpi_step_poll continues it. */
int mpi_own_start(struct mpi_collective *collective, uint32_t number);
