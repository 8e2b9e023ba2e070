/* A Cartesian grid as data. */
#include <stdlib.h>
#include <string.h>

#include "mpi/communicator/topology.h"

/* Ranks go through the grid row by row: the last dimension changes first. */
void mpi_topology_coordinates(const struct mpi_topology *topology, int rank, int coordinates[])
{
    for (int dimension = topology->dimension_count - 1; dimension >= 0; dimension--) {
        coordinates[dimension] = rank % topology->sizes[dimension];
        rank /= topology->sizes[dimension];
    }
}

struct mpi_topology *mpi_topology_make(int dimension_count, const int sizes[], const int periodic[], int rank)
{
    size_t count = (size_t)dimension_count;
    struct mpi_topology *topology = malloc(sizeof(*topology));
    int *arrays = malloc((3 * count + 1) * sizeof(int));
    if (topology == NULL || arrays == NULL) {
        free(topology);
        free(arrays);
        return NULL;
    }
    *topology = (struct mpi_topology){
        .dimension_count = dimension_count,
        .sizes = arrays,
        .periodic = arrays + count,
        .coordinates = arrays + 2 * count,
    };
    if (count > 0) {
        memcpy(topology->sizes, sizes, count * sizeof(int));
    }
    for (size_t dimension = 0; dimension < count; dimension++) {
        topology->periodic[dimension] = periodic[dimension] != 0;
    }
    mpi_topology_coordinates(topology, rank, topology->coordinates);
    return topology;
}
