/* The interpreter: messages, ports, processors and bodies of small plans whose time is found by hand. With an overhead
 * of 10 a message of 90 bytes takes a port for 100. */
#include "tests/test.h"
#include "tests/unit/collectives/interpret_plans.h"

/* ---- One message ---- */

static void eager_message(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(10, 1);
    struct cw_trace trace;
    struct cw_price price;
    plan_begin_simple(&test, CW_BCAST, 2, 90);
    message(&test, 0, 1, 0, 90);
    assert_int_equal(cw_price_interpret(&test.plan, &network, &price, &trace), CW_OK);
    assert_time(price.time_ns, 1100);
    assert_int_equal(price.last_rank, 1);
    assert_int_equal(price.messages, 1);
    assert_int_equal(price.wan_bytes, 0);
    assert_int_equal(trace.event_count, 2);
    assert_time(trace.events[0].end_ns, 100); /* sent */
    assert_time(trace.events[1].start_ns, 0);
    assert_time(trace.events[1].end_ns, 1100);
    assert_int_equal(trace.message_count, 1);
    assert_int_equal(trace.messages[0].target, 1);
    assert_int_equal(trace.messages[0].bytes, 90);
    assert_time(trace.messages[0].sent_ns, 100);
    assert_time(trace.messages[0].arrived_ns, 1100);
    cw_trace_dispose(&trace);
    plan_end(&test);
}

/* It is complete when that is known: one more latency. */
static void direct_message(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(10, 1);
    plan_begin_simple(&test, CW_BCAST, 2, 90);
    put(&test, 0, 1, 0, SEND(0), RECEIVE(0), 90);
    wait_direct(&test, 1, 0, 0, RECEIVE(0), 90);
    assert_int_equal(interpret(&test, &network).last_rank, 0);
    expect(&test, &network, 2100);
}

static void what_waits_for_a_direct_put(void **state)
{
    struct cw_network network = network_make(10, 1);
    for (uint16_t sent = 0; sent < 2; sent++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_BCAST, 2, 90);
        put(&test, 0, 1, 0, SEND(0), RECEIVE(0), 90);
        put(&test, 0, 1, 1, SEND(0), NOWHERE, 90);
        plan_after_flags(&test, 0, 0, 0, sent != 0 ? CW_DEPENDENCY_SENT : 0);
        wait_direct(&test, 1, 0, 0, RECEIVE(0), 90);
        wait_eager(&test, 1, 0, 1, RECEIVE(0), 90);
        expect(&test, &network,
               sent != 0 ? 2100 : 2100 + 1100); /* the first one's acknowledgement, or the second after it */
    }
}

static void copy_out_takes_the_processor(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(10, 1);
    network.copy_ns_per_byte = 2;
    plan_begin_simple(&test, CW_BCAST, 2, 90);
    message(&test, 0, 1, 0, 90);
    expect(&test, &network, 1100 + 180);
}

static void signals_are_no_messages(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(10, 1);
    plan_begin_simple(&test, CW_BCAST, 2, 90);
    signal_to(&test, 0, 1, 0);
    wait_signal(&test, 1, 0, 0);
    assert_int_equal(interpret(&test, &network).messages, 0);
    expect(&test, &network, 1010);
}

/* ---- Ports ---- */

/* Three messages from one rank, or to one. One port: they leave at 0, 100, 200, or come at 1100, 1200, 1300; two: a
 * port each for the first two, 10 (the processor) apart, and the third 100 after the first. */
static void ports_of_either_side(void **state)
{
    static const struct {
        bool receiver;
        uint32_t ports;
        double time;
    } cases[] = {{false, 1, 1300}, {false, 2, 1200}, {true, 1, 1300}, {true, 2, 1200}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_plan test;
        struct cw_network network = network_make(10, cases[i].ports);
        plan_begin_simple(&test, CW_BCAST, 4, 90);
        for (uint32_t other = 1; other < 4; other++) {
            message(&test, cases[i].receiver ? other : 0, cases[i].receiver ? 0 : other, 0, 90);
        }
        expect(&test, &network, cases[i].time);
    }
}

