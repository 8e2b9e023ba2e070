/* contents: how a datatype was made, for MPI_Type_get_envelope and MPI_Type_get_contents (MPI 5.0, 5.1.13).
 *
 * Purpose
 *   The constructor's arguments as they were given. Arguments of a constructor of large counts (MPI_Type_vector_c) that
 *   are MPI_Count are kept as large counts, counts and displacements alike; otherwise counts are integers and byte
 *   displacements addresses.
 *
 * Order of calls
 *   mpi_contents_make with how many there will be of each, then as many mpi_contents_*: in the order of the
 *   constructor's arguments. */
#pragma once

#include <stdbool.h>

#include "mpi.h"
#include "mpi/datatype/datatype.h"

struct mpi_contents {
    int combiner;
    bool large;
    MPI_Count integer_count;
    MPI_Count address_count;
    MPI_Count large_count;
    MPI_Count type_count;
    int *integers;
    MPI_Aint *addresses;
    MPI_Count *large_counts;
    struct mpi_type **types; /* a reference to each */
};

/* Room for the arguments of a call: integers that are always int, counts, byte displacements, types. NULL: no
 * memory. */
struct mpi_contents *mpi_contents_make(int combiner, MPI_Count integers, MPI_Count counts, MPI_Count displacements,
                                       MPI_Count types);
void mpi_contents_integer(struct mpi_contents *contents, int value);
void mpi_contents_count(struct mpi_contents *contents, MPI_Count value);
void mpi_contents_displacement(struct mpi_contents *contents, MPI_Count value);
void mpi_contents_type(struct mpi_contents *contents, struct mpi_type *type);
/* Releases the types. NULL is allowed. */
void mpi_contents_free(struct mpi_contents *contents);

/* How many elements of types[index] a type has in its packed stream before the next type begins (structs, pairs). */
MPI_Count mpi_contents_blocklength(const struct mpi_contents *contents, MPI_Count index);
