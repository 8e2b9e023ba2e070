/* progress: how far the ops of one schedule have come, and which of them that lets start.
 *
 * Purpose
 *   The rules of schedule.h about dependencies, iterations and bodies, for the execution of a schedule (execute.c) and
 *   in model time (price/interpret_ops.c). Inline, since both spend their time here.
 *
 * Invariants
 *   - Iterations of an op start in order, so an op has at most one that could start next: number `started`. `unmet`
 *     counts what that one still waits for; `ready` has been called for it exactly if that is 0 and the iteration
 *     exists.
 *   - started <= prefix + CW_REPEAT_WINDOW, so 64 bits tell which of the started iterations are complete.
 *
 * Order of calls
 *   cw_progress_create, { cw_progress_reset, ops with `unmet` 0 are taken as ready, { cw_progress_started, then
 *   cw_progress_sent (puts only, and only if known), then cw_progress_complete, of each iteration }* }*,
 *   cw_progress_dispose
 * Thread: one at a time. */
#pragma once

#include <assert.h>

#include "collectives/schedule/schedule.h"

#define CW_PROGRESS_NONE UINT32_MAX

/* The part that is constant from run to run. */
struct cw_progress_layout {
    uint32_t unmet;      /* of iteration 0 */
    uint32_t repeat;     /* the repeat of the body that contains it, or CW_PROGRESS_NONE */
    uint32_t edge_first; /* edges up to the next op's edge_first */
};

struct cw_progress_state {
    uint32_t unmet; /* unmet dependencies of iteration `started` */
    uint32_t started;
    uint32_t prefix;        /* iterations below are complete */
    uint32_t sent;          /* number of iterations sent or complete */
    uint64_t complete_bits; /* iterations prefix .. prefix + 63, at the number modulo 64 */
    uint64_t sent_bits;     /* sent and not yet complete */
    uint32_t body_left;     /* repeat: body ops with iterations to complete */
    uint32_t cursor;        /* the owner's */
};

enum cw_progress_edge_flags {
    CW_PROGRESS_EDGE_SENT = 1,
    CW_PROGRESS_EDGE_BODY = 2, /* between ops of one body: per iteration; else when all are complete */
};

/* Op `op` waits for the op that owns the edge. */
struct cw_progress_edge {
    uint32_t op;
    uint16_t back;
    uint16_t flags;
};

struct cw_progress {
    const struct cw_schedule *schedule; /* validated; stays the caller's, unchanged until dispose */
    struct cw_progress_layout *layouts; /* one more than ops */
    struct cw_progress_state *states;
    struct cw_progress_edge *edges;
};

/* An op's next iteration may start. */
typedef void (*cw_progress_ready)(void *context, uint32_t op);

/* Takes all memory. CW_OK or CW_ERROR_MEMORY; to be disposed of in either case. */
int cw_progress_create(struct cw_progress *progress, const struct cw_schedule *schedule);
void cw_progress_dispose(struct cw_progress *progress);

/* Nothing has started. */
void cw_progress_reset(struct cw_progress *progress);

/* How often an op runs: the repeat itself once. */
static inline uint32_t cw_progress_iterations(const struct cw_op *op)
{
    return op->kind == CW_OP_REPEAT ? 1 : op->iterations;
}

/* Whether a started or earlier iteration is complete. */
static inline bool cw_progress_is_complete(const struct cw_progress_state *state, uint32_t iteration)
{
    return iteration < state->prefix ||
           (iteration < state->started && (state->complete_bits >> (iteration % 64) & 1) != 0);
}

static inline bool cw_progress_is_sent(const struct cw_progress_state *state, uint32_t iteration)
{
    return cw_progress_is_complete(state, iteration) ||
           (iteration < state->started && (state->sent_bits >> (iteration % 64) & 1) != 0);
}

/* ---- What an op waits for ---- */

static inline void progress_unmet_decrease(struct cw_progress *progress, uint32_t op, cw_progress_ready ready,
                                           void *context)
{
    struct cw_progress_state *state = &progress->states[op];
    assert(state->unmet > 0);
    if (--state->unmet == 0) {
        ready(context, op);
    }
}

/* The same for an op of a body, if it is iteration `iteration` that it could start next. */
static inline void progress_unmet_decrease_of(struct cw_progress *progress, uint32_t op, uint32_t iteration,
                                              cw_progress_ready ready, void *context)
{
    if (progress->states[op].started == iteration && iteration < progress->schedule->ops[op].iterations) {
        progress_unmet_decrease(progress, op, ready, context);
    }
}

/* Counts the dependencies of iteration `started` > 0 of an op of a body: those outside were met for iteration 0
 * already. */
