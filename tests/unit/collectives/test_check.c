/* The checker: what is told about messages, deadlocks, barriers, who has entered, bytes that nobody wrote, and strided
 * copies. The mutants of tests/schedules show that it finds races and wrong results. */
#include "check_plans.h"
#include "tests/test.h"

enum { NONE = UINT32_MAX };

/* Rank 1 says that it is there, then gets 8 bytes straight into its receive buffer. */
static void begin_direct(struct test_plan *test)
{
    plan_begin_simple(test, CW_BCAST, 2, 8);
    uint32_t ready = wait_signal(test, 0, 1, 1);
    put(test, 0, 1, 2, SEND(0), RECEIVE(0), 8);
    plan_after(test, 0, ready);
    signal_to(test, 1, 0, 1);
    wait_direct(test, 1, 0, 2, RECEIVE(0), 8);
}

static void test_direct_passes(void **state)
{
    struct test_plan test;
    begin_direct(&test);
    plan_passes(&test);
}

static void test_names(void **state)
{
    for (uint32_t i = 0; i < CW_CHECK_FAULT_COUNT; i++) {
        assert_string_not_equal(cw_check_fault_name(i), "unknown fault");
        for (uint32_t k = 0; k < i; k++) {
            assert_string_not_equal(cw_check_fault_name(i), cw_check_fault_name(k));
        }
    }
    assert_string_equal(cw_check_fault_name(CW_CHECK_FAULT_COUNT), "unknown fault");
}

static void test_invalid(void **state)
{
    struct test_plan test;
    begin_direct(&test);
    test.ranks[0].ops[1].peer = 2;
    plan_expect(&test, CW_CHECK_INVALID, 0, 1);
    begin_direct(&test);
    test.ranks[0].ops[1].to = SEND(0);
    plan_expect(&test, CW_CHECK_INVALID, 0, 1);
    begin_direct(&test);
    test.ranks[1].ops[1].to.offset = 1;
    plan_expect(&test, CW_CHECK_INVALID, 1, 1);
}

static void test_tag_reused(void **state)
{
    struct test_plan test;
    plan_begin_simple(&test, CW_BCAST, 2, 8);
    put(&test, 0, 1, 2, SEND(0), NOWHERE, 4);
    put(&test, 0, 1, 2, SEND(4), NOWHERE, 4);
    wait_eager(&test, 1, 0, 2, RECEIVE(0), 4);
    wait_eager(&test, 1, 0, 2, RECEIVE(4), 4);
    plan_expect(&test, CW_CHECK_TAG_REUSED, 0, 1);
    /* The iterations of a body count their tags up, into that of another put. */
    plan_begin_simple(&test, CW_BCAST, 2, 8);
    put(&test, 0, 1, 3, SEND(0), NOWHERE, 4);
    repeat(&test, 0, 1, 4);
    put(&test, 0, 1, 2, SEND(4), NOWHERE, 1);
    plan_expect(&test, CW_CHECK_TAG_REUSED, 0, 2);
    assert_int_equal(test.report.iteration, 1);
}

static void test_unmatched(void **state)
{
    struct test_plan test;
    begin_direct(&test);
    test.plan.schedules[1].op_count = 1;
    plan_expect(&test, CW_CHECK_UNMATCHED_PUT, 0, 1);
    begin_direct(&test);
    test.plan.schedules[0].op_count = 1;
    plan_expect(&test, CW_CHECK_UNMATCHED_WAIT, 1, 1);
    begin_direct(&test);
    test.ranks[1].ops[1].tag += CW_TAG_STEP;
    plan_expect(&test, CW_CHECK_UNMATCHED_WAIT, 1, 1);
    begin_direct(&test); /* a second wait for the same put */
    wait_direct(&test, 1, 0, 2, RECEIVE(0), 8);
    plan_expect(&test, CW_CHECK_UNMATCHED_WAIT, 1, 2);
    plan_begin_simple(&test, CW_BCAST, 3, 8); /* a multicast that one of its members does not wait for */
    multicast(&test, 0, 1, 2, 1, SEND(0), NOWHERE, 8);
    wait_eager(&test, 1, 0, 1, RECEIVE(0), 8);
    plan_expect(&test, CW_CHECK_UNMATCHED_PUT, 0, 0);
}

static void test_mismatch(void **state)
{
    struct test_plan test;
    begin_direct(&test);
    test.ranks[1].ops[1].bytes = 4;
    test.ranks[1].ops[1].last_bytes = 4;
    plan_expect(&test, CW_CHECK_MISMATCH, 0, 1);
    begin_direct(&test);
    test.ranks[1].ops[1].flags = CW_OP_EAGER;
    plan_expect(&test, CW_CHECK_MISMATCH, 0, 1);
    begin_direct(&test);
    plan_scratch(&test, 8);
    test.ranks[1].ops[1].to = SCRATCH(0);
    plan_expect(&test, CW_CHECK_MISMATCH, 0, 1);
    begin_direct(&test);
    plan_scratch(&test, 16);
    test.ranks[0].ops[1].to = SCRATCH(8);
    test.ranks[1].ops[1].to = SCRATCH(4);
    plan_expect(&test, CW_CHECK_MISMATCH, 0, 1);
}

