/* What can be told from one schedule alone. A schedule may come from a file that somebody made to break us: nothing is added up
 * before its parts are known to be small, and the cost is linear in the sizes that the schedule names. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collectives/plan.h"
#include "dataplane/status.h"

/* Numbers of signals from here on are those of barriers (execute_barrier.c). */
enum { SIGNAL_NUMBERS_MAX = 1 << (CW_SCHEDULE_TAG_BITS - 3) };

enum { NO_OP = UINT32_MAX };

struct validation {
    const struct cw_schedule *schedule;
    const uint64_t *buffer_bytes; /* NULL: only the scratch buffer's size is known */
    uint32_t ranks;
    uint32_t index;  /* of the op being looked at, or NO_OP */
    uint32_t repeat; /* whose body it is in; its own index while the repeat itself is looked at, else NO_OP */
    uint32_t body_end;
    uint64_t barriers_seen[CW_BARRIERS_MAX / 64];
    char *error;
    size_t error_bytes;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct validation *validation, const char *format, ...)
{
    const struct cw_schedule *schedule = validation->schedule;
    va_list arguments;
    char where[64] = "";
    char reason[200];
    va_start(arguments, format);
    vsnprintf(reason, sizeof(reason), format, arguments);
    va_end(arguments);
    if (validation->index != NO_OP) {
        snprintf(where, sizeof(where), ", op %u (%s)", validation->index,
                 cw_op_kind_name(schedule->ops[validation->index].kind));
    }
    snprintf(validation->error, validation->error_bytes, "rank %u%s: %s", schedule->rank, where, reason);
    return CW_ERROR_ARGUMENT;
}

/* ---- The schedule as a whole ---- */

