#include "mpi/collective/calls/collective.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/file/recording.h"
#include "dataplane/base/clock.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/clusters/levels.h"
#include "mpi/collective/compiled/count_matrix.h"
#include "mpi/collective/compiled/plans.h"
#include "mpi/collective/compiled/record.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/exchange/groups.h"
#include "mpi/collective/exchange/refusal.h"
#include "mpi/collective/exchange/state.h"
#include "mpi/collective/host/host.h"
#include "mpi/collective/run/agreement.h"
#include "mpi/collective/run/describe.h"
#include "mpi/collective/run/multicast_scatterv.h"
#include "mpi/collective/run/steps.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/group/communicator.h"
#include "mpi/point/lost.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/info.h"

enum { WHY_BYTES = 400 };

/* Calls come and go all the time: freed ones are kept. */
static struct mpi_collective *spare_first;

static struct mpi_collective *collective_acquire(void)
{
    struct mpi_collective *taken = spare_first;
    if (taken == NULL) {
        return calloc(1, sizeof(*taken));
    }
    spare_first = taken->next_spare;
    *taken = (struct mpi_collective){.is_joined = false};
    return taken;
}

void mpi_collective_spares_free(void)
{
    while (spare_first != NULL) {
        struct mpi_collective *spare = spare_first;
        spare_first = spare->next_spare;
        free(spare);
    }
}

int mpi_collective_make(const char *name, MPI_Comm comm, struct mpi_collective **collective)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_collectives *collectives = mpi_collectives_of(found);
    struct mpi_collective *made = collectives == NULL ? NULL : collective_acquire();
    if (made == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a collective call");
    }
    made->name = name;
    made->comm = found;
    made->ordinal = ++collectives->call_count;
    made->problem = (struct cw_problem_request){.ranks = (uint32_t)found->size, .element_bytes = 1};
    mpi_comm_retain(found);
    *collective = made;
    return MPI_SUCCESS;
}

int mpi_collective_set_root(struct mpi_collective *collective, int root)
{
    const struct mpi_comm *comm = collective->comm;
    if (root < 0 || root >= comm->size) {
        return mpi_error(comm->handle, MPI_ERR_ROOT, "root %d is none of the %d ranks of %s", root, comm->size,
                         comm->name);
    }
    collective->problem.root = (uint32_t)root;
    return MPI_SUCCESS;
}

static void memory_free(void *memory)
{
    if (memory != NULL) { /* most calls have none */
        free(memory);
    }
}

/* It is not in progress. */
static void collective_destroy(struct mpi_collective *collective)
{
    if (collective == NULL) {
        return;
    }
    mpi_buffer_dispose(&collective->send);
    mpi_buffer_dispose(&collective->receive);
    if (collective->element != NULL) {
        mpi_type_release(collective->element);
    }
    if (collective->op != NULL) {
        mpi_op_release(collective->op);
    }
    if (collective->count_matrix != NULL) {
        mpi_count_matrix_free(collective->count_matrix);
    }
    if (collective->agreement != NULL) {
        mpi_agreement_free(collective->agreement);
    }
    if (collective->scatterv != NULL) {
        mpi_multicast_scatterv_free(collective->scatterv);
    }
    if (collective->own_host != NULL) {
        mpi_host_destroy(collective->own_host);
    }
    mpi_comm_release(collective->comm);
    memory_free(collective->why);
    memory_free(collective->counts);
    memory_free(collective->send_packed);
    memory_free(collective->receive_packed);
    collective->next_spare = spare_first;
    spare_first = collective;
}

void mpi_collectives_abandon(struct mpi_comm *comm)
{
    struct mpi_collectives *collectives = comm->collectives;
    if (collectives != NULL) {
        exchange_early_free(&collectives->early);
        mpi_clusters_free(collectives->clusters);
        mpi_plans_destroy(collectives->plans);
        mpi_replay_detach(collectives->replay);
        mpi_host_destroy(collectives->host);
        mpi_levels_free(collectives->levels);
        mpi_groups_close(collectives->multicast_group.group);
        mpi_groups_close(collectives->heads_group.group);
        free(collectives);
    }
}

/* ---- life ---- */

static bool is_timed(void)
{
    return mpi_record_is_on() || mpi_replay_is_on();
}

