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

int mpi_gatherv_make(const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf,
                     struct mpi_counts recvcounts, struct mpi_counts displs, MPI_Datatype recvtype, int root,
                     MPI_Comm comm, struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Gatherv", comm, mpi_root_given(root), call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    bool is_root = made->comm->rank == root;
    made->by_pairs = made->has_rows = true;
    made->problem.collective = CW_GATHER;
    if (is_root) {
        code = mpi_buffer_unequal(&made->receive, comm, recvbuf, made->comm->size, recvcounts, displs, recvtype);
    }
    return code != MPI_SUCCESS || (is_root && sendbuf == MPI_IN_PLACE)
               ? code
               : mpi_buffer_equal(&made->send, comm, sendbuf, 1, sendcount, sendtype);
}

int mpi_scatterv_make(const void *sendbuf, struct mpi_counts sendcounts, struct mpi_counts displs,
                      MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root,
                      MPI_Comm comm, struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Scatterv", comm, mpi_root_given(root), call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    const char *way = mpi_choice_scatterv(made->comm);
    bool is_notified = strcmp(way, CW_OVERRIDE_PAIRS) != 0;
    bool is_root = made->comm->rank == root, in_place = is_root && recvbuf == MPI_IN_PLACE;
    made->by_pairs = made->has_rows = true;
    made->problem.collective = CW_SCATTER;
    if (is_root) {
        code = mpi_buffer_unequal(&made->send, comm, sendbuf, made->comm->size, sendcounts, displs, sendtype);
    }
    if (code == MPI_SUCCESS && in_place && is_notified) {
        made->receive_is_dropped = true;
        code = mpi_buffer_equal(&made->receive, comm, mpi_buffer_block_start(&made->send, root), 1,
                                mpi_buffer_block_count(&made->send, root), sendtype);
    } else if (code == MPI_SUCCESS && !in_place) {
        code = mpi_buffer_equal(&made->receive, comm, recvbuf, 1, recvcount, recvtype);
    }
    return code == MPI_SUCCESS && is_notified ? mpi_multicast_scatterv_make(made, way) : code;
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

int mpi_alltoallv_make(const void *sendbuf, struct mpi_counts sendcounts, struct mpi_counts sdispls,
                       MPI_Datatype sendtype, void *recvbuf, struct mpi_counts recvcounts, struct mpi_counts rdispls,
                       MPI_Datatype recvtype, MPI_Comm comm, struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Alltoallv", comm, -1, call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    bool in_place = sendbuf == MPI_IN_PLACE;
    made->problem.collective = CW_ALLTOALL;
    made->has_rows = true;
    made->send_must_pack = in_place;
    code = mpi_buffer_unequal(&made->receive, comm, recvbuf, made->comm->size, recvcounts, rdispls, recvtype);
    if (code == MPI_SUCCESS) {
        code = in_place
                   ? mpi_buffer_unequal(&made->send, comm, recvbuf, made->comm->size, recvcounts, rdispls, recvtype)
                   : mpi_buffer_unequal(&made->send, comm, sendbuf, made->comm->size, sendcounts, sdispls, sendtype);
    }
    return code != MPI_SUCCESS ? code : many_make(made, mpi_choice_is_scheduled(made->comm));
}

int mpi_alltoallw_make(const void *sendbuf, struct mpi_counts sendcounts, struct mpi_counts sdispls,
                       const MPI_Datatype sendtypes[], void *recvbuf, struct mpi_counts recvcounts,
                       struct mpi_counts rdispls, const MPI_Datatype recvtypes[], MPI_Comm comm,
                       struct mpi_collective **call)
{
    int code = mpi_collective_make("MPI_Alltoallw", comm, -1, call);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collective *made = *call;
    bool in_place = sendbuf == MPI_IN_PLACE;
    made->problem.collective = CW_ALLTOALL;
    made->has_rows = true;
    made->send_must_pack = in_place;
    code = mpi_buffer_mixed(&made->receive, comm, recvbuf, made->comm->size, recvcounts, rdispls, recvtypes);
    if (code == MPI_SUCCESS) {
        code = in_place
                   ? mpi_buffer_mixed(&made->send, comm, recvbuf, made->comm->size, recvcounts, rdispls, recvtypes)
                   : mpi_buffer_mixed(&made->send, comm, sendbuf, made->comm->size, sendcounts, sdispls, sendtypes);
    }
    return code != MPI_SUCCESS ? code : many_make(made, false);
}