static int validate_counts(const struct validation *validation)
{
    const struct cw_schedule *schedule = validation->schedule;
    if (validation->ranks == 0 || validation->ranks > CW_RANKS_MAX || schedule->rank >= validation->ranks) {
        return refuse(validation, "there are %u ranks", validation->ranks);
    }
    if (schedule->op_count > CW_OPS_MAX || schedule->dependency_count > CW_DEPENDENCIES_MAX ||
        schedule->group_count > CW_OPS_MAX || schedule->member_count > CW_DEPENDENCIES_MAX ||
        schedule->barrier_count > CW_BARRIERS_MAX || schedule->scratch_bytes > CW_BUFFER_BYTES_MAX) {
        return refuse(
            validation,
            "more than a schedule may have: %u ops, %u dependencies, %u groups, %u members, %u barriers, %llu "
            "scratch bytes",
            schedule->op_count, schedule->dependency_count, schedule->group_count, schedule->member_count,
            schedule->barrier_count, (unsigned long long)schedule->scratch_bytes);
    }
    if ((schedule->op_count > 0 && schedule->ops == NULL) ||
        (schedule->dependency_count > 0 && schedule->dependencies == NULL) ||
        (schedule->group_count > 0 && schedule->groups == NULL) ||
        (schedule->member_count > 0 && schedule->members == NULL)) {
        return refuse(validation, "a list is missing");
    }
    if (schedule->promise.phases_apart > 1) {
        return refuse(validation, "phases_apart is %u, which is neither 0 nor 1", schedule->promise.phases_apart);
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
            return refuse(validation, "group %u lies outside the list of members", i);
        }
        total += group->count;
        if (total > schedule->member_count) { /* else the work would not be linear in what the schedule names */
            return refuse(validation, "group %u shares members with others", i);
        }
        for (uint32_t j = 0; j < group->count; j++) {
            uint32_t member = schedule->members[group->first + j];
            if (member >= validation->ranks || member == schedule->rank || seen[member] == i + 1) {
                return refuse(validation, "group %u: member %u is %s", i, member,
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
        refuse(validation, "no memory to check its groups");
        return CW_ERROR_MEMORY;
    }
    int status = validate_groups_marking(validation, seen);
    free(seen);
    return status;
}

/* ---- Places ---- */

/* Where a row of pieces ends: all of `bytes`, the last of `last_bytes`, `stride` apart. False: beyond any buffer. */
static bool row_end(uint64_t offset, uint64_t stride, uint32_t count, uint64_t bytes, uint64_t last_bytes,
                    uint64_t *end)
{
    if (offset > CW_BUFFER_BYTES_MAX || (count > 1 && stride > CW_BUFFER_BYTES_MAX / (count - 1))) {
        return false;
    }
    *end = offset + stride * (count - 1) + last_bytes;
    if (count > 1) {
        uint64_t before = offset + stride * (count - 2) + bytes;
        *end = before > *end ? before : *end;
    }
    return *end <= CW_BUFFER_BYTES_MAX;
}

static int validate_place(const struct validation *validation, const char *name, const struct cw_place *place,
                          uint64_t stride, bool here)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    if (place->buffer != CW_BUFFER_SEND && place->buffer != CW_BUFFER_RECEIVE && place->buffer != CW_BUFFER_SCRATCH) {
        return refuse(validation, "`%s` is in no buffer (%u)", name, (unsigned)place->buffer);
    }
    bool in_body = validation->repeat != NO_OP;
    if ((!in_body && place->step != 0) || place->step > CW_BUFFER_BYTES_MAX) {
        return refuse(validation, "`%s` has a step of %llu bytes%s", name, (unsigned long long)place->step,
                      in_body ? "" : " outside a body");
    }
    uint64_t end = 0;
    if (!row_end(place->offset, in_body ? place->step : stride, in_body ? op->iterations : op->blocks, op->bytes,
                 op->last_bytes, &end)) {
        return refuse(validation, "`%s` ends beyond any buffer", name);
    }
    uint64_t size = CW_BUFFER_BYTES_MAX;
    if (here && validation->buffer_bytes != NULL) {
        size = validation->buffer_bytes[place->buffer];
    }
    if (here && place->buffer == CW_BUFFER_SCRATCH && size > validation->schedule->scratch_bytes) {
        size = validation->schedule->scratch_bytes;
    }
    if (end > size) {
        return refuse(validation, "`%s` ends at byte %llu of the %s buffer, which has %llu", name,
                      (unsigned long long)end, cw_buffer_name(place->buffer), (unsigned long long)size);
    }
    return CW_OK;
}

static int validate_written(const struct validation *validation, const struct cw_place *place, uint64_t stride,
                            bool here)
{
    int status = validate_place(validation, "to", place, stride, here);
    if (status == CW_OK && place->buffer == CW_BUFFER_SEND) {
        return refuse(validation, "`to` is in the send buffer, which is never written");
    }
    return status;
}

static int validate_unused(const struct validation *validation, const char *name, const struct cw_place *place)
{
    if (place->buffer != CW_BUFFER_NONE || place->offset != 0 || place->step != 0) {
        return refuse(validation, "has no use for `%s`", name);
    }
    return CW_OK;
}

/* Whether [0, bytes) and [distance, distance + bytes) share a byte. */
static bool near(int64_t distance, uint64_t bytes)
{
    return (uint64_t)(distance < 0 ? -distance : distance) < bytes;
}

/* Whether `from` and `to` share a byte in the same iteration. The distance grows evenly, so it is smallest beside its zero. */
static bool overlaps_in_body(const struct cw_op *op)
{
    int64_t distance = (int64_t)op->to.offset - (int64_t)op->from.offset;
    int64_t growth = (int64_t)op->to.step - (int64_t)op->from.step;
    int64_t last = (int64_t)op->iterations - 1;
    if (near(distance + growth * last, op->last_bytes)) {
        return true;
    }
    if (last == 0) {
        return false;
    }
    int64_t zero = growth == 0 ? 0 : -distance / growth;
    for (int64_t i = zero - 1; i <= zero + 1; i++) {
        int64_t iteration = i < 0 ? 0 : i > last - 1 ? last - 1 : i;
        if (near(distance + growth * iteration, op->bytes)) {
            return true;
        }
    }
    return false;
}

/* Blocks of equal strides may lie between each other; any other mixture in one range counts as an overlap. */
static bool overlaps_strided(const struct cw_op *op)
{
    uint64_t from_end = op->from.offset + op->from_stride * (op->blocks - 1) + op->last_bytes;
    uint64_t to_end = op->to.offset + op->to_stride * (op->blocks - 1) + op->last_bytes;
    if (from_end <= op->to.offset || to_end <= op->from.offset) {
        return false;
    }
    uint64_t stride = op->from_stride;
    if (stride != op->to_stride || stride == 0) {
        return true;
    }
    uint64_t distance = (op->to.offset % stride + stride - op->from.offset % stride) % stride;
    return distance < op->bytes || stride - distance < op->bytes;
}

static int validate_local(const struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    int status = validate_place(validation, "from", &op->from, op->from_stride, true);
    if (status == CW_OK) {
        status = validate_written(validation, &op->to, op->to_stride, true);
    }
    if (status != CW_OK) {
        return status;
    }
    if (op->blocks > 1 && op->to_stride < op->bytes) {
        return refuse(validation, "its blocks overlap where they are written");
    }
    if (op->from.buffer == op->to.buffer && (op->blocks > 1 ? overlaps_strided(op) : overlaps_in_body(op))) {
        return refuse(validation, "`from` and `to` overlap");
    }
    return CW_OK;
}

/* ---- Ops ---- */

static int validate_tag(const struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    uint64_t last = (uint64_t)op->tag + (uint64_t)CW_TAG_STEP * (op->iterations - 1);
    if (last >= 1u << CW_SCHEDULE_TAG_BITS) {
        return refuse(validation, "tag %llu has more than %d bits", (unsigned long long)last, CW_SCHEDULE_TAG_BITS);
    }
    if (op->tag % CW_TAG_STEP == CW_TAG_SIGNAL && last / CW_TAG_STEP >= SIGNAL_NUMBERS_MAX) {
        return refuse(validation, "signal %llu has a number that barriers use",
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
            return refuse(validation, "group %u does not exist or is empty", op->peer);
        }
    } else if (op->peer >= validation->ranks || op->peer == schedule->rank) {
        return refuse(validation, "peer %u is %s", op->peer, op->peer == schedule->rank ? "itself" : "no rank");
    }
    int status = validate_tag(validation);
    if (status != CW_OK) {
        return status;
    }
    bool eager = (op->flags & CW_OP_EAGER) != 0;
    if (op->bytes == 0 && !eager) {
        return refuse(validation, "a direct put has no bytes");
    }
    if (op->kind == CW_OP_WAIT) {
        status = validate_unused(validation, "from", &op->from);
        if (status != CW_OK || (op->bytes == 0 && op->to.buffer == CW_BUFFER_NONE)) {
            return status;
        }
        return validate_written(validation, &op->to, 0, true);
    }
    if (op->bytes != 0 || op->from.buffer != CW_BUFFER_NONE) {
        status = validate_place(validation, "from", &op->from, 0, true);
    }
    if (status != CW_OK) {
        return status;
    }
    return eager ? validate_unused(validation, "to", &op->to) : validate_written(validation, &op->to, 0, false);
}

static int validate_order_op(struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    int status = validate_unused(validation, "from", &op->from);
    if (status == CW_OK) {
        status = validate_unused(validation, "to", &op->to);
    }
    if (status != CW_OK) {
        return status;
    }
    if (op->bytes != 0) {
        return refuse(validation, "moves no bytes, but names %llu", (unsigned long long)op->bytes);
    }
    if (op->kind != CW_OP_BARRIER) {
        return CW_OK;
    }
    if (op->tag >= validation->schedule->barrier_count) {
        return refuse(validation, "number %u, but there are %u barriers", op->tag, validation->schedule->barrier_count);
    }
    uint64_t bit = 1ull << (op->tag % 64);
    if ((validation->barriers_seen[op->tag / 64] & bit) != 0) {
        return refuse(validation, "number %u is there twice", op->tag);
    }
    validation->barriers_seen[op->tag / 64] |= bit;
    return CW_OK;
}

/* What holds for all kinds. */
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
    };
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    bool in_body = validation->repeat != NO_OP && validation->repeat != validation->index;
    if (op->kind < CW_OP_PUT || op->kind > CW_OP_REPEAT) {
        return refuse(validation, "kind %u", op->kind);
    }
    if ((op->flags & ~flags_allowed[op->kind]) != 0) {
        return refuse(validation, "flags %u are not for it", op->flags);
    }
    if (in_body && (op->kind == CW_OP_REPEAT || op->kind == CW_OP_BARRIER || op->blocks != 1)) {
        return refuse(validation, "a body holds no repeat, no barrier and no strided copy");
    }
    if (op->blocks < 1 || (op->blocks > 1 && op->kind != CW_OP_COPY)) {
        return refuse(validation, "%u blocks", op->blocks);
    }
    uint32_t iterations = in_body ? validation->schedule->ops[validation->repeat].iterations : 1;
    if (op->kind != CW_OP_REPEAT && (op->iterations != iterations || op->body_count != 0)) {
        return refuse(validation, "%u iterations of %u ops where %u of none are due", op->iterations, op->body_count,
                      iterations);
    }
    bool may_differ = in_body || op->kind == CW_OP_COPY;
    if (op->bytes > CW_BUFFER_BYTES_MAX || op->last_bytes > op->bytes || (op->last_bytes != op->bytes && !may_differ) ||
        (op->last_bytes == 0 && op->bytes != 0)) {
        return refuse(validation, "the last of its pieces of %llu bytes has %llu", (unsigned long long)op->bytes,
                      (unsigned long long)op->last_bytes);
    }
    if (op->from_stride > CW_BUFFER_BYTES_MAX || op->to_stride > CW_BUFFER_BYTES_MAX ||
        (op->blocks == 1 && (op->from_stride != 0 || op->to_stride != 0))) {
        return refuse(validation, "strides of %llu and %llu bytes", (unsigned long long)op->from_stride,
                      (unsigned long long)op->to_stride);
    }
    return CW_OK;
}

