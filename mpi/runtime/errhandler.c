#include "mpi/runtime/errhandler.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/runtime/enter.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/lock.h"
#include "mpi/state/comm.h"
#include "mpi/state/handle.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

static struct mpi_errhandler predefined[] = {
    {.handle = MPI_ERRORS_ARE_FATAL, .references = 1, .kind = MPI_ERRHANDLER_ANY},
    {.handle = MPI_ERRORS_ABORT, .references = 1, .kind = MPI_ERRHANDLER_ANY},
    {.handle = MPI_ERRORS_RETURN, .references = 1, .kind = MPI_ERRHANDLER_ANY},
};

struct mpi_errhandler *mpi_errhandler_find(MPI_Errhandler handle)
{
    for (size_t i = 0; i < sizeof(predefined) / sizeof(predefined[0]); i++) {
        if (predefined[i].handle == handle) {
            return &predefined[i];
        }
    }
    return mpi_handle_object(MPI_KIND_ERRHANDLER, (uintptr_t)handle);
}

void mpi_errhandler_retain(struct mpi_errhandler *errhandler)
{
    errhandler->references++;
}

void mpi_errhandler_release(struct mpi_errhandler *errhandler)
{
    assert(errhandler->references > 0);
    if (--errhandler->references == 0) {
        assert(errhandler->handles == 0 && errhandler->kind != MPI_ERRHANDLER_ANY);
        free(errhandler);
    }
}

/* A handle for the program, which holds a reference until MPI_Errhandler_free. */
static int errhandler_handle_make(struct mpi_errhandler *errhandler, MPI_Errhandler *handle)
{
    if (errhandler->kind != MPI_ERRHANDLER_ANY) {
        if (errhandler->handles == 0) {
            errhandler->handle = (MPI_Errhandler)mpi_handle_make(MPI_KIND_ERRHANDLER, errhandler);
            if (errhandler->handle == NULL) {
                return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for the handle of an error handler");
            }
        }
        errhandler->handles++;
        mpi_errhandler_retain(errhandler);
    }
    *handle = errhandler->handle;
    return MPI_SUCCESS;
}

static int errhandler_make(struct mpi_errhandler value, bool has_function, MPI_Errhandler *handle)
{
    if (!has_function) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "the function is NULL");
    }
    struct mpi_errhandler *made = malloc(sizeof(*made));
    if (made == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for an error handler");
    }
    *made = value;
    made->references = 1;
    int code = errhandler_handle_make(made, handle);
    mpi_errhandler_release(made); /* the handle has its own reference now */
    return code;
}

int mpi_comm_create_errhandler(MPI_Comm_errhandler_function *comm_errhandler_fn, MPI_Errhandler *errhandler)
{
    return errhandler_make((struct mpi_errhandler){.kind = MPI_ERRHANDLER_COMM, .comm_function = comm_errhandler_fn},
                           comm_errhandler_fn != NULL, errhandler);
}

int mpi_win_create_errhandler(MPI_Win_errhandler_function *win_errhandler_fn, MPI_Errhandler *errhandler)
{
    return errhandler_make((struct mpi_errhandler){.kind = MPI_ERRHANDLER_WIN, .win_function = win_errhandler_fn},
                           win_errhandler_fn != NULL, errhandler);
}

int mpi_file_create_errhandler(MPI_File_errhandler_function *file_errhandler_fn, MPI_Errhandler *errhandler)
{
    return errhandler_make((struct mpi_errhandler){.kind = MPI_ERRHANDLER_FILE, .file_function = file_errhandler_fn},
                           file_errhandler_fn != NULL, errhandler);
}

int mpi_session_create_errhandler(MPI_Session_errhandler_function *session_errhandler_fn, MPI_Errhandler *errhandler)
{
    return errhandler_make(
        (struct mpi_errhandler){.kind = MPI_ERRHANDLER_SESSION, .session_function = session_errhandler_fn},
        session_errhandler_fn != NULL, errhandler);
}

int mpi_errhandler_free(MPI_Errhandler *errhandler)
{
    struct mpi_errhandler *found = mpi_errhandler_find(*errhandler);
    if (found == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ERRHANDLER, "unknown error handler, or one that was freed");
    }
    /* Predefined ones, too: programs free whatever MPI_Comm_get_errhandler has given them (MPI 5.0, 9.3). */
    if (found->kind != MPI_ERRHANDLER_ANY) {
        if (--found->handles == 0) {
            mpi_handle_free(MPI_KIND_ERRHANDLER, (uintptr_t)found->handle);
            found->handle = MPI_ERRHANDLER_NULL;
        }
        mpi_errhandler_release(found);
    }
    *errhandler = MPI_ERRHANDLER_NULL;
    return MPI_SUCCESS;
}

static int comm_unknown(void)
{
    return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
}

/* Whether the program has given MPI_COMM_SELF an error handler. */
static bool self_is_set;

/* The communicator whose handler is called for errors on `comm`. Errors that belong to no communicator go to
 * MPI_COMM_SELF (MPI 5.0, 9.3). Programs written before MPI 4.0 set the handler of MPI_COMM_WORLD instead. NULL: before
 * MPI_Init. */
static struct mpi_comm *handling_comm(struct mpi_comm *comm)
{
    return comm != NULL ? comm : self_is_set ? mpi_comm_self : mpi_comm_world;
}

