/* Collective calls that move data in equal blocks, or in blocks whose counts all ranks know (MPI 5.0, 6.3 to 6.8). */
#include <stdlib.h>

#include "mpi/collective/calls/calls.h"
#include "mpi/collective/calls/collective.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

/* MPI_ERR_ROOT for anything but a rank: -1 would mean "no root". */
int mpi_root_given(int root)
{
    return root < 0 ? -2 : root;
}

int mpi_buffer_own_block(struct mpi_collective *call, MPI_Comm comm, MPI_Count count, MPI_Datatype datatype)
{
    call->send_must_pack = true;
    return mpi_buffer_equal(&call->send, comm, mpi_buffer_block_start(&call->receive, call->comm->rank), 1, count,
                            datatype);
}

int mpi_blocks_check(struct mpi_collective *call, const char *what, const struct mpi_buffer *descriptor,
                     MPI_Count bytes)
{
    if (descriptor->block_count == 0 || descriptor->bytes == descriptor->block_count * bytes) {
        return MPI_SUCCESS;
    }
    return mpi_error(call->comm->handle, MPI_ERR_COUNT,
                     "blocks of %lld bytes to %s do not fit those of %lld bytes at the other side",
                     (long long)(descriptor->bytes / descriptor->block_count), what, (long long)bytes);
}

int mpi_barrier_make(MPI_Comm comm, struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Barrier", comm, -1, call);
    if (code == MPI_SUCCESS) {
        (*call)->problem.collective = CW_BARRIER;
    }
    return code;
}

int mpi_bcast_make(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                   struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Bcast", comm, mpi_root_given(root), call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_buffer *descriptor = (*call)->comm->rank == root ? &(*call)->send : &(*call)->receive;
    code = mpi_buffer_equal(descriptor, comm, buffer, 1, count, datatype);
    (*call)->problem.collective = CW_BCAST;
    (*call)->problem.count = (uint64_t)descriptor->bytes;
    return code;
}

int mpi_gather_make(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
                    MPI_Datatype recvtype, int root, MPI_Comm comm, struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Gather", comm, mpi_root_given(root), call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    bool in_place = sendbuf == MPI_IN_PLACE && made->comm->rank == root;
    made->problem.collective = CW_GATHER;
    if (made->comm->rank == root) {
        code = mpi_buffer_equal(&made->receive, comm, recvbuf, made->comm->size, recvcount, recvtype);
    }
    if (code == MPI_SUCCESS && in_place) {
        code = mpi_buffer_own_block(made, comm, recvcount, recvtype);
    } else if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&made->send, comm, sendbuf, 1, sendcount, sendtype);
    }
    made->problem.count = (uint64_t)made->send.bytes;
    return code != MPI_SUCCESS ? code : mpi_blocks_check(made, "receive", &made->receive, made->send.bytes);
}

int mpi_scatter_make(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Scatter", comm, mpi_root_given(root), call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    bool is_root = made->comm->rank == root;
    made->problem.collective = CW_SCATTER;
    if (is_root) {
        code = mpi_buffer_equal(&made->send, comm, sendbuf, made->comm->size, sendcount, sendtype);
    }
    if (code == MPI_SUCCESS && is_root && recvbuf == MPI_IN_PLACE) {
        made->receive_is_dropped = true;
        code = mpi_buffer_equal(&made->receive, comm, sendbuf, 1, sendcount, sendtype);
    } else if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&made->receive, comm, recvbuf, 1, recvcount, recvtype);
    }
    made->problem.count = (uint64_t)made->receive.bytes;
    return code != MPI_SUCCESS ? code : mpi_blocks_check(made, "send", &made->send, made->receive.bytes);
}

int mpi_allgather_make(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                       MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Allgather", comm, -1, call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    made->problem.collective = CW_ALLGATHER;
    code = mpi_buffer_equal(&made->receive, comm, recvbuf, made->comm->size, recvcount, recvtype);
    if (code == MPI_SUCCESS && sendbuf == MPI_IN_PLACE) {
        code = mpi_buffer_own_block(made, comm, recvcount, recvtype);
    } else if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&made->send, comm, sendbuf, 1, sendcount, sendtype);
    }
    made->problem.count = (uint64_t)made->send.bytes;
    return code != MPI_SUCCESS ? code : mpi_blocks_check(made, "receive", &made->receive, made->send.bytes);
}

/* The counts in bytes, as the problem has them. */
static int counts_copy(struct mpi_collective *call, const struct mpi_buffer *descriptor)
{
    call->counts = malloc(((size_t)descriptor->block_count + 1) * sizeof(*call->counts));
    if (call->counts == NULL) {
        return mpi_error(call->comm->handle, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks",
                         descriptor->block_count);
    }
    for (int block = 0; block < descriptor->block_count; block++) {
        call->counts[block] = (uint64_t)mpi_buffer_block_bytes(descriptor, block);
    }
    call->problem.counts = call->counts;
    return MPI_SUCCESS;
}

int mpi_allgatherv_make(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                        struct mpi_counts recvcounts, struct mpi_counts displs, MPI_Datatype recvtype, MPI_Comm comm,
                        struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Allgatherv", comm, -1, call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    made->problem.collective = CW_ALLGATHER;
    code = mpi_buffer_unequal(&made->receive, comm, recvbuf, made->comm->size, recvcounts, displs, recvtype);
    if (code == MPI_SUCCESS) {
        code = counts_copy(made, &made->receive);
    }
    if (code == MPI_SUCCESS && sendbuf == MPI_IN_PLACE) {
        code = mpi_buffer_own_block(made, comm, mpi_buffer_block_count(&made->receive, made->comm->rank), recvtype);
    } else if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&made->send, comm, sendbuf, 1, sendcount, sendtype);
    }
    if (code == MPI_SUCCESS && (uint64_t)made->send.bytes != made->counts[made->comm->rank]) {
        code = mpi_error(comm, MPI_ERR_COUNT, "this rank sends %lld bytes, but recvcounts says %llu for it",
                         (long long)made->send.bytes, (unsigned long long)made->counts[made->comm->rank]);
    }
    return code;
}

int mpi_alltoall_make(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                      MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Alltoall", comm, -1, call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    bool in_place = sendbuf == MPI_IN_PLACE;
    made->problem.collective = CW_ALLTOALL;
    made->send_must_pack = in_place;
    code = mpi_buffer_equal(&made->receive, comm, recvbuf, made->comm->size, recvcount, recvtype);
    if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&made->send, comm, in_place ? recvbuf : sendbuf, made->comm->size,
                                in_place ? recvcount : sendcount, in_place ? recvtype : sendtype);
    }
    made->problem.count = (uint64_t)(made->receive.bytes / made->comm->size);
    return code != MPI_SUCCESS ? code
                               : mpi_blocks_check(made, "send", &made->send, made->receive.bytes / made->comm->size);
}
