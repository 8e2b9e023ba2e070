/* Status: the result codes of dataplane/. One enum for the folder, 0 or a negative code; outputs stay on failure. */
#ifndef CW_STATUS_H
#define CW_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes for a line with the reason of a failed call, including the final 0. Longer lines are cut. */
enum { CW_ERROR_TEXT_BYTES = 512 };

enum cw_status {
    CW_OK = 0,
    CW_ERROR_ARGUMENT = -1,        /* an argument is outside the range its description gives */
    CW_ERROR_AGAIN = -2,           /* a bounded queue or window is full: turn the loop, take events, call again */
    CW_ERROR_MEMORY = -3,          /* no memory at start-up */
    CW_ERROR_LIMIT = -4,           /* a table of the fixed size given at start-up is full */
    CW_ERROR_NOT_FOUND = -5,       /* no such device, peer, region or file */
    CW_ERROR_PERMISSION = -6,      /* the operating system denies it: a privilege is missing */
    CW_ERROR_UNSUPPORTED = -7,     /* this build, driver or kernel cannot do it */
    CW_ERROR_SYSTEM = -8,          /* a system or driver call failed; the message names it */
    CW_ERROR_REMOTE_ACCESS = -9,   /* the target rejected: unknown region, wrong key, missing right or out of bounds */
    CW_ERROR_PEER_FAILED = -10,    /* no packet from the peer for the failure timeout */
    CW_ERROR_PEER_RESTARTED = -11, /* the peer is a new incarnation: operations in flight to the old one are lost */
    CW_ERROR_CLOSED = -12,         /* the peer or this endpoint has closed */
    CW_ERROR_BUSY = -13,           /* the object is still in use */
    CW_ERROR_OVERLAP = -14,        /* debug build: the put overlaps one in flight to the same bytes */
    CW_ERROR_TIMEOUT = -15,        /* the time limit of the call has passed */
    CW_ERROR_DAMAGED = -17,        /* the peer has sent signed data that no codec produces: a bug or an attack */
    CW_ERROR_PATH_MTU = -16,       /* the path to the peer carries small packets, and none as large as before */
};

/* One line in English for a code of enum cw_status; "unknown status" for any other number. Any thread. */
const char *cw_status_text(int status);

/* The code for the errno of a call that makes a descriptor, a mapping or memory: CW_ERROR_LIMIT if a limit of the
 * system is reached, CW_ERROR_MEMORY, CW_ERROR_PERMISSION, CW_ERROR_NOT_FOUND, CW_ERROR_SYSTEM. Any thread. */
int cw_status_of_errno(int error_number);

/* The remedy for such a limit, to append to a message: "; raise ..."; "" for any other errno. Any thread. */
const char *cw_errno_remedy(int error_number);

#ifdef __cplusplus
}
#endif

#endif
