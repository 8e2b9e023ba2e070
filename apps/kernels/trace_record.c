#include "apps/kernels/trace_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { REQUESTS_MAX = 4096, PATH_BYTES = 4096, REASON_BYTES = 200 };

static struct {
    FILE *file; /* NULL: nothing is recorded */
    char path[PATH_BYTES];
    int rank;
    int ranks;
    int64_t sends;
    uint64_t left_ns; /* when the program left its last call */
    uint64_t compute_ns;
    char reason[REASON_BYTES]; /* the trace is of no use; "": it is */
} trace;

static struct trace_request requests[REQUESTS_MAX];
static int request_count;

static uint64_t thread_ns(void)
{
    struct timespec now = {0, 0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ---- the file ---- */

static void failed(const char *what)
{
    snprintf(trace.reason, sizeof(trace.reason), "%s: %s", what, strerror(errno));
    (void)fclose(trace.file);
    trace.file = NULL;
}

static void begin(void)
{
    struct trace_head head = {
        .magic = TRACE_MAGIC, .version = TRACE_VERSION, .rank = (uint32_t)trace.rank, .ranks = (uint32_t)trace.ranks};
    if (trace.file != NULL) {
        (void)fclose(trace.file);
    }
    trace.sends = 0;
    trace.compute_ns = 0;
    trace.reason[0] = 0;
    for (int i = 0; i < request_count; i++) {
        requests[i].number = -1;
    }
    trace.file = fopen(trace.path, "wbe");
    if (trace.file == NULL) {
        snprintf(trace.reason, sizeof(trace.reason), "it cannot be written: %s", strerror(errno));
    } else if (fwrite(&head, sizeof(head), 1, trace.file) != 1) {
        failed("it cannot be written");
    }
}

void trace_open(void)
{
    const char *folder = getenv("CAUSEWAY_TRACE");
    if (folder == NULL || folder[0] == 0) {
        return;
    }
    (void)PMPI_Comm_rank(MPI_COMM_WORLD, &trace.rank);
    (void)PMPI_Comm_size(MPI_COMM_WORLD, &trace.ranks);
    (void)mkdir(folder, 0777); /* another rank may have made it */
    snprintf(trace.path, sizeof(trace.path), "%s/%d.trace", folder, trace.rank);
    begin();
    trace.left_ns = thread_ns();
}

void trace_enter(void)
{
    if (trace.file != NULL) {
        trace.compute_ns += thread_ns() - trace.left_ns;
    }
}

void trace_leave(void)
{
    if (trace.file != NULL) {
        trace.left_ns = thread_ns();
    }
}

static void record_write(struct trace_record record)
{
    record.compute_ns = trace.compute_ns;
    trace.compute_ns = 0;
    if (trace.file != NULL && fwrite(&record, sizeof(record), 1, trace.file) != 1) {
        failed("it cannot be written");
    }
}

void trace_restart(void)
{
    if (trace.path[0] != 0) {
        begin();
    }
}

void trace_close(void)
{
    record_write((struct trace_record){.operation = TRACE_END});
    if (trace.file != NULL && fclose(trace.file) != 0) {
        snprintf(trace.reason, sizeof(trace.reason), "it cannot be written: %s", strerror(errno));
    }
    if (trace.reason[0] != 0) {
        fprintf(stderr, "trace: %s cannot be replayed: %s\n", trace.path, trace.reason);
    }
    trace.file = NULL;
    trace.path[0] = 0;
    trace.reason[0] = 0;
}

void trace_refuse(const char *call, const char *why)
{
    if (trace.file != NULL) {
        snprintf(trace.reason, sizeof(trace.reason), "%s %s", call, why);
        (void)fclose(trace.file);
        trace.file = NULL;
    }
}

/* ---- operations ---- */

bool trace_communicator(const char *call, MPI_Comm comm)
{
    if (comm != MPI_COMM_WORLD) {
        trace_refuse(call, "uses another communicator than MPI_COMM_WORLD");
    }
    return trace.file != NULL;
}

/* Bytes of so many elements, where they lie one behind the other; false: they do not. */
static bool bytes_of(int count, MPI_Datatype type, uint64_t *bytes)
{
    int size = 0;
    MPI_Aint low = 0;
    MPI_Aint extent = 0;
    (void)PMPI_Type_size(type, &size);
    (void)PMPI_Type_get_extent(type, &low, &extent);
    *bytes = (uint64_t)(count > 0 ? count : 0) * (uint64_t)size;
    return low == 0 && extent == (MPI_Aint)size;
}

int64_t trace_send(const char *call, const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm)
{
    static const char zeros[TRACE_ALIGNMENT];
    uint64_t bytes;
    if (!trace_communicator(call, comm) || peer == MPI_PROC_NULL || peer == trace.rank) {
        return -1;
    }
    if (!bytes_of(count, type, &bytes)) {
        trace_refuse(call, "sends a datatype with gaps");
        return -1;
    }
    struct trace_record record = {.count = bytes, .peer = peer, .tag = tag, .operation = TRACE_SEND};
    record.element = type == MPI_DOUBLE ? TRACE_DOUBLE : TRACE_BYTES;
    record_write(record);
    if (trace.file != NULL && (fwrite(data, 1, bytes, trace.file) != bytes ||
                               fwrite(zeros, 1, trace_padding(bytes), trace.file) != trace_padding(bytes))) {
        failed("it cannot be written");
    }
    return trace.sends++;
}

void trace_sent(int64_t number)
{
    if (number >= 0 && trace.file != NULL) {
        record_write((struct trace_record){.count = (uint64_t)number, .operation = TRACE_SENT});
    }
}

void trace_receive_known(int count, MPI_Datatype type, int peer, int tag)
{
    uint64_t bytes;
    if (trace.file == NULL || peer == MPI_PROC_NULL || peer == trace.rank) {
        return;
    }
    (void)bytes_of(count, type, &bytes);
    record_write((struct trace_record){.count = bytes, .peer = peer, .tag = tag, .operation = TRACE_RECEIVE});
}

void trace_receive(const MPI_Status *status, MPI_Datatype type)
{
    int count = 0;
    if (trace.file != NULL) {
        (void)PMPI_Get_count(status, type, &count);
        trace_receive_known(count, type, status->MPI_SOURCE, status->MPI_TAG);
    }
}

void trace_collective(const char *call, enum trace_operation operation, int count, MPI_Datatype type, MPI_Comm comm)
{
    uint64_t bytes;
    if (trace_communicator(call, comm)) {
        (void)bytes_of(count, type, &bytes);
        record_write((struct trace_record){.count = bytes, .operation = operation});
    }
}

/* ---- requests ---- */

void trace_request_keep(const char *call, const struct trace_request *kept)
{
    if (trace.file == NULL) {
        return;
    }
    if (request_count == REQUESTS_MAX) {
        trace_refuse(call, "has more requests under way than are kept (4096)");
        return;
    }
    requests[request_count++] = *kept;
}

struct trace_request *trace_request_find(MPI_Request request)
{
    int at = request_count - 1;
    while (at >= 0 && requests[at].request != request) {
        at--;
    }
    return at >= 0 && request != MPI_REQUEST_NULL ? &requests[at] : NULL;
}

void trace_request_forget(struct trace_request *kept)
{
    *kept = requests[--request_count];
}

void trace_request_done(MPI_Request request, const MPI_Status *status)
{
    struct trace_request *kept = trace_request_find(request);
    if (trace.file == NULL || kept == NULL) {
        return;
    }
    if (kept->is_receive) {
        trace_receive(status, kept->type);
    } else {
        trace_sent(kept->number);
        kept->number = -1;
    }
    if (!kept->is_persistent) {
        trace_request_forget(kept);
    }
}
