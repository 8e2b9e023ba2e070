/* The transport over puts event by event: what simulate_schedules.c reaches only now and then. Runs and failures:
 * test_transport_puts_runs.c. */
#include "puts_bench.h"

/* ---- Puts ---- */

static void a_put_lands_and_completes(void **state)
{
    struct bench bench;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 8, false, 100);
    pair_add(&bench, 0, 2, 12, true, SLOT_BYTES);
    bench_create(&bench);
    assert_int_equal(put(&bench, 0, 1, 8, false, 100), CW_OK);
    assert_int_equal(put(&bench, 0, 2, 12, true, SLOT_BYTES), CW_OK);
    assert_int_equal(cw_puts_transport_open(bench.sides[0].transport), 2);
    completes(&bench, 0, 12); /* it has been copied */
    nothing(&bench, 0);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        deliver(&bench, rank);
    }
    arrives(&bench, 1, 0, 8);
    assert_int_equal(bench.hosts.list[1].memory[2 * PLACE_BYTES + 99], 'a');
    assert_int_equal(bench.hosts.list[1].memory[2 * PLACE_BYTES + 100], 'b');
    arrives(&bench, 2, 0, 12);
    completes(&bench, 0, 8);
    nothing(&bench, 0);
    assert_int_equal(cw_puts_transport_open(bench.sides[0].transport), 0);
    bench_end(&bench);
}

static void a_short_put_completes_at_once(void **state)
{
    struct bench bench;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, true, CW_INLINE_MAX);
    bench_create(&bench);
    assert_int_equal(put(&bench, 0, 1, 0, true, CW_INLINE_MAX), CW_OK);
    completes(&bench, 0, 0);
    memset(bench.hosts.list[0].memory, '?', CW_INLINE_MAX);
    assert_int_equal(cw_puts_transport_open(bench.sides[0].transport), 1);
    deliver(&bench, 1);
    arrives(&bench, 1, 0, 0); /* as it was */
    deliver(&bench, 0);
    nothing(&bench, 0); /* not a second time */
    assert_int_equal(cw_puts_transport_open(bench.sides[0].transport), 0);
    bench_end(&bench);
}

static void a_long_put_tells_when_it_has_left(void **state)
{
    struct bench bench;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, false, CW_LONG_PUT_BYTES + 1);
    pair_add(&bench, 0, 2, 0, false, CW_LONG_PUT_BYTES);
    bench_create(&bench);
    assert_int_equal(put(&bench, 0, 1, 0, false, CW_LONG_PUT_BYTES + 1), CW_OK);
    deliver(&bench, 0);
    tells(&bench, 0, CW_TRANSPORT_SENT, 0);
    completes(&bench, 0, 0);
    assert_int_equal(put(&bench, 0, 2, 0, false, CW_LONG_PUT_BYTES), CW_OK);
    deliver(&bench, 0);
    completes(&bench, 0, 0);
    nothing(&bench, 0);
    bench_end(&bench);
}

