/* Collective calls in which ranks know only their own counts: messages between pairs (MPI 5.0, 6.5, 6.6, 6.8). */
#include <stdlib.h>
#include <string.h>

#include "collectives/choose/override.h"
#include "mpi/collective/calls/calls.h"
#include "mpi/collective/choice/choice.h"
#include "mpi/collective/compiled/count_matrix.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/run/agreement.h"
#include "mpi/collective/run/multicast_scatterv.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

int mpi_gatherv_prepare(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                        struct mpi_counts recvcounts, struct mpi_counts displs, MPI_Datatype recvtype, int root,
                        MPI_Comm comm, struct mpi_collective *call)
{
    int code = MPI_SUCCESS;
    bool is_root = call->comm->rank == root;
    call->by_pairs = call->has_rows = true;
    call->problem.collective = CW_GATHER;
    if (is_root) {
        code = mpi_buffer_unequal(&call->receive, comm, recvbuf, call->comm->size, recvcounts, displs, recvtype);
    }
    return code != MPI_SUCCESS || (is_root && sendbuf == MPI_IN_PLACE)
               ? code
               : mpi_buffer_equal(&call->send, comm, sendbuf, 1, sendcount, sendtype);
}

int mpi_scatterv_prepare(const void *sendbuf, struct mpi_counts sendcounts, struct mpi_counts displs,
                         MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                         MPI_Comm comm, struct mpi_collective *call)
{
    int code = MPI_SUCCESS;
    const char *way = mpi_choice_scatterv(call->comm);
    bool is_notified = strcmp(way, CW_OVERRIDE_PAIRS) != 0;
    bool is_root = call->comm->rank == root, in_place = is_root && recvbuf == MPI_IN_PLACE;
    call->by_pairs = call->has_rows = true;
    call->problem.collective = CW_SCATTER;
    if (is_root) {
        code = mpi_buffer_unequal(&call->send, comm, sendbuf, call->comm->size, sendcounts, displs, sendtype);
    }
    if (code == MPI_SUCCESS && in_place && is_notified) {
        call->receive_is_dropped = true;
        code = mpi_buffer_equal(&call->receive, comm, mpi_buffer_block_start(&call->send, root), 1,
                                mpi_buffer_block_count(&call->send, root), sendtype);
    } else if (code == MPI_SUCCESS && !in_place) {
        code = mpi_buffer_equal(&call->receive, comm, recvbuf, 1, recvcount, recvtype);
    }
    return code == MPI_SUCCESS && is_notified ? mpi_multicast_scatterv_make(call, way) : code;
}

/* An all-to-all whose buffer descriptors are made: by a plan if one may fit, by a schedule for counts that are
 * exchanged, or by pairs. */
static int many_make(struct mpi_collective *call, bool is_scheduled)
{
    if (mpi_replay_needs_agreement(call->comm)) {
        return mpi_agreement_make(call, is_scheduled);
    }
    call->by_pairs = !is_scheduled;
    return is_scheduled ? mpi_count_matrix_make(call) : MPI_SUCCESS;
}

int mpi_alltoallv_buffers(struct mpi_collective *call, const void *sendbuf, struct mpi_counts sendcounts,
                          struct mpi_counts sdispls, MPI_Datatype sendtype, void *recvbuf, struct mpi_counts recvcounts,
                          struct mpi_counts rdispls, MPI_Datatype recvtype)
{
    MPI_Comm comm = call->comm->handle;
    int size = call->comm->size;
    call->send_must_pack = sendbuf == MPI_IN_PLACE;
    int code = mpi_buffer_unequal(&call->receive, comm, recvbuf, size, recvcounts, rdispls, recvtype);
    if (code != MPI_SUCCESS) {
        return code;
    }
    return call->send_must_pack ? mpi_buffer_unequal(&call->send, comm, recvbuf, size, recvcounts, rdispls, recvtype)
                                : mpi_buffer_unequal(&call->send, comm, sendbuf, size, sendcounts, sdispls, sendtype);
}

int mpi_alltoallv_prepare(const void *sendbuf, struct mpi_counts sendcounts, struct mpi_counts sdispls,
                          MPI_Datatype sendtype, void *recvbuf, struct mpi_counts recvcounts, struct mpi_counts rdispls,
                          MPI_Datatype recvtype, MPI_Comm comm, struct mpi_collective *call)
{
    (void)comm;
    call->problem.collective = CW_ALLTOALL;
    call->has_rows = true;
    int code =
        mpi_alltoallv_buffers(call, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype);
    return code != MPI_SUCCESS ? code : many_make(call, mpi_choice_is_scheduled(call->comm));
}

int mpi_alltoallw_prepare(const void *sendbuf, struct mpi_counts sendcounts, struct mpi_counts sdispls,
                          const MPI_Datatype sendtypes[], void *recvbuf, struct mpi_counts recvcounts,
                          struct mpi_counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm,
                          struct mpi_collective *call)
{
    bool in_place = sendbuf == MPI_IN_PLACE;
    call->problem.collective = CW_ALLTOALL;
    call->has_rows = true;
    call->send_must_pack = in_place;
    int code = mpi_buffer_mixed(&call->receive, comm, recvbuf, call->comm->size, recvcounts, rdispls, recvtypes);
    if (code == MPI_SUCCESS) {
        code = in_place
                   ? mpi_buffer_mixed(&call->send, comm, recvbuf, call->comm->size, recvcounts, rdispls, recvtypes)
                   : mpi_buffer_mixed(&call->send, comm, sendbuf, call->comm->size, sendcounts, sdispls, sendtypes);
    }
    return code != MPI_SUCCESS ? code : many_make(call, false);
}
