#include "mpi/collective/run/describe.h"

#include <stdio.h>
#include <string.h>

#include "mpi/collective/compiled/count_matrix.h"
#include "mpi/collective/compiled/phases.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/exchange/call_kind.h"
#include "mpi/collective/host/host.h"
#include "mpi/collective/run/agreement.h"
#include "mpi/collective/run/multicast_scatterv.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/point/describe.h"

enum { NAMED_MAX = 4 };

static void plan_describe(const struct mpi_collective *collective, struct mpi_said *said)
{
    char text[400];
    uint32_t awaited[CW_WATCH_AWAITED_MAX];
    if (collective->run == NULL) {
        return;
    }
    if (mpi_host_part_describe(&collective->run->exchange.host, said)) {
        mpi_describe(said, "; %s", collective->plan->algorithm->name);
        return;
    }
    uint32_t count = cw_execution_awaited(collective->run->execution, awaited, CW_WATCH_AWAITED_MAX);
    const struct mpi_comm *comm = collective->run->exchange.comm; /* of some of the call's ranks, it may be */
    for (uint32_t i = 0; i < count; i++) {
        int rank = mpi_group_rank_of(collective->comm->group, comm->group->ranks[awaited[i]]);
        if (i < NAMED_MAX) {
            mpi_describe(said, i == 0 ? ", waits for rank %d" : ", %d", rank);
        }
        mpi_describe_awaited(said, collective->comm, rank);
    }
    cw_execution_describe(collective->run->execution, text, sizeof(text));
    const char *what = strstr(text, ": "); /* behind the own rank, which the line begins with */
    mpi_describe(said, "%s; %s, %s", count > NAMED_MAX ? ", ..." : "", collective->plan->algorithm->name,
                 what != NULL ? what + 2 : text);
}

void mpi_describe_collective(const struct mpi_collective *collective, struct mpi_said *said)
{
    mpi_collective_describe(collective, said);
    plan_describe(collective, said);
}

/* ---- notices between ranks ---- */

static uint64_t mixed(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* Of how many bytes a collective is about, between the root and the collective. */
static uint32_t size_digest(const struct cw_problem_request *problem)
{
    uint64_t hash = mixed(1, problem->count * problem->element_bytes);
    for (uint32_t rank = 0; problem->counts != NULL && rank < problem->ranks; rank++) {
        hash = mixed(hash, problem->counts[rank] * problem->element_bytes);
    }
    return (uint32_t)(hash & ((1u << (MPI_CALL_WORD_BITS - MPI_CALL_ROOT_BITS)) - 1)) << MPI_CALL_ROOT_BITS;
}

static uint32_t call_kind(const struct mpi_collective *collective)
{
    const struct mpi_count_matrix *count_matrix = collective->count_matrix;
    if (collective->step == MPI_STEP_AGREE) {
        return (uint32_t)MPI_CALL_AGREEMENT << MPI_CALL_WORD_BITS;
    }
    if (collective->agreement != NULL && collective->planned != NULL) {
        return (uint32_t)MPI_CALL_PLANNED << MPI_CALL_WORD_BITS | mpi_replay_number(collective->planned);
    }
    if (count_matrix != NULL && count_matrix->phases != NULL) {
        return (uint32_t)MPI_CALL_ALLTOALLV << MPI_CALL_WORD_BITS |
               (mpi_phases_digest(count_matrix->phases) & ((1u << MPI_CALL_WORD_BITS) - 1));
    }
    if (count_matrix != NULL || (collective->by_pairs && collective->problem.collective == CW_ALLTOALL)) {
        return (uint32_t)(collective->step == MPI_STEP_COUNTS ? MPI_CALL_COUNTS : MPI_CALL_ALLTOALLV)
               << MPI_CALL_WORD_BITS;
    }
    if (collective->scatterv == NULL) {
        return (uint32_t)collective->problem.collective << MPI_CALL_WORD_BITS | size_digest(&collective->problem) |
               (collective->problem.root & ((1u << MPI_CALL_ROOT_BITS) - 1));
    }
    uint32_t kind = collective->step == MPI_STEP_TELL ? MPI_CALL_TELLING : MPI_CALL_SCATTERV;
    return kind << MPI_CALL_WORD_BITS | (collective->problem.root & ((1u << MPI_CALL_WORD_BITS) - 1));
}

uint32_t mpi_describe_kind(const struct mpi_collective *collective, bool has_levels)
{
    return call_kind(collective) | (has_levels ? MPI_CALL_LEVELS : 0);
}
