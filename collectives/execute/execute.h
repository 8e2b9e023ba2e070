/* execute: the one executor of schedules.
 *
 * Order of calls
 *   cw_execution_create, { cw_execution_poll }* until it says CW_OK or a failure, cw_execution_destroy.
 *   cw_execution_reset makes it ready to run the same schedule again (persistent collectives) without allocating.
 *
 * Invariants
 *   - All memory is taken by create; polling allocates nothing, sleeps never, and does a bounded amount of work.
 *   - A schedule is trusted only after cw_schedule_validate.
 * Thread: one at a time. */
#pragma once

#include "collectives/execute/transport.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule.h"

struct cw_execution;

/* to[i] = left[i] OP right[i] for `count` elements; `to` is either `left` or `right`. */
typedef void (*cw_reduce_function)(void *context, void *to, const void *left, const void *right, uint64_t count);

struct cw_execution_request {
    const struct cw_schedule *schedule; /* validated; stays the caller's, unchanged until destroy */
    uint32_t ranks;
    uint32_t element_bytes;
    void *buffers[4]; /* by enum cw_buffer; the send buffer is only read */
    const struct cw_transport *transport;
    cw_reduce_function reduce; /* NULL if the schedule has no reduce */
    void *reduce_context;
    /* Whether a reduction may be made now, by the thread that polls; a rejected one is retried at each poll, and all
     * else continues. NULL: always. */
    bool (*may_reduce)(void *reduce_context);
    /* Which of the ready ops to start next: a number below `count`, or `count`: none for now, to be asked again at the
     * next poll. NULL: the first in the array (tests give any). */
    uint32_t (*pick)(void *context, uint32_t count);
    void *pick_context;
};

/* CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY. */
int cw_execution_create(const struct cw_execution_request *request, struct cw_execution **execution);
void cw_execution_destroy(struct cw_execution *execution);

/* Advances as far as possible. CW_OK: all ops are complete; CW_ERROR_AGAIN: not yet, call again; any other code: failed
 * with it. */
int cw_execution_poll(struct cw_execution *execution);

/* Ready to run again, with the same buffers. Only after CW_OK. */
void cw_execution_reset(struct cw_execution *execution);

/* Other buffers, and another context of the reduction, for the next run. Only after create or cw_execution_reset,
 * before the first poll. */
void cw_execution_rebind(struct cw_execution *execution, void *const buffers[4], void *reduce_context);

/* The current wait in one line ("rank 3: op 7 (wait, phase 2) for tag 12 of rank 5; 4 of 19 ops complete"). */
void cw_execution_describe(const struct cw_execution *execution, char *text, size_t text_bytes);

/* The ranks that block it: a put from them, or their acceptance of one, is missing; the first `count_max` of them. */
uint32_t cw_execution_awaited(const struct cw_execution *execution, uint32_t *ranks, uint32_t count_max);
