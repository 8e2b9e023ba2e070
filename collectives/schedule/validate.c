/* Checks of a single schedule. A schedule may come from a malicious file: nothing is added up before its parts are
 * known to be small, and the cost is linear in the sizes that the schedule names. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/plan.h"
#include "collectives/schedule/validate.h"
#include "dataplane/status.h"

/* Numbers of signals from here on are those of barriers (execute/barrier.c). */
enum { SIGNAL_NUMBERS_MAX = 1 << (CW_SCHEDULE_TAG_BITS - 3) };

/* ---- The schedule as a whole ---- */

static int validate_counts(const struct validation *validation)
{
    const struct cw_schedule *schedule = validation->schedule;
    if (validation->ranks == 0 || validation->ranks > CW_RANKS_MAX || schedule->rank >= validation->ranks) {
        return validation_reject(validation, "there are %u ranks", validation->ranks);
    }
    if (schedule->op_count > CW_OPS_MAX || schedule->dependency_count > CW_DEPENDENCIES_MAX ||
        schedule->group_count > CW_OPS_MAX || schedule->member_count > CW_DEPENDENCIES_MAX ||
        schedule->barrier_count > CW_BARRIERS_MAX || schedule->host_count > CW_HOST_OPS_MAX ||
        schedule->scratch_bytes > CW_BUFFER_BYTES_MAX) {
        return validation_reject(
            validation,
            "more than a schedule may have: %u ops, %u dependencies, %u groups, %u members, %u barriers, %u host ops, "
            "%llu scratch bytes",
            schedule->op_count, schedule->dependency_count, schedule->group_count, schedule->member_count,
            schedule->barrier_count, schedule->host_count, (unsigned long long)schedule->scratch_bytes);
    }
    if ((schedule->op_count > 0 && schedule->ops == NULL) ||
        (schedule->dependency_count > 0 && schedule->dependencies == NULL) ||
        (schedule->group_count > 0 && schedule->groups == NULL) ||
        (schedule->member_count > 0 && schedule->members == NULL)) {
        return validation_reject(validation, "a list is missing");
    }
    if (schedule->promise.phases_apart > CW_PHASES_APART_MAX) {
        return validation_reject(validation, "phases_apart is %u, which is more than 2",
                                 schedule->promise.phases_apart);
    }
    return CW_OK;
}

/* `seen` holds, per rank, 1 + the last group that had it. */
static int validate_groups_marking(const struct validation *validation, uint32_t *seen)
{
    const struct cw_schedule *schedule = validation->schedule;
    uint64_t total = 0;
    for (uint32_t i = 0; i < schedule->group_count; i++) {
        const struct cw_group_range *group = &schedule->groups[i];
        if (group->first > schedule->member_count || group->count > schedule->member_count - group->first) {
            return validation_reject(validation, "group %u lies outside the list of members", i);
        }
        total += group->count;
        if (total > schedule->member_count) { /* else the work would not be linear in the sizes of the schedule */
            return validation_reject(validation, "group %u shares members with others", i);
        }
        for (uint32_t j = 0; j < group->count; j++) {
            uint32_t member = schedule->members[group->first + j];
            if (member >= validation->ranks || member == schedule->rank || seen[member] == i + 1) {
                return validation_reject(validation, "group %u: member %u is %s", i, member,
                                         member >= validation->ranks ? "no rank"
                                         : member == schedule->rank  ? "this rank itself"
                                                                     : "there twice");
            }
            seen[member] = i + 1;
        }
    }
    return CW_OK;
}

static int validate_groups(const struct validation *validation)
{
    if (validation->schedule->group_count == 0) {
        return CW_OK;
    }
    uint32_t *seen = calloc(validation->ranks, sizeof(*seen));
    if (seen == NULL) {
        validation_reject(validation, "no memory to check its groups");
        return CW_ERROR_MEMORY;
    }
    int status = validate_groups_marking(validation, seen);
    free(seen);
    return status;
}

/* ---- Ops ---- */

static int validate_tag(const struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    uint64_t last = (uint64_t)op->tag + (uint64_t)CW_TAG_STEP * (op->iterations - 1);
    if (last >= 1u << CW_SCHEDULE_TAG_BITS) {
        return validation_reject(validation, "tag %llu has more than %d bits", (unsigned long long)last,
                                 CW_SCHEDULE_TAG_BITS);
    }
    if (op->tag % CW_TAG_STEP == CW_TAG_SIGNAL && last / CW_TAG_STEP >= SIGNAL_NUMBERS_MAX) {
        return validation_reject(validation, "signal %llu has a number that barriers use",
                                 (unsigned long long)(last / CW_TAG_STEP));
    }
    return CW_OK;
}

