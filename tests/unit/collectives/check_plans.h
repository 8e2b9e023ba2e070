/* Plans written by hand, for the tests of the checker: op after op, each followed by what it waits for.
 *
 *   plan_begin, { an op (put, wait, ...), { plan_after* }* }*, plan_expect or plan_passes, plan_end
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "collectives/check/check.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { PLAN_OPS = 64, PLAN_DEPENDENCIES = 256, PLAN_MEMBERS = 64, PLAN_GROUPS = 8 };

struct plan_rank {
    struct cw_op ops[PLAN_OPS];
    struct cw_dependency dependencies[PLAN_DEPENDENCIES];
    struct cw_group_range groups[PLAN_GROUPS];
    uint32_t members[PLAN_MEMBERS];
    uint32_t body_left;
    uint32_t iterations;
};

struct test_plan {
    struct cw_plan plan;
    struct plan_rank *ranks;
    struct cw_check_report report;
};

#define SEND(at)    ((struct cw_place){.buffer = CW_BUFFER_SEND, .offset = (at)})
#define RECEIVE(at) ((struct cw_place){.buffer = CW_BUFFER_RECEIVE, .offset = (at)})
#define SCRATCH(at) ((struct cw_place){.buffer = CW_BUFFER_SCRATCH, .offset = (at)})
#define NOWHERE     ((struct cw_place){0})

static inline void plan_begin(struct test_plan *test, const struct cw_problem_request *request)
{
    char error[200] = "";
    memset(test, 0, sizeof(*test));
    assert_int_equal(cw_problem_create(request, &test->plan.problem, error, sizeof(error)), CW_OK);
    test->plan.schedules = calloc(request->ranks, sizeof(*test->plan.schedules));
    test->ranks = calloc(request->ranks, sizeof(*test->ranks));
    for (uint32_t i = 0; i < request->ranks; i++) {
        test->plan.schedules[i] = (struct cw_schedule){.rank = i,
                                                       .promise = {.wan_bytes = UINT64_MAX},
                                                       .ops = test->ranks[i].ops,
                                                       .dependencies = test->ranks[i].dependencies,
                                                       .groups = test->ranks[i].groups,
                                                       .members = test->ranks[i].members};
    }
}

/* A plan of `ranks` ranks for vectors or blocks of `count` bytes. */
static inline void plan_begin_simple(struct test_plan *test, enum cw_collective collective, uint32_t ranks,
                                     uint64_t count)
{
    plan_begin(test, &(struct cw_problem_request){
                         .collective = collective, .ranks = ranks, .element_bytes = 1, .count = count});
}

static inline void plan_scratch(struct test_plan *test, uint64_t bytes)
{
    for (uint32_t i = 0; i < test->plan.problem->ranks; i++) {
        test->plan.schedules[i].scratch_bytes = bytes;
    }
}

static inline void plan_promise(struct test_plan *test, struct cw_promise promise)
{
    for (uint32_t i = 0; i < test->plan.problem->ranks; i++) {
        test->plan.schedules[i].promise = promise;
    }
}

/* Makes the rank's last op wait for another one. */
static inline void plan_after_flags(struct test_plan *test, uint32_t rank, uint32_t op, uint16_t back, uint16_t flags)
{
    struct cw_schedule *schedule = &test->plan.schedules[rank];
    assert_true(schedule->dependency_count < PLAN_DEPENDENCIES);
    schedule->dependencies[schedule->dependency_count++] =
        (struct cw_dependency){.op = op, .back = back, .flags = flags};
    schedule->ops[schedule->op_count - 1].dependency_count++;
}

static inline void plan_after(struct test_plan *test, uint32_t rank, uint32_t op)
{
    plan_after_flags(test, rank, op, 0, 0);
}

/* Puts an op at the end of a rank's; fills in what follows from where it is. Returns its index. */
static inline uint32_t plan_add(struct test_plan *test, uint32_t rank, struct cw_op op)
{
    struct cw_schedule *schedule = &test->plan.schedules[rank];
    struct plan_rank *own = &test->ranks[rank];
    assert_true(schedule->op_count < PLAN_OPS);
    op.dependency_first = schedule->dependency_count;
    op.blocks = op.blocks == 0 ? 1 : op.blocks;
    op.last_bytes = op.last_bytes == 0 ? op.bytes : op.last_bytes;
    if (op.kind == CW_OP_REPEAT) {
        own->body_left = op.body_count;
        own->iterations = op.iterations;
    } else if (own->body_left > 0) {
        own->body_left--;
        op.iterations = own->iterations;
    } else {
        op.iterations = 1;
    }
    schedule->ops[schedule->op_count] = op;
    return schedule->op_count++;
}

static inline struct cw_op *plan_last(struct test_plan *test, uint32_t rank)
{
    return &test->plan.schedules[rank].ops[test->plan.schedules[rank].op_count - 1];
}

