/* count_matrix: the counts between all pairs of ranks in a call in which each rank knows only its own, so that a
 * schedule can serve it.
 *
 * Purpose
 *   MPI_Alltoallv by a schedule: first the ranks exchange their counts (an all-gather, as non-blocking as the call),
 *   then each builds its schedule from all of them. A persistent call exchanges them once, with its first start: its
 *   counts are fixed. MPIX_Alltoallv_data_trans2 has phases (phases.h), and exchanges nothing.
 *
 * Invariants
 *   - Each rank sends both its send counts and its expected counts: so all find the same differences, and all calls end
 *     with the same error before data is sent.
 *   - The call uses two numbers of its communicator: one for the exchange of counts, one for the data. With phases one.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/exchange/refusal.h"
#include "mpi/collective/state/collective.h"

struct mpi_phases;

struct mpi_count_matrix {
    struct mpi_phases *phases; /* held; NULL: counts are exchanged */
    uint64_t *own;             /* bytes that this rank sends to each, then bytes that it expects of each */
    uint64_t *all;             /* the same of all ranks, by rank */
    bool is_known;             /* `counts` of the collective are */
};

/* For a call whose buffer descriptors are made: counts are exchanged with its first start. MPI_SUCCESS or the error,
 * raised. */
int mpi_count_matrix_make(struct mpi_collective *collective);
/* The same with phases, which it holds from then on. */
int mpi_count_matrix_make_with(struct mpi_collective *collective, struct mpi_phases *phases);
void mpi_count_matrix_free(struct mpi_count_matrix *count_matrix);

/* The all-gather of counts; from `own` to `all`. */
struct cw_problem_request mpi_count_matrix_exchange(const struct mpi_collective *collective);

/* Bytes that a rank of a buffer descriptor sends or expects, by rank. */
void mpi_count_matrix_row(const struct mpi_buffer *send, const struct mpi_buffer *receive, uint64_t *row);

/* Checks the rows of all ranks, and makes the matrix [from * ranks + to] of them. MPI_SUCCESS, or, at all ranks alike,
 * MPI_ERR_TRUNCATE or MPI_ERR_COUNT, not raised; `why` says which pair of ranks differs. */
int mpi_count_matrix_join(const uint64_t *all, uint32_t ranks, uint64_t *matrix, char *why, size_t why_bytes);

/* The exchange has ended: the problem gets its counts. MPI_SUCCESS, or as above with the collective's `why`. */
int mpi_count_matrix_finish(struct mpi_collective *collective);

/* Whether the call fits its phases; if not, notifies the others. MPI_SUCCESS or MPI_ERR_COUNT, not raised, with the
 * collective's `why`. */
int mpi_count_matrix_check(struct mpi_collective *collective);
