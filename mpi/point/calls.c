/* The calls that start sends and receives (MPI 5.0, 3.2, 3.4, 3.7, 3.9, 3.10). */
#include <stdlib.h>

#include "mpi/point/buffered.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi_functions.h"

int mpi_request_prepare(struct mpi_request *request, const void *buffer, MPI_Count count, MPI_Datatype datatype,
                        int peer, int tag, MPI_Comm comm)
{
    bool is_send = request->kind == MPI_REQUEST_SEND;
    struct mpi_comm *found = mpi_comm_find(comm);
    struct mpi_type *type;
    int code = found == NULL ? mpi_comm_unknown(comm) : mpi_type_check(comm, count, datatype, &type);
    if (code != MPI_SUCCESS) {
        return code;
    }
    bool is_rank = peer >= 0 && peer < found->size;
    if (!is_rank && peer != MPI_PROC_NULL && (is_send || peer != MPI_ANY_SOURCE)) {
        return mpi_error(comm, MPI_ERR_RANK, "%s %d is none of the %d ranks of %s", is_send ? "destination" : "source",
                         peer, found->size, found->name);
    }
    if ((tag < 0 && (is_send || tag != MPI_ANY_TAG)) || tag > MPI_TAG_MAX) {
        return mpi_error(comm, MPI_ERR_TAG,
                         is_send ? "tag %d of a message to send is outside 0 .. %d"
                                 : "tag %d of a receive is neither MPI_ANY_TAG nor within 0 .. %d",
                         tag, MPI_TAG_MAX);
    }
    if (mpi_buffer_is_wrong(buffer, type, type->size * count)) {
        return mpi_error(comm, MPI_ERR_BUFFER, "the buffer is %s, but %lld elements %s",
                         buffer == NULL ? "NULL" : "MPI_IN_PLACE", (long long)count,
                         is_send ? "are to be sent" : "may come");
    }
    request->comm = found;
    request->buffer = (void *)(uintptr_t)buffer;
    request->count = count;
    request->peer = peer;
    request->tag = tag;
    request->type = type;
    request->bytes = type->size * count;
    mpi_comm_retain(found);
    mpi_type_retain(type);
    return MPI_SUCCESS;
}

/* Waits for a blocking call's own request and raises what went wrong. */
static int blocking_end(struct mpi_request *request, MPI_Comm comm, MPI_Status *status)
{
    mpi_request_await(request);
    int error = mpi_request_status(request, status);
    mpi_request_release(request);
    return error == MPI_SUCCESS ? MPI_SUCCESS : mpi_request_raise(request, comm, error);
}

static int send_blocking(enum mpi_send_mode mode, const void *buf, MPI_Count count, MPI_Datatype datatype, int dest,
                         int tag, MPI_Comm comm)
{
    struct mpi_request request = {.kind = MPI_REQUEST_SEND, .mode = mode};
    int code = mpi_request_prepare(&request, buf, count, datatype, dest, tag, comm);
    if (code != MPI_SUCCESS) {
        return code;
    }
    mpi_send_start(&request);
    return blocking_end(&request, comm, MPI_STATUS_IGNORE);
}

int mpi_send(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    if (mpi_send_quick(buf, count, datatype, dest, tag, comm)) {
        return MPI_SUCCESS;
    }
    return send_blocking(MPI_MODE_STANDARD, buf, count, datatype, dest, tag, comm);
}

int mpi_ssend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return send_blocking(MPI_MODE_SYNCHRONOUS, buf, count, datatype, dest, tag, comm);
}

int mpi_rsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    return send_blocking(MPI_MODE_READY, buf, count, datatype, dest, tag, comm);
}

int mpi_recv(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct mpi_request request = {.kind = MPI_REQUEST_RECEIVE};
    int code = mpi_request_prepare(&request, buf, count, datatype, source, tag, comm);
    if (code != MPI_SUCCESS) {
        return code;
    }
    mpi_receive_start(&request);
    return blocking_end(&request, comm, status);
}

/* A request with a handle for a call that prepares it; `start`: at once, else it is persistent. */
static int request_return(struct mpi_request *made, int code, bool start, MPI_Comm comm, MPI_Request *request)
{
    if (code == MPI_SUCCESS && mpi_request_handle_make(made) != MPI_SUCCESS) {
        code = mpi_error(comm, MPI_ERR_NO_MEM, "too many requests at a time");
    }
    if (code != MPI_SUCCESS) {
        mpi_request_destroy(made);
        return code;
    }
    *request = made->handle;
    made->is_persistent = !start;
    if (start) {
        mpi_request_start(made);
    }
    return MPI_SUCCESS;
}

