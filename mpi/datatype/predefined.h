/* predefined: the datatypes of the ABI that an x86-64 platform with C and Fortran (gfortran) has. */
#pragma once

#include "mpi.h"
#include "mpi/datatype/datatype.h"

/* The type of a handle below 0x1000; NULL: none. */
struct mpi_type *mpi_predefined_find(MPI_Datatype datatype);
