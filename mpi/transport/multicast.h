/* multicast: the same bytes to several ranks of a communicator: by the multicast group that they form, or to each by
 * itself. Who gets them does not see the difference.
 *
 * Purpose
 *   An eager multicast goes in one message, or in parts where a message has less room; a long one, for which all have
 *   said that they are ready, goes in parts from where it lies. What cannot go to the group, since there is none or it
 *   has failed, is sent to each rank, or offered (rendezvous.h) if it is long.
 *
 * Invariants
 *   - Multicasts leave in the order of their calls: they are of the same stream.
 *   - Eager ones are copied and complete at once, unless this rank is far ahead of its receivers.
 *   - Nothing waits for a group but the multicast itself.
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
    struct cw_mcast_group *open; /* by which messages are sent; NULL: not yet, or not any more */
};

/* Whose multicast it is; what it sends must stay until `ended`. */
struct mpi_multicast_owner {
    /* It has come to all (CW_OK), or nothing of it is under way any more (CW_ERROR_CLOSED). */
    void (*ended)(struct mpi_multicast_owner *owner, uint64_t context, int status);
    /* It cannot go on; `ended` follows when it is abandoned. */
    void (*failed)(struct mpi_multicast_owner *owner, int status);
};

struct mpi_multicast_request {
    struct mpi_comm *comm;
    const struct mpi_multicast_group *group; /* of exactly these ranks and this one; stays; NULL: none */
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

/* CW_OK: its owner will be told; MPI_MULTICAST_DONE: it has been copied, or has come to all already, and its owner is
 * told nothing; CW_ERROR_MEMORY. */
int mpi_multicast(const struct mpi_multicast_request *request);

/* What an owner has not sent yet is not sent any more, what it has offered is taken back. What a group has of it goes
 * on; `ended` follows when it is over. */
void mpi_multicast_abandon(const struct mpi_multicast_owner *owner);

/* From mcast (struct cw_mcast_handler): a message to a group has come to all. */
void mpi_multicast_complete(void *context, uint64_t put_context, int status);

/* Goes on with those that have to wait; returns how much it did. */
uint32_t mpi_multicast_progress(void);
/* How many have to wait for room. */
extern uint32_t mpi_multicasts_waiting;
/* Waits until all have come to their ranks: before communicators go (MPI_Finalize). */
void mpi_multicasts_finish(void);
