/* One run of a plan: its buffers, its start, its progress, and its result. */
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

/* Combines packed elements. Derived types are laid out as the operation's function expects them. */
static void elements_reduce(void *context, void *to, const void *left, const void *right, uint64_t count)
{
    struct mpi_collective *collective = context;
    int code = mpi_elements_reduce(collective->op, collective->element, left, right, to, (MPI_Count)count);
    collective->reduce_error = code != MPI_SUCCESS ? code : collective->reduce_error;
}

/* Functions of the program run on its own threads only. */
static bool elements_may_reduce(void *context)
{
    const struct mpi_collective *collective = context;
    return collective->op->predefined || !mpi_lock_is_control();
}

static const struct mpi_reduction reduction = {.reduce = elements_reduce, .may_reduce = elements_may_reduce};

/* Where a plan reads or writes: in place, or in memory that is packed from, or unpacked to, the buffer. NULL: no
 * memory. */
static void *buffer_memory(const struct mpi_buffer *descriptor, bool must_pack, uint8_t **packed)
{
    if (descriptor->bytes == 0) {
        return "";
    }
    void *place = must_pack ? NULL : mpi_buffer_in_place(descriptor);
    if (place == NULL && *packed == NULL) {
        *packed = malloc((size_t)descriptor->bytes);
    }
    return place != NULL ? place : *packed;
}

int mpi_buffers_open(struct mpi_collective *collective, bool send_must_pack, void **send, void **receive)
{
    *send = buffer_memory(&collective->send, send_must_pack, &collective->send_packed);
    *receive = buffer_memory(&collective->receive, collective->receive_is_dropped, &collective->receive_packed);
    if (*send == NULL || *receive == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if (collective->send_packed != NULL) {
        mpi_buffer_pack(&collective->send, collective->send_packed);
    }
    return MPI_SUCCESS;
}

void mpi_buffers_close(struct mpi_collective *collective)
{
    if (collective->receive_packed != NULL && !collective->receive_is_dropped) {
        mpi_buffer_unpack(&collective->receive, collective->receive_packed);
    }
}

/* Whether the level among hosts uses multicast. */
static bool inner_multicasts(const struct mpi_plan *plan)
{
    const struct cw_algorithm *inner = (plan->algorithm->takes & CW_TAKES_INNER) != 0 && plan->parameters.inner != NULL
                                           ? cw_algorithm_find(plan->collective, plan->parameters.inner)
                                           : NULL;
    return inner != NULL && (inner->needs & CW_NEEDS_MULTICAST) != 0;
}

int mpi_step_run(struct mpi_collective *collective, struct mpi_comm *comm, struct mpi_plan *plan, uint32_t number,
                 const void *send, void *receive)
{
    collective->step_count++;
    collective->plan = plan;
    collective->algorithm = plan->algorithm;
    collective->run =
        mpi_run_acquire(comm, plan, send, receive, collective->op != NULL ? &reduction : NULL, collective);
    if (collective->run == NULL) {
        return MPI_ERR_NO_MEM;
    }
    if ((collective->plan->algorithm->needs & CW_NEEDS_MULTICAST) != 0) {
        mpi_groups_open(comm);
    }
    if (inner_multicasts(collective->plan)) {
        mpi_groups_open_heads(comm);
    }
    bool is_persistent = collective->mode == CW_RECORDING_PERSISTENT;
    collective->run->exchange.is_in_order = comm == collective->comm && !is_persistent;
    collective->reduce_error = MPI_SUCCESS;
    collective->started_ns = cw_clock_ns();
    const struct mpi_type *type = collective->element != NULL     ? collective->element
                                  : collective->send.type != NULL ? collective->send.type
                                                                  : collective->receive.type;
    collective->run->exchange.type = type;
    if (!mpi_exchange_begin(&collective->run->exchange, comm, number, collective->run_count,
                            mpi_describe_kind(collective, plan->has_levels))) {
        mpi_run_release(collective->run, false);
        collective->run = NULL;
        return MPI_ERR_NO_MEM;
    }
    if (plan->schedule.host_count > 0) {
        bool is_own = collective->own_host != NULL;
        mpi_host_part_begin(&collective->run->exchange.host, is_own ? collective->own_host : comm->collectives->host,
                            collective, is_own ? collective->run_count : number, plan->schedule.host_count);
    }
    if (plan->is_throttled && collective->run->exchange.is_in_order) {
        mpi_exchange_throttle(&collective->run->exchange);
    }
    return MPI_SUCCESS;
}

/* Keeps the reason of a failure until the error is raised. */
static void failure_note(struct mpi_collective *collective)
{
    const struct mpi_run *run = collective->run;
    char text[400] = "a rank has ended, or is declared failed";
    int failure = run->exchange.failure;
    if (failure == CW_ERROR_PATH_MTU || mpi_error_of_status(failure) != MPI_ERR_PROC_ABORTED) {
        cw_execution_describe(run->execution, text, sizeof(text));
    }
    free(collective->why);
    collective->why = strdup(run->exchange.why[0] != '\0' ? run->exchange.why : text);
}

int mpi_step_poll(struct mpi_collective *collective)
{
    struct mpi_run *run = collective->run;
    mpi_exchange_poll_host(&run->exchange);
    cw_paths_hold(mpi_process.paths); /* a step's messages to one rank share packets */
    int status = cw_execution_poll(run->execution);
    cw_paths_release(mpi_process.paths);
    if (status == CW_ERROR_AGAIN) {
        return MPI_ERR_PENDING;
    }
    if (status != CW_OK) {
        run->exchange.failure = status;        /* also if a put was refused: the log of calls reports it */
        mpi_exchange_withdraw(&run->exchange); /* useless now; but gets from memory of this call must end */
    }
    if (run->exchange.operations_open > 0) {
        return MPI_ERR_PENDING;
    }
    if (status == CW_ERROR_ARGUMENT) {
        failure_note(collective);
        mpi_exchange_mismatch_notify(&run->exchange, -1);
    } else if (mpi_error_of_status(status) == MPI_ERR_PROC_ABORTED) {
        failure_note(collective);
        mpi_exchange_lost_notify(&run->exchange);
    } else if (status != CW_OK) {
        failure_note(collective);
        mpi_exchange_failed_notify(&run->exchange, status);
    }
    int reduce_error = run->exchange.host.reduce_error;
    collective->reduce_error = reduce_error != MPI_SUCCESS ? reduce_error : collective->reduce_error;
    if (status == CW_OK && run->exchange.is_truncated) {
        failure_note(collective);
        collective->reduce_error = MPI_ERR_TRUNCATE;
    }
    mpi_host_part_end(&run->exchange.host, status != CW_OK);
    if (status != CW_OK && collective->plan->has_levels) {
        run->exchange.comm->collectives->are_levels_over = true;
    }
    mpi_exchange_end(&run->exchange);
    collective->plan->calls++;
    collective->plan->measured_ns += cw_clock_ns() - collective->started_ns;
    mpi_run_release(run, status == CW_OK);
    collective->run = NULL;
    return status == CW_OK               ? collective->reduce_error
           : status == CW_ERROR_ARGUMENT ? MPI_ERR_NOT_SAME
                                         : mpi_error_of_status(status);
}

void mpi_step_reject(const struct mpi_collective *collective, const struct mpi_comm *comm, uint32_t number)
{
    const struct mpi_refusal refusal = {
        .reason = MPI_REFUSAL_FAILED, .peer = -1, .given = (uint64_t)(int64_t)CW_ERROR_MEMORY};
    mpi_exchange_reject(comm, number, collective->run_count, &refusal);
}
