/* Starts ops and takes the events of the transport. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "collectives/execute/state.h"
#include "dataplane/status.h"

static void iteration_started(struct cw_execution *execution, uint32_t index)
{
    cw_progress_started(&execution->progress, index, execution_ready, execution);
}

static void put_start(struct cw_execution *execution, uint32_t index)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    uint32_t iteration = execution->progress.states[index].started;
    if (execution->refusals >= EXECUTION_REFUSALS_MAX) {
        execution_refused_add(execution, index);
        return;
    }
    struct cw_transport_put put = {
        .peers = &op->peer,
        .peer_count = 1,
        .tag = cw_op_tag(op, iteration),
        .eager = (op->flags & CW_OP_EAGER) != 0,
        .bytes = cw_op_bytes(op, iteration),
        .buffer = op->to.buffer,
        .offset = cw_place_offset(&op->to, iteration),
        .context = index | (uint64_t)iteration << 32,
    };
    if (put.bytes > 0) {
        put.data = execution_at(execution, &op->from, iteration);
    }
    if (op->kind == CW_OP_MULTICAST) {
        const struct cw_group_range *group = &execution->schedule->groups[op->peer];
        put.peers = &execution->schedule->members[group->first];
        put.peer_count = group->count;
    }
    int status = execution->request.transport->put(execution->request.transport->state, &put);
    if (status == CW_OK || status == CW_TRANSPORT_DONE) {
        iteration_started(execution, index);
        if (status == CW_TRANSPORT_DONE) {
            execution_complete(execution, index, iteration);
        }
    } else if (status == CW_ERROR_AGAIN) {
        execution->refusals++;
        execution_refused_add(execution, index);
    } else {
        execution_fail(execution, status, "op %u (%s) with tag %u to %s %u: %s", index, cw_op_kind_name(op->kind),
                       put.tag, op->kind == CW_OP_PUT ? "rank" : "group", op->peer, cw_status_text(status));
    }
}

static void host_start(struct cw_execution *execution, uint32_t index)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    const struct cw_group_range *group = &execution->schedule->groups[op->peer];
    const struct cw_transport_host host = {
        .number = op->tag,
        .others = &execution->schedule->members[group->first],
        .other_count = group->count,
        .collective = (enum cw_collective)op->collective,
        .root = op->root,
        .is_whole = (op->flags & CW_OP_WHOLE) != 0,
        .bytes = op->bytes,
        .from = op->from.buffer != CW_BUFFER_NONE ? execution_at(execution, &op->from, 0) : NULL,
        .to = op->to.buffer != CW_BUFFER_NONE ? execution_at(execution, &op->to, 0) : NULL,
        .context = index,
    };
    int status = execution->request.transport->host(execution->request.transport->state, &host);
    if (status == CW_OK || status == CW_TRANSPORT_DONE) {
        iteration_started(execution, index);
        if (status == CW_TRANSPORT_DONE) {
            execution_complete(execution, index, 0);
        }
    } else if (status == CW_ERROR_AGAIN) {
        execution->refusals++;
        execution_refused_add(execution, index);
    } else {
        execution_fail(execution, status, "op %u (host, %s): %s", index, cw_collective_name(op->collective),
                       cw_status_text(status));
    }
}

static void copy_run(struct cw_execution *execution, const struct cw_op *op, uint32_t iteration)
{
    uint8_t *to = execution_at(execution, &op->to, iteration);
    const uint8_t *from = execution_at(execution, &op->from, iteration);
    for (uint32_t block = 1; block < op->blocks; block++) {
        memcpy(to, from, op->bytes);
        to += op->to_stride;
        from += op->from_stride;
    }
    memcpy(to, from, cw_op_bytes(op, iteration));
}

/* False: not by this poll. */
static bool reduce_may_run(const struct cw_execution *execution)
{
    const struct cw_execution_request *request = &execution->request;
    return request->may_reduce == NULL || request->may_reduce(request->reduce_context);
}

static void reduce_run(struct cw_execution *execution, const struct cw_op *op, uint32_t iteration)
{
    uint8_t *to = execution_at(execution, &op->to, iteration);
    const uint8_t *from = execution_at(execution, &op->from, iteration);
    bool from_left = (op->flags & CW_OP_LEFT) != 0;
    execution->request.reduce(execution->request.reduce_context, to, from_left ? from : to, from_left ? to : from,
                              cw_op_bytes(op, iteration) / execution->request.element_bytes);
}

