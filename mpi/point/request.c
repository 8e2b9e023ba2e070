#include "mpi/point/request.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/point/describe.h"
#include "mpi/point/general.h"
#include "mpi/point/match.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/handle.h"
#include "mpi/state/process.h"

struct mpi_request *mpi_request_find(MPI_Request handle)
{
    return mpi_handle_object(MPI_KIND_REQUEST, (uintptr_t)handle);
}

/* Requests come and go all the time: freed ones are kept. */
static struct mpi_request *spare_first;

struct mpi_request *mpi_request_make(enum mpi_request_kind kind)
{
    struct mpi_request *request = spare_first;
    uintptr_t place = 0;
    if (request != NULL) {
        spare_first = request->next;
        place = request->place;
    } else {
        request = malloc(sizeof(*request));
    }
    if (request != NULL) {
        *request = (struct mpi_request){.kind = kind, .place = place};
    }
    return request;
}

static struct mpi_request sent = {
    .kind = MPI_REQUEST_DONE, .is_complete = true, .is_active = true, .is_everyones = true};

int mpi_requests_start(void)
{
    sent.handle = (MPI_Request)mpi_handle_make(MPI_KIND_REQUEST, &sent);
    return sent.handle == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

MPI_Request mpi_request_sent(void)
{
    return sent.handle;
}

void mpi_requests_clear(void)
{
    while (spare_first != NULL) {
        struct mpi_request *request = spare_first;
        spare_first = request->next;
        if (request->place != 0) {
            mpi_handle_release(MPI_KIND_REQUEST, request->place);
        }
        free(request);
    }
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

int mpi_request_handle_make(struct mpi_request *request)
{
    if (request->place != 0) {
        request->handle = (MPI_Request)request->place;
        mpi_handle_assign(MPI_KIND_REQUEST, request->place, request);
        request->place = 0;
        return MPI_SUCCESS;
    }
    request->handle = (MPI_Request)mpi_handle_make(MPI_KIND_REQUEST, request);
    return request->handle == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

void mpi_request_destroy(struct mpi_request *request)
{
    if (request->is_everyones) {
        return;
    }
    for (int part = 0; part < 2; part++) {
        if (request->parts[part] != NULL) {
            mpi_request_destroy(request->parts[part]);
        }
    }
    if (request->kind == MPI_REQUEST_COLLECTIVE) {
        request->actions->destroy(request->collective);
    }
    mpi_request_release(request);
    free(request->general);
    if (request->handle != NULL) {
        request->place = mpi_handle_put_by(MPI_KIND_REQUEST, (uintptr_t)request->handle);
        if (mpi_handle_has_wrapped(
                request->place)) { /* the next one would be an old one again: to the end of the queue */
            mpi_handle_release(MPI_KIND_REQUEST, request->place);
            request->place = 0;
        }
    }
    request->next = spare_first;
    spare_first = request;
}

void mpi_request_complete(struct mpi_request *request, int error)
{
    assert(!request->is_complete);
    request->error = error;
    request->is_complete = true;
    if (error != MPI_SUCCESS) {
        mpi_process.failed_requests += mpi_request_has_failed(request);
        mpi_process.has_lost = mpi_process.has_lost || error == MPI_ERR_PROC_ABORTED;
    }
    if (request->handle != NULL && request->is_active) {
        mpi_progress_pending(-1);
    }
    if (request->is_freed) {
        mpi_request_destroy(request);
    }
}

static bool request_is_complete(void *context)
{
    return mpi_request_poll(context);
}

bool mpi_request_poll(struct mpi_request *request)
{
    if (!request->is_complete && request->kind == MPI_REQUEST_SENDRECV) {
        struct mpi_request *const *parts = request->parts;
        if (mpi_request_has_failed(parts[0]) && !parts[1]->is_complete && mpi_match_withdraw(parts[1])) {
            mpi_request_complete(parts[1], parts[0]->error); /* its sender may wait for the message that was not sent */
        }
        if (parts[0]->is_complete && parts[1]->is_complete) {
            mpi_request_complete(request, parts[1]->error != MPI_SUCCESS ? parts[1]->error : parts[0]->error);
        }
    }
    return request->is_complete;
}

struct resting {
    const struct mpi_comm *comm;
    uint32_t references;
};

static void resting_count(void *object, void *context)
{
    struct mpi_request *request = object;
    struct resting *resting = context;
    bool is_freed = request->is_freed; /* then it is destroyed as soon as it is complete */
    bool is_complete = mpi_request_poll(request);
    if (is_freed || (!is_complete && (!request->is_persistent || request->is_active))) {
        return;
    }
    if (request->kind == MPI_REQUEST_SENDRECV) {
        for (int part = 0; part < 2; part++) {
            resting->references += request->parts[part]->comm == resting->comm;
        }
    } else if (request->comm == resting->comm) {
        resting->references += request->kind == MPI_REQUEST_COLLECTIVE ? 2u : 1u; /* its collective holds it, too */
    }
}

uint32_t mpi_requests_resting(const struct mpi_comm *comm)
{
    struct resting resting = {.comm = comm};
    mpi_handle_each(MPI_KIND_REQUEST, resting_count, &resting);
    return resting.references;
}

static void request_describe(void *context, struct mpi_said *said)
{
    mpi_describe_request(context, said);
}

void mpi_request_await(struct mpi_request *request)
{
    if (!mpi_request_poll(request)) {
        mpi_progress_wait(
            &(struct mpi_wait){.is_over = request_is_complete, .describe = request_describe, .context = request});
    }
}

void mpi_status_set_bytes(MPI_Status *status, MPI_Count bytes)
{
    memcpy(status->MPI_internal, &bytes, sizeof(bytes));
}

MPI_Count mpi_status_bytes(const MPI_Status *status)
{
    MPI_Count bytes;
    memcpy(&bytes, status->MPI_internal, sizeof(bytes));
    return bytes;
}

void mpi_status_empty(MPI_Status *status)
{
    *status = (MPI_Status){.MPI_SOURCE = MPI_ANY_SOURCE, .MPI_TAG = MPI_ANY_TAG, .MPI_ERROR = MPI_SUCCESS};
}

/* The result of the operation; MPI_ERROR is unchanged, since only calls with several statuses set it (MPI 5.0,
 * 3.2.5). */
static void status_fill(struct mpi_request *request, MPI_Status *status)
{
    int error = status->MPI_ERROR;
    const struct mpi_request *receive = request->kind == MPI_REQUEST_SENDRECV ? request->parts[1] : request;
    mpi_status_empty(status);
    if (receive->kind == MPI_REQUEST_RECEIVE && !receive->is_cancelled) {
        status->MPI_SOURCE = receive->matched_source;
        status->MPI_TAG = receive->matched_tag;
        mpi_status_set_bytes(status, receive->received);
    }
    if (request->kind == MPI_REQUEST_DONE && request->peer == MPI_PROC_NULL) {
        status->MPI_SOURCE = MPI_PROC_NULL;
    }
    status->MPI_internal[2] = receive->is_cancelled;
    status->MPI_ERROR = error;
}

int mpi_general_query(struct mpi_request *request, MPI_Status *status)
{
    return request->general->query == NULL ? MPI_SUCCESS : request->general->query(request->general->state, status);
}

int mpi_general_free(struct mpi_request *request)
{
    return request->general->free == NULL ? MPI_SUCCESS : request->general->free(request->general->state);
}

int mpi_request_status(struct mpi_request *request, MPI_Status *status)
{
    MPI_Status ignored;
    if (status != MPI_STATUS_IGNORE) {
        status_fill(request, status);
    }
    if (request->kind == MPI_REQUEST_GENERAL) {
        return mpi_general_query(request, status != MPI_STATUS_IGNORE ? status : &ignored);
    }
    return request->error;
}

int mpi_request_finish(struct mpi_request *request, MPI_Request *handle, MPI_Status *status)
{
    int error = mpi_request_status(request, status);
    if (request->is_persistent) {
        request->is_active = false;
        return error;
    }
    if (request->kind == MPI_REQUEST_GENERAL) {
        int code = mpi_general_free(request);
        error = error == MPI_SUCCESS ? code : error;
    }
    mpi_request_destroy(request);
    *handle = MPI_REQUEST_NULL;
    return error;
}
