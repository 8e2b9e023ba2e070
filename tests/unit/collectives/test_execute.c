/* The executor on plans written by hand, over any order that the memory transport draws, with any number of eager
 * buffers. */
#include <stdio.h>

#include "apps/plan/trial.h"
#include "check_plans.h"
#include "tests/test.h"

enum { SEEDS = 200 };

static const uint32_t eager_buffers[] = {0, 1, 3, PLAN_TRIAL_EAGER_BUFFERS_MANY};

/* Runs the plan with many seeds and ends it. */
static void runs_well(struct test_plan *test, uint64_t seeds)
{
    char error[800] = "";
    struct plan_trial *trial = NULL;
    if (cw_plan_validate(&test->plan, error, sizeof(error)) != CW_OK ||
        plan_trial_create(&test->plan, 1, &trial, error, sizeof(error)) != 0) {
        fail_msg("%s", error);
    }
    for (uint64_t seed = 0; seed < seeds; seed++) {
        if (plan_trial_run(trial, seed, eager_buffers[seed % 4], error, sizeof(error)) != 0) {
            fail_msg("%s", error);
        }
    }
    plan_trial_destroy(trial);
    cw_problem_destroy(test->plan.problem);
    free(test->plan.schedules);
    free(test->ranks);
}

static struct cw_place stepping(struct cw_place place, uint64_t step)
{
    place.step = step;
    return place;
}

/* An op of a body whose last iteration is shorter. */
static uint32_t last_shorter(struct test_plan *test, uint32_t rank, uint32_t op, uint64_t last_bytes)
{
    plan_last(test, rank)->last_bytes = last_bytes;
    return op;
}

static void test_nothing_to_do(void **state)
{
    struct test_plan test;
    plan_begin_simple(&test, CW_BCAST, 3, 0);
    runs_well(&test, 8);
}

static void test_chain(void **state)
{
    enum { RANKS = 5, BYTES = 100 };
    struct test_plan test;
    plan_begin_simple(&test, CW_BCAST, RANKS, BYTES);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        uint32_t arrived = 0;
        if (rank > 0) {
            signal_to(&test, rank, rank - 1, 1);
            arrived = wait_direct(&test, rank, rank - 1, 0, RECEIVE(0), BYTES);
        }
        if (rank + 1 < RANKS) {
            uint32_t ready = wait_signal(&test, rank, rank + 1, 1);
            put(&test, rank, rank + 1, 0, rank > 0 ? RECEIVE(0) : SEND(0), RECEIVE(0), BYTES);
            plan_after(&test, rank, ready);
            if (rank > 0) {
                plan_after(&test, rank, arrived);
            }
        }
    }
    runs_well(&test, SEEDS);
}

/* Segments down a chain, directly or eagerly; more of them than the window, the last one shorter. */
static void pipelined_chain(bool eager, uint32_t segments)
{
    enum { RANKS = 4, SEGMENT = 12, LAST = 5 };
    struct test_plan test;
    plan_begin_simple(&test, CW_BCAST, RANKS, (segments - 1) * SEGMENT + LAST);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        bool receives = rank > 0;
        bool sends = rank + 1 < RANKS;
        uint32_t ready = UINT32_MAX;
        if (receives && !eager) {
            signal_to(&test, rank, rank - 1, 0);
        }
        if (sends && !eager) {
            ready = wait_signal(&test, rank, rank + 1, 0);
        }
        repeat(&test, rank, (uint32_t)receives + (uint32_t)sends, segments);
        uint32_t arrived = UINT32_MAX;
        if (receives) {
            arrived =
                wait_kind(&test, rank, rank - 1, 1, stepping(RECEIVE(0), SEGMENT), SEGMENT, eager ? CW_OP_EAGER : 0);
            last_shorter(&test, rank, arrived, LAST);
        }
        if (sends) {
            struct cw_place from = stepping(receives ? RECEIVE(0) : SEND(0), SEGMENT);
            uint32_t op = put(&test, rank, rank + 1, 1, from, eager ? NOWHERE : stepping(RECEIVE(0), SEGMENT), SEGMENT);
            last_shorter(&test, rank, op, LAST);
            if (ready != UINT32_MAX) {
                plan_after(&test, rank, ready);
            }
            if (arrived != UINT32_MAX) {
                plan_after(&test, rank, arrived);
            }
        }
    }
    runs_well(&test, SEEDS / 4);
}

static void test_pipelined_chain(void **state)
{
    static const uint32_t segments[] = {1, 2, 7, 8, 9, 63, 64, 65, 129, 500};
    for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
        pipelined_chain(false, segments[i]);
        pipelined_chain(true, segments[i]);
    }
}

