/* agreement: which plan of a bundle, if any, serves a call of which each rank knows only its own counts; before
 * anything of it is sent.
 *
 * Purpose
 *   A rank sees which plans (replay.h) its row and column fit: a bit each. The ranks gather these bits (an all-gather
 *   of 8 bytes a rank, as non-blocking as the call), and their intersection decides: one plan, or none. The exchange
 *   replaces the one of counts, which has 16 bytes per pair of ranks; calls by pairs have none otherwise.
 *
 * Invariants
 *   - All ranks come to the same end, since all have all bits. Two plans that fit all ranks' rows would be for the same
 *     counts: a bundle has no two of these.
 *   - No data of the call has been sent when a plan is found not to fit, so nothing must be undone: the call continues
 *     as without a plan.
 *   - The call uses three numbers of its communicator in any case: agreement, exchange of counts or data, data. A
 *     persistent call agrees with its first start.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/state/collective.h"

struct mpi_agreement {
    bool is_scheduled; /* without a plan counts are exchanged */
    bool is_over;
    uint32_t words; /* of a rank's bits */
    uint64_t *all;  /* of all ranks, by rank; behind them the own ones */
};

/* For a call whose buffer descriptors are made. MPI_SUCCESS or the error, raised. */
int mpi_agreement_make(struct mpi_collective *collective, bool is_scheduled);
void mpi_agreement_free(struct mpi_agreement *agreement);

/* The all-gather; from `mpi_agreement_own` to `all`. */
struct cw_problem_request mpi_agreement_exchange(const struct mpi_collective *collective);
uint64_t *mpi_agreement_own(struct mpi_agreement *agreement, uint32_t ranks);

/* It is over: the call is served by `planned`, or else made ready to be carried out without a plan. MPI_SUCCESS or the
 * error, raised. */
int mpi_agreement_finish(struct mpi_collective *collective);
