/* What starting ops and arrivals have in common: an op completes, its put is refused for now, or the execution fails.
 * */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "collectives/execute/state.h"
#include "dataplane/status.h"

void execution_ready(void *context, uint32_t index)
{
    execution_ready_add(context, index);
}

void execution_release(const struct cw_execution *execution, uint64_t buffer)
{
    execution->request.transport->release(execution->request.transport->state, buffer);
}

/* Releases the buffers of early arrivals. */
static void early_release(struct cw_execution *execution)
{
    for (uint32_t i = 0; i < execution->schedule->op_count; i++) {
        const struct cw_op *op = &execution->schedule->ops[i];
        if (op->kind != CW_OP_WAIT || (op->flags & CW_OP_EAGER) == 0 || op->bytes == 0) {
            continue;
        }
        for (uint32_t iteration = execution->progress.states[i].started; iteration < op->iterations; iteration++) {
            const struct early_arrival *early = &execution->early[execution->waits[i].early_first + iteration];
            if (execution_has_arrived(execution, i, iteration) && early->data != NULL) {
                execution_release(execution, early->buffer);
            }
        }
    }
}

void execution_fail(struct cw_execution *execution, int status, const char *format, ...)
{
    if (execution->status != CW_ERROR_AGAIN) {
        return; /* the first failure is the one that counts */
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(execution->failure, sizeof(execution->failure), format, arguments);
    va_end(arguments);
    execution->status = status;
    early_release(execution);
}

void execution_complete(struct cw_execution *execution, uint32_t index, uint32_t iteration)
{
    execution->steps_left--;
    uint32_t repeat = cw_progress_complete(&execution->progress, index, iteration, execution_ready, execution);
    if (repeat != CW_PROGRESS_NONE) {
        execution_complete(execution, repeat, 0);
    }
}

void execution_refused_add(struct cw_execution *execution, uint32_t index)
{
    uint32_t capacity = execution->schedule->op_count;
    assert(execution->refused_count < capacity);
    uint32_t slot = execution->refused_first + execution->refused_count++;
    execution->refused[slot < capacity ? slot : slot - capacity] = index;
}
