/* groups: the multicast groups of communicators (control/groups/groups.h), for multicasts of their schedules
 * (transport/multicast.h).
 *
 * A communicator whose ranks are on several hosts of one cluster has a group of all its ranks, opened with the first
 * call whose algorithm multicasts: the static group of Karwande et al. (CC-MPI, 2003, section 4.1); and one of the
 * first ranks of its hosts, for calls with levels.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/transport/multicast.h"

/* Open the group of all ranks; of the first ranks of the hosts, if this rank is one of them; or both. They do nothing
 * if the group is open already, or if the communicator cannot have it. */
void mpi_groups_open(struct mpi_comm *comm);
void mpi_groups_open_heads(struct mpi_comm *comm);
void mpi_groups_open_all(struct mpi_comm *comm);

/* The group of these ranks of the communicator and this one; NULL: none. */
const struct mpi_multicast_group *mpi_groups_find(const struct mpi_comm *comm, const uint32_t *peers,
                                                  uint32_t peer_count);

/* For mcast (struct cw_mcast_handler): receives a message to a group. */
void mpi_groups_message(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint64_t bytes);

/* A report of multicast in this process, as lines of text, which the caller must free. NULL: none, or no memory. Call
 * it before groups are closed. */
char *mpi_groups_report(void);

/* Closes the group of a communicator that is freed; NULL is allowed. */
void mpi_groups_close(struct cw_group *group);
/* Waits until all members have closed all groups (MPI_Finalize). */
void mpi_groups_finish(void);
