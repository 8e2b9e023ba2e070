/* Levels: calls among the ranks of a host, and schedules of some of the ranks. */
#include <assert.h>
#include <stdlib.h>

#include "collectives/schedule/emit_private.h"
#include "dataplane/status.h"

/* Opens a host op of the ranks of this rank's host; NULL after a failure, and if it is alone there. */
static struct cw_op *host_open(struct cw_emit *emit, enum cw_collective collective, uint32_t root, uint64_t bytes)
{
    const struct cw_problem *problem = emit->problem;
    assert(problem->hosts.count > 0 && emit->repeat == CW_NO_OP);
    uint32_t host = cw_problem_host(problem, emit->rank);
    uint32_t size = cw_problem_host_size(problem, host);
    uint32_t group =
        size > 1 ? emit_group_add(emit, &problem->hosts.members[problem->hosts.first[host]], size) : CW_NO_OP;
    if (size < 2 || emit->status != CW_OK) {
        emit->after_count = 0;
        return NULL;
    }
    if (emit->schedule.host_count == CW_HOST_OPS_MAX) {
        cw_emit_fail(emit, CW_ERROR_LIMIT, "more calls among ranks of a host than a schedule may have");
        return NULL;
    }
    struct cw_op *op = emit_op_open(emit, CW_OP_HOST, bytes);
    if (op != NULL) {
        op->peer = group;
        op->tag = emit->schedule.host_count++;
        op->collective = collective;
        op->root = root;
        emit_dependency_add(emit, emit->host_last, 0);
    }
    return emit->status == CW_OK ? emit_op_last(emit) : NULL;
}

static uint32_t host_close(struct cw_emit *emit)
{
    emit->host_last = emit_op_close(emit);
    return emit->host_last;
}

uint32_t cw_emit_host(struct cw_emit *emit, enum cw_collective collective, uint32_t root, struct cw_place from,
                      struct cw_place to, uint64_t bytes)
{
    struct cw_op *op = bytes > 0 || collective == CW_BARRIER ? host_open(emit, collective, root, bytes) : NULL;
    if (op == NULL) {
        emit->after_count = 0;
        return CW_NO_OP;
    }
    const struct cw_schedule *schedule = &emit->schedule;
    uint32_t members = cw_host_members(schedule, op);
    uint32_t own = cw_host_index(schedule, op, emit->rank), first = cw_host_index(schedule, op, root);
    uint64_t read = bytes * cw_host_blocks_read(collective, members, own, first);
    uint64_t written = bytes * cw_host_blocks_written(collective, members, own, first);
    if (read > 0) {
        op->from = from;
        emit_access_bytes(emit, from, read, false, true);
    }
    if (written > 0) {
        emit_op_last(emit)->to = to;
        emit_access_bytes(emit, to, written, true, true);
    }
    return host_close(emit);
}

uint32_t cw_emit_host_whole(struct cw_emit *emit)
{
    const struct cw_problem *problem = emit->problem;
    assert(problem->hosts.count == 1 && emit->schedule.op_count == 0);
    struct cw_op *op = host_open(emit, problem->collective, problem->root, 0);
    if (op == NULL) {
        return CW_NO_OP;
    }
    const struct cw_schedule *schedule = &emit->schedule;
    uint32_t members = cw_host_members(schedule, op);
    uint32_t own = cw_host_index(schedule, op, emit->rank), root = cw_host_index(schedule, op, problem->root);
    op->flags = CW_OP_WHOLE;
    if (cw_host_blocks_read(op->collective, members, own, root) > 0) {
        op->from = cw_place(CW_BUFFER_SEND, 0);
    }
    if (cw_host_blocks_written(op->collective, members, own, root) > 0) {
        op->to = cw_place(CW_BUFFER_RECEIVE, 0);
    }
    return host_close(emit);
}

/* ---- A schedule of some of the ranks ---- */

static struct cw_place place_within(const struct cw_place at[4], struct cw_place place)
{
    if (place.buffer == CW_BUFFER_NONE) {
        return place;
    }
    return (struct cw_place){at[place.buffer].buffer, at[place.buffer].offset + place.offset, place.step};
}

static uint32_t group_within(struct cw_emit *emit, const struct cw_schedule *level, uint32_t group,
                             const uint32_t *ranks)
{
    const struct cw_group_range *range = &level->groups[group];
    uint32_t *members = malloc(range->count * sizeof(*members));
    if (members == NULL) {
        cw_emit_fail(emit, CW_ERROR_MEMORY, "no memory for the members of a group");
        return 0;
    }
    for (uint32_t i = 0; i < range->count; i++) {
        members[i] = ranks[level->members[range->first + i]];
    }
    uint32_t added = emit_group_add(emit, members, range->count);
    free(members);
    return added;
}

/* Appends one op; those before it of the same level begin at `first`. */
static void op_append(struct cw_emit *emit, const struct cw_schedule *level, uint32_t index, uint32_t first,
                      const uint32_t *ranks, const struct cw_place at[4], bool in_body)
{
    const struct cw_op *from = &level->ops[index];
    uint32_t peer = from->kind == CW_OP_PUT || from->kind == CW_OP_WAIT ? ranks[from->peer]
                    : from->kind == CW_OP_MULTICAST                     ? group_within(emit, level, from->peer, ranks)
                                                                        : 0;
    uint32_t fence = emit->fence;
    if (from->dependency_count > 0 || in_body) {
        emit->fence = CW_NO_OP; /* its dependencies, or the repeat, have waited for the fence */
    }
    struct cw_op *op = emit_op_open(emit, (enum cw_op_kind)from->kind, from->bytes);
    emit->fence = fence;
    if (op == NULL) {
        return;
    }
    uint32_t dependency_first = op->dependency_first, dependency_count = op->dependency_count;
    *op = *from;
    op->peer = peer;
    op->from = place_within(at, from->from);
    op->to = place_within(at, from->to);
    op->phase = (uint16_t)(from->phase + emit->phase);
    op->dependency_first = dependency_first;
    op->dependency_count = dependency_count;
    for (uint32_t i = 0; i < from->dependency_count; i++) {
        const struct cw_dependency *dependency = &level->dependencies[from->dependency_first + i];
        (void)emit_dependency_append(emit, first + dependency->op, dependency->back, dependency->flags);
    }
}

void cw_emit_level(struct cw_emit *emit, const struct cw_schedule *level, const uint32_t *ranks,
                   const struct cw_place at[4])
{
    uint32_t body_end = 0;
    if (level->barrier_count > 0 || level->host_count > 0) {
        cw_emit_fail(emit, CW_ERROR_UNSUPPORTED, "a level has no barriers and no levels of its own");
    }
    uint32_t first = emit->schedule.op_count;
    for (uint32_t i = 0; i < level->op_count && emit->status == CW_OK; i++) {
        op_append(emit, level, i, first, ranks, at, i < body_end);
        if (level->ops[i].kind == CW_OP_REPEAT) {
            body_end = i + 1 + level->ops[i].body_count;
        }
    }
}
