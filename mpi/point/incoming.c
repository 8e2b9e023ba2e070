/* Messages for matching. All fields are validated: the peer may run another build, or be broken. */
#include <string.h>

#include "mpi/point/point.h"
#include "mpi/transport/credit.h"
#include "mpi/transport/outbox.h"
#include "mpi/transport/transport.h"
#include "mpi/transport/unknown.h"

/* Parses a message, and advances `data` beyond its head. False: the message is too short for its kind. */
static bool arrival_read(const void **data, uint32_t bytes, struct mpi_arrival *arrival)
{
    bool fits = mpi_message_read(data, &bytes, &arrival->envelope, sizeof(arrival->envelope));
    if (arrival->kind == MPI_SENT_OFFER) {
        return fits && mpi_message_read(data, &bytes, &arrival->offer, sizeof(arrival->offer));
    }
    if (arrival->kind == MPI_SENT_SYNC || arrival->kind == MPI_SENT_CANCEL) {
        struct mpi_answer answer;
        fits = fits && mpi_message_read(data, &bytes, &answer, sizeof(answer));
        arrival->offer.number = fits ? answer.number : 0;
    }
    arrival->offer.bytes = bytes;
    return fits;
}

/* Keeps an unexpected message. */
static void message_keep(struct mpi_comm *comm, const struct mpi_arrival *arrival, const void *data)
{
    uint64_t bytes = arrival->kind == MPI_SENT_OFFER ? 0 : arrival->offer.bytes;
    struct mpi_message *message = mpi_message_memory(arrival->rank, sizeof(*message) + bytes);
    *message = (struct mpi_message){.arrival = *arrival};
    if (arrival->kind != MPI_SENT_OFFER) {
        memcpy(message->data, data, bytes);
        mpi_kept_add(bytes);
    }
    if (!mpi_match_keep(comm, message)) {
        mpi_message_lose(arrival->rank, bytes);
    }
}

/* ---- by the kind of message ---- */

static void matched_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct mpi_arrival arrival = {.rank = rank, .kind = (enum mpi_sent)cw_tag(lane_tag)};
    const void *body = data;
    (void)context;
    if (!arrival_read(&body, bytes, &arrival)) {
        return;
    }
    struct mpi_comm *comm = mpi_comm_of_context(arrival.envelope.context);
    if (comm == NULL) {
        mpi_unknown_keep(rank, arrival.kind, data, bytes);
        return;
    }
    if (arrival.envelope.source < 0 || arrival.envelope.source >= comm->size) {
        return; /* no process with this library sends that */
    }
    struct mpi_request *request = mpi_match_arrival(comm, &arrival.envelope);
    if (request == NULL) {
        message_keep(comm, &arrival, body);
        return;
    }
    mpi_receive_arrival(request, &arrival, body);
    if (arrival.kind != MPI_SENT_OFFER) {
        mpi_credit_release(rank, arrival.offer.bytes);
    }
}

/* The common case first: an eager message for which a receive is posted. */
static void eager_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct mpi_envelope envelope;
    if (bytes >= sizeof(envelope)) {
        memcpy(&envelope, data, sizeof(envelope));
        struct mpi_comm *comm = mpi_comm_of_context(envelope.context);
        bool fits = comm != NULL && envelope.source >= 0 && envelope.source < comm->size;
        struct mpi_request *request = fits ? mpi_match_arrival(comm, &envelope) : NULL;
        if (request != NULL) {
            mpi_receive_eager(request, &envelope, (const uint8_t *)data + sizeof(envelope), bytes - sizeof(envelope));
            mpi_credit_release(rank, bytes - sizeof(envelope));
            return;
        }
    }
    matched_receive(context, rank, lane_tag, data, bytes);
}

static void cancel_receive(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint32_t bytes)
{
    struct mpi_arrival arrival = {.rank = rank, .kind = MPI_SENT_CANCEL};
    (void)context, (void)lane_tag;
    if (!arrival_read(&data, bytes, &arrival)) {
        return;
    }
    uint64_t of = arrival.envelope.context;
    struct mpi_comm *comm = mpi_comm_of_context(of);
    bool was_recalled = comm != NULL ? mpi_match_recall(comm, rank, arrival.offer.number)
                                     : mpi_unknown_recall(rank, of, arrival.offer.number);
    mpi_answer_send(rank, of, MPI_SENT_CANCELLED, arrival.offer.number, was_recalled);
}

void mpi_point_listen(void)
{
    mpi_transport_receiver_set(MPI_SENT_EAGER, eager_receive);
    mpi_transport_receiver_set(MPI_SENT_SYNC, matched_receive);
    mpi_transport_receiver_set(MPI_SENT_OFFER, matched_receive);
    mpi_transport_receiver_set(MPI_SENT_CANCEL, cancel_receive);
}
