/* error: raising of MPI errors, and the meaning of their numbers (MPI 5.0, chapter 9).
 *
 * A code of this library is its class. Programs add classes and codes of their own above MPI_ERR_LASTCODE. */
#pragma once

#include "mpi.h"

/* Raises `code` through the error handler of `comm` (MPI_COMM_NULL, or no communicator at all: mpi_errhandler_call) and
 * returns it. The text contains the problem and the fix; the call's name is put before it. */
int mpi_error(MPI_Comm comm, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The MPI error class for a code of dataplane/status.h. */
int mpi_error_of_status(int status);
/* The reason of the last such status, in the words of the failed path, if the system rejected it: a limit, memory, a
 * privilege. "": not known. */
const char *mpi_error_reason(int code);

/* The line of a class or the program's text of a code; NULL: no such code. MPI_Error_string adds mpi_errhandler_last. */
const char *mpi_error_text(int code);

/* The greatest code in use (MPI_LASTUSEDCODE). */
int mpi_error_last_used(void);
