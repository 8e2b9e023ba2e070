/* multicast: multicasts of schedules, by the group that the ranks of a communicator form (control/groups/groups.h).
 *
 * Purpose
 *   A communicator whose ranks are on several hosts of one cluster has a group of all its ranks, opened with the first
 *   call whose algorithm multicasts: the static group of Karwande et al. (CC-MPI, 2003, section 4.1). What a schedule
 *   multicasts to all others goes there; what it multicasts to fewer, or what cannot go there since the group could not
 *   be opened, goes to each by itself. Who gets it does not see the difference.
 *
 * Invariants
 *   - Short multicasts (up to EXCHANGE_PARTS_MAX_BYTES) go in parts where a message has less room. They are copied and
 *     complete at once, unless a rank is far ahead of its receivers: then when they have come to all; of long ones,
 *     which all have said they are ready for, pieces of a slot each are sent from where they lie.
 *   - Nothing waits for the group but the multicast itself.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "collectives/execute/transport.h"
#include "mpi/collective/transport/transport.h"

struct cw_group;

/* A call begins whose ranks multicast: opens the group, if it has not been done; that of the first ranks of the hosts,
 * if this is one of them; both, as far as the communicator can have them. */
void mpi_multicast_open(struct mpi_comm *comm);
void mpi_multicast_open_heads(struct mpi_comm *comm);
void mpi_multicast_open_all(struct mpi_comm *comm);

/* Takes a put to several ranks. CW_OK; CW_TRANSPORT_DONE; CW_ERROR_MEMORY; CW_ERROR_PEER_FAILED: one of them is gone.
 */
int mpi_multicast_put(struct mpi_exchange *exchange, const struct cw_transport_put *put);

/* From the job: what came for a group, and what has come to all. */
void mpi_multicast_message(void *context, struct cw_group *group, uint32_t rank, const void *data, uint64_t bytes);
void mpi_multicast_complete(void *context, uint64_t put_context, int status);
/* One of the ranks that a long multicast went to by itself has it. */
struct mpi_multicast;
void mpi_multicast_acknowledged(struct mpi_multicast *multicast);
/* ... or will never have it: its call has failed, and ends. */
void mpi_multicast_lost(struct mpi_multicast *multicast);
/* A call has failed: what it has not sent yet is not sent any more. What the group has of it goes on, and is still
 * counted. */
void mpi_multicast_abandon(struct mpi_exchange *exchange);

/* Goes on with those that had to wait, if mpi_multicasts_waiting; returns how much it did. */
uint32_t mpi_multicast_progress(void);
extern struct mpi_multicast *mpi_multicasts_waiting;

/* What this process knows of multicast, in lines for people, to be freed; NULL: nothing, or no memory. Before groups
 * are closed. */
char *mpi_multicast_report(void);

/* A communicator goes: this process is done with its group. */
void mpi_multicast_close(struct cw_group *group);
/* Waits until all that was multicast has come to its ranks: before communicators go (MPI_Finalize). */
void mpi_multicasts_finish(void);
/* Waits until all groups that are closed have gone (MPI_Finalize). */
void mpi_multicast_finish(void);
