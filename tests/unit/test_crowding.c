/* Crowding: from run delays to whether one may spin. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "apps/crowding.h"
#include "dataplane/core/clock.h"

struct world {
    struct cw_crowding crowding;
    uint64_t now_ns;
    uint64_t delay_ns;
};

/* Lets the time come that it waits for, of which a part in `share` is run delay; returns how long that was. */
static uint64_t go_on(struct world *world, uint64_t share)
{
    uint64_t duration_ns = world->crowding.look_ns - world->now_ns;
    world->now_ns += duration_ns;
    world->delay_ns += share == 0 ? 0 : duration_ns / share;
    cw_crowding_judge(&world->crowding, world->now_ns, world->delay_ns);
    return duration_ns;
}

static void start(struct world *world)
{
    *world = (struct world){.now_ns = 1000000000, .delay_ns = 123456789}; /* what was before does not count */
    cw_crowding_init(&world->crowding);
    cw_crowding_judge(&world->crowding, world->now_ns, world->delay_ns);
    assert_false(world->crowding.crowded);
}

static void test_alone(void **state)
{
    (void)state;
    struct world world;
    start(&world);
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(go_on(&world, 2 * (uint64_t)CW_CROWDING_SHARE), CW_CROWDING_TRIAL_NS);
        assert_false(world.crowding.crowded);
    }
}

/* While the crowd lasts, trials come seldomer, up to a bound; one that succeeds ends it. */
static void test_crowd(void **state)
{
    (void)state;
    struct world world;
    uint64_t retreat_ns = CW_CROWDING_RETREAT_MIN_NS;
    start(&world);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(go_on(&world, 2), CW_CROWDING_TRIAL_NS);
        assert_true(world.crowding.crowded);
        assert_int_equal(go_on(&world, 2), retreat_ns);
        assert_false(world.crowding.crowded);
        retreat_ns = 2 * retreat_ns < CW_CROWDING_RETREAT_MAX_NS ? 2 * retreat_ns : CW_CROWDING_RETREAT_MAX_NS;
    }
    assert_int_equal(retreat_ns, CW_CROWDING_RETREAT_MAX_NS);
    (void)go_on(&world, 0);
    assert_false(world.crowding.crowded);
    (void)go_on(&world, 2);
    assert_true(world.crowding.crowded);
    assert_int_equal(go_on(&world, 2), CW_CROWDING_RETREAT_MIN_NS);
}

/* Between two looks nothing is read; whatever this machine says, a look can be taken. */
static void test_real(void **state)
{
    (void)state;
    struct cw_crowding crowding;
    cw_crowding_init(&crowding);
    uint64_t now_ns = cw_clock_ns();
    assert_false(cw_crowding_look(&crowding, now_ns)); /* the first look compares with nothing */
    assert_true(crowding.look_ns > now_ns);
    assert_false(cw_crowding_look(&crowding, now_ns));
    cw_crowding_dispose(&crowding);
    assert_int_equal(crowding.descriptor, -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
