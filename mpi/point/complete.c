/* Waiting for and testing requests (MPI 5.0, 3.7.3 to 3.7.6). */
#include <stdlib.h>

#include "mpi/point/describe.h"
#include "mpi/point/general.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/lock.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

int mpi_request_raise_lost(MPI_Comm comm, int peer)
{
    const struct mpi_comm *found = mpi_comm_find(comm);
    char text[320];
    if (peer < 0 || found == NULL) {
        return mpi_error(comm, MPI_ERR_PROC_ABORTED,
                         "a rank that the message may come from has ended, or is declared failed");
    }
    mpi_comm_lost_text(found, peer, text, sizeof(text));
    return mpi_error(comm, MPI_ERR_PROC_ABORTED, "%s", text);
}

int mpi_request_raise(const struct mpi_request *request, MPI_Comm comm, int error)
{
    const struct mpi_request *receive = request->kind == MPI_REQUEST_SENDRECV ? request->parts[1] : request;
    const char *why = request->kind == MPI_REQUEST_COLLECTIVE ? request->actions->why(request->collective) : NULL;
    if (why != NULL) {
        return mpi_error(comm, error, "%s", why);
    }
    if (error == MPI_ERR_TRUNCATE && receive != NULL) {
        return mpi_error(
            comm, error,
            "a message from rank %d with tag %d is longer than the %lld bytes that the receive has room for",
            receive->matched_source, receive->matched_tag, (long long)receive->bytes);
    }
    if (error == MPI_ERR_PROC_ABORTED) {
        const struct mpi_request *failed = request->kind != MPI_REQUEST_SENDRECV
                                               ? request
                                               : request->parts[mpi_request_has_failed(request->parts[0]) ? 0 : 1];
        return mpi_request_raise_lost(comm, failed->peer);
    }
    if (error == MPI_ERR_BUFFER && request->mode == MPI_MODE_BUFFERED) {
        return mpi_error(comm, error,
                         "no attached buffer has room for %lld bytes and MPI_BSEND_OVERHEAD; give MPI_Buffer_attach a "
                         "larger one",
                         (long long)request->bytes);
    }
    return mpi_error(comm, error, "the operation failed");
}

/* Null and inactive requests are complete with the empty status. */
static bool is_idle(const struct mpi_request *request)
{
    return request == NULL || (request->is_persistent && !request->is_active);
}

enum { FEW_REQUESTS = 64 };

/* The state of a wait for several requests. */
struct wait_list {
    int count;
    struct mpi_request **requests; /* looked up once */
    int next;                      /* first that may not be complete */
    int error;                     /* of the first that failed */
    MPI_Comm comm;                 /* where it did */
    struct mpi_request *few[FEW_REQUESTS];
};

static void list_close(struct wait_list *list)
{
    if (list->requests != list->few) {
        free(list->requests);
    }
}

/* The requests of an array; list_close follows, unless it fails. */
static int list_open(struct wait_list *list, int count, const MPI_Request handles[])
{
    if (count < 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COUNT, "%d requests", count);
    }
    list->count = count;
    list->next = 0;
    list->error = MPI_SUCCESS;
    list->comm = MPI_COMM_NULL;
    list->requests = count <= FEW_REQUESTS ? list->few : malloc((size_t)count * sizeof(struct mpi_request *));
    if (list->requests == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for %d requests", count);
    }
    for (int index = 0; index < count; index++) {
        list->requests[index] = mpi_request_find(handles[index]);
        if (list->requests[index] == NULL && handles[index] != MPI_REQUEST_NULL) {
            list_close(list);
            return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "request %d of %d is unknown", index, count);
        }
    }
    return MPI_SUCCESS;
}

static MPI_Comm comm_of(const struct mpi_request *request)
{
    const struct mpi_request *part = request->kind == MPI_REQUEST_SENDRECV ? request->parts[0] : request;
    return part->comm == NULL ? MPI_COMM_NULL : part->comm->handle;
}

/* Ends one request and raises its error. */
static int finish_raise(struct mpi_request *request, MPI_Request *handle, MPI_Status *status)
{
    int raised =
        request->error == MPI_SUCCESS ? MPI_SUCCESS : mpi_request_raise(request, comm_of(request), request->error);
    int code = mpi_request_finish(request, handle, status);
    return raised != MPI_SUCCESS ? raised : code;
}

static void status_idle(MPI_Status *status)
{
    if (status != MPI_STATUS_IGNORE) {
        mpi_status_empty(status);
    }
}

static int request_find(MPI_Request handle, struct mpi_request **request)
{
    *request = mpi_request_find(handle);
    if (*request == NULL && handle != MPI_REQUEST_NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "unknown request");
    }
    return MPI_SUCCESS;
}

/* Whether it is over, now or after a round of progress. */
static bool test_once(bool (*is_over)(void *), void *context)
{
    if (is_over(context)) {
        return true;
    }
    mpi_progress_poll();
    return is_over(context);
}

static bool request_is_over(void *context)
{
    return mpi_request_poll(context);
}

