/* levels: the hosts of a communicator's ranks, once they have segments to share (host/host.h): problems of its calls
 * name them (collectives/schedule/problem.h), and so schedules may have levels.
 *
 * Invariants
 *   - The same at all ranks of the communicator, as the hosts of all ranks are.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "collectives/schedule/problem.h"
#include "mpi/state/comm.h"

struct mpi_levels {
    uint32_t hosts;
    uint32_t *host_of; /* per rank; hosts are numbered in the order of their first ranks */
    uint32_t *heads;   /* per host: its first rank */
    uint64_t digest;   /* of all of this */
};

/* Of a communicator, whether it has segments or not. NULL: no memory, at this rank alone: calls of the others that rely
 * on it end with an error. */
struct mpi_levels *mpi_levels_make(const struct mpi_comm *comm);
/* NULL is allowed. */
void mpi_levels_free(struct mpi_levels *levels);

/* Whether this rank is the first one of its host. */
bool mpi_levels_is_head(const struct mpi_comm *comm);
