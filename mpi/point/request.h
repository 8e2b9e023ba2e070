/* request: an operation in progress (MPI 5.0, 3.7, 3.9, 6.12 for collectives).
 *
 * Purpose
 *   One structure serves sends, receives, collectives and generalized requests. Blocking calls use one without a
 *   handle, on their stack.
 *
 * Invariants
 *   - `is_complete` is set last, once; from then on nothing but its owner touches the request. `status` holds what
 *     MPI_Wait returns.
 *   - A persistent request is inactive until MPI_Start; completing makes it inactive again.
 *   - While it is in progress it holds its communicator and its type.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"
#include "mpi/datatype/datatype.h"
#include "mpi/group/communicator.h"
#include "mpi/transport/rendezvous.h"

enum mpi_request_kind {
    MPI_REQUEST_SEND = 1,
    MPI_REQUEST_RECEIVE = 2,
    MPI_REQUEST_SENDRECV = 3,   /* `parts` */
    MPI_REQUEST_COLLECTIVE = 4, /* `collective` */
    MPI_REQUEST_GENERAL = 5,    /* `general` */
    MPI_REQUEST_DONE = 6,       /* complete from the start: from and to MPI_PROC_NULL, and empty operations */
};

enum mpi_send_mode {
    MPI_MODE_STANDARD = 0,
    MPI_MODE_SYNCHRONOUS = 1, /* complete when it has been matched */
    MPI_MODE_READY = 2,
    MPI_MODE_BUFFERED = 3, /* complete at once; the bytes are in the attached buffer */
};

struct mpi_request_general {
    MPI_Grequest_query_function *query;
    MPI_Grequest_free_function *free;
    MPI_Grequest_cancel_function *cancel;
    void *state;
};

struct mpi_collective;
struct mpi_request;
struct mpi_said;

/* Actions of an operation that is carried out above point/: a collective. */
struct mpi_request_actions {
    void (*start)(struct mpi_request *request);
    void (*destroy)(struct mpi_collective *collective);
    void (*describe)(const struct mpi_collective *collective, struct mpi_said *said);
    const char *(*why)(const struct mpi_collective *collective); /* of an error; NULL: nothing more is known */
};

struct mpi_request {
    MPI_Request handle; /* 0: a blocking call's */
    uintptr_t place;    /* in the table of handles, for this request's next handle; 0: none yet */
    enum mpi_request_kind kind;
    bool is_complete;
    bool is_persistent;
    bool is_active;
    bool is_freed; /* MPI_Request_free: the last one who touches it frees it */
    bool is_cancelled;
    bool is_cancelling; /* a send whose receiver has been asked */
    bool is_everyones;  /* mpi_request_sent: never changes, never ends */
    bool is_registered; /* a send's memory, in `offered` */
    int error;          /* MPI_SUCCESS, or the error that MPI_Wait raises */

    /* of sends and receives, as called */
    enum mpi_send_mode mode;
    uint32_t rank; /* of the other side, in MPI_COMM_WORLD, once it is known */
    struct mpi_comm *comm;
    struct mpi_type *type;
    void *buffer;
    MPI_Count count;
    int peer; /* rank in comm, or MPI_ANY_SOURCE */
    int tag;

    /* in progress */
    MPI_Count bytes;    /* send: of the message; receive: that the buffer takes */
    MPI_Count received; /* receive: that came */
    uint8_t *packed;    /* NULL: the bytes are moved from and to `buffer` itself */
    union {
        struct mpi_offered offered; /* a send; a receive without credit: its number alone */
        struct mpi_get get;         /* receive of a message that was offered */
    };
    uint64_t order;           /* receive: when it was posted, in its communicator */
    struct mpi_request *next; /* in the queue that it waits in */

    int matched_source;
    int matched_tag;
    struct mpi_request *parts[2];
    struct mpi_collective *collective;
    const struct mpi_request_actions *actions; /* of `collective` */
    struct mpi_request_general *general;
};

/* Counts the references to a communicator that requests at rest hold. A request is at rest if it is persistent and
 * inactive, or complete and not waited for. */
uint32_t mpi_requests_resting(const struct mpi_comm *comm);

/* The object of a handle; NULL: none. */
struct mpi_request *mpi_request_find(MPI_Request handle);

/* A request, zeroed except its kind, with or without a handle. NULL: no memory. */
struct mpi_request *mpi_request_make(enum mpi_request_kind kind);
int mpi_request_handle_make(struct mpi_request *request);
/* Frees the request and its handle. It is not in progress. */
void mpi_request_destroy(struct mpi_request *request);
/* Releases the communicator and the type of a request. */
void mpi_request_release(struct mpi_request *request);

/* The handle of the one request that represents all sends that were complete at once. Never fails after MPI_Init. */
MPI_Request mpi_request_sent(void);

/* Begins the operation, of a request that is prepared. */
void mpi_request_start(struct mpi_request *request);
/* Whether it has come to its end; lets nothing go on. */
bool mpi_request_poll(struct mpi_request *request);
/* Whether it has failed, for another reason than a message that was too long for its receive. */
static inline bool mpi_request_has_failed(const struct mpi_request *request)
{
    return request->is_complete && request->error != MPI_SUCCESS && request->error != MPI_ERR_TRUNCATE;
}

/* The operation has come to its end: with MPI_SUCCESS or another code. Frees the request if no call waits for it any
 * more. */
void mpi_request_complete(struct mpi_request *request, int error);

/* Blocks until the request is complete, and lets everything else go on meanwhile (progress.h). */
void mpi_request_await(struct mpi_request *request);

/* After completion: fills in the status (MPI_STATUS_IGNORE: none), ends the operation (a persistent request becomes
 * inactive, others are destroyed and *handle becomes MPI_REQUEST_NULL), and returns the operation's error, not
 * raised. */
int mpi_request_finish(struct mpi_request *request, MPI_Request *handle, MPI_Status *status);

/* The same, but the request stays as it is. */
int mpi_request_status(struct mpi_request *request, MPI_Status *status);
/* Raises MPI_ERR_PROC_ABORTED, since rank `peer` is lost; below 0: one of the possible senders of a message. */
int mpi_request_raise_lost(MPI_Comm comm, int peer);
/* Raises the error of an operation through the handler of `comm`, and says which message it was. Returns it. */
int mpi_request_raise(const struct mpi_request *request, MPI_Comm comm, int error);
/* Makes mpi_request_sent; MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_requests_start(void);
/* Frees what is kept for later requests. */
void mpi_requests_clear(void);

/* The empty status (MPI 5.0, 3.7.3). */
void mpi_status_empty(MPI_Status *status);
/* A status has its number of bytes in MPI_internal[0..1], the flag of cancellation in [2]. */
void mpi_status_set_bytes(MPI_Status *status, MPI_Count bytes);
MPI_Count mpi_status_bytes(const MPI_Status *status);
