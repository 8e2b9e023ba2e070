/* What ops wait for, starting them, and what follows from their being complete. The rules are the executor's (execute.c). */
#include <assert.h>

#include "collectives/price/interpret_state.h"
#include "dataplane/status.h"

/* ---- What an op waits for ---- */

static bool is_complete(const struct op_state *state, uint32_t iteration)
{
    return iteration < state->prefix ||
           (iteration < state->started && (state->complete_bits >> (iteration % 64) & 1) != 0);
}

static bool is_sent(const struct op_state *state, uint32_t iteration)
{
    return is_complete(state, iteration) ||
           (iteration < state->started && (state->sent_bits >> (iteration % 64) & 1) != 0);
}

static void ready(struct interpreter *interpreter, uint32_t op)
{
    interpreter_ready_add(interpreter, op, interpreter->ops[op].started);
}

static void unmet_decrease(struct interpreter *interpreter, uint32_t op)
{
    assert(interpreter->ops[op].unmet > 0);
    if (--interpreter->ops[op].unmet == 0) {
        ready(interpreter, op);
    }
}

/* The same for an op of a body, if it is iteration `iteration` that it could start next. */
static void unmet_decrease_of(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    if (interpreter->ops[op].started == iteration && iteration < interpreter->op_list[op]->iterations) {
        unmet_decrease(interpreter, op);
    }
}

/* Counts what iteration `started` > 0 of an op of a body waits for: what is outside was there for iteration 0 already. */
static void next_iteration_prepare(struct interpreter *interpreter, uint32_t index)
{
    struct op_state *state = &interpreter->ops[index];
    const struct cw_op *op = interpreter->op_list[index];
    const struct rank_state *own = &interpreter->ranks[state->rank];
    uint32_t iteration = state->started;
    uint32_t unmet = iteration >= CW_REPEAT_WINDOW && !is_complete(state, iteration - CW_REPEAT_WINDOW) ? 1 : 0;
    for (uint32_t i = 0; i < op->dependency_count; i++) {
        const struct cw_dependency *dependency = &own->schedule->dependencies[op->dependency_first + i];
        const struct op_state *other = &interpreter->ops[own->op_first + dependency->op];
        if (other->repeat != state->repeat || iteration < dependency->back) {
            continue;
        }
        uint32_t wanted = iteration - dependency->back;
        bool met = (dependency->flags & CW_DEPENDENCY_SENT) != 0 ? is_sent(other, wanted) : is_complete(other, wanted);
        unmet += met ? 0 : 1;
    }
    state->unmet = unmet;
    if (unmet == 0) {
        ready(interpreter, index);
    }
}

static void iteration_started(struct interpreter *interpreter, uint32_t op)
{
    if (++interpreter->ops[op].started < interpreter_iterations(interpreter->op_list[op])) {
        next_iteration_prepare(interpreter, op);
    }
}

/* ---- What follows ---- */

/* Lets ops that wait for `iteration` (or for `all` iterations) of this one know: those with EDGE_SENT, or those without. */
static void notify(struct interpreter *interpreter, uint32_t op, uint32_t iteration, bool all, uint16_t sent_flag)
{
    const struct op_edge *edge = &interpreter->edges[interpreter->ops[op].edge_first];
    const struct op_edge *end = &interpreter->edges[interpreter->ops[op + 1].edge_first];
    for (; edge < end; edge++) {
        if ((edge->flags & EDGE_SENT) != sent_flag) {
            continue;
        }
        if ((edge->flags & EDGE_BODY) != 0) {
            unmet_decrease_of(interpreter, edge->op, iteration + edge->back);
        } else if (all) {
            unmet_decrease(interpreter, edge->op);
        }
    }
}

static void sent_notify(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    bool all = ++interpreter->ops[op].sent == interpreter->op_list[op]->iterations;
    notify(interpreter, op, iteration, all, EDGE_SENT);
}

void interpreter_sent(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    interpreter->ops[op].sent_bits |= 1ull << (iteration % 64);
    sent_notify(interpreter, op, iteration);
}

static bool is_put(const struct cw_op *op)
{
    return op->kind == CW_OP_PUT || op->kind == CW_OP_MULTICAST;
}

void interpreter_complete(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    struct op_state *state = &interpreter->ops[op];
    struct cw_trace_event *trace = interpreter_trace(interpreter, op, iteration);
    uint64_t bit = 1ull << (iteration % 64);
    assert(iteration < state->started && !is_complete(state, iteration));
    if (trace != NULL) {
        trace->end_ns = interpreter->now;
    }
    if (interpreter->now > interpreter->price.time_ns) {
        interpreter->price.time_ns = interpreter->now;
        interpreter->price.last_rank = state->rank;
    }
    bool was_sent = (state->sent_bits & bit) != 0;
    state->sent_bits &= ~bit;
    state->complete_bits |= bit;
    while (state->prefix < state->started && (state->complete_bits >> (state->prefix % 64) & 1) != 0) {
        state->complete_bits &= ~(1ull << (state->prefix % 64));
        state->prefix++;
    }
    interpreter->steps_left--;
    bool all = state->prefix == interpreter_iterations(interpreter->op_list[op]);
    if (is_put(interpreter->op_list[op]) && !was_sent) {
        sent_notify(interpreter, op, iteration);
    }
    notify(interpreter, op, iteration, all, 0);
    if (state->repeat == INTERPRET_NONE) {
        return;
    }
    unmet_decrease_of(interpreter, op, iteration + CW_REPEAT_WINDOW);
    if (all && --interpreter->ops[state->repeat].body_left == 0) {
        interpreter_complete(interpreter, state->repeat, 0);
    }
}

/* ---- Starting ---- */

