/* The interpreter's memory: ops of all ranks in one array, the dependents of each, and the wait of each put. */
#include <stdlib.h>
#include <string.h>

#include "collectives/price/interpret_state.h"
#include "dataplane/status.h"

/* ---- Ops ---- */

static bool ops_lay_out(struct interpreter *interpreter, uint32_t rank)
{
    struct rank_state *own = &interpreter->ranks[rank];
    for (uint32_t i = 0; i < own->schedule->op_count; i++) {
        interpreter->op_list[own->op_first + i] = &own->schedule->ops[i];
        interpreter->ops[own->op_first + i].rank = rank;
        interpreter->steps_left += cw_progress_iterations(&own->schedule->ops[i]);
    }
    return cw_progress_create(&own->progress, own->schedule) == CW_OK;
}

/* ---- Waits ---- */

enum {
    NUMBER_BITS = CW_SCHEDULE_TAG_BITS - 2,
    TAG_KINDS = CW_TAG_STEP,
};

static uint64_t wait_key(uint32_t source, uint32_t tag)
{
    return ((uint64_t)source * TAG_KINDS + tag % CW_TAG_STEP) << NUMBER_BITS | tag / CW_TAG_STEP;
}

static int wait_compare(const void *one, const void *other)
{
    uint64_t a = ((const struct wait_entry *)one)->key;
    uint64_t b = ((const struct wait_entry *)other)->key;
    return a < b ? -1 : a > b;
}

static bool waits_create(struct interpreter *interpreter)
{
    uint64_t words = 0;
    uint32_t count = 0;
    for (uint32_t i = 0; i < interpreter->op_count; i++) {
        if (interpreter->op_list[i]->kind == CW_OP_WAIT) {
            interpreter->ops[i].arrived_first = words;
            words += (interpreter->op_list[i]->iterations + 63) / 64;
            count++;
        }
    }
    interpreter->arrived = calloc(words + 1, sizeof(*interpreter->arrived));
    interpreter->waits = malloc((count + 1ul) * sizeof(*interpreter->waits));
    if (interpreter->arrived == NULL || interpreter->waits == NULL) {
        return false;
    }
    count = 0;
    for (uint32_t rank = 0; rank < interpreter->rank_count; rank++) {
        struct rank_state *own = &interpreter->ranks[rank];
        bool sorted = true;
        own->wait_first = count;
        for (uint32_t i = own->op_first; i < own[1].op_first; i++) {
            const struct cw_op *op = interpreter->op_list[i];
            if (op->kind == CW_OP_WAIT) {
                struct wait_entry *entry = &interpreter->waits[count];
                *entry = (struct wait_entry){wait_key(op->peer, op->tag), i};
                sorted = sorted && (count == own->wait_first || entry[-1].key < entry->key);
                count++;
            }
        }
        if (!sorted) {
            qsort(&interpreter->waits[own->wait_first], count - own->wait_first, sizeof(struct wait_entry),
                  wait_compare);
        }
    }
    interpreter->ranks[interpreter->rank_count].wait_first = count;
    return true;
}

