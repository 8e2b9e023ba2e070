/* steps: how a call is carried out, exchange after exchange, from its start to its end.
 *
 * Purpose
 *   Most calls are one run of a plan. Others need a word first: an agreement (agreement.h),
 *   an exchange of counts (compiled/count_matrix.h), the root's counts (multicast_scatterv.h). Each of these is a run
 *   of a plan, too, and each step begins when the one before it is over.
 *
 * Invariants
 *   - A call has one run at a time. What it sends first is numbered as the call, what follows by the next numbers.
 *
 * Order of calls: mpi_steps_begin; mpi_steps_poll until it is not MPI_ERR_PENDING. Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

/* Begins with the first step, or the next. MPI_SUCCESS or the error, not raised. */
int mpi_steps_begin(struct mpi_collective *collective);
/* MPI_ERR_PENDING, or how the call has ended. */
int mpi_steps_poll(struct mpi_collective *collective);

/* ---- for the steps themselves ---- */

/* Runs a plan as call `number` of a communicator, its own or one of some of its ranks. MPI_SUCCESS or MPI_ERR_NO_MEM,
 * not raised. */
int mpi_step_run(struct mpi_collective *collective, struct mpi_comm *comm, struct mpi_plan *plan, uint32_t number,
                 const void *send, void *receive);
/* The run's end; MPI_ERR_PENDING: not yet. */
int mpi_step_poll(struct mpi_collective *collective);
/* The others are in call `number`, or will be, and are told that this rank fails. */
void mpi_step_refuse(const struct mpi_collective *collective, const struct mpi_comm *comm, uint32_t number);

/* Both buffer descriptors as problem.h wants them: in place, or packed. MPI_SUCCESS or MPI_ERR_NO_MEM, not raised. */
int mpi_buffers_open(struct mpi_collective *collective, bool send_must_pack, void **send, void **receive);
/* What has come, to its place. */
void mpi_buffers_close(struct mpi_collective *collective);
