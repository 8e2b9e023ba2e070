/* check: the order of events, and a total order of all events that keeps to it.
 *
 * The order is made from its end: events for which nothing waits come last. So only edges into an event are stored. An
 * event is placed as late as possible, near to the events that need it, which keeps searches short. */
#include "collectives/check/state.h"

static int add_edge(struct check *check, uint32_t event)
{
    return check_list_add(&check->edges, event);
}

static bool is_sent(const struct check *check, uint32_t op, const struct cw_dependency *dependency)
{
    return (dependency->flags & CW_DEPENDENCY_SENT) != 0 && check_is_put(check_op(check, op));
}

/* The instance that iteration `iteration` of `op` waits for by this dependency; CHECK_NONE: none. */
static uint32_t awaited(const struct check *check, uint32_t op, uint32_t iteration,
                        const struct cw_dependency *dependency)
{
    uint32_t target = check->rank_first_op[check->op_rank[op]] + dependency->op;
    uint32_t first = check->op_first_instance[target];
    if (check->op_repeat[target] == CHECK_NONE) {
        return first;
    }
    if (check->op_repeat[target] != check->op_repeat[op]) {
        return check->op_first_instance[target + 1] - 1;
    }
    return iteration < dependency->back ? CHECK_NONE : first + iteration - dependency->back;
}

/* Without buffers an eager put neither leaves nor ends before the waits that match it have started. */
static int add_held_back(struct check *check, uint32_t instance)
{
    uint32_t number = check->instance_op[instance];
    const struct cw_op *op = check_op(check, number);
    if ((op->flags & CW_OP_EAGER) == 0) {
        return CW_OK;
    }
    uint32_t fan = check_fan(check, check->op_rank[number], op);
    for (uint32_t i = 0; i < fan; i++) {
        uint32_t wait = check->messages[check->instance_message[instance] + i].wait;
        if (add_edge(check, check_start(wait) | CHECK_WEAK) != CW_OK) {
            return CW_ERROR_MEMORY;
        }
    }
    return CW_OK;
}

static int add_weak_into_start(struct check *check, uint32_t op, uint32_t iteration)
{
    const struct cw_schedule *schedule = &check->plan->schedules[check->op_rank[op]];
    const struct cw_op *self = check_op(check, op);
    int status = CW_OK;
    for (uint32_t i = 0; i < self->dependency_count && status == CW_OK; i++) {
        const struct cw_dependency *dependency = &schedule->dependencies[self->dependency_first + i];
        uint32_t instance = awaited(check, op, iteration, dependency);
        if (instance != CHECK_NONE && is_sent(check, check->instance_op[instance], dependency) &&
            check_is_own(check, instance)) {
            status = add_held_back(check, instance);
        }
    }
    if (check->op_repeat[op] == CHECK_NONE) {
        return status;
    }
    uint32_t instance = check->op_first_instance[op] + iteration;
    if (iteration > 0 && status == CW_OK) {
        status = add_edge(check, check_start(instance - 1) | CHECK_WEAK);
    }
    if (iteration >= CW_REPEAT_WINDOW && status == CW_OK) {
        status = add_edge(check, check_end(instance - CW_REPEAT_WINDOW) | CHECK_WEAK);
    }
    return status;
}

static int add_into_start(struct check *check, uint32_t op, uint32_t iteration)
{
    const struct cw_schedule *schedule = &check->plan->schedules[check->op_rank[op]];
    const struct cw_op *self = check_op(check, op);
    int status = CW_OK;
    for (uint32_t i = 0; i < self->dependency_count && status == CW_OK; i++) {
        const struct cw_dependency *dependency = &schedule->dependencies[self->dependency_first + i];
        uint32_t instance = awaited(check, op, iteration, dependency);
        if (instance != CHECK_NONE) {
            bool sent = is_sent(check, check->instance_op[instance], dependency);
            status = add_edge(check, sent ? check_start(instance) : check_end(instance));
        }
    }
    if (check->op_repeat[op] != CHECK_NONE && status == CW_OK) {
        status = add_edge(check, check_start(check->op_first_instance[check->op_repeat[op]]));
    }
    return status == CW_OK ? add_weak_into_start(check, op, iteration) : status;
}

/* Adds the events that its result needs, then the other events that may delay it. */
static int add_into_host_end(struct check *check, uint32_t instance)
{
    struct check_host host = check_host_of(check, instance);
    for (uint32_t weak = 0; weak < 2; weak++) {
        for (uint32_t i = 0; i < host.members; i++) {
            bool needs = cw_host_needs(host.op->collective, host.index, i, host.root);
            uint32_t start = check_start(check_host_instance(check, &host, i));
            if (i != host.index && needs == (weak == 0) &&
                add_edge(check, weak == 0 ? start : start | CHECK_WEAK) != CW_OK) {
                return CW_ERROR_MEMORY;
            }
        }
    }
    return CW_OK;
}

