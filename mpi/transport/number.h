/* number: objects that need an answer from another rank, which identifies them by a number.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>

#include "mpi/transport/message.h"

/* Part of such an object: a send, a receive that has requested its data, or an offer of a collective call. */
struct mpi_numbered {
    uint32_t number; /* 0: it needs no answer */
    uint32_t rank;   /* that must answer, in MPI_COMM_WORLD */
    /* An answer has arrived: DONE, CLEAR, CANCELLED, or DATA with `bytes` of data, valid during the call. The function
     * must ignore answers of kinds that it does not expect. If the rank is lost: DONE with MPI_ERR_PROC_ABORTED. */
    void (*answered)(struct mpi_numbered *numbered, enum mpi_sent kind, const struct mpi_answer *answer,
                     const void *data, uint32_t bytes);
};

/* Sets the number; `rank` and `answered` are set. False: too many numbers are in use. */
bool mpi_number_make(struct mpi_numbered *numbered);
/* Frees the number, if it has one. */
void mpi_number_free(struct mpi_numbered *numbered);
/* Calls `answered` of the object with this number. Drops the answer if the number is old or forged, or belongs to an
 * object that needs the answer of another rank. */
void mpi_number_answer(uint32_t rank, enum mpi_sent kind, const struct mpi_answer *answer, const void *data,
                       uint32_t bytes);
/* Calls `function` for each object that needs an answer from `rank`; it may free the number. */
void mpi_numbers_each_of(uint32_t rank, void (*function)(struct mpi_numbered *numbered));
