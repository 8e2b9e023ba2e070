/* credit: how many bytes of unexpected messages of one rank another rank keeps at most.
 *
 * Purpose
 *   The receiver keeps an eager message that arrives before its receive. Each rank grants each other rank a window of
 *   such bytes (mpi_credit_window). Each message costs its sender credit. The receiver returns the credit when the
 *   message has been matched, half a window at a time. A sender without credit offers its message without a
 *   registration (MPI_SENT_OFFER): the data follows when a receive has been found. So a receiver keeps at
 *   most one window per sender; offers are bounded by the requests of their senders.
 *
 * Invariants
 *   - Both sides count alike: a message costs its bytes and MPI_CREDIT_MESSAGE.
 *   - No message waits for credit: a message without credit is offered.
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

#include "mpi/state/process.h"

enum {
    MPI_CREDIT_MESSAGE = 128, /* cost of a message in addition to its bytes: the memory for its description */
    /* A window is a rank's share of the total, but within these. */
    MPI_CREDIT_TOTAL = 64 << 20,
    MPI_CREDIT_WINDOW_MIN = 64 << 10,
    MPI_CREDIT_WINDOW_MAX = 16 << 20,
};

struct mpi_credit {
    uint32_t left; /* bytes that this rank may still send to that one */
    uint32_t owed; /* bytes of matched messages of that rank for which the credit has not been returned */
};
extern struct mpi_credit *mpi_credits; /* by rank of MPI_COMM_WORLD */
extern uint32_t mpi_credit_window;     /* bytes that each rank grants each other rank */

/* MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_credit_start(uint32_t rank_count);
void mpi_credit_stop(void);

/* Whether a message of that many bytes is sent with its data, if there is credit. If not, it is offered. */
static inline bool mpi_credit_is_eager(uint32_t rank, uint64_t bytes)
{
    return bytes <= mpi_process.eager_max_bytes ||
           (bytes <= mpi_process.wire_eager_max_bytes && !cw_paths_is_here(mpi_process.paths, rank));
}
/* Sender: pays for a message of that many bytes; false: not enough credit. */
static inline bool mpi_credit_consume(uint32_t rank, uint64_t bytes)
{
    struct mpi_credit *credit = &mpi_credits[rank];
    if (bytes + MPI_CREDIT_MESSAGE > credit->left) {
        return false;
    }
    credit->left -= (uint32_t)bytes + MPI_CREDIT_MESSAGE;
    return true;
}
/* Sender: the message was not sent. */
static inline void mpi_credit_untake(uint32_t rank, uint64_t bytes)
{
    mpi_credits[rank].left += (uint32_t)bytes + MPI_CREDIT_MESSAGE;
}
/* Sender: the rank has returned credit. */
void mpi_credit_get(uint32_t rank, uint32_t cost);

/* Receiver: a message of that many bytes has been matched or dropped. */
void mpi_credit_return(uint32_t rank);
static inline void mpi_credit_release(uint32_t rank, uint64_t bytes)
{
    struct mpi_credit *credit = &mpi_credits[rank];
    credit->owed += (uint32_t)bytes + MPI_CREDIT_MESSAGE;
    if (credit->owed >= mpi_credit_window / 2) {
        mpi_credit_return(rank);
    }
}

/* Statistics of unexpected messages, and of messages that arrived before their call. */
struct mpi_kept {
    uint64_t bytes; /* now, as messages cost */
    uint64_t bytes_max;
    uint64_t early_bytes; /* the same for collective calls */
    uint64_t early_bytes_max;
    uint64_t announced; /* number of own sends without credit */
    uint64_t dropped;   /* number of messages of freed communicators */
};
extern struct mpi_kept mpi_kept;
void mpi_kept_add(uint64_t bytes);
void mpi_kept_remove(uint64_t bytes);
void mpi_kept_add_early(uint64_t bytes);
void mpi_kept_remove_early(uint64_t bytes);
/* Writes them to `text` as one line; "" if all are 0. */
void mpi_kept_describe(char *text, size_t text_bytes);
