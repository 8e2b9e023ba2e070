/* outbox: messages that the path to their rank has no room for yet (CW_ERROR_AGAIN), in order for each rank.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/transport/message.h"

struct mpi_outgoing {
    uint32_t rank;
    uint32_t lane_tag;
    const void *head; /* copied, up to MPI_HEAD_MAX bytes */
    uint32_t head_bytes;
    uint32_t bytes;
    const void *data; /* must stay until it has left */
    enum cw_element element;
    /* It has left, with CW_OK or why not; not called if mpi_outbox_send says so itself. NULL: nobody waits. */
    void (*left)(void *owner, int status);
    void *owner;
};

/* Sends at once, or keeps it. CW_OK; CW_ERROR_AGAIN: it is kept; others: it cannot be sent, or there is no memory. */
int mpi_outbox_send(const struct mpi_outgoing *message);
/* A message without data that nobody waits for: a rank that is gone needs none. CW_OK: it has been sent, or is kept. */
int mpi_tell(uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes);
/* The answer to who waits by `number` at `rank`, in the lane of `context`. */
void mpi_answer_send(uint32_t rank, uint64_t context, enum mpi_sent kind, uint32_t number, int status);

/* Tries again what waits; returns how much has left. */
uint32_t mpi_outbox_progress(void);
/* Forgets what waits for a rank that is gone. */
void mpi_outbox_fail(uint32_t rank, int status);
/* Messages that wait, in all. */
extern uint32_t mpi_outbox_waiting;

/* MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_outbox_start(uint32_t rank_count);
void mpi_outbox_stop(void);
