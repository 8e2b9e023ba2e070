#include "mpi/runtime/error.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"
#include "mpi/runtime/enter.h"
#include "mpi/runtime/errhandler.h"
#include "mpi/runtime/tool.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

/* By class; the standard's description of each in a line (MPI 5.0, table 9.1). */
static const char *const class_texts[] = {
    [MPI_SUCCESS] = "MPI_SUCCESS: no error",
    [MPI_ERR_BUFFER] = "MPI_ERR_BUFFER: invalid buffer pointer",
    [MPI_ERR_COUNT] = "MPI_ERR_COUNT: invalid count",
    [MPI_ERR_TYPE] = "MPI_ERR_TYPE: invalid datatype",
    [MPI_ERR_TAG] = "MPI_ERR_TAG: invalid tag",
    [MPI_ERR_COMM] = "MPI_ERR_COMM: invalid communicator",
    [MPI_ERR_RANK] = "MPI_ERR_RANK: invalid rank",
    [MPI_ERR_REQUEST] = "MPI_ERR_REQUEST: invalid request",
    [MPI_ERR_ROOT] = "MPI_ERR_ROOT: invalid root",
    [MPI_ERR_GROUP] = "MPI_ERR_GROUP: invalid group",
    [MPI_ERR_OP] = "MPI_ERR_OP: invalid operation",
    [MPI_ERR_TOPOLOGY] = "MPI_ERR_TOPOLOGY: invalid topology",
    [MPI_ERR_DIMS] = "MPI_ERR_DIMS: invalid dimensions",
    [MPI_ERR_ARG] = "MPI_ERR_ARG: invalid argument",
    [MPI_ERR_UNKNOWN] = "MPI_ERR_UNKNOWN: unknown error",
    [MPI_ERR_TRUNCATE] = "MPI_ERR_TRUNCATE: message longer than the receive buffer",
    [MPI_ERR_OTHER] = "MPI_ERR_OTHER: known error not in this list",
    [MPI_ERR_INTERN] = "MPI_ERR_INTERN: internal error of the MPI library",
    [MPI_ERR_PENDING] = "MPI_ERR_PENDING: request is still pending",
    [MPI_ERR_IN_STATUS] = "MPI_ERR_IN_STATUS: the error code is in the status",
    [MPI_ERR_ACCESS] = "MPI_ERR_ACCESS: permission denied",
    [MPI_ERR_AMODE] = "MPI_ERR_AMODE: invalid access mode of a file",
    [MPI_ERR_ASSERT] = "MPI_ERR_ASSERT: invalid assertion",
    [MPI_ERR_BAD_FILE] = "MPI_ERR_BAD_FILE: invalid file name",
    [MPI_ERR_BASE] = "MPI_ERR_BASE: invalid base of memory to free",
    [MPI_ERR_CONVERSION] = "MPI_ERR_CONVERSION: a data conversion function failed",
    [MPI_ERR_DISP] = "MPI_ERR_DISP: invalid displacement",
    [MPI_ERR_DUP_DATAREP] = "MPI_ERR_DUP_DATAREP: the data representation is defined already",
    [MPI_ERR_FILE_EXISTS] = "MPI_ERR_FILE_EXISTS: file exists",
    [MPI_ERR_FILE_IN_USE] = "MPI_ERR_FILE_IN_USE: file is in use",
    [MPI_ERR_FILE] = "MPI_ERR_FILE: invalid file handle",
    [MPI_ERR_INFO_KEY] = "MPI_ERR_INFO_KEY: info key is too long or empty",
    [MPI_ERR_INFO_NOKEY] = "MPI_ERR_INFO_NOKEY: there is no such info key",
    [MPI_ERR_INFO_VALUE] = "MPI_ERR_INFO_VALUE: info value is too long",
    [MPI_ERR_INFO] = "MPI_ERR_INFO: invalid info object",
    [MPI_ERR_IO] = "MPI_ERR_IO: error of input or output",
    [MPI_ERR_KEYVAL] = "MPI_ERR_KEYVAL: invalid key of attributes",
    [MPI_ERR_LOCKTYPE] = "MPI_ERR_LOCKTYPE: invalid type of lock",
    [MPI_ERR_NAME] = "MPI_ERR_NAME: service name is not published",
    [MPI_ERR_NO_MEM] = "MPI_ERR_NO_MEM: out of memory",
    [MPI_ERR_NOT_SAME] = "MPI_ERR_NOT_SAME: collective argument is not the same on all processes",
    [MPI_ERR_NO_SPACE] = "MPI_ERR_NO_SPACE: not enough space",
    [MPI_ERR_NO_SUCH_FILE] = "MPI_ERR_NO_SUCH_FILE: file does not exist",
    [MPI_ERR_PORT] = "MPI_ERR_PORT: invalid port name",
    [MPI_ERR_QUOTA] = "MPI_ERR_QUOTA: quota exceeded",
    [MPI_ERR_READ_ONLY] = "MPI_ERR_READ_ONLY: file or file system is read-only",
    [MPI_ERR_RMA_ATTACH] = "MPI_ERR_RMA_ATTACH: memory cannot be attached",
    [MPI_ERR_RMA_CONFLICT] = "MPI_ERR_RMA_CONFLICT: conflicting accesses to a window",
    [MPI_ERR_RMA_RANGE] = "MPI_ERR_RMA_RANGE: target memory is not part of the window",
    [MPI_ERR_RMA_SHARED] = "MPI_ERR_RMA_SHARED: memory cannot be shared",
    [MPI_ERR_RMA_SYNC] = "MPI_ERR_RMA_SYNC: wrong synchronization of RMA calls",
    [MPI_ERR_SERVICE] = "MPI_ERR_SERVICE: service name cannot be published or unpublished",
    [MPI_ERR_SIZE] = "MPI_ERR_SIZE: invalid size",
    [MPI_ERR_SPAWN] = "MPI_ERR_SPAWN: processes cannot be spawned",
    [MPI_ERR_UNSUPPORTED_DATAREP] = "MPI_ERR_UNSUPPORTED_DATAREP: unsupported data representation",
    [MPI_ERR_UNSUPPORTED_OPERATION] = "MPI_ERR_UNSUPPORTED_OPERATION: unsupported operation",
    [MPI_ERR_WIN] = "MPI_ERR_WIN: invalid window",
    [MPI_ERR_RMA_FLAVOR] = "MPI_ERR_RMA_FLAVOR: wrong flavor of window",
    [MPI_ERR_PROC_ABORTED] = "MPI_ERR_PROC_ABORTED: a process has ended",
    [MPI_ERR_VALUE_TOO_LARGE] = "MPI_ERR_VALUE_TOO_LARGE: value is too large for its type",
    [MPI_ERR_SESSION] = "MPI_ERR_SESSION: invalid session",
    [MPI_ERR_ERRHANDLER] = "MPI_ERR_ERRHANDLER: invalid error handler",
    [MPI_ERR_ABI] = "MPI_ERR_ABI: operation of the ABI failed",
};

