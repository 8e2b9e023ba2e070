/* errhandler: the recipients of errors (MPI 5.0, 9.3).
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"

enum mpi_errhandler_kind {
    MPI_ERRHANDLER_COMM,
    MPI_ERRHANDLER_FILE,
    MPI_ERRHANDLER_SESSION,
    MPI_ERRHANDLER_WIN,
    MPI_ERRHANDLER_ANY, /* the predefined ones */
};

struct mpi_errhandler {
    MPI_Errhandler handle;
    uint32_t references;
    uint32_t handles; /* that the program has been given and not freed; each holds a reference. 0: no handle */
    enum mpi_errhandler_kind kind;
    MPI_Comm_errhandler_function *comm_function; /* NULL: predefined */
    union {                                      /* of files and windows: nothing calls them yet */
        MPI_File_errhandler_function *file_function;
        MPI_Session_errhandler_function *session_function;
        MPI_Win_errhandler_function *win_function;
    };
};

/* The object of a handle; NULL: none. */
struct mpi_errhandler *mpi_errhandler_find(MPI_Errhandler handle);
void mpi_errhandler_retain(struct mpi_errhandler *errhandler);
void mpi_errhandler_release(struct mpi_errhandler *errhandler);

/* Whether an error on `comm` ends the job. */
bool mpi_errhandler_is_fatal(MPI_Comm comm);

/* The call, the communicator, the text and the reason of the last error of the process, if this thread has raised it and
 * it had this code; else "". Valid until the next error. */
const char *mpi_errhandler_last(int code);

/* Raises `code` through the error handler of `comm`; if that is no communicator, through that of MPI_COMM_SELF if the
 * program has set it, and else of MPI_COMM_WORLD. `text` is the reason. Returns the code. */
int mpi_errhandler_call(MPI_Comm comm, int code, const char *text);
/* The same by an error handler that a call was given, about a session that does not exist. */
int mpi_errhandler_call_by(MPI_Errhandler handle, int code, const char *text);