static int validate_repeat(struct validation *validation)
{
    const struct cw_op *op = &validation->schedule->ops[validation->index];
    if (op->iterations < 1 || op->iterations > CW_REPEAT_COUNT_MAX) {
        return refuse(validation, "%u iterations", op->iterations);
    }
    if (op->body_count < 1 || op->body_count >= validation->schedule->op_count - validation->index) {
        return refuse(validation, "a body of %u ops", op->body_count);
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
            return refuse(validation, "moves no bytes");
        }
        return validate_local(validation);
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
    bool in_body = validation->repeat != NO_OP && validation->repeat != validation->index;
    bool same_body = in_body && dependency->op > validation->repeat && dependency->op < validation->body_end;
    if (dependency->op >= validation->schedule->op_count ||
        (dependency->op >= validation->index && !(same_body && dependency->back > 0))) {
        return refuse(validation, "depends on op %u, which is not before it", dependency->op);
    }
    if (dependency->back > CW_BACK_MAX || (dependency->back > 0 && !same_body)) {
        return refuse(validation, "depends on op %u, %u iterations back", dependency->op, dependency->back);
    }
    if (in_body && dependency->op == validation->repeat) {
        return refuse(validation, "depends on its own repeat");
    }
    if ((dependency->flags & ~CW_DEPENDENCY_SENT) != 0) {
        return refuse(validation, "a dependency has flags %u", dependency->flags);
    }
    uint8_t kind = validation->schedule->ops[dependency->op].kind;
    if ((dependency->flags & CW_DEPENDENCY_SENT) != 0 && kind != CW_OP_PUT && kind != CW_OP_MULTICAST) {
        return refuse(validation, "op %u (%s) is never sent", dependency->op, cw_op_kind_name(kind));
    }
    return CW_OK;
}

