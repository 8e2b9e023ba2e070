#include "collectives/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "collectives/schedule/problem.h"

void cw_schedule_dispose(struct cw_schedule *schedule)
{
    free(schedule->ops);
    free(schedule->dependencies);
    free(schedule->groups);
    free(schedule->members);
    memset(schedule, 0, sizeof(*schedule));
}

uint64_t cw_schedule_memory_bytes(const struct cw_schedule *schedule)
{
    return sizeof(*schedule) + schedule->op_count * sizeof(*schedule->ops) +
           schedule->dependency_count * sizeof(*schedule->dependencies) +
           schedule->group_count * sizeof(*schedule->groups) + schedule->member_count * sizeof(*schedule->members);
}

const char *cw_op_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [CW_OP_PUT] = "put",   [CW_OP_MULTICAST] = "multicast", [CW_OP_WAIT] = "wait",
        [CW_OP_COPY] = "copy", [CW_OP_REDUCE] = "reduce",       [CW_OP_BARRIER] = "barrier",
        [CW_OP_JOIN] = "join", [CW_OP_REPEAT] = "repeat",       [CW_OP_HOST] = "host",
    };
    return kind < sizeof(names) / sizeof(names[0]) && names[kind] != NULL ? names[kind] : "unknown op";
}

const char *cw_buffer_name(uint32_t buffer)
{
    static const char *const names[] = {
        [CW_BUFFER_NONE] = "none",
        [CW_BUFFER_SEND] = "send",
        [CW_BUFFER_RECEIVE] = "receive",
        [CW_BUFFER_SCRATCH] = "scratch",
    };
    return buffer < sizeof(names) / sizeof(names[0]) ? names[buffer] : "unknown buffer";
}

/* ---- Host ops ---- */

uint32_t cw_host_blocks_read(uint32_t collective, uint32_t members, uint32_t index, uint32_t root)
{
    switch (collective) {
    case CW_BARRIER:
        return 0;
    case CW_BCAST:
        return index == root ? 1 : 0;
    case CW_SCATTER:
        return index == root ? members : 0;
    case CW_ALLTOALL:
    case CW_REDUCE_SCATTER:
        return members;
    default:
        return 1;
    }
}

uint32_t cw_host_blocks_written(uint32_t collective, uint32_t members, uint32_t index, uint32_t root)
{
    switch (collective) {
    case CW_BARRIER:
        return 0;
    case CW_BCAST:
        return index != root ? 1 : 0;
    case CW_GATHER:
        return index == root ? members : 0;
    case CW_ALLGATHER:
    case CW_ALLTOALL:
        return members;
    case CW_REDUCE:
        return index == root ? 1 : 0;
    case CW_EXSCAN:
        return index > 0 ? 1 : 0;
    default:
        return 1;
    }
}

bool cw_host_needs(uint32_t collective, uint32_t to, uint32_t from, uint32_t root)
{
    switch (collective) {
    case CW_BCAST:
    case CW_SCATTER:
        return from == root;
    case CW_GATHER:
    case CW_REDUCE:
        return to == root;
    case CW_SCAN:
        return from <= to;
    case CW_EXSCAN:
        return from < to;
    default:
        return true;
    }
}

uint32_t cw_host_index(const struct cw_schedule *schedule, const struct cw_op *op, uint32_t rank)
{
    const struct cw_group_range *group = &schedule->groups[op->peer];
    uint32_t index = schedule->rank < rank ? 1 : 0;
    for (uint32_t i = 0; i < group->count; i++) {
        index += schedule->members[group->first + i] < rank ? 1 : 0;
    }
    return index;
}

uint32_t cw_host_rank(const struct cw_schedule *schedule, const struct cw_op *op, uint32_t index)
{
    const uint32_t *others = &schedule->members[schedule->groups[op->peer].first];
    uint32_t own = cw_host_index(schedule, op, schedule->rank);
    return index == own ? schedule->rank : others[index < own ? index : index - 1];
}