static inline uint32_t progress_unmet_count(const struct cw_progress *progress, uint32_t index)
{
    const struct cw_op *op = &progress->schedule->ops[index];
    const struct cw_progress_state *state = &progress->states[index];
    uint32_t iteration = state->started;
    uint32_t repeat = progress->layouts[index].repeat;
    bool behind = iteration >= CW_REPEAT_WINDOW && !cw_progress_is_complete(state, iteration - CW_REPEAT_WINDOW);
    uint32_t unmet = behind ? 1 : 0;
    for (uint32_t i = 0; i < op->dependency_count; i++) {
        const struct cw_dependency *dependency = &progress->schedule->dependencies[op->dependency_first + i];
        if (progress->layouts[dependency->op].repeat != repeat || iteration < dependency->back) {
            continue;
        }
        const struct cw_progress_state *other = &progress->states[dependency->op];
        uint32_t wanted = iteration - dependency->back;
        bool met = (dependency->flags & CW_DEPENDENCY_SENT) != 0 ? cw_progress_is_sent(other, wanted)
                                                                 : cw_progress_is_complete(other, wanted);
        unmet += met ? 0 : 1;
    }
    return unmet;
}

/* Its next iteration has started. A repeat lets its body start. */
static inline void cw_progress_started(struct cw_progress *progress, uint32_t op, cw_progress_ready ready,
                                       void *context)
{
    const struct cw_op *what = &progress->schedule->ops[op];
    struct cw_progress_state *state = &progress->states[op];
    if (++state->started < cw_progress_iterations(what)) {
        state->unmet = progress_unmet_count(progress, op);
        if (state->unmet == 0) {
            ready(context, op);
        }
    }
    for (uint32_t i = 1; what->kind == CW_OP_REPEAT && i <= what->body_count; i++) {
        progress_unmet_decrease(progress, op + i, ready, context);
    }
}

/* ---- What follows ---- */

/* Notifies ops that wait for `iteration` (or for `all` iterations) of this one: those that wait for its send, or the
 * others. */
static inline void progress_notify(struct cw_progress *progress, uint32_t op, uint32_t iteration, bool all,
                                   uint16_t sent_flag, cw_progress_ready ready, void *context)
{
    const struct cw_progress_edge *edge = &progress->edges[progress->layouts[op].edge_first];
    const struct cw_progress_edge *end = &progress->edges[progress->layouts[op + 1].edge_first];
    for (; edge < end; edge++) {
        if ((edge->flags & CW_PROGRESS_EDGE_SENT) != sent_flag) {
            continue;
        }
        if ((edge->flags & CW_PROGRESS_EDGE_BODY) != 0) {
            progress_unmet_decrease_of(progress, edge->op, iteration + edge->back, ready, context);
        } else if (all) {
            progress_unmet_decrease(progress, edge->op, ready, context);
        }
    }
}

static inline void progress_sent_notify(struct cw_progress *progress, uint32_t op, uint32_t iteration,
                                        cw_progress_ready ready, void *context)
{
    bool all = ++progress->states[op].sent == progress->schedule->ops[op].iterations;
    progress_notify(progress, op, iteration, all, CW_PROGRESS_EDGE_SENT, ready, context);
}

/* The last byte of a put has left; not after its completion. */
static inline void cw_progress_sent(struct cw_progress *progress, uint32_t op, uint32_t iteration,
                                    cw_progress_ready ready, void *context)
{
    struct cw_progress_state *state = &progress->states[op];
    assert(iteration < state->started && !cw_progress_is_sent(state, iteration));
    state->sent_bits |= 1ull << (iteration % 64);
    progress_sent_notify(progress, op, iteration, ready, context);
}

/* An iteration is complete. Returns the repeat that is complete with it, to be completed by the caller; else
 * CW_PROGRESS_NONE. */
static inline uint32_t cw_progress_complete(struct cw_progress *progress, uint32_t op, uint32_t iteration,
                                            cw_progress_ready ready, void *context)
{
    const struct cw_op *what = &progress->schedule->ops[op];
    struct cw_progress_state *state = &progress->states[op];
    uint64_t bit = 1ull << (iteration % 64);
    assert(iteration < state->started && !cw_progress_is_complete(state, iteration));
    bool was_sent = (state->sent_bits & bit) != 0;
    state->sent_bits &= ~bit;
    state->complete_bits |= bit;
    while (state->prefix < state->started && (state->complete_bits >> (state->prefix % 64) & 1) != 0) {
        state->complete_bits &= ~(1ull << (state->prefix % 64));
        state->prefix++;
    }
    bool all = state->prefix == cw_progress_iterations(what);
    if ((what->kind == CW_OP_PUT || what->kind == CW_OP_MULTICAST) && !was_sent) {
        progress_sent_notify(progress, op, iteration, ready, context);
    }
    progress_notify(progress, op, iteration, all, 0, ready, context);
    uint32_t repeat = progress->layouts[op].repeat;
    if (repeat == CW_PROGRESS_NONE) {
        return CW_PROGRESS_NONE;
    }
    progress_unmet_decrease_of(progress, op, iteration + CW_REPEAT_WINDOW, ready, context);
    return all && --progress->states[repeat].body_left == 0 ? repeat : CW_PROGRESS_NONE;
}