int mpi_wait(MPI_Request *request, MPI_Status *status)
{
    struct mpi_request *found;
    int code = request_find(*request, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (is_idle(found)) {
        status_idle(status);
        return MPI_SUCCESS;
    }
    mpi_request_await(found);
    return finish_raise(found, request, status);
}

int mpi_test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct mpi_request *found;
    int code = request_find(*request, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (is_idle(found)) {
        *flag = 1;
        status_idle(status);
        return MPI_SUCCESS;
    }
    *flag = test_once(request_is_over, found);
    return *flag ? finish_raise(found, request, status) : MPI_SUCCESS;
}

int mpi_request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    struct mpi_request *found;
    int code = request_find(request, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (is_idle(found)) {
        *flag = 1;
        status_idle(status);
        return MPI_SUCCESS;
    }
    *flag = test_once(request_is_over, found);
    if (*flag) {
        (void)mpi_request_status(found, status);
    }
    return MPI_SUCCESS;
}

static bool all_are_complete(void *context)
{
    struct wait_list *list = context;
    while (list->next < list->count &&
           (is_idle(list->requests[list->next]) || mpi_request_poll(list->requests[list->next]))) {
        list->next++;
    }
    return list->next == list->count;
}

/* True also if one has failed: the others may never complete, since other ranks wait for the failed message. */
static bool all_are_complete_or_one_has_failed(void *context)
{
    const struct wait_list *list = context;
    if (all_are_complete(context)) {
        return true;
    }
    for (int index = 0; mpi_process.failed_requests > 0 && index < list->count; index++) {
        if (!is_idle(list->requests[index]) && mpi_request_poll(list->requests[index]) &&
            mpi_request_has_failed(list->requests[index])) {
            return true;
        }
    }
    return false;
}

/* True if one is complete, or none is active. */
static bool any_is_complete(void *context)
{
    struct wait_list *list = context;
    bool any_active = false;
    for (int index = 0; index < list->count; index++) {
        if (is_idle(list->requests[index])) {
            continue;
        }
        if (mpi_request_poll(list->requests[index])) {
            return true;
        }
        any_active = true;
    }
    return !any_active;
}

static bool is_done(struct mpi_request *request)
{
    return !is_idle(request) && mpi_request_poll(request);
}

/* Ends one of several, with the status at `place`. Their MPI_ERROR stays as it is unless one fails (MPI 5.0, 3.2.5). */
static void one_finish(struct wait_list *list, int at, MPI_Request handles[], MPI_Status statuses[], int place)
{
    MPI_Status *status = statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[place];
    MPI_Comm comm = comm_of(list->requests[at]);
    int error = mpi_request_finish(list->requests[at], &handles[at], status);
    if (error != MPI_SUCCESS && list->error == MPI_SUCCESS) {
        list->error = error;
        list->comm = comm;
        for (int earlier = 0; status != MPI_STATUS_IGNORE && earlier < place; earlier++) {
            statuses[earlier].MPI_ERROR = MPI_SUCCESS;
        }
    }
    if (list->error != MPI_SUCCESS && status != MPI_STATUS_IGNORE) {
        status->MPI_ERROR = error;
    }
}

/* With several statuses each has its error (MPI_ERR_IN_STATUS), without them the first one is raised as it is. */
static int list_raise(const struct wait_list *list, const MPI_Status statuses[])
{
    if (list->error == MPI_SUCCESS) {
        return MPI_SUCCESS;
    }
    return mpi_error(list->comm, statuses == MPI_STATUSES_IGNORE ? list->error : MPI_ERR_IN_STATUS,
                     "one of %d operations failed: %s", list->count, mpi_error_text(list->error));
}

/* Incomplete ones stay unchanged, and their statuses show it (MPI 5.0, 3.7.5). */
static int all_finish(struct wait_list *list, MPI_Request handles[], MPI_Status statuses[])
{
    for (int at = 0; at < list->count; at++) {
        if (is_idle(list->requests[at])) {
            status_idle(statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[at]);
        } else if (mpi_request_poll(list->requests[at])) {
            one_finish(list, at, handles, statuses, at);
            list->requests[at] = NULL;
        }
    }
    for (int at = 0; at < list->count && statuses != MPI_STATUSES_IGNORE; at++) {
        if (!is_idle(list->requests[at])) {
            statuses[at].MPI_ERROR = MPI_ERR_PENDING;
        }
    }
    return list_raise(list, statuses);
}

static void all_describe(void *context, struct mpi_said *said)
{
    const struct wait_list *list = context;
    mpi_describe_requests(list->requests, list->count, false, said);
}

static void any_describe(void *context, struct mpi_said *said)
{
    const struct wait_list *list = context;
    mpi_describe_requests(list->requests, list->count, true, said);
}

int mpi_waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[])
{
    struct wait_list list;
    int code = list_open(&list, count, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (!all_are_complete(&list)) {
        mpi_progress_wait(&(struct mpi_wait){
            .is_over = all_are_complete_or_one_has_failed, .describe = all_describe, .context = &list});
    }
    code = all_finish(&list, array_of_requests, array_of_statuses);
    list_close(&list);
    return code;
}

int mpi_testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[])
{
    struct wait_list list;
    int code = list_open(&list, count, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    *flag = test_once(all_are_complete, &list);
    code = *flag ? all_finish(&list, array_of_requests, array_of_statuses) : MPI_SUCCESS;
    list_close(&list);
    return code;
}

/* The first complete one; MPI_UNDEFINED, with the empty status: all are idle. */
static int done_find(const struct wait_list *list, MPI_Status *status)
{
    for (int at = 0; at < list->count; at++) {
        if (is_done(list->requests[at])) {
            return at;
        }
    }
    status_idle(status);
    return MPI_UNDEFINED;
}

static int any_finish(struct wait_list *list, MPI_Request handles[], int *index, MPI_Status *status)
{
    *index = done_find(list, status);
    return *index == MPI_UNDEFINED ? MPI_SUCCESS : finish_raise(list->requests[*index], &handles[*index], status);
}

int mpi_waitany(int count, MPI_Request array_of_requests[], int *index, MPI_Status *status)
{
    struct wait_list list;
    int code = list_open(&list, count, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (!any_is_complete(&list)) {
        mpi_progress_wait(&(struct mpi_wait){.is_over = any_is_complete, .describe = any_describe, .context = &list});
    }
    code = any_finish(&list, array_of_requests, index, status);
    list_close(&list);
    return code;
}

int mpi_testany(int count, MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status)
{
    struct wait_list list;
    int code = list_open(&list, count, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    *flag = test_once(any_is_complete, &list);
    *index = MPI_UNDEFINED;
    code = *flag ? any_finish(&list, array_of_requests, index, status) : MPI_SUCCESS;
    list_close(&list);
    return code;
}

/* Ends all that are complete. *outcount is MPI_UNDEFINED if all are idle. */
static int some_finish(struct wait_list *list, MPI_Request handles[], int *outcount, int indices[],
                       MPI_Status statuses[])
{
    bool any_active = false;
    *outcount = 0;
    for (int at = 0; at < list->count; at++) {
        any_active = any_active || !is_idle(list->requests[at]);
        if (is_done(list->requests[at])) {
            one_finish(list, at, handles, statuses, *outcount);
            indices[(*outcount)++] = at;
        }
    }
    if (!any_active) {
        *outcount = MPI_UNDEFINED;
    }
    return list_raise(list, statuses);
}

int mpi_waitsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                 MPI_Status array_of_statuses[])
{
    struct wait_list list;
    int code = list_open(&list, incount, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (!any_is_complete(&list)) {
        mpi_progress_wait(&(struct mpi_wait){.is_over = any_is_complete, .describe = any_describe, .context = &list});
    }
    code = some_finish(&list, array_of_requests, outcount, array_of_indices, array_of_statuses);
    list_close(&list);
    return code;
}

int mpi_testsome(int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
                 MPI_Status array_of_statuses[])
{
    struct wait_list list;
    int code = list_open(&list, incount, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    (void)test_once(any_is_complete, &list);
    code = some_finish(&list, array_of_requests, outcount, array_of_indices, array_of_statuses);
    list_close(&list);
    return code;
}

int mpi_request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag,
                               MPI_Status array_of_statuses[])
{
    struct wait_list list;
    int code = list_open(&list, count, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    *flag = test_once(all_are_complete, &list);
    for (int index = 0; *flag && array_of_statuses != MPI_STATUSES_IGNORE && index < count; index++) {
        if (is_idle(list.requests[index])) {
            mpi_status_empty(&array_of_statuses[index]);
        } else {
            (void)mpi_request_status(list.requests[index], &array_of_statuses[index]);
        }
    }
    list_close(&list);
    return MPI_SUCCESS;
}

int mpi_request_get_status_any(int count, const MPI_Request array_of_requests[], int *index, int *flag,
                               MPI_Status *status)
{
    struct wait_list list;
    int code = list_open(&list, count, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    *flag = test_once(any_is_complete, &list);
    *index = *flag ? done_find(&list, status) : MPI_UNDEFINED;
    if (*index != MPI_UNDEFINED) {
        (void)mpi_request_status(list.requests[*index], status);
    }
    list_close(&list);
    return MPI_SUCCESS;
}

int mpi_request_get_status_some(int incount, const MPI_Request array_of_requests[], int *outcount,
                                int array_of_indices[], MPI_Status array_of_statuses[])
{
    struct wait_list list;
    int code = list_open(&list, incount, array_of_requests);
    if (code != MPI_SUCCESS) {
        return code;
    }
    (void)test_once(any_is_complete, &list);
    bool any_active = false;
    *outcount = 0;
    for (int at = 0; at < incount; at++) {
        any_active = any_active || !is_idle(list.requests[at]);
        if (!is_done(list.requests[at])) {
            continue;
        }
        if (array_of_statuses != MPI_STATUSES_IGNORE) {
            (void)mpi_request_status(list.requests[at], &array_of_statuses[*outcount]);
        }
        array_of_indices[(*outcount)++] = at;
    }
    if (!any_active) {
        *outcount = MPI_UNDEFINED;
    }
    list_close(&list);
    return MPI_SUCCESS;
}