/* Every segment goes through one place: what comes in waits for what went out `back` iterations before. */
static void staged(uint32_t segments, uint32_t slots_back)
{
    enum { SEGMENT = 8 };
    struct test_plan test;
    plan_begin_simple(&test, CW_BCAST, 2, segments * SEGMENT);
    plan_scratch(&test, SEGMENT);
    uint32_t loop = repeat(&test, 0, 2, segments);
    copy(&test, 0, stepping(SEND(0), SEGMENT), SCRATCH(0), SEGMENT);
    plan_after_flags(&test, 0, loop + 2, (uint16_t)slots_back, 0); /* a later op of the body */
    uint32_t out = put(&test, 0, 1, 0, SCRATCH(0), NOWHERE, SEGMENT);
    plan_after(&test, 0, loop + 1);
    join(&test, 0);
    plan_after(&test, 0, out); /* all iterations */
    loop = repeat(&test, 1, 2, segments);
    wait_eager(&test, 1, 0, 0, SCRATCH(0), SEGMENT);
    plan_after_flags(&test, 1, loop + 2, (uint16_t)slots_back, 0);
    copy(&test, 1, SCRATCH(0), stepping(RECEIVE(0), SEGMENT), SEGMENT);
    plan_after(&test, 1, loop + 1);
    runs_well(&test, SEEDS / 4);
}

static void test_staged_through_one_place(void **state)
{
    staged(1, 1);
    staged(10, 1);
    staged(200, 1);
}

/* A body that waits for all of another body, and an op that waits for one op in all iterations. */
static void test_bodies_in_order(void **state)
{
    enum { SEGMENT = 4, SEGMENTS = 100 };
    struct test_plan test;
    plan_begin_simple(&test, CW_ALLTOALL, 1, SEGMENT * SEGMENTS);
    plan_scratch(&test, SEGMENT * SEGMENTS);
    uint32_t first = repeat(&test, 0, 1, SEGMENTS);
    uint32_t inner = copy(&test, 0, stepping(SEND(0), SEGMENT), stepping(SCRATCH(0), SEGMENT), SEGMENT);
    uint32_t middle = join(&test, 0);
    plan_after(&test, 0, inner);
    uint32_t second = repeat(&test, 0, 1, 2);
    plan_after(&test, 0, first);
    copy(&test, 0, stepping(SCRATCH(0), SEGMENT * SEGMENTS / 2), stepping(RECEIVE(0), SEGMENT * SEGMENTS / 2),
         SEGMENT * SEGMENTS / 2);
    plan_after(&test, 0, middle);
    plan_after(&test, 0, inner);
    join(&test, 0);
    plan_after(&test, 0, second);
    runs_well(&test, SEEDS);
}

static void test_exchange(void **state)
{
    enum { RANKS = 6, BYTES = 33 };
    struct test_plan test;
    plan_begin_simple(&test, CW_ALLTOALL, RANKS, BYTES);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        copy(&test, rank, SEND(rank * BYTES), RECEIVE(rank * BYTES), BYTES);
        for (uint32_t distance = 1; distance < RANKS; distance++) {
            uint32_t to = (rank + distance) % RANKS;
            uint32_t from = (rank + RANKS - distance) % RANKS;
            bool eager = distance % 2 == 0;
            if (!eager) {
                signal_to(&test, rank, from, 7);
                wait_signal(&test, rank, to, 7);
            }
            uint32_t ready = test.plan.schedules[rank].op_count - 1;
            put(&test, rank, to, 3, SEND(to * BYTES), eager ? NOWHERE : RECEIVE(rank * BYTES), BYTES);
            if (!eager) {
                plan_after(&test, rank, ready);
            }
            wait_kind(&test, rank, from, 3, RECEIVE(from * BYTES), BYTES, eager ? CW_OP_EAGER : 0);
        }
    }
    runs_well(&test, SEEDS);
}

static void test_multicast(void **state)
{
    enum { RANKS = 7, BYTES = 50 };
    for (uint32_t eager = 0; eager < 2; eager++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_BCAST, RANKS, BYTES);
        for (uint32_t rank = 1; rank < RANKS; rank++) {
            if (eager == 0) {
                signal_to(&test, rank, 0, 1);
                wait_signal(&test, 0, rank, 1);
            }
            wait_kind(&test, rank, 0, 0, RECEIVE(0), BYTES, eager != 0 ? CW_OP_EAGER : 0);
        }
        uint32_t ready = join(&test, 0);
        for (uint32_t op = 0; op < ready; op++) {
            plan_after(&test, 0, op);
        }
        multicast(&test, 0, 1, RANKS - 1, 0, SEND(0), eager != 0 ? NOWHERE : RECEIVE(0), BYTES);
        plan_after(&test, 0, ready);
        runs_well(&test, SEEDS);
    }
}

/* The trial sees a rank that leaves before all have come. */
static void test_barriers(void **state)
{
    static const uint32_t ranks[] = {1, 2, 3, 4, 5, 8, 16, 33, 100};
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_BARRIER, ranks[i], 0);
        for (uint32_t rank = 0; rank < ranks[i]; rank++) {
            uint32_t second = barrier(&test, rank, 1); /* in no order of their numbers, and at once */
            uint32_t first = barrier(&test, rank, 0);
            barrier(&test, rank, 2);
            plan_after(&test, rank, first);
            plan_after(&test, rank, second);
        }
        runs_well(&test, SEEDS / 4);
    }
}

