/* match: which message goes to which receive (MPI 5.0, 3.5 and 3.8).
 *
 * Each communicator has receives that were posted and messages that came unexpected. Both are kept by source, and those
 * that may match from any source by the order of posting and of arrival, so that a match among many takes at most as
 * long as the messages of one source.
 *
 * Invariants
 *   - A message goes to the first receive posted that fits it; a receive gets the first fitting message of its source.
 *   - No posted receive fits an unexpected message of the same communicator.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi/point/request.h"
#include "mpi/state/comm.h"
#include "mpi/transport/message.h"

/* A message that has arrived: EAGER, SYNC or OFFER. */
struct mpi_arrival {
    uint32_t rank; /* of the sender, in MPI_COMM_WORLD */
    enum mpi_sent kind;
    struct mpi_envelope envelope;
    struct mpi_offer offer; /* `bytes`: of the message of any kind; `number`: also of a SYNC */
};

/* An unexpected message. */
struct mpi_message {
    MPI_Message handle; /* of a matched probe */
    struct mpi_comm *comm;
    struct mpi_arrival arrival;
    struct mpi_message *source_next, *source_previous;
    struct mpi_message *arrival_next, *arrival_previous;
    uint8_t data[]; /* EAGER, SYNC */
};

/* The receive that a message belongs to, taken out of its queue; NULL: none is posted. */
struct mpi_request *mpi_match_arrival(struct mpi_comm *comm, const struct mpi_envelope *envelope);

/* Keeps a message until a receive wants it. False: no memory. */
bool mpi_match_keep(struct mpi_comm *comm, struct mpi_message *message);

/* The first message that fits, taken out of its queue if `take`; NULL: none has come. */
struct mpi_message *mpi_match_find(struct mpi_comm *comm, int source, int tag, bool take);

/* Queues a receive for which no message has come. False: no memory. */
bool mpi_match_post(struct mpi_comm *comm, struct mpi_request *request);
/* Takes a posted receive back; false: it has been matched. */
bool mpi_match_withdraw(struct mpi_request *request);
/* Takes the message that a sender wants back; false: it has been matched. */
bool mpi_match_recall(struct mpi_comm *comm, uint32_t rank, uint32_t number);

/* Frees a message that is in no queue, and returns credit to its sender for the kept bytes (credit.h). */
void mpi_match_let_go(struct mpi_message *message);

/* For reports: the first message without a receive (the others by arrival_next), whether a receive waits for its
 * message, and all that do. */
const struct mpi_message *mpi_match_unexpected(const struct mpi_comm *comm);
bool mpi_match_is_posted(const struct mpi_request *request);
void mpi_match_each_posted(const struct mpi_comm *comm,
                           void (*function)(const struct mpi_request *request, void *context), void *context);

/* A communicator ends: frees its queues with their contents. */
void mpi_match_abandon(struct mpi_comm *comm);

/* Calls `function` for each posted receive whose source is, or may be, the process `rank` of MPI_COMM_WORLD; it may
 * withdraw it. */
void mpi_match_each_from(struct mpi_comm *comm, uint32_t rank, void (*function)(struct mpi_request *request));