static int validate_message(const struct validation *validation)
{
    const struct cw_schedule *schedule = validation->schedule;
    const struct cw_op *op = &schedule->ops[validation->index];
    if (op->kind == CW_OP_MULTICAST) {
        if (op->peer >= schedule->group_count || schedule->groups[op->peer].count == 0) {
            return validation_reject(validation, "group %u does not exist or is empty", op->peer);
        }
    } else if (op->peer >= validation->ranks || op->peer == schedule->rank) {
        return validation_reject(validation, "peer %u is %s", op->peer,
                                 op->peer == schedule->rank ? "itself" : "no rank");
    }
    int status = validate_tag(validation);
    if (status != CW_OK) {
        return status;
    }
    bool eager = (op->flags & CW_OP_EAGER) != 0;
    if (op->bytes == 0 && !eager) {
        return validation_reject(validation, "a direct put has no bytes");
    }
    if (op->kind == CW_OP_WAIT) {
        status = validation_unused(validation, "from", &op->from);
        if (status != CW_OK || (op->bytes == 0 && op->to.buffer == CW_BUFFER_NONE)) {
            return status;
        }
        return validation_written(validation, &op->to, 0, true);
    }
    if (op->bytes != 0 || op->from.buffer != CW_BUFFER_NONE) {
        status = validation_place(validation, "from", &op->from, 0, true);
    }
    if (status != CW_OK) {
        return status;
    }
    return eager ? validation_unused(validation, "to", &op->to) : validation_written(validation, &op->to, 0, false);
}

static int validate_order_op(struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    int status = validation_unused(validation, "from", &op->from);
    if (status == CW_OK) {
        status = validation_unused(validation, "to", &op->to);
    }
    if (status != CW_OK) {
        return status;
    }
    if (op->bytes != 0) {
        return validation_reject(validation, "moves no bytes, but names %llu", (unsigned long long)op->bytes);
    }
    if (op->kind != CW_OP_BARRIER) {
        return CW_OK;
    }
    if (op->tag >= validation->schedule->barrier_count) {
        return validation_reject(validation, "number %u, but there are %u barriers", op->tag,
                                 validation->schedule->barrier_count);
    }
    uint64_t bit = 1ull << (op->tag % 64);
    if ((validation->barriers_seen[op->tag / 64] & bit) != 0) {
        return validation_reject(validation, "number %u is there twice", op->tag);
    }
    validation->barriers_seen[op->tag / 64] |= bit;
    return CW_OK;
}

/* Checks for all kinds. */
static int validate_shape(const struct validation *validation)
{
    static const uint8_t flags_allowed[] = {
        [CW_OP_PUT] = CW_OP_EAGER,
        [CW_OP_MULTICAST] = CW_OP_EAGER,
        [CW_OP_WAIT] = CW_OP_EAGER,
        [CW_OP_COPY] = 0,
        [CW_OP_REDUCE] = CW_OP_LEFT,
        [CW_OP_BARRIER] = 0,
        [CW_OP_JOIN] = 0,
        [CW_OP_REPEAT] = 0,
        [CW_OP_HOST] = CW_OP_WHOLE,
    };
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    bool in_body = validation->repeat != VALIDATION_NO_OP && validation->repeat != validation->index;
    if (op->kind < CW_OP_PUT || op->kind > CW_OP_HOST) {
        return validation_reject(validation, "kind %u", op->kind);
    }
    if ((op->flags & ~flags_allowed[op->kind]) != 0) {
        return validation_reject(validation, "flags %u are not for it", op->flags);
    }
    if (in_body &&
        (op->kind == CW_OP_REPEAT || op->kind == CW_OP_BARRIER || op->kind == CW_OP_HOST || op->blocks != 1)) {
        return validation_reject(validation, "a body holds no repeat, no barrier, no host op and no strided copy");
    }
    if (op->kind != CW_OP_HOST && (op->collective != 0 || op->root != 0)) {
        return validation_reject(validation, "has no use for a collective, or for a root");
    }
    if (op->blocks < 1 || (op->blocks > 1 && op->kind != CW_OP_COPY)) {
        return validation_reject(validation, "%u blocks", op->blocks);
    }
    uint32_t iterations = in_body ? validation->schedule->ops[validation->repeat].iterations : 1;
    if (op->kind != CW_OP_REPEAT && (op->iterations != iterations || op->body_count != 0)) {
        return validation_reject(validation, "%u iterations of %u ops where %u of none are due", op->iterations,
                                 op->body_count, iterations);
    }
    bool may_differ = in_body || op->kind == CW_OP_COPY;
    if (op->bytes > CW_BUFFER_BYTES_MAX || op->last_bytes > op->bytes || (op->last_bytes != op->bytes && !may_differ) ||
        (op->last_bytes == 0 && op->bytes != 0)) {
        return validation_reject(validation, "the last of its pieces of %llu bytes has %llu",
                                 (unsigned long long)op->bytes, (unsigned long long)op->last_bytes);
    }
    if (op->from_stride > CW_BUFFER_BYTES_MAX || op->to_stride > CW_BUFFER_BYTES_MAX ||
        (op->blocks == 1 && (op->from_stride != 0 || op->to_stride != 0))) {
        return validation_reject(validation, "strides of %llu and %llu bytes", (unsigned long long)op->from_stride,
                                 (unsigned long long)op->to_stride);
    }
    return CW_OK;
}

