#include "mpi/runtime/enter.h"

#include <stdio.h>
#include <stdlib.h>

#include "mpi/runtime/errhandler.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/lock.h"
#include "mpi/runtime/virtual.h"
#include "mpi/state/process.h"

static _Thread_local const char *call_name = "MPI";

struct mpi_activity mpi_activity = {.call = "MPI"};

bool mpi_enter(const char *call)
{
    if (mpi_process.state != MPI_PROCESS_RUNNING) {
        return false;
    }
    mpi_enter_anytime(call);
    return true;
}

void mpi_enter_anytime(const char *call)
{
    call_name = call;
    mpi_lock_acquire();
    /* plain stores: the writer has the lock */
    atomic_store_explicit(&mpi_activity.call, call, memory_order_relaxed);
    atomic_store_explicit(&mpi_activity.calls, atomic_load_explicit(&mpi_activity.calls, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (cw_virtual_page != NULL && atomic_load_explicit(&mpi_lock.inside, memory_order_relaxed) == 1) {
        mpi_virtual_enter();
    }
}

void mpi_leave(void)
{
    mpi_lock_release();
}

int mpi_outside(const char *call)
{
    fprintf(stderr, "causeway: %s was called %s\n", call,
            mpi_process.state == MPI_PROCESS_FINALIZED ? "after MPI_Finalize; nothing but a few inquiries may follow it"
                                                       : "before MPI_Init or MPI_Init_thread; call one of them first");
    mpi_process_abort(MPI_ERR_OTHER);
}

#define NOT_IMPLEMENTED "%s is not implemented yet; `causeway doctor --mpi` lists all that are not"

int mpi_unsupported(MPI_Comm comm, const char *call)
{
    return mpi_error(comm, MPI_ERR_UNSUPPORTED_OPERATION, NOT_IMPLEMENTED, call);
}

int mpi_unsupported_by(MPI_Errhandler errhandler, const char *call)
{
    char text[128];
    snprintf(text, sizeof(text), NOT_IMPLEMENTED, call);
    return mpi_errhandler_call_by(errhandler, MPI_ERR_UNSUPPORTED_OPERATION, text);
}

int mpi_null(MPI_Comm comm, const char *names)
{
    return mpi_error(comm, MPI_ERR_ARG, "%s is NULL; give an address", names);
}

const char *mpi_call_name(void)
{
    return call_name;
}

void mpi_call_resume(const char *call)
{
    call_name = call;
    atomic_store_explicit(&mpi_activity.call, call, memory_order_relaxed);
}