/* Records the way the call was executed, and its time, if a recorder or report needs them. */
static void account(struct mpi_collective *collective, bool by_host)
{
    const struct mpi_replay_entry *planned = collective->planned;
    uint64_t took_ns = cw_clock_ns() - collective->begun_ns;
    bool is_served = !by_host && planned != NULL && collective->plan == mpi_replay_plan(planned);
    mpi_replay_count(collective, is_served, took_ns);
    if (mpi_record_is_on()) {
        mpi_record_call(collective, by_host ? "host" : collective->algorithm->name,
                        (is_served ? CW_RECORDING_PLANNED : 0u) | (collective->exchanges ? CW_RECORDING_EXCHANGED : 0u),
                        took_ns);
    }
}

static void collective_end(struct mpi_collective *collective, int code)
{
    if (code == MPI_SUCCESS && collective->begun_ns != 0) {
        account(collective, false);
    }
    if (code == MPI_SUCCESS && collective->scatterv != NULL && !collective->by_pairs) {
        mpi_multicast_scatterv_account(collective);
    }
    if (collective->is_joined) {
        mpi_progress_leave(&collective->user);
        collective->is_joined = false;
    }
    collective->run_count++;
    if (collective->after != NULL) {
        code = collective->after->end(collective->after, code);
        collective->after = NULL;
    }
    mpi_request_complete(collective->request, code);
}

static uint32_t collective_turn(struct mpi_progress_user *user)
{
    struct mpi_collective *collective = (struct mpi_collective *)user;
    uint32_t step_count = collective->step_count;
    int code = mpi_steps_poll(collective);
    if (code == MPI_ERR_PENDING) {
        return collective->step_count -
               step_count; /* an opened group may have notices: another round before this thread sleeps */
    }
    collective_end(collective, code);
    return 1;
}

/* Of the request that belongs to it (MPI_Start). */
static void collective_start(struct mpi_request *request)
{
    struct mpi_collective *collective = request->collective;
    collective->exchanges = false;
    collective->begun_ns = is_timed() ? cw_clock_ns() : 0;
    int code = mpi_steps_begin(collective);
    if (code != MPI_SUCCESS) {
        collective_end(collective, code);
        return;
    }
    collective->user.turn = collective_turn;
    collective->is_joined = true;
    mpi_progress_join(&collective->user);
    (void)collective_turn(&collective->user);
}

void mpi_collective_after(MPI_Request request, struct mpi_after *after)
{
    struct mpi_request *found = mpi_request_find(request);
    if (!found->is_complete) {
        found->collective->after = after;
        return;
    }
    found->error = after->end(after, found->error);
}

static const char *collective_why(const struct mpi_collective *collective)
{
    return collective->why;
}

static const struct mpi_request_actions actions = {
    .start = collective_start,
    .destroy = collective_destroy,
    .describe = mpi_describe_collective,
    .why = collective_why,
};

/* A request for the call, which from now on belongs to it. */
static int request_make(struct mpi_collective *collective, struct mpi_request **request)
{
    *request = mpi_request_make(MPI_REQUEST_COLLECTIVE);
    if (*request == NULL) {
        int code = mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "no memory for a request");
        collective_destroy(collective);
        return code;
    }
    (*request)->collective = collective;
    (*request)->actions = &actions;
    (*request)->comm = collective->comm;
    mpi_comm_retain(collective->comm);
    collective->request = *request;
    collective->number = collective->comm->collectives->next_number;
    const bool is_exchanged = (collective->count_matrix != NULL && collective->count_matrix->phases == NULL) ||
                              (collective->scatterv != NULL && !collective->by_pairs);
    collective->comm->collectives->next_number += collective->agreement != NULL ? 3 : is_exchanged ? 2 : 1;
    return MPI_SUCCESS;
}

