/* rendezvous: transfers from the memory of one rank to the memory of another rank in one copy.
 *
 * Purpose
 *   The source registers its memory and sends an offer. The target gets the bytes and sends DONE. Sends, schedules, and
 *   multicasts without a group use this. (Puts into a place that the target has announced: exchange/direct.h.)
 *
 * Invariants
 *   - The program may reuse the source's memory after `done` only: until then, the path may send bytes again that it
 *     believes to be lost.
 *   - Gets for which the path has no room (CW_ERROR_AGAIN) wait here, in order; mpi_rendezvous_progress starts them.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/transport/number.h"

/* The results of a get or put of dataplane/path/; its `operation` is the address of this. */
struct mpi_operation {
    void (*done)(struct mpi_operation *operation, int status);
    void (*sent)(struct mpi_operation *operation); /* puts: the last byte has been sent; optional; may be NULL */
};

/* Memory that another rank may get from, until its answer. */
struct mpi_offered {
    struct mpi_numbered numbered;
    struct cw_registration registration;
    int code;                                            /* MPI error code with which it ends */
    void (*done)(struct mpi_offered *offered, int code); /* the program may reuse the memory; may free `offered` */
};

/* Registers the memory for `rank`, sets a number unless it has one, and fills in `offer`, for the caller's message. The
 * caller has set numbered.answered, which must call mpi_offered_end for DONE. CW_OK; CW_ERROR_LIMIT: too many
 * registrations or numbers are in use; others: it is impossible. */
int mpi_offered_begin(struct mpi_offered *offered, uint32_t rank, const void *data, uint64_t bytes,
                      struct mpi_offer *offer);
/* Ends the offer with an MPI error code, for an answer or to withdraw it: calls `done`, now or later. */
void mpi_offered_end(struct mpi_offered *offered, int code);

/* Offers of a call that have the same owner. */
struct mpi_call_offers {
    struct mpi_call_offer_open *first; /* without an answer */
    /* An offer has ended, with MPI_SUCCESS, or since it was withdrawn: the program may reuse its memory. */
    void (*ended)(struct mpi_call_offers *offers, uint64_t context, int code);
};

/* Offers data for the place at `offset` of head->buffer; `ended` follows, with `context`. An answer with an error is
 * ignored: its sender refuses the call at all ranks, and the paths report lost ranks. CW_OK; CW_ERROR_AGAIN: no room,
 * or too many registrations are in use; others: it is impossible. */
int mpi_call_offers_send(struct mpi_call_offers *offers, uint32_t rank, const struct mpi_call_head *head,
                         const void *data, uint64_t bytes, uint64_t offset, uint64_t context);
/* Withdraws all offers without an answer: `ended` is called for each, now or later. */
void mpi_call_offers_withdraw(struct mpi_call_offers *offers);

enum { MPI_NO_ANSWER = -1 };

/* A get of offered bytes. */
struct mpi_get {
    struct mpi_operation operation;
    struct mpi_get *next; /* in the list of those that wait for room */
    struct cw_registration registration;
    uint32_t number; /* of the offer */
    uint32_t rank;   /* of the source */
    uint32_t answer; /* mpi_lane_tag of the answer */
    enum cw_element element;
    void *to;
    uint64_t bytes; /* at most those of the offer */
    /* The bytes have arrived (CW_OK), or cannot arrive. CW_ERROR_CLOSED: the source has withdrawn its offer. May free
     * `get`. Returns the MPI error code for the source, or MPI_NO_ANSWER. */
    int (*done)(struct mpi_get *get, int status);
};
/* The caller has set all but `operation` and `next`, and keeps `get` until `done`. */
void mpi_get_start(struct mpi_get *get);

/* Deregisters memory as soon as the path does not use it any more, then calls `then`, which may be NULL. */
void mpi_deregister(uint32_t rank, const struct cw_registration *registration, void (*then)(void *context),
                    void *context);

/* Starts waiting gets, and deregisters memory; returns how much it did. */
uint32_t mpi_rendezvous_progress(void);
