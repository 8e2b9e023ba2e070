/* Matches arrivals with waits, and keeps those that come before their wait has started. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/execute/state.h"
#include "dataplane/status.h"

enum {
    EXACT_ITERATIONS_MAX = 8, /* a wait with more has an entry per 64 tags instead of one per tag */
    RANGE_NUMBERS = 64,
};

/* ---- The table of waits: open addressing, at most half full ---- */

static uint64_t exact_key(uint32_t peer, uint32_t tag)
{
    return ((uint64_t)peer << CW_SCHEDULE_TAG_BITS | tag) << 1;
}

static uint64_t range_key(uint32_t peer, uint32_t tag)
{
    return exact_key(peer, tag / (CW_TAG_STEP * RANGE_NUMBERS) * CW_TAG_STEP + tag % CW_TAG_STEP) | 1;
}

static uint64_t slot_of(const struct cw_execution *execution, uint64_t key)
{
    return key * 0x9e3779b97f4a7c15u >> execution->match_shift;
}

static bool exact(const struct cw_op *op)
{
    return op->iterations <= EXACT_ITERATIONS_MAX;
}

/* The wait for `tag` of `peer`; EXECUTION_NO_OP: none. */
static uint32_t match_find(const struct cw_execution *execution, uint32_t peer, uint32_t tag)
{
    const struct match_entry *entries = execution->matches;
    uint64_t key = exact_key(peer, tag);
    for (uint64_t i = slot_of(execution, key); entries[i].op != EXECUTION_NO_OP; i = (i + 1) & execution->match_mask) {
        if (entries[i].key == key) {
            return entries[i].op;
        }
    }
    if (!execution->match_ranges) {
        return EXECUTION_NO_OP;
    }
    key = range_key(peer, tag);
    for (uint64_t i = slot_of(execution, key); entries[i].op != EXECUTION_NO_OP; i = (i + 1) & execution->match_mask) {
        if (entries[i].key == key) {
            const struct cw_op *op = &execution->schedule->ops[entries[i].op];
            if (tag >= op->tag && (tag - op->tag) / CW_TAG_STEP < op->iterations) {
                return entries[i].op;
            }
        }
    }
    return EXECUTION_NO_OP;
}

static void match_add(struct cw_execution *execution, uint64_t key, uint32_t index)
{
    uint64_t i = slot_of(execution, key);
    while (execution->matches[i].op != EXECUTION_NO_OP) {
        i = (i + 1) & execution->match_mask;
    }
    execution->matches[i] = (struct match_entry){key, index};
}

/* Whether a range that is in the table shares a tag with `op` within the 64 numbers of `key`. */
static bool range_overlaps(const struct cw_execution *execution, uint64_t key, const struct cw_op *op)
{
    const struct match_entry *entries = execution->matches;
    uint64_t op_end = op->tag + (uint64_t)CW_TAG_STEP * op->iterations;
    for (uint64_t i = slot_of(execution, key); entries[i].op != EXECUTION_NO_OP; i = (i + 1) & execution->match_mask) {
        if (entries[i].key == key) {
            const struct cw_op *other = &execution->schedule->ops[entries[i].op];
            if (other->tag < op_end && op->tag < other->tag + (uint64_t)CW_TAG_STEP * other->iterations) {
                return true;
            }
        }
    }
    return false;
}

static uint32_t last_tag(const struct cw_op *op)
{
    return cw_op_tag(op, op->iterations - 1);
}

static int range_add(struct cw_execution *execution, uint32_t index)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    uint64_t last = range_key(op->peer, last_tag(op));
    for (uint64_t key = range_key(op->peer, op->tag); key <= last; key += CW_TAG_STEP << 1) {
        if (range_overlaps(execution, key, op)) {
            return CW_ERROR_ARGUMENT;
        }
        match_add(execution, key, index);
    }
    return CW_OK;
}

static int exact_add(struct cw_execution *execution, uint32_t index)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    for (uint32_t i = 0; i < op->iterations; i++) {
        if (match_find(execution, op->peer, cw_op_tag(op, i)) != EXECUTION_NO_OP) {
            return CW_ERROR_ARGUMENT;
        }
        match_add(execution, exact_key(op->peer, cw_op_tag(op, i)), index);
    }
    return CW_OK;
}

static bool table_create(struct cw_execution *execution)
{
    uint64_t entries = 0;
    for (uint32_t i = 0; i < execution->schedule->op_count; i++) {
        const struct cw_op *op = &execution->schedule->ops[i];
        if (op->kind == CW_OP_WAIT) {
            entries += exact(op) ? op->iterations
                                 : (range_key(0, last_tag(op)) - range_key(0, op->tag)) / (CW_TAG_STEP << 1) + 1;
        }
    }
    uint32_t bits = 1;
    while (1ull << bits < entries * 2) {
        bits++;
    }
    execution->match_mask = (1ull << bits) - 1;
    execution->match_shift = 64 - bits;
    execution->matches = malloc((execution->match_mask + 1) * sizeof(*execution->matches));
    if (execution->matches == NULL) {
        return false;
    }
    for (uint64_t i = 0; i <= execution->match_mask; i++) {
        execution->matches[i].op = EXECUTION_NO_OP;
    }
    return true;
}