enum { CLASS_COUNT = sizeof(class_texts) / sizeof(class_texts[0]) };

/* Classes and codes that the program has added, numbered from MPI_ERR_LASTCODE + 1; numbers of removed ones are used
 * again. */
struct added_code {
    bool is_used;
    bool is_class;
    int error_class; /* of a code */
    int code_count;  /* of a class: codes that the program has added to it and has not removed */
    int next_free;   /* index of the next removed one; -1: none */
    char *text;
};

static struct added_code *added;
static int added_count;
static int added_capacity;
static int added_free = -1;

static struct added_code *added_find(int code)
{
    int index = code > MPI_ERR_LASTCODE ? code - MPI_ERR_LASTCODE - 1 : -1;
    return index >= 0 && index < added_count && added[index].is_used ? &added[index] : NULL;
}

/* The code's class; -1: there is no such code. */
static int class_of(int code)
{
    if ((code >= 0 && code < CLASS_COUNT) || mpi_tool_error_text(code) != NULL) {
        return code;
    }
    const struct added_code *found = added_find(code);
    return found == NULL ? -1 : found->is_class ? code : found->error_class;
}

const char *mpi_error_text(int code)
{
    if (code >= 0 && code < CLASS_COUNT) {
        return class_texts[code];
    }
    if (mpi_tool_error_text(code) != NULL) {
        return mpi_tool_error_text(code);
    }
    const struct added_code *found = added_find(code);
    return found == NULL ? NULL : found->text == NULL ? "" : found->text;
}

static char reason[256];
static int reason_code;

static int class_of_status(int status)
{
    switch (status) {
    case CW_OK:
        return MPI_SUCCESS;
    case CW_ERROR_MEMORY:
    case CW_ERROR_LIMIT:
        return MPI_ERR_NO_MEM;
    case CW_ERROR_PEER_FAILED:
    case CW_ERROR_PEER_RESTARTED:
    case CW_ERROR_CLOSED:
    case CW_ERROR_NOT_FOUND:
    case CW_ERROR_PATH_MTU:
        return MPI_ERR_PROC_ABORTED;
    case CW_ERROR_REMOTE_ACCESS: /* there is no memory where a rank says that its buffer is */
        return MPI_ERR_BUFFER;
    case CW_ERROR_UNSUPPORTED:
        return MPI_ERR_UNSUPPORTED_OPERATION;
    default:
        return MPI_ERR_INTERN;
    }
}