static inline uint32_t put(struct test_plan *test, uint32_t rank, uint32_t peer, uint32_t tag, struct cw_place from,
                           struct cw_place to, uint64_t bytes)
{
    uint8_t flags = to.buffer == CW_BUFFER_NONE ? CW_OP_EAGER : 0;
    return plan_add(test, rank,
                    (struct cw_op){.kind = CW_OP_PUT,
                                   .flags = flags,
                                   .peer = peer,
                                   .tag = tag * CW_TAG_STEP,
                                   .from = from,
                                   .to = to,
                                   .bytes = bytes});
}

static inline uint32_t wait_kind(struct test_plan *test, uint32_t rank, uint32_t peer, uint32_t tag, struct cw_place to,
                                 uint64_t bytes, uint8_t flags)
{
    return plan_add(
        test, rank,
        (struct cw_op){
            .kind = CW_OP_WAIT, .flags = flags, .peer = peer, .tag = tag * CW_TAG_STEP, .to = to, .bytes = bytes});
}

static inline uint32_t wait_direct(struct test_plan *test, uint32_t rank, uint32_t peer, uint32_t tag,
                                   struct cw_place to, uint64_t bytes)
{
    return wait_kind(test, rank, peer, tag, to, bytes, 0);
}

static inline uint32_t wait_eager(struct test_plan *test, uint32_t rank, uint32_t peer, uint32_t tag,
                                  struct cw_place to, uint64_t bytes)
{
    return wait_kind(test, rank, peer, tag, to, bytes, CW_OP_EAGER);
}

static inline uint32_t signal_to(struct test_plan *test, uint32_t rank, uint32_t peer, uint32_t tag)
{
    return put(test, rank, peer, tag, NOWHERE, NOWHERE, 0);
}

static inline uint32_t wait_signal(struct test_plan *test, uint32_t rank, uint32_t peer, uint32_t tag)
{
    return wait_eager(test, rank, peer, tag, NOWHERE, 0);
}

static inline uint32_t copy(struct test_plan *test, uint32_t rank, struct cw_place from, struct cw_place to,
                            uint64_t bytes)
{
    return plan_add(test, rank, (struct cw_op){.kind = CW_OP_COPY, .from = from, .to = to, .bytes = bytes});
}

/* to = to OP from, or with `left` from OP to. */
static inline uint32_t reduce(struct test_plan *test, uint32_t rank, struct cw_place from, struct cw_place to,
                              uint64_t bytes, bool left)
{
    return plan_add(
        test, rank,
        (struct cw_op){.kind = CW_OP_REDUCE, .flags = left ? CW_OP_LEFT : 0, .from = from, .to = to, .bytes = bytes});
}

static inline uint32_t join(struct test_plan *test, uint32_t rank)
{
    return plan_add(test, rank, (struct cw_op){.kind = CW_OP_JOIN});
}

static inline uint32_t repeat(struct test_plan *test, uint32_t rank, uint32_t body_count, uint32_t iterations)
{
    return plan_add(test, rank,
                    (struct cw_op){.kind = CW_OP_REPEAT, .body_count = body_count, .iterations = iterations});
}

static inline uint32_t barrier(struct test_plan *test, uint32_t rank, uint32_t number)
{
    struct cw_schedule *schedule = &test->plan.schedules[rank];
    schedule->barrier_count = number >= schedule->barrier_count ? number + 1 : schedule->barrier_count;
    return plan_add(test, rank, (struct cw_op){.kind = CW_OP_BARRIER, .tag = number});
}

/* A multicast to `count` ranks from `first` on; eager if `to` is nowhere. */
static inline uint32_t multicast(struct test_plan *test, uint32_t rank, uint32_t first, uint32_t count, uint32_t tag,
                                 struct cw_place from, struct cw_place to, uint64_t bytes)
{
    struct cw_schedule *schedule = &test->plan.schedules[rank];
    schedule->groups[schedule->group_count] = (struct cw_group_range){.first = schedule->member_count, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        schedule->members[schedule->member_count++] = first + i;
    }
    uint32_t op = put(test, rank, schedule->group_count++, tag, from, to, bytes);
    schedule->ops[op].kind = CW_OP_MULTICAST;
    return op;
}

/* Checks that the verdict is `fault` at that place, and ends the plan. */
static inline void plan_expect(struct test_plan *test, enum cw_check_fault fault, uint32_t rank, uint32_t op)
{
    assert_int_equal(cw_check(&test->plan, &test->report), CW_OK);
    if (test->report.fault != fault || test->report.rank != rank || test->report.op != op) {
        fail_msg("expected %s at rank %d, op %d, but: %s at rank %d, op %d: %s", cw_check_fault_name(fault), (int)rank,
                 (int)op, cw_check_fault_name(test->report.fault), (int)test->report.rank, (int)test->report.op,
                 test->report.text);
    }
    if (getenv("CHECK_SHOW") != NULL) {
        print_message("%s: %s\n", cw_check_fault_name(fault), test->report.text);
    }
    assert_null(strchr(test->report.text, '\n'));
    assert_true(strlen(test->report.text) > 5);
    cw_problem_destroy(test->plan.problem);
    free(test->plan.schedules);
    free(test->ranks);
    test->plan.schedules = NULL;
}

static inline void plan_passes(struct test_plan *test)
{
    plan_expect(test, CW_CHECK_PASSED, UINT32_MAX, UINT32_MAX);
}
