#include "mpi/point/internal.h"

#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/progress.h"
#include "mpi/runtime/waiting.h"

/* A blocking message to or from a member of the group. */
static int transfer(struct mpi_comm *comm, enum mpi_request_kind kind, int peer, int tag, void *data, size_t bytes)
{
    struct mpi_request request = {
        .kind = kind,
        .comm = comm,
        .type = mpi_type_find(MPI_BYTE),
        .buffer = data,
        .count = (MPI_Count)bytes,
        .bytes = (MPI_Count)bytes,
        .peer = peer,
        .tag = tag,
    };
    if (kind == MPI_REQUEST_SEND) {
        mpi_send_start(&request);
    } else {
        mpi_receive_start(&request);
    }
    mpi_request_await(&request);
    return request.error == MPI_SUCCESS ? MPI_SUCCESS : mpi_request_raise(&request, comm->handle, request.error);
}

int mpi_internal_bcast(struct mpi_comm *comm, const struct mpi_group *group, int tag, void *data, size_t bytes)
{
    int mask = 1;
    int code = MPI_SUCCESS;
    while (mask < group->size && (group->rank & mask) == 0) {
        mask <<= 1;
    }
    if (group->rank > 0) {
        int parent = mpi_group_rank_of(comm->group, group->ranks[group->rank & ~mask]);
        code = transfer(comm, MPI_REQUEST_RECEIVE, parent, tag, data, bytes);
    }
    for (mask >>= 1; mask > 0 && code == MPI_SUCCESS; mask >>= 1) {
        if (group->rank + mask < group->size) {
            int child = mpi_group_rank_of(comm->group, group->ranks[group->rank + mask]);
            code = transfer(comm, MPI_REQUEST_SEND, child, tag, data, bytes);
        }
    }
    return code;
}

int mpi_internal_agree(struct mpi_comm *comm, int tag, uint32_t *bits)
{
    int code = MPI_SUCCESS;
    for (int mask = 1; mask < comm->size && code == MPI_SUCCESS; mask <<= 1) {
        if ((comm->rank & mask) != 0) {
            code = transfer(comm, MPI_REQUEST_SEND, comm->rank & ~mask, tag, bits, sizeof(*bits));
            break;
        }
        if (comm->rank + mask < comm->size) {
            uint32_t others = 0;
            code = transfer(comm, MPI_REQUEST_RECEIVE, comm->rank + mask, tag, &others, sizeof(others));
            *bits &= others;
        }
    }
    return code != MPI_SUCCESS ? code : mpi_internal_bcast(comm, comm->group, tag, bits, sizeof(*bits));
}

static bool is_drained(void *context)
{
    const struct mpi_comm *comm = context;
    return comm->references == 1 + comm->open_groups + mpi_requests_resting(comm);
}

static void drain_describe(void *context, struct mpi_said *said)
{
    mpi_describe(said, "all pending operations in ");
    mpi_describe_comm(said, context);
}

void mpi_internal_drain(struct mpi_comm *comm)
{
    if (!is_drained(comm)) {
        mpi_progress_wait(&(struct mpi_wait){.is_over = is_drained, .describe = drain_describe, .context = comm});
    }
}
