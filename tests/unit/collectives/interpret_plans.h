/* Small plans in model time, for the tests of the interpreter: plan_begin..., ops (check_plans.h), then `expect`, or
 * `interpret` and plan_end. g(m) = overhead + m, os = or = overhead; L = 1000, between clusters 5000; reducing takes 1
 * a byte, copying nothing. */
#pragma once

#include <math.h>
#include <string.h>

#include "collectives/price/price.h"
#include "tests/test.h"
#include "tests/unit/collectives/check_plans.h"

static inline struct cw_network network_make(double overhead_ns, uint32_t ports)
{
    struct cw_network network = {
        .paths = {cw_plogp_linear(1000, overhead_ns, 1), cw_plogp_linear(5000, overhead_ns, 1)},
        .ports = ports,
        .reduce_ns_per_byte = 1,
    };
    return network;
}

static inline void assert_time(double time, double expected)
{
    if (fabs(time - expected) > 1e-6) {
        fail_msg("%.9g is not %.9g", time, expected);
    }
}

static inline void plan_end(struct test_plan *test)
{
    cw_problem_destroy(test->plan.problem);
    free(test->plan.schedules);
    free(test->ranks);
}

static inline struct cw_price interpret(const struct test_plan *test, const struct cw_network *network)
{
    struct cw_price price;
    assert_int_equal(cw_price_interpret(&test->plan, network, &price, NULL), CW_OK);
    return price;
}

/* Interprets and ends the plan. */
static inline void expect(struct test_plan *test, const struct cw_network *network, double time_ns)
{
    assert_time(interpret(test, network).time_ns, time_ns);
    plan_end(test);
}

static inline void message(struct test_plan *test, uint32_t from, uint32_t to, uint32_t tag, uint64_t bytes)
{
    put(test, from, to, tag, SEND(0), NOWHERE, bytes);
    wait_eager(test, to, from, tag, RECEIVE(0), bytes);
}