/* A long message that comes first holds up a short one. */
static void ports_take_in_the_order_of_coming(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    struct cw_trace trace;
    struct cw_price price;
    plan_begin_simple(&test, CW_BCAST, 3, 500);
    message(&test, 1, 0, 0, 500);
    copy(&test, 2, SEND(0), SEND(0), 10);
    network.copy_ns_per_byte = 1;
    put(&test, 2, 0, 0, SEND(0), NOWHERE, 20); /* leaves at 10 */
    plan_after(&test, 2, 0);
    wait_eager(&test, 0, 2, 0, RECEIVE(0), 20);
    assert_int_equal(cw_price_interpret(&test.plan, &network, &price, &trace), CW_OK);
    assert_int_equal(trace.messages[0].source, 1);
    assert_time(trace.messages[0].arrived_ns, 1500);
    assert_time(trace.messages[1].arrived_ns, 1520);
    cw_trace_dispose(&trace);
    plan_end(&test);
}

/* The first op is ready only when the second one has the port: it goes before the third. */
static void ports_are_given_out_in_array_order(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    struct cw_trace trace;
    struct cw_price price;
    network.copy_ns_per_byte = 1;
    plan_begin_simple(&test, CW_BCAST, 2, 90);
    copy(&test, 0, SEND(0), SEND(0), 50);
    for (uint32_t i = 0; i < 3; i++) {
        put(&test, 0, 1, i, SEND(0), NOWHERE, 90);
        if (i == 0) {
            plan_after(&test, 0, 0);
        }
        wait_eager(&test, 1, 0, i, RECEIVE(0), 90);
    }
    assert_int_equal(cw_price_interpret(&test.plan, &network, &price, &trace), CW_OK);
    assert_time(trace.events[1].ready_ns, 50);
    assert_time(trace.events[1].start_ns, 90);
    assert_time(trace.events[2].start_ns, 0);
    assert_time(trace.events[3].ready_ns, 0);
    assert_time(trace.events[3].start_ns, 180);
    cw_trace_dispose(&trace);
    plan_end(&test);
}

/* ---- Processors ---- */

static void processor_serves_in_array_order(void **state)
{
    struct cw_network network = network_make(10, 1);
    for (uint32_t put_first = 0; put_first < 2; put_first++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_BCAST, 2, 500);
        if (put_first != 0) {
            message(&test, 0, 1, 0, 90);
        }
        reduce(&test, 0, SEND(0), SCRATCH(0), 500, false);
        if (put_first == 0) {
            message(&test, 0, 1, 0, 90);
        }
        expect(&test, &network, put_first != 0 ? 1100 : 1600);
    }
}

static void busy_processor_makes_an_arrival_late(void **state)
{
    static const struct {
        uint64_t reduced;
        double time;
    } cases[] = {{1090, 1100}, {1091, 1101}, {2000, 2010}};
    struct cw_network network = network_make(10, 1);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct test_plan test;
        plan_begin_simple(&test, CW_BCAST, 2, 4000);
        reduce(&test, 1, SCRATCH(0), SCRATCH(4000), cases[i].reduced, false);
        message(&test, 0, 1, 0, 90);
        expect(&test, &network, cases[i].time);
    }
}

static void what_costs_nothing_does_not_wait(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    plan_begin_simple(&test, CW_BCAST, 2, 500);
    reduce(&test, 0, SEND(0), SCRATCH(0), 500, false);
    message(&test, 0, 1, 0, 90);
    copy(&test, 0, SEND(0), SCRATCH(600), 90);
    expect(&test, &network, 1090);
}

static void copies_count_all_blocks(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    network.copy_ns_per_byte = 2;
    plan_begin_simple(&test, CW_BCAST, 2, 500);
    copy(&test, 0, SEND(0), SCRATCH(0), 30);
    plan_last(&test, 0)->blocks = 4;
    plan_last(&test, 0)->last_bytes = 10;
    expect(&test, &network, 2 * (3 * 30 + 10));
}

/* ---- Bodies ---- */

/* Segments of 90, 90, 40: arrivals at rank 1 1100, 1200, 1250; it sends at 1100, 1200, 1300. */
static void pipeline_of_three(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(10, 1);
    plan_begin_simple(&test, CW_BCAST, 3, 220);
    for (uint32_t rank = 0; rank < 3; rank++) {
        repeat(&test, rank, rank == 1 ? 2 : 1, 3);
        if (rank > 0) {
            wait_eager(&test, rank, rank - 1, 0, RECEIVE(0), 90);
            plan_last(&test, rank)->last_bytes = 40;
        }
        if (rank < 2) {
            put(&test, rank, rank + 1, 0, rank == 0 ? SEND(0) : RECEIVE(0), NOWHERE, 90);
            plan_last(&test, rank)->last_bytes = 40;
        }
    }
    plan_after(&test, 1, 1);
    assert_int_equal(interpret(&test, &network).messages, 6);
    expect(&test, &network, 1300 + 50 + 1000);
}

