/* comm: communicators as data, and how they are found (MPI 5.0, 7.4): by handle, or by the context that keeps their
 * messages apart from all others.
 *
 * The data of a communicator belong to their owners, which are notified when one is made and when it ends
 * (group/communicator.h).
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"
#include "mpi/state/group.h"
#include "mpi/state/handle.h"

struct mpi_attributes;
struct mpi_collectives; /* collective/ */
struct mpi_errhandler;
struct mpi_info;
struct mpi_matching; /* point/match.h */
struct mpi_topology; /* communicator/topology.h */

struct mpi_comm {
    MPI_Comm handle;
    uint32_t references;  /* the handle, requests, and open groups */
    uint32_t open_groups; /* of the references: MPIX_Scatterv_groups, by which nothing is in progress */
    bool is_freed;        /* the handle is gone */
    uint64_t context;     /* of messages; collectives use the same number with the highest bit set */
    uint32_t lane_tag;    /* mpi_lane_tag(context, 0): its lane (transport/message.h), for a kind to be added */
    struct mpi_group *group;
    int rank;
    int size;
    struct mpi_matching *matching;
    struct mpi_collectives *collectives;
    struct mpi_errhandler *errhandler;
    struct mpi_attributes *attributes;
    struct mpi_topology *topology; /* NULL: none */
    struct mpi_info *info;         /* NULL: no hints */
    struct mpi_comm *next;         /* of all */
    char name[MPI_MAX_OBJECT_NAME];
};

enum {
    MPI_TAG_MAX = 0x7ffffffe, /* MPI_TAG_UB */
    MPI_CONTEXTS_FREED = 4096,
    MPI_CONTEXT_BUCKETS = 256,
};

extern struct mpi_comm *mpi_comm_world;
extern struct mpi_comm *mpi_comm_self;

/* By context; freed ones stay until nothing is in progress in them. */
extern struct mpi_comm *mpi_comm_buckets[MPI_CONTEXT_BUCKETS];

/* The object of a handle; NULL: none, or freed. */
static inline struct mpi_comm *mpi_comm_find(MPI_Comm handle)
{
    if (handle == MPI_COMM_WORLD) {
        return mpi_comm_world;
    }
    return handle == MPI_COMM_SELF ? mpi_comm_self : mpi_handle_object(MPI_KIND_COMM, (uintptr_t)handle);
}

/* One who uses a communicator: it lives until all of them have released it. */
static inline void mpi_comm_retain(struct mpi_comm *comm)
{
    comm->references++;
}
void mpi_comm_end(struct mpi_comm *comm); /* by group/communicator.h */
static inline void mpi_comm_release(struct mpi_comm *comm)
{
    if (--comm->references == 0) {
        mpi_comm_end(comm);
    }
}

/* Why `rank` of a communicator, which is lost (point/lost.h), cannot be had. One line. */
void mpi_comm_lost_text(const struct mpi_comm *comm, int rank, char *text, size_t bytes);

/* The communicator of a context, of messages or of collectives; NULL: not (or no longer) known here. */
static inline uint32_t mpi_context_bucket(uint64_t context)
{
    return (uint32_t)((context ^ context >> 32) % MPI_CONTEXT_BUCKETS);
}
static inline struct mpi_comm *mpi_comm_of_context(uint64_t context)
{
    struct mpi_comm *comm = mpi_comm_buckets[mpi_context_bucket(context)];
    while (comm != NULL && comm->context != context) {
        comm = comm->next;
    }
    return comm;
}

/* Whether it was that of a communicator that has gone: one of the last MPI_CONTEXTS_FREED. Nothing that comes for it
 * will ever be asked for. */
bool mpi_context_was_freed(uint64_t context);

/* All communicators that there are, freed ones with requests in progress included. NULL: no more. */
struct mpi_comm *mpi_comm_first(void);
struct mpi_comm *mpi_comm_after(struct mpi_comm *comm);

/* A communicator is there, found by its context; and no longer. */
void mpi_comm_enlist(struct mpi_comm *comm);
void mpi_comm_delist(struct mpi_comm *comm);