/* Ops that are complete as soon as they have run. */
static void local_start(struct cw_execution *execution, uint32_t index)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    uint32_t iteration = execution->progress.states[index].started;
    if (op->kind == CW_OP_COPY) {
        copy_run(execution, op, iteration);
    } else if (op->kind == CW_OP_REDUCE) {
        if (!reduce_may_run(execution)) {
            execution->reductions_left = true;
            execution_refused_add(execution, index);
            return;
        }
        reduce_run(execution, op, iteration);
    }
    iteration_started(execution, index);
    execution_complete(execution, index, iteration);
}

static void start(struct cw_execution *execution, uint32_t index)
{
    uint32_t iteration = execution->progress.states[index].started;
    switch (execution->schedule->ops[index].kind) {
    case CW_OP_PUT:
    case CW_OP_MULTICAST:
        put_start(execution, index);
        break;
    case CW_OP_WAIT:
        iteration_started(execution, index);
        execution_wait_start(execution, index, iteration);
        break;
    case CW_OP_BARRIER:
        iteration_started(execution, index);
        execution_barrier_start(execution, index);
        break;
    case CW_OP_REPEAT:
        iteration_started(execution, index);
        break;
    case CW_OP_HOST:
        host_start(execution, index);
        break;
    default:
        local_start(execution, index);
    }
}

/* Retries puts and reductions that were rejected before; those rejected again move to the end of the line. */
static void refused_retry(struct cw_execution *execution)
{
    bool reduces = execution->reductions_left && reduce_may_run(execution);
    execution->reductions_left = execution->reductions_left && !reduces;
    for (uint32_t left = execution->refused_count; left > 0; left--) {
        if ((execution->refusals >= EXECUTION_REFUSALS_MAX && !reduces) || execution->status != CW_ERROR_AGAIN) {
            return;
        }
        uint32_t index = execution->refused[execution->refused_first];
        execution->refused_first =
            execution->refused_first + 1 < execution->schedule->op_count ? execution->refused_first + 1 : 0;
        execution->refused_count--;
        if (execution->schedule->ops[index].kind == CW_OP_BARRIER) {
            execution_barrier_retry(execution, index);
        } else {
            start(execution, index);
        }
    }
}

/* ---- Events ---- */

bool execution_event(void *context, const struct cw_transport_event *event)
{
    struct cw_execution *execution = context;
    if (execution->status != CW_ERROR_AGAIN) { /* it is over */
        return false;
    }
    if (event->kind == CW_TRANSPORT_ARRIVED) {
        return execution_arrived(execution, event);
    }
    if (event->kind == CW_TRANSPORT_FAILED) {
        execution_fail(execution, event->status, "the transport: %s", cw_status_text(event->status));
        return false;
    }
    if (event->context == EXECUTION_BARRIER_CONTEXT) {
        execution->barrier_puts -= event->kind == CW_TRANSPORT_COMPLETE ? 1 : 0;
        return false;
    }
    uint32_t index = (uint32_t)event->context;
    uint32_t iteration = (uint32_t)(event->context >> 32);
    assert(index < execution->schedule->op_count);
    if (event->kind == CW_TRANSPORT_COMPLETE) {
        execution_complete(execution, index, iteration);
    } else {
        cw_progress_sent(&execution->progress, index, iteration, execution_ready, execution);
    }
    return false;
}

/* ---- Polling ---- */

static void ready_start(struct cw_execution *execution, uint32_t *budget)
{
    while (execution->ready_count > 0 && *budget > 0 && execution->status == CW_ERROR_AGAIN) {
        uint32_t index = execution_ready_pop(execution);
        if (index == EXECUTION_NO_OP) {
            return;
        }
        start(execution, index);
        (*budget)--;
    }
}

int cw_execution_poll(struct cw_execution *execution)
{
    uint32_t budget = EXECUTION_STARTS_MAX;
    if (execution->status != CW_ERROR_AGAIN) {
        return execution->status;
    }
    execution->refusals = 0;
    refused_retry(execution);
    ready_start(execution, &budget);
    if (execution->status == CW_ERROR_AGAIN && execution->steps_left == 0 && execution->barrier_puts == 0) {
        execution->status = CW_OK;
    }
    return execution->status;
}
