/* enter: the entry and exit of every MPI call.
 *
 * Between mpi_enter and mpi_leave the calling thread has the process's lock (lock.h): all state of mpi/ is touched
 * there only. A callback of the program (error handler, user operation, attribute function) may call MPI again: doors
 * nest. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"

/* False: MPI has not been initialized, or has been finalized; then nothing has been entered. `call` is a literal such
 * as "MPI_Send". */
bool mpi_enter(const char *call);
/* For calls that are allowed at any time. */
void mpi_enter_anytime(const char *call);
void mpi_leave(void);

/* Ends the program with an explanation: `call` came before MPI_Init or after MPI_Finalize. (The default error handler,
 * MPI 5.0, 9.3.) */
int mpi_outside(const char *call);

/* Raises MPI_ERR_UNSUPPORTED_OPERATION through the error handler of `comm` and names the call. */
int mpi_unsupported(MPI_Comm comm, const char *call);

/* The same through an error handler that the call was given, for an object that does not exist yet. */
int mpi_unsupported_by(MPI_Errhandler errhandler, const char *call);

/* Raises MPI_ERR_ARG through the error handler of `comm`: one of the arguments that `names` lists is NULL. */
int mpi_null(MPI_Comm comm, const char *names);

/* The MPI call that this thread is in, for messages; "MPI" outside of any. */
const char *mpi_call_name(void);
/* The call continues after code of the program, which may have called others. */
void mpi_call_resume(const char *call);

/* The control thread's view of the program's calls, without the lock. */
struct mpi_activity {
    _Atomic(const char *) call; /* the last one */
    _Atomic uint64_t calls;
};
extern struct mpi_activity mpi_activity;
