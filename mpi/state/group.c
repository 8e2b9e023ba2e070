#include "mpi/state/group.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/state/handle.h"
#include "mpi/state/process.h"

static struct mpi_group empty = {.handle = MPI_GROUP_EMPTY, .references = 1, .rank = MPI_UNDEFINED};

struct mpi_group *mpi_group_find(MPI_Group handle)
{
    return handle == MPI_GROUP_EMPTY ? &empty : mpi_handle_object(MPI_KIND_GROUP, (uintptr_t)handle);
}

struct mpi_group *mpi_group_make(uint32_t *ranks, int size)
{
    if (size == 0) {
        free(ranks);
        mpi_group_retain(&empty);
        return &empty;
    }
    struct mpi_group *group = malloc(sizeof(*group));
    if (group == NULL || ranks == NULL) {
        free(group);
        free(ranks);
        return NULL;
    }
    *group = (struct mpi_group){.references = 1, .size = size, .ranks = ranks};
    group->rank = mpi_group_rank_of(group, mpi_process.rank);
    return group;
}

void mpi_group_retain(struct mpi_group *group)
{
    group->references++;
}

void mpi_group_release(struct mpi_group *group)
{
    if (--group->references > 0) {
        return;
    }
    mpi_group_deregister(group);
    free(group->ranks);
    free(group);
}

void mpi_group_deregister(struct mpi_group *group)
{
    if (group->handle != NULL) {
        mpi_handle_free(MPI_KIND_GROUP, (uintptr_t)group->handle);
        group->handle = NULL;
    }
}

MPI_Group mpi_group_handle(struct mpi_group *group)
{
    if (group->handle == NULL) {
        group->handle = (MPI_Group)mpi_handle_make(MPI_KIND_GROUP, group);
    }
    return group->handle;
}

int mpi_group_rank_of(const struct mpi_group *group, uint32_t world_rank)
{
    if (world_rank < (uint32_t)group->size && group->ranks[world_rank] == world_rank) {
        return (int)world_rank; /* nearly all large groups are all there is */
    }
    for (int rank = 0; rank < group->size; rank++) {
        if (group->ranks[rank] == world_rank) {
            return rank;
        }
    }
    return MPI_UNDEFINED;
}

int mpi_group_relation(const struct mpi_group *a, const struct mpi_group *b)
{
    if (a->size != b->size) {
        return MPI_UNEQUAL;
    }
    if (a == b || a->size == 0 || memcmp(a->ranks, b->ranks, (size_t)a->size * sizeof(*a->ranks)) == 0) {
        return MPI_IDENT;
    }
    for (int rank = 0; rank < a->size; rank++) {
        if (mpi_group_rank_of(b, a->ranks[rank]) == MPI_UNDEFINED) {
            return MPI_UNEQUAL;
        }
    }
    return MPI_SIMILAR;
}
