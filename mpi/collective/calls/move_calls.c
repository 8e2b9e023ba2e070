/* Collective calls that move data in equal blocks, or in blocks whose counts all ranks know (MPI 5.0, 6.3 to 6.8). */
#include <stdlib.h>

#include "mpi/collective/calls/calls.h"
#include "mpi/collective/calls/collective.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

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

int mpi_barrier_prepare(MPI_Comm comm, struct mpi_collective *call)
{
    (void)comm;
    call->problem.collective = CW_BARRIER;
    return MPI_SUCCESS;
}

int mpi_bcast_prepare(void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm,
                      struct mpi_collective *call)
{
    struct mpi_buffer *descriptor = call->comm->rank == root ? &call->send : &call->receive;
    int code = mpi_buffer_equal(descriptor, comm, buffer, 1, count, datatype);
    call->problem.collective = CW_BCAST;
    call->problem.count = (uint64_t)descriptor->bytes;
    return code;
}

int mpi_gather_prepare(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                       MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, struct mpi_collective *call)
{
    int code = MPI_SUCCESS;
    bool in_place = sendbuf == MPI_IN_PLACE && call->comm->rank == root;
    call->problem.collective = CW_GATHER;
    if (call->comm->rank == root) {
        code = mpi_buffer_equal(&call->receive, comm, recvbuf, call->comm->size, recvcount, recvtype);
    }
    if (code == MPI_SUCCESS && in_place) {
        code = mpi_buffer_own_block(call, comm, recvcount, recvtype);
    } else if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&call->send, comm, sendbuf, 1, sendcount, sendtype);
    }
    call->problem.count = (uint64_t)call->send.bytes;
    return code != MPI_SUCCESS ? code : mpi_blocks_check(call, "receive", &call->receive, call->send.bytes);
}

int mpi_scatter_prepare(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                        MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm,
                        struct mpi_collective *call)
{
    int code = MPI_SUCCESS;
    bool is_root = call->comm->rank == root;
    call->problem.collective = CW_SCATTER;
    if (is_root) {
        code = mpi_buffer_equal(&call->send, comm, sendbuf, call->comm->size, sendcount, sendtype);
    }
    if (code == MPI_SUCCESS && is_root && recvbuf == MPI_IN_PLACE) {
        call->receive_is_dropped = true;
        code = mpi_buffer_equal(&call->receive, comm, sendbuf, 1, sendcount, sendtype);
    } else if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&call->receive, comm, recvbuf, 1, recvcount, recvtype);
    }
    call->problem.count = (uint64_t)call->receive.bytes;
    return code != MPI_SUCCESS ? code : mpi_blocks_check(call, "send", &call->send, call->receive.bytes);
}

int mpi_allgather_prepare(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                          MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, struct mpi_collective *call)
{
    call->problem.collective = CW_ALLGATHER;
    int code = mpi_buffer_equal(&call->receive, comm, recvbuf, call->comm->size, recvcount, recvtype);
    if (code == MPI_SUCCESS && sendbuf == MPI_IN_PLACE) {
        code = mpi_buffer_own_block(call, comm, recvcount, recvtype);
    } else if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&call->send, comm, sendbuf, 1, sendcount, sendtype);
    }
    call->problem.count = (uint64_t)call->send.bytes;
    return code != MPI_SUCCESS ? code : mpi_blocks_check(call, "receive", &call->receive, call->send.bytes);
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

int mpi_allgatherv_prepare(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                           struct mpi_counts recvcounts, struct mpi_counts displs, MPI_Datatype recvtype, MPI_Comm comm,
                           struct mpi_collective *call)
{
    call->problem.collective = CW_ALLGATHER;
    int code = mpi_buffer_unequal(&call->receive, comm, recvbuf, call->comm->size, recvcounts, displs, recvtype);
    if (code == MPI_SUCCESS) {
        code = counts_copy(call, &call->receive);
    }
    if (code == MPI_SUCCESS && sendbuf == MPI_IN_PLACE) {
        code = mpi_buffer_own_block(call, comm, mpi_buffer_block_count(&call->receive, call->comm->rank), recvtype);
    } else if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&call->send, comm, sendbuf, 1, sendcount, sendtype);
    }
    if (code == MPI_SUCCESS && (uint64_t)call->send.bytes != call->counts[call->comm->rank]) {
        code = mpi_error(comm, MPI_ERR_COUNT, "this rank sends %lld bytes, but recvcounts says %llu for it",
                         (long long)call->send.bytes, (unsigned long long)call->counts[call->comm->rank]);
    }
    return code;
}

int mpi_alltoall_prepare(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                         MPI_Count recvcount, MPI_Datatype recvtype, MPI_Comm comm, struct mpi_collective *call)
{
    bool in_place = sendbuf == MPI_IN_PLACE;
    call->problem.collective = CW_ALLTOALL;
    call->send_must_pack = in_place;
    int code = mpi_buffer_equal(&call->receive, comm, recvbuf, call->comm->size, recvcount, recvtype);
    if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&call->send, comm, in_place ? recvbuf : sendbuf, call->comm->size,
                                in_place ? recvcount : sendcount, in_place ? recvtype : sendtype);
    }
    call->problem.count = (uint64_t)(call->receive.bytes / call->comm->size);
    return code != MPI_SUCCESS ? code
                               : mpi_blocks_check(call, "send", &call->send, call->receive.bytes / call->comm->size);
}
