/* Probes, and receives of messages found by matched probes (MPI 5.0, 3.8). */
#include <stdlib.h>

#include "mpi/point/describe.h"
#include "mpi/point/lost.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/state/handle.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

struct probe {
    struct mpi_comm *comm;
    int source;
    int tag;
    bool take;
    bool is_lost; /* nothing was found, and the source, or one that may be it, is lost */
    struct mpi_message *found;
};

static bool probe_look(void *context)
{
    struct probe *probe = context;
    probe->found = mpi_match_find(probe->comm, probe->source, probe->tag, probe->take);
    return probe->found != NULL;
}

/* The same for waiting calls. */
static bool probe_is_over(void *context)
{
    struct probe *probe = context;
    probe->is_lost = !probe_look(probe) && mpi_lost(probe->comm, probe->source);
    return probe->found != NULL || probe->is_lost;
}

static void probe_describe(void *context, struct mpi_said *said)
{
    const struct probe *probe = context;
    mpi_describe(said, "a message ");
    mpi_describe_message(probe->comm, probe->source, probe->tag, said);
}

static int probe_await(struct probe *probe)
{
    if (probe->source != MPI_PROC_NULL && !probe_look(probe)) {
        mpi_progress_wait(&(struct mpi_wait){.is_over = probe_is_over, .describe = probe_describe, .context = probe});
    }
    return !probe->is_lost ? MPI_SUCCESS : mpi_request_raise_lost(probe->comm->handle, probe->source);
}

/* The arguments of all probes. */
static int probe_prepare(int source, int tag, MPI_Comm comm, bool take, struct probe *probe)
{
    *probe = (struct probe){.comm = mpi_comm_find(comm), .source = source, .tag = tag, .take = take};
    if (probe->comm == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "%s",
                         comm == MPI_COMM_NULL ? "the communicator is MPI_COMM_NULL" : "unknown communicator");
    }
    if (source < MPI_PROC_NULL || source == MPI_ANY_TAG || source >= probe->comm->size) {
        return mpi_error(comm, MPI_ERR_RANK, "source %d is none of the %d ranks of %s", source, probe->comm->size,
                         probe->comm->name);
    }
    if ((tag < 0 && tag != MPI_ANY_TAG) || tag > MPI_TAG_MAX) {
        return mpi_error(comm, MPI_ERR_TAG, "tag %d is neither MPI_ANY_TAG nor within 0 .. %d", tag, MPI_TAG_MAX);
    }
    return MPI_SUCCESS;
}

static void probe_status(const struct mpi_message *message, MPI_Status *status)
{
    if (status == MPI_STATUS_IGNORE) {
        return;
    }
    int error = status->MPI_ERROR;
    mpi_status_empty(status);
    status->MPI_ERROR = error;
    status->MPI_SOURCE = message == NULL ? MPI_PROC_NULL : message->arrival.envelope.source;
    status->MPI_TAG = message == NULL ? MPI_ANY_TAG : message->arrival.envelope.tag;
    mpi_status_set_bytes(status, message == NULL ? 0 : (MPI_Count)message->arrival.offer.bytes);
}

int mpi_probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct probe probe;
    int code = probe_prepare(source, tag, comm, false, &probe);
    code = code != MPI_SUCCESS ? code : probe_await(&probe);
    if (code == MPI_SUCCESS) {
        probe_status(probe.found, status);
    }
    return code;
}

/* Without waiting: *flag is 0 if there is no such message yet. */
static int probe_once(struct probe *probe, int *flag)
{
    *flag = probe->source == MPI_PROC_NULL || probe_look(probe);
    if (!*flag) {
        mpi_progress_poll();
        *flag = probe_look(probe);
    }
    return !*flag && mpi_lost(probe->comm, probe->source) ? mpi_request_raise_lost(probe->comm->handle, probe->source)
                                                          : MPI_SUCCESS;
}

int mpi_iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    struct probe probe;
    int code = probe_prepare(source, tag, comm, false, &probe);
    code = code != MPI_SUCCESS ? code : probe_once(&probe, flag);
    if (code == MPI_SUCCESS && *flag) {
        probe_status(probe.found, status);
    }
    return code;
}

/* A handle for the message that was found; without one it was from MPI_PROC_NULL. */
static int message_return(struct probe *probe, MPI_Message *message, MPI_Status *status)
{
    probe_status(probe->found, status);
    *message = MPI_MESSAGE_NO_PROC;
    if (probe->found == NULL) {
        return MPI_SUCCESS;
    }
    uintptr_t handle = mpi_handle_make(MPI_KIND_MESSAGE, probe->found);
    if (handle == 0) {
        return mpi_error(probe->comm->handle, MPI_ERR_NO_MEM, "too many matched messages at a time");
    }
    mpi_comm_retain(probe->comm);
    probe->found->handle = (MPI_Message)handle;
    *message = probe->found->handle;
    return MPI_SUCCESS;
}

int mpi_mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct probe probe;
    int code = probe_prepare(source, tag, comm, true, &probe);
    code = code != MPI_SUCCESS ? code : probe_await(&probe);
    return code != MPI_SUCCESS ? code : message_return(&probe, message, status);
}

int mpi_improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    struct probe probe;
    int code = probe_prepare(source, tag, comm, true, &probe);
    code = code != MPI_SUCCESS ? code : probe_once(&probe, flag);
    if (code != MPI_SUCCESS || *flag) {
        return code != MPI_SUCCESS ? code : message_return(&probe, message, status);
    }
    *message = MPI_MESSAGE_NULL;
    return MPI_SUCCESS;
}

int mpi_imrecv(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request)
{
    struct mpi_message *found = mpi_handle_object(MPI_KIND_MESSAGE, (uintptr_t)*message);
    bool from_nobody = *message == MPI_MESSAGE_NO_PROC;
    if (found == NULL && !from_nobody) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_REQUEST, "%s",
                         *message == MPI_MESSAGE_NULL ? "the message is MPI_MESSAGE_NULL" : "unknown message");
    }
    struct mpi_request *made = mpi_request_make(MPI_REQUEST_RECEIVE);
    if (made == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for a request");
    }
    struct mpi_comm *comm = from_nobody ? mpi_comm_self : found->comm;
    int code = mpi_request_prepare(made, buf, count, datatype, from_nobody ? MPI_PROC_NULL : MPI_ANY_SOURCE,
                                   MPI_ANY_TAG, comm->is_freed ? MPI_COMM_SELF : comm->handle);
    if (code == MPI_SUCCESS && mpi_request_handle_make(made) != MPI_SUCCESS) {
        code = mpi_error(comm->handle, MPI_ERR_NO_MEM, "too many requests at a time");
    }
    if (code != MPI_SUCCESS) {
        mpi_request_destroy(made);
        return code;
    }
    *message = MPI_MESSAGE_NULL;
    *request = made->handle;
    made->is_active = true;
    mpi_progress_pending(1);
    if (from_nobody) {
        mpi_receive_start(made);
        return MPI_SUCCESS;
    }
    mpi_handle_free(MPI_KIND_MESSAGE, (uintptr_t)found->handle);
    made->peer = found->arrival.envelope.source;
    mpi_receive_message(made, found);
    mpi_comm_release(comm);
    return MPI_SUCCESS;
}

int mpi_mrecv(void *buf, MPI_Count count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status)
{
    MPI_Request request;
    int code = mpi_imrecv(buf, count, datatype, message, &request);
    return code != MPI_SUCCESS ? code : mpi_wait(&request, status);
}
