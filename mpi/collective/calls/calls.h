/* calls: shared by the files of collective calls. Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/calls/collective.h"

/* The sending side is the own block of the receiving one (MPI_IN_PLACE). */
int mpi_buffer_own_block(struct mpi_collective *call, MPI_Comm comm, MPI_Count count, MPI_Datatype datatype);

/* Makes both buffer descriptors of an all-to-all-v; `sendbuf` may be MPI_IN_PLACE. MPI_SUCCESS or the error, raised. */
int mpi_alltoallv_buffers(struct mpi_collective *call, const void *sendbuf, struct mpi_counts sendcounts,
                          struct mpi_counts sdispls, MPI_Datatype sendtype, void *recvbuf, struct mpi_counts recvcounts,
                          struct mpi_counts rdispls, MPI_Datatype recvtype);

/* Whether the blocks of a descriptor, if there are any, have `bytes` bytes each; MPI_ERR_COUNT, raised. */
int mpi_blocks_check(struct mpi_collective *call, const char *what, const struct mpi_buffer *descriptor,
                     MPI_Count bytes);
