#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/point/lost.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/state/process.h"
#include "mpi/transport/outbox.h"
#include "mpi/transport/transport.h"

static void receive_matched(struct mpi_request *request, const struct mpi_envelope *envelope, uint64_t bytes)
{
    request->matched_source = envelope->source;
    request->matched_tag = envelope->tag;
    request->received = (MPI_Count)(bytes < (uint64_t)request->bytes ? bytes : (uint64_t)request->bytes);
}

void mpi_receive_eager(struct mpi_request *request, const struct mpi_envelope *envelope, const void *data,
                       uint64_t bytes)
{
    receive_matched(request, envelope, bytes);
    if (request->received > 0 && request->type->dense) {
        memcpy((uint8_t *)request->buffer + request->type->true_lb, data, (size_t)request->received);
    } else if (request->received > 0) {
        mpi_type_unpack(request->type, request->count, request->buffer, 0, data, request->received);
    }
    mpi_request_complete(request, bytes > (uint64_t)request->bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
}

/* An offered message has arrived, or cannot arrive. */
static int receive_got(struct mpi_get *get, int status)
{
    struct mpi_request *request = (struct mpi_request *)((uint8_t *)get - offsetof(struct mpi_request, get));
    int code = status == CW_OK ? MPI_SUCCESS : mpi_error_of_status(status);
    if (status == CW_OK && request->packed != NULL) {
        mpi_type_unpack(request->type, request->count, request->buffer, 0, request->packed, request->received);
    }
    free(request->packed);
    request->packed = NULL;
    mpi_request_complete(request, code == MPI_SUCCESS ? request->error : code);
    return status != CW_ERROR_PEER_FAILED ? code : MPI_NO_ANSWER;
}

static void receive_get(struct mpi_request *request, uint32_t rank, const struct mpi_offer *offer)
{
    request->get = (struct mpi_get){
        .registration = offer->registration,
        .number = offer->number,
        .rank = rank,
        .answer = mpi_lane_tag(request->comm->context, MPI_SENT_DONE),
        .to = (uint8_t *)request->buffer + request->type->true_lb,
        .bytes = (uint64_t)request->received,
        .element = mpi_element_of(request->comm, request->type),
        .done = receive_got,
    };
    if (!request->type->dense && request->received > 0) {
        request->get.to = request->packed = malloc((size_t)request->received);
    }
    if (request->get.to == NULL && request->received > 0) {
        mpi_answer_send(rank, request->comm->context, MPI_SENT_DONE, offer->number, MPI_ERR_NO_MEM);
        mpi_request_complete(request, MPI_ERR_NO_MEM);
        return;
    }
    mpi_get_start(&request->get);
}

/* The data of a message that was offered without a registration, or the loss of its sender. */
static void receive_answered(struct mpi_numbered *numbered, enum mpi_sent kind, const struct mpi_answer *answer,
                             const void *data, uint32_t bytes)
{
    struct mpi_request *request =
        (struct mpi_request *)((uint8_t *)numbered - offsetof(struct mpi_request, offered.numbered));
    const struct mpi_envelope envelope = {.source = request->matched_source, .tag = request->matched_tag};
    if (kind == MPI_SENT_DATA) {
        mpi_number_free(numbered);
        mpi_receive_eager(request, &envelope, data, bytes);
    } else if (kind == MPI_SENT_DONE && answer->status != MPI_SUCCESS) {
        mpi_number_free(numbered);
        mpi_request_complete(request, answer->status);
    }
}

/* Requests the data of a message that was offered without a registration. */
static void receive_clear(struct mpi_request *request, uint32_t rank, const struct mpi_offer *offer)
{
    uint64_t context = request->comm->context;
    request->offered.numbered = (struct mpi_numbered){.rank = rank, .answered = receive_answered};
    if (!mpi_number_make(&request->offered.numbered)) {
        mpi_answer_send(rank, context, MPI_SENT_DONE, offer->number, MPI_ERR_NO_MEM);
        mpi_request_complete(request, MPI_ERR_NO_MEM);
        return;
    }
    mpi_answer_send(rank, context, MPI_SENT_CLEAR, offer->number, (int)request->offered.numbered.number);
}

void mpi_receive_arrival(struct mpi_request *request, const struct mpi_arrival *arrival, const void *data)
{
    const struct mpi_offer *offer = &arrival->offer;
    if (arrival->kind == MPI_SENT_SYNC) {
        mpi_answer_send(arrival->rank, request->comm->context, MPI_SENT_DONE, offer->number, MPI_SUCCESS);
    }
    if (arrival->kind != MPI_SENT_OFFER) {
        mpi_receive_eager(request, &arrival->envelope, data, offer->bytes);
        return;
    }
    receive_matched(request, &arrival->envelope, offer->bytes);
    request->rank = arrival->rank;
    request->error = offer->bytes > (uint64_t)request->bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    if (mpi_offer_is_registered(offer)) {
        receive_get(request, arrival->rank, offer);
    } else {
        receive_clear(request, arrival->rank, offer);
    }
}

void mpi_receive_message(struct mpi_request *request, struct mpi_message *message)
{
    mpi_receive_arrival(request, &message->arrival, message->data);
    mpi_match_let_go(message);
}

void mpi_receive_start(struct mpi_request *request)
{
    if (request->peer == MPI_PROC_NULL) {
        request->matched_source = MPI_PROC_NULL;
        request->matched_tag = MPI_ANY_TAG;
        request->received = 0;
        mpi_request_complete(request, MPI_SUCCESS);
        return;
    }
    struct mpi_message *message = mpi_match_find(request->comm, request->peer, request->tag, true);
    if (message != NULL) {
        mpi_receive_message(request, message);
    } else if (mpi_process.lost_count > 0 && mpi_lost(request->comm, request->peer)) {
        mpi_request_complete(request, MPI_ERR_PROC_ABORTED);
    } else if (!mpi_match_post(request->comm, request)) {
        mpi_request_complete(request, MPI_ERR_NO_MEM);
    }
}
