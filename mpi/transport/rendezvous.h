/* rendezvous: bytes that go from the memory of one rank to that of another in one copy, when both know where.
 *
 * Purpose
 *   An offer: the source registers its memory and tells the target, which gets the bytes and answers DONE. A put: the
 *   target has told a place, and the source puts the bytes there, with a message behind them in the same lane. Sends,
 *   schedules and multicasts that cannot go to a group use the same two.
 *
 * Invariants
 *   - The source's memory is the program's again when `done` is called, not before: what others have got from it may
 *     have been thought lost, and be sent again.
 *   - What the path would not take (CW_ERROR_AGAIN) waits here, in order, and is tried again by mpi_rendezvous_progress.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/transport/number.h"

/* What a get or put of dataplane/path/ tells when it is done; the address of this is its `operation`. */
struct mpi_operation {
    void (*done)(struct mpi_operation *operation, int status);
    void (*sent)(struct mpi_operation *operation); /* puts: the last byte has left, perhaps; NULL: nobody cares */
};

/* Memory that another rank may get from, until its answer. */
struct mpi_offered {
    struct mpi_numbered numbered;
    struct cw_registration registration;
    int code;                                            /* that it ends with */
    void (*done)(struct mpi_offered *offered, int code); /* the memory is the program's again; may free it */
};

/* Registers the memory for `rank`, with the number that offered->numbered has (`answered` is set by the owner, and calls
 * mpi_offered_end when DONE has come), and fills in what `rank` is to be told. CW_OK; CW_ERROR_LIMIT: no more memory
 * can be registered, or no more numbers are left, at a time; others: it is impossible. */
int mpi_offered_begin(struct mpi_offered *offered, uint32_t rank, const void *data, uint64_t bytes,
                      struct mpi_offer *offer);
/* The same in a call: sends the offer, too, for the place at `offset` of head->buffer. CW_OK; CW_ERROR_AGAIN: no room, or
 * too many at a time; others: it is impossible. */
int mpi_offered_send(struct mpi_offered *offered, uint32_t rank, const struct mpi_call_head *head, const void *data,
                     uint64_t bytes, uint64_t offset);
/* It is over, with an MPI error code, or taken back: `done` is called with it, at once or later. */
void mpi_offered_end(struct mpi_offered *offered, int code);

enum { MPI_NO_ANSWER = -1 };

/* Gets the bytes that were offered. */
struct mpi_get {
    struct mpi_operation operation;
    struct mpi_get *next; /* of those that the path would not take */
    struct cw_registration registration;
    uint32_t number; /* of the offer */
    uint32_t rank;   /* of the source */
    uint32_t answer; /* mpi_lane_tag of the answer */
    enum cw_element element;
    void *to;
    uint64_t bytes; /* up to the offer's */
    /* They are here, or `status` tells why not: CW_ERROR_CLOSED: the source has taken its memory back. May free it. Returns the MPI error code that the source is told, or
     * MPI_NO_ANSWER. */
    int (*done)(struct mpi_get *get, int status);
};
/* All but `operation` and `next` is set; it is kept until `done`. */
void mpi_get_start(struct mpi_get *get);

/* Takes a registration back, now, or as soon as the path lets go of the memory; then calls `then` (NULL: nobody
 * waits). */
void mpi_deregister(uint32_t rank, const struct cw_registration *registration, void (*then)(void *context),
                    void *context);

/* Goes on with what waits; returns how much it did. */
uint32_t mpi_rendezvous_progress(void);
