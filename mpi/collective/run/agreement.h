/* agreement: which plan of a bundle, if any, serves a call of which each rank knows only its own counts; before
 * anything of it is sent.
 *
 * Purpose
 *   A rank sees which plans (replay.h) its row and column fit: a bit each. The ranks gather these bits (an all-gather
 *   of 8 bytes a rank, as non-blocking as the call), and what all have in common decides: one plan, or none. The
 *   exchange takes the place of the one of counts, which has 16 bytes per pair of ranks, and of nothing at all where
 *   calls go by pairs.
 *
 * Invariants
 *   - All ranks come to the same end, since all have all bits. Two plans that fit all ranks' rows would be for the same
 *     counts: a bundle has no two of these.
 *   - Nothing of the call's data has been sent when a plan is found not to fit, so nothing has to be taken back: the
 *     call goes on as it would have without a plan.
 *   - The call takes three numbers of its communicator, whatever it comes to: agreement, exchange of counts or data,
 *     data. A persistent call agrees with its first start.
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
