/* calls: shared by the files of collective calls. Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/calls/collective.h"

/* The root as mpi_collective_make takes it. */
int mpi_root_given(int root);

/* The sending side is the own block of the receiving one (MPI_IN_PLACE). */
int mpi_buffer_own_block(struct mpi_collective *call, MPI_Comm comm, MPI_Count count, MPI_Datatype datatype);

/* Whether the blocks of a descriptor, if there are any, have `bytes` bytes each; MPI_ERR_COUNT, raised. */
int mpi_blocks_check(struct mpi_collective *call, const char *what, const struct mpi_buffer *descriptor,
                     MPI_Count bytes);
