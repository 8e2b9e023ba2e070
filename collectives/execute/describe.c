/* Describes the waits of an execution, for messages. */
#include <stdio.h>

#include "collectives/execute/state.h"
#include "dataplane/status.h"

/* The op to name: the first that has started and waits for others; if possible none that only waits for its
 * completion. */
static uint32_t stuck_op(const struct cw_execution *execution)
{
    uint32_t put = EXECUTION_NO_OP;
    for (uint32_t i = 0; i < execution->schedule->op_count; i++) {
        uint32_t kind = execution->schedule->ops[i].kind;
        if (execution->progress.states[i].started == execution->progress.states[i].prefix || kind == CW_OP_REPEAT) {
            continue;
        }
        if (kind == CW_OP_WAIT || kind == CW_OP_BARRIER || kind == CW_OP_HOST) {
            return i;
        }
        put = put == EXECUTION_NO_OP ? i : put;
    }
    return put != EXECUTION_NO_OP         ? put
           : execution->refused_count > 0 ? execution->refused[execution->refused_first]
                                          : EXECUTION_NO_OP;
}

/* Which signals of a barrier have not come. */
static void barrier_describe(const struct cw_execution *execution, const struct cw_op *op, char *text, size_t bytes)
{
    const struct execution_barrier *barrier = &execution->barriers[op->tag];
    uint32_t ranks = execution->request.ranks;
    size_t used = (size_t)snprintf(text, bytes, " number %u, %u of %u rounds sent; not heard of", op->tag,
                                   barrier->sent, execution->barrier_rounds);
    for (uint32_t round = 0; round < execution->barrier_rounds && used < bytes; round++) {
        if ((barrier->arrived >> round & 1) == 0) {
            uint32_t peer = (execution->schedule->rank + ranks - (1u << round)) % ranks;
            used += (size_t)snprintf(text + used, bytes - used, " rank %u", peer);
        }
    }
}

static void op_describe(const struct cw_execution *execution, uint32_t index, char *text, size_t bytes)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    const struct cw_progress_state *state = &execution->progress.states[index];
    char where[48] = "";
    char what[160] = "";
    if (execution->progress.layouts[index].repeat != EXECUTION_NO_OP) {
        snprintf(where, sizeof(where), ", iteration %u of %u", state->prefix, op->iterations);
    }
    if (op->kind == CW_OP_BARRIER) {
        barrier_describe(execution, op, what, sizeof(what));
    } else if (op->kind == CW_OP_WAIT) {
        snprintf(what, sizeof(what), " for tag %u of rank %u", cw_op_tag(op, state->prefix), op->peer);
    } else if (op->kind == CW_OP_HOST) {
        snprintf(what, sizeof(what), ", %s of %u ranks of this host", cw_collective_name(op->collective),
                 cw_host_members(execution->schedule, op));
    } else if (op->kind == CW_OP_REDUCE) {
        snprintf(what, sizeof(what), ", left to the next call of the program");
    } else {
        snprintf(what, sizeof(what), " with tag %u to %s %u, %s", cw_op_tag(op, state->prefix),
                 op->kind == CW_OP_MULTICAST ? "group" : "rank", op->peer,
                 state->started == state->prefix ? "which the transport does not take" : "to complete");
    }
    snprintf(text, bytes, "op %u (%s, phase %u%s)%s", index, cw_op_kind_name(op->kind), op->phase, where, what);
}

void cw_execution_describe(const struct cw_execution *execution, char *text, size_t text_bytes)
{
    uint32_t complete = 0;
    for (uint32_t i = 0; i < execution->schedule->op_count; i++) {
        complete +=
            execution->progress.states[i].prefix == cw_progress_iterations(&execution->schedule->ops[i]) ? 1 : 0;
    }
    char what[320];
    uint32_t index = stuck_op(execution);
    if (execution->status == CW_OK) {
        snprintf(what, sizeof(what), "complete");
    } else if (execution->status != CW_ERROR_AGAIN) {
        snprintf(what, sizeof(what), "failed: %s", execution->failure);
    } else if (index != EXECUTION_NO_OP) {
        op_describe(execution, index, what, sizeof(what));
    } else if (execution->steps_left == 0) {
        snprintf(what, sizeof(what), "signals of barriers to complete");
    } else {
        snprintf(what, sizeof(what), "to be polled");
    }
    snprintf(text, text_bytes, "rank %u: %s; %u of %u ops complete", execution->schedule->rank, what, complete,
             execution->schedule->op_count);
}

/* Adds a rank that is not in the list yet. */
static uint32_t rank_add(uint32_t *ranks, uint32_t count, uint32_t count_max, uint32_t rank)
{
    for (uint32_t i = 0; i < count; i++) {
        if (ranks[i] == rank) {
            return count;
        }
    }
    if (count < count_max) {
        ranks[count++] = rank;
    }
    return count;
}

uint32_t cw_execution_awaited(const struct cw_execution *execution, uint32_t *ranks, uint32_t count_max)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < execution->schedule->op_count; i++) {
        const struct cw_op *op = &execution->schedule->ops[i];
        if (execution->progress.states[i].started == execution->progress.states[i].prefix) {
            continue;
        }
        if (op->kind == CW_OP_WAIT || op->kind == CW_OP_PUT) {
            count = rank_add(ranks, count, count_max, op->peer);
        } else if (op->kind == CW_OP_HOST) {
            const struct cw_group_range *group = &execution->schedule->groups[op->peer];
            for (uint32_t k = 0; k < group->count; k++) {
                count = rank_add(ranks, count, count_max, execution->schedule->members[group->first + k]);
            }
        } else if (op->kind == CW_OP_BARRIER) {
            uint32_t size = execution->request.ranks;
            for (uint32_t round = 0; round < execution->barrier_rounds; round++) {
                if ((execution->barriers[op->tag].arrived >> round & 1) == 0) {
                    count =
                        rank_add(ranks, count, count_max, (execution->schedule->rank + size - (1u << round)) % size);
                }
            }
        }
    }
    for (uint32_t i = 0; i < execution->refused_count; i++) {
        uint32_t op = execution->refused[(execution->refused_first + i) % execution->schedule->op_count];
        if (execution->schedule->ops[op].kind == CW_OP_PUT) {
            count = rank_add(ranks, count, count_max, execution->schedule->ops[op].peer);
        }
    }
    return count;
}
