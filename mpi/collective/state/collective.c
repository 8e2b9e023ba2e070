#include "mpi/collective/state/collective.h"

#include <stdio.h>
#include <stdlib.h>

#include "mpi/collective/state/collectives.h"

struct mpi_collectives *mpi_collectives_of(struct mpi_comm *comm)
{
    if (comm->collectives == NULL) {
        comm->collectives = calloc(1, sizeof(*comm->collectives));
    }
    return comm->collectives;
}

void mpi_collective_describe(const struct mpi_collective *collective, struct mpi_said *said)
{
    struct cw_watch_answer *answer = &said->answer;
    uint64_t ordinal = (uint64_t)collective->ordinal + ((uint64_t)collective->run_count << 32);
    uint64_t place = (collective->comm->context + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ ordinal;
    size_t before = said->used;
    mpi_describe(said, "call %u (%s", collective->ordinal, collective->name);
    if (cw_collective_rooted(collective->problem.collective)) {
        mpi_describe(said, ", root %u", collective->problem.root);
    }
    mpi_describe(said, ") on ");
    mpi_describe_comm(said, collective->comm);
    if (answer->place == 0) {
        answer->place = place != 0 ? place : 1;
        snprintf(answer->where, sizeof(answer->where), "%s", answer->text + before);
    }
}
