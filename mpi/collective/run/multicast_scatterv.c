#include "mpi/collective/run/multicast_scatterv.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/choose/override.h"
#include "dataplane/base/clock.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/compiled/plans.h"
#include "mpi/collective/run/steps.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/group/communicator.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/explain.h"
#include "mpi/state/process.h"

/* How the blocks go; the root tells. */
enum way {
    WAY_PAIRS = 0,      /* nothing is told */
    WAY_STATIC = 1,     /* to the communicator's group */
    WAY_DYNAMIC = 2,    /* to a group of the receivers */
    WAY_ONE_BY_ONE = 3, /* by a flat scatter */
    WAY_COUNT
};

/* As --explain prints them. */
static const struct {
    const char *name;
    const char *algorithm; /* of the scatter */
} ways[WAY_COUNT] = {
    [WAY_PAIRS] = {CW_OVERRIDE_PAIRS, NULL},
    [WAY_STATIC] = {CW_OVERRIDE_STATIC, "multicast"},
    [WAY_DYNAMIC] = {CW_OVERRIDE_DYNAMIC, "multicast"},
    [WAY_ONE_BY_ONE] = {"flat", "flat"},
};

/* The root's notice. */
struct told {
    uint64_t way;     /* enum way */
    uint64_t context; /* of the group, if dynamic */
    uint64_t bytes[]; /* of each rank's block */
};
static_assert(sizeof(struct told) == 16, "the same at all ranks");

struct mpi_multicast_scatterv {
    bool is_dynamic; /* as asked for */
    bool is_told;
    enum way way;      /* known when the notice is sent */
    struct told *told; /* NULL: by pairs */
    /* of the group, in the order of the communicator; held by its handle. NULL: not dynamic, or this rank gets
     * nothing */
    struct mpi_comm *members;
    uint64_t *counts;       /* of the scatter's ranks, if they are members */
    struct mpi_plan *tells; /* own ones; NULL: not yet */
    struct mpi_plan *moves;
    uint8_t *aside;      /* the own block, if it is not as long as expected */
    uint64_t started_ns; /* this run */
};

/* ---- life ---- */

int mpi_multicast_scatterv_make(struct mpi_collective *collective, const char *way)
{
    const struct mpi_comm *comm = collective->comm;
    struct mpi_multicast_scatterv *made = calloc(1, sizeof(*made));
    collective->scatterv = made;
    collective->by_pairs = !mpi_clusters_can_multicast(comm);
    if (made != NULL && !collective->by_pairs) {
        made->is_dynamic = strcmp(way, CW_OVERRIDE_DYNAMIC) == 0;
        made->told = calloc(1, sizeof(*made->told) + (size_t)comm->size * sizeof(made->told->bytes[0]));
    }
    return made != NULL && (collective->by_pairs || made->told != NULL)
               ? MPI_SUCCESS
               : mpi_error(comm->handle, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks", comm->size);
}

/* The message of all blocks has a plan of its own: --explain reports the call, not its parts. */
static void plan_drop(struct mpi_plan *plan)
{
    if (plan != NULL) {
        plan->calls = 0;
        mpi_plan_drop(plan);
    }
}

void mpi_multicast_scatterv_free(struct mpi_multicast_scatterv *scatterv)
{
    plan_drop(scatterv->tells);
    plan_drop(scatterv->moves);
    if (scatterv->members != NULL) {
        mpi_comm_handle_release(scatterv->members);
    }
    free(scatterv->told);
    free(scatterv->counts);
    free(scatterv->aside);
    free(scatterv);
}

bool mpi_multicast_scatterv_has_counts(const struct mpi_multicast_scatterv *scatterv)
{
    return scatterv->is_told;
}

/* ---- the root's notice ---- */

static bool is_elsewhere(const struct mpi_comm *comm, int rank)
{
    uint32_t world = comm->group->ranks[rank];
    return world != mpi_process.rank && !cw_paths_is_here(mpi_process.paths, world);
}

/* At the root. */
static enum way way_decide(const struct mpi_comm *comm, const uint64_t *bytes, bool is_dynamic)
{
    int receivers = 0;
    bool any_elsewhere = false;
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank && bytes[rank] > 0) {
            receivers++;
            any_elsewhere = any_elsewhere || is_elsewhere(comm, rank);
        }
    }
    if (!is_dynamic || receivers == comm->size - 1) {
        return receivers > 0 ? WAY_STATIC : WAY_ONE_BY_ONE;
    }
    return receivers > 1 && any_elsewhere ? WAY_DYNAMIC : WAY_ONE_BY_ONE;
}

