/* The executor's memory: taken at once, and put back to the beginning without taking any. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/execute_state.h"
#include "dataplane/status.h"

/* ---- Layout ---- */

/* Body of `repeat` that both ops are in, or not. */
static bool same_body(const struct cw_execution *execution, uint32_t one, uint32_t other)
{
    return execution->layouts[one].repeat != EXECUTION_NO_OP &&
           execution->layouts[one].repeat == execution->layouts[other].repeat;
}

static void repeats_lay_out(struct cw_execution *execution)
{
    const struct cw_schedule *schedule = execution->schedule;
    uint32_t repeat = EXECUTION_NO_OP;
    uint32_t body_end = 0;
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        if (i >= body_end) {
            repeat = EXECUTION_NO_OP;
        }
        execution->layouts[i].repeat = repeat;
        if (schedule->ops[i].kind == CW_OP_REPEAT) {
            repeat = i;
            body_end = i + 1 + schedule->ops[i].body_count;
        }
    }
}

/* Counts what op `index` waits for before its iteration 0, and the edges of those it waits for. */
static void unmet_lay_out(struct cw_execution *execution, uint32_t index)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    struct op_layout *layout = &execution->layouts[index];
    layout->unmet = layout->repeat != EXECUTION_NO_OP ? 1 : 0; /* a body waits for its repeat to start */
    for (uint32_t i = 0; i < op->dependency_count; i++) {
        const struct cw_dependency *dependency = &execution->schedule->dependencies[op->dependency_first + i];
        if (dependency->back == 0) {
            layout->unmet++;
        }
        execution->layouts[dependency->op + 1].edge_first++;
    }
}

/* Fills in the edges. On entry layouts[i + 1].edge_first is the number of those of op i. */
static bool edges_create(struct cw_execution *execution)
{
    const struct cw_schedule *schedule = execution->schedule;
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        execution->layouts[i + 1].edge_first += execution->layouts[i].edge_first;
    }
    uint32_t total = execution->layouts[schedule->op_count].edge_first;
    execution->edges = malloc((total + 1ul) * sizeof(*execution->edges));
    if (execution->edges == NULL) {
        return false;
    }
    for (uint32_t i = schedule->op_count; i-- > 0;) { /* backwards: each list is filled from its end */
        const struct cw_op *op = &schedule->ops[i];
        for (uint32_t j = op->dependency_count; j-- > 0;) {
            const struct cw_dependency *dependency = &schedule->dependencies[op->dependency_first + j];
            uint32_t flags = ((dependency->flags & CW_DEPENDENCY_SENT) != 0 ? EDGE_SENT : 0u) |
                             (same_body(execution, i, dependency->op) ? EDGE_BODY : 0u);
            uint32_t edge = --execution->layouts[dependency->op + 1].edge_first;
            execution->edges[edge] = (struct execution_edge){i, dependency->back, (uint16_t)flags};
        }
    }
    /* layouts[i + 1].edge_first is now where the list of op i begins */
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        execution->layouts[i].edge_first = execution->layouts[i + 1].edge_first;
    }
    execution->layouts[schedule->op_count].edge_first = total;
    return true;
}

/* Memory for what waits have to remember. */
static bool arrivals_create(struct cw_execution *execution)
{
    uint64_t words = 0;
    uint64_t early = 0;
    for (uint32_t i = 0; i < execution->schedule->op_count; i++) {
        const struct cw_op *op = &execution->schedule->ops[i];
        if (op->kind != CW_OP_WAIT) {
            continue;
        }
        execution->layouts[i].arrived_first = words;
        words += (op->iterations + 63) / 64;
        if ((op->flags & CW_OP_EAGER) != 0 && op->bytes > 0) {
            execution->layouts[i].early_first = early;
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
    execution->layouts = calloc(schedule->op_count + 1ul, sizeof(*execution->layouts));
    execution->states = calloc(schedule->op_count + 1ul, sizeof(*execution->states));
    execution->refused = malloc((schedule->op_count + 1ul) * sizeof(*execution->refused));
    if (execution->layouts == NULL || execution->states == NULL || execution->refused == NULL) {
        return CW_ERROR_MEMORY;
    }
    repeats_lay_out(execution);
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        unmet_lay_out(execution, i);
        execution->steps += execution_iterations(&schedule->ops[i]);
    }
    if (!edges_create(execution) || !arrivals_create(execution) || !execution_ready_create(execution)) {
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
    *execution = created;
    return CW_OK;
}

void cw_execution_destroy(struct cw_execution *execution)
{
    if (execution == NULL) {
        return;
    }
    execution_ready_destroy(execution);
    free(execution->layouts);
    free(execution->states);
    free(execution->edges);
    free(execution->refused);
    free(execution->matches);
    free(execution->arrived);
    free(execution->early);
    free(execution->barriers);
    free(execution);
}

void cw_execution_reset(struct cw_execution *execution)
{
    const struct cw_schedule *schedule = execution->schedule;
    memset(execution->states, 0, schedule->op_count * sizeof(*execution->states));
    memset(execution->arrived, 0, execution->arrived_words * sizeof(*execution->arrived));
    execution_ready_clear(execution);
    execution_barriers_clear(execution);
    execution->refused_first = 0;
    execution->refused_count = 0;
    execution->barrier_puts = 0;
    execution->steps_left = execution->steps;
    execution->status = CW_ERROR_AGAIN;
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        struct op_state *state = &execution->states[i];
        state->unmet = execution->layouts[i].unmet;
        state->body_left = schedule->ops[i].body_count;
        if (state->unmet == 0) {
            execution_ready_add(execution, i);
        }
    }
}