/* Takes the processor for `duration`, then is complete. Puts that became ready before it have their turn first, so that messages are under way
 * while the processor works. */
static void local_work(struct interpreter *interpreter, uint32_t op, uint32_t iteration, double duration)
{
    if (duration <= 0) {
        interpreter_complete(interpreter, op, iteration);
        return;
    }
    interpreter_line_serve(interpreter, interpreter->ops[op].rank);
    double begin = interpreter_processor(interpreter, interpreter->ops[op].rank, duration);
    struct cw_trace_event *trace = interpreter_trace(interpreter, op, iteration);
    if (trace != NULL && interpreter->op_list[op]->kind != CW_OP_WAIT) {
        trace->start_ns = begin;
    }
    interpreter_event_add(interpreter, begin + duration, EVENT_LOCAL, op, iteration);
}

static uint64_t copied_bytes(const struct cw_op *op, uint32_t iteration)
{
    return (op->blocks - 1ull) * op->bytes + cw_op_bytes(op, iteration);
}

static bool has_arrived(const struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    uint64_t word = interpreter->arrived[interpreter->ops[op].arrived_first + iteration / 64];
    return (word >> (iteration % 64) & 1) != 0;
}

/* Started and arrived: what came eagerly is copied out. */
static void wait_finish(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    const struct cw_op *wait = interpreter->op_list[op];
    bool copied = (wait->flags & CW_OP_EAGER) != 0;
    double duration = copied ? (double)cw_op_bytes(wait, iteration) * interpreter->network->copy_ns_per_byte : 0;
    local_work(interpreter, op, iteration, duration);
}

void interpreter_wait_arrived(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    interpreter->arrived[interpreter->ops[op].arrived_first + iteration / 64] |= 1ull << (iteration % 64);
    if (iteration < interpreter->ops[op].started) {
        wait_finish(interpreter, op, iteration);
    }
}

/* Rounds of signals to ranks 1, 2, 4, ... on, as the executor's barrier has them; with several clusters the slower path counts. */
static double barrier_duration(const struct interpreter *interpreter)
{
    double round = 0;
    uint32_t kinds = interpreter->plan->problem->cluster_count > 1 ? CW_PATH_COUNT : 1;
    for (uint32_t kind = 0; kind < kinds; kind++) {
        const struct cw_plogp *path = &interpreter->network->paths[kind];
        double time = cw_plogp_gap(path, 0) + path->latency_ns;
        round = time > round ? time : round;
    }
    uint32_t rounds = 0;
    while (rounds < 32 && 1ull << rounds < interpreter->rank_count) {
        rounds++;
    }
    return rounds * round;
}

static void barrier_start(struct interpreter *interpreter, uint32_t op)
{
    struct barrier_state *barrier = &interpreter->barriers[interpreter->op_list[op]->tag];
    uint32_t note = interpreter_message_take(interpreter);
    if (note == INTERPRET_NONE) {
        return;
    }
    interpreter->messages[note].op = op;
    interpreter->messages[note].next = barrier->started == 0 ? INTERPRET_NONE : barrier->ops;
    barrier->ops = note;
    if (++barrier->started == interpreter->rank_count) {
        interpreter_event_add(interpreter, interpreter->now + barrier_duration(interpreter), EVENT_BARRIER,
                              interpreter->op_list[op]->tag, 0);
    }
}

void interpreter_barrier_over(struct interpreter *interpreter, uint32_t number)
{
    for (uint32_t note = interpreter->barriers[number].ops; note != INTERPRET_NONE;) {
        uint32_t next = interpreter->messages[note].next;
        interpreter_complete(interpreter, interpreter->messages[note].op, 0);
        interpreter_message_give(interpreter, note);
        note = next;
    }
}

static void start(struct interpreter *interpreter, uint32_t op)
{
    const struct cw_op *what = interpreter->op_list[op];
    uint32_t iteration = interpreter->ops[op].started;
    struct cw_trace_event *trace = interpreter_trace(interpreter, op, iteration);
    if (trace != NULL) {
        const struct rank_state *own = &interpreter->ranks[interpreter->ops[op].rank];
        *trace = (struct cw_trace_event){interpreter->ops[op].rank, op - own->op_first, iteration,
                                         interpreter->now,          interpreter->now,   interpreter->now};
    }
    iteration_started(interpreter, op);
    switch (what->kind) {
    case CW_OP_PUT:
    case CW_OP_MULTICAST:
        interpreter_put(interpreter, op, iteration);
        break;
    case CW_OP_WAIT:
        if (has_arrived(interpreter, op, iteration)) {
            wait_finish(interpreter, op, iteration);
        }
        break;
    case CW_OP_COPY:
        local_work(interpreter, op, iteration,
                   (double)copied_bytes(what, iteration) * interpreter->network->copy_ns_per_byte);
        break;
    case CW_OP_REDUCE:
        local_work(interpreter, op, iteration,
                   (double)cw_op_bytes(what, iteration) * interpreter->network->reduce_ns_per_byte);
        break;
    case CW_OP_BARRIER:
        barrier_start(interpreter, op);
        break;
    case CW_OP_REPEAT:
        for (uint32_t i = 1; i <= what->body_count; i++) {
            unmet_decrease(interpreter, op + i);
        }
        break;
    default:
        interpreter_complete(interpreter, op, iteration);
    }
}

void interpreter_begin(struct interpreter *interpreter)
{
    for (uint32_t op = 0; op < interpreter->op_count; op++) {
        if (interpreter->ops[op].unmet == 0) {
            ready(interpreter, op);
        }
    }
}

void interpreter_start_ready(struct interpreter *interpreter)
{
    uint32_t op;
    while (interpreter->status == CW_OK && interpreter_ready_take(interpreter, &op)) {
        start(interpreter, op);
    }
}