int mpi_error_of_status(int status)
{
    int code = class_of_status(status);
    bool by_system = status == CW_ERROR_MEMORY || status == CW_ERROR_LIMIT || status == CW_ERROR_PERMISSION ||
                     status == CW_ERROR_SYSTEM;
    if (by_system && mpi_process.paths != NULL) {
        reason_code = code;
        snprintf(reason, sizeof(reason), "%s", cw_paths_failure(mpi_process.paths));
    }
    return code;
}

const char *mpi_error_reason(int code)
{
    return code == reason_code ? reason : "";
}

int mpi_error(MPI_Comm comm, int code, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    mpi_process.has_lost = mpi_process.has_lost || code == MPI_ERR_PROC_ABORTED;
    mpi_errhandler_call(comm, code, text);
    reason_code = code == reason_code ? MPI_SUCCESS : reason_code; /* it belongs to this error alone */
    return code;
}

int mpi_error_class(int errorcode, int *errorclass)
{
    int found = class_of(errorcode);
    if (found < 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%d is no error code", errorcode);
    }
    *errorclass = found;
    return MPI_SUCCESS;
}

int mpi_error_string(int errorcode, char *string, int *resultlen)
{
    const char *text = mpi_error_text(errorcode);
    if (text == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%d is no error code", errorcode);
    }
    const char *last = mpi_errhandler_last(errorcode);
    const char *before = strstr(last, text) != NULL ? "" : text; /* it may contain that already */
    const char *between = before[0] != '\0' && last[0] != '\0' ? ": " : "";
    int length = snprintf(string, MPI_MAX_ERROR_STRING, "%s%s%s", before, between, last);
    *resultlen = length < MPI_MAX_ERROR_STRING ? length : MPI_MAX_ERROR_STRING - 1;
    return MPI_SUCCESS;
}

/* The index of an unused entry; -1: no memory. */
static int added_acquire(void)
{
    int index = added_free;
    if (index >= 0) {
        added_free = added[index].next_free;
        return index;
    }
    if (added_count == added_capacity) {
        int capacity = 2 * added_capacity + 16;
        struct added_code *grown = realloc(added, (size_t)capacity * sizeof(*added));
        if (grown == NULL) {
            return -1;
        }
        added = grown;
        added_capacity = capacity;
    }
    return added_count++;
}

static int added_make(bool is_class, int error_class, int *code)
{
    int index = added_acquire();
    if (index < 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for another error code");
    }
    added[index] = (struct added_code){.is_used = true, .is_class = is_class, .error_class = error_class};
    struct added_code *own_class = is_class ? NULL : added_find(error_class);
    if (own_class != NULL) {
        own_class->code_count++;
    }
    *code = MPI_ERR_LASTCODE + 1 + index;
    return MPI_SUCCESS;
}

int mpi_error_last_used(void)
{
    return MPI_ERR_LASTCODE + added_count;
}

int mpi_add_error_class(int *errorclass)
{
    return added_make(true, 0, errorclass);
}

int mpi_add_error_code(int errorclass, int *errorcode)
{
    if (errorclass < 0 || class_of(errorclass) != errorclass) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%d is no error class", errorclass);
    }
    return added_make(false, errorclass, errorcode);
}

int mpi_add_error_string(int errorcode, const char *string)
{
    struct added_code *found = added_find(errorcode);
    if (found == NULL || strlen(string) >= MPI_MAX_ERROR_STRING) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG,
                         found == NULL ? "%d has not been added by this program" : "text for %d is too long",
                         errorcode);
    }
    char *text = strdup(string);
    if (text == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for the text of error %d", errorcode);
    }
    free(found->text);
    found->text = text;
    return MPI_SUCCESS;
}

static int added_remove(bool is_class, int code)
{
    struct added_code *found = added_find(code);
    if (found == NULL || found->is_class != is_class) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%d is no error %s that this program has added", code,
                         is_class ? "class" : "code");
    }
    if (found->code_count > 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "error class %d still has error codes; remove them first", code);
    }
    if (!is_class && found->text != NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG,
                         "error code %d still has a text; call MPI_Remove_error_string first", code);
    }
    struct added_code *own_class = is_class ? NULL : added_find(found->error_class);
    if (own_class != NULL) {
        own_class->code_count--;
    }
    free(found->text);
    *found = (struct added_code){.next_free = added_free};
    added_free = (int)(found - added);
    return MPI_SUCCESS;
}

int mpi_remove_error_class(int errorclass)
{
    return added_remove(true, errorclass);
}

int mpi_remove_error_code(int errorcode)
{
    return added_remove(false, errorcode);
}

int mpi_remove_error_string(int errorcode)
{
    struct added_code *found = added_find(errorcode);
    if (found == NULL || found->text == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "error %d has no text that this program has added", errorcode);
    }
    free(found->text);
    found->text = NULL;
    return MPI_SUCCESS;
}
