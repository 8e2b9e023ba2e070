/* names: all functions of the ABI, and which of them this library implements. */
#ifndef MPI_NAMES_H
#define MPI_NAMES_H

#include <stdbool.h>

struct mpi_name {
    const char *name;
    bool implemented;
};

extern const struct mpi_name mpi_names[]; /* sorted */
extern const unsigned mpi_name_count;

#endif
