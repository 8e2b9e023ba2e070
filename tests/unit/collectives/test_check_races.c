/* The checker: accesses that nothing orders, bytes that nobody wrote or that are written twice. */
#include "check_plans.h"
#include "tests/test.h"

enum { NONE = UINT32_MAX };

/* A chain of three: rank 1 gets 8 bytes and passes them on. */
static void begin_chain(struct test_plan *test, bool ordered)
{
    plan_begin_simple(test, CW_BCAST, 3, 8);
    put(test, 0, 1, 1, SEND(0), NOWHERE, 8);
    uint32_t got = wait_eager(test, 1, 0, 1, RECEIVE(0), 8);
    put(test, 1, 2, 1, RECEIVE(0), NOWHERE, 8);
    if (ordered) {
        plan_after(test, 1, got);
    }
    wait_eager(test, 2, 1, 1, RECEIVE(0), 8);
}

static void test_removed_dependency(void **state)
{
    struct test_plan test;
    begin_chain(&test, true);
    plan_passes(&test);
    begin_chain(&test, false);
    plan_expect(&test, CW_CHECK_RACE, 1, 0);
    assert_non_null(strstr(test.report.text, "bytes 0..7 of the receive buffer of rank 1"));
    assert_non_null(strstr(test.report.text, "op 1 of rank 1"));
    assert_int_equal(test.report.byte, 0);
}

/* In the array the two copies follow each other; that orders nothing. */
static void test_order_of_array(void **state)
{
    for (uint32_t ordered = 0; ordered <= 1; ordered++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_ALLGATHER, 1, 8);
        plan_scratch(&test, 8);
        copy(&test, 0, SEND(0), SCRATCH(0), 8);
        copy(&test, 0, SCRATCH(0), RECEIVE(0), 8);
        if (ordered != 0) {
            plan_after(&test, 0, 0);
        }
        plan_expect(&test, ordered != 0 ? CW_CHECK_PASSED : CW_CHECK_RACE, ordered != 0 ? NONE : 0,
                    ordered != 0 ? NONE : 0);
    }
}

/* A scratch place is used again: its first content must have been read, and by all of its readers. */
static void test_reuse(void **state)
{
    for (uint32_t missing = 0; missing <= 3; missing++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_ALLGATHER, 1, 8);
        plan_scratch(&test, 4);
        copy(&test, 0, SEND(0), SCRATCH(0), 4);
        for (uint32_t i = 0; i < 2; i++) { /* two readers of parts */
            copy(&test, 0, SCRATCH(2 * i), RECEIVE(2 * i), 2);
            plan_after(&test, 0, 0);
        }
        uint32_t again = copy(&test, 0, SEND(4), SCRATCH(0), 4);
        for (uint32_t i = 0; i < 2; i++) {
            if (missing != i + 1) {
                plan_after(&test, 0, i + 1);
            }
        }
        copy(&test, 0, SCRATCH(0), RECEIVE(4), 4);
        if (missing != 3) {
            plan_after(&test, 0, again);
        }
        if (missing == 0) {
            plan_passes(&test);
        } else {
            plan_expect(&test, CW_CHECK_RACE, 0, missing == 3 ? 3 : again);
        }
    }
}

/* A direct put's bytes may land from its start on: rank 1 must be done with the place when it says that it is ready. */
static void test_direct_put_lands_early(void **state)
{
    for (uint32_t ordered = 0; ordered <= 1; ordered++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_ALLTOALL, 2, 4);
        plan_scratch(&test, 4);
        for (uint32_t rank = 0; rank < 2; rank++) {
            uint32_t other = 1 - rank;
            copy(&test, rank, SEND(4 * rank), SCRATCH(0), 4);
            copy(&test, rank, SCRATCH(0), RECEIVE(4 * rank), 4);
            plan_after(&test, rank, 0);
            signal_to(&test, rank, other, 1);
            plan_after(&test, rank, rank == 1 && ordered == 0 ? 0 : 1);
            wait_signal(&test, rank, other, 1);
            put(&test, rank, other, 2, SEND(4 * other), SCRATCH(0), 4);
            plan_after(&test, rank, 3);
            wait_direct(&test, rank, other, 2, SCRATCH(0), 4);
            copy(&test, rank, SCRATCH(0), RECEIVE(4 * other), 4);
            plan_after(&test, rank, 5);
        }
        if (ordered != 0) {
            plan_passes(&test);
        } else {
            plan_expect(&test, CW_CHECK_RACE, 0, 4);
            assert_non_null(strstr(test.report.text, "scratch buffer of rank 1 may be written while op 1 of rank 1"));
        }
    }
}

