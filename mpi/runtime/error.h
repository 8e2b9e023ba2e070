/* error: how MPI errors are raised, and what their numbers mean (MPI 5.0, chapter 9).
 *
 * A code of this library is its class. Programs add classes and codes of their own above MPI_ERR_LASTCODE. */
#pragma once

#include "mpi.h"

/* Raises `code` through the error handler of `comm` (MPI_COMM_NULL, or no communicator at all: mpi_errhandler_call) and
 * returns it. The text says what was wrong and what to do about it; the call's name is put before it. */
int mpi_error(MPI_Comm comm, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The MPI error class for a code of dataplane/status.h. */
int mpi_error_of_status(int status);
/* What the last such status was for, in the words of the path that met it, if it was the system that refused: a
 * limit, memory, a privilege. "": nothing is known. */
const char *mpi_error_reason(int code);

/* What MPI_Error_string says; NULL: no such code. */
const char *mpi_error_text(int code);

/* The greatest code in use (MPI_LASTUSEDCODE). */
int mpi_error_last_used(void);
