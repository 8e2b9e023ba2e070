/* call_kind: the digest of a call in its messages, by which ranks detect that their calls differ: the collective, the
 * root, and a digest of the sizes that all ranks know (run/describe.h computes it); and texts for differences.
 *
 * Any thread. */
#pragma once

#include "collectives/schedule/problem.h"
#include "mpi/collective/exchange/exchange.h"

enum {
    MPI_CALL_WORD_BITS = 24, /* below the kind */
    MPI_CALL_ROOT_BITS = 12, /* of these; the others have the digest of the sizes */
};
#define MPI_CALL_LEVELS (1u << 31) /* its schedule may have levels: not after a call with them has failed */

/* Kinds after those of problem.h. */
enum mpi_call_kind {
    MPI_CALL_COUNTS = CW_COLLECTIVE_COUNT, /* of an alltoallv, before its data */
    MPI_CALL_ALLTOALLV,                    /* in the place of the root a digest of its phases, or 0 */
    MPI_CALL_AGREEMENT,                    /* on which plan serves an alltoallv */
    MPI_CALL_PLANNED,                      /* alltoallv by a plan; its number is in the place of the root */
    MPI_CALL_TELLING,                      /* of a scatterv by multicast: the root's counts */
    MPI_CALL_SCATTERV,                     /* ... and its data */
};

/* Writes to exchange->why how the call of `rank` differs. */
void mpi_call_kind_mismatch(struct mpi_exchange *exchange, int rank, uint32_t kind);
/* The same for a completed call, to `text`. */
void mpi_call_kind_late(const struct mpi_comm *comm, int rank, uint32_t theirs, uint32_t ours, char *text,
                        size_t text_bytes);