/* A call among the ranks of this host. */
static int validate_host(struct validation *validation)
{
    const struct cw_schedule *schedule = validation->schedule;
    const struct cw_op *op = &schedule->ops[validation->index];
    if (op->peer >= schedule->group_count || schedule->groups[op->peer].count == 0) {
        return validation_reject(validation, "group %u does not exist or is empty", op->peer);
    }
    uint32_t members = cw_host_members(schedule, op);
    for (uint32_t i = 1; i + 1 < members; i++) {
        const uint32_t *others = &schedule->members[schedule->groups[op->peer].first];
        if (others[i] <= others[i - 1]) {
            return validation_reject(validation, "the ranks of group %u do not rise", op->peer);
        }
    }
    if (op->collective >= CW_COLLECTIVE_COUNT) {
        return validation_reject(validation, "collective %u", op->collective);
    }
    bool is_rooted = cw_collective_rooted((enum cw_collective)op->collective);
    uint32_t index = cw_host_index(schedule, op, schedule->rank), root = cw_host_index(schedule, op, op->root);
    if (is_rooted ? root == members || cw_host_rank(schedule, op, root) != op->root : op->root != 0) {
        return validation_reject(validation, "root %u is none of its ranks", op->root);
    }
    if ((op->flags & CW_OP_WHOLE) != 0 && (members != validation->ranks || op->bytes != 0)) {
        return validation_reject(validation, "the whole problem, but of %u of %u ranks or with bytes", members,
                                 validation->ranks);
    }
    if (op->tag != validation->hosts_seen || op->tag >= schedule->host_count) {
        return validation_reject(validation, "number %u where %u of %u is due", op->tag, validation->hosts_seen,
                                 schedule->host_count);
    }
    bool is_next = validation->hosts_seen == 0;
    for (uint32_t i = 0; !is_next && i < op->dependency_count; i++) {
        is_next = op->dependency_first + i < schedule->dependency_count &&
                  schedule->dependencies[op->dependency_first + i].op == validation->host_last;
    }
    if (!is_next) {
        return validation_reject(validation, "does not depend on host op %u before it", op->tag - 1);
    }
    validation->hosts_seen++;
    validation->host_last = validation->index;
    int status = validation_host_place(validation, "from", &op->from,
                                       cw_host_blocks_read(op->collective, members, index, root), false);
    return status != CW_OK ? status
                           : validation_host_place(validation, "to", &op->to,
                                                   cw_host_blocks_written(op->collective, members, index, root), true);
}

static int validate_repeat(struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    if (op->iterations < 1 || op->iterations > CW_REPEAT_COUNT_MAX) {
        return validation_reject(validation, "%u iterations", op->iterations);
    }
    if (op->body_count < 1 || op->body_count >= validation->schedule->op_count - validation->index) {
        return validation_reject(validation, "a body of %u ops", op->body_count);
    }
    validation->body_end = validation->index + op->body_count + 1;
    return CW_OK;
}

static int validate_op(struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    int status = validate_shape(validation);
    if (status != CW_OK) {
        return status;
    }
    switch (op->kind) {
    case CW_OP_PUT:
    case CW_OP_MULTICAST:
    case CW_OP_WAIT:
        return validate_message(validation);
    case CW_OP_COPY:
    case CW_OP_REDUCE:
        if (op->bytes == 0) {
            return validation_reject(validation, "moves no bytes");
        }
        return validation_local(validation);
    case CW_OP_HOST:
        return validate_host(validation);
    case CW_OP_REPEAT:
        status = validate_repeat(validation);
        return status == CW_OK ? validate_order_op(validation) : status;
    default:
        return validate_order_op(validation);
    }
}

/* ---- Dependencies ---- */