int execution_match_create(struct cw_execution *execution)
{
    if (!table_create(execution)) {
        return CW_ERROR_MEMORY;
    }
    int status = CW_OK;
    for (uint32_t i = 0; i < execution->schedule->op_count && status == CW_OK; i++) {
        if (execution->schedule->ops[i].kind == CW_OP_WAIT && !exact(&execution->schedule->ops[i])) {
            status = range_add(execution, i);
            execution->match_ranges = true;
        }
    }
    for (uint32_t i = 0; i < execution->schedule->op_count && status == CW_OK; i++) {
        if (execution->schedule->ops[i].kind == CW_OP_WAIT && exact(&execution->schedule->ops[i])) {
            status = exact_add(execution, i);
        }
    }
    return status;
}

/* ---- Arrivals ---- */

/* Why an arrival cannot be what the wait is for; NULL: it can. */
static const char *mismatch(const struct cw_execution *execution, const struct cw_transport_event *event,
                            uint32_t index)
{
    if (index == EXECUTION_NO_OP) {
        return "no wait is for it";
    }
    const struct cw_op *op = &execution->schedule->ops[index];
    uint32_t iteration = (event->tag - op->tag) / CW_TAG_STEP;
    if (event->eager != ((op->flags & CW_OP_EAGER) != 0)) {
        return event->eager ? "its wait is for a direct one" : "its wait is for an eager one";
    }
    if (event->bytes != cw_op_bytes(op, iteration)) {
        return "its wait is for another size";
    }
    return execution_has_arrived(execution, index, iteration) ? "it came before" : NULL;
}

/* The wait for it has not started. False: no memory, which has ended the execution. */
static bool early_keep(struct cw_execution *execution, const struct cw_transport_event *event,
                       struct early_arrival *early)
{
    const struct cw_transport *transport = execution->request.transport;
    *early = (struct early_arrival){event->data, event->buffer};
    if (event->buffer == 0 && event->data != NULL) {
        early->data = transport->keep(transport->state, event->data, event->bytes, &early->buffer);
    }
    bool is_kept = early->data != NULL || event->data == NULL;
    if (!is_kept) {
        execution_fail(execution, CW_ERROR_MEMORY, "%llu bytes of rank %u: no memory", (unsigned long long)event->bytes,
                       event->peer);
    }
    return is_kept;
}

bool execution_arrived(struct cw_execution *execution, const struct cw_transport_event *event)
{
    if (execution_barrier_tag(event->tag)) {
        execution_barrier_arrived(execution, event);
        return false;
    }
    uint32_t index = match_find(execution, event->peer, event->tag);
    const char *reason = mismatch(execution, event, index);
    if (reason != NULL) {
        execution_fail(execution, CW_ERROR_ARGUMENT, "%s put of %llu bytes with tag %u of rank %u: %s",
                       event->eager ? "eager" : "direct", (unsigned long long)event->bytes, event->tag, event->peer,
                       reason);
        return false;
    }
    const struct cw_op *op = &execution->schedule->ops[index];
    const struct wait_layout *layout = &execution->waits[index];
    uint32_t iteration = (event->tag - op->tag) / CW_TAG_STEP;
    bool started = iteration < execution->progress.states[index].started;
    bool early = event->eager && event->bytes > 0 && !started;
    if (early && !early_keep(execution, event, &execution->early[layout->early_first + iteration])) {
        return false;
    }
    execution->arrived[layout->arrived_first + iteration / 64] |= 1ull << (iteration % 64);
    if (event->data != NULL && event->bytes > 0 && started) {
        memcpy(execution_at(execution, &op->to, iteration), event->data, event->bytes);
    }
    if (started) {
        execution_complete(execution, index, iteration);
    }
    return early && event->data != NULL;
}

void execution_wait_start(struct cw_execution *execution, uint32_t index, uint32_t iteration)
{
    const struct cw_op *op = &execution->schedule->ops[index];
    const struct cw_transport *transport = execution->request.transport;
    bool eager = (op->flags & CW_OP_EAGER) != 0;
    if (!execution_has_arrived(execution, index, iteration)) {
        if (eager && transport->expect != NULL) {
            transport->expect(transport->state, op->peer, cw_op_tag(op, iteration));
        }
        return;
    }
    if (eager && op->bytes > 0) {
        const struct early_arrival *early = &execution->early[execution->waits[index].early_first + iteration];
        if (early->data != NULL) {
            memcpy(execution_at(execution, &op->to, iteration), early->data, cw_op_bytes(op, iteration));
            execution_release(execution, early->buffer);
        }
    }
    execution_complete(execution, index, iteration);
}
