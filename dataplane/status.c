#include "dataplane/status.h"

#include <errno.h>

const char *cw_status_text(int status)
{
    switch (status) {
    case CW_OK:
        return "ok";
    case CW_ERROR_ARGUMENT:
        return "an argument is out of range";
    case CW_ERROR_AGAIN:
        return "a queue or window is full, try again";
    case CW_ERROR_MEMORY:
        return "not enough memory";
    case CW_ERROR_LIMIT:
        return "a table is full";
    case CW_ERROR_NOT_FOUND:
        return "not found";
    case CW_ERROR_PERMISSION:
        return "permission denied";
    case CW_ERROR_UNSUPPORTED:
        return "not supported here";
    case CW_ERROR_SYSTEM:
        return "a system or driver call failed";
    case CW_ERROR_REMOTE_ACCESS:
        return "the target refused the access";
    case CW_ERROR_PEER_FAILED:
        return "the peer does not answer";
    case CW_ERROR_PEER_RESTARTED:
        return "the peer has restarted";
    case CW_ERROR_CLOSED:
        return "closed";
    case CW_ERROR_BUSY:
        return "still in use";
    case CW_ERROR_OVERLAP:
        return "overlaps a put in flight to the same bytes";
    case CW_ERROR_DAMAGED:
        return "the peer has sent signed data that no codec makes";
    case CW_ERROR_PATH_MTU:
        return "the path to the peer passes small packets, and none as large as before: has the MTU of a link on the "
               "way changed?";
    case CW_ERROR_TIMEOUT:
        return "timed out";
    default:
        return "unknown status";
    }
}

int cw_status_of_errno(int error_number)
{
    switch (error_number) {
    case EMFILE:
    case ENFILE:
        return CW_ERROR_LIMIT;
    case ENOMEM:
        return CW_ERROR_MEMORY;
    case EACCES:
    case EPERM:
        return CW_ERROR_PERMISSION;
    case ENOENT:
        return CW_ERROR_NOT_FOUND;
    default:
        return CW_ERROR_SYSTEM;
    }
}

const char *cw_errno_remedy(int error_number)
{
    switch (error_number) {
    case EMFILE:
        return "; raise the limit of open files of a process (`ulimit -n`), or have fewer open";
    case ENFILE:
        return "; the machine's limit of open files (fs.file-max) is reached";
    case ENOMEM:
        return "; memory, address space (`ulimit -v`) or the number of mappings (vm.max_map_count) is used up: free "
               "some, or raise the limit";
    default:
        return "";
    }
}
