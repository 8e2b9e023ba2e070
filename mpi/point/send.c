#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/point/credit.h"
#include "mpi/point/data.h"
#include "mpi/point/lost.h"
#include "mpi/point/numbers.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"

/* A rank that may be sent to, or MPI_PROC_NULL. */
static int dest_check(const struct mpi_comm *comm, int dest)
{
    if (dest >= 0 ? dest < comm->size : dest == MPI_PROC_NULL) {
        return MPI_SUCCESS;
    }
    return mpi_error(comm->handle, MPI_ERR_RANK, "destination %d is none of the %d ranks of %s", dest, comm->size,
                     comm->name);
}

int mpi_send_prepare(struct mpi_request *request, enum mpi_send_mode mode, const void *buffer, MPI_Count count,
                     MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_type *type;
    code = mpi_type_check(comm, count, datatype, &type);
    if (code == MPI_SUCCESS) {
        code = dest_check(found, dest);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (tag < 0 || tag > MPI_TAG_MAX) {
        return mpi_error(comm, MPI_ERR_TAG, "tag %d of a message to send is outside 0 .. %d", tag, MPI_TAG_MAX);
    }
    if (mpi_buffer_is_wrong(buffer, type, type->size * count)) {
        return mpi_error(comm, MPI_ERR_BUFFER, "the buffer is %s, but %lld elements are to be sent",
                         buffer == NULL ? "NULL" : "MPI_IN_PLACE", (long long)count);
    }
    request->kind = MPI_REQUEST_SEND;
    request->mode = mode;
    request->comm = found;
    request->buffer = (void *)(uintptr_t)buffer;
    request->count = count;
    request->peer = dest;
    request->tag = tag;
    request->type = type;
    request->bytes = type->size * count;
    mpi_comm_retain(found);
    mpi_type_retain(type);
    return MPI_SUCCESS;
}

void mpi_request_release(struct mpi_request *request)
{
    if (request->comm != NULL) {
        mpi_comm_release(request->comm);
        request->comm = NULL;
    }
    if (request->type != NULL) {
        mpi_type_release(request->type);
        request->type = NULL;
    }
}

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

/* Nothing is sent from its memory any more. */
static void send_released(void *context)
{
    struct mpi_request *request = context;
    free(request->packed);
    request->packed = NULL;
    mpi_request_complete(request, request->end_code);
}

static void send_end(struct mpi_request *request, int code)
{
    bool is_registered = request->is_registered;
    if (request->number != 0) {
        mpi_number_free(request->number);
        request->number = 0;
    }
    request->is_registered = false;
    request->end_code = code;
    if (is_registered) {
        mpi_deregister(request->rank, &request->registration, send_released, request);
    } else {
        send_released(request);
    }
}

/* Most messages are so short that it does not matter who gets them. */
static bool is_eager(uint32_t rank, uint64_t bytes)
{
    return bytes <= mpi_process.eager_max_bytes ||
           (bytes <= mpi_process.wire_eager_max_bytes && !cw_paths_is_here(mpi_process.paths, rank));
}

static struct mpi_envelope envelope_of(const struct mpi_request *request)
{
    return (struct mpi_envelope){
        .context = request->comm->context,
        .tag = request->tag,
        .source = request->comm->rank,
    };
}

/* Sends the head with the data, if any, or keeps both in the outbox. */
static void send_message(struct mpi_request *request, enum mpi_message_kind kind, const void *head, uint32_t head_bytes,
                         const void *data, uint64_t bytes)
{
    int status = mpi_outbox_send(request->rank, mpi_lane_tag(request->comm->context, kind), head, head_bytes, data,
                                 (uint32_t)bytes, mpi_data_of_short(request->comm, request->type, bytes), request);
    if (status != CW_ERROR_AGAIN) {
        mpi_send_left(request, status);
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
        struct mpi_answer_to answer;
    } head = {.envelope = envelope_of(request), .answer = {.number = request->number}};
    send_message(request, MPI_SENT_SYNC, &head, sizeof(head), data, (uint64_t)request->bytes);
}

static void send_long(struct mpi_request *request, const void *data)
{
    int status = cw_paths_register(mpi_process.paths, request->rank, (void *)(uintptr_t)data, (uint64_t)request->bytes,
                                   CW_REGION_READ | CW_REGION_KEPT, &request->registration);
    if (status != CW_OK) {
        send_end(request, mpi_error_of_status(status));
        return;
    }
    request->is_registered = true;
    struct {
        struct mpi_envelope envelope;
        struct mpi_offer offer;
    } head = {
        .envelope = envelope_of(request),
        .offer = {.bytes = (uint64_t)request->bytes, .registration = request->registration, .number = request->number},
    };
    send_message(request, MPI_SENT_LONG, &head, sizeof(head), NULL, 0);
}

/* Without credit: the data follows when it has been matched. */
static void send_announced(struct mpi_request *request)
{
    struct {
        struct mpi_envelope envelope;
        struct mpi_offer offer;
    } head = {
        .envelope = envelope_of(request),
        .offer = {.bytes = (uint64_t)request->bytes, .number = request->number},
    };
    mpi_kept.announced++;
    send_message(request, MPI_SENT_WANT, &head, sizeof(head), NULL, 0);
}

void mpi_send_clear(uint32_t number, uint32_t receive_number)
{
    struct mpi_request *request = mpi_number_find(number);
    if (request == NULL || request->kind != MPI_REQUEST_SEND || request->is_registered) {
        return;
    }
    const struct mpi_answer_to answer = {.number = receive_number};
    mpi_number_free(number);
    request->number = 0;
    send_message(request, MPI_SENT_DATA, &answer, sizeof(answer), send_data(request), (uint64_t)request->bytes);
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
    if (!is_eager(rank, bytes)) {
        return false;
    }
    if (bytes + MPI_CREDIT_MESSAGE > mpi_credits[rank].left) {
        (void)mpi_progress(); /* whoever only sends takes what has been given back now */
    }
    if (mpi_outbox_waiting > 0 || !mpi_credit_take(rank, bytes)) {
        return false;
    }
    struct mpi_envelope envelope = {.context = found->context, .tag = tag, .source = found->rank};
    bool is_sent = cw_paths_send(mpi_process.paths, rank, mpi_lane_tag(found->context, MPI_SENT_EAGER), &envelope,
                                 sizeof(envelope), (const uint8_t *)buffer + type->true_lb, (uint32_t)bytes,
                                 mpi_data_of_short(found, type, bytes)) == CW_OK;
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
    bool eager = is_eager(request->rank, (uint64_t)request->bytes);
    bool has_credit = eager && mpi_credit_take(request->rank, (uint64_t)request->bytes);
    if (has_credit && request->mode != MPI_MODE_SYNCHRONOUS) {
        send_eager(request, data);
        return;
    }
    request->number = mpi_number_make(request);
    if (request->number == 0) {
        send_end(request, MPI_ERR_NO_MEM);
    } else if (has_credit) {
        send_synchronous(request, data);
    } else if (eager && (uint64_t)request->bytes <= mpi_process.eager_max_bytes) {
        send_announced(request);
    } else {
        send_long(request, data);
    }
}

void mpi_send_left(struct mpi_request *request, int status)
{
    if (status != CW_OK) {
        send_end(request, mpi_error_of_status(status));
    } else if (request->number == 0) {
        send_end(request, MPI_SUCCESS);
    }
}

void mpi_send_done(uint32_t number, int error)
{
    struct mpi_request *request = mpi_number_find(number);
    if (request != NULL && request->kind == MPI_REQUEST_SEND) {
        send_end(request, error);
    }
}

void mpi_send_cancelled(uint32_t number, bool was_cancelled)
{
    struct mpi_request *request = mpi_number_find(number);
    if (request == NULL) {
        return;
    }
    request->is_cancelling = false;
    if (was_cancelled) {
        request->is_cancelled = true;
        send_end(request, MPI_SUCCESS);
    }
}
