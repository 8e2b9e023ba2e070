/* Starts ops, and handles their completion. The rules are the executor's (progress.h). */
#include <assert.h>

#include "collectives/price/interpret_state.h"
#include "dataplane/status.h"

/* ---- What follows ---- */

/* The ops of one rank, and the recipient of their readiness. */
struct ready_context {
    struct interpreter *interpreter;
    const struct rank_state *own;
};

static void ready(void *context, uint32_t index)
{
    const struct ready_context *to = context;
    interpreter_ready_add(to->interpreter, to->own->op_first + index, to->own->progress.states[index].started);
}

static void iteration_started(struct interpreter *interpreter, uint32_t op)
{
    struct rank_state *own = &interpreter->ranks[interpreter->ops[op].rank];
    struct ready_context context = {interpreter, own};
    cw_progress_started(&own->progress, op - own->op_first, ready, &context);
}

void interpreter_sent(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    struct rank_state *own = &interpreter->ranks[interpreter->ops[op].rank];
    struct ready_context context = {interpreter, own};
    cw_progress_sent(&own->progress, op - own->op_first, iteration, ready, &context);
}

void interpreter_complete(struct interpreter *interpreter, uint32_t op, uint32_t iteration)
{
    struct rank_state *own = &interpreter->ranks[interpreter->ops[op].rank];
    struct ready_context context = {interpreter, own};
    struct cw_trace_event *trace = interpreter_trace(interpreter, op, iteration);
    if (trace != NULL) {
        trace->end_ns = interpreter->now;
    }
    if (interpreter->now > interpreter->price.time_ns) {
        interpreter->price.time_ns = interpreter->now;
        interpreter->price.last_rank = interpreter->ops[op].rank;
    }
    interpreter->steps_left--;
    uint32_t repeat = cw_progress_complete(&own->progress, op - own->op_first, iteration, ready, &context);
    if (repeat != CW_PROGRESS_NONE) {
        interpreter_complete(interpreter, own->op_first + repeat, 0);
    }
}

/* ---- Starting ---- */

/* Takes the processor for `duration`, then is complete. Puts that became ready before it have their turn first, so that
 * messages are in flight while the processor works. */
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

/* Started and arrived: an eager message is copied out. */
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
    if (iteration < interpreter_progress(interpreter, op)->started) {
        wait_finish(interpreter, op, iteration);
    }
}

/* Rounds of signals to ranks 1, 2, 4, ... on, as the executor's barrier has them; with several clusters the slower path
 * counts. */
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

/* Keeps an op until all that belong to it have started. False: no memory, which sticks. */
static bool op_gather(struct interpreter *interpreter, struct barrier_state *barrier, uint32_t op)
{
    uint32_t note = interpreter_message_acquire(interpreter);
    if (note == INTERPRET_NONE) {
        return false;
    }
    interpreter->messages[note].op = op;
    interpreter->messages[note].next = barrier->started == 0 ? INTERPRET_NONE : barrier->ops;
    barrier->ops = note;
    barrier->started++;
    return true;
}

static void barrier_start(struct interpreter *interpreter, uint32_t op)
{
    struct barrier_state *barrier = &interpreter->barriers[interpreter->op_list[op]->tag];
    if (op_gather(interpreter, barrier, op) && barrier->started == interpreter->rank_count) {
        interpreter_event_add(interpreter, interpreter->now + barrier_duration(interpreter), EVENT_BARRIER,
                              interpreter->op_list[op]->tag, 0);
    }
}

void interpreter_barrier_over(struct interpreter *interpreter, uint32_t number)
{
    for (uint32_t note = interpreter->barriers[number].ops; note != INTERPRET_NONE;) {
        uint32_t next = interpreter->messages[note].next;
        interpreter_complete(interpreter, interpreter->messages[note].op, 0);
        interpreter_message_release(interpreter, note);
        note = next;
    }
}

/* A call among ranks that share memory, from when the last of them starts: each copies what it contributes to the
 * shared segment and its result out of it, and combines operands there; two of them tell each other by a cache line. */
static double host_duration(const struct interpreter *interpreter, const struct cw_schedule *schedule,
                            const struct cw_op *op)
{
    enum { SIGNALS = 2, LINE_NS = 100 };
    const struct cw_problem *problem = interpreter->plan->problem;
    const struct cw_network *network = interpreter->network;
    uint32_t members = cw_host_members(schedule, op);
    bool is_whole = (op->flags & CW_OP_WHOLE) != 0;
    double copied = 0, combined = 0;
    for (uint32_t i = 0; i < members; i++) {
        uint32_t rank = cw_host_rank(schedule, op, i);
        uint32_t root = cw_host_index(schedule, op, op->root);
        double read = is_whole ? (double)cw_problem_buffer_bytes(problem, rank, CW_BUFFER_SEND)
                               : (double)op->bytes * cw_host_blocks_read(op->collective, members, i, root);
        double written = is_whole ? (double)cw_problem_buffer_bytes(problem, rank, CW_BUFFER_RECEIVE)
                                  : (double)op->bytes * cw_host_blocks_written(op->collective, members, i, root);
        copied = read + written > copied ? read + written : copied;
        combined += cw_collective_reduces((enum cw_collective)op->collective) ? read : 0;
    }
    return SIGNALS * LINE_NS + copied * network->copy_ns_per_byte + combined * network->reduce_ns_per_byte;
}

static void host_start(struct interpreter *interpreter, uint32_t op)
{
    const struct cw_op *what = interpreter->op_list[op];
    const struct cw_schedule *schedule = interpreter->ranks[interpreter->ops[op].rank].schedule;
    size_t place = (size_t)what->tag * interpreter->rank_count + cw_host_rank(schedule, what, 0);
    struct barrier_state *call = &interpreter->hosts[place];
    if (!op_gather(interpreter, call, op) || call->started < cw_host_members(schedule, what)) {
        return;
    }
    double end = interpreter->now + host_duration(interpreter, schedule, what);
    for (uint32_t note = call->ops; note != INTERPRET_NONE;) {
        uint32_t next = interpreter->messages[note].next;
        interpreter_event_add(interpreter, end, EVENT_LOCAL, interpreter->messages[note].op, 0);
        interpreter_message_release(interpreter, note);
        note = next;
    }
}

static void start(struct interpreter *interpreter, uint32_t op)
{
    const struct cw_op *what = interpreter->op_list[op];
    uint32_t iteration = interpreter_progress(interpreter, op)->started;
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
    case CW_OP_HOST:
        host_start(interpreter, op);
        break;
    case CW_OP_REPEAT: /* its body has begun with it */
        break;
    default:
        interpreter_complete(interpreter, op, iteration);
    }
}

void interpreter_begin(struct interpreter *interpreter)
{
    for (uint32_t op = 0; op < interpreter->op_count; op++) {
        if (interpreter_progress(interpreter, op)->unmet == 0) {
            interpreter_ready_add(interpreter, op, 0);
        }
    }
}

void interpreter_start_ready(struct interpreter *interpreter)
{
    uint32_t op;
    while (interpreter->status == CW_OK && interpreter_ready_pop(interpreter, &op)) {
        start(interpreter, op);
    }
}
