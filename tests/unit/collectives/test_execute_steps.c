/* The executor step by step, against a transport that does what the test says and remembers what it was asked. */
#include "execute_script.h"
#include "tests/test.h"

/* ---- Starting, completing, describing ---- */

static void test_describe(void **state)
{
    struct bench *bench = bench_begin(5);
    wait_eager(&bench->test, 0, 2, 3, RECEIVE(0), 4);
    plan_last(&bench->test, 0)->phase = 2;
    put(&bench->test, 0, 4, 9, SEND(0), NOWHERE, 4);
    plan_after(&bench->test, 0, 0);
    bench_create(bench);
    says(bench, "rank 0: to be polled; 0 of 2 ops complete");
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    says(bench, "rank 0: op 0 (wait, phase 2) for tag 12 of rank 2; 0 of 2 ops complete");
    assert_int_equal(bench->script.expected_tags[0], 3 * CW_TAG_STEP);
    arrive(bench, 2, 3 * CW_TAG_STEP, true, "abcd", 4, 77);
    bench->script.put_status = CW_ERROR_AGAIN;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], "abcd", 4);
    assert_int_equal(bench->script.release_count, 1);
    assert_int_equal(bench->script.released[0], 77);
    says(bench, "op 1 (put, phase 0) with tag 36 to rank 4, which the transport does not take; 1 of 2 ops complete");
    bench->script.put_status = CW_OK;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    says(bench, "op 1 (put, phase 0) with tag 36 to rank 4, to complete; 1 of 2");
    put_event(bench, CW_TRANSPORT_COMPLETE, 0);
    assert_int_equal(bench_poll(bench), CW_OK);
    says(bench, "rank 0: complete; 2 of 2 ops complete");
    assert_int_equal(bench_poll(bench), CW_OK);
    bench_end(bench);
}

static void test_describe_barrier_and_body(void **state)
{
    struct bench *bench = bench_begin(6);
    barrier(&bench->test, 0, 0);
    repeat(&bench->test, 0, 1, 20);
    plan_after(&bench->test, 0, 0);
    wait_direct(&bench->test, 0, 1, 0, RECEIVE(0), 1);
    bench_create(bench);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    says(bench, "op 0 (barrier, phase 0) number 0, 1 of 3 rounds sent; not heard of rank 5 rank 4 rank 2; 0 of 3");
    uint32_t first = ((1u << 17) << 2) + CW_TAG_SIGNAL;
    assert_int_equal(bench->script.puts[0].tag, first);
    assert_int_equal(bench->script.peers[0], 1);
    assert_int_equal(bench->script.expect_count, 3);
    arrive(bench, 4, first + CW_TAG_STEP, true, NULL, 0, 1); /* of the second round */
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 1);
    arrive(bench, 5, first, true, NULL, 0, 2);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 3);
    assert_int_equal(bench->script.peers[1], 2);
    assert_int_equal(bench->script.peers[2], 4);
    arrive(bench, 2, first + 2 * CW_TAG_STEP, true, NULL, 0, 3);
    arrive(bench, 1, 2 * CW_TAG_STEP, false, NULL, 1, 0);
    arrive(bench, 1, 0, false, NULL, 1, 0);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.release_count, 3);
    says(bench, "op 2 (wait, phase 0, iteration 1 of 20) for tag 4 of rank 1; 1 of 3 ops complete");
    for (uint32_t i = 1; i < 20; i++) {
        if (i != 2) {
            arrive(bench, 1, i * CW_TAG_STEP, false, NULL, 1, 0);
        }
    }
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    says(bench, "signals of barriers to complete; 3 of 3 ops complete");
    for (uint32_t i = 0; i < 3; i++) {
        put_event(bench, CW_TRANSPORT_COMPLETE, i);
    }
    assert_int_equal(bench_poll(bench), CW_OK);
    bench_end(bench);
}

