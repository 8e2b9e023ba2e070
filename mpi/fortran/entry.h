/* entry: shared by the entry points for Fortran.
 *
 * Each source with FORTRAN_ENTRY is compiled twice: mpi_send_, which is weak and calls MPI_Send, so that tools written
 * in C see the calls of Fortran programs; and pmpi_send_, which calls PMPI_Send, for tools written in Fortran (MPI 5.0,
 * 15.2).
 *
 * gfortran on little-endian 64-bit machines: arguments by address, INTEGER and LOGICAL of 4 bytes, the lengths of
 * strings as size_t behind all others. A handle is a number below 2^31 in C, too (mpi/state/handle.h), and lies in 8
 * bytes of which Fortran reads the lower 4: a Fortran subroutine can be given to C where all that it is called with is
 * handles and integers by address (operations, error handlers).
 *
 * Everything here is thread-safe, and uses nothing but the public ABI. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpi.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && sizeof(void *) == 8,
               "handles are read by their lower half");
_Static_assert(sizeof(MPI_Fint) == sizeof(int), "integers go to C as they are");

#ifdef FORTRAN_PROFILED
#define FORTRAN_ENTRY(name) pmpi_##name##_
#define FORTRAN_CALL(name)  PMPI_##name
#else
#define FORTRAN_ENTRY(name) __attribute__((weak)) mpi_##name##_
#define FORTRAN_CALL(name)  MPI_##name
#endif

#define FORTRAN_HANDLE(type, integer) ((type)(intptr_t) * (integer))
#define FORTRAN_NUMBER(handle)        ((MPI_Fint)(intptr_t)(handle))

enum { FORTRAN_FEW = 16 }; /* handles that are converted without allocating */

/* The common blocks whose addresses have a meaning. Those of statuses are libmpi_abi's, for MPI_F_STATUS_IGNORE. */
extern MPI_Fint mpi_f_bottom_, mpi_f_in_place_, mpi_f_buffer_automatic_;
extern MPI_Fint mpi_f_status_ignore_[MPI_F_STATUS_SIZE], mpi_f_statuses_ignore_[MPI_F_STATUS_SIZE];
extern MPI_Fint mpi_f_errcodes_ignore_[1], mpi_f_unweighted_[1], mpi_f_weights_empty_[1];
extern char mpi_f_argv_null_[1], mpi_f_argvs_null_[1];

/* C's constant in their place; other addresses unchanged. */
void *fortran_buffer(const void *buffer);
MPI_Status *fortran_status(const MPI_Fint *status);
int *fortran_weights(const MPI_Fint *weights);

/* Arrays of handles: converted to `few` or to allocated memory; given back by one of the others, which the first of
 * them copies to `from`. No memory for that many ends the program. */
void **fortran_handles(const MPI_Fint *from, int count, void *few[FORTRAN_FEW]);
void fortran_handles_back(MPI_Fint *from, int count, void **handles, void *few[FORTRAN_FEW]);
void fortran_handles_drop(void **handles, void *few[FORTRAN_FEW]);

/* How many datatypes MPI_Alltoallw and MPI_Neighbor_alltoallw take on a communicator. */
int fortran_peers(MPI_Comm comm, bool neighbors, bool sends, const void *sendbuf);

/* Indices of arrays begin at 1; MPI_UNDEFINED stays. */
MPI_Fint fortran_index(int index);
void fortran_indices(MPI_Fint indices[], int count);

/* A string without the blanks at its end (`both`: and at its beginning), for free(); NULL: no memory. */
char *fortran_text(const char *text, size_t length, bool both);
/* Copies a string and fills up with blanks; NULL: leaves it as it is. */
void fortran_pad(char *to, size_t length, const char *from);

/* MPI_Comm_idup writes its communicator when it completes, 8 bytes: so into memory of its own, and after a call that
 * completes something from there to the program. fortran_promise: memory for that; NULL: none is left. fortran_clear:
 * the call has failed. */
MPI_Comm *fortran_promise(MPI_Fint *newcomm);
void fortran_clear(MPI_Comm *promised);
void fortran_finish(void);
