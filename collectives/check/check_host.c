/* check: calls among the ranks of a host. */
#include "collectives/check/state.h"

struct check_host check_host_of(const struct check *check, uint32_t instance)
{
    const struct cw_schedule *schedule = &check->plan->schedules[check_rank(check, instance)];
    const struct cw_op *op = check_op(check, check->instance_op[instance]);
    bool is_whole = (op->flags & CW_OP_WHOLE) != 0;
    return (struct check_host){
        .schedule = schedule,
        .op = op,
        .counts = is_whole ? check->problem : NULL,
        .members = cw_host_members(schedule, op),
        .index = cw_host_index(schedule, op, schedule->rank),
        .root = cw_collective_rooted((enum cw_collective)op->collective) ? cw_host_index(schedule, op, op->root) : 0,
    };
}

uint32_t check_host_instance(const struct check *check, const struct check_host *host, uint32_t index)
{
    uint32_t rank = cw_host_rank(host->schedule, host->op, index);
    return check->host_instances[(size_t)host->op->tag * check->ranks + rank];
}

uint64_t check_host_bytes(const struct check_host *host, uint32_t first, uint32_t count)
{
    if (host->counts == NULL) {
        return count * host->op->bytes;
    }
    if (!cw_collective_accepts_counts(host->counts->collective)) {
        return count * host->counts->count * host->counts->element_bytes;
    }
    uint64_t bytes = 0;
    for (uint32_t i = first; i < first + count; i++) {
        bytes += host->counts->collective == CW_ALLTOALL ? cw_problem_pair_bytes(host->counts, host->index, i)
                                                         : cw_problem_block_bytes(host->counts, i);
    }
    return bytes;
}

uint64_t check_host_read(const struct check_host *host)
{
    uint32_t blocks = cw_host_blocks_read(host->op->collective, host->members, host->index, host->root);
    return check_host_bytes(host, blocks == 1 ? host->index : 0, blocks);
}

uint64_t check_host_written(const struct check_host *host)
{
    uint32_t blocks = cw_host_blocks_written(host->op->collective, host->members, host->index, host->root);
    if (host->counts != NULL && host->op->collective == CW_ALLTOALL) {
        return cw_problem_pair_receive_offset(host->counts, host->members, host->schedule->rank);
    }
    return check_host_bytes(host, blocks == 1 ? host->index : 0, blocks);
}

/* ---- Whether all ranks agree ---- */

/* Whether both name the same call of the same ranks. */
static bool is_same(const struct check_host *one, const struct check_host *other)
{
    bool same = one->members == other->members && one->op->collective == other->op->collective &&
                one->op->root == other->op->root && one->op->bytes == other->op->bytes &&
                one->op->flags == other->op->flags;
    for (uint32_t i = 0; same && i < one->members; i++) {
        same = cw_host_rank(one->schedule, one->op, i) == cw_host_rank(other->schedule, other->op, i);
    }
    return same;
}

/* Compares it with that of its first rank. */
static int host_validate(struct check *check, uint32_t instance)
{
    struct check_host host = check_host_of(check, instance);
    for (uint32_t i = 0; i < host.members; i++) {
        if (check_host_instance(check, &host, i) == CHECK_NONE) {
            return check_fail(check, CW_CHECK_HOST, instance, UINT64_MAX, "rank %u has no host op %u",
                              cw_host_rank(host.schedule, host.op, i), host.op->tag);
        }
    }
    uint32_t first = check_host_instance(check, &host, 0);
    struct check_host its = check_host_of(check, first);
    if (!is_same(&host, &its)) {
        return check_fail(check, CW_CHECK_HOST, instance, UINT64_MAX, "%s is another call",
                          check_name(check, first).text);
    }
    if (host.counts != NULL && host.counts->collective != (enum cw_collective)host.op->collective) {
        return check_fail(check, CW_CHECK_HOST, instance, UINT64_MAX, "the whole problem, but that is %s",
                          cw_collective_name(host.counts->collective));
    }
    if (cw_collective_reduces((enum cw_collective)host.op->collective) && !check->reduces) {
        return check_fail(check, CW_CHECK_WRONG_REDUCTION, instance, UINT64_MAX, "this collective only moves data");
    }
    return CW_OK;
}

int check_hosts(struct check *check)
{
    for (uint32_t rank = 0; rank < check->ranks; rank++) {
        uint32_t count = check->plan->schedules[rank].host_count;
        check->host_count = count > check->host_count ? count : check->host_count;
    }
    if (check->host_count == 0) {
        return CW_OK;
    }
    size_t places = (size_t)check->host_count * check->ranks;
    check->host_instances = check_allocate(&check->arena, places, sizeof(uint32_t));
    if (check->host_instances == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (size_t i = 0; i < places; i++) {
        check->host_instances[i] = CHECK_NONE;
    }
    for (uint32_t op = 0; op < check->op_count; op++) {
        if (check_op(check, op)->kind == CW_OP_HOST) {
            check->host_instances[(size_t)check_op(check, op)->tag * check->ranks + check->op_rank[op]] =
                check->op_first_instance[op];
        }
    }
    int status = CW_OK;
    for (size_t i = 0; i < places && status == CW_OK; i++) {
        status = check->host_instances[i] != CHECK_NONE ? host_validate(check, check->host_instances[i]) : CW_OK;
    }
    return status;
}
