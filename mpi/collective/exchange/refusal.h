/* refusal: a rank that cannot take part in a call that it has begun notifies all other ranks, so that their calls end
 * with an error, too.
 *
 * Purpose
 *   A rank detects wrong arguments before it sends anything, and a different call of another rank by the first message
 * of that rank (call_kind.h). If the ranks' schedules wait for each other, no message arrives. So a rank that waits
 * long sends a request to the ranks for which it waits (MPI_SENT_ASK).
 *
 * Invariants
 *   - A rank that detects a difference, or has lost a rank, fails, and notifies all other ranks once. A rank that gets
 * a request about a completed call that was different notifies the requesting rank.
 *   - A rank that is notified opens the communicator's group, if there can be one: other ranks may have opened it, and
 * a group can be closed only if all its ranks have opened it.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/exchange/exchange.h"

struct mpi_call_head;

enum mpi_refusal_reason {
    MPI_REFUSAL_SENDS = 1,     /* by the phases this rank sends `peer` `planned` bytes; its call says `given` */
    MPI_REFUSAL_EXPECTS = 2,   /* the same for bytes that it receives */
    MPI_REFUSAL_FAILED = 3,    /* no memory, or another failure of this rank alone */
    MPI_REFUSAL_ARGUMENTS = 5, /* its own arguments are wrong */
    MPI_REFUSAL_MISMATCH = 4,  /* `peer` (-1: another rank) is in another call */
    MPI_REFUSAL_LOST = 6,      /* `peer` (-1: another rank) is lost, or cannot be reached */
};

enum mpi_refusal_flags {
    MPI_REFUSAL_TO_ALL = 1, /* sent to all ranks of the communicator; set by mpi_exchange_reject */
    MPI_REFUSAL_LEVELS = 2, /* a call with levels has failed: later ones go without (host/host.h) */
};

struct mpi_refusal {
    uint16_t reason; /* enum mpi_refusal_reason */
    uint16_t flags;  /* enum mpi_refusal_flags */
    int32_t peer;    /* -1: none */
    uint64_t planned;
    uint64_t given; /* bytes; MPI_REFUSAL_FAILED: the status (status.h) */
};

/* Describes the refusal of `rank` in `text`. */
void mpi_refusal_text(const struct mpi_refusal *refusal, int rank, char *text, size_t text_bytes);

/* Notifies all other ranks, for run `run` of call `number`. */
void mpi_exchange_reject(const struct mpi_comm *comm, uint32_t number, uint32_t run, const struct mpi_refusal *refusal);

/* Replaces the start of the communicator's next call, which must be one that never uses shared memory: it fails at the
 * other ranks. */
void mpi_collective_reject(struct mpi_comm *comm, const struct mpi_refusal *refusal);

/* Notifies all other ranks, unless they know, that a call does not match that of `peer` (-1: of another rank). */
void mpi_exchange_mismatch_notify(struct mpi_exchange *exchange, int peer);
/* The same for a call that has failed because a rank is lost. Other ranks may still reach that rank, and wait for this
 * one. */
void mpi_exchange_lost_notify(struct mpi_exchange *exchange);
/* The same for a call that has failed with `status` for a local reason, such as no memory. */
void mpi_exchange_failed_notify(struct mpi_exchange *exchange, int status);
/* A message shows that its sender is in another call: fails the call, and notifies the others. */
void mpi_exchange_mismatch_receive(struct mpi_exchange *exchange, const struct mpi_call_head *head);
/* Sends MPI_SENT_ASK to the ranks for which current calls wait. Requests without room are sent by the next call. */
void mpi_exchange_compare(void);
/* Receives an MPI_SENT_ASK for a call that is not current on this rank. */
void mpi_refusal_answer(struct mpi_comm *comm, const struct mpi_call_head *head);

/* The flags for a refusal of calls with these kinds (call_kind.h), combined by OR. */
uint16_t mpi_refusal_levels(uint32_t kinds);

/* A refusal has arrived for any call of the communicator. */
void mpi_refusal_note(struct mpi_comm *comm, const void *data, uint32_t bytes);
/* A refusal has arrived for a current call, which fails. False: it is invalid. */
bool mpi_refusal_receive(struct mpi_exchange *exchange, int rank, const void *data, uint32_t bytes);
