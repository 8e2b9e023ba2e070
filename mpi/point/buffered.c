#include "mpi/point/buffered.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/waiting.h"
#include "mpi_functions.h"

/* An attached buffer: of the process, or of a communicator (MPI 5.0, 3.6.1). */
struct buffer {
    struct mpi_comm *comm; /* NULL: of the process */
    void *address;
    MPI_Count bytes;
    bool is_automatic;
    bool is_attached;
    MPI_Count used;
    MPI_Count under_way; /* messages */
    struct buffer *next;
};

static struct buffer process_buffer;
static struct buffer *comm_buffers;

static struct buffer *comm_buffer_find(const struct mpi_comm *comm)
{
    struct buffer *buffer = comm_buffers;
    while (buffer != NULL && buffer->comm != comm) {
        buffer = buffer->next;
    }
    return buffer;
}

/* A message of its own that carries a copy of the program's data; the program's request is complete as soon as it
 * exists. */
struct carrier {
    struct mpi_request request;
    struct buffer *buffer;
    MPI_Count taken;
};

static MPI_Count bytes_needed(const struct mpi_request *request)
{
    return request->bytes + MPI_BSEND_OVERHEAD;
}

/* Called with each round of progress: gives room back for messages that have left. */
static struct carrier_list {
    struct mpi_progress_user user;
    struct mpi_request *first;
    bool is_joined;
} carriers;

static uint32_t carriers_turn(struct mpi_progress_user *user)
{
    (void)user;
    uint32_t count = 0;
    struct mpi_request **link = &carriers.first;
    while (*link != NULL) {
        struct mpi_request *request = *link;
        if (!request->is_complete) {
            link = &request->parts[0];
            continue;
        }
        *link = request->parts[0];
        struct carrier *carrier = (struct carrier *)request;
        carrier->buffer->used -= carrier->taken;
        carrier->buffer->under_way--;
        mpi_request_release(request);
        free(carrier);
        count++;
    }
    if (carriers.first == NULL) {
        mpi_progress_leave(&carriers.user);
        carriers.is_joined = false;
    }
    return count;
}

static void carrier_start(struct mpi_request *request, struct buffer *buffer)
{
    struct carrier *carrier = calloc(1, sizeof(*carrier));
    if (carrier == NULL) {
        mpi_request_complete(request, MPI_ERR_NO_MEM);
        return;
    }
    carrier->buffer = buffer;
    carrier->taken = bytes_needed(request);
    carrier->request = (struct mpi_request){
        .kind = MPI_REQUEST_SEND,
        .mode = MPI_MODE_STANDARD,
        .comm = request->comm,
        .type = request->type,
        .buffer = request->buffer,
        .count = request->count,
        .bytes = request->bytes,
        .peer = request->peer,
        .tag = request->tag,
    };
    mpi_comm_retain(request->comm);
    mpi_type_retain(request->type);
    if (mpi_send_copy(&carrier->request) != MPI_SUCCESS) {
        mpi_request_release(&carrier->request);
        free(carrier);
        mpi_request_complete(request, MPI_ERR_NO_MEM);
        return;
    }
    buffer->used += carrier->taken;
    buffer->under_way++;
    carrier->request.parts[0] = carriers.first;
    carriers.first = &carrier->request;
    if (!carriers.is_joined) {
        carriers.user.turn = carriers_turn;
        mpi_progress_join(&carriers.user);
        carriers.is_joined = true;
    }
    mpi_send_start(&carrier->request);
    mpi_request_complete(request, MPI_SUCCESS);
}

void mpi_buffered_start(struct mpi_request *request)
{
    if (request->peer == MPI_PROC_NULL) {
        mpi_request_complete(request, MPI_SUCCESS);
        return;
    }
    struct buffer *buffer = comm_buffer_find(request->comm);
    buffer = buffer != NULL ? buffer : &process_buffer;
    if (!buffer->is_attached || (!buffer->is_automatic && bytes_needed(request) > buffer->bytes - buffer->used)) {
        (void)mpi_progress(); /* messages sent since then return their room */
    }
    if (!buffer->is_attached || (!buffer->is_automatic && bytes_needed(request) > buffer->bytes - buffer->used)) {
        mpi_request_complete(request, MPI_ERR_BUFFER);
        return;
    }
    carrier_start(request, buffer);
}

static int buffer_attach(struct buffer *buffer, MPI_Comm comm, void *address, MPI_Count size)
{
    if (buffer->is_attached) {
        return mpi_error(comm, MPI_ERR_BUFFER, "a buffer of %lld bytes is attached already; detach it first",
                         (long long)buffer->bytes);
    }
    if (size < 0 || ((uintptr_t)address <= (uintptr_t)MPI_IN_PLACE && size > 0)) {
        return mpi_error(comm, size < 0 ? MPI_ERR_ARG : MPI_ERR_BUFFER, "a buffer of %lld bytes at %p", (long long)size,
                         address);
    }
    buffer->is_attached = true;
    buffer->is_automatic = address == MPI_BUFFER_AUTOMATIC;
    buffer->address = address;
    buffer->bytes = size;
    return MPI_SUCCESS;
}

static bool buffer_is_empty(void *context)
{
    const struct buffer *buffer = context;
    return buffer->under_way == 0;
}

static void buffer_describe(void *context, struct mpi_said *said)
{
    const struct buffer *buffer = context;
    mpi_describe(said, "%llu messages of its buffer to be received", (unsigned long long)buffer->under_way);
}

