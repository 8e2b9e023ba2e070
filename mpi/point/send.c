#include <stdlib.h>

#include "mpi/point/lost.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"
#include "mpi/transport/credit.h"
#include "mpi/transport/outbox.h"
#include "mpi/transport/transport.h"

int mpi_send_copy(struct mpi_request *request)
{
    if (request->packed != NULL || request->bytes == 0) {
        return MPI_SUCCESS;
    }
    request->packed = malloc((size_t)request->bytes);
    if (request->packed == NULL) {
        return MPI_ERR_NO_MEM;
    }
    mpi_type_pack(request->type, request->count, request->buffer, 0, request->packed, request->bytes);
    return MPI_SUCCESS;
}

/* The message's bytes in one piece: in place if they are, else packed, into memory of the request. NULL: no memory. */
static const void *send_data(struct mpi_request *request)
{
    if (request->bytes == 0) {
        return "";
    }
    if (request->packed == NULL && request->type->dense) {
        return (const uint8_t *)request->buffer + request->type->true_lb;
    }
    (void)mpi_send_copy(request);
    return request->packed;
}

static void send_complete(struct mpi_request *request, int code)
{
    free(request->packed);
    request->packed = NULL;
    mpi_request_complete(request, code);
}

/* The path does not use its memory any more. */
static void send_released(struct mpi_offered *offered, int code)
{
    send_complete((struct mpi_request *)((uint8_t *)offered - offsetof(struct mpi_request, offered)), code);
}

static void send_end(struct mpi_request *request, int code)
{
    mpi_number_free(&request->offered.numbered);
    if (request->is_registered) {
        request->is_registered = false;
        mpi_offered_end(&request->offered, code);
    } else {
        send_complete(request, code);
    }
}

static struct mpi_envelope envelope_of(const struct mpi_request *request)
{
    return (struct mpi_envelope){
        .context = request->comm->context,
        .tag = request->tag,
        .source = request->comm->rank,
    };
}

/* The message has been sent, with or without its data. */
static void send_left(void *owner, int status)
{
    struct mpi_request *request = owner;
    if (status != CW_OK) {
        send_end(request, mpi_error_of_status(status));
    } else if (request->offered.numbered.number == 0) {
        send_end(request, MPI_SUCCESS);
    }
}

/* Sends the head with the data, if any, or keeps both in the outbox. */
static void send_message(struct mpi_request *request, enum mpi_sent kind, const void *head, uint32_t head_bytes,
                         const void *data, uint64_t bytes)
{
    int status = mpi_outbox_send(&(struct mpi_outgoing){
        .rank = request->rank,
        .lane_tag = request->comm->lane_tag | kind,
        .head = head,
        .head_bytes = head_bytes,
        .data = data,
        .bytes = (uint32_t)bytes,
        .element = bytes < MPI_ELEMENTS_MATTER_MIN ? CW_ELEMENT_BYTES : mpi_element_of(request->comm, request->type),
        .left = send_left,
        .owner = request,
    });
    if (status != CW_ERROR_AGAIN) {
        send_left(request, status);
    }
}

static void send_eager(struct mpi_request *request, const void *data)
{
    struct mpi_envelope envelope = envelope_of(request);
    send_message(request, MPI_SENT_EAGER, &envelope, sizeof(envelope), data, (uint64_t)request->bytes);
}

static void send_synchronous(struct mpi_request *request, const void *data)
{
    struct {
        struct mpi_envelope envelope;
        struct mpi_answer answer;
    } head = {.envelope = envelope_of(request), .answer = {.number = request->offered.numbered.number}};
    send_message(request, MPI_SENT_SYNC, &head, sizeof(head), data, (uint64_t)request->bytes);
}

/* Offers the data: the receiver gets it from registered memory, or, without a registration (`data` NULL), requests it
 * after the match. */
static void send_offer(struct mpi_request *request, const void *data)
{
    struct {
        struct mpi_envelope envelope;
        struct mpi_offer offer;
    } head = {
        .envelope = envelope_of(request),
        .offer = {.number = request->offered.numbered.number, .bytes = (uint64_t)request->bytes},
    };
    int status = data == NULL
                     ? CW_OK
                     : mpi_offered_begin(&request->offered, request->rank, data, (uint64_t)request->bytes, &head.offer);
    if (status != CW_OK) {
        send_end(request, mpi_error_of_status(status));
        return;
    }
    request->is_registered = data != NULL;
    mpi_kept.announced += data == NULL;
    send_message(request, MPI_SENT_OFFER, &head, sizeof(head), NULL, 0);
}