static void test_runs_again_after_reset(void **state)
{
    struct bench *bench = bench_begin(2);
    repeat(&bench->test, 0, 3, 70);
    put(&bench->test, 0, 1, 0, SEND(0), NOWHERE, 1);
    wait_eager(&bench->test, 0, 1, 0, SCRATCH(0), 1);
    plan_after_flags(&bench->test, 0, 3, 1, 0);
    reduce(&bench->test, 0, SCRATCH(0), RECEIVE(0), 1, false);
    plan_after(&bench->test, 0, 2);
    barrier(&bench->test, 0, 0);
    bench_create(bench);
    uint32_t signal = ((1u << 17) << 2) + CW_TAG_SIGNAL;
    for (uint32_t run = 1; run < 4; run++) {
        uint32_t completed = 0;
        arrive(bench, 1, signal, true, NULL, 0, 1000);
        for (uint32_t i = 0; i < 70; i++) { /* against their order */
            arrive(bench, 1, (69 - i) * CW_TAG_STEP, true, "\1", 1, i);
        }
        int status = CW_ERROR_AGAIN;
        while (status == CW_ERROR_AGAIN) {
            status = bench_poll(bench);
            assert_true(completed < bench->script.put_count || status != CW_ERROR_AGAIN);
            while (completed < bench->script.put_count) {
                put_event(bench, CW_TRANSPORT_COMPLETE, completed++);
            }
        }
        assert_int_equal(status, CW_OK);
        assert_int_equal(bench->script.put_count, 71);
        assert_int_equal(bench->script.release_count, 71);
        assert_int_equal(bench->buffers[CW_BUFFER_RECEIVE][0], 70 * run);
        bench->script.put_count = bench->script.release_count = 0;
        bench->script.event_first = bench->script.event_count = 0;
        bench->script.expect_count = 0;
        cw_execution_reset(bench->execution);
    }
    bench_end(bench);
}

/* The first ready op of the array is next; the ops of a body advance together. */
static void test_order_of_starts(void **state)
{
    struct bench *bench = bench_begin(9);
    uint32_t last = join(&bench->test, 0);
    put(&bench->test, 0, 5, 0, SEND(0), NOWHERE, 1);
    plan_after(&bench->test, 0, last);
    put(&bench->test, 0, 6, 0, SEND(0), NOWHERE, 1);
    repeat(&bench->test, 0, 3, 10);
    put(&bench->test, 0, 1, 0, SEND(0), NOWHERE, 1);
    put(&bench->test, 0, 2, 0, SEND(0), NOWHERE, 1);
    put(&bench->test, 0, 3, 0, SEND(0), NOWHERE, 1);
    put(&bench->test, 0, 8, 0, SEND(0), NOWHERE, 1);
    bench_create(bench);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 33);
    assert_int_equal(bench->script.peers[0], 5);
    assert_int_equal(bench->script.peers[1], 6);
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(bench->script.peers[2 + i], 1 + i % 3);
        assert_int_equal(bench->script.puts[2 + i].tag, i / 3 * CW_TAG_STEP);
    }
    assert_int_equal(bench->script.peers[32], 8);
    bench_end(bench);
}

static void test_window(void **state)
{
    struct bench *bench = bench_begin(2);
    repeat(&bench->test, 0, 1, 200);
    put(&bench->test, 0, 1, 0, SEND(0), NOWHERE, 1);
    bench_create(bench);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, CW_REPEAT_WINDOW);
    for (uint32_t i = 1; i < CW_REPEAT_WINDOW; i++) {
        put_event(bench, CW_TRANSPORT_COMPLETE, i);
    }
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, CW_REPEAT_WINDOW); /* iteration 0 is missing */
    put_event(bench, CW_TRANSPORT_COMPLETE, 0);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 2 * CW_REPEAT_WINDOW);
    bench_end(bench);
}

/* One poll does a bounded amount of work: so many ops. */
static void test_work_of_a_poll_is_bounded(void **state)
{
    enum { COPIES = 10000, STARTS_MAX = 4096 };
    struct bench *bench = bench_begin(2);
    repeat(&bench->test, 0, 1, COPIES);
    copy(&bench->test, 0, SEND(0), RECEIVE(0), 1);
    bench_create(bench);
    uint32_t polls = 1;
    while (bench_poll(bench) == CW_ERROR_AGAIN) {
        polls++;
    }
    assert_in_range(polls, COPIES / STARTS_MAX + 1, COPIES / STARTS_MAX + 2);
    bench_end(bench);
}

