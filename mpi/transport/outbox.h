/* outbox: messages for which the path to their rank has no room yet (CW_ERROR_AGAIN), in order for each rank.
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
    const void *data; /* must not change until it has been sent */
    enum cw_element element;
    /* It has been sent (CW_OK), or cannot be sent. Not called if mpi_outbox_send returns that result. May be NULL. */
    void (*left)(void *owner, int status);
    void *owner;
};

/* Sends the message now, or keeps it. CW_OK; CW_ERROR_AGAIN: it is kept; others: it cannot be sent, or no memory. */
int mpi_outbox_send(const struct mpi_outgoing *message);
/* Sends a message without data. CW_OK: it has been sent, or is kept. Callers ignore errors if a lost rank needs no such
 * message. */
int mpi_notify(uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes);
/* Sends an answer to the object with `number` at `rank`, in the lane of `context`. */
void mpi_answer_send(uint32_t rank, uint64_t context, enum mpi_sent kind, uint32_t number, int status);

/* Sends kept messages, as far as there is room; returns their number. */
uint32_t mpi_outbox_progress(void);
/* Removes the messages to a lost rank. */
void mpi_outbox_fail(uint32_t rank, int status);
/* Number of kept messages. */
extern uint32_t mpi_outbox_waiting;

/* MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_outbox_start(uint32_t rank_count);
void mpi_outbox_stop(void);