static int send_request(enum mpi_send_mode mode, bool start, const void *buf, MPI_Count count, MPI_Datatype datatype,
                        int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    struct mpi_request *made = mpi_request_make(MPI_REQUEST_SEND);
    if (made == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a request");
    }
    made->mode = mode;
    int code = mpi_request_prepare(made, buf, count, datatype, dest, tag, comm);
    return request_return(made, code, start, comm, request);
}

static int receive_request(bool start, void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag,
                           MPI_Comm comm, MPI_Request *request)
{
    struct mpi_request *made = mpi_request_make(MPI_REQUEST_RECEIVE);
    if (made == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a request");
    }
    int code = mpi_request_prepare(made, buf, count, datatype, source, tag, comm);
    return request_return(made, code, start, comm, request);
}

int mpi_isend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    if (mpi_send_quick(buf, count, datatype, dest, tag, comm)) {
        *request = mpi_request_sent();
        return MPI_SUCCESS;
    }
    return send_request(MPI_MODE_STANDARD, true, buf, count, datatype, dest, tag, comm, request);
}

int mpi_issend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    return send_request(MPI_MODE_SYNCHRONOUS, true, buf, count, datatype, dest, tag, comm, request);
}

int mpi_irsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    return send_request(MPI_MODE_READY, true, buf, count, datatype, dest, tag, comm, request);
}

int mpi_ibsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
               MPI_Request *request)
{
    return send_request(MPI_MODE_BUFFERED, true, buf, count, datatype, dest, tag, comm, request);
}

int mpi_irecv(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
              MPI_Request *request)
{
    return receive_request(true, buf, count, datatype, source, tag, comm, request);
}

int mpi_send_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    return send_request(MPI_MODE_STANDARD, false, buf, count, datatype, dest, tag, comm, request);
}

int mpi_ssend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    return send_request(MPI_MODE_SYNCHRONOUS, false, buf, count, datatype, dest, tag, comm, request);
}

int mpi_rsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    return send_request(MPI_MODE_READY, false, buf, count, datatype, dest, tag, comm, request);
}

int mpi_bsend_init(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    return send_request(MPI_MODE_BUFFERED, false, buf, count, datatype, dest, tag, comm, request);
}

int mpi_recv_init(void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    return receive_request(false, buf, count, datatype, source, tag, comm, request);
}

int mpi_bsend(const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    MPI_Request request;
    int code = send_request(MPI_MODE_BUFFERED, true, buf, count, datatype, dest, tag, comm, &request);
    return code != MPI_SUCCESS ? code : mpi_wait(&request, MPI_STATUS_IGNORE);
}

/* A send and a receive as one request; on failure, the existing part is freed. */
static int pair_make(struct mpi_request **pair, MPI_Comm comm)
{
    *pair = mpi_request_make(MPI_REQUEST_SENDRECV);
    if (*pair != NULL) {
        (*pair)->parts[0] = mpi_request_make(MPI_REQUEST_SEND);
        (*pair)->parts[1] = mpi_request_make(MPI_REQUEST_RECEIVE);
    }
    if (*pair == NULL || (*pair)->parts[0] == NULL || (*pair)->parts[1] == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a request");
    }
    return MPI_SUCCESS;
}

int mpi_isendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                  MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,
                  MPI_Request *request)
{
    struct mpi_request *pair;
    int code = pair_make(&pair, comm);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = mpi_request_prepare(pair->parts[0], sendbuf, sendcount, sendtype, dest, sendtag, comm);
    if (code == MPI_SUCCESS) {
        code = mpi_request_prepare(pair->parts[1], recvbuf, recvcount, recvtype, source, recvtag, comm);
    }
    return request_return(pair, code, true, comm, request);
}

int mpi_sendrecv(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                 MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    int code = mpi_isendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                             comm, &request);
    return code != MPI_SUCCESS ? code : mpi_wait(&request, status);
}

int mpi_isendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source,
                          int recvtag, MPI_Comm comm, MPI_Request *request)
{
    struct mpi_request *pair;
    int code = pair_make(&pair, comm);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = mpi_request_prepare(pair->parts[0], buf, count, datatype, dest, sendtag, comm);
    if (code == MPI_SUCCESS) {
        code = mpi_request_prepare(pair->parts[1], buf, count, datatype, source, recvtag, comm);
    }
    if (code == MPI_SUCCESS) {
        code = mpi_send_copy(pair->parts[0]);
        if (code != MPI_SUCCESS) {
            code = mpi_error(comm, code, "no memory for a copy of the message");
        }
    }
    return request_return(pair, code, true, comm, request);
}

int mpi_sendrecv_replace(void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int sendtag, int source,
                         int recvtag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Request request;
    int code = mpi_isendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, &request);
    return code != MPI_SUCCESS ? code : mpi_wait(&request, status);
}
