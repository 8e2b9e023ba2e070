/* counts: arrays of counts and displacements as programs give them, of int or of MPI_Count (MPI 5.0, 2.5.8: large
 * counts). */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "mpi.h"

_Static_assert(sizeof(MPI_Aint) == sizeof(MPI_Count), "arrays of both are read alike");

struct mpi_counts {
    const void *values;
    bool wide;
};

static inline struct mpi_counts mpi_counts_int(const int *values)
{
    return (struct mpi_counts){.values = values, .wide = false};
}

static inline struct mpi_counts mpi_counts_wide(const void *values)
{
    return (struct mpi_counts){.values = values, .wide = true};
}

static inline MPI_Count mpi_count_at(struct mpi_counts counts, MPI_Count index)
{
    return counts.wide ? ((const MPI_Count *)counts.values)[index] : ((const int *)counts.values)[index];
}

/* A result for a program that requested an int; a value that does not fit is MPI_UNDEFINED (MPI_Get_count,
 * MPI_Type_size, ...). */
static inline int mpi_count_narrow(MPI_Count count)
{
    return count > INT_MAX ? MPI_UNDEFINED : (int)count;
}