static void test_out_of_bounds(void **state)
{
    struct test_plan test;
    begin_direct(&test);
    test.ranks[0].ops[1].to.offset = 1;
    plan_expect(&test, CW_CHECK_OUT_OF_BOUNDS, 0, 1);
    assert_int_equal(test.report.byte, 1);
    begin_direct(&test);
    test.plan.schedules[1].scratch_bytes = 7;
    test.ranks[0].ops[1].to = SCRATCH(0);
    plan_expect(&test, CW_CHECK_OUT_OF_BOUNDS, 0, 1);
}

/* ---- who has entered ---- */

static void test_not_ready(void **state)
{
    struct test_plan test;
    begin_direct(&test);
    test.ranks[0].ops[1].dependency_count = 0;
    plan_expect(&test, CW_CHECK_NOT_READY, 0, 1);
    /* Rank 2 is known to have entered, rank 1 is not: a multicast needs both. */
    for (uint32_t signals = 1; signals <= 2; signals++) {
        plan_begin_simple(&test, CW_BCAST, 3, 8);
        for (uint32_t i = 0; i < 2; i++) {
            wait_signal(&test, 0, 2 - i, 1);
            signal_to(&test, 2 - i, 0, 1);
            wait_direct(&test, 2 - i, 0, 2, RECEIVE(0), 8);
        }
        multicast(&test, 0, 1, 2, 2, SEND(0), RECEIVE(0), 8);
        for (uint32_t i = 0; i < signals; i++) {
            plan_after(&test, 0, i);
        }
        if (signals == 1) {
            plan_expect(&test, CW_CHECK_NOT_READY, 0, 2);
            assert_non_null(strstr(test.report.text, "rank 1 may not"));
        } else {
            plan_passes(&test);
        }
    }
}

/* That a target has entered may be known from somebody else. */
static void test_ready_over_others(void **state)
{
    struct test_plan test;
    plan_begin_simple(&test, CW_BCAST, 3, 8);
    signal_to(&test, 2, 1, 1);
    wait_direct(&test, 2, 0, 3, RECEIVE(0), 8);
    uint32_t heard = wait_signal(&test, 1, 2, 1);
    signal_to(&test, 1, 0, 2);
    plan_after(&test, 1, heard);
    wait_direct(&test, 1, 0, 3, RECEIVE(0), 8);
    uint32_t ready = wait_signal(&test, 0, 1, 2);
    multicast(&test, 0, 1, 2, 3, SEND(0), RECEIVE(0), 8);
    plan_after(&test, 0, ready);
    plan_passes(&test);
}

/* ---- deadlocks ---- */

static void test_deadlock(void **state)
{
    struct test_plan test;
    plan_begin_simple(&test, CW_ALLGATHER, 2, 4);
    for (uint32_t rank = 0; rank < 2; rank++) { /* both wait first */
        copy(&test, rank, SEND(0), RECEIVE(4 * rank), 4);
        uint32_t got = wait_eager(&test, rank, 1 - rank, 1, RECEIVE(4 * (1 - rank)), 4);
        put(&test, rank, 1 - rank, 1, SEND(0), NOWHERE, 4);
        plan_after(&test, rank, got);
    }
    plan_expect(&test, CW_CHECK_DEADLOCK, 0, 1);
    assert_non_null(strstr(test.report.text, "op 2 of rank 1"));
}

/* Both put first: that works as long as the puts find buffers. The first wait that waits for its own put to have been
 * sent does not. */
static void test_deadlock_without_buffers(void **state)
{
    for (uint32_t flags = 0; flags <= CW_DEPENDENCY_SENT; flags++) {
        for (uint32_t ordered = 0; ordered <= 2; ordered++) { /* how many ranks put before they wait */
            struct test_plan test;
            plan_begin_simple(&test, CW_ALLGATHER, 2, 4);
            for (uint32_t rank = 0; rank < 2; rank++) {
                copy(&test, rank, SEND(0), RECEIVE(4 * rank), 4);
                put(&test, rank, 1 - rank, 1, SEND(0), NOWHERE, 4);
                wait_eager(&test, rank, 1 - rank, 1, RECEIVE(4 * (1 - rank)), 4);
                if (rank < ordered) {
                    plan_after_flags(&test, rank, 1, 0, (uint16_t)flags);
                }
            }
            if (ordered == 2) {
                plan_expect(&test, CW_CHECK_DEADLOCK, 0, flags == 0 ? 1 : 2);
            } else {
                plan_passes(&test);
            }
        }
    }
}