uint32_t interpreter_wait_find(const struct interpreter *interpreter, uint32_t target, uint32_t source, uint32_t tag,
                               uint32_t *iteration)
{
    uint64_t key = wait_key(source, tag);
    uint32_t low = interpreter->ranks[target].wait_first;
    uint32_t high = interpreter->ranks[target + 1].wait_first;
    uint32_t first = low;
    while (low < high) { /* the first entry beyond the key */
        uint32_t middle = low + (high - low) / 2;
        if (interpreter->waits[middle].key <= key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == first) {
        return INTERPRET_NONE;
    }
    const struct wait_entry *entry = &interpreter->waits[low - 1];
    if (key - entry->key >= interpreter->op_list[entry->op]->iterations) {
        return INTERPRET_NONE;
    }
    *iteration = (uint32_t)(key - entry->key);
    return entry->op;
}

/* ---- Trace ---- */

static bool trace_create(struct interpreter *interpreter)
{
    struct cw_trace *trace = interpreter->trace;
    if (trace == NULL) {
        return true;
    }
    trace->events = malloc((interpreter->steps_left + 1) * sizeof(*trace->events));
    interpreter->trace_first = malloc((interpreter->op_count + 1ul) * sizeof(*interpreter->trace_first));
    if (trace->events == NULL || interpreter->trace_first == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < interpreter->op_count; i++) {
        interpreter->trace_first[i] = trace->event_count;
        trace->event_count += cw_progress_iterations(interpreter->op_list[i]);
    }
    return true;
}

/* ---- All of it ---- */

static bool ranks_create(struct interpreter *interpreter)
{
    const struct cw_problem *problem = interpreter->plan->problem;
    uint64_t ops = 0;
    uint64_t dependencies = 0;
    interpreter->ranks = calloc(interpreter->rank_count + 1ul, sizeof(*interpreter->ranks));
    if (interpreter->ranks == NULL) {
        return false;
    }
    for (uint32_t rank = 0; rank < interpreter->rank_count; rank++) {
        struct rank_state *state = &interpreter->ranks[rank];
        state->schedule = &interpreter->plan->schedules[rank];
        state->op_first = (uint32_t)ops;
        state->cluster = cw_problem_cluster(problem, rank);
        state->line = INTERPRET_NONE;
        state->held_first = INTERPRET_NONE;
        state->served = true;
        ops += state->schedule->op_count;
        dependencies += state->schedule->dependency_count;
    }
    if (ops >= INTERPRET_NONE || dependencies >= INTERPRET_NONE) {
        return false; /* such a plan alone takes a terabyte */
    }
    interpreter->op_count = (uint32_t)ops;
    interpreter->ranks[interpreter->rank_count].op_first = interpreter->op_count;
    return true;
}

static bool tables_create(struct interpreter *interpreter)
{
    uint32_t clusters = interpreter->plan->problem->cluster_count;
    uint64_t ports = (uint64_t)interpreter->rank_count * interpreter->network->ports;
    interpreter->ops = calloc(interpreter->op_count + 1ul, sizeof(*interpreter->ops));
    interpreter->op_list = malloc((interpreter->op_count + 1ul) * sizeof(*interpreter->op_list));
    interpreter->receive_free = calloc(ports, sizeof(*interpreter->receive_free));
    interpreter->barriers = calloc(interpreter->ranks[0].schedule->barrier_count + 1ul, sizeof(*interpreter->barriers));
    interpreter->cluster_first = malloc(clusters * sizeof(*interpreter->cluster_first));
    interpreter->to_serve = malloc(interpreter->rank_count * sizeof(*interpreter->to_serve));
    if (interpreter->ops == NULL || interpreter->op_list == NULL || interpreter->receive_free == NULL ||
        interpreter->barriers == NULL || interpreter->cluster_first == NULL || interpreter->to_serve == NULL) {
        return false;
    }
    uint32_t host_ops = 0;
    for (uint32_t rank = 0; rank < interpreter->rank_count; rank++) {
        uint32_t count = interpreter->ranks[rank].schedule->host_count;
        host_ops = count > host_ops ? count : host_ops;
    }
    if (host_ops > 0) {
        interpreter->hosts = calloc((size_t)host_ops * interpreter->rank_count, sizeof(*interpreter->hosts));
        if (interpreter->hosts == NULL) {
            return false;
        }
    }
    memset(interpreter->cluster_first, 0xff, clusters * sizeof(*interpreter->cluster_first));
    if (clusters > 1 && interpreter->network->wan_bytes_per_ns > 0) {
        interpreter->link_free = calloc((size_t)clusters * clusters, sizeof(*interpreter->link_free));
        return interpreter->link_free != NULL;
    }
    return true;
}

int interpreter_create(struct interpreter *interpreter, const struct cw_plan *plan, const struct cw_network *network,
                       struct cw_trace *trace)
{
    memset(interpreter, 0, sizeof(*interpreter));
    interpreter->plan = plan;
    interpreter->network = network;
    interpreter->trace = trace;
    interpreter->rank_count = plan->problem->ranks;
    interpreter->message_free = INTERPRET_NONE;
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        if (plan->schedules[rank].barrier_count != plan->schedules[0].barrier_count) {
            return CW_ERROR_ARGUMENT; /* some rank would wait forever */
        }
    }
    if (!ranks_create(interpreter) || !tables_create(interpreter)) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t rank = 0; rank < interpreter->rank_count; rank++) {
        if (!ops_lay_out(interpreter, rank)) {
            return CW_ERROR_MEMORY;
        }
    }
    if (!waits_create(interpreter) || !trace_create(interpreter)) {
        return CW_ERROR_MEMORY;
    }
    return CW_OK;
}

void interpreter_dispose(struct interpreter *interpreter)
{
    for (uint32_t rank = 0; interpreter->ranks != NULL && rank < interpreter->rank_count; rank++) {
        cw_progress_dispose(&interpreter->ranks[rank].progress);
    }
    free(interpreter->ranks);
    free(interpreter->ops);
    free(interpreter->op_list);
    free(interpreter->waits);
    free(interpreter->arrived);
    free(interpreter->receive_free);
    free(interpreter->link_free);
    free(interpreter->cluster_first);
    free(interpreter->barriers);
    free(interpreter->hosts);
    free(interpreter->events);
    free(interpreter->ready);
    free(interpreter->to_serve);
    free(interpreter->messages);
    free(interpreter->trace_first);
}
