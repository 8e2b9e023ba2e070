/* Starting, freeing and cancelling requests (MPI 5.0, 3.7.3, 3.8.4, 3.9). */
#include <stdlib.h>

#include "mpi/point/buffered.h"
#include "mpi/point/general.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/transport/outbox.h"
#include "mpi_functions.h"

void mpi_request_start(struct mpi_request *request)
{
    request->is_active = true;
    request->is_complete = false;
    request->is_cancelled = false;
    request->error = MPI_SUCCESS;
    mpi_progress_pending(1);
    switch (request->kind) {
    case MPI_REQUEST_SEND:
        if (request->mode == MPI_MODE_BUFFERED) {
            mpi_buffered_start(request);
        } else {
            mpi_send_start(request);
        }
        break;
    case MPI_REQUEST_RECEIVE:
        mpi_receive_start(request);
        break;
    case MPI_REQUEST_SENDRECV:
        mpi_receive_start(request->parts[1]);
        mpi_send_start(request->parts[0]);
        (void)mpi_request_poll(request);
        break;
    case MPI_REQUEST_COLLECTIVE:
        request->actions->start(request);
        break;
    case MPI_REQUEST_GENERAL:
    case MPI_REQUEST_DONE:
        mpi_request_complete(request, MPI_SUCCESS);
        break;
    }
}

/* A persistent request that may be started. */
static int startable_find(MPI_Request handle, struct mpi_request **request)
{
    *request = mpi_request_find(handle);
    if (*request == NULL || !(*request)->is_persistent) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "only persistent requests can be started");
    }
    if ((*request)->is_active) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "the request is active already; wait for it first");
    }
    return MPI_SUCCESS;
}

int mpi_start(MPI_Request *request)
{
    struct mpi_request *found;
    int code = startable_find(*request, &found);
    if (code == MPI_SUCCESS) {
        mpi_request_start(found);
    }
    return code;
}

int mpi_startall(int count, MPI_Request array_of_requests[])
{
    if (count < 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COUNT, "%d requests", count);
    }
    int code = MPI_SUCCESS;
    struct mpi_request *found;
    for (int index = 0; code == MPI_SUCCESS && index < count; index++) { /* all or none */
        code = startable_find(array_of_requests[index], &found);
    }
    for (int index = 0; code == MPI_SUCCESS && index < count; index++) {
        code = mpi_start(&array_of_requests[index]);
    }
    return code;
}

int mpi_request_free(MPI_Request *request)
{
    struct mpi_request *found = mpi_request_find(*request);
    if (found == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "%s",
                         *request == MPI_REQUEST_NULL ? "the request is MPI_REQUEST_NULL" : "unknown request");
    }
    *request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    if (found->kind == MPI_REQUEST_GENERAL && found->is_complete) {
        code = mpi_general_free(found);
    }
    bool under_way =
        found->kind == MPI_REQUEST_GENERAL ? !found->is_complete : found->is_active && !mpi_request_poll(found);
    if (under_way) {
        found->is_freed = true;
    } else {
        mpi_request_destroy(found);
    }
    return code;
}

/* Asks the receiver for a message that may not have been matched yet. */
static void send_cancel(struct mpi_request *request)
{
    if (request->offered.numbered.number == 0 || request->is_cancelling) {
        return; /* it has left, and completes without the receiver */
    }
    request->is_cancelling = true;
    struct {
        struct mpi_envelope envelope;
        struct mpi_answer answer;
    } head = {
        .envelope = {.context = request->comm->context, .tag = request->tag, .source = request->comm->rank},
        .answer = {.number = request->offered.numbered.number},
    };
    (void)mpi_notify(request->rank, mpi_lane_tag(request->comm->context, MPI_SENT_CANCEL), &head, sizeof(head));
}

int mpi_cancel(MPI_Request *request)
{
    struct mpi_request *found = mpi_request_find(*request);
    if (found == NULL || (!found->is_active && found->kind != MPI_REQUEST_GENERAL)) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "no active request");
    }
    if (found->kind == MPI_REQUEST_GENERAL) {
        return mpi_general_cancel(found);
    }
    if (found->kind == MPI_REQUEST_COLLECTIVE) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "collective operations cannot be cancelled");
    }
    if (found->is_complete) {
        return MPI_SUCCESS;
    }
    if (found->kind == MPI_REQUEST_SEND) {
        send_cancel(found);
    } else if (found->kind == MPI_REQUEST_RECEIVE && mpi_match_withdraw(found)) {
        found->is_cancelled = true;
        mpi_request_complete(found, MPI_SUCCESS);
    }
    return MPI_SUCCESS;
}
