/* call_kind: what one rank tells another about its call: which one it is, and in the lower bits its root, and a digest
 * of how many bytes it is about, where all ranks know (run/describe.h makes it); in which way two of them differ, for
 * people.
 *
 * Any thread. */
#pragma once

#include "collectives/schedule/problem.h"
#include "mpi/collective/exchange/exchange.h"

enum {
    MPI_CALL_WORD_BITS = 24, /* below the kind */
    MPI_CALL_ROOT_BITS = 12, /* of these, of plain collectives; the others tell sizes */
};
#define MPI_CALL_LEVELS (1u << 31) /* its schedule may have levels: not after a call with them has failed */

/* Kinds behind those of problem.h. */
enum mpi_call_kind {
    MPI_CALL_COUNTS = CW_COLLECTIVE_COUNT, /* of an alltoallv, before its data */
    MPI_CALL_ALLTOALLV,                    /* in the place of the root a digest of its phases, or 0 */
    MPI_CALL_AGREEMENT,                    /* on which plan serves an alltoallv */
    MPI_CALL_PLANNED,                      /* alltoallv by a plan, whose number is in the place of the root */
    MPI_CALL_TELLING,                      /* of a scatterv by multicast: the root's counts */
    MPI_CALL_SCATTERV,                     /* ... and its data */
};

/* The kind of a rank's call differs from the exchange's: into its `why`. */
void mpi_call_kind_mismatch(struct mpi_exchange *exchange, int rank, uint32_t kind);
/* The same of a call that was over here when it was heard, into `text`. */
void mpi_call_kind_late(const struct mpi_comm *comm, int rank, uint32_t theirs, uint32_t ours, char *text,
                        size_t text_bytes);
