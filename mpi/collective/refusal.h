/* refusal: a rank that has begun a call and cannot take part in it says so to all others, so that their calls end with an error, too, and nobody waits for it.
 *
 * For calls by exchanged counts, by phases and in groups for one-to-many, whose ranks check their counts before they send anything. Within the lock of enter.h only.
 */
#ifndef MPI_REFUSAL_H
#define MPI_REFUSAL_H

#include "mpi/collective/transport.h"

enum mpi_refusal_reason {
    MPI_REFUSAL_SENDS = 1,     /* by the phases this rank sends `peer` `planned` bytes; its call says `given` */
    MPI_REFUSAL_EXPECTS = 2,   /* the same of what it gets */
    MPI_REFUSAL_FAILED = 3,    /* no memory */
    MPI_REFUSAL_ARGUMENTS = 5, /* its own are wrong */
    MPI_REFUSAL_MISMATCH = 4,  /* `peer`, or somebody else, is in another call */
};

struct mpi_refusal {
    uint32_t reason; /* enum mpi_refusal_reason */
    int32_t peer;    /* -1: nobody in particular */
    uint64_t planned;
    uint64_t given;
};

/* What `rank` refused, and why, for people. */
void mpi_refusal_text(const struct mpi_refusal *refusal, int rank, char *text, size_t text_bytes);

/* Tells all others that are, or will be, in run `run` of call `number`. */
void mpi_exchange_refuse(const struct mpi_comm *comm, uint32_t number, uint32_t run, const struct mpi_refusal *refusal);

/* One has come: the call fails. False: it makes no sense. */
bool mpi_refusal_take(struct mpi_exchange *exchange, int rank, const void *data, uint32_t bytes);

#endif
