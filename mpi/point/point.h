/* point: sends and receives in progress; shared by the calls of point/.
 *
 * A send is eager up to mpi_process.eager_max_bytes, or wire_eager_max_bytes to another host: it is complete when the
 * path has taken it. Without credit (credit.h) it is offered without a registration, and sent when the receiver has
 * matched it. A longer one, and without credit one above eager_max_bytes, registers its memory, offers it, and is
 * complete when the receiver has acknowledged it (rendezvous.h).
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/point/match.h"
#include "mpi/point/request.h"
#include "mpi/transport/message.h"

/* Checks the arguments of a send or a receive and fills in the request, which then holds its communicator and type. The
 * caller has set its kind and, for a send, its mode.
 * MPI_SUCCESS or the error, raised. */
int mpi_request_prepare(struct mpi_request *request, const void *buffer, MPI_Count count, MPI_Datatype datatype,
                        int peer, int tag, MPI_Comm comm);

/* Makes the next start of a send independent of the program's buffer: its bytes are packed into memory of the request.
 * MPI_SUCCESS or MPI_ERR_NO_MEM, not raised. */
int mpi_send_copy(struct mpi_request *request);

/* Start what was prepared; it completes at once or later, if need be with an error. */
void mpi_send_start(struct mpi_request *request);
void mpi_receive_start(struct mpi_request *request);
/* Sends a short message at once, without a request: the standard case. False: nothing has happened, and the long way
 * will tell whether something is wrong. */
bool mpi_send_quick(const void *buffer, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);

/* The receive gets this message, which was matched before (MPI_Mrecv); frees the message. */
void mpi_receive_message(struct mpi_request *request, struct mpi_message *message);

/* A message has come for a posted receive; its data, if any, is copied before the call returns. */
void mpi_receive_eager(struct mpi_request *request, const struct mpi_envelope *envelope, const void *data,
                       uint64_t bytes);
/* Receives a message of any kind that has been matched; `data`: of an EAGER or SYNC. */
void mpi_receive_arrival(struct mpi_request *request, const struct mpi_arrival *arrival, const void *data);

/* `rank` of MPI_COMM_WORLD has abandoned a communicator (mpi_lost_receive): fails the sends to it there. */
void mpi_sends_abandoned(uint32_t rank);

/* Registers the receivers of messages for matching (transport.h). */
void mpi_point_listen(void);
