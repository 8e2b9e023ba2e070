#include "mpi/group/communicator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/collective/calls/collective.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/hierarchy/hierarchy.h"
#include "mpi/communicator/topology.h"
#include "mpi/point/match.h"
#include "mpi/runtime/attribute.h"
#include "mpi/runtime/errhandler.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/info.h"
#include "mpi/state/handle.h"
#include "mpi/state/process.h"

struct mpi_comm *mpi_comm_world;
struct mpi_comm *mpi_comm_self;

/* By context; freed ones stay until nothing is under way in them. */
enum { CONTEXT_BUCKETS = 256 };
static struct mpi_comm *buckets[CONTEXT_BUCKETS];
static uint32_t context_count;

static uint64_t freed[MPI_CONTEXTS_FREED]; /* the last ones; 0: none */
static uint32_t freed_count;

bool mpi_context_was_freed(uint64_t context)
{
    for (uint32_t i = 0; i < MPI_CONTEXTS_FREED; i++) {
        if (freed[i] == context) {
            return true;
        }
    }
    return false;
}

static uint32_t bucket_of(uint64_t context)
{
    return (uint32_t)((context ^ context >> 32) % CONTEXT_BUCKETS);
}

struct mpi_comm *mpi_comm_find(MPI_Comm handle)
{
    if (handle == MPI_COMM_WORLD) {
        return mpi_comm_world;
    }
    return handle == MPI_COMM_SELF ? mpi_comm_self : mpi_handle_object(MPI_KIND_COMM, (uintptr_t)handle);
}

int mpi_comm_lookup(MPI_Comm handle, struct mpi_comm **comm)
{
    *comm = mpi_comm_find(handle);
    return *comm != NULL
               ? MPI_SUCCESS
               : mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "%s",
                           handle == MPI_COMM_NULL ? "the communicator is MPI_COMM_NULL" : "unknown communicator");
}

struct mpi_comm *mpi_comm_of_context(uint64_t context)
{
    struct mpi_comm *comm = buckets[bucket_of(context)];
    while (comm != NULL && comm->context != context) {
        comm = comm->next;
    }
    return comm;
}

static struct mpi_comm *comm_from_bucket(uint32_t bucket)
{
    while (bucket < CONTEXT_BUCKETS && buckets[bucket] == NULL) {
        bucket++;
    }
    return bucket < CONTEXT_BUCKETS ? buckets[bucket] : NULL;
}

struct mpi_comm *mpi_comm_first(void)
{
    return comm_from_bucket(0);
}

struct mpi_comm *mpi_comm_after(struct mpi_comm *comm)
{
    return comm->next != NULL ? comm->next : comm_from_bucket(bucket_of(comm->context) + 1);
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
    comm->next = buckets[bucket_of(context)];
    buckets[bucket_of(context)] = comm;
    mpi_match_adopt(comm);
    mpi_collectives_adopt(comm);
    mpi_replay_attach(comm);
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

void mpi_comm_retain(struct mpi_comm *comm)
{
    comm->references++;
}

void mpi_comm_release(struct mpi_comm *comm)
{
    if (--comm->references > 0) {
        return;
    }
    struct mpi_comm **link = &buckets[bucket_of(comm->context)];
    while (*link != comm) {
        link = &(*link)->next;
    }
    *link = comm->next;
    freed[freed_count++ % MPI_CONTEXTS_FREED] = comm->context;
    mpi_matching_destroy(comm->matching);
    mpi_collectives_destroy(comm->collectives);
    mpi_errhandler_release(comm->errhandler);
    mpi_group_release(comm->group);
    mpi_topology_destroy(comm->topology);
    mpi_info_free_object(comm->info);
    free(comm);
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

int mpi_comm_start(uint32_t rank, uint32_t size)
{
    context_count = 2;
    mpi_comm_world = comm_predefined(MPI_COMM_WORLD, 0, size, 1, "MPI_COMM_WORLD");
    mpi_comm_self = comm_predefined(MPI_COMM_SELF, rank, 1, (uint64_t)rank << 32 | 2, "MPI_COMM_SELF");
    return mpi_comm_world == NULL || mpi_comm_self == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
}

void mpi_comm_stop(void)
{
    struct mpi_comm *comm;
    mpi_hierarchy_stop();
    while ((comm = mpi_comm_first()) != NULL) {
        comm->references = 1; /* what the program has left behind goes, too */
        mpi_comm_release(comm);
    }
    mpi_comm_world = mpi_comm_self = NULL;
    mpi_match_forget_unknown();
}