static void counts_fill(const struct mpi_collective *collective)
{
    struct told *told = collective->scatterv->told;
    for (int rank = 0; rank < collective->comm->size; rank++) {
        told->bytes[rank] = (uint64_t)mpi_buffer_block_bytes(&collective->send, rank);
    }
    told->way = way_decide(collective->comm, told->bytes, collective->scatterv->is_dynamic);
    told->context = told->way == WAY_DYNAMIC ? mpi_context_next() : 0;
}

int mpi_multicast_scatterv_announce(struct mpi_collective *collective)
{
    struct mpi_multicast_scatterv *scatterv = collective->scatterv;
    struct mpi_comm *comm = collective->comm;
    const struct cw_problem_request request = {
        .collective = CW_BCAST,
        .ranks = (uint32_t)comm->size,
        .root = collective->problem.root,
        .element_bytes = 1,
        .count = sizeof(*scatterv->told) + (uint64_t)comm->size * sizeof(scatterv->told->bytes[0]),
    };
    if ((uint32_t)comm->rank == request.root) {
        counts_fill(collective);
    }
    scatterv->started_ns = cw_clock_ns();
    int code = scatterv->tells != NULL ? MPI_SUCCESS
                                       : mpi_plan_make_named(comm, &request, "multicast", true, &scatterv->tells);
    return code != MPI_SUCCESS
               ? code
               : mpi_step_run(collective, comm, scatterv->tells, collective->number, scatterv->told, scatterv->told);
}

int mpi_multicast_scatterv_learn(struct mpi_collective *collective, int code)
{
    struct mpi_multicast_scatterv *scatterv = collective->scatterv;
    bool makes_sense = scatterv->told->way > WAY_PAIRS && scatterv->told->way < WAY_COUNT;
    code = code == MPI_SUCCESS && !makes_sense ? MPI_ERR_INTERN : code;
    if (code != MPI_SUCCESS) { /* the root may be past that already, and wait for this rank to be ready */
        mpi_step_reject(collective, collective->comm, collective->number + 1);
        return code;
    }
    scatterv->is_told = true;
    scatterv->way = (enum way)scatterv->told->way;
    return MPI_SUCCESS;
}

/* ---- the data ---- */

/* The communicator of the receivers and the root, and their counts. */
static int members_make(struct mpi_collective *collective)
{
    struct mpi_multicast_scatterv *scatterv = collective->scatterv;
    struct mpi_comm *comm = collective->comm;
    int *ranks = malloc((size_t)comm->size * sizeof(*ranks));
    scatterv->counts = malloc((size_t)comm->size * sizeof(*scatterv->counts));
    int count = 0;
    for (int rank = 0; ranks != NULL && scatterv->counts != NULL && rank < comm->size; rank++) {
        if ((uint32_t)rank == collective->problem.root || scatterv->told->bytes[rank] > 0) {
            scatterv->counts[count] = scatterv->told->bytes[rank];
            ranks[count++] = rank;
        }
    }
    scatterv->members = count == 0 ? NULL : mpi_comm_among(comm, ranks, count, scatterv->told->context);
    free(ranks);
    return scatterv->members != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}

/* The scatter's plan, made with the first run; members' ranks are in the order of the communicator's, so that the
 * root's blocks lie alike. */
static int moves_make(struct mpi_collective *collective)
{
    struct mpi_multicast_scatterv *scatterv = collective->scatterv;
    struct mpi_comm *comm = collective->comm;
    const struct told *told = scatterv->told;
    struct cw_problem_request request = {.collective = CW_SCATTER, .element_bytes = 1, .counts = told->bytes};
    request.root = collective->problem.root;
    if (scatterv->way == WAY_DYNAMIC) {
        int code = members_make(collective);
        if (code != MPI_SUCCESS) {
            return code;
        }
        request.counts = scatterv->counts;
        request.root = (uint32_t)mpi_group_rank_of(scatterv->members->group, comm->group->ranks[request.root]);
        comm = scatterv->members;
    }
    request.ranks = (uint32_t)comm->size;
    return mpi_plan_make_named(comm, &request, ways[scatterv->way].algorithm, scatterv->way != WAY_DYNAMIC,
                               &scatterv->moves);
}

static uint64_t own_bytes(const struct mpi_collective *collective)
{
    return collective->scatterv->told->bytes[collective->comm->rank];
}

