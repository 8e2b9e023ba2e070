/* attribute: values that programs cache on communicators and datatypes (windows will follow), and their keys (MPI 5.0,
 * 7.7).
 *
 * Invariants
 *   - A key is counted: the program holds one reference until it frees the key, each value one more. A freed key works
 *     on while there are values of it.
 *   - Copy and delete functions may call MPI, and change the very attributes that are being copied or deleted.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>

#include "mpi.h"

struct mpi_attributes; /* of one object; NULL: none yet */

/* Copies what the keys' copy functions let through, for MPI_Comm_dup and MPI_Type_dup; `old` is the handle whose
 * attributes they are. MPI_SUCCESS, or the code of the function that failed, with nothing left in *copy. */
int mpi_attributes_copy_comm(MPI_Comm old, struct mpi_attributes *attributes, struct mpi_attributes **copy);
int mpi_attributes_copy_type(MPI_Datatype old, struct mpi_attributes *attributes, struct mpi_attributes **copy);

/* Calls the delete functions, the last set first, and frees; the first code that is not MPI_SUCCESS stops it, and is
 * returned. */
int mpi_attributes_free_comm(MPI_Comm comm, struct mpi_attributes **attributes);
int mpi_attributes_free_type(MPI_Datatype datatype, struct mpi_attributes **attributes);

/* One attribute of a datatype, as MPI_Type_set_attr, _get_attr and _delete_attr have it (datatype/type_attribute.c).
 * MPI_SUCCESS or the error, raised. */
int mpi_attribute_set_type(MPI_Datatype datatype, struct mpi_attributes **attributes, int number, void *value);
int mpi_attribute_get_type(const struct mpi_attributes *attributes, int number, void *value, int *flag);
int mpi_attribute_unset_type(MPI_Datatype datatype, struct mpi_attributes *attributes, int number);
