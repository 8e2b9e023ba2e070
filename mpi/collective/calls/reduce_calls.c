/* Reductions (MPI 5.0, 6.9 to 6.11). */
#include <stdlib.h>

#include "mpi/collective/calls/calls.h"
#include "mpi/collective/calls/collective.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

/* The common part of reductions: operation and element, checked, and the number of elements of a rank's
 * contribution. */
static int reduction_prepare(struct mpi_collective *call, enum cw_collective collective, MPI_Count count,
                             MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    struct mpi_type *type;
    struct mpi_op *found;
    int code = mpi_type_check(comm, count, datatype, &type);
    if (code == MPI_SUCCESS) {
        code = mpi_op_check(comm, op, type, &found);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    call->problem.collective = collective;
    call->problem.ordered = !found->commutative;
    call->problem.element_bytes = type->size == 0 ? 1 : (uint32_t)type->size;
    call->problem.count = type->size == 0 ? 0 : (uint64_t)count;
    call->op = found;
    call->element = type;
    mpi_op_retain(found);
    mpi_type_retain(type);
    if (type->size > CW_ELEMENT_BYTES_MAX) {
        return mpi_error(comm, MPI_ERR_TYPE, "elements of %lld bytes cannot be reduced; the limit is %d",
                         (long long)type->size, CW_ELEMENT_BYTES_MAX);
    }
    return MPI_SUCCESS;
}

/* A rank's contribution: `blocks` blocks of `count` elements; in place they lie in the receive buffer. */
static int reduction_send(struct mpi_collective *call, const void *sendbuf, const void *recvbuf, int blocks,
                          MPI_Count count)
{
    call->send_must_pack = sendbuf == MPI_IN_PLACE;
    return mpi_buffer_equal(&call->send, call->comm->handle, sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf, blocks, count,
                            call->element->handle);
}

static int reduction_receive(struct mpi_collective *call, void *recvbuf, MPI_Count count)
{
    return mpi_buffer_equal(&call->receive, call->comm->handle, recvbuf, 1, count, call->element->handle);
}

int mpi_reduce_prepare(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
                       MPI_Comm comm, struct mpi_collective *call)
{
    int code = reduction_prepare(call, CW_REDUCE, count, datatype, op, comm);
    if (code == MPI_SUCCESS && call->comm->rank == root) {
        code = reduction_receive(call, recvbuf, count);
    } else if (code == MPI_SUCCESS && sendbuf == MPI_IN_PLACE) {
        code = mpi_error(comm, MPI_ERR_BUFFER, "MPI_IN_PLACE is for the root only");
    }
    return code != MPI_SUCCESS ? code : reduction_send(call, sendbuf, recvbuf, 1, count);
}

int mpi_allreduce_prepare(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                          MPI_Comm comm, struct mpi_collective *call)
{
    int code = reduction_prepare(call, CW_ALLREDUCE, count, datatype, op, comm);
    if (code == MPI_SUCCESS) {
        code = reduction_receive(call, recvbuf, count);
    }
    return code != MPI_SUCCESS ? code : reduction_send(call, sendbuf, recvbuf, 1, count);
}

/* Equal counts make the same problem as those of MPI_Reduce_scatter_block. */
static void counts_simplify(struct mpi_collective *call)
{
    int same = 1;
    while (same < call->comm->size && call->counts[same] == call->counts[0]) {
        same++;
    }
    if (same < call->comm->size) {
        call->problem.counts = call->counts;
        return;
    }
    call->problem.count = call->counts[0];
    free(call->counts);
    call->counts = NULL;
}

int mpi_reduce_scatter_prepare(const void *sendbuf, void *recvbuf, struct mpi_counts recvcounts, MPI_Datatype datatype,
                               MPI_Op op, MPI_Comm comm, struct mpi_collective *call)
{
    int code = reduction_prepare(call, CW_REDUCE_SCATTER, 0, datatype, op, comm);
    if (code != MPI_SUCCESS) {
        return code;
    }
    int size = call->comm->size;
    MPI_Count total = 0;
    call->counts = malloc(((size_t)size + 1) * sizeof(*call->counts));
    if (call->counts == NULL || recvcounts.values == NULL) {
        return mpi_error(comm, recvcounts.values == NULL ? MPI_ERR_ARG : MPI_ERR_NO_MEM, "no array of counts");
    }
    for (int rank = 0; rank < size; rank++) {
        MPI_Count count = mpi_count_at(recvcounts, rank);
        if (count < 0 || __builtin_add_overflow(total, count, &total)) {
            return mpi_error(comm, MPI_ERR_COUNT, "the count for rank %d is %lld", rank, (long long)count);
        }
        call->counts[rank] = call->element->size == 0 ? 0 : (uint64_t)count;
    }
    counts_simplify(call);
    code = reduction_receive(call, recvbuf, mpi_count_at(recvcounts, call->comm->rank));
    return code != MPI_SUCCESS ? code : reduction_send(call, sendbuf, recvbuf, 1, total);
}

int mpi_reduce_scatter_block_prepare(const void *sendbuf, void *recvbuf, MPI_Count recvcount, MPI_Datatype datatype,
                                     MPI_Op op, MPI_Comm comm, struct mpi_collective *call)
{
    int code = reduction_prepare(call, CW_REDUCE_SCATTER, recvcount, datatype, op, comm);
    if (code == MPI_SUCCESS) {
        code = reduction_receive(call, recvbuf, recvcount);
    }
    return code != MPI_SUCCESS ? code : reduction_send(call, sendbuf, recvbuf, call->comm->size, recvcount);
}

int mpi_scan_prepare(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                     MPI_Comm comm, struct mpi_collective *call)
{
    int code = mpi_allreduce_prepare(sendbuf, recvbuf, count, datatype, op, comm, call);
    call->problem.collective = CW_SCAN; /* the arguments are the same */
    return code;
}

int mpi_exscan_prepare(const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op,
                       MPI_Comm comm, struct mpi_collective *call)
{
    int code = reduction_prepare(call, CW_EXSCAN, count, datatype, op, comm);
    if (code == MPI_SUCCESS) {
        /* rank 0 gets nothing, and its buffer stays as it is */
        code = call->comm->rank == 0 ? MPI_SUCCESS : reduction_receive(call, recvbuf, count);
    }
    return code != MPI_SUCCESS ? code : reduction_send(call, sendbuf, recvbuf, 1, count);
}
