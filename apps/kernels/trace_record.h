/* Trace record: writes the trace of this rank, and keeps the requests under way. For programs of one thread.
 *
 * Order of calls
 *    trace_open; { trace_enter, any of the others, trace_leave }*; trace_close
 *  Without the variable CAUSEWAY_TRACE, and once the trace is over, none of them does anything. */
#pragma once

#include <stdbool.h>

#include <mpi.h>

#include "apps/kernels/trace.h"

/* After MPI_Init: begins the trace, if the variable CAUSEWAY_TRACE names a folder for it. */
void trace_open(void);

/* Around a call of MPI: what is between two calls is computing. */
void trace_enter(void);
void trace_leave(void);

/* Drops what was recorded so far: the trace begins here. */
void trace_restart(void);

/* Ends the trace, and tells on stderr if it is of no use. */
void trace_close(void);

/* The trace breaks off: `call` has something that is not recorded. */
void trace_refuse(const char *call, const char *why);

/* A message leaves. Returns its number, or -1: it is none, or nothing is recorded. */
int64_t trace_send(const char *call, const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm);

/* Waits for a message's memory; -1: for nothing. */
void trace_sent(int64_t number);

/* A message has come, as the status says; `type` as it was received. */
void trace_receive(const MPI_Status *status, MPI_Datatype type);

/* ... of which there is no status. */
void trace_receive_known(int count, MPI_Datatype type, int peer, int tag);

/* Calls of all ranks. */
void trace_collective(const char *call, enum trace_operation operation, int count, MPI_Datatype type, MPI_Comm comm);

/* Another communicator than MPI_COMM_WORLD ends the trace. */
bool trace_communicator(const char *call, MPI_Comm comm);

/* ---- requests ---- */

struct trace_request {
    MPI_Request request;
    MPI_Datatype type; /* of a receive */
    const void *data;  /* of a persistent send */
    int count;
    int peer;
    int tag;
    int64_t number; /* of the message that a send has last sent */
    bool is_receive;
    bool is_persistent;
};

void trace_request_keep(const char *call, const struct trace_request *kept);

/* NULL: not known. */
struct trace_request *trace_request_find(MPI_Request request);

void trace_request_forget(struct trace_request *kept);

/* A request that has been waited for: records what it was. */
void trace_request_done(MPI_Request request, const MPI_Status *status);