/* Rank 0 combines what the others send, the one half from the left and the other half from the right. */
static void test_reduce_left_and_right(void **state)
{
    enum { RANKS = 4, BYTES = 24, MIDDLE = 2 };
    struct test_plan test;
    plan_begin(&test, &(struct cw_problem_request){.collective = CW_REDUCE,
                                                   .ranks = RANKS,
                                                   .root = MIDDLE,
                                                   .element_bytes = 8,
                                                   .ordered = true,
                                                   .count = BYTES / 8});
    plan_scratch(&test, RANKS * BYTES);
    uint32_t arrived[RANKS] = {0};
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        if (rank != MIDDLE) {
            put(&test, rank, MIDDLE, 0, SEND(0), NOWHERE, BYTES);
            arrived[rank] = wait_eager(&test, MIDDLE, rank, 0, SCRATCH(rank * BYTES), BYTES);
        }
    }
    uint32_t last = copy(&test, MIDDLE, SEND(0), RECEIVE(0), BYTES);
    for (uint32_t i = 0; i < RANKS - 1; i++) {
        static const uint32_t order[] = {1, 3, 0}; /* neighbours first */
        uint32_t rank = order[i];
        uint32_t op = reduce(&test, MIDDLE, SCRATCH(rank * BYTES), RECEIVE(0), BYTES, rank < MIDDLE);
        plan_after(&test, MIDDLE, last);
        plan_after(&test, MIDDLE, arrived[rank]);
        last = op;
    }
    runs_well(&test, SEEDS);
}

/* Each put starts when the one before has left, or is complete if nobody says that it has left. */
static void test_sent(void **state)
{
    enum { RANKS = 6, BYTES = 20, SEGMENTS = 90 };
    struct test_plan test;
    plan_begin_simple(&test, CW_SCATTER, RANKS, BYTES);
    copy(&test, 0, SEND(0), RECEIVE(0), BYTES);
    for (uint32_t rank = 1; rank < RANKS; rank++) {
        uint32_t op = put(&test, 0, rank, 0, SEND(rank * BYTES), NOWHERE, BYTES);
        if (rank > 1) {
            plan_after_flags(&test, 0, op - 1, 0, CW_DEPENDENCY_SENT);
        }
        wait_eager(&test, rank, 0, 0, RECEIVE(0), BYTES);
    }
    runs_well(&test, SEEDS);
    plan_begin_simple(&test, CW_BCAST, 3, BYTES * SEGMENTS);
    uint32_t loop = repeat(&test, 0, 2, SEGMENTS);
    put(&test, 0, 1, 0, stepping(SEND(0), BYTES), NOWHERE, BYTES);
    plan_after_flags(&test, 0, loop + 2, 2, CW_DEPENDENCY_SENT);
    put(&test, 0, 2, 0, stepping(SEND(0), BYTES), NOWHERE, BYTES);
    plan_after_flags(&test, 0, loop + 1, 0, CW_DEPENDENCY_SENT);
    plan_after_flags(&test, 0, loop + 2, 1, CW_DEPENDENCY_SENT); /* itself */
    join(&test, 0);
    plan_after_flags(&test, 0, loop + 2, 0, CW_DEPENDENCY_SENT); /* all iterations */
    for (uint32_t rank = 1; rank < 3; rank++) {
        repeat(&test, rank, 1, SEGMENTS);
        wait_eager(&test, rank, 0, 0, stepping(RECEIVE(0), BYTES), BYTES);
    }
    runs_well(&test, SEEDS);
}

static void test_strided_copies(void **state)
{
    enum { BLOCKS = 5, BLOCK = 6, LAST = 2, TOTAL = (BLOCKS - 1) * BLOCK + LAST };
    struct test_plan test;
    plan_begin_simple(&test, CW_ALLGATHER, 1, TOTAL);
    plan_scratch(&test, 100);
    plan_add(&test, 0,
             (struct cw_op){.kind = CW_OP_COPY,
                            .blocks = BLOCKS,
                            .bytes = BLOCK,
                            .last_bytes = LAST,
                            .from = SEND(0),
                            .from_stride = BLOCK,
                            .to = SCRATCH(3),
                            .to_stride = 20});
    plan_add(&test, 0,
             (struct cw_op){.kind = CW_OP_COPY,
                            .blocks = BLOCKS,
                            .bytes = BLOCK,
                            .last_bytes = LAST,
                            .from = SCRATCH(3),
                            .from_stride = 20,
                            .to = SCRATCH(9),
                            .to_stride = 20});
    plan_after(&test, 0, 0);
    plan_add(&test, 0,
             (struct cw_op){.kind = CW_OP_COPY,
                            .blocks = BLOCKS,
                            .bytes = BLOCK,
                            .last_bytes = LAST,
                            .from = SCRATCH(9),
                            .from_stride = 20,
                            .to = RECEIVE(0),
                            .to_stride = BLOCK});
    plan_after(&test, 0, 1);
    runs_well(&test, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_to_do),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_pipelined_chain),
        cmocka_unit_test(test_staged_through_one_place),
        cmocka_unit_test(test_bodies_in_order),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_multicast),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_reduce_left_and_right),
        cmocka_unit_test(test_sent),
        cmocka_unit_test(test_strided_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
