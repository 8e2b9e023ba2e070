/* Trace refused: calls that a trace has no records for. The first one ends it: what it moves would be missing. */
#include "apps/kernels/trace_record.h"

#define REFUSED(name, parameters, arguments)    \
    int name parameters                         \
    {                                           \
        trace_refuse(#name, "is not recorded"); \
        return P##name arguments;               \
    }

REFUSED(MPI_Ssend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
        (buf, count, datatype, dest, tag, comm))
REFUSED(MPI_Bsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
        (buf, count, datatype, dest, tag, comm))
REFUSED(MPI_Rsend, (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
        (buf, count, datatype, dest, tag, comm))
REFUSED(MPI_Issend,
        (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request),
        (buf, count, datatype, dest, tag, comm, request))
REFUSED(MPI_Ibsend,
        (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request),
        (buf, count, datatype, dest, tag, comm, request))
REFUSED(MPI_Irsend,
        (const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request),
        (buf, count, datatype, dest, tag, comm, request))
REFUSED(MPI_Sendrecv_replace,
        (void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm,
         MPI_Status *status),
        (buf, count, datatype, dest, sendtag, source, recvtag, comm, status))
REFUSED(MPI_Mrecv, (void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status),
        (buf, count, datatype, message, status))
REFUSED(MPI_Imrecv, (void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request),
        (buf, count, datatype, message, request))
REFUSED(MPI_Waitany, (int count, MPI_Request array_of_requests[], int *index, MPI_Status *status),
        (count, array_of_requests, index, status))
REFUSED(MPI_Waitsome,
        (int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
         MPI_Status array_of_statuses[]),
        (incount, array_of_requests, outcount, array_of_indices, array_of_statuses))
REFUSED(MPI_Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))
REFUSED(MPI_Testall, (int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]),
        (count, array_of_requests, flag, array_of_statuses))
REFUSED(MPI_Testany, (int count, MPI_Request array_of_requests[], int *index, int *flag, MPI_Status *status),
        (count, array_of_requests, index, flag, status))
REFUSED(MPI_Testsome,
        (int incount, MPI_Request array_of_requests[], int *outcount, int array_of_indices[],
         MPI_Status array_of_statuses[]),
        (incount, array_of_requests, outcount, array_of_indices, array_of_statuses))
REFUSED(MPI_Gather,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
         int root, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))
REFUSED(MPI_Gatherv,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
         const int displs[], MPI_Datatype recvtype, int root, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm))
REFUSED(MPI_Scatter,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
         int root, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm))
REFUSED(MPI_Scatterv,
        (const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf,
         int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm),
        (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm))
REFUSED(MPI_Allgather,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
         MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
REFUSED(MPI_Allgatherv,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, const int recvcounts[],
         const int displs[], MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
REFUSED(MPI_Alltoall,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
         MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
REFUSED(MPI_Alltoallv,
        (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
         const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))
REFUSED(MPI_Alltoallw,
        (const void *sendbuf, const int sendcounts[], const int sdispls[], const MPI_Datatype sendtypes[],
         void *recvbuf, const int recvcounts[], const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),
        (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))
REFUSED(MPI_Reduce_scatter,
        (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
        (sendbuf, recvbuf, recvcounts, datatype, op, comm))
REFUSED(MPI_Reduce_scatter_block,
        (const void *sendbuf, void *recvbuf, int recvcount, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
        (sendbuf, recvbuf, recvcount, datatype, op, comm))
REFUSED(MPI_Scan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
        (sendbuf, recvbuf, count, datatype, op, comm))
REFUSED(MPI_Exscan, (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
        (sendbuf, recvbuf, count, datatype, op, comm))
REFUSED(MPI_Ibarrier, (MPI_Comm comm, MPI_Request *request), (comm, request))
REFUSED(MPI_Ibcast, (void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm, MPI_Request *request),
        (buffer, count, datatype, root, comm, request))
REFUSED(MPI_Ireduce,
        (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm,
         MPI_Request *request),
        (sendbuf, recvbuf, count, datatype, op, root, comm, request))
REFUSED(MPI_Iallreduce,
        (const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm,
         MPI_Request *request),
        (sendbuf, recvbuf, count, datatype, op, comm, request))
REFUSED(MPI_Iallgather,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
         MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
REFUSED(MPI_Ialltoall,
        (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,
         MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, request))
REFUSED(MPI_Ialltoallv,
        (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype, void *recvbuf,
         const int recvcounts[], const int rdispls[], MPI_Datatype recvtype, MPI_Comm comm, MPI_Request *request),
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, request))
REFUSED(MPI_Send_c, (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),
        (buf, count, datatype, dest, tag, comm))
REFUSED(MPI_Recv_c,
        (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status),
        (buf, count, datatype, source, tag, comm, status))
REFUSED(MPI_Isend_c,
        (const void *buf, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,
         MPI_Request *request),
        (buf, count, datatype, dest, tag, comm, request))
REFUSED(MPI_Irecv_c,
        (void *buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request),
        (buf, count, datatype, source, tag, comm, request))
REFUSED(MPI_Sendrecv_c,
        (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf,
         MPI_Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status),
        (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status))
REFUSED(MPI_Bcast_c, (void *buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm comm),
        (buffer, count, datatype, root, comm))
REFUSED(MPI_Reduce_c,
        (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, int root,
         MPI_Comm comm),
        (sendbuf, recvbuf, count, datatype, op, root, comm))
REFUSED(MPI_Allreduce_c,
        (const void *sendbuf, void *recvbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm),
        (sendbuf, recvbuf, count, datatype, op, comm))
REFUSED(MPI_Allgather_c,
        (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
         MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
REFUSED(MPI_Allgatherv_c,
        (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, const MPI_Count recvcounts[],
         const MPI_Aint displs[], MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))
REFUSED(MPI_Alltoall_c,
        (const void *sendbuf, MPI_Count sendcount, MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount,
         MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm))
REFUSED(MPI_Alltoallv_c,
        (const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint sdispls[], MPI_Datatype sendtype,
         void *recvbuf, const MPI_Count recvcounts[], const MPI_Aint rdispls[], MPI_Datatype recvtype, MPI_Comm comm),
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))
REFUSED(MPI_Put,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win))
REFUSED(MPI_Get,
        (void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win))
REFUSED(MPI_Accumulate,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Op op, MPI_Win win),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, op, win))
REFUSED(MPI_Rput,
        (const void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win,
         request))
REFUSED(MPI_Rget,
        (void *origin_addr, int origin_count, MPI_Datatype origin_datatype, int target_rank, MPI_Aint target_disp,
         int target_count, MPI_Datatype target_datatype, MPI_Win win, MPI_Request *request),
        (origin_addr, origin_count, origin_datatype, target_rank, target_disp, target_count, target_datatype, win,
         request))
