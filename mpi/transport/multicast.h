/* multicast: sends the same bytes to several ranks of a communicator, by the multicast group of these ranks or to each
 * rank separately. The receivers do not see the difference.
 *
 * Purpose
 *   An eager multicast is one message, or several parts if a message has less room. A long multicast, for which all
 *   receivers are ready, is sent in parts from the program's buffer. Without a group, or if the group has failed, an
 *   eager multicast is sent to each rank, and a long one is offered to each rank (rendezvous.h).
 *
 * Invariants
 *   - Multicasts are sent in the order of their calls.
 *   - Eager multicasts are copied and complete immediately, unless this rank is far ahead of its receivers.
 *   - Only the multicast itself waits for its group.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/state/comm.h"
#include "mpi/transport/message.h"

struct cw_group;
struct cw_mcast_group;

/* A multicast group of ranks (control/groups/groups.h). */
struct mpi_multicast_group {
    struct cw_group *group;      /* NULL: not yet, or never */
    struct cw_mcast_group *open; /* the handle for messages; NULL: not open yet, or failed */
};

/* The owner of a multicast; its data must not change until `ended`. */
struct mpi_multicast_owner {
    /* All receivers have it (CW_OK), or it has been abandoned and nothing of it is in flight (CW_ERROR_CLOSED). */
    void (*ended)(struct mpi_multicast_owner *owner, uint64_t context, int status);
    /* It cannot continue. The owner must abandon it; `ended` follows. */
    void (*failed)(struct mpi_multicast_owner *owner, int status);
};

struct mpi_multicast_request {
    struct mpi_comm *comm;
    const struct mpi_multicast_group *group; /* of exactly these ranks and this one; not copied; NULL: none */
    const uint32_t *peers;                   /* ranks of the communicator; copied */
    uint32_t peer_count;
    struct mpi_call_head head; /* of kind EAGER, or OFFER: a long one */
    const void *data;
    uint64_t bytes;
    uint64_t offset; /* long: of the place at each rank */
    enum cw_element element;
    struct mpi_multicast_owner *owner;
    uint64_t context; /* for the owner */
};

enum { MPI_MULTICAST_DONE = 1 };

/* CW_OK: the owner is notified later; MPI_MULTICAST_DONE: it has been copied, or all receivers have it already, and the
 * owner is not notified; CW_ERROR_MEMORY. */
int mpi_multicast(const struct mpi_multicast_request *request);

/* Stops an owner's multicasts: unsent parts are not sent, and offers are withdrawn. Messages of the group continue;
 * `ended` follows when they are complete. */
void mpi_multicast_abandon(const struct mpi_multicast_owner *owner);

/* For mcast (struct cw_mcast_handler): all members have a message of this rank. */
void mpi_multicast_complete(void *context, uint64_t put_context, int status);

/* Continues waiting multicasts; returns how much it did. */
uint32_t mpi_multicast_progress(void);
/* Number of multicasts that wait for room. */
extern uint32_t mpi_multicasts_waiting;
/* Waits until all receivers have all multicasts (MPI_Finalize). */
void mpi_multicasts_finish(void);
