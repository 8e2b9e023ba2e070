#include "mpi/communicator/topology.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/group/communicator.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

/* -1: outside, in a dimension that is not periodic. */
static int rank_of(const struct mpi_topology *topology, const int coordinates[])
{
    int rank = 0;
    for (int dimension = 0; dimension < topology->dimension_count; dimension++) {
        int size = topology->sizes[dimension];
        int at = coordinates[dimension];
        if (topology->periodic[dimension]) {
            at = at % size + (at % size < 0 ? size : 0);
        } else if (at < 0 || at >= size) {
            return -1;
        }
        rank = rank * size + at;
    }
    return rank;
}

void mpi_topology_abandon(struct mpi_comm *comm)
{
    if (comm->topology != NULL) {
        free(comm->topology->sizes);
        free(comm->topology);
    }
}

/* Sizes that a grid may have; *count: how many ranks it takes. */
static int sizes_check(MPI_Comm comm, int ndims, const int dims[], long long *count)
{
    *count = 1;
    if (ndims < 0) {
        return mpi_error(comm, MPI_ERR_DIMS, "%d dimensions", ndims);
    }
    for (int dimension = 0; dimension < ndims; dimension++) {
        if (dims[dimension] <= 0) {
            return mpi_error(comm, MPI_ERR_DIMS, "dimension %d has size %d", dimension, dims[dimension]);
        }
        *count *= dims[dimension];
        if (*count > INT32_MAX) {
            return mpi_error(comm, MPI_ERR_DIMS, "the grid has more than 2^31 places");
        }
    }
    return MPI_SUCCESS;
}

