/* exchange: the transport of schedules (collectives/execute/transport.h) over mpi/transport/.
 *
 * An eager put is one message with its data. The bytes of a long put go directly to the place that it names, which is
 * free by the rules of schedules: by a put if the target has announced the place (direct.h), else by an offer. All
 * ranks of a communicator number its calls in the same order. Messages that arrive before their call are kept.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "collectives/execute/transport.h"
#include "mpi/collective/host/host.h"
#include "mpi/state/comm.h"
#include "mpi/transport/multicast.h"
#include "mpi/transport/rendezvous.h"

/* One run of one call. */
struct mpi_exchange {
    struct mpi_comm *comm;
    uint32_t number;             /* of the call, in its communicator */
    uint32_t run;                /* how often it was started before */
    uint32_t kind;               /* mpi_describe_kind of the call */
    uint32_t kind_seen;          /* kind of another rank's call that differs; 0: none */
    const struct mpi_type *type; /* of its elements, while the call lasts */
    void *buffers[4];            /* by enum cw_buffer */
    uint64_t buffer_bytes[4];
    int failure;                        /* status, once the call cannot succeed */
    int lost;                           /* the first lost rank of the communicator; -1: none */
    struct mpi_exchange *throttle_next; /* next call that throttles later ones */
    bool throttles;                     /* later calls wait for this one */
    bool is_notified;                   /* the other ranks know of the failure */
    bool is_in_order;                   /* the call is not persistent, so calls run in the order of their numbers */
    char why[320];                      /* reason of the failure; "": unknown, or no failure */
    struct mpi_call_offers puts;        /* offered ones */
    struct mpi_multicast_owner multicasts;
    struct mpi_direct *direct;        /* announced places (direct.h); NULL: none */
    uint32_t operations_open;         /* own gets, puts, offers and multicasts in flight */
    struct mpi_exchange_parts *parts; /* incomplete eager multicasts (assembly.h) */
    struct mpi_host_part host;        /* its host ops */
    struct mpi_exchange *next;        /* next call of the communicator */
    const struct cw_execution *execution;
    const struct cw_schedule *schedule;
    const uint32_t *own_waits; /* by rank, if this one knows only its own counts (plans.h); else NULL */
    bool offers_all;           /* ... and offers all puts, so that it waits for their targets */
    bool is_truncated;         /* ... and a block was longer than its place: `why` */
    struct cw_transport transport;
    struct cw_transport_sink sink; /* of the execution */
};

/* Sets the transport, before the execution is created. */
void mpi_exchange_init(struct mpi_exchange *exchange);

/* Adds it to the communicator's current calls, and delivers early messages. False: no memory. */
bool mpi_exchange_begin(struct mpi_exchange *exchange, struct mpi_comm *comm, uint32_t number, uint32_t run,
                        uint32_t kind);
/* Later calls of the communicator send nothing before this one has ended. Not for persistent calls, which ranks may
 * start in any order. */
void mpi_exchange_throttle(struct mpi_exchange *exchange);
/* After a failure: withdraws offers, and sends nothing more. */
void mpi_exchange_withdraw(struct mpi_exchange *exchange);
/* Removes it from the current calls. Requires operations_open == 0. */
void mpi_exchange_end(struct mpi_exchange *exchange);

/* A block of `source` is longer than its place: the call ends with MPI_ERR_TRUNCATE, on this rank only. */
void mpi_exchange_truncate(struct mpi_exchange *exchange, int source, uint64_t bytes, uint64_t room);

/* ---- for the files of exchange/ ---- */

/* The call fails with the first status that is passed here. */
void mpi_exchange_fail(struct mpi_exchange *exchange, int status);
/* Reports to the execution that a put is SENT or COMPLETE. */
void mpi_exchange_put_report(struct mpi_exchange *exchange, enum cw_transport_event_kind kind, uint64_t context);
/* Sends a message to one process. `element`: type of the data. CW_OK; CW_ERROR_AGAIN; others: the process is lost. */
int mpi_exchange_send_eager(const struct mpi_comm *comm, uint32_t rank, const void *head, uint32_t head_bytes,
                            const void *data, uint64_t bytes, enum cw_element element);
/* Continues its host op, if there is one. */
void mpi_exchange_poll_host(struct mpi_exchange *exchange);

/* Registers the receiver of messages of calls (transport.h). */
void mpi_exchange_listen(void);
/* Receives such a message, or one that was sent to a group. */
void mpi_collective_message(uint32_t rank, const void *data, uint32_t bytes);
/* A process is lost: calls in which it takes part fail. */
void mpi_collective_down(uint32_t rank);
/* The same for one communicator; `rank`: in it. */
void mpi_collective_lost(const struct mpi_comm *comm, int rank);

/* Whether a message for the communicator's next call has arrived. */
bool mpi_exchange_is_early(const struct mpi_comm *comm);
/* A call without an exchange has ended: answers early messages for it, which come from ranks in other calls. */
void mpi_exchange_over(struct mpi_comm *comm, uint32_t number, uint32_t kind, bool has_failed);
