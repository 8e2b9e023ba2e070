#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/point/data.h"
#include "mpi/point/lost.h"
#include "mpi/point/numbers.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"

static int source_check(const struct mpi_comm *comm, int source)
{
    if (source >= 0 ? source < comm->size : source == MPI_PROC_NULL || source == MPI_ANY_SOURCE) {
        return MPI_SUCCESS;
    }
    return mpi_error(comm->handle, MPI_ERR_RANK, "source %d is none of the %d ranks of %s", source, comm->size,
                     comm->name);
}

int mpi_receive_prepare(struct mpi_request *request, void *buffer, MPI_Count count, MPI_Datatype datatype, int source,
                        int tag, MPI_Comm comm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_type *type;
    code = mpi_type_check(comm, count, datatype, &type);
    if (code == MPI_SUCCESS) {
        code = source_check(found, source);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    if ((tag < 0 && tag != MPI_ANY_TAG) || tag > MPI_TAG_MAX) {
        return mpi_error(comm, MPI_ERR_TAG, "tag %d of a receive is neither MPI_ANY_TAG nor within 0 .. %d", tag,
                         MPI_TAG_MAX);
    }
    if (mpi_buffer_is_wrong(buffer, type, type->size * count)) {
        return mpi_error(comm, MPI_ERR_BUFFER, "the buffer is %s, but %lld elements may come",
                         buffer == NULL ? "NULL" : "MPI_IN_PLACE", (long long)count);
    }
    request->kind = MPI_REQUEST_RECEIVE;
    request->comm = found;
    request->buffer = buffer;
    request->count = count;
    request->peer = source;
    request->tag = tag;
    request->type = type;
    request->bytes = type->size * count;
    mpi_comm_retain(found);
    mpi_type_retain(type);
    return MPI_SUCCESS;
}

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

/* A long message is here, or will never be. */
static void receive_done(struct mpi_operation *operation, int status)
{
    struct mpi_request *request = (struct mpi_request *)((uint8_t *)operation - offsetof(struct mpi_request, get));
    int code = status == CW_OK ? MPI_SUCCESS : mpi_error_of_status(status);
    if (status == CW_OK && request->packed != NULL) {
        mpi_type_unpack(request->type, request->count, request->buffer, 0, request->packed, request->received);
    }
    free(request->packed);
    request->packed = NULL;
    if (status != CW_ERROR_PEER_FAILED) {
        mpi_answer(request->rank, request->comm->context, MPI_SENT_DONE, request->number, code);
    }
    mpi_request_complete(request, code == MPI_SUCCESS ? request->error : code);
}

/* Gets that the path would not take yet. */
struct mpi_request *mpi_gets_waiting;
static struct mpi_request **waiting_end = &mpi_gets_waiting;

/* Gets the bytes of a matched long message. */
static void get_start(struct mpi_request *request, void *to)
{
    int status =
        cw_paths_get(mpi_process.paths, request->rank, &request->registration, 0, to, (uint64_t)request->received,
                     mpi_data_of(request->comm, request->type), (uint64_t)(uintptr_t)&request->get);
    if (status == CW_ERROR_AGAIN) {
        request->next = NULL;
        *waiting_end = request;
        waiting_end = &request->next;
        mpi_progress_is_due = true;
    } else if (status != CW_OK) {
        receive_done(&request->get, status == CW_PATHS_DONE ? CW_OK : status);
    }
}

void mpi_receive_long(struct mpi_request *request, const struct mpi_envelope *envelope, uint32_t rank, uint64_t bytes,
                      const struct cw_registration *registration, uint32_t number)
{
    receive_matched(request, envelope, bytes);
    request->rank = rank;
    request->number = number;
    request->error = bytes > (uint64_t)request->bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    request->get.done = receive_done;
    request->registration = *registration;
    void *to = (uint8_t *)request->buffer + request->type->true_lb;
    if (!request->type->dense && request->received > 0) {
        to = request->packed = malloc((size_t)request->received);
        if (to == NULL) {
            receive_done(&request->get, CW_ERROR_MEMORY);
            return;
        }
    }
    get_start(request, to);
}

void mpi_receive_announced(struct mpi_request *request, const struct mpi_envelope *envelope, uint32_t rank,
                           uint64_t bytes, uint32_t number)
{
    uint64_t context = request->comm->context;
    receive_matched(request, envelope, bytes);
    request->rank = rank;
    request->number = mpi_number_make(request);
    if (request->number == 0) {
        mpi_answer(rank, context, MPI_SENT_DONE, number, MPI_ERR_NO_MEM);
        mpi_request_complete(request, MPI_ERR_NO_MEM);
        return;
    }
    mpi_answer(rank, context, MPI_SENT_CLEAR, number, (int)request->number);
}

void mpi_receive_end(uint32_t number, const void *data, uint64_t bytes, int error)
{
    struct mpi_request *request = mpi_number_find(number);
    if (request == NULL || request->kind != MPI_REQUEST_RECEIVE) {
        return;
    }
    const struct mpi_envelope envelope = {.source = request->matched_source, .tag = request->matched_tag};
    mpi_number_free(number);
    if (error != MPI_SUCCESS) {
        mpi_request_complete(request, error);
    } else {
        mpi_receive_eager(request, &envelope, data, bytes);
    }
}

uint32_t mpi_get_progress(void)
{
    struct mpi_request *request = mpi_gets_waiting;
    mpi_gets_waiting = NULL;
    waiting_end = &mpi_gets_waiting;
    uint32_t count = 0;
    while (request != NULL) {
        struct mpi_request *next = request->next;
        get_start(request,
                  request->packed != NULL ? request->packed : (uint8_t *)request->buffer + request->type->true_lb);
        request = next;
        count++;
    }
    return mpi_gets_waiting == NULL ? count : 0;
}

void mpi_receive_message(struct mpi_request *request, struct mpi_message *message)
{
    switch (message->kind) {
    case MPI_SENT_LONG:
        mpi_receive_long(request, &message->envelope, message->rank, message->bytes, &message->registration,
                         message->number);
        break;
    case MPI_SENT_WANT:
        mpi_receive_announced(request, &message->envelope, message->rank, message->bytes, message->number);
        break;
    case MPI_SENT_SYNC:
        mpi_answer(message->rank, message->envelope.context, MPI_SENT_DONE, message->number, MPI_SUCCESS);
        mpi_receive_eager(request, &message->envelope, message->data, message->bytes);
        break;
    default:
        mpi_receive_eager(request, &message->envelope, message->data, message->bytes);
        break;
    }
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
    } else if (mpi_lost(request->comm, request->peer)) {
        mpi_request_complete(request, MPI_ERR_PROC_ABORTED);
    } else if (!mpi_match_post(request->comm, request)) {
        mpi_request_complete(request, MPI_ERR_NO_MEM);
    }
}
