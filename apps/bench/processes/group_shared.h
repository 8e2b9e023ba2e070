/* Bench group: the shared memory of its processes, for the two files that make up the group. */
#pragma once

#include <sched.h>

#include "apps/bench/processes/group.h"

/* A member's data for the other member, before BENCH_STEP_PORT is reached. */
struct bench_introduction {
    _Atomic uint32_t steps;    /* reached so far */
    _Atomic uint32_t marks;    /* bench_member_mark */
    _Atomic uint32_t measured; /* bench_member_measure */
    uint8_t mac[6];
    uint8_t key[16];           /* random: that of the second member is the job's */
    struct cw_address address; /* before BENCH_STEP_REFERENCE, as is the token */
    uint64_t token;
};

/* All atomics are sequentially consistent: a process that sees a step also sees all writes before it. */
struct bench_group_shared {
    _Atomic uint32_t reached[BENCH_STEP_COUNT]; /* by how many members */
    struct bench_introduction members[BENCH_MEMBERS];
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

/* ---- two that measure in turn: both set a mark at the end of each phase ---- */

static inline void bench_member_mark(struct bench_member *member)
{
    atomic_store(&member->group->shared->members[member->index].marks, ++member->marks);
}

/* The introduction of the other member. */
static inline struct bench_introduction *bench_member_other(const struct bench_member *member)
{
    return &member->group->shared->members[1 - member->index];
}

/* Whether the other member has ended the phase that this one is in (`ahead` 1), or has just ended (0). */
static inline bool bench_member_marked(const struct bench_member *member, uint32_t ahead)
{
    return atomic_load(&bench_member_other(member)->marks) >= member->marks + ahead;
}

/* A measurement exists in this phase: its senders may stop. */
static inline void bench_member_measure(struct bench_member *member)
{
    atomic_store(&member->group->shared->members[member->index].measured, member->marks + 1);
}

/* Whether the other member has measured something in this phase. */
static inline bool bench_member_measured(const struct bench_member *member)
{
    return atomic_load(&bench_member_other(member)->measured) > member->marks;
}

/* Ends a phase together; the first process ends us if that takes too long. */
static inline void bench_member_meet(struct bench_member *member)
{
    bench_member_mark(member);
    while (!bench_member_marked(member, 0)) {
        sched_yield();
    }
}

/* A member from its fork to its end; its exit code. */
int bench_member_run(const struct bench_group *group, uint32_t index);
