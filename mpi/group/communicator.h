/* communicator: a group, and a context that keeps its messages apart from all others (MPI 5.0, 7.4).
 *
 * Contexts are numbered by rank 0 of the new communicator: its rank in MPI_COMM_WORLD and how many it has numbered. So
 * a context is never used twice, and making a communicator takes no agreement but one message from rank 0. Messages may
 * come before this process has made the communicator: they wait as messages of an unknown context (point/match.h).
 *
 * Within the lock of enter.h only.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"
#include "mpi/state/group.h"

struct mpi_attributes;
struct mpi_collectives; /* collective/ */
struct mpi_errhandler;
struct mpi_info;
struct mpi_matching; /* point/match.h */
struct mpi_topology; /* communicator/topology.h */

struct mpi_comm {
    MPI_Comm handle;
    uint32_t references; /* the handle, and requests under way */
    bool is_freed;       /* the handle is gone */
    uint64_t context;    /* of messages; collectives use the same number with the highest bit set */
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
};

extern struct mpi_comm *mpi_comm_world;
extern struct mpi_comm *mpi_comm_self;

/* The object of a handle; NULL: none, or freed. */
struct mpi_comm *mpi_comm_find(MPI_Comm handle);

/* The same for calls: MPI_SUCCESS, or MPI_ERR_COMM, raised. */
int mpi_comm_lookup(MPI_Comm handle, struct mpi_comm **comm);

/* The communicator of a context, of messages or of collectives; NULL: not (or no longer) known here. */
struct mpi_comm *mpi_comm_of_context(uint64_t context);

/* Whether it was that of a communicator that has gone: one of the last MPI_CONTEXTS_FREED. Nothing that comes for it
 * will ever be asked for. */
bool mpi_context_was_freed(uint64_t context);

/* A new communicator with one reference, its handle's; it holds `group` and takes error handler from `parent` (NULL:
 * MPI_ERRORS_ARE_FATAL). NULL: no memory. */
struct mpi_comm *mpi_comm_make(const struct mpi_comm *parent, struct mpi_group *group, uint64_t context);
/* The same for some ranks of `parent`, in that order, by a context that all of them know. */
struct mpi_comm *mpi_comm_among(const struct mpi_comm *parent, const int *ranks, int count, uint64_t context);
void mpi_comm_retain(struct mpi_comm *comm);
void mpi_comm_release(struct mpi_comm *comm);

/* All communicators that there are, freed ones with requests under way included. NULL: no more. */
struct mpi_comm *mpi_comm_first(void);
struct mpi_comm *mpi_comm_after(struct mpi_comm *comm);

/* Lets go of a communicator's handle: it lives on while something is under way in it. */
void mpi_comm_forget(struct mpi_comm *comm);

/* The next context that this process numbers, for communicators in which it is rank 0. */
uint64_t mpi_context_next(void);

/* MPI_COMM_WORLD and MPI_COMM_SELF; MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_comm_start(uint32_t rank, uint32_t size);
void mpi_comm_stop(void);
