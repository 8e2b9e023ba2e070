/* Trace: records what each rank of a program does, for `causeway bench replay`: loaded in front of the MPI library
 * (LD_PRELOAD), it writes FOLDER/RANK.trace (trace.h) if CAUSEWAY_TRACE names a FOLDER. MPI_Pcontrol(1) begins the
 * trace anew, MPI_Pcontrol(0) ends it: so kernels mark what they time; otherwise it is all from MPI_Init to
 * MPI_Finalize. For programs of one thread. Calls of trace_refused.c end the trace. */
#include <stdlib.h>

#include "apps/kernels/trace_record.h"

/* ---- life ---- */

int MPI_Init(int *argc, char ***argv)
{
    int status = PMPI_Init(argc, argv);
    trace_open();
    return status;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int status = PMPI_Init_thread(argc, argv, required, provided);
    trace_open();
    return status;
}

int MPI_Finalize(void)
{
    trace_enter();
    trace_close();
    return PMPI_Finalize();
}

int MPI_Pcontrol(const int level, ...)
{
    trace_enter();
    if (level == 0) {
        trace_close();
    } else if (level == 1) {
        trace_restart();
    }
    trace_leave();
    return MPI_SUCCESS;
}

/* ---- messages ---- */

int MPI_Send(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm)
{
    trace_enter();
    int64_t number = trace_send("MPI_Send", buf, count, datatype, dest, tag, comm);
    int status = PMPI_Send(buf, count, datatype, dest, tag, comm);
    trace_sent(number);
    trace_leave();
    return status;
}

int MPI_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own = {.MPI_SOURCE = MPI_PROC_NULL};
    MPI_Status *known = status == MPI_STATUS_IGNORE ? &own : status;
    trace_enter();
    int code = PMPI_Recv(buf, count, datatype, source, tag, comm, known);
    if (trace_communicator("MPI_Recv", comm)) {
        trace_receive(known, datatype);
    }
    trace_leave();
    return code;
}

int MPI_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
                 int recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    MPI_Status own = {.MPI_SOURCE = MPI_PROC_NULL};
    MPI_Status *known = status == MPI_STATUS_IGNORE ? &own : status;
    trace_enter();
    int64_t number = trace_send("MPI_Sendrecv", sendbuf, sendcount, sendtype, dest, sendtag, comm);
    int code = PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag,
                             comm, known);
    trace_receive(known, recvtype);
    trace_sent(number);
    trace_leave();
    return code;
}

int MPI_Isend(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request)
{
    trace_enter();
    struct trace_request kept = {.number = trace_send("MPI_Isend", buf, count, datatype, dest, tag, comm)};
    int status = PMPI_Isend(buf, count, datatype, dest, tag, comm, request);
    kept.request = *request;
    trace_request_keep("MPI_Isend", &kept);
    trace_leave();
    return status;
}

int MPI_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    trace_enter();
    int status = PMPI_Irecv(buf, count, datatype, source, tag, comm, request);
    if (trace_communicator("MPI_Irecv", comm)) {
        trace_request_keep("MPI_Irecv",
                           &(struct trace_request){.request = *request, .type = datatype, .is_receive = true});
    }
    trace_leave();
    return status;
}

/* ---- persistent requests ---- */

int MPI_Send_init(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
                  MPI_Request *request)
{
    trace_enter();
    int status = PMPI_Send_init(buf, count, datatype, dest, tag, comm, request);
    if (trace_communicator("MPI_Send_init", comm)) {
        trace_request_keep("MPI_Send_init", &(struct trace_request){.request = *request,
                                                                    .type = datatype,
                                                                    .data = buf,
                                                                    .count = count,
                                                                    .peer = dest,
                                                                    .tag = tag,
                                                                    .number = -1,
                                                                    .is_persistent = true});
    }
    trace_leave();
    return status;
}

int MPI_Recv_init(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    trace_enter();
    int status = PMPI_Recv_init(buf, count, datatype, source, tag, comm, request);
    if (trace_communicator("MPI_Recv_init", comm)) {
        trace_request_keep(
            "MPI_Recv_init",
            &(struct trace_request){.request = *request, .type = datatype, .is_receive = true, .is_persistent = true});
    }
    trace_leave();
    return status;
}