static uint32_t pick_none_twice(void *context, uint32_t count)
{
    uint32_t *calls = context;
    return ++*calls <= 2 ? count : count - 1;
}

/* Who picks may also want no op to start for now. */
static void test_pick_none(void **state)
{
    struct bench *bench = bench_begin(4);
    for (uint32_t peer = 1; peer < 4; peer++) {
        put(&bench->test, 0, peer, 0, SEND(0), NOWHERE, 1);
    }
    uint32_t calls = 0;
    struct cw_execution_request request = bench_request(bench);
    request.pick = pick_none_twice;
    request.pick_context = &calls;
    assert_int_equal(cw_execution_create(&request, &bench->execution), CW_OK);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 0);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 3);
    assert_int_equal(bench->script.peers[0], 3);
    assert_int_equal(calls, 5);
    bench_end(bench);
}

static bool reduce_if_allowed(void *context)
{
    return *(const bool *)context;
}

/* A reduction that may not be made by this poll holds nothing else up, and is made by the next one that may, however
 * many puts are refused. */
static void test_reductions_are_left(void **state)
{
    bool is_allowed = false;
    struct bench *bench = bench_begin(4);
    for (uint32_t i = 0; i < 9; i++) {
        put(&bench->test, 0, 1, i, SEND(0), NOWHERE, 1);
    }
    reduce(&bench->test, 0, SEND(0), RECEIVE(0), 4, false);
    put(&bench->test, 0, 2, 0, RECEIVE(0), NOWHERE, 4);
    plan_after(&bench->test, 0, 9);
    struct cw_execution_request request = bench_request(bench);
    request.may_reduce = reduce_if_allowed;
    request.reduce_context = &is_allowed;
    memcpy(bench->buffers[CW_BUFFER_SEND], "\1\2\3\4", 4);
    memcpy(bench->buffers[CW_BUFFER_RECEIVE], "\1\1\1\1", 4);
    bench->script.put_status = CW_ERROR_AGAIN;
    bench->script.refuse_peer = 1;
    assert_int_equal(cw_execution_create(&request, &bench->execution), CW_OK);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], "\1\1\1\1", 4);
    is_allowed = true;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], "\2\3\4\5", 4);
    bench->script.put_status = CW_OK;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 10);
    bench_end(bench);
}

static void test_sent_is_enough(void **state)
{
    struct bench *bench = bench_begin(3);
    put(&bench->test, 0, 1, 0, SEND(0), NOWHERE, 8);
    put(&bench->test, 0, 2, 0, SEND(8), NOWHERE, 8);
    plan_after_flags(&bench->test, 0, 0, 0, CW_DEPENDENCY_SENT);
    put(&bench->test, 0, 2, 1, SEND(8), NOWHERE, 8);
    plan_after(&bench->test, 0, 0);
    bench_create(bench);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 1);
    put_event(bench, CW_TRANSPORT_SENT, 0);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 2);
    assert_int_equal(bench->script.puts[1].tag, 0);
    put_event(bench, CW_TRANSPORT_COMPLETE, 0);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 3);
    bench_end(bench);
}

/* ---- Refused puts ---- */

static void test_refused_puts_hold_nobody_up(void **state)
{
    struct bench *bench = bench_begin(4);
    put(&bench->test, 0, 1, 0, SEND(0), NOWHERE, 8);
    put(&bench->test, 0, 2, 0, SEND(0), NOWHERE, 8);
    copy(&bench->test, 0, SEND(0), RECEIVE(0), 8);
    plan_after(&bench->test, 0, 1);
    put(&bench->test, 0, 3, 0, RECEIVE(0), NOWHERE, 8);
    plan_after(&bench->test, 0, 2);
    bench_create(bench);
    bench->script.put_status = CW_ERROR_AGAIN;
    bench->script.refuse_peer = 1;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 1);
    put_event(bench, CW_TRANSPORT_COMPLETE, 0);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 2);
    put_event(bench, CW_TRANSPORT_COMPLETE, 1);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    bench->script.put_status = CW_OK;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, 3);
    assert_int_equal(bench->script.peers[2], 1);
    put_event(bench, CW_TRANSPORT_COMPLETE, 2);
    assert_int_equal(bench_poll(bench), CW_OK);
    bench_end(bench);
}

