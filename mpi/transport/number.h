/* number: whoever waits for an answer of another rank, which names it by a number.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>

#include "mpi/transport/message.h"

/* A part of what waits: a send, a receive whose data is on its way, an offer of a collective call. */
struct mpi_numbered {
    uint32_t number; /* 0: it waits for none */
    uint32_t rank;   /* who is to answer, in MPI_COMM_WORLD */
    /* An answer has come: DONE, CLEAR, CANCELLED, or DATA with `bytes` of data, valid during the call. Any of these may
     * come, whatever was asked: what makes no sense is dropped. If the rank is gone, DONE with MPI_ERR_PROC_ABORTED. */
    void (*answered)(struct mpi_numbered *numbered, enum mpi_sent kind, const struct mpi_answer *answer,
                     const void *data, uint32_t bytes);
};

/* Gives it a number; `rank` and `answered` are set. False: too many at a time. */
bool mpi_number_make(struct mpi_numbered *numbered);
/* It waits no more. */
void mpi_number_free(struct mpi_numbered *numbered);
/* An answer of `rank` has come: given to whoever waits for it; dropped if the number is old, or forged. */
void mpi_number_answer(uint32_t rank, enum mpi_sent kind, const struct mpi_answer *answer, const void *data,
                       uint32_t bytes);
/* Calls `function` for all that wait for an answer of `rank`; it may free their numbers. */
void mpi_numbers_each_of(uint32_t rank, void (*function)(struct mpi_numbered *numbered));