/* Iteration i waits for what happened two before: two puts in each round trip. */
static void back_dependencies(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    plan_begin_simple(&test, CW_BCAST, 2, 600);
    repeat(&test, 0, 1, 6);
    put(&test, 0, 1, 0, SEND(0), RECEIVE(0), 100);
    plan_after_flags(&test, 0, 1, 2, 0);
    repeat(&test, 1, 1, 6);
    wait_direct(&test, 1, 0, 0, RECEIVE(0), 100);
    /* starts 0, 100; 2100, 2200; 4200, 4300 */
    expect(&test, &network, 4300 + 100 + 2000);
}

/* 64 direct puts of 1 byte at a time: number 64 starts when number 0 is complete. */
static void window_of_a_body(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    plan_begin_simple(&test, CW_BCAST, 2, 100);
    repeat(&test, 0, 1, 100);
    put(&test, 0, 1, 0, SEND(0), RECEIVE(0), 1);
    repeat(&test, 1, 1, 100);
    wait_direct(&test, 1, 0, 0, RECEIVE(0), 1);
    expect(&test, &network, 2001 + 35 + 1 + 2000);
}

/* Two bodies, one listed after the other, advance together: the second one's first segment goes after the first one's
 * first. */
static void bodies_advance_together(void **state)
{
    struct test_plan test;
    struct cw_network network = network_make(0, 1);
    struct cw_trace trace;
    struct cw_price price;
    plan_begin_simple(&test, CW_BCAST, 3, 100);
    for (uint32_t i = 1; i < 3; i++) {
        repeat(&test, 0, 1, 4);
        put(&test, 0, i, 0, SEND(0), NOWHERE, 10);
        repeat(&test, i, 1, 4);
        wait_eager(&test, i, 0, 0, RECEIVE(0), 10);
    }
    assert_int_equal(cw_price_interpret(&test.plan, &network, &price, &trace), CW_OK);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(trace.messages[i].target, 1 + i % 2);
        assert_int_equal(trace.messages[i].iteration, i / 2);
        assert_time(trace.messages[i].start_ns, 10.0 * i);
    }
    cw_trace_dispose(&trace);
    plan_end(&test);
}

/* ---- What does not come to an end ---- */

static void endless_plans_are_refused(void **state)
{
    struct cw_network network = network_make(10, 1);
    for (uint32_t i = 0; i < 4; i++) {
        struct test_plan test;
        struct cw_price price = {.messages = 77};
        struct cw_trace trace = {.event_count = 77};
        plan_begin_simple(&test, CW_BCAST, 2, 90);
        if (i == 0) {
            wait_eager(&test, 1, 0, 0, RECEIVE(0), 90);
        } else if (i == 1) {
            put(&test, 0, 1, 0, SEND(0), NOWHERE, 90);
            wait_eager(&test, 1, 0, 1, RECEIVE(0), 90);
        } else if (i == 2) {
            barrier(&test, 0, 0);
        } else {
            message(&test, 0, 1, 0, 90);
            network.ports = 0;
        }
        assert_int_equal(cw_price_interpret(&test.plan, &network, &price, &trace), CW_ERROR_ARGUMENT);
        assert_int_equal(price.messages, 77);
        assert_int_equal(trace.event_count, 77);
        plan_end(&test);
    }
}

int main(void)
{
    return TESTS_RUN(eager_message, direct_message, what_waits_for_a_direct_put, copy_out_takes_the_processor,
                     signals_are_no_messages, ports_of_either_side, ports_take_in_the_order_of_coming,
                     ports_are_given_out_in_array_order, processor_serves_in_array_order,
                     busy_processor_makes_an_arrival_late, what_costs_nothing_does_not_wait, copies_count_all_blocks,
                     pipeline_of_three, back_dependencies, window_of_a_body, bodies_advance_together,
                     endless_plans_are_refused);
}
