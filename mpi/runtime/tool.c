/* MPI_T, the tool information interface (MPI 5.0, 15.3), with no variable, event, source or category in it.
 *
 * The standard allows that, and tools continue. These calls return their codes and raise no errors. mpi/abi/generate.py
 * generates those that are not here: counts are 0; the others fail by the kind of their first parameter, or of the one
 * after the session. */
#include "mpi/runtime/tool.h"

#include <stdint.h>

#include "mpi/state/process.h"
#include "mpi_functions.h"

enum {
    SESSIONS = 32,
    SESSION_FIRST = 0x1000, /* the ABI has all below */
};

static const char *const texts[] = {
    [MPI_T_ERR_CANNOT_INIT - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_CANNOT_INIT: the tool interface cannot be initialized",
    [MPI_T_ERR_NOT_ACCESSIBLE - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_NOT_ACCESSIBLE: not accessible",
    [MPI_T_ERR_NOT_INITIALIZED - MPI_T_ERR_CANNOT_INIT] =
        "MPI_T_ERR_NOT_INITIALIZED: the tool interface is not initialized",
    [MPI_T_ERR_NOT_SUPPORTED - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_NOT_SUPPORTED: not supported",
    [MPI_T_ERR_MEMORY - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_MEMORY: out of memory",
    [MPI_T_ERR_INVALID - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_INVALID: invalid argument",
    [MPI_T_ERR_INVALID_INDEX - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_INVALID_INDEX: there is nothing of this index",
    [MPI_T_ERR_INVALID_ITEM - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_INVALID_ITEM: there is no such item",
    [MPI_T_ERR_INVALID_SESSION - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_INVALID_SESSION: invalid session",
    [MPI_T_ERR_INVALID_HANDLE - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_INVALID_HANDLE: invalid handle",
    [MPI_T_ERR_INVALID_NAME - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_INVALID_NAME: there is nothing of this name",
    [MPI_T_ERR_OUT_OF_HANDLES - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_OUT_OF_HANDLES: no more handles",
    [MPI_T_ERR_OUT_OF_SESSIONS - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_OUT_OF_SESSIONS: no more sessions",
    [MPI_T_ERR_CVAR_SET_NOT_NOW - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_CVAR_SET_NOT_NOW: the variable cannot be set now",
    [MPI_T_ERR_CVAR_SET_NEVER - MPI_T_ERR_CANNOT_INIT] = "MPI_T_ERR_CVAR_SET_NEVER: the variable cannot be set",
    [MPI_T_ERR_PVAR_NO_WRITE - MPI_T_ERR_CANNOT_INIT] =
        "MPI_T_ERR_PVAR_NO_WRITE: the variable cannot be written or reset",
    [MPI_T_ERR_PVAR_NO_STARTSTOP - MPI_T_ERR_CANNOT_INIT] =
        "MPI_T_ERR_PVAR_NO_STARTSTOP: the variable cannot be started or stopped",
    [MPI_T_ERR_PVAR_NO_ATOMIC - MPI_T_ERR_CANNOT_INIT] =
        "MPI_T_ERR_PVAR_NO_ATOMIC: the variable cannot be read and reset in one step",
};

static unsigned starts;   /* MPI_T_init_thread less MPI_T_finalize */
static uint32_t sessions; /* a bit each */

_Static_assert(SESSIONS == 8 * sizeof(sessions), "a bit each");

const char *mpi_tool_error_text(int code)
{
    unsigned index = (unsigned)code - MPI_T_ERR_CANNOT_INIT;
    return index < sizeof(texts) / sizeof(texts[0]) ? texts[index] : NULL;
}

int mpi_tool_reject(int code)
{
    return starts == 0 ? MPI_T_ERR_NOT_INITIALIZED : code;
}

int mpi_tool_reject_name(const char *name)
{
    return mpi_tool_reject(name == NULL ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_NAME);
}

int mpi_tool_count(int *count)
{
    if (starts == 0 || count == NULL) {
        return mpi_tool_reject(MPI_T_ERR_INVALID);
    }
    *count = 0;
    return MPI_SUCCESS;
}

int mpi_t_init_thread(int required, int *provided)
{
    (void)required;
    if (provided == NULL) {
        return MPI_T_ERR_INVALID;
    }
    *provided = mpi_process.state == MPI_PROCESS_RUNNING ? mpi_process.thread_level : MPI_THREAD_SERIALIZED;
    starts++;
    return MPI_SUCCESS;
}

int mpi_t_finalize(void)
{
    if (starts == 0) {
        return MPI_T_ERR_NOT_INITIALIZED;
    }
    starts--;
    sessions = starts == 0 ? 0 : sessions;
    return MPI_SUCCESS;
}

/* The session's bit; 0: there is no such session. */
static uint32_t session_bit(MPI_T_pvar_session session)
{
    uintptr_t index = (uintptr_t)session - SESSION_FIRST;
    return index < SESSIONS ? sessions & UINT32_C(1) << index : 0;
}

int mpi_tool_reject_within(MPI_T_pvar_session session, int code)
{
    return mpi_tool_reject(session_bit(session) == 0 ? MPI_T_ERR_INVALID_SESSION : code);
}

static int all_or_reject(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return mpi_tool_reject_within(session, handle == MPI_T_PVAR_ALL_HANDLES ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_pvar_session_create(MPI_T_pvar_session *session)
{
    if (starts == 0 || session == NULL) {
        return mpi_tool_reject(MPI_T_ERR_INVALID);
    }
    if (sessions == UINT32_MAX) {
        return MPI_T_ERR_OUT_OF_SESSIONS;
    }
    int index = __builtin_ctz(~sessions);
    sessions |= UINT32_C(1) << index;
    *session = (MPI_T_pvar_session)(uintptr_t)(SESSION_FIRST + index);
    return MPI_SUCCESS;
}

int mpi_t_pvar_session_free(MPI_T_pvar_session *session)
{
    if (starts == 0 || session == NULL) {
        return mpi_tool_reject(MPI_T_ERR_INVALID);
    }
    uint32_t bit = session_bit(*session);
    if (bit == 0) {
        return MPI_T_ERR_INVALID_SESSION;
    }
    sessions &= ~bit;
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}

int mpi_t_pvar_reset(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return all_or_reject(session, handle);
}

int mpi_t_pvar_start(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return all_or_reject(session, handle);
}

int mpi_t_pvar_stop(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return all_or_reject(session, handle);
}
