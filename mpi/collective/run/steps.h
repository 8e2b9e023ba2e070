/* steps: the execution of a call from its start to its end.
 *
 * Purpose
 *   Most calls are one run of a plan. Others have a step before it: an agreement (agreement.h), an exchange of counts
 *   (compiled/count_matrix.h), or a broadcast of the root's counts (multicast_scatterv.h). Each step is a run of a
 * plan.
 *
 * Invariants
 *   - A call has one run at a time. The first step has the number of the call, and later steps have the next numbers.
 *
 * Order of calls: mpi_steps_begin; mpi_steps_poll until it is not MPI_ERR_PENDING. Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

/* Starts the first or the next step. MPI_SUCCESS or the error, not raised. */
int mpi_steps_begin(struct mpi_collective *collective);
/* MPI_ERR_PENDING, or how the call has ended. */
int mpi_steps_poll(struct mpi_collective *collective);

/* ---- for the steps themselves ---- */

/* Runs a plan as call `number` of a communicator, its own or one of some of its ranks. MPI_SUCCESS or MPI_ERR_NO_MEM,
 * not raised. */
int mpi_step_run(struct mpi_collective *collective, struct mpi_comm *comm, struct mpi_plan *plan, uint32_t number,
                 const void *send, void *receive);
/* Continues the run. MPI_ERR_PENDING, or its result. */
int mpi_step_poll(struct mpi_collective *collective);
/* Notifies the ranks of call `number` that this rank fails. */
void mpi_step_reject(const struct mpi_collective *collective, const struct mpi_comm *comm, uint32_t number);

/* Opens both buffer descriptors in the layout of problem.h, in place or packed. MPI_SUCCESS or MPI_ERR_NO_MEM, not
 * raised. */
int mpi_buffers_open(struct mpi_collective *collective, bool send_must_pack, void **send, void **receive);
/* Unpacks the result, if the receive buffer was packed. */
void mpi_buffers_close(struct mpi_collective *collective);