/* The same inside and after a body: what waits for the body waits for all iterations. */
static void test_deadlock_after_body(void **state)
{
    for (uint32_t flags = 0; flags <= CW_DEPENDENCY_SENT; flags++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_ALLGATHER, 2, 4);
        for (uint32_t rank = 0; rank < 2; rank++) {
            copy(&test, rank, SEND(0), RECEIVE(4 * rank), 4);
            repeat(&test, rank, 1, 2);
            put(&test, rank, 1 - rank, 1, (struct cw_place){CW_BUFFER_SEND, 0, 2}, NOWHERE, 2);
            uint32_t body = repeat(&test, rank, 1, 2);
            plan_after_flags(&test, rank, 2, 0, (uint16_t)flags);
            assert_int_equal(body, 3);
            wait_eager(&test, rank, 1 - rank, 1, (struct cw_place){CW_BUFFER_RECEIVE, 4 * (1 - rank), 2}, 2);
        }
        plan_expect(&test, CW_CHECK_DEADLOCK, 0, 2);
    }
}

/* A body that runs 65 iterations ahead of what it waits for would need a bigger window. */
static void test_deadlock_by_window(void **state)
{
    for (uint32_t iterations = CW_REPEAT_WINDOW; iterations <= CW_REPEAT_WINDOW + 1; iterations++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_BCAST, 2, 1);
        put(&test, 0, 1, 1000, SEND(0), NOWHERE, 1);
        repeat(&test, 0, 1, iterations);
        wait_signal(&test, 0, 1, 1);
        wait_eager(&test, 1, 0, 1000, RECEIVE(0), 1);
        repeat(&test, 1, 1, iterations);
        signal_to(&test, 1, 0, 1);
        plan_passes(&test);
        /* Rank 1 starts each wait only with its last signal, rank 0 answers each one. */
        plan_begin_simple(&test, CW_BCAST, 2, 1);
        repeat(&test, 0, 1, iterations);
        put(&test, 0, 1, 1, SEND(0), NOWHERE, 0);
        uint32_t last = put(&test, 0, 1, 500, SEND(0), NOWHERE, 1);
        plan_after_flags(&test, 0, 1, 0, CW_DEPENDENCY_SENT);
        assert_int_equal(last, 2);
        wait_eager(&test, 1, 0, 500, RECEIVE(0), 1);
        repeat(&test, 1, 1, iterations);
        plan_after(&test, 1, 0);
        wait_signal(&test, 1, 0, 1);
        plan_expect(&test, CW_CHECK_DEADLOCK, 0, 1);
    }
}

/* ---- barriers ---- */

static void test_barrier_op(void **state)
{
    struct test_plan test;
    for (uint32_t missing = 0; missing <= 1; missing++) {
        plan_begin_simple(&test, CW_BARRIER, 3, 0);
        for (uint32_t rank = 0; rank < 3 - missing; rank++) {
            barrier(&test, rank, 0);
        }
        if (missing == 0) {
            plan_passes(&test);
        } else {
            plan_expect(&test, CW_CHECK_BARRIER, 0, 0);
            assert_non_null(strstr(test.report.text, "rank 2"));
        }
    }
    /* Two barriers crossed. */
    plan_begin_simple(&test, CW_BARRIER, 2, 0);
    for (uint32_t rank = 0; rank < 2; rank++) {
        uint32_t first = barrier(&test, rank, rank);
        barrier(&test, rank, 1 - rank);
        plan_after(&test, rank, first);
    }
    plan_expect(&test, CW_CHECK_DEADLOCK, 0, 0);
    /* A barrier tells that all have entered. */
    for (uint32_t after = 0; after <= 1; after++) {
        plan_begin_simple(&test, CW_BCAST, 2, 8);
        barrier(&test, 0, 0);
        put(&test, 0, 1, 2, SEND(0), RECEIVE(0), 8);
        if (after != 0) {
            plan_after(&test, 0, 0);
        }
        barrier(&test, 1, 0);
        wait_direct(&test, 1, 0, 2, RECEIVE(0), 8);
        plan_expect(&test, after != 0 ? CW_CHECK_PASSED : CW_CHECK_NOT_READY, after != 0 ? NONE : 0,
                    after != 0 ? NONE : 1);
    }
}

