#include "dataplane/status.h"

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
    case CW_ERROR_TIMEOUT:
        return "timed out";
    default:
        return "unknown status";
    }
}