static int add_into_end(struct check *check, uint32_t instance)
{
    uint32_t number = check->instance_op[instance];
    uint32_t rank = check->op_rank[number];
    const struct cw_op *op = check_op(check, number);
    switch (op->kind) {
    case CW_OP_WAIT:
        return add_edge(check, check_start(check->messages[check->instance_message[instance]].put));
    case CW_OP_PUT:
    case CW_OP_MULTICAST:
        return add_held_back(check, instance);
    case CW_OP_HOST:
        return add_into_host_end(check, instance);
    case CW_OP_BARRIER:
        return add_edge(check, check_start(check->barrier_first + op->tag));
    case CW_OP_REPEAT:
        for (uint32_t i = number + 1; i <= number + op->body_count; i++) {
            assert(check->op_rank[i] == rank);
            if (add_edge(check, check_end(check->op_first_instance[i + 1] - 1)) != CW_OK) {
                return CW_ERROR_MEMORY;
            }
        }
        return CW_OK;
    default:
        return CW_OK;
    }
}

/* The collector of an op in a body. Only for puts does anyone wait for the start of all. */
static int add_into_collector(struct check *check, uint32_t op, bool end)
{
    uint32_t first = check->op_first_instance[op];
    uint32_t iterations = check_iterations(check, op);
    if (!end && !check_is_put(check_op(check, op))) {
        return CW_OK;
    }
    int status = CW_OK;
    for (uint32_t i = 0; i < iterations && status == CW_OK; i++) {
        status = add_edge(check, end ? check_end(first + i) : check_start(first + i));
    }
    for (uint32_t i = 0; !end && i < iterations && status == CW_OK; i++) {
        status = add_held_back(check, first + i);
    }
    return status;
}

static int add_into_barrier(struct check *check, uint32_t barrier)
{
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        uint32_t instance = check->barrier_instances[(size_t)barrier * check->ranks + rank];
        if (instance != CHECK_NONE && add_edge(check, check_start(instance)) != CW_OK) {
            return CW_ERROR_MEMORY;
        }
    }
    return CW_OK;
}

static int add_into(struct check *check, uint32_t event)
{
    uint32_t instance = event / 2;
    uint32_t op = check->instance_op[instance];
    if (op == CHECK_NONE) {
        return check_is_end(event) ? CW_OK : add_into_barrier(check, instance - check->barrier_first);
    }
    if (!check_is_own(check, instance)) {
        return add_into_collector(check, op, check_is_end(event));
    }
    return check_is_end(event) ? add_into_end(check, instance)
                               : add_into_start(check, op, check_iteration(check, instance));
}

/* How many events wait for each one. */
static void count_successors(const struct check *check, uint32_t *successors)
{
    for (uint32_t event = 0; event < check->event_count; event++) {
        successors[event] = check_is_end(event) ? 0 : 1;
    }
    for (uint32_t i = 0; i < check->edges.count; i++) {
        successors[check->edges.items[i] & ~CHECK_WEAK]++;
    }
}

/* Fills the order from its end; events on a cycle, or before one, are left with successors. */
static uint32_t sort_events(struct check *check, uint32_t *successors)
{
    uint32_t tail = check->event_count; /* order[tail, event_count) is known, [look, event_count) has been visited */
    uint32_t look = check->event_count;
    for (uint32_t event = check->event_count; event-- > 0;) {
        if (successors[event] == 0) {
            check->order[--tail] = event;
        }
    }
    while (look > tail) {
        uint32_t event = check->order[--look];
        check->position[event] = look;
        if (check_is_end(event) && --successors[event - 1] == 0) {
            check->order[--tail] = event - 1;
        }
        for (uint32_t i = check->edge_first[event]; i < check->edge_first[event + 1]; i++) {
            uint32_t earlier = check->edges.items[i] & ~CHECK_WEAK;
            if (--successors[earlier] == 0) {
                check->order[--tail] = earlier;
            }
        }
    }
    return tail;
}

int check_graph(struct check *check)
{
    uint32_t events = check->event_count;
    check->edge_first = check_allocate(&check->arena, events + 1ull, sizeof(uint32_t));
    check->order = check_allocate(&check->arena, events, sizeof(uint32_t));
    check->position = check_allocate(&check->arena, events, sizeof(uint32_t));
    struct check_mark mark = check_arena_mark(&check->arena);
    uint32_t *successors = check_allocate(&check->arena, events, sizeof(uint32_t));
    if (check->edge_first == NULL || check->order == NULL || check->position == NULL || successors == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t event = 0; event < events; event++) {
        check->edge_first[event] = check->edges.count;
        if (add_into(check, event) != CW_OK) {
            return CW_ERROR_MEMORY;
        }
    }
    check->edge_first[events] = check->edges.count;
    count_successors(check, successors);
    int status = sort_events(check, successors) == 0 ? CW_OK : check_deadlock(check, successors);
    check_arena_rewind(&check->arena, mark);
    return status;
}
