/* phases: a schedule of an all-to-all-v for counts that are known before the call, by a handle (Karwande, Yuan and
 * Lowenthal 2003, section 4.2).
 *
 * Purpose
 *   The results of MPIX_Alltoallv_control1 and MPIX_Alltoallv_control2, which MPIX_Alltoallv_phases_save and _load keep
 *   in files (collectives/file/plan_file.h), and MPIX_Alltoallv_data_trans2 runs. mpix.h has the contracts of the
 *   calls.
 *
 * Invariants
 *   - Phases belong to one communicator: its size, its order of ranks, its process. They may outlive it, but serve no
 *     other.
 *   - Runs hold them: freed phases go with the last run.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/choice/choice.h"
#include "mpi/collective/compiled/plans.h"
#include "mpix.h"

struct mpi_phases;

/* The phases of a matrix of bytes, [from * ranks + to], by an algorithm. MPI_SUCCESS or the error, raised. */
int mpi_phases_make(struct mpi_comm *comm, const uint64_t *matrix, const struct mpi_choice *choice,
                    struct mpi_phases **phases);
/* Of a plan's file in memory; `place` names it in errors. MPI_SUCCESS or the error, raised. */
int mpi_phases_decode(struct mpi_comm *comm, const void *bytes, size_t length, const char *place,
                      struct mpi_phases **phases);
/* The plan's file; *bytes is the caller's to free. MPI_SUCCESS or the error, raised. */
int mpi_phases_encode(const struct mpi_phases *phases, void **bytes, size_t *length);

void mpi_phases_retain(struct mpi_phases *phases);
void mpi_phases_release(struct mpi_phases *phases);

const struct cw_problem *mpi_phases_problem(const struct mpi_phases *phases);
struct mpi_plan *mpi_phases_plan(const struct mpi_phases *phases);
/* Of counts, algorithm and parameters: the same at all ranks of a call. 24 bits, never 0. */
uint32_t mpi_phases_digest(const struct mpi_phases *phases);
/* Whether they were made for this communicator; MPI_SUCCESS, or MPI_ERR_COMM or MPI_ERR_ARG, raised. */
int mpi_phases_belong(const struct mpi_phases *phases, const struct mpi_comm *comm);

/* The handle: made once, by the creator of the phases; mpi_phases_drop releases them. MPI_SUCCESS or the error,
 * raised. */
int mpi_phases_return(struct mpi_phases *phases, MPI_Comm comm, MPIX_Alltoallv_phases *handle);
int mpi_phases_lookup(MPIX_Alltoallv_phases handle, MPI_Comm comm, struct mpi_phases **phases);
void mpi_phases_drop(MPIX_Alltoallv_phases handle);