static int validate_dependency(const struct validation *validation, const struct cw_dependency *dependency)
{
    bool in_body = validation->repeat != VALIDATION_NO_OP && validation->repeat != validation->index;
    bool same_body = in_body && dependency->op > validation->repeat && dependency->op < validation->body_end;
    if (dependency->op >= validation->schedule->op_count ||
        (dependency->op >= validation->index && !(same_body && dependency->back > 0))) {
        return validation_reject(validation, "depends on op %u, which is not before it", dependency->op);
    }
    if (dependency->back > CW_BACK_MAX || (dependency->back > 0 && !same_body)) {
        return validation_reject(validation, "depends on op %u, %u iterations back", dependency->op, dependency->back);
    }
    if (in_body && dependency->op == validation->repeat) {
        return validation_reject(validation, "depends on its own repeat");
    }
    if ((dependency->flags & ~CW_DEPENDENCY_SENT) != 0) {
        return validation_reject(validation, "a dependency has flags %u", dependency->flags);
    }
    uint8_t kind = validation->schedule->ops[dependency->op].kind;
    if ((dependency->flags & CW_DEPENDENCY_SENT) != 0 && kind != CW_OP_PUT && kind != CW_OP_MULTICAST) {
        return validation_reject(validation, "op %u (%s) is never sent", dependency->op, cw_op_kind_name(kind));
    }
    return CW_OK;
}

static int validate_dependencies(const struct validation *validation, uint64_t *total)
{
    const struct cw_schedule *schedule = validation->schedule;
    const struct cw_op *op = &schedule->ops[validation->index];
    if (op->dependency_count > schedule->dependency_count ||
        op->dependency_first > schedule->dependency_count - op->dependency_count) {
        return validation_reject(validation, "its dependencies lie outside the list");
    }
    *total += op->dependency_count;
    if (*total > schedule->dependency_count) { /* else the work would not be linear in the sizes of the schedule */
        return validation_reject(validation, "shares dependencies with other ops");
    }
    for (uint32_t i = 0; i < op->dependency_count; i++) {
        int status = validate_dependency(validation, &schedule->dependencies[op->dependency_first + i]);
        if (status != CW_OK) {
            return status;
        }
    }
    return CW_OK;
}

int cw_schedule_validate(const struct cw_schedule *schedule, uint32_t ranks, const uint64_t buffer_bytes[4],
                         char *error, size_t error_bytes)
{
    assert(schedule != NULL && error != NULL);
    struct validation validation = {
        .schedule = schedule,
        .buffer_bytes = buffer_bytes,
        .ranks = ranks,
        .index = VALIDATION_NO_OP,
        .repeat = VALIDATION_NO_OP,
        .error = error,
        .error_bytes = error_bytes,
    };
    int status = validate_counts(&validation);
    if (status == CW_OK) {
        status = validate_groups(&validation);
    }
    uint64_t dependencies_total = 0;
    for (uint32_t i = 0; i < schedule->op_count && status == CW_OK; i++) {
        validation.index = i;
        if (i >= validation.body_end) {
            validation.repeat = schedule->ops[i].kind == CW_OP_REPEAT ? i : VALIDATION_NO_OP;
        }
        status = validate_op(&validation);
        if (status == CW_OK) {
            status = validate_dependencies(&validation, &dependencies_total);
        }
    }
    for (uint32_t i = 0; i < schedule->barrier_count && status == CW_OK; i++) {
        validation.index = VALIDATION_NO_OP;
        if ((validation.barriers_seen[i / 64] >> (i % 64) & 1) == 0) {
            status = validation_reject(&validation, "barrier %u is missing", i);
        }
    }
    if (status == CW_OK && validation.hosts_seen != schedule->host_count) {
        validation.index = VALIDATION_NO_OP;
        status =
            validation_reject(&validation, "%u of %u host ops are there", validation.hosts_seen, schedule->host_count);
    }
    return status;
}

int cw_plan_validate_rank(const struct cw_plan *plan, uint32_t rank, char *error, size_t error_bytes)
{
    const struct cw_schedule *schedule = &plan->schedules[rank];
    if (schedule->rank != rank) {
        snprintf(error, error_bytes, "the schedule in place %u is that of rank %u", rank, schedule->rank);
        return CW_ERROR_ARGUMENT;
    }
    uint64_t buffer_bytes[4] = {
        [CW_BUFFER_SEND] = cw_problem_buffer_bytes(plan->problem, rank, CW_BUFFER_SEND),
        [CW_BUFFER_RECEIVE] = cw_problem_buffer_bytes(plan->problem, rank, CW_BUFFER_RECEIVE),
        [CW_BUFFER_SCRATCH] = schedule->scratch_bytes,
    };
    return cw_schedule_validate(schedule, plan->problem->ranks, buffer_bytes, error, error_bytes);
}

int cw_plan_validate(const struct cw_plan *plan, char *error, size_t error_bytes)
{
    int status = CW_OK;
    for (uint32_t rank = 0; rank < plan->problem->ranks && status == CW_OK; rank++) {
        status = cw_plan_validate_rank(plan, rank, error, error_bytes);
    }
    return status;
}