int mpi_cart_create(MPI_Comm comm_old, int ndims, const int dims[], const int periods[], int reorder,
                    MPI_Comm *comm_cart)
{
    (void)reorder; /* another order would not help neighbours, as far as we know about hosts */
    struct mpi_comm *old = mpi_comm_find(comm_old);
    long long count;
    if (old == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    int code = sizes_check(comm_old, ndims, dims, &count);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (count > old->size) {
        return mpi_error(comm_old, MPI_ERR_DIMS, "the grid has %lld places and %s only %d ranks", count, old->name,
                         old->size);
    }
    code = mpi_comm_split(comm_old, old->rank < count ? 0 : MPI_UNDEFINED, old->rank, comm_cart);
    if (code != MPI_SUCCESS || *comm_cart == MPI_COMM_NULL) {
        return code;
    }
    struct mpi_comm *made = mpi_comm_find(*comm_cart);
    made->topology = mpi_topology_make(ndims, dims, periods, made->rank);
    return made->topology != NULL ? MPI_SUCCESS : mpi_error(comm_old, MPI_ERR_NO_MEM, "no memory for a topology");
}

/* Arrays that must not be NULL where a grid has a dimension. */
static int arrays_check(const struct mpi_comm *comm, bool is_null)
{
    return is_null && comm->topology->dimension_count > 0
               ? mpi_error(comm->handle, MPI_ERR_ARG, "an array for %d dimensions is NULL",
                           comm->topology->dimension_count)
               : MPI_SUCCESS;
}

/* The communicator and its grid. */
static int grid_find(MPI_Comm comm, struct mpi_comm **found)
{
    *found = mpi_comm_find(comm);
    if (*found == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    if ((*found)->topology == NULL) {
        return mpi_error(comm, MPI_ERR_TOPOLOGY, "%s has no Cartesian topology", (*found)->name);
    }
    return MPI_SUCCESS;
}

int mpi_topo_test(MPI_Comm comm, int *status)
{
    struct mpi_comm *found = mpi_comm_find(comm);
    if (found == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    *status = found->topology != NULL ? MPI_CART : MPI_UNDEFINED;
    return MPI_SUCCESS;
}

int mpi_cartdim_get(MPI_Comm comm, int *ndims)
{
    struct mpi_comm *found;
    int code = grid_find(comm, &found);
    if (code == MPI_SUCCESS) {
        *ndims = found->topology->dimension_count;
    }
    return code;
}

int mpi_cart_get(MPI_Comm comm, int maxdims, int dims[], int periods[], int coords[])
{
    struct mpi_comm *found;
    int code = grid_find(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (maxdims < found->topology->dimension_count) {
        return mpi_error(comm, MPI_ERR_ARG, "room for %d of %d dimensions", maxdims, found->topology->dimension_count);
    }
    size_t bytes = (size_t)found->topology->dimension_count * sizeof(int);
    memcpy(dims, found->topology->sizes, bytes);
    memcpy(periods, found->topology->periodic, bytes);
    memcpy(coords, found->topology->coordinates, bytes);
    return MPI_SUCCESS;
}

int mpi_cart_rank(MPI_Comm comm, const int coords[], int *rank)
{
    struct mpi_comm *found;
    int code = grid_find(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = arrays_check(found, coords == NULL);
    if (code != MPI_SUCCESS) {
        return code;
    }
    int at = rank_of(found->topology, coords);
    if (at < 0) {
        return mpi_error(comm, MPI_ERR_ARG,
                         "the coordinates lie outside of the grid, in a dimension that is not periodic");
    }
    *rank = at;
    return MPI_SUCCESS;
}

int mpi_cart_coords(MPI_Comm comm, int rank, int maxdims, int coords[])
{
    struct mpi_comm *found;
    int code = grid_find(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (rank < 0 || rank >= found->size) {
        return mpi_error(comm, MPI_ERR_RANK, "rank %d is none of the %d of %s", rank, found->size, found->name);
    }
    if (maxdims < found->topology->dimension_count) {
        return mpi_error(comm, MPI_ERR_ARG, "room for %d of %d dimensions", maxdims, found->topology->dimension_count);
    }
    mpi_topology_coordinates(found->topology, rank, coords);
    return MPI_SUCCESS;
}

/* The rank that lies `disp` places away, or MPI_PROC_NULL. */
static int neighbour(const struct mpi_topology *topology, int direction, long long disp)
{
    int size = topology->sizes[direction];
    long long at = topology->coordinates[direction] + disp;
    if (topology->periodic[direction]) {
        at = (at % size + size) % size;
    } else if (at < 0 || at >= size) {
        return MPI_PROC_NULL;
    }
    int kept = topology->coordinates[direction];
    topology->coordinates[direction] = (int)at;
    int rank = rank_of(topology, topology->coordinates);
    topology->coordinates[direction] = kept;
    return rank;
}

int mpi_cart_shift(MPI_Comm comm, int direction, int disp, int *rank_source, int *rank_dest)
{
    struct mpi_comm *found;
    int code = grid_find(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (direction < 0 || direction >= found->topology->dimension_count) {
        return mpi_error(comm, MPI_ERR_ARG, "direction %d of %d dimensions", direction,
                         found->topology->dimension_count);
    }
    *rank_source = neighbour(found->topology, direction, -(long long)disp);
    *rank_dest = neighbour(found->topology, direction, disp);
    return MPI_SUCCESS;
}

/* The rest of a grid, and the part that contains this process. */
struct subgrid {
    int *sizes;
    int *periodic;
    int count;
    int color;
    int key;
};

static void subgrid_find(const struct mpi_topology *topology, const int remain_dims[], struct subgrid *part)
{
    for (int dimension = 0; dimension < topology->dimension_count; dimension++) {
        int size = topology->sizes[dimension];
        int at = topology->coordinates[dimension];
        if (remain_dims[dimension]) {
            part->sizes[part->count] = size;
            part->periodic[part->count++] = topology->periodic[dimension];
            part->key = part->key * size + at;
        } else {
            part->color = part->color * size + at;
        }
    }
}

int mpi_cart_sub(MPI_Comm comm, const int remain_dims[], MPI_Comm *newcomm)
{
    struct mpi_comm *found;
    int code = grid_find(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = arrays_check(found, remain_dims == NULL);
    if (code != MPI_SUCCESS) {
        return code;
    }
    size_t count = (size_t)found->topology->dimension_count;
    struct subgrid part = {.sizes = malloc((2 * count + 1) * sizeof(int))};
    if (part.sizes == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a topology");
    }
    part.periodic = part.sizes + count;
    subgrid_find(found->topology, remain_dims, &part);
    code = mpi_comm_split(comm, part.color, part.key, newcomm);
    if (code == MPI_SUCCESS) {
        struct mpi_comm *made = mpi_comm_find(*newcomm);
        made->topology = mpi_topology_make(part.count, part.sizes, part.periodic, made->rank);
        if (made->topology == NULL) {
            code = mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a topology");
        }
    }
    free(part.sizes);
    return code;
}

int mpi_cart_map(MPI_Comm comm, int ndims, const int dims[], const int periods[], int *newrank)
{
    (void)periods;
    struct mpi_comm *found = mpi_comm_find(comm);
    long long count;
    if (found == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    int code = sizes_check(comm, ndims, dims, &count);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (count > found->size) {
        return mpi_error(comm, MPI_ERR_DIMS, "the grid has %lld places and %s only %d ranks", count, found->name,
                         found->size);
    }
    *newrank = found->rank < count ? found->rank : MPI_UNDEFINED;
    return MPI_SUCCESS;
}
