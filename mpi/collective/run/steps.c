#include "mpi/collective/run/steps.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/file/recording.h"
#include "dataplane/base/clock.h"
#include "dataplane/status.h"
#include "mpi/collective/compiled/count_matrix.h"
#include "mpi/collective/compiled/phases.h"
#include "mpi/collective/compiled/replay.h"
#include "mpi/collective/exchange/groups.h"
#include "mpi/collective/exchange/refusal.h"
#include "mpi/collective/host/host.h"
#include "mpi/collective/operations/elements.h"
#include "mpi/collective/run/agreement.h"
#include "mpi/collective/run/describe.h"
#include "mpi/collective/run/multicast_scatterv.h"
#include "mpi/collective/run/own.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/point/point.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/lock.h"
#include "mpi/state/process.h"

/* Levels are known alike; a persistent call has them if it has a segment of its own. */
static bool has_levels(const struct mpi_collective *collective)
{
    bool has_segment = collective->mode != CW_RECORDING_PERSISTENT ||
                       (collective->own_host != NULL && mpi_host_is_whole(collective->own_host, collective->run_count));
    return mpi_host_has_levels(collective->comm, collective->number) && has_segment && mpi_host_fits(collective);
}

static int plan_start(struct mpi_collective *collective, struct mpi_plan *plan, uint32_t number)
{
    char error[200];
    void *send = NULL, *receive = NULL;
    int code = MPI_SUCCESS;
    if (plan == NULL) {
        code =
            mpi_plan_find(collective->comm, &collective->problem, has_levels(collective), &plan, error, sizeof(error));
        code = code != MPI_SUCCESS
                   ? code
                   : mpi_plan_throttle(collective->comm, &collective->problem, number + collective->run_count, &plan);
    }
    if (code == MPI_SUCCESS) {
        code = mpi_buffers_open(collective, collective->send_must_pack, &send, &receive);
    }
    return code != MPI_SUCCESS ? code : mpi_step_run(collective, collective->comm, plan, number, send, receive);
}

/* ---- step after step ---- */

/* Whether the root sends its counts first. */
static bool sends_counts_first(const struct mpi_collective *collective)
{
    return collective->scatterv != NULL && !collective->by_pairs;
}

static enum mpi_step step_next(const struct mpi_collective *collective)
{
    const struct mpi_count_matrix *counts = collective->count_matrix;
    if (collective->agreement != NULL && !collective->agreement->is_over) {
        return MPI_STEP_AGREE;
    }
    if (collective->planned == NULL && counts != NULL && counts->phases == NULL && !counts->is_known) {
        return MPI_STEP_COUNTS;
    }
    return sends_counts_first(collective) && !mpi_multicast_scatterv_has_counts(collective->scatterv) ? MPI_STEP_TELL
                                                                                                      : MPI_STEP_DATA;
}

/* The first step has the number of the call, and later steps have the next numbers, also if a persistent call skips a
 * step. */
static uint32_t step_number(const struct mpi_collective *collective)
{
    const struct mpi_count_matrix *counts = collective->count_matrix;
    uint32_t agreed = collective->step != MPI_STEP_AGREE && collective->agreement != NULL;
    bool has_counts = collective->planned == NULL && counts != NULL && counts->phases == NULL;
    uint32_t told = collective->step == MPI_STEP_DATA && (has_counts || sends_counts_first(collective));
    return collective->number + agreed + told;
}

/* Starts an all-gather of values that all ranks need. */
static int word_start(struct mpi_collective *collective, const struct cw_problem_request *request, uint64_t *own,
                      uint64_t *all)
{
    struct mpi_plan *plan;
    char error[200];
    int code = mpi_plan_find(collective->comm, request, false, &plan, error, sizeof(error));
    return code != MPI_SUCCESS ? code
                               : mpi_step_run(collective, collective->comm, plan, step_number(collective), own, all);
}

static int data_start(struct mpi_collective *collective)
{
    uint32_t number = step_number(collective);
    struct mpi_phases *phases = collective->count_matrix != NULL ? collective->count_matrix->phases : NULL;
    if (collective->planned != NULL) {
        return plan_start(collective, mpi_replay_plan(collective->planned), number);
    }
    if (collective->by_pairs) {
        return mpi_own_start(collective, number);
    }
    if (collective->scatterv != NULL) {
        return mpi_multicast_scatterv_move(collective, number);
    }
    int code = phases == NULL ? MPI_SUCCESS : mpi_count_matrix_check(collective);
    return code != MPI_SUCCESS ? code : plan_start(collective, phases == NULL ? NULL : mpi_phases_plan(phases), number);
}

static int step_start(struct mpi_collective *collective)
{
    struct cw_problem_request request;
    switch (collective->step) {
    case MPI_STEP_AGREE:
        request = mpi_agreement_exchange(collective);
        return word_start(collective, &request, mpi_agreement_own(collective->agreement, request.ranks),
                          collective->agreement->all);
    case MPI_STEP_COUNTS:
        collective->exchanges = true;
        request = mpi_count_matrix_exchange(collective);
        return word_start(collective, &request, collective->count_matrix->own, collective->count_matrix->all);
    case MPI_STEP_TELL:
        collective->exchanges = true;
        return mpi_multicast_scatterv_announce(collective);
    default:
        return data_start(collective);
    }
}

/* A step has ended with `code`; returns the code of the call so far. */
static int step_end(struct mpi_collective *collective, int code)
{
    if (collective->step == MPI_STEP_DATA && !sends_counts_first(collective)) {
        if (code == MPI_SUCCESS || code == MPI_ERR_TRUNCATE) {
            mpi_buffers_close(collective);
        }
        return code;
    }
    if (code != MPI_SUCCESS && collective->step != MPI_STEP_TELL) {
        return code;
    }
    return collective->step == MPI_STEP_AGREE    ? mpi_agreement_finish(collective)
           : collective->step == MPI_STEP_COUNTS ? mpi_count_matrix_finish(collective)
           : collective->step == MPI_STEP_TELL   ? mpi_multicast_scatterv_learn(collective, code)
                                                 : mpi_multicast_scatterv_end(collective);
}

int mpi_steps_begin(struct mpi_collective *collective)
{
    collective->step = step_next(collective);
    int code = step_start(collective);
    bool is_moved =
        collective->step == MPI_STEP_DATA && sends_counts_first(collective); /* it notifies its members itself */
    if ((code == MPI_ERR_NO_MEM || code == MPI_ERR_INTERN) && !is_moved) {
        mpi_step_reject(collective, collective->comm, step_number(collective));
    }
    return code;
}

int mpi_steps_poll(struct mpi_collective *collective)
{
    for (;;) { /* starts the next step immediately, since a waiting thread may sleep next */
        enum mpi_step step = collective->step;
        int code =
            collective->run != NULL ? mpi_step_poll(collective) : MPI_SUCCESS; /* NULL: this rank takes no part */
        if (code == MPI_ERR_PENDING) {
            return code;
        }
        code = step_end(collective, code);
        if (step == MPI_STEP_DATA || code != MPI_SUCCESS) {
            return code;
        }
        code = mpi_steps_begin(collective);
        if (code != MPI_SUCCESS) {
            return code;
        }
    }
}
