/* transport: what lies between dataplane/path/ and everything in MPI that sends: messages (outbox.h), offers, gets and
 * puts (rendezvous.h), answers by number (number.h), credit (credit.h), multicasts (multicast.h), and messages of
 * communicators that this process has not made yet (unknown.h).
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>

#include "mpi/state/process.h"
#include "mpi/transport/message.h"

/* Who takes messages of a kind; `data` is valid during the call. */
typedef void (*mpi_taker)(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes);
void mpi_transport_take_by(enum mpi_sent kind, mpi_taker take);

/* Fills in who takes what comes from the paths, but for `down`. After all mpi_transport_take_by. */
void mpi_transport_listen(struct cw_path_handler *handler);

/* Gives a message to whoever takes its kind, as if it came now. */
void mpi_transport_give(uint32_t rank, enum mpi_sent kind, const void *data, uint32_t bytes);

/* Whether a message of so many bytes goes with its data, if there is credit; else it is offered. */
static inline bool mpi_transport_is_eager(uint32_t rank, uint64_t bytes)
{
    return bytes <= mpi_process.eager_max_bytes ||
           (bytes <= mpi_process.wire_eager_max_bytes && !cw_paths_is_here(mpi_process.paths, rank));
}

/* A turn of all that waits for room (progress.h). */
uint32_t mpi_transport_turn(void);

/* Takes a part of a message from its front; false: it is shorter than that. */
bool mpi_message_read(const void **data, uint32_t *bytes, void *part, uint32_t part_bytes);

/* Memory to keep a message of `rank` in. Without it the job ends: no call is to blame, and whoever waits for the message
 * would wait for ever. */
void *mpi_message_memory(uint32_t rank, uint64_t bytes);
_Noreturn void mpi_message_lose(uint32_t rank, uint64_t bytes);
