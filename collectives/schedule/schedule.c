#include "collectives/schedule/schedule.h"

#include <stdlib.h>
#include <string.h>

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
        [CW_OP_PUT] = "put",       [CW_OP_MULTICAST] = "multicast", [CW_OP_WAIT] = "wait", [CW_OP_COPY] = "copy",
        [CW_OP_REDUCE] = "reduce", [CW_OP_BARRIER] = "barrier",     [CW_OP_JOIN] = "join", [CW_OP_REPEAT] = "repeat",
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