static void buffer_flush(struct buffer *buffer)
{
    if (!buffer_is_empty(buffer)) {
        mpi_progress_wait(
            &(struct mpi_wait){.is_over = buffer_is_empty, .describe = buffer_describe, .context = buffer});
    }
}

static int buffer_detach(struct buffer *buffer, MPI_Comm comm, void *buffer_addr, MPI_Count *size)
{
    if (buffer == NULL || !buffer->is_attached) {
        return mpi_error(comm, MPI_ERR_BUFFER, "no buffer is attached");
    }
    buffer_flush(buffer);
    *(void **)buffer_addr = buffer->address;
    *size = buffer->bytes;
    buffer->is_attached = false;
    return MPI_SUCCESS;
}

int mpi_buffer_attach(void *buffer, MPI_Count size)
{
    return buffer_attach(&process_buffer, MPI_COMM_NULL, buffer, size);
}

int mpi_buffer_detach(void *buffer_addr, MPI_Count *size)
{
    return buffer_detach(&process_buffer, MPI_COMM_NULL, buffer_addr, size);
}

int mpi_buffer_flush(void)
{
    buffer_flush(&process_buffer);
    return MPI_SUCCESS;
}

/* A request that is complete when the buffer is empty. Flushing by waiting here is allowed to be slow, but not to
 * depend on receives that the program makes later: so a request follows the messages. */
struct flush {
    struct mpi_progress_user user;
    struct buffer *buffer;
    struct mpi_request *request;
};

static uint32_t flush_turn(struct mpi_progress_user *user)
{
    struct flush *flush = (struct flush *)user;
    if (!buffer_is_empty(flush->buffer)) {
        return 0;
    }
    mpi_progress_leave(user);
    mpi_request_complete(flush->request, MPI_SUCCESS);
    free(flush);
    return 1;
}

static int buffer_iflush(struct buffer *buffer, MPI_Comm comm, MPI_Request *request)
{
    struct mpi_request *made = mpi_request_make(MPI_REQUEST_DONE);
    struct flush *flush = malloc(sizeof(*flush));
    if (made == NULL || flush == NULL || mpi_request_handle_make(made) != MPI_SUCCESS) {
        free(flush);
        if (made != NULL) {
            mpi_request_destroy(made);
        }
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a request");
    }
    *flush = (struct flush){.user = {.turn = flush_turn}, .buffer = buffer, .request = made};
    made->is_active = true;
    *request = made->handle;
    mpi_progress_pending(1);
    mpi_progress_join(&flush->user);
    (void)flush_turn(&flush->user);
    return MPI_SUCCESS;
}

int mpi_buffer_iflush(MPI_Request *request)
{
    return buffer_iflush(&process_buffer, MPI_COMM_NULL, request);
}

static int comm_buffer(MPI_Comm comm, struct mpi_comm **found, struct buffer **buffer)
{
    *found = mpi_comm_find(comm);
    if (*found == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    *buffer = comm_buffer_find(*found);
    return MPI_SUCCESS;
}

int mpi_comm_attach_buffer(MPI_Comm comm, void *buffer, MPI_Count size)
{
    struct mpi_comm *found;
    struct buffer *attached = NULL;
    int code = comm_buffer(comm, &found, &attached);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (attached != NULL) {
        return buffer_attach(attached, comm, buffer, size);
    }
    attached = calloc(1, sizeof(*attached));
    if (attached == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory to attach a buffer");
    }
    code = buffer_attach(attached, comm, buffer, size);
    if (code != MPI_SUCCESS) {
        free(attached); /* lest messages look for room in it instead of the process's buffer */
        return code;
    }
    attached->comm = found;
    attached->next = comm_buffers;
    comm_buffers = attached;
    return MPI_SUCCESS;
}

int mpi_comm_detach_buffer(MPI_Comm comm, void *buffer_addr, MPI_Count *size)
{
    struct mpi_comm *found;
    struct buffer *attached = NULL;
    int code = comm_buffer(comm, &found, &attached);
    if (code == MPI_SUCCESS) {
        code = buffer_detach(attached, comm, buffer_addr, size);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct buffer **link = &comm_buffers;
    while (*link != attached) {
        link = &(*link)->next;
    }
    *link = attached->next;
    free(attached);
    return MPI_SUCCESS;
}

int mpi_comm_flush_buffer(MPI_Comm comm)
{
    struct mpi_comm *found;
    struct buffer *attached = NULL;
    int code = comm_buffer(comm, &found, &attached);
    if (code == MPI_SUCCESS && attached != NULL) {
        buffer_flush(attached);
    }
    return code;
}

int mpi_comm_iflush_buffer(MPI_Comm comm, MPI_Request *request)
{
    struct mpi_comm *found;
    struct buffer *attached = NULL;
    int code = comm_buffer(comm, &found, &attached);
    return code != MPI_SUCCESS ? code : buffer_iflush(attached != NULL ? attached : &process_buffer, comm, request);
}

void mpi_buffered_finish(void)
{
    buffer_flush(&process_buffer);
    while (comm_buffers != NULL) {
        struct buffer *buffer = comm_buffers;
        buffer_flush(buffer);
        comm_buffers = buffer->next;
        free(buffer);
    }
    process_buffer = (struct buffer){0};
}