/* Two senders to one place. */
static void test_two_writers(void **state)
{
    struct test_plan test;
    plan_begin_simple(&test, CW_GATHER, 3, 4);
    copy(&test, 0, SEND(0), RECEIVE(0), 4);
    for (uint32_t i = 1; i < 3; i++) {
        put(&test, i, 0, 1, SEND(0), NOWHERE, 4);
        wait_eager(&test, 0, i, 1, RECEIVE(3 + i), 4);
    }
    plan_expect(&test, CW_CHECK_RACE, 0, 2);
    assert_int_equal(test.report.byte, 5);
}

/* That a put has been sent does not free its source; that it is complete does. */
static void test_sent_frees_nothing(void **state)
{
    for (uint16_t flags = 0; flags <= CW_DEPENDENCY_SENT; flags++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_BCAST, 2, 8);
        plan_scratch(&test, 4);
        uint32_t first = copy(&test, 0, SEND(0), SCRATCH(0), 4);
        uint32_t sent = put(&test, 0, 1, 1, SCRATCH(0), NOWHERE, 4);
        plan_after(&test, 0, first);
        uint32_t second = copy(&test, 0, SEND(4), SCRATCH(0), 4);
        plan_after_flags(&test, 0, sent, 0, flags);
        put(&test, 0, 1, 2, SCRATCH(0), NOWHERE, 4);
        plan_after(&test, 0, second);
        wait_eager(&test, 1, 0, 1, RECEIVE(0), 4);
        wait_eager(&test, 1, 0, 2, RECEIVE(4), 4);
        plan_expect(&test, flags == 0 ? CW_CHECK_PASSED : CW_CHECK_RACE, flags == 0 ? NONE : 0,
                    flags == 0 ? NONE : second);
    }
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