static int validate_dependencies(const struct validation *validation, uint64_t *total)
{
    const struct cw_schedule *schedule = validation->schedule;
    const struct cw_op *op = &schedule->ops[validation->index];
    if (op->dependency_count > schedule->dependency_count ||
        op->dependency_first > schedule->dependency_count - op->dependency_count) {
        return refuse(validation, "its dependencies lie outside the list");
    }
    *total += op->dependency_count;
    if (*total > schedule->dependency_count) { /* else the work would not be linear in what the schedule names */
        return refuse(validation, "shares dependencies with other ops");
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
        .index = NO_OP,
        .repeat = NO_OP,
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
            validation.repeat = schedule->ops[i].kind == CW_OP_REPEAT ? i : NO_OP;
        }
        status = validate_op(&validation);
        if (status == CW_OK) {
            status = validate_dependencies(&validation, &dependencies_total);
        }
    }
    for (uint32_t i = 0; i < schedule->barrier_count && status == CW_OK; i++) {
        validation.index = NO_OP;
        if ((validation.barriers_seen[i / 64] >> (i % 64) & 1) == 0) {
            status = refuse(&validation, "barrier %u is missing", i);
        }
    }
    return status;
}

int cw_plan_validate(const struct cw_plan *plan, char *error, size_t error_bytes)
{
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
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
        int status = cw_schedule_validate(schedule, plan->problem->ranks, buffer_bytes, error, error_bytes);
        if (status != CW_OK) {
            return status;
        }
    }
    return CW_OK;
}
