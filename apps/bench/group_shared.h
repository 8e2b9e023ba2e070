/* Bench group: what its processes share, for the two files that make up the group. */
#ifndef BENCH_GROUP_SHARED_H
#define BENCH_GROUP_SHARED_H

#include "apps/bench/group.h"

/* What a member tells the others, before BENCH_STEP_PORT is reached. */
struct bench_introduction {
    _Atomic uint32_t steps; /* reached so far */
    uint8_t mac[6];
    struct cw_address address; /* before BENCH_STEP_REFERENCE, as is the token */
    uint64_t token;
};

/* All atomics are sequentially consistent: what was written before a step is seen by who sees the step. */
struct bench_group_shared {
    _Atomic uint32_t reached[BENCH_STEP_COUNT]; /* by how many members */
    _Atomic uint64_t start_ns[BENCH_STEP_COUNT];
    struct bench_introduction members[BENCH_GROUP_MEMBERS_MAX];
    _Alignas(64) uint8_t results[];
};

static inline uint64_t bench_group_result_stride(const struct bench_group *group)
{
    return (group->config.result_bytes + 63) & ~63ull;
}

static inline void *bench_group_result_at(const struct bench_group *group, uint32_t member)
{
    return group->shared->results + member * bench_group_result_stride(group);
}

/* A member from its fork to its end; its exit code. */
int bench_member_run(const struct bench_group *group, uint32_t index);

#endif