static void test_written_twice(void **state)
{
    for (uint32_t scratch = 0; scratch <= 1; scratch++) { /* scratch may be rewritten */
        struct test_plan test;
        plan_begin_simple(&test, CW_ALLGATHER, 1, 8);
        plan_scratch(&test, 8);
        struct cw_place to = scratch != 0 ? SCRATCH(0) : RECEIVE(0);
        copy(&test, 0, SEND(0), to, 8);
        copy(&test, 0, SEND(0), to, 8);
        plan_after(&test, 0, 0);
        if (scratch != 0) {
            copy(&test, 0, SCRATCH(0), RECEIVE(0), 8);
            plan_after(&test, 0, 1);
        }
        plan_expect(&test, scratch != 0 ? CW_CHECK_PASSED : CW_CHECK_WRITTEN_TWICE, scratch != 0 ? NONE : 0,
                    scratch != 0 ? NONE : 1);
    }
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

/* ---- pipelines ---- */

enum { SEGMENTS = 200, SEGMENT = 5, LAST = 2, VECTOR = (SEGMENTS - 1) * SEGMENT + LAST };

static struct cw_place stepping(enum cw_buffer buffer)
{
    return (struct cw_place){.buffer = buffer, .step = SEGMENT};
}

static void set_last(struct test_plan *test, uint32_t rank)
{
    plan_last(test, rank)->last_bytes = LAST;
}

/* A chain of four; each segment is put straight into the next receive buffer once that rank has said that it is ready.
 * `back`: rank 1 passes on what it got so many segments ago, or (-1) whatever it has. */
static void begin_pipeline(struct test_plan *test, int back, uint64_t last)
{
    plan_begin_simple(test, CW_BCAST, 4, VECTOR);
    for (uint32_t rank = 0; rank < 4; rank++) {
        uint32_t ready = NONE;
        if (rank > 0) {
            signal_to(test, rank, rank - 1, 9000);
        }
        if (rank < 3) {
            ready = wait_signal(test, rank, rank + 1, 9000);
        }
        uint32_t body = repeat(test, rank, rank % 3 == 0 ? 1 : 2, SEGMENTS);
        if (ready != NONE) {
            plan_after(test, rank, ready);
        }
        if (rank > 0) {
            wait_direct(test, rank, rank - 1, 1, stepping(CW_BUFFER_RECEIVE), SEGMENT);
            set_last(test, rank);
        }
        if (rank < 3) {
            put(test, rank, rank + 1, 1, stepping(rank == 0 ? CW_BUFFER_SEND : CW_BUFFER_RECEIVE),
                stepping(CW_BUFFER_RECEIVE), SEGMENT);
            plan_last(test, rank)->last_bytes = last;
            if (rank == 1 && back >= 0) {
                plan_after_flags(test, rank, body + 1, (uint16_t)back, 0);
            } else if (rank == 2) {
                plan_after(test, rank, body + 1);
            }
        }
    }
}

static void test_pipeline(void **state)
{
    struct test_plan test;
    begin_pipeline(&test, 0, LAST);
    plan_passes(&test);
    begin_pipeline(&test, 1, LAST);
    plan_expect(&test, CW_CHECK_RACE, 0, 2);
    assert_non_null(
        strstr(test.report.text, "rank 1 may be written while op 4 of rank 1 (put to rank 2, phase 0, iteration"));
    begin_pipeline(&test, -1, LAST);
    plan_expect(&test, CW_CHECK_RACE, 0, 2);
    begin_pipeline(&test, 0, SEGMENT); /* the last segment is too long */
    plan_expect(&test, CW_CHECK_INVALID, 0, 2);
    begin_pipeline(&test, 0, LAST); /* not ready: the body waits for nothing */
    test.ranks[2].ops[2].dependency_count = 0;
    plan_expect(&test, CW_CHECK_NOT_READY, 2, 4);
}

/* Segments come into one scratch place, one after another: the next one only when the one before has been used. */
static void test_pipeline_slot(void **state)
{
    for (uint16_t back = 0; back <= 2; back++) { /* 0: no dependency at all */
        struct test_plan test;
        plan_begin_simple(&test, CW_BCAST, 2, VECTOR);
        plan_scratch(&test, SEGMENT);
        repeat(&test, 0, 1, SEGMENTS);
        put(&test, 0, 1, 1, stepping(CW_BUFFER_SEND), NOWHERE, SEGMENT);
        set_last(&test, 0);
        uint32_t body = repeat(&test, 1, 2, SEGMENTS);
        wait_eager(&test, 1, 0, 1, SCRATCH(0), SEGMENT);
        set_last(&test, 1);
        if (back > 0) {
            plan_after_flags(&test, 1, body + 2, back, 0);
        }
        copy(&test, 1, SCRATCH(0), stepping(CW_BUFFER_RECEIVE), SEGMENT);
        set_last(&test, 1);
        plan_after(&test, 1, body + 1);
        plan_expect(&test, back == 1 ? CW_CHECK_PASSED : CW_CHECK_RACE, back == 1 ? NONE : 1, back == 1 ? NONE : 1);
    }
}

/* Who waits for a body op from outside waits for all of its iterations, and a body for what its repeat waits for. */
static void test_around_bodies(void **state)
{
    for (uint32_t variant = 0; variant <= 3; variant++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_ALLGATHER, 1, VECTOR);
        plan_scratch(&test, 2 * VECTOR);
        uint32_t first = copy(&test, 0, SEND(0), SCRATCH(0), VECTOR);
        uint32_t body = repeat(&test, 0, 1, SEGMENTS);
        if (variant != 1) {
            plan_after(&test, 0, first);
        }
        struct cw_place to = {.buffer = CW_BUFFER_SCRATCH, .offset = VECTOR, .step = SEGMENT};
        copy(&test, 0, stepping(CW_BUFFER_SCRATCH), to, SEGMENT);
        set_last(&test, 0);
        copy(&test, 0, SCRATCH(VECTOR), RECEIVE(0), VECTOR);
        if (variant != 2) {
            plan_after(&test, 0, variant == 3 ? body : body + 1);
        }
        bool passes = variant == 0 || variant == 3;
        plan_expect(&test, passes ? CW_CHECK_PASSED : CW_CHECK_RACE, passes ? NONE : 0,
                    passes         ? NONE
                    : variant == 1 ? first
                                   : body + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_removed_dependency),
        cmocka_unit_test(test_order_of_array),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_direct_put_lands_early),
        cmocka_unit_test(test_two_writers),
        cmocka_unit_test(test_sent_frees_nothing),
        cmocka_unit_test(test_read_undefined),
        cmocka_unit_test(test_written_twice),
        cmocka_unit_test(test_strided),
        cmocka_unit_test(test_pipeline),
        cmocka_unit_test(test_pipeline_slot),
        cmocka_unit_test(test_around_bodies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