static void started(MPI_Request request)
{
    struct trace_request *kept = trace_request_find(request);
    if (kept == NULL) {
        trace_refuse("MPI_Start", "starts a request that was made before the trace began");
    } else if (!kept->is_receive) {
        kept->number =
            trace_send("MPI_Start", kept->data, kept->count, kept->type, kept->peer, kept->tag, MPI_COMM_WORLD);
    }
}

int MPI_Start(MPI_Request *request)
{
    trace_enter();
    started(*request);
    int status = PMPI_Start(request);
    trace_leave();
    return status;
}

int MPI_Startall(int count, MPI_Request array_of_requests[])
{
    trace_enter();
    for (int i = 0; i < count; i++) {
        started(array_of_requests[i]);
    }
    int status = PMPI_Startall(count, array_of_requests);
    trace_leave();
    return status;
}

int MPI_Request_free(MPI_Request *request)
{
    struct trace_request *kept = trace_request_find(*request);
    if (kept != NULL) {
        trace_request_forget(kept);
    }
    return PMPI_Request_free(request);
}

/* ---- waiting ---- */

int MPI_Wait(MPI_Request *request, MPI_Status *status)
{
    MPI_Status own = {.MPI_SOURCE = MPI_PROC_NULL};
    MPI_Status *known = status == MPI_STATUS_IGNORE ? &own : status;
    MPI_Request awaited = *request;
    trace_enter();
    int code = PMPI_Wait(request, known);
    trace_request_done(awaited, known);
    trace_leave();
    return code;
}

int MPI_Waitall(int count, MPI_Request array_of_requests[], MPI_Status array_of_statuses[])
{
    trace_enter();
    size_t room = count > 0 ? (size_t)count : 1;
    MPI_Status *own = array_of_statuses == MPI_STATUSES_IGNORE ? calloc(room, sizeof(*own)) : NULL;
    MPI_Request *awaited = calloc(room, sizeof(*awaited));
    MPI_Status *known = own != NULL ? own : array_of_statuses;
    for (int i = 0; i < count && awaited != NULL; i++) {
        awaited[i] = array_of_requests[i];
    }
    int code = PMPI_Waitall(count, array_of_requests, known);
    if (awaited == NULL || known == MPI_STATUSES_IGNORE) {
        trace_refuse("MPI_Waitall", "finds no memory");
    } else {
        for (int i = 0; i < count; i++) {
            trace_request_done(awaited[i], &known[i]);
        }
    }
    free(awaited);
    free(own);
    trace_leave();
    return code;
}

/* ---- calls of all ranks ---- */

int MPI_Barrier(MPI_Comm comm)
{
    trace_enter();
    int status = PMPI_Barrier(comm);
    trace_collective("MPI_Barrier", TRACE_BARRIER, 0, MPI_BYTE, comm);
    trace_leave();
    return status;
}

int MPI_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    trace_enter();
    int status = PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
    trace_collective("MPI_Allreduce", TRACE_ALLREDUCE, count, datatype, comm);
    trace_leave();
    return status;
}

static int world_rank(int *ranks)
{
    int rank = 0;
    (void)PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    (void)PMPI_Comm_size(MPI_COMM_WORLD, ranks);
    return rank;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    trace_enter();
    int status = PMPI_Bcast(buffer, count, datatype, root, comm);
    if (trace_communicator("MPI_Bcast", comm)) {
        int ranks, rank = world_rank(&ranks);
        for (int peer = 0; peer < ranks && rank == root; peer++) {
            (void)trace_send("MPI_Bcast", buffer, count, datatype, peer, TRACE_TAG_BCAST, comm);
        }
        if (rank != root) {
            trace_receive_known(count, datatype, root, TRACE_TAG_BCAST);
        }
    }
    trace_leave();
    return status;
}

int MPI_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
    trace_enter();
    if (trace_communicator("MPI_Reduce", comm)) {
        int ranks, rank = world_rank(&ranks);
        if (rank != root) {
            trace_sent(trace_send("MPI_Reduce", sendbuf, count, datatype, root, TRACE_TAG_REDUCE, comm));
        }
        for (int peer = 0; peer < ranks && rank == root; peer++) {
            trace_receive_known(count, datatype, peer, TRACE_TAG_REDUCE);
        }
    }
    int status = PMPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm);
    trace_leave();
    return status;
}