/* A full transport is not asked for every put at every poll; each comes to its turn nevertheless. */
static void test_refusals_are_bounded(void **state)
{
    enum { PUTS = 40 };
    struct bench *bench = bench_begin(PUTS + 1);
    for (uint32_t i = 1; i <= PUTS; i++) {
        put(&bench->test, 0, i, 0, SEND(0), NOWHERE, 1);
    }
    bench_create(bench);
    bench->script.put_status = CW_ERROR_AGAIN;
    for (uint32_t i = 1; i < 10; i++) {
        assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
        assert_true(bench->script.tries <= i * 8);
    }
    bench->script.refuse_peer = 7;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, PUTS - 1);
    bench->script.put_status = CW_OK;
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    assert_int_equal(bench->script.put_count, PUTS);
    bench_end(bench);
}

/* ---- Arrivals before their wait ---- */

static void test_early_arrivals_are_kept(void **state)
{
    enum { SEGMENTS = 300 };
    struct bench *bench = bench_begin(3);
    uint32_t gate = wait_eager(&bench->test, 0, 2, 0, NOWHERE, 0);
    wait_eager(&bench->test, 0, 2, 1, SCRATCH(0), 3);
    plan_after(&bench->test, 0, gate);
    repeat(&bench->test, 0, 2, SEGMENTS);
    plan_after(&bench->test, 0, gate);
    struct cw_place to = RECEIVE(0);
    to.step = 1;
    wait_eager(&bench->test, 0, 1, 5, to, 1);
    to.offset = 1000;
    wait_direct(&bench->test, 0, 1, 1000, to, 1);
    bench_create(bench);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    uint8_t data[SEGMENTS], transient[SEGMENTS];
    for (uint32_t i = SEGMENTS; i-- > 0;) {
        data[i] = transient[i] = (uint8_t)(i * 7);
        arrive(bench, 1, (5 + i) * CW_TAG_STEP, true, i % 2 == 0 ? &transient[i] : &data[i], 1, i % 2 == 0 ? 0 : i);
        arrive(bench, 1, (1000 + i) * CW_TAG_STEP, false, NULL, 1, 0);
    }
    arrive(bench, 2, CW_TAG_STEP, true, "xyz", 3, 999);
    assert_int_equal(bench_poll(bench), CW_ERROR_AGAIN);
    memset(transient, '?', sizeof(transient));
    assert_int_equal(bench->script.kept_count, SEGMENTS / 2);
    assert_int_equal(bench->script.release_count, 0);
    assert_int_equal(bench->script.expect_count, 1); /* of the gate */
    arrive(bench, 2, 0, true, NULL, 0, 1000);
    assert_int_equal(bench_poll(bench), CW_OK);
    assert_int_equal(bench->script.release_count, SEGMENTS + 2);
    assert_int_equal(bench->script.expect_count, 1);
    assert_memory_equal(bench->buffers[CW_BUFFER_RECEIVE], data, SEGMENTS);
    assert_memory_equal(bench->buffers[CW_BUFFER_SCRATCH], "xyz", 3);
    bench_end(bench);
}

int main(void)
{
    return TESTS_RUN(test_describe, test_describe_barrier_and_body, test_runs_again_after_reset, test_order_of_starts,
                     test_window, test_work_of_a_poll_is_bounded, test_pick_none, test_reductions_are_left,
                     test_sent_is_enough, test_refused_puts_hold_nobody_up, test_refusals_are_bounded,
                     test_early_arrivals_are_kept);
}
