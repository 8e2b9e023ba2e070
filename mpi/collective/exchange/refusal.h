/* refusal: a rank that has begun a call and cannot take part in it tells all others. Their calls end with an error,
 * too, and no rank waits for it.
 *
 * Purpose
 *   Some ranks check their arguments before they send anything. Others find out by the first message from a rank whose
 *   call differs: in the collective, the root, or how many bytes there are (call_kind.h). Where the ranks' schedules
 *   differ so that each waits for the other, no message comes: a rank that waits asks those that it waits for
 *   (MPI_SENT_ASK).
 *
 * Invariants
 *   - A rank that finds a difference, or has lost a rank, fails, and tells all others of the communicator once. One
 * that is asked about a call which has ended otherwise tells the one that asks.
 *   - Who hears of it opens the communicator's group, if its ranks can have one: those whose call multicasts have done
 *     so, and a group that some never open never ends.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/exchange/exchange.h"

struct mpi_call_head;

enum mpi_refusal_reason {
    MPI_REFUSAL_SENDS = 1,     /* by the phases this rank sends `peer` `planned` bytes; its call says `given` */
    MPI_REFUSAL_EXPECTS = 2,   /* the same of what it gets */
    MPI_REFUSAL_FAILED = 3,    /* no memory, or another failure of this rank alone */
    MPI_REFUSAL_ARGUMENTS = 5, /* its own are wrong */
    MPI_REFUSAL_MISMATCH = 4,  /* `peer`, or somebody else, is in another call */
    MPI_REFUSAL_LOST = 6,      /* `peer` (-1: another rank) is gone, or cannot be reached */
};

enum mpi_refusal_flags {
    MPI_REFUSAL_TO_ALL = 1, /* all ranks of the communicator are told; set by the sender's mpi_exchange_refuse */
    MPI_REFUSAL_LEVELS = 2, /* a call with levels has failed: later ones go without (host/host.h) */
};

struct mpi_refusal {
    uint16_t reason; /* enum mpi_refusal_reason */
    uint16_t flags;  /* enum mpi_refusal_flags */
    int32_t peer;    /* -1: nobody in particular */
    uint64_t planned;
    uint64_t given; /* bytes; MPI_REFUSAL_FAILED: the status (status.h) */
};

/* What `rank` refused, and why, for people. */
void mpi_refusal_text(const struct mpi_refusal *refusal, int rank, char *text, size_t text_bytes);

/* Tells all others that are, or will be, in run `run` of call `number`. */
void mpi_exchange_refuse(const struct mpi_comm *comm, uint32_t number, uint32_t run, const struct mpi_refusal *refusal);

/* Instead of starting a communicator's next call, one that always goes by messages: those of the other ranks end with
 * an error, too. */
void mpi_collective_refuse(struct mpi_comm *comm, const struct mpi_refusal *refusal);

/* A call under way does not match that of `peer` (-1: of somebody): tells all others, unless they know. */
void mpi_exchange_mismatch_tell(struct mpi_exchange *exchange, int peer);
/* A call under way has failed, since another rank is lost: tells all others, unless they know. They may still reach the
 * lost rank, and wait for this one. */
void mpi_exchange_lost_tell(struct mpi_exchange *exchange);
/* A call under way has failed with `status` for a reason of this rank alone, such as no memory: tells all others,
 * unless they know. */
void mpi_exchange_failed_tell(struct mpi_exchange *exchange, int status);
/* A message shows that its sender is in another call: this one will not send what the others may be waiting for. */
void mpi_exchange_mismatch_take(struct mpi_exchange *exchange, const struct mpi_call_head *head);
/* Asks the ranks that calls under way wait for whether theirs are the same. What has no room now is asked the next
 * time. */
void mpi_exchange_compare(void);
/* A question about a call that is not under way here. */
void mpi_refusal_answer(struct mpi_comm *comm, const struct mpi_call_head *head);

/* The flags of a refusal of a call of these kinds (call_kind.h), put together. */
uint16_t mpi_refusal_levels(uint32_t kinds);

/* One has come, for whatever call of the communicator. */
void mpi_refusal_note(struct mpi_comm *comm, const void *data, uint32_t bytes);
/* One has come for a call under way, which fails. False: it makes no sense. */
bool mpi_refusal_take(struct mpi_exchange *exchange, int rank, const void *data, uint32_t bytes);
