#include "mpi/group/communicator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/errhandler.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/info.h"
#include "mpi/state/handle.h"
#include "mpi/state/process.h"

static uint32_t context_count;
static const struct mpi_comm_owner *owners;
static uint32_t owner_count;

int mpi_comm_unknown(MPI_Comm handle)
{
    return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "%s",
                     handle == MPI_COMM_NULL ? "the communicator is MPI_COMM_NULL" : "unknown communicator");
}

int mpi_comm_lookup(MPI_Comm handle, struct mpi_comm **comm)
{
    *comm = mpi_comm_find(handle);
    return *comm != NULL ? MPI_SUCCESS : mpi_comm_unknown(handle);
}

uint64_t mpi_context_next(void)
{
    return (uint64_t)mpi_process.rank << 32 | ++context_count;
}

/* `handle` NULL: a new one. */
static struct mpi_comm *comm_make(MPI_Comm handle, const struct mpi_comm *parent, struct mpi_group *group,
                                  uint64_t context)
{
    struct mpi_comm *comm = calloc(1, sizeof(*comm));
    if (comm == NULL) {
        return NULL;
    }
    comm->handle = handle != NULL ? handle : (MPI_Comm)mpi_handle_make(MPI_KIND_COMM, comm);
    if (comm->handle == NULL) {
        free(comm);
        return NULL;
    }
    comm->references = 1;
    comm->context = context;
    comm->group = group;
    comm->rank = group->rank;
    comm->size = group->size;
    comm->errhandler = parent != NULL ? parent->errhandler : mpi_errhandler_find(MPI_ERRORS_ARE_FATAL);
    mpi_errhandler_retain(comm->errhandler);
    mpi_group_retain(group);
    mpi_comm_enlist(comm);
    for (uint32_t i = 0; i < owner_count; i++) {
        if (owners[i].adopt != NULL) {
            owners[i].adopt(comm);
        }
    }
    return comm;
}

struct mpi_comm *mpi_comm_make(const struct mpi_comm *parent, struct mpi_group *group, uint64_t context)
{
    return comm_make(NULL, parent, group, context);
}

struct mpi_comm *mpi_comm_among(const struct mpi_comm *parent, const int *ranks, int count, uint64_t context)
{
    uint32_t *members = malloc((size_t)count * sizeof(*members));
    for (int member = 0; members != NULL && member < count; member++) {
        members[member] = parent->group->ranks[ranks[member]];
    }
    struct mpi_group *group = mpi_group_make(members, count); /* takes them; NULL: no memory */
    struct mpi_comm *made = group == NULL ? NULL : mpi_comm_make(parent, group, context);
    if (group != NULL) {
        mpi_group_release(group);
    }
    return made;
}

void mpi_comm_end(struct mpi_comm *comm)
{
    mpi_comm_delist(comm);
    for (uint32_t i = 0; i < owner_count; i++) {
        if (owners[i].abandon != NULL) {
            owners[i].abandon(comm);
        }
    }
    mpi_errhandler_release(comm->errhandler);
    mpi_group_release(comm->group);
    mpi_info_free_object(comm->info);
    free(comm);
}

void mpi_comm_handle_release(struct mpi_comm *comm)
{
    mpi_handle_free(MPI_KIND_COMM, (uintptr_t)comm->handle);
    comm->is_freed = true;
    mpi_comm_release(comm);
}

/* World or self: their contexts are the first two numbers of rank 0, and of this process. */
static struct mpi_comm *comm_predefined(MPI_Comm handle, uint32_t first, uint32_t size, uint64_t context,
                                        const char *name)
{
    uint32_t *ranks = malloc(size * sizeof(*ranks));
    for (uint32_t rank = 0; ranks != NULL && rank < size; rank++) {
        ranks[rank] = first + rank;
    }
    struct mpi_group *group = mpi_group_make(ranks, (int)size);
    if (group == NULL) {
        return NULL;
    }
    struct mpi_comm *comm = comm_make(handle, NULL, group, context);
    mpi_group_release(group);
    if (comm != NULL) {
        snprintf(comm->name, sizeof(comm->name), "%s", name);
    }
    return comm;
}

int mpi_comm_start(uint32_t rank, uint32_t size, const struct mpi_comm_owner *all_owners, uint32_t all_owner_count)
{
    owners = all_owners;
    owner_count = all_owner_count;
    context_count = 2;
    mpi_comm_world = comm_predefined(MPI_COMM_WORLD, 0, size, 1, "MPI_COMM_WORLD");
    mpi_comm_self = comm_predefined(MPI_COMM_SELF, rank, 1, (uint64_t)rank << 32 | 2, "MPI_COMM_SELF");
    return mpi_comm_world == NULL || mpi_comm_self == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

void mpi_comm_stop(void)
{
    struct mpi_comm *comm;
    while ((comm = mpi_comm_first()) != NULL) {
        comm->references = 1; /* objects that the program has not freed are freed too */
        mpi_comm_release(comm);
    }
    mpi_comm_world = mpi_comm_self = NULL;
}
