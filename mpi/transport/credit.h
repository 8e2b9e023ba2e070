/* credit: how much a rank may have another one keep of messages that nobody has asked for yet.
 *
 * Purpose
 *   An eager message that comes before its receive is kept in memory of the receiver. Each rank lends each other one
 *   MPI's window of such bytes (mpi_credit_window): a sender takes what a message costs, the receiver gives it back
 *   when the message has been matched, half a window at a time. A sender without credit offers its message without a
 *   registration (MPI_SENT_OFFER): the data follows when a receive has been found. So a receiver keeps a window per
 *   sender at most; offers are bounded by the requests that their senders keep for them.
 *
 * Invariants
 *   - Both sides count alike: a message costs its bytes and MPI_CREDIT_MESSAGE.
 *   - No message waits for credit: whatever can be matched is matched, whatever else is kept.
 *
 * Messages of collectives that come early are bounded by calls instead (collective/compiled/plans.h,
 * mpi_plan_throttle); they are only counted here. Source of the idea: credits of a window (Kung, Blackwell, Chapman
 * 1994: "Credit-based flow control for ATM networks").
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MPI_CREDIT_MESSAGE = 128, /* what a message costs beside its bytes: what is kept with them */
    /* A window is a rank's share of the total, but within these. */
    MPI_CREDIT_TOTAL = 64 << 20,
    MPI_CREDIT_WINDOW_MIN = 64 << 10,
    MPI_CREDIT_WINDOW_MAX = 16 << 20,
};

struct mpi_credit {
    uint32_t left; /* of what that rank has lent */
    uint32_t owed; /* of what this rank has lent to it, matched, and not given back yet */
};
extern struct mpi_credit *mpi_credits; /* by rank of MPI_COMM_WORLD */

/* MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_credit_start(uint32_t rank_count);
void mpi_credit_stop(void);
/* Bytes that each rank lends each other one. */
uint32_t mpi_credit_window(void);

/* Sender: takes what a message of so many bytes costs; false: there is not so much. */
static inline bool mpi_credit_take(uint32_t rank, uint64_t bytes)
{
    struct mpi_credit *credit = &mpi_credits[rank];
    if (bytes + MPI_CREDIT_MESSAGE > credit->left) {
        return false;
    }
    credit->left -= (uint32_t)bytes + MPI_CREDIT_MESSAGE;
    return true;
}
/* It has not been sent after all. */
static inline void mpi_credit_untake(uint32_t rank, uint64_t bytes)
{
    mpi_credits[rank].left += (uint32_t)bytes + MPI_CREDIT_MESSAGE;
}
/* The rank has given some back. */
void mpi_credit_get(uint32_t rank, uint32_t cost);

/* Receiver: a message of so many bytes has been matched, or has gone. */
void mpi_credit_give_back(uint32_t rank);
static inline void mpi_credit_give(uint32_t rank, uint64_t bytes)
{
    struct mpi_credit *credit = &mpi_credits[rank];
    credit->owed += (uint32_t)bytes + MPI_CREDIT_MESSAGE;
    if (credit->owed >= mpi_credit_window() / 2) {
        mpi_credit_give_back(rank);
    }
}

/* What is kept of messages that came unexpected, or early for their collective; for people. */
struct mpi_kept {
    uint64_t bytes; /* now, as messages cost */
    uint64_t bytes_max;
    uint64_t early_bytes; /* the same of collectives */
    uint64_t early_bytes_max;
    uint64_t announced; /* own sends without credit */
    uint64_t dropped;   /* of communicators that are gone */
};
extern struct mpi_kept mpi_kept;
void mpi_kept_add(uint64_t bytes);
void mpi_kept_remove(uint64_t bytes);
void mpi_kept_add_early(uint64_t bytes);
void mpi_kept_remove_early(uint64_t bytes);
/* A line of them into `text`; "" if nothing was ever kept, announced or dropped. */
void mpi_kept_describe(char *text, size_t text_bytes);
