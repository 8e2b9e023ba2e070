/* The transport over puts: what tells one run from the next, and what becomes of ranks whose peers go. */
#include "puts_bench.h"

/* ---- Runs ---- */

static void run_begin(struct bench *bench, uint32_t rank)
{
    cw_puts_transport_begin(bench->sides[rank].transport);
    sim_host_wake(&bench->hosts.list[rank]); /* it may have posted something */
}

static void the_next_run_waits_for_its_beginning_and_the_one_after_for_a_word(void **state)
{
    struct bench bench;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, true, 100);
    bench_create(&bench);
    for (uint32_t run = 0; run < 2; run++) { /* the target has not even looked */
        assert_int_equal(put(&bench, 0, 1, 0, true, 100), CW_OK);
        deliver(&bench, 0);
        completes(&bench, 0, 0);
        run_begin(&bench, 0);
    }
    assert_int_equal(put(&bench, 0, 1, 0, true, 100), CW_ERROR_AGAIN);
    deliver(&bench, 1);
    arrives(&bench, 1, 0, 0);
    nothing(&bench, 1); /* that of the next run is there, but not due */
    deliver(&bench, 0);
    assert_int_equal(put(&bench, 0, 1, 0, true, 100), CW_ERROR_AGAIN);
    run_begin(&bench, 1);
    arrives(&bench, 1, 0, 0);
    deliver(&bench, 0);
    assert_int_equal(put(&bench, 0, 1, 0, true, 100), CW_OK);
    deliver(&bench, 1);
    nothing(&bench, 1);
    run_begin(&bench, 1);
    arrives(&bench, 1, 0, 0);
    bench_end(&bench);
}

/* Where something comes back, nothing needs to be said. */
static void ranks_that_hear_from_each_other_say_nothing(void **state)
{
    struct bench bench;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, true, 0);
    pair_add(&bench, 1, 0, 0, true, 0);
    bench_create(&bench);
    for (uint32_t run = 0; run < 5; run++) {
        for (uint32_t rank = 0; rank < 2; rank++) {
            assert_int_equal(put(&bench, rank, 1 - rank, 0, true, 0), CW_OK);
            completes(&bench, rank, 0);
        }
        for (uint32_t rank = 0; rank < 2; rank++) {
            deliver(&bench, rank);
            arrives(&bench, rank, 1 - rank, 0);
            assert_int_equal(cw_puts_transport_open(bench.sides[rank].transport), 0);
            run_begin(&bench, rank);
        }
    }
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(cw_endpoint_counter(bench.hosts.list[rank].endpoint, CW_COUNTER_PUTS_ARRIVED), 5);
    }
    bench_end(&bench);
}

/* ---- Failures ---- */

static void what_the_schedule_does_not_expect_is_a_failure(void **state)
{
    struct bench bench;
    struct cw_transport_event event;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, true, 100);
    bench_create(&bench);
    assert_int_equal(put(&bench, 0, 1, 0, true, 100), CW_OK);
    assert_int_equal(put(&bench, 0, 1, 4, true, 100), CW_OK);
    deliver(&bench, 1);
    arrives(&bench, 1, 0, 0);
    assert_int_equal(poll(&bench, 1, &event), CW_ERROR_ARGUMENT);
    bench_end(&bench);
}

static void one_that_gives_up_is_heard_of(void **state)
{
    struct bench bench;
    struct cw_transport_event event;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, true, 100);
    pair_add(&bench, 0, 2, 0, true, 100);
    bench_create(&bench);
    assert_int_equal(put(&bench, 0, 2, 0, true, 100), CW_OK);
    assert_int_equal(cw_puts_transport_abort(bench.sides[0].transport), CW_OK);
    sim_host_wake(&bench.hosts.list[0]);
    deliver(&bench, 1);
    deliver(&bench, 2);
    assert_int_equal(poll(&bench, 1, &event), CW_ERROR_PEER_FAILED);
    assert_string_equal(cw_puts_transport_failure(bench.sides[1].transport), "rank 0: it has given up");
    arrives(&bench, 2, 0, 0); /* this one has all it needs ... */
    nothing(&bench, 2);
    run_begin(&bench, 2);
    assert_int_equal(poll(&bench, 2, &event), CW_ERROR_PEER_FAILED); /* ... for this run */
    run_begin(&bench, 1); /* whose execution may have been over when it was told */
    assert_int_equal(poll(&bench, 1, &event), CW_ERROR_PEER_FAILED);
    bench_end(&bench);
}

static void a_peer_that_dies_is_found_out_by_who_waits_for_it(void **state)
{
    struct bench bench;
    struct cw_transport_event event;
    bench_begin(&bench);
    pair_add(&bench, 0, 1, 0, true, 100);
    bench_create(&bench);
    sim_hosts_crash(&bench.hosts, 0);
    cw_puts_transport_destroy(bench.sides[0].transport);
    bench.sides[0].transport = NULL;
    time_pass(&bench, 500000000);
    deliver(&bench, 1);
    nothing(&bench, 1); /* nobody has asked */
    cw_puts_transport_probe(bench.sides[1].transport);
    cw_puts_transport_probe(bench.sides[1].transport); /* once is enough */
    assert_int_equal(cw_puts_transport_open(bench.sides[1].transport), 0);
    sim_host_wake(&bench.hosts.list[1]);
    time_pass(&bench, 500000000);
    deliver(&bench, 1);
    assert_int_equal(poll(&bench, 1, &event), CW_ERROR_PEER_FAILED);
    bench_end(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_next_run_waits_for_its_beginning_and_the_one_after_for_a_word),
        cmocka_unit_test(ranks_that_hear_from_each_other_say_nothing),
        cmocka_unit_test(what_the_schedule_does_not_expect_is_a_failure),
        cmocka_unit_test(one_that_gives_up_is_heard_of),
        cmocka_unit_test(a_peer_that_dies_is_found_out_by_who_waits_for_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
