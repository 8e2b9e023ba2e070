/* point: sends and receives under way; what the calls of point/ share.
 *
 * A send is eager up to mpi_process.eager_max_bytes, or wire_eager_max_bytes to another host: it is complete when the
 * path has taken it. Without credit (credit.h) it is announced, and sent when the receiver has matched it. A longer
 * one, and without credit one above eager_max_bytes, registers its memory, offers it, and is complete when the receiver
 * has said so. What the path does not take (CW_ERROR_AGAIN) waits in the outbox of that rank, in order.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/point/match.h"
#include "mpi/point/message.h"
#include "mpi/point/request.h"

/* Checks the arguments of a send or receive and fills in the request, which then holds its communicator and type.
 * MPI_SUCCESS or the error, raised. */
int mpi_send_prepare(struct mpi_request *request, enum mpi_send_mode mode, const void *buffer, MPI_Count count,
                     MPI_Datatype datatype, int dest, int tag, MPI_Comm comm);
int mpi_receive_prepare(struct mpi_request *request, void *buffer, MPI_Count count, MPI_Datatype datatype, int source,
                        int tag, MPI_Comm comm);
/* Lets go of communicator and type. */
void mpi_request_release(struct mpi_request *request);

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
void mpi_receive_long(struct mpi_request *request, const struct mpi_envelope *envelope, uint32_t rank, uint64_t bytes,
                      const struct cw_registration *registration, uint32_t number);

/* An announced message has been matched: asks for its data, which mpi_receive_end takes, or an error. */
void mpi_receive_announced(struct mpi_request *request, const struct mpi_envelope *envelope, uint32_t rank,
                           uint64_t bytes, uint32_t number);
void mpi_receive_end(uint32_t number, const void *data, uint64_t bytes, int error);

/* Gets the bytes of matched long messages that the path would not take before; returns how many it took. */
uint32_t mpi_get_progress(void);
/* The first of those; NULL: none. */
extern struct mpi_request *mpi_gets_waiting;

/* An announced send may go to the receive of that number. */
void mpi_send_clear(uint32_t number, uint32_t receive_number);
/* The answer for a send has come. */
void mpi_send_done(uint32_t number, int error);
void mpi_send_cancelled(uint32_t number, bool was_cancelled);

/* Tells the sender of a message that it has been matched, or received. */
void mpi_answer(uint32_t rank, uint64_t context, enum mpi_message_kind kind, uint32_t number, int status);

/* Sends, or keeps in the outbox of the rank: `element` is the type of the data; `head` is copied, `data` must stay
 * until `request` completes. The request, if any, is told by mpi_send_left when it has left. */
int mpi_outbox_send(uint32_t rank, uint32_t lane_tag, const void *head, uint32_t head_bytes, const void *data,
                    uint32_t bytes, enum cw_element element, struct mpi_request *request);
void mpi_send_left(struct mpi_request *request, int status);
/* Tries again what waits; returns how much has left. */
uint32_t mpi_outbox_progress(void);
/* Forgets what waits for a rank that is gone. */
void mpi_outbox_fail(uint32_t rank, int status);
int mpi_outbox_start(uint32_t rank_count);
void mpi_outbox_stop(void);
/* Messages in all of them. */
extern uint32_t mpi_outbox_waiting;

/* A turn of all of point/ (progress.h). */
uint32_t mpi_point_turn(void);

/* Fills in who takes what comes from the paths, but for `down` and MPI_SENT_ABANDON: the caller takes those,
 * since they fail collective calls, too (lost.h). */
void mpi_incoming_listen(struct cw_path_handler *handler);
