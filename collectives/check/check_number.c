/* check: every (op, iteration) of every rank gets a number; barriers find each other. */
#include "collectives/check/state.h"

/* Numbers the ops of all ranks; returns the number of instances, at most CHECK_EVENTS_MAX / 2. */
static uint64_t number_ops(struct check *check)
{
    uint64_t instances = 0;
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        const struct cw_schedule *schedule = &check->plan->schedules[rank];
        uint32_t first = check->rank_first_op[rank];
        uint32_t body_end = 0;
        uint32_t repeat = CHECK_NONE;
        for (uint32_t i = 0; i < schedule->op_count; i++) {
            const struct cw_op *op = &schedule->ops[i];
            if (i >= body_end) {
                repeat = CHECK_NONE;
            }
            check->op_rank[first + i] = rank;
            check->op_repeat[first + i] = repeat;
            check->op_first_instance[first + i] = (uint32_t)instances;
            instances += repeat == CHECK_NONE ? 1 : op->iterations + 1ull;
            if (instances > CHECK_EVENTS_MAX / 2) {
                return instances;
            }
            if (op->kind == CW_OP_REPEAT) {
                repeat = first + i;
                body_end = i + 1 + op->body_count;
            }
        }
    }
    check->op_first_instance[check->op_count] = (uint32_t)instances;
    return instances;
}

static int find_barriers(struct check *check)
{
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        const struct cw_schedule *schedule = &check->plan->schedules[rank];
        check->barrier_count =
            schedule->barrier_count > check->barrier_count ? schedule->barrier_count : check->barrier_count;
    }
    size_t places = (size_t)check->barrier_count * check->ranks;
    check->barrier_instances = check_allocate(&check->arena, places, sizeof(uint32_t));
    if (check->barrier_instances == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (size_t i = 0; i < places; i++) {
        check->barrier_instances[i] = CHECK_NONE;
    }
    for (uint32_t number = 0; number < check->op_count; number++) {
        const struct cw_op *op = check_op(check, number);
        if (op->kind != CW_OP_BARRIER) {
            continue;
        }
        uint32_t instance = check->op_first_instance[number];
        if (op->tag >= check->barrier_count) {
            return check_fail(check, CW_CHECK_BARRIER, instance, UINT64_MAX, "the plan has %u barriers only",
                              check->barrier_count);
        }
        uint32_t *place = &check->barrier_instances[(size_t)op->tag * check->ranks + check->op_rank[number]];
        if (*place != CHECK_NONE) {
            return check_fail(check, CW_CHECK_BARRIER, instance, UINT64_MAX, "the same barrier as %s",
                              check_name(check, *place).text);
        }
        *place = instance;
    }
    return CW_OK;
}

/* All ranks enter a barrier, or none does. */
static int validate_barriers(struct check *check)
{
    for (uint32_t barrier = 0; barrier < check->barrier_count; barrier++) {
        const uint32_t *instances = &check->barrier_instances[(size_t)barrier * check->ranks];
        uint32_t present = CHECK_NONE;
        uint32_t missing = CHECK_NONE;
        for (uint32_t rank = check->ranks; rank-- > 0;) {
            if (instances[rank] == CHECK_NONE) {
                missing = rank;
            } else {
                present = instances[rank];
            }
        }
        if (present != CHECK_NONE && missing != CHECK_NONE) {
            return check_fail(check, CW_CHECK_BARRIER, present, UINT64_MAX, "rank %u has no barrier %u", missing,
                              barrier);
        }
    }
    return CW_OK;
}

static int fill_instances(struct check *check, uint32_t instances)
{
    check->barrier_first = instances;
    check->instance_op = check_allocate(&check->arena, instances, sizeof(uint32_t));
    if (check->instance_op == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t op = 0; op < check->op_count; op++) {
        for (uint32_t i = check->op_first_instance[op]; i < check->op_first_instance[op + 1]; i++) {
            check->instance_op[i] = op;
        }
    }
    return CW_OK;
}

/* The barriers' own instances come last, and their number is known last. */
static int append_barriers(struct check *check)
{
    uint64_t instances = (uint64_t)check->barrier_first + check->barrier_count;
    if (instances > CHECK_EVENTS_MAX / 2) {
        return CW_ERROR_MEMORY;
    }
    check->instance_count = (uint32_t)instances;
    check->event_count = 2 * check->instance_count;
    if (check->barrier_count == 0) {
        return CW_OK;
    }
    uint32_t *instance_op = check_allocate(&check->arena, check->instance_count, sizeof(uint32_t));
    if (instance_op == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < check->instance_count; i++) {
        instance_op[i] = i < check->barrier_first ? check->instance_op[i] : CHECK_NONE;
    }
    check->instance_op = instance_op;
    return CW_OK;
}

int check_number(struct check *check)
{
    check->rank_first_op = check_allocate(&check->arena, check->ranks + 1ull, sizeof(uint32_t));
    if (check->rank_first_op == NULL) {
        return CW_ERROR_MEMORY;
    }
    uint64_t ops = 0;
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        check->rank_first_op[rank] = (uint32_t)ops;
        ops += check->plan->schedules[rank].op_count;
        if (ops > CHECK_EVENTS_MAX / 2) {
            return CW_ERROR_MEMORY;
        }
    }
    check->rank_first_op[check->ranks] = (uint32_t)ops;
    check->op_count = (uint32_t)ops;
    check->op_rank = check_allocate(&check->arena, ops, sizeof(uint32_t));
    check->op_repeat = check_allocate(&check->arena, ops, sizeof(uint32_t));
    check->op_first_instance = check_allocate(&check->arena, ops + 1, sizeof(uint32_t));
    if (check->op_rank == NULL || check->op_repeat == NULL || check->op_first_instance == NULL) {
        return CW_ERROR_MEMORY;
    }
    uint64_t instances = number_ops(check);
    if (instances > CHECK_EVENTS_MAX / 2) {
        return CW_ERROR_MEMORY;
    }
    int status = fill_instances(check, (uint32_t)instances);
    status = status == CW_OK ? find_barriers(check) : status;
    status = status == CW_OK ? validate_barriers(check) : status;
    return status == CW_OK ? append_barriers(check) : status;
}