/* Dissemination: in round k each rank hears of the one 2^k before it. */
static void begin_dissemination(struct test_plan *test, uint32_t ranks, uint32_t rounds)
{
    plan_begin_simple(test, CW_BARRIER, ranks, 0);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        for (uint32_t k = 0; k < rounds; k++) {
            uint32_t distance = 1u << k;
            signal_to(test, rank, (rank + distance) % ranks, k + 1);
            if (k > 0) {
                plan_after(test, rank, 2 * k - 1);
            }
            wait_signal(test, rank, (rank + ranks - distance) % ranks, k + 1);
            if (k > 0) {
                plan_after(test, rank, 2 * k - 1);
            }
        }
    }
}

static void test_barrier_collective(void **state)
{
    struct test_plan test;
    plan_begin_simple(&test, CW_BARRIER, 1, 0);
    plan_passes(&test);
    begin_dissemination(&test, 5, 3);
    plan_passes(&test);
    begin_dissemination(&test, 5, 2);
    plan_expect(&test, CW_CHECK_NOT_SYNCHRONIZED, 0, NONE);
    begin_dissemination(&test, 65, 7); /* more than a word of ranks */
    plan_passes(&test);
    begin_dissemination(&test, 65, 6);
    plan_expect(&test, CW_CHECK_NOT_SYNCHRONIZED, 0, NONE);
    begin_dissemination(&test, 5, 3); /* rank 2 passes on what it has not heard yet */
    test.ranks[2].ops[2].dependency_count = 0;
    plan_expect(&test, CW_CHECK_NOT_SYNCHRONIZED, 4, NONE);
}

static void test_read_undefined(void **state)
{
    struct test_plan test;
    plan_begin_simple(&test, CW_ALLGATHER, 1, 8);
    plan_scratch(&test, 8);
    copy(&test, 0, SEND(0), SCRATCH(0), 6);
    copy(&test, 0, SCRATCH(0), RECEIVE(0), 8);
    plan_after(&test, 0, 0);
    plan_expect(&test, CW_CHECK_READ_UNDEFINED, 0, 1);
    assert_int_equal(test.report.byte, 6);
    /* The write comes, but surely after the read. */
    plan_begin_simple(&test, CW_BCAST, 3, 8);
    put(&test, 0, 1, 1, SEND(0), NOWHERE, 8);
    put(&test, 1, 2, 1, RECEIVE(0), NOWHERE, 8);
    wait_eager(&test, 1, 0, 1, RECEIVE(0), 8);
    plan_after(&test, 1, 0);
    wait_eager(&test, 2, 1, 1, RECEIVE(0), 8);
    plan_expect(&test, CW_CHECK_READ_UNDEFINED, 1, 0);
}

/* ---- strided copies ---- */

/* Five blocks of 3 bytes, the last one of 1, are pulled apart and put together again. */
static void begin_strided(struct test_plan *test, uint32_t variant)
{
    plan_begin_simple(test, CW_ALLGATHER, 1, 13);
    plan_scratch(test, 30);
    struct cw_op apart = {.kind = CW_OP_COPY,
                          .blocks = 5,
                          .from = SEND(0),
                          .to = SCRATCH(0),
                          .bytes = 3,
                          .last_bytes = 1,
                          .from_stride = 3,
                          .to_stride = 7};
    struct cw_op together = apart;
    together.from = SCRATCH(variant == 1 ? 1 : 0);
    together.to = RECEIVE(0);
    together.from_stride = variant == 2 ? 6 : 7;
    together.to_stride = 3;
    plan_add(test, 0, apart);
    if (variant == 3) { /* between the blocks there is room: that is no race */
        copy(test, 0, SEND(0), SCRATCH(3), 4);
    } else if (variant == 4) { /* one byte too many */
        copy(test, 0, SEND(0), SCRATCH(3), 5);
    }
    plan_add(test, 0, together);
    plan_after(test, 0, 0);
}

static void test_strided(void **state)
{
    struct test_plan test;
    begin_strided(&test, 0);
    plan_passes(&test);
    begin_strided(&test, 1);
    plan_expect(&test, CW_CHECK_READ_UNDEFINED, 0, 1);
    assert_int_equal(test.report.byte, 3);
    begin_strided(&test, 2);
    plan_expect(&test, CW_CHECK_READ_UNDEFINED, 0, 1);
    assert_int_equal(test.report.byte, 6);
    begin_strided(&test, 3);
    plan_passes(&test);
    begin_strided(&test, 4);
    assert_int_equal(cw_check(&test.plan, &test.report), CW_OK);
    assert_int_equal(test.report.byte, 7);
    plan_expect(&test, CW_CHECK_RACE, 0, test.report.op);
}

int main(void)
{
    return TESTS_RUN(test_direct_passes, test_names, test_invalid, test_tag_reused, test_unmatched, test_mismatch,
                     test_out_of_bounds, test_not_ready, test_ready_over_others, test_deadlock,
                     test_deadlock_without_buffers, test_deadlock_after_body, test_deadlock_by_window, test_barrier_op,
                     test_barrier_collective, test_read_undefined, test_strided);
}