/* A blocking call whose schedule is one host op. It has a number as others have, by which ranks in other calls ask. */
static int host_block(struct mpi_collective *collective)
{
    void *send, *receive;
    struct mpi_comm *comm = collective->comm;
    MPI_Comm handle = comm->handle;
    char why[WHY_BYTES]; /* empty by its first byte: zeroing all of it costs 20 ns a call */
    why[0] = 0;
    uint32_t *kept = mpi_host_kept_kind(collective);
    uint32_t number = comm->collectives->next_number++, kind = *kept != 0 ? *kept : mpi_describe_kind(collective, true);
    *kept = kind;
    comm->collectives->blocking_number = number;
    collective->begun_ns = is_timed() ? cw_clock_ns() : 0;
    int code = mpi_buffers_open(collective, collective->send_must_pack && !mpi_host_accepts_in_place(collective), &send,
                                &receive);
    if (code == MPI_SUCCESS) {
        code = mpi_host_run(collective, number, kind, send, receive);
    } else {
        mpi_host_abandon(collective, number);
    }
    if (code == MPI_SUCCESS) {
        mpi_buffers_close(collective);
        if (collective->begun_ns != 0) {
            account(collective, true);
        }
    } else {
        snprintf(why, sizeof(why), "%s", mpi_host_why(collective));
        const struct mpi_refusal refusal = {
            .reason = MPI_REFUSAL_MISMATCH, .flags = MPI_REFUSAL_LEVELS, .peer = -1}; /* some may go by messages */
        comm->collectives->are_levels_over = true;
        mpi_exchange_reject(comm, number, 0, &refusal);
    }
    mpi_exchange_over(comm, number, kind, code != MPI_SUCCESS);
    collective_destroy(collective);
    return code == MPI_SUCCESS ? MPI_SUCCESS : mpi_error(handle, code, "%s", why[0] != 0 ? why : mpi_error_text(code));
}

int mpi_collective_block(int code, struct mpi_collective *collective)
{
    struct mpi_request *request;
    if (code != MPI_SUCCESS) {
        collective_destroy(collective);
        return code;
    }
    collective->planned = mpi_replay_find(collective);
    bool is_whole =
        !mpi_lost(collective->comm, MPI_ANY_SOURCE); /* else the call fails at once, as exchange_lost_find says */
    if (is_whole) {
        mpi_host_levels_begin(collective, false);
        if (collective->planned == NULL && !mpi_exchange_is_early(collective->comm) && mpi_host_serves(collective)) {
            return host_block(collective);
        }
    }
    code = request_make(collective, &request);
    if (code != MPI_SUCCESS) {
        return code;
    }
    MPI_Comm comm = collective->comm->handle;
    collective_start(request);
    mpi_request_await(request);
    code = request->error;
    char why[WHY_BYTES];
    if (code != MPI_SUCCESS) {
        snprintf(why, sizeof(why), "%s", collective->why != NULL ? collective->why : mpi_error_text(code));
    }
    mpi_request_destroy(request);
    return code == MPI_SUCCESS ? MPI_SUCCESS : mpi_error(comm, code, "%s", why);
}

int mpi_collective_return(int code, struct mpi_collective *collective, MPI_Request *request)
{
    struct mpi_request *made;
    if (code != MPI_SUCCESS) {
        collective_destroy(collective);
        return code;
    }
    collective->planned = mpi_replay_find(collective);
    collective->mode = CW_RECORDING_NONBLOCKING;
    code = request_make(collective, &made);
    if (code == MPI_SUCCESS && mpi_request_handle_make(made) != MPI_SUCCESS) {
        code = mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "too many requests at a time");
        mpi_request_destroy(made);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    *request = made->handle;
    mpi_request_start(made);
    return MPI_SUCCESS;
}

int mpi_collective_keep(int code, struct mpi_collective *collective, MPI_Info info, MPI_Request *request)
{
    struct mpi_request *made;
    if (code == MPI_SUCCESS && info != MPI_INFO_NULL && mpi_info_find(info) == NULL) { /* no hint is known yet */
        code = mpi_error(collective->comm->handle, MPI_ERR_INFO, "unknown info object");
    }
    if (code != MPI_SUCCESS) {
        collective_destroy(collective);
        return code;
    }
    collective->planned = mpi_replay_find(collective);
    collective->mode = CW_RECORDING_PERSISTENT;
    if (!mpi_lost(collective->comm, MPI_ANY_SOURCE)) {
        mpi_host_levels_begin(collective, true);
    }
    if (mpi_host_has_levels(collective->comm, collective->comm->collectives->next_number) &&
        mpi_host_fits(collective)) {
        collective->own_host = mpi_host_own(collective->comm);
    }
    code = request_make(collective, &made);
    if (code == MPI_SUCCESS && mpi_request_handle_make(made) != MPI_SUCCESS) {
        code = mpi_error(collective->comm->handle, MPI_ERR_NO_MEM, "too many requests at a time");
        mpi_request_destroy(made);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    made->is_persistent = true;
    *request = made->handle;
    return MPI_SUCCESS;
}