/* Whether the data are no concern of this rank. */
static bool is_left_out(const struct mpi_collective *collective)
{
    return collective->scatterv->way == WAY_DYNAMIC && own_bytes(collective) == 0 &&
           (uint32_t)collective->comm->rank != collective->problem.root;
}

/* Runs the scatter. A block that is not as long as expected comes aside. */
static int data_run(struct mpi_collective *collective, struct mpi_comm *comm, uint32_t number)
{
    struct mpi_multicast_scatterv *scatterv = collective->scatterv;
    uint64_t own = own_bytes(collective);
    void *send = NULL, *receive = NULL;
    int code = mpi_buffers_open(collective, false, &send, &receive);
    if (code == MPI_SUCCESS && own != (uint64_t)collective->receive.bytes) {
        scatterv->aside = scatterv->aside != NULL ? scatterv->aside : malloc(own + 1);
        receive = scatterv->aside;
        code = receive != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    }
    return code != MPI_SUCCESS ? code : mpi_step_run(collective, comm, scatterv->moves, number, send, receive);
}

int mpi_multicast_scatterv_move(struct mpi_collective *collective, uint32_t number)
{
    struct mpi_multicast_scatterv *scatterv = collective->scatterv;
    scatterv->started_ns = collective->exchanges ? scatterv->started_ns : cw_clock_ns();
    if (is_left_out(collective)) {
        return MPI_SUCCESS;
    }
    int code = scatterv->moves != NULL ? MPI_SUCCESS : moves_make(collective);
    bool is_among = scatterv->members != NULL; /* if not, and dynamic: no memory, and no member to reject */
    struct mpi_comm *comm = is_among ? scatterv->members : collective->comm;
    number = is_among ? 0 : number;
    code = code != MPI_SUCCESS ? code : data_run(collective, comm, number);
    if (code != MPI_SUCCESS) {
        mpi_step_reject(collective, comm, number);
    }
    return code;
}

/* Copies data that was received into a spare buffer to its place, as far as there is room. */
static int aside_unpack(struct mpi_collective *collective)
{
    const struct mpi_buffer *descriptor = &collective->receive;
    MPI_Count own = (MPI_Count)own_bytes(collective);
    MPI_Count bytes = own < descriptor->bytes ? own : descriptor->bytes;
    char why[200];
    if (bytes > 0) {
        mpi_type_unpack(descriptor->type, descriptor->count, descriptor->buffer, 0, collective->scatterv->aside, bytes);
    }
    if (own <= descriptor->bytes) {
        return MPI_SUCCESS;
    }
    snprintf(why, sizeof(why), "rank %u sends rank %d %lld bytes, which has room for %lld", collective->problem.root,
             collective->comm->rank, (long long)own, (long long)descriptor->bytes);
    free(collective->why);
    collective->why = strdup(why);
    return MPI_ERR_TRUNCATE;
}

int mpi_multicast_scatterv_end(struct mpi_collective *collective)
{
    if (is_left_out(collective)) {
        return MPI_SUCCESS;
    }
    if (collective->scatterv->aside != NULL) {
        return aside_unpack(collective);
    }
    mpi_buffers_close(collective);
    return MPI_SUCCESS;
}

void mpi_multicast_scatterv_account(const struct mpi_collective *collective)
{
    const struct mpi_multicast_scatterv *scatterv = collective->scatterv;
    const struct mpi_comm *comm = scatterv->members != NULL ? scatterv->members : collective->comm;
    MPI_Count bytes =
        collective->send.block_count > 0 ? collective->send.bytes / collective->comm->size : collective->receive.bytes;
    bool gets = false; /* a rank other than the root */
    for (int rank = 0; scatterv->is_told && rank < collective->comm->size; rank++) {
        gets = gets || ((uint32_t)rank != collective->problem.root && scatterv->told->bytes[rank] > 0);
    }
    bool is_asked = scatterv->way == (scatterv->is_dynamic ? WAY_DYNAMIC : WAY_STATIC);
    const char *origin = is_asked                       ? "by name"
                         : scatterv->way == WAY_STATIC  ? "the override is dynamic, but all get something"
                         : scatterv->is_dynamic && gets ? "the override is dynamic, but one rank or host gets all"
                                                        : "nobody else gets anything";
    mpi_explain_calls("scatterv", ways[scatterv->way].name, (uint32_t)comm->size, (uint64_t)bytes, origin, 1, 0,
                      cw_clock_ns() - scatterv->started_ns);
}