static void messages_longer_than_a_slot_are_refused(void **state)
{
    struct bench bench;
    char error[200] = "";
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, true, SLOT_BYTES + 1);
    assert_int_equal(side_create(&bench, 0, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_string_equal(error,
                        "rank 0: the plan has messages of 129 bytes, but slots have 128: build it with --eager 128");
    assert_int_equal(side_create(&bench, 1, error, sizeof(error)), CW_ERROR_ARGUMENT); /* nor may they come */
    bench.sides[0].ops[0].bytes = bench.sides[0].ops[0].last_bytes = SLOT_BYTES;
    bench.sides[1].ops[0].bytes = bench.sides[1].ops[0].last_bytes = SLOT_BYTES;
    bench_create(&bench);
    assert_int_equal(put(&bench, 0, 1, 0, true, SLOT_BYTES + 1), CW_ERROR_ARGUMENT);
    assert_non_null(cw_puts_transport_failure(bench.sides[0].transport));
    bench_end(&bench);
}

/* The endpoint takes one half of a multicast; the other half follows when there is room, and no half goes twice. */
static void a_multicast_goes_on_where_it_was_refused(void **state)
{
    struct bench bench;
    struct cw_transport_event event;
    uint32_t puts = 0;
    bench_begin(&bench);
    for (uint32_t i = 0; i < 33; i++) {
        pair_add(&bench, 0, 1, 4 * i, false, 100);
    }
    bench.members[0] = 2;
    bench.members[1] = 1; /* which has its share of the operations */
    bench.group = (struct cw_group_range){.first = 0, .count = 2};
    bench.sides[0].schedule.groups = &bench.group;
    bench.sides[0].schedule.members = bench.members;
    bench.sides[0].schedule.group_count = 1;
    bench.sides[0].schedule.member_count = 2;
    op_add(&bench, 0, CW_OP_MULTICAST, 0, 3, false, 200);
    op_add(&bench, 1, CW_OP_WAIT, 0, 3, false, 200);
    op_add(&bench, 2, CW_OP_WAIT, 0, 3, false, 200);
    bench_create(&bench);
    struct cw_transport_put multicast = {.peers = bench.members,
                                         .peer_count = 2,
                                         .tag = 3,
                                         .data = bench.hosts.list[0].memory,
                                         .bytes = 200,
                                         .buffer = CW_BUFFER_RECEIVE,
                                         .offset = 64 * PLACE_BYTES,
                                         .context = 1000};
    for (; puts < 32; puts++) {
        assert_int_equal(put(&bench, 0, 1, 4 * puts, false, 100), CW_OK);
    }
    assert_int_equal(cw_puts_transport_open(bench.sides[0].transport), 32);
    assert_int_equal(put_made(&bench, 0, &multicast), CW_ERROR_AGAIN);
    assert_int_equal(cw_puts_transport_open(bench.sides[0].transport), 33); /* one half */
    uint64_t refusals = cw_puts_transport_refusals(bench.sides[0].transport);
    assert_int_equal(put(&bench, 0, 1, 4 * puts, false, 100), CW_ERROR_AGAIN); /* a record there is, no operation */
    assert_int_equal(put_made(&bench, 0, &multicast), CW_ERROR_AGAIN);
    assert_int_equal(cw_puts_transport_refusals(bench.sides[0].transport), refusals + 2);
    deliver(&bench, 0);
    for (uint32_t i = 0; i < 32; i++) { /* not that of the multicast */
        assert_int_equal(poll(&bench, 0, &event), 1);
        assert_true(event.kind == CW_TRANSPORT_COMPLETE && event.context < 1000);
    }
    nothing(&bench, 0);
    assert_int_equal(put_made(&bench, 0, &multicast), CW_OK);
    deliver(&bench, 0);
    completes(&bench, 0, 1000);
    deliver(&bench, 1);
    for (uint32_t i = 0; i < 33; i++) {
        assert_int_equal(poll(&bench, 1, &event), 1);
    }
    nothing(&bench, 1);
    deliver(&bench, 2);
    arrives(&bench, 2, 0, 3);
    nothing(&bench, 2);
    bench_end(&bench);
}

/* ---- Events ---- */

static void what_is_for_others_is_left_to_them(void **state)
{
    struct bench bench;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, true, 8);
    bench_create(&bench);
    uint32_t peer = bench.sides[1].peers[0].peer;
    const struct cw_event events[] = {
        {.kind = CW_EVENT_MESSAGE, .peer = peer, .lane_tag = cw_lane_tag(LANE - 1, 0)},
        {.kind = CW_EVENT_PUT, .peer = peer, .lane_tag = cw_lane_tag(LANE + CW_PUTS_LANES, 0)},
        {.kind = CW_EVENT_COMPLETE, .peer = peer, .lane_tag = cw_lane_tag(0, 0)},
        {.kind = CW_EVENT_GET, .peer = peer, .lane_tag = cw_lane_tag(LANE, 0)},
        {.kind = CW_EVENT_PEER_DOWN, .peer = bench.sides[1].peers[2].peer, .status = CW_ERROR_PEER_FAILED},
    };
    for (uint32_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        assert_int_equal(cw_puts_transport_deliver(bench.sides[1].transport, &events[i]), CW_ERROR_NOT_FOUND);
    }
    nothing(&bench, 1);
    bench_end(&bench);
}

/* All slots are given back at once where none may be kept; what was copied stays until it is taken. */
static void messages_beyond_the_slots_that_may_be_kept_are_copied(void **state)
{
    struct bench bench;
    bench_begin(&bench);
    for (uint32_t i = 0; i < 3 * SLOTS; i++) {
        pair_add(&bench, 0, 1, 4 * i, true, SLOT_BYTES);
    }
    bench.request.slots_kept_max = 1;
    bench_create(&bench);
    for (uint32_t i = 0; i < 3 * SLOTS; i++) {
        assert_int_equal(put(&bench, 0, 1, 4 * i, true, SLOT_BYTES), CW_OK);
    }
    for (uint32_t i = 0; i < 3 * SLOTS; i++) {
        deliver(&bench, 1);
    }
    for (uint32_t i = 0; i < 3 * SLOTS; i++) {
        arrives(&bench, 1, 0, 4 * i);
    }
    nothing(&bench, 1);
    bench_end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_put_lands_and_completes),
        cmocka_unit_test(a_short_put_completes_at_once),
        cmocka_unit_test(a_long_put_tells_when_it_has_left),
        cmocka_unit_test(messages_longer_than_a_slot_are_refused),
        cmocka_unit_test(a_multicast_goes_on_where_it_was_refused),
        cmocka_unit_test(what_is_for_others_is_left_to_them),
        cmocka_unit_test(messages_beyond_the_slots_that_may_be_kept_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
