/* topology: Cartesian arrangements of the ranks of a communicator (MPI 5.0, 8.5). Graphs will follow. Within the lock
 * of enter.h only. */
#pragma once

struct mpi_comm;

struct mpi_topology {
    int dimension_count; /* 0: one rank that has no neighbours */
    int *sizes;          /* three arrays in one allocation */
    int *periodic;
    int *coordinates; /* of this process */
};

/* The coordinates of a rank. The last dimension changes first from rank to rank (MPI 5.0, 8.5). */
void mpi_topology_coordinates(const struct mpi_topology *topology, int rank, int coordinates[]);
/* NULL: no memory. Sizes and periods are copied. */
struct mpi_topology *mpi_topology_make(int dimension_count, const int sizes[], const int periodic[], int rank);
/* A communicator ends, and the topology that it may have. */
void mpi_topology_abandon(struct mpi_comm *comm);
