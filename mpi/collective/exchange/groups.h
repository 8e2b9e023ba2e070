/* groups: the multicast groups of communicators (control/groups/groups.h), for what their schedules multicast
 * (transport/multicast.h).
 *
 * A communicator whose ranks are on several hosts of one cluster has a group of all its ranks, opened with the first
 * call whose algorithm multicasts: the static group of Karwande et al. (CC-MPI, 2003, section 4.1); and one of the first
 * ranks of its hosts, for calls with levels.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "mpi/transport/multicast.h"

/* A call begins whose ranks multicast: opens the group, if it has not been done; that of the first ranks of the hosts,
 * if this is one of them; both, as far as the communicator can have them. */
void mpi_groups_open(struct mpi_comm *comm);
void mpi_groups_open_heads(struct mpi_comm *comm);
void mpi_groups_open_all(struct mpi_comm *comm);

/* The group of these ranks of the communicator and this one; NULL: none. */
const struct mpi_multicast_group *mpi_groups_find(const struct mpi_comm *comm, const uint32_t *peers,
                                                  uint32_t peer_count);

/* From mcast (struct cw_mcast_handler): a message that came for a group. */
void mpi_groups_message(void *context, uint32_t rank, uint32_t lane_tag, const void *data, uint64_t bytes);

/* What this process knows of multicast, in lines for people, to be freed; NULL: nothing, or no memory. Before groups
 * are closed. */
char *mpi_groups_report(void);

/* A communicator goes: this process is done with its group. */
void mpi_groups_close(struct cw_group *group);
/* Waits until all groups that are closed have gone (MPI_Finalize). */
void mpi_groups_finish(void);
