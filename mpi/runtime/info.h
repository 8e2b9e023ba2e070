/* info: lists of keys and values, of strings both: hints, and facts about the program's start (MPI 5.0, chapter 10).
 *
 * Keys keep the order in which they were first set. MPI_INFO_ENV is an object like others, but read-only.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi.h"

struct mpi_info;

/* The object of a handle; NULL: none (MPI_INFO_NULL is none). */
struct mpi_info *mpi_info_find(MPI_Info handle);

/* A copy without a handle, for an object that keeps hints; of NULL an empty one. NULL: no memory. */
struct mpi_info *mpi_info_copy(const struct mpi_info *info);
/* Frees such a copy. NULL is allowed. */
void mpi_info_free_object(struct mpi_info *info);

/* Gives the program a copy, which it frees; of NULL an empty one. MPI_SUCCESS, or MPI_ERR_NO_MEM, which has been
 * raised. */
int mpi_info_return(const struct mpi_info *info, MPI_Info *handle);

/* The value of a key; NULL: it is not set. Stays valid until the object is changed. */
const char *mpi_info_value(const struct mpi_info *info, const char *key);