static struct mpi_request *request_of(struct mpi_numbered *numbered)
{
    return (struct mpi_request *)((uint8_t *)numbered - offsetof(struct mpi_request, offered.numbered));
}

static void send_answered(struct mpi_numbered *numbered, enum mpi_sent kind, const struct mpi_answer *answer,
                          const void *data, uint32_t bytes)
{
    struct mpi_request *request = request_of(numbered);
    (void)data, (void)bytes;
    if (kind == MPI_SENT_DONE) {
        send_end(request, answer->status);
    } else if (kind == MPI_SENT_CLEAR && !request->is_registered) {
        const struct mpi_answer to = {.number = (uint32_t)answer->status};
        mpi_number_free(numbered);
        send_message(request, MPI_SENT_DATA, &to, sizeof(to), send_data(request), (uint64_t)request->bytes);
    } else if (kind == MPI_SENT_CANCELLED) {
        request->is_cancelling = false;
        request->is_cancelled = answer->status != 0;
        if (request->is_cancelled) {
            send_end(request, MPI_SUCCESS);
        }
    }
}

/* A rank that has abandoned the communicator still sends what it has announced, but receives nothing. */
static void send_fail(struct mpi_numbered *numbered)
{
    if (numbered->answered == send_answered && mpi_lost(request_of(numbered)->comm, request_of(numbered)->peer)) {
        mpi_numbered_fail(numbered);
    }
}

void mpi_sends_abandoned(uint32_t rank)
{
    mpi_numbers_each_of(rank, send_fail);
}

bool mpi_send_quick(const void *buffer, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    const struct mpi_comm *found = mpi_comm_find(comm);
    const struct mpi_type *type = mpi_type_find(datatype);
    if (found == NULL || type == NULL || !type->dense || !type->committed || dest < 0 || dest >= found->size ||
        tag < 0 || tag > MPI_TAG_MAX || (uintptr_t)buffer <= (uintptr_t)MPI_IN_PLACE || count < 0 ||
        (uint64_t)count > CW_SLOT_BYTES_MAX) {
        return false;
    }
    uint64_t bytes = (uint64_t)(count * type->size);
    uint32_t rank = found->group->ranks[dest];
    if (!mpi_credit_is_eager(rank, bytes)) {
        return false;
    }
    if (bytes + MPI_CREDIT_MESSAGE > mpi_credits[rank].left) {
        (void)mpi_progress(); /* a rank that only sends accepts returned credit here */
    }
    if (mpi_outbox_waiting > 0 || !mpi_credit_consume(rank, bytes)) {
        return false;
    }
    struct mpi_envelope envelope = {.context = found->context, .tag = tag, .source = found->rank};
    bool is_sent =
        cw_paths_send(mpi_process.paths, rank, found->lane_tag | MPI_SENT_EAGER, &envelope, sizeof(envelope),
                      (const uint8_t *)buffer + type->true_lb, (uint32_t)bytes,
                      bytes < MPI_ELEMENTS_MATTER_MIN ? CW_ELEMENT_BYTES : mpi_element_of(found, type)) == CW_OK;
    if (!is_sent) {
        mpi_credit_untake(rank, bytes);
    }
    return is_sent;
}

void mpi_send_start(struct mpi_request *request)
{
    if (request->peer == MPI_PROC_NULL) {
        send_end(request, MPI_SUCCESS);
        return;
    }
    request->rank = request->comm->group->ranks[request->peer];
    if (mpi_lost(request->comm, request->peer)) {
        send_end(request, MPI_ERR_PROC_ABORTED);
        return;
    }
    const void *data = send_data(request);
    if (data == NULL) {
        send_end(request, MPI_ERR_NO_MEM);
        return;
    }
    bool eager = mpi_credit_is_eager(request->rank, (uint64_t)request->bytes);
    bool has_credit = eager && mpi_credit_consume(request->rank, (uint64_t)request->bytes);
    if (has_credit && request->mode != MPI_MODE_SYNCHRONOUS) {
        send_eager(request, data);
        return;
    }
    request->offered = (struct mpi_offered){
        .numbered = {.rank = request->rank, .answered = send_answered},
        .done = send_released,
    };
    if (!mpi_number_make(&request->offered.numbered)) {
        send_end(request, MPI_ERR_NO_MEM);
    } else if (has_credit) {
        send_synchronous(request, data);
    } else {
        bool is_short = eager && (uint64_t)request->bytes <= mpi_process.eager_max_bytes;
        send_offer(request, is_short ? NULL : data);
    }
}
