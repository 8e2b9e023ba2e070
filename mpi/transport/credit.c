#include "mpi/transport/credit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "mpi/transport/outbox.h"

struct mpi_credit *mpi_credits;
struct mpi_kept mpi_kept;

uint32_t mpi_credit_window;

static uint32_t credit_count;

int mpi_credit_start(uint32_t rank_count)
{
    mpi_credits = calloc(rank_count, sizeof(*mpi_credits));
    if (mpi_credits == NULL) {
        return MPI_ERR_NO_MEM;
    }
    credit_count = rank_count;
    mpi_credit_window = MPI_CREDIT_TOTAL / rank_count;
    mpi_credit_window = mpi_credit_window < MPI_CREDIT_WINDOW_MIN ? MPI_CREDIT_WINDOW_MIN : mpi_credit_window;
    mpi_credit_window = mpi_credit_window > MPI_CREDIT_WINDOW_MAX ? MPI_CREDIT_WINDOW_MAX : mpi_credit_window;
    for (uint32_t rank = 0; rank < rank_count; rank++) {
        mpi_credits[rank].left = mpi_credit_window;
    }
    return MPI_SUCCESS;
}

void mpi_credit_stop(void)
{
    free(mpi_credits);
    mpi_credits = NULL;
    credit_count = 0;
}

void mpi_credit_get(uint32_t rank, uint32_t cost)
{
    if (rank < credit_count &&
        cost <= mpi_credit_window - mpi_credits[rank].left) { /* no process with this library gives more */
        mpi_credits[rank].left += cost;
    }
}

void mpi_credit_return(uint32_t rank)
{
    const struct mpi_answer answer = {.number = mpi_credits[rank].owed};
    mpi_credits[rank].owed = 0;
    (void)mpi_notify(rank, cw_lane_tag(0, MPI_SENT_CREDIT), &answer, sizeof(answer));
}

static void add(uint64_t *bytes, uint64_t *most, uint64_t more)
{
    *bytes += more;
    *most = *bytes > *most ? *bytes : *most;
}

void mpi_kept_add(uint64_t bytes)
{
    add(&mpi_kept.bytes, &mpi_kept.bytes_max, bytes + MPI_CREDIT_MESSAGE);
}

void mpi_kept_remove(uint64_t bytes)
{
    mpi_kept.bytes -= bytes + MPI_CREDIT_MESSAGE;
}

void mpi_kept_add_early(uint64_t bytes)
{
    add(&mpi_kept.early_bytes, &mpi_kept.early_bytes_max, bytes);
}

void mpi_kept_remove_early(uint64_t bytes)
{
    mpi_kept.early_bytes -= bytes;
}

void mpi_kept_describe(char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (mpi_kept.bytes_max + mpi_kept.early_bytes_max + mpi_kept.announced + mpi_kept.dropped > 0) {
        snprintf(text, text_bytes,
                 "at most %" PRIu64 " bytes of unexpected messages kept at a time, limit %" PRIu32
                 " per sender; at most %" PRIu64 " bytes of early collective messages; %" PRIu64
                 " sends announced for lack of credit; %" PRIu64 " messages of freed communicators dropped",
                 mpi_kept.bytes_max, mpi_credit_window, mpi_kept.early_bytes_max, mpi_kept.announced, mpi_kept.dropped);
    }
}
