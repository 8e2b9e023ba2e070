/* names: all functions of the ABI, and which of them this library implements. */
#pragma once

#include <stdbool.h>

struct mpi_name {
    const char *name;
    unsigned chapter; /* of MPI 5.0 */
    const char *title;
    bool implemented;
};

extern const struct mpi_name mpi_names[]; /* by chapter, then by name */
extern const unsigned mpi_name_count;