int mpi_comm_set_errhandler(MPI_Comm comm, MPI_Errhandler errhandler)
{
    struct mpi_comm *found = mpi_comm_find(comm);
    struct mpi_errhandler *handler = mpi_errhandler_find(errhandler);
    if (found == NULL) {
        return comm_unknown();
    }
    if (handler == NULL || (handler->kind != MPI_ERRHANDLER_COMM && handler->kind != MPI_ERRHANDLER_ANY)) {
        return mpi_error(comm, MPI_ERR_ERRHANDLER, "%s",
                         handler == NULL ? "unknown error handler, or one that was freed"
                                         : "the error handler is none of communicators");
    }
    mpi_errhandler_retain(handler);
    mpi_errhandler_release(found->errhandler);
    found->errhandler = handler;
    self_is_set = self_is_set || found == mpi_comm_self;
    return MPI_SUCCESS;
}

int mpi_comm_get_errhandler(MPI_Comm comm, MPI_Errhandler *errhandler)
{
    const struct mpi_comm *found = mpi_comm_find(comm);
    return found == NULL ? comm_unknown() : errhandler_handle_make(found->errhandler, errhandler);
}

/* The last error of the process, which a thread has raised whose own number is the same. */
static struct {
    uint64_t number;
    int code;
    char line[1024]; /* the call, the communicator, the text and the reason */
} last;
static _Thread_local uint64_t own_number;

static void last_note(const struct mpi_comm *about, int code, const char *text)
{
    bool has_name = about != NULL && about->name[0] != '\0';
    const char *reason = mpi_error_reason(code);
    snprintf(last.line, sizeof(last.line), "%s%s%s: %s%s%s", mpi_call_name(), has_name ? " on " : "",
             has_name ? about->name : "", text, reason[0] != '\0' ? ": " : "", reason);
    last.code = code;
    own_number = ++last.number;
}

const char *mpi_errhandler_last(int code)
{
    return own_number == last.number && code == last.code ? last.line : "";
}

/* The launcher also knows which process has ended, reports it better and ends this one: it goes first. */
enum { LAUNCHER_US = 500000 };

/* One line: the rank, the last error, and the standard's name of it. */
static _Noreturn void end_job(int code)
{
    char rank[32] = "";
    if (code == MPI_ERR_PROC_ABORTED) {
        usleep(LAUNCHER_US);
    }
    if (mpi_process.state == MPI_PROCESS_RUNNING) {
        snprintf(rank, sizeof(rank), "rank %u: ", mpi_process.rank);
    }
    const char *class_text = mpi_error_text(code);
    class_text = class_text != NULL && class_text[0] != '\0' ? class_text : "an error code of the program";
    char named[MPI_MAX_ERROR_STRING + 4] = "";
    if (strstr(last.line, class_text) == NULL) {
        snprintf(named, sizeof(named), " (%s)", class_text);
    }
    fprintf(stderr, "causeway: %s%s%s\n", rank, last.line, named);
    mpi_process_abort(code);
}

/* Calls the handler for an error on `about` (NULL: the error belongs to no communicator). */
static void handler_call(struct mpi_comm *about, int code, const char *text)
{
    struct mpi_comm *comm = handling_comm(about);
    struct mpi_errhandler *handler = comm != NULL ? comm->errhandler : NULL;
    MPI_Errhandler handle = handler != NULL ? handler->handle : MPI_ERRORS_ARE_FATAL;
    last_note(about, code, text);
    if (handler != NULL && handler->comm_function != NULL) {
        MPI_Comm comm_handle = comm->handle;
        int code_copy = code;
        if (mpi_lock_is_control()) {
            return; /* errors there belong to a request, whose error the program's next call raises */
        }
        const char *call = mpi_call_name();
        mpi_errhandler_retain(handler); /* it may put another one into its own place */
        handler->comm_function(&comm_handle, &code_copy);
        mpi_errhandler_release(handler);
        mpi_call_resume(call);
        last_note(about, code, text); /* its calls may have failed */
    } else if (handle != MPI_ERRORS_RETURN) {
        end_job(code);
    }
}

bool mpi_errhandler_is_fatal(MPI_Comm comm)
{
    const struct mpi_comm *found = handling_comm(mpi_comm_find(comm));
    const struct mpi_errhandler *handler = found != NULL ? found->errhandler : NULL;
    return handler == NULL || (handler->comm_function == NULL && handler->handle != MPI_ERRORS_RETURN);
}

int mpi_errhandler_call(MPI_Comm comm, int code, const char *text)
{
    handler_call(mpi_comm_find(comm), code, text);
    return code;
}

int mpi_errhandler_call_by(MPI_Errhandler handle, int code, const char *text)
{
    const struct mpi_errhandler *handler = mpi_errhandler_find(handle);
    last_note(NULL, code, text);
    if (handler != NULL && handler->kind == MPI_ERRHANDLER_SESSION) {
        MPI_Session none = MPI_SESSION_NULL;
        int code_copy = code;
        handler->session_function(&none, &code_copy);
    } else if (handle != MPI_ERRORS_RETURN) {
        end_job(code);
    }
    return code;
}

int mpi_comm_call_errhandler(MPI_Comm comm, int errorcode)
{
    struct mpi_comm *found = mpi_comm_find(comm);
    if (found == NULL) {
        return comm_unknown();
    }
    handler_call(found, errorcode, "the program has called the error handler");
    return MPI_SUCCESS;
}
