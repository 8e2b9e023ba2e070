#include "mpi/point/lost.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "control/job/job.h"
#include "mpi/group/communicator.h"
#include "mpi/point/point.h"
#include "mpi/state/process.h"
#include "mpi/transport/outbox.h"

enum { HOST_BYTES = 65 /* of a name */ };

/* A rank has abandoned a communicator, which this process may not have made yet. */
struct abandoned {
    uint64_t context;
    int32_t source;
};

static struct abandoned *list;
static uint32_t list_count;
static uint32_t list_capacity;

static bool has_abandoned(const struct mpi_comm *comm, int rank)
{
    for (uint32_t i = 0; i < list_count; i++) {
        if (list[i].context == comm->context && (rank == list[i].source || rank == MPI_ANY_SOURCE)) {
            return true;
        }
    }
    return false;
}

bool mpi_lost(const struct mpi_comm *comm, int rank)
{
    bool any = rank == MPI_ANY_SOURCE;
    if (mpi_process.lost_count == 0) {
        return false;
    }
    for (int at = any ? 0 : rank; at < (any ? comm->size : rank + 1); at++) {
        if (cw_paths_is_down(mpi_process.paths, comm->group->ranks[at])) {
            return true;
        }
    }
    return has_abandoned(comm, rank);
}

static void receive_fail(struct mpi_request *request)
{
    mpi_match_withdraw(request);
    mpi_request_complete(request, MPI_ERR_PROC_ABORTED);
}

void mpi_numbered_fail(struct mpi_numbered *numbered)
{
    const struct mpi_answer answer = {.number = numbered->number, .status = MPI_ERR_PROC_ABORTED};
    numbered->answered(numbered, MPI_SENT_DONE, &answer, NULL, 0);
}

static void silence_report(uint32_t rank)
{
    if (cw_paths_is_silent(mpi_process.paths, rank)) {
        char host[HOST_BYTES] = "";
        bool is_away = cw_job_node_is_away(mpi_process.job) && gethostname(host, sizeof(host) - 1) == 0;
        fprintf(stderr,
                "causeway: rank %u: no packet from rank %u for %g s (CAUSEWAY_FAILURE_TIMEOUT): it is declared "
                "failed%s%s%s\n",
                mpi_process.rank, rank, (double)cw_job_failure_timeout(mpi_process.job) / 1e9,
                is_away ? "; the node of this host, " : "", host,
                is_away ? ", is away: start it again (causeway node)" : "");
    }
    if (cw_paths_is_stopped(mpi_process.paths, rank)) {
        fprintf(stderr,
                "causeway: rank %u: rank %u is stopped by a signal for longer than CAUSEWAY_FAILURE_TIMEOUT: it is "
                "declared failed\n",
                mpi_process.rank, rank);
    }
    if (cw_paths_is_silent(mpi_process.paths, rank) || cw_paths_is_stopped(mpi_process.paths, rank)) {
        mpi_process.dead_rank = rank;
    }
    if (cw_paths_is_unreachable(mpi_process.paths, rank)) {
        char why[CW_PORT_TEXT_BYTES + 64];
        cw_paths_why(mpi_process.paths, rank, why, sizeof(why));
        fprintf(stderr, "causeway: rank %u: %s\n", mpi_process.rank, why);
    }
}

void mpi_lost_down(uint32_t rank, int status)
{
    if (status == CW_ERROR_PEER_RESTARTED) {
        fprintf(stderr,
                "causeway: rank %u: rank %u has started again, as another process: a rank cannot come back into a "
                "running job, which ends now; start the whole job again\n",
                mpi_process.rank, rank);
        mpi_process_abort(1);
    }
    mpi_process.lost_count++;
    silence_report(rank);
    mpi_outbox_fail(rank, status);
    mpi_numbers_each_of(rank, mpi_numbered_fail);
    struct mpi_comm *comm = mpi_comm_first(), *next;
    if (comm != NULL) {
        mpi_comm_retain(comm); /* a request that fails may be its last one */
    }
    for (; comm != NULL; comm = next) {
        mpi_match_each_from(comm, rank, receive_fail);
        next = mpi_comm_after(comm);
        if (next != NULL) {
            mpi_comm_retain(next);
        }
        mpi_comm_release(comm);
    }
}

void mpi_lost_abandon(const struct mpi_comm *comm)
{
    const struct mpi_envelope envelope = {.context = comm->context, .source = comm->rank};
    if (!mpi_process.has_lost && mpi_process.lost_count == 0) {
        return;
    }
    /* a rank that cannot be notified has ended, or detects the loss of this rank itself */
    for (int rank = 0; rank < comm->size; rank++) {
        if (rank != comm->rank) {
            (void)mpi_notify(comm->group->ranks[rank], mpi_lane_tag(comm->context, MPI_SENT_ABANDON), &envelope,
                             sizeof(envelope));
        }
    }
}

void mpi_lost_abandon_all(void)
{
    for (struct mpi_comm *comm = mpi_comm_first(); comm != NULL; comm = mpi_comm_after(comm)) {
        mpi_lost_abandon(comm);
    }
}

static bool list_add(const struct mpi_envelope *envelope)
{
    if (list_count == list_capacity) {
        uint32_t capacity = list_capacity == 0 ? 16 : 2 * list_capacity;
        struct abandoned *grown = realloc(list, capacity * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        list = grown;
        list_capacity = capacity;
    }
    list[list_count++] = (struct abandoned){.context = envelope->context, .source = envelope->source};
    return true;
}

struct mpi_comm *mpi_lost_receive(const void *data, uint32_t bytes, int *source)
{
    struct mpi_envelope envelope;
    if (bytes != sizeof(envelope)) {
        return NULL;
    }
    memcpy(&envelope, data, sizeof(envelope));
    struct mpi_comm *comm = mpi_comm_of_context(envelope.context);
    if (comm != NULL && (envelope.source < 0 || envelope.source >= comm->size)) {
        return NULL; /* no process with this library sends that */
    }
    if ((comm == NULL && mpi_context_was_freed(envelope.context)) || !list_add(&envelope)) {
        return NULL;
    }
    mpi_process.lost_count++;
    if (comm != NULL) {
        mpi_comm_retain(comm); /* a request that fails may be its last one */
        mpi_match_each_from(comm, comm->group->ranks[envelope.source], receive_fail);
    }
    *source = envelope.source;
    return comm;
}

void mpi_lost_clear(void)
{
    free(list);
    list = NULL;
    list_count = list_capacity = 0;
}
