/* transport: the layer between dataplane/path/ and all parts of MPI that send: messages (outbox.h), offers and gets
 * (rendezvous.h), answers by number (number.h), credit (credit.h), multicasts (multicast.h), and messages of
 * communicators that this process has not created yet (unknown.h).
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>

#include "mpi/datatype/datatype.h"
#include "mpi/state/comm.h"
#include "mpi/state/process.h"
#include "mpi/transport/message.h"

/* Receives messages of a kind; `data` is valid during the call. */
typedef void (*mpi_message_handler)(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes);
void mpi_transport_receiver_set(enum mpi_sent kind, mpi_message_handler handle);

/* Sets all handlers of the paths except `down`. Call it after all calls of mpi_transport_receiver_set. */
void mpi_transport_listen(struct cw_path_handler *handler);

/* Delivers a message to the receiver of its kind, as if it arrived now. */
void mpi_transport_deliver(uint32_t rank, enum mpi_sent kind, const void *data, uint32_t bytes);

/* The elements of an MPI type (NULL: bytes) in messages of a communicator, for compression. CW_ELEMENT_PLAIN, which is
 * never compressed, if the communicator's hint "causeway_compression" is "off". */
enum { MPI_ELEMENTS_MATTER_MIN = 1024 }; /* bytes; shorter messages fit a packet, and are CW_ELEMENT_BYTES */
enum cw_element mpi_element_of(const struct mpi_comm *comm, const struct mpi_type *type);

/* A communicator is there: sets its lane, and delivers the messages that came before it. */
void mpi_transport_adopt(struct mpi_comm *comm);

/* Sends all that waits for room (progress.h); returns how much it did. */
uint32_t mpi_transport_turn(void);

/* Copies the front of a message to `part`, and advances `data`. False: the message is shorter. */
bool mpi_message_read(const void **data, uint32_t *bytes, void *part, uint32_t part_bytes);

/* Memory for a message of `rank` that must be kept. If there is none, the job ends: no call could return the error, and
 * the rank that needs the message would wait forever. */
void *mpi_message_memory(uint32_t rank, uint64_t bytes);
_Noreturn void mpi_message_lose(uint32_t rank, uint64_t bytes);
