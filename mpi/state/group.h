/* group: an ordered set of processes (MPI 5.0, 7.3). Groups do not change; they are counted.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdint.h>

#include "mpi.h"

struct mpi_group {
    MPI_Group handle; /* 0: it has none yet (a communicator's own) */
    uint32_t references;
    int size;
    int rank;        /* of this process; MPI_UNDEFINED: it is no member */
    uint32_t *ranks; /* rank in MPI_COMM_WORLD of each member */
};

/* The object of a handle, MPI_GROUP_EMPTY included; NULL: none. */
struct mpi_group *mpi_group_find(MPI_Group handle);
/* A new group with one reference; takes `ranks` (malloc), also on failure. NULL: no memory. */
struct mpi_group *mpi_group_make(uint32_t *ranks, int size);
void mpi_group_retain(struct mpi_group *group);
void mpi_group_release(struct mpi_group *group);
/* The handle of a group, made with the first call; the caller's reference becomes the handle's. 0: no memory. */
MPI_Group mpi_group_handle(struct mpi_group *group);
/* Ends the handle, if it has one; the reference stays. */
void mpi_group_deregister(struct mpi_group *group);
/* The rank in `group` of a process by its rank in MPI_COMM_WORLD; MPI_UNDEFINED: it is no member. */
int mpi_group_rank_of(const struct mpi_group *group, uint32_t world_rank);
/* MPI_IDENT, MPI_SIMILAR or MPI_UNEQUAL. */
int mpi_group_relation(const struct mpi_group *a, const struct mpi_group *b);
