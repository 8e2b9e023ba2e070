/* MPI_T, the tool information interface (MPI 5.0, 15.3), with no variable, event, source or category in it.
 *
 * The standard allows that, and tools continue. These calls return their codes and raise no errors. Most arguments are
 * never looked at: every index, name and handle is one of nothing. */
#include "mpi/runtime/tool.h"

#include <stdint.h>

#include "mpi/state/process.h"
#include "mpi_functions.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

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

static int reject(int code)
{
    return starts == 0 ? MPI_T_ERR_NOT_INITIALIZED : code;
}

static int count_none(int *count)
{
    if (starts == 0 || count == NULL) {
        return reject(MPI_T_ERR_INVALID);
    }
    *count = 0;
    return MPI_SUCCESS;
}

int mpi_t_init_thread(int required, int *provided)
{
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

/* ---- control variables ---- */

int mpi_t_cvar_get_index(const char *name, int *cvar_index)
{
    return reject(name == NULL ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_NAME);
}

int mpi_t_cvar_get_info(int cvar_index, char *name, int *name_len, int *verbosity, MPI_Datatype *datatype,
                        MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind, int *scope)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_cvar_get_num(int *num_cvar)
{
    return count_none(num_cvar);
}

int mpi_t_cvar_handle_alloc(int cvar_index, void *obj_handle, MPI_T_cvar_handle *handle, int *count)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_cvar_handle_free(MPI_T_cvar_handle *handle)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_cvar_read(MPI_T_cvar_handle handle, void *buf)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_cvar_write(MPI_T_cvar_handle handle, const void *buf)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

/* ---- performance variables ---- */

/* The session's bit; 0: there is no such session. */
static uint32_t session_bit(MPI_T_pvar_session session)
{
    uintptr_t index = (uintptr_t)session - SESSION_FIRST;
    return index < SESSIONS ? sessions & UINT32_C(1) << index : 0;
}

/* Uses of a handle in a session: none. */
static int reject_within(MPI_T_pvar_session session, int code)
{
    return reject(session_bit(session) == 0 ? MPI_T_ERR_INVALID_SESSION : code);
}

static int all_or_reject(MPI_T_pvar_session session, MPI_T_pvar_handle handle)
{
    return reject_within(session, handle == MPI_T_PVAR_ALL_HANDLES ? MPI_SUCCESS : MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_pvar_session_create(MPI_T_pvar_session *session)
{
    if (starts == 0 || session == NULL) {
        return reject(MPI_T_ERR_INVALID);
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
        return reject(MPI_T_ERR_INVALID);
    }
    uint32_t bit = session_bit(*session);
    if (bit == 0) {
        return MPI_T_ERR_INVALID_SESSION;
    }
    sessions &= ~bit;
    *session = MPI_T_PVAR_SESSION_NULL;
    return MPI_SUCCESS;
}

int mpi_t_pvar_get_index(const char *name, int var_class, int *pvar_index)
{
    return reject(name == NULL ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_NAME);
}

int mpi_t_pvar_get_info(int pvar_index, char *name, int *name_len, int *verbosity, int *var_class,
                        MPI_Datatype *datatype, MPI_T_enum *enumtype, char *desc, int *desc_len, int *bind,
                        int *readonly, int *continuous, int *atomic)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_pvar_get_num(int *num_pvar)
{
    return count_none(num_pvar);
}

int mpi_t_pvar_handle_alloc(MPI_T_pvar_session session, int pvar_index, void *obj_handle, MPI_T_pvar_handle *handle,
                            int *count)
{
    return reject_within(session, MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_pvar_handle_free(MPI_T_pvar_session session, MPI_T_pvar_handle *handle)
{
    return reject_within(session, MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_pvar_read(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    return reject_within(session, MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_pvar_readreset(MPI_T_pvar_session session, MPI_T_pvar_handle handle, void *buf)
{
    return reject_within(session, MPI_T_ERR_INVALID_HANDLE);
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

int mpi_t_pvar_write(MPI_T_pvar_session session, MPI_T_pvar_handle handle, const void *buf)
{
    return reject_within(session, MPI_T_ERR_INVALID_HANDLE);
}

/* ---- events and their sources ---- */

int mpi_t_event_callback_get_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety,
                                  MPI_Info *info_used)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_callback_set_info(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info info)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_copy(MPI_T_event_instance event_instance, void *buffer)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_get_index(const char *name, int *event_index)
{
    return reject(name == NULL ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_NAME);
}

int mpi_t_event_get_info(int event_index, char *name, int *name_len, int *verbosity, MPI_Datatype array_of_datatypes[],
                         MPI_Aint array_of_displacements[], int *num_elements, MPI_T_enum *enumtype, MPI_Info *info,
                         char *desc, int *desc_len, int *bind)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_event_get_num(int *num_events)
{
    return count_none(num_events);
}

int mpi_t_event_get_source(MPI_T_event_instance event_instance, int *source_index)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_get_timestamp(MPI_T_event_instance event_instance, MPI_Count *event_timestamp)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_handle_alloc(int event_index, void *obj_handle, MPI_Info info,
                             MPI_T_event_registration *event_registration)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_event_handle_free(MPI_T_event_registration event_registration, void *user_data,
                            MPI_T_event_free_cb_function free_cb_function)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_handle_get_info(MPI_T_event_registration event_registration, MPI_Info *info_used)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_handle_set_info(MPI_T_event_registration event_registration, MPI_Info info)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_read(MPI_T_event_instance event_instance, int element_index, void *buffer)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_register_callback(MPI_T_event_registration event_registration, MPI_T_cb_safety cb_safety, MPI_Info info,
                                  void *user_data, MPI_T_event_cb_function event_cb_function)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_event_set_dropped_handler(MPI_T_event_registration event_registration,
                                    MPI_T_event_dropped_cb_function dropped_cb_function)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_source_get_info(int source_index, char *name, int *name_len, char *desc, int *desc_len,
                          MPI_T_source_order *ordering, MPI_Count *ticks_per_second, MPI_Count *max_ticks,
                          MPI_Info *info)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_source_get_num(int *num_sources)
{
    return count_none(num_sources);
}

int mpi_t_source_get_timestamp(int source_index, MPI_Count *timestamp)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

/* ---- categories and enumerations ---- */

int mpi_t_category_changed(int *update_number)
{
    return count_none(update_number);
}

int mpi_t_category_get_categories(int cat_index, int len, int indices[])
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_category_get_cvars(int cat_index, int len, int indices[])
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_category_get_events(int cat_index, int len, int indices[])
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_category_get_pvars(int cat_index, int len, int indices[])
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_category_get_index(const char *name, int *cat_index)
{
    return reject(name == NULL ? MPI_T_ERR_INVALID : MPI_T_ERR_INVALID_NAME);
}

int mpi_t_category_get_info(int cat_index, char *name, int *name_len, char *desc, int *desc_len, int *num_cvars,
                            int *num_pvars, int *num_categories)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_category_get_num(int *num_cat)
{
    return count_none(num_cat);
}

int mpi_t_category_get_num_events(int cat_index, int *num_events)
{
    return reject(MPI_T_ERR_INVALID_INDEX);
}

int mpi_t_enum_get_info(MPI_T_enum enumtype, int *num, char *name, int *name_len)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}

int mpi_t_enum_get_item(MPI_T_enum enumtype, int indx, int *value, char *name, int *name_len)
{
    return reject(MPI_T_ERR_INVALID_HANDLE);
}
