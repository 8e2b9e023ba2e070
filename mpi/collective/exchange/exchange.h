/* exchange: how a schedule of a collective call meets those of the other ranks (collectives/execute/transport.h over
 * dataplane/path/path.h).
 *
 * An eager put is one message with its data. A long one goes straight into the place that it names, which the schedule
 * has made sure is free: put there, if the target has told where (direct.h), else offered: the target gets the bytes,
 * and says when it has them. Calls of a communicator are told apart by their number, which all its ranks count alike;
 * what comes for a call that this rank has not begun waits.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectives/execute/transport.h"
#include "mpi/collective/host/host.h"
#include "mpi/state/comm.h"
#include "mpi/transport/multicast.h"

/* One run of one call. */
struct mpi_exchange {
    struct mpi_comm *comm;
    uint32_t number;             /* of the call, in its communicator */
    uint32_t run;                /* how often it was started before */
    uint32_t kind;               /* mpi_describe_kind of the call */
    uint32_t kind_seen;          /* of another rank's, which differs; 0: none */
    const struct mpi_type *type; /* of its elements, while the call lasts */
    void *buffers[4];            /* by enum cw_buffer */
    uint64_t buffer_bytes[4];
    int failure;                        /* status, once a rank that takes part is gone, or is in another call */
    int lost;                           /* the first rank of the communicator that is known to be gone; -1: none */
    struct mpi_exchange *throttle_next; /* of those that throttle later ones */
    bool throttles;                     /* is one of them */
    bool is_notified;                   /* the others know that it has failed */
    bool is_in_order;                   /* among the communicator's calls: not of a persistent one */
    char why[320];                      /* what is known of the failure; "": nothing, or there is none */
    struct mpi_exchange_put *puts;      /* offered ones that have not been got yet */
    struct mpi_multicast_owner multicasts;
    struct mpi_direct *direct;        /* what has been told of places (direct.h); NULL: nothing */
    uint32_t operations_open;         /* own gets, puts and multicasts under way; offers whose memory is let go of */
    struct mpi_exchange_parts *parts; /* eager multicasts that have come in part (assembly.h) */
    struct mpi_host_part host;        /* its part in calls among the ranks of this host */
    struct mpi_exchange *next;        /* of the communicator */
    const struct cw_execution *execution;
    const struct cw_schedule *schedule;
    const uint32_t *own_waits; /* by rank, if this one knows only its own counts (plans.h); else NULL */
    bool offers_all;           /* ... and its puts wait for their targets */
    bool is_truncated;         /* ... and more has come than there was room for: `why` */
    struct cw_transport transport;
    struct cw_transport_sink sink; /* the execution's */
};

/* Makes the transport; before the execution is. */
void mpi_exchange_init(struct mpi_exchange *exchange);

/* Joins the communicator's calls under way; takes what has come early. False: no memory. */
bool mpi_exchange_begin(struct mpi_exchange *exchange, struct mpi_comm *comm, uint32_t number, uint32_t run,
                        uint32_t kind);
/* Later calls of the communicator send nothing before this one is over. Not for persistent ones, which may be started
 * in any order. */
void mpi_exchange_throttle(struct mpi_exchange *exchange);
/* After a failure: what was offered and has not been got is taken back, and nothing more is sent. */
void mpi_exchange_withdraw(struct mpi_exchange *exchange);
/* Leaves them. Only when nothing of it is under way: operations_open is 0. */
void mpi_exchange_end(struct mpi_exchange *exchange);

/* More has come of a rank than this one has room for: the call ends with MPI_ERR_TRUNCATE, here alone. */
void mpi_exchange_truncate(struct mpi_exchange *exchange, int source, uint64_t bytes, uint64_t room);

/* ---- for the files of exchange/ ---- */

/* The call cannot go on; the first reason counts. */
void mpi_exchange_fail(struct mpi_exchange *exchange, int status);
/* What has become of a put: its last byte has left; its source may be reused. */
void mpi_exchange_put_tell(struct mpi_exchange *exchange, enum cw_transport_event_kind kind, uint64_t context);
/* To one process; `element`: the type of the data. CW_OK; CW_ERROR_AGAIN; others: it is gone. */
int mpi_exchange_send_eager(const struct mpi_comm *comm, uint32_t rank, const void *head, uint32_t head_bytes,
                            const void *data, uint64_t bytes, enum cw_element element);
/* Goes on with its host op, if one is under way. */
void mpi_exchange_poll_host(struct mpi_exchange *exchange);

/* Says who takes messages of calls (transport.h). */
void mpi_exchange_listen(void);
/* One of these, or one that came to a group. */
void mpi_collective_message(uint32_t rank, const void *data, uint32_t bytes);
/* A process is gone: calls that it takes part in fail. */
void mpi_collective_down(uint32_t rank);
/* The same of one communicator, by its rank there. */
void mpi_collective_lost(const struct mpi_comm *comm, int rank);

/* Whether something has come for the communicator's next call. */
bool mpi_exchange_is_early(const struct mpi_comm *comm);
/* A call that had no exchange is over: what came early for it, of ranks in other calls, is answered. */
void mpi_exchange_over(struct mpi_comm *comm, uint32_t number, uint32_t kind, bool has_failed);
