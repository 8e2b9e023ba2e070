#include "mpi/state/comm.h"

#include <stdio.h>

#include "dataplane/path/path.h"
#include "mpi/state/handle.h"
#include "mpi/state/process.h"

struct mpi_comm *mpi_comm_world;
struct mpi_comm *mpi_comm_self;

struct mpi_comm *mpi_comm_buckets[MPI_CONTEXT_BUCKETS];

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

void mpi_comm_lost_text(const struct mpi_comm *comm, int rank, char *text, size_t bytes)
{
    uint32_t process = comm->group->ranks[rank];
    if (cw_paths_is_unreachable(mpi_process.paths, process)) {
        cw_paths_why(mpi_process.paths, process, text, bytes); /* by its number in MPI_COMM_WORLD */
    } else if (cw_paths_transport(mpi_process.paths, process) == CW_PATH_TRANSPORT_NONE) {
        snprintf(text, bytes, "rank %d has ended, or is declared failed", rank);
    } else {
        snprintf(text, bytes, "rank %d has lost another rank, and has abandoned the communicator", rank);
    }
}

static struct mpi_comm *comm_from_bucket(uint32_t bucket)
{
    while (bucket < MPI_CONTEXT_BUCKETS && mpi_comm_buckets[bucket] == NULL) {
        bucket++;
    }
    return bucket < MPI_CONTEXT_BUCKETS ? mpi_comm_buckets[bucket] : NULL;
}

struct mpi_comm *mpi_comm_first(void)
{
    return comm_from_bucket(0);
}

struct mpi_comm *mpi_comm_after(struct mpi_comm *comm)
{
    return comm->next != NULL ? comm->next : comm_from_bucket(mpi_context_bucket(comm->context) + 1);
}

void mpi_comm_enlist(struct mpi_comm *comm)
{
    comm->next = mpi_comm_buckets[mpi_context_bucket(comm->context)];
    mpi_comm_buckets[mpi_context_bucket(comm->context)] = comm;
}

void mpi_comm_delist(struct mpi_comm *comm)
{
    struct mpi_comm **link = &mpi_comm_buckets[mpi_context_bucket(comm->context)];
    while (*link != comm) {
        link = &(*link)->next;
    }
    *link = comm->next;
    freed[freed_count++ % MPI_CONTEXTS_FREED] = comm->context;
}
