/* The executor's memory: taken at once, and put back to the beginning without taking any. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/execute/state.h"
#include "dataplane/status.h"

/* ---- Layout ---- */

/* Memory for the state of waits. */
static bool arrivals_create(struct cw_execution *execution)
{
    uint64_t words = 0;
    uint64_t early = 0;
    for (uint32_t i = 0; i < execution->schedule->op_count; i++) {
        const struct cw_op *op = &execution->schedule->ops[i];
        if (op->kind != CW_OP_WAIT) {
            continue;
        }
        execution->waits[i].arrived_first = words;
        words += (op->iterations + 63) / 64;
        if ((op->flags & CW_OP_EAGER) != 0 && op->bytes > 0) {
            execution->waits[i].early_first = early;
            early += op->iterations;
        }
    }
    execution->arrived = calloc(words + 1, sizeof(*execution->arrived));
    execution->arrived_words = words;
    execution->early = malloc((early + 1) * sizeof(*execution->early));
    return execution->arrived != NULL && execution->early != NULL;
}

static int layout_create(struct cw_execution *execution)
{
    const struct cw_schedule *schedule = execution->schedule;
    execution->waits = calloc(schedule->op_count + 1ul, sizeof(*execution->waits));
    execution->refused = malloc((schedule->op_count + 1ul) * sizeof(*execution->refused));
    if (execution->waits == NULL || execution->refused == NULL ||
        cw_progress_create(&execution->progress, schedule) != CW_OK) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        execution->steps += cw_progress_iterations(&schedule->ops[i]);
    }
    if (!arrivals_create(execution) || !execution_ready_create(execution)) {
        return CW_ERROR_MEMORY;
    }
    int status = execution_barriers_create(execution);
    return status == CW_OK ? execution_match_create(execution) : status;
}

/* ---- Life ---- */

static bool request_valid(const struct cw_execution_request *request)
{
    const struct cw_schedule *schedule = request->schedule;
    if (request->transport == NULL || schedule->rank >= request->ranks || request->ranks > CW_RANKS_MAX ||
        request->element_bytes == 0) {
        return false;
    }
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        const struct cw_op *op = &schedule->ops[i];
        if (op->kind == CW_OP_HOST && request->transport->host == NULL) {
            return false;
        }
        if (op->kind == CW_OP_REDUCE && (request->reduce == NULL || op->bytes % request->element_bytes != 0 ||
                                         op->last_bytes % request->element_bytes != 0)) {
            return false;
        }
    }
    return true;
}

int cw_execution_create(const struct cw_execution_request *request, struct cw_execution **execution)
{
    if (request->schedule == NULL || !request_valid(request)) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_execution *created = calloc(1, sizeof(*created));
    if (created == NULL) {
        return CW_ERROR_MEMORY;
    }
    created->request = *request;
    created->schedule = request->schedule;
    int status = layout_create(created);
    if (status != CW_OK) {
        cw_execution_destroy(created);
        return status;
    }
    cw_execution_reset(created);
    request->transport->serve(request->transport->state, &(struct cw_transport_sink){created, execution_event});
    *execution = created;
    return CW_OK;
}

void cw_execution_destroy(struct cw_execution *execution)
{
    if (execution == NULL) {
        return;
    }
    execution_ready_destroy(execution);
    cw_progress_dispose(&execution->progress);
    free(execution->waits);
    free(execution->refused);
    free(execution->matches);
    free(execution->arrived);
    free(execution->early);
    free(execution->barriers);
    free(execution);
}

void cw_execution_rebind(struct cw_execution *execution, void *const buffers[4], void *reduce_context)
{
    assert(execution->steps_left == execution->steps);
    memcpy(execution->request.buffers, buffers, sizeof(execution->request.buffers));
    execution->request.reduce_context = reduce_context;
}

void cw_execution_reset(struct cw_execution *execution)
{
    const struct cw_schedule *schedule = execution->schedule;
    cw_progress_reset(&execution->progress);
    memset(execution->arrived, 0, execution->arrived_words * sizeof(*execution->arrived));
    execution_ready_clear(execution);
    execution_barriers_clear(execution);
    execution->refused_first = 0;
    execution->refused_count = 0;
    execution->reductions_left = false;
    execution->barrier_puts = 0;
    execution->steps_left = execution->steps;
    execution->status = CW_ERROR_AGAIN;
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        if (execution->progress.states[i].unmet == 0) {
            execution_ready_add(execution, i);
        }
    }
}
