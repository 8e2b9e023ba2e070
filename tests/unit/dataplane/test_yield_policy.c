/* Yield policy: when a waiting thread yields, and when it had better sleep. */
#include "dataplane/base/yield_policy.h"
#include "tests/test.h"

enum { SHORT_NS = 2000 };

/* Short yields one after the other, for `duration_ns`; returns the time then. */
static uint64_t yield_for(struct cw_yield_policy *yield_policy, uint64_t now_ns, uint64_t duration_ns)
{
    for (uint64_t end_ns = now_ns + duration_ns; now_ns < end_ns; now_ns += SHORT_NS) {
        cw_yield_policy_note(yield_policy, now_ns, now_ns + SHORT_NS);
    }
    return now_ns;
}

static void test_short_yields_go_on(void **state)
{
    struct cw_yield_policy yield_policy = {.resume_ns = 0};
    (void)yield_for(&yield_policy, 1000000000, 1000000000);
    assert_int_equal(yield_policy.resume_ns, 0);
    assert_true(cw_yield_policy_yield(&yield_policy, cw_clock_ns()));
}

/* Long yields until one is too many; returns the time then. */
static uint64_t yield_long(struct cw_yield_policy *yield_policy, uint64_t now_ns)
{
    uint64_t resume_ns = yield_policy->resume_ns;
    for (uint32_t yields = 0; yield_policy->resume_ns == resume_ns; yields++) {
        assert_in_range(yields, 0, CW_YIELD_MEAN_OVER);
        cw_yield_policy_note(yield_policy, now_ns, now_ns + 3000000);
        now_ns += 3000000;
    }
    return now_ns;
}

/* Long yields, one after the other, end them for longer each time, up to a bound, unless short ones have paid in
 * between. */
static void test_long_yields_retreat(void **state)
{
    struct cw_yield_policy yield_policy = {.resume_ns = 0};
    uint64_t now_ns = 1000000000;
    uint64_t retreat_ns = CW_YIELD_RETREAT_MIN_NS;
    for (uint32_t i = 0; i < 10; i++) {
        now_ns = yield_for(&yield_policy, now_ns, CW_YIELD_TRIAL_NS / 2); /* too short to be trusted */
        now_ns = yield_long(&yield_policy, now_ns);
        assert_int_equal(yield_policy.resume_ns, now_ns + retreat_ns);
        assert_false(cw_yield_policy_yield(&yield_policy, yield_policy.resume_ns - 1));
        now_ns = yield_policy.resume_ns;
        retreat_ns = 2 * retreat_ns < CW_YIELD_RETREAT_MAX_NS ? 2 * retreat_ns : CW_YIELD_RETREAT_MAX_NS;
    }
    assert_int_equal(retreat_ns, CW_YIELD_RETREAT_MAX_NS);
    now_ns = yield_for(&yield_policy, now_ns, 2 * CW_YIELD_TRIAL_NS); /* they have paid */
    (void)yield_long(&yield_policy, now_ns);
    assert_int_equal(yield_policy.retreat_ns, CW_YIELD_RETREAT_MIN_NS);
}

/* A thread that lets others run all the time sleeps after some of these yields, each time again; a lone one never
 * does. */
static void test_is_tired_of_sharing(void **state)
{
    struct cw_yield_policy yield_policy = {.resume_ns = 0};
    uint64_t now_ns = 1;
    for (uint32_t i = 0; i < 10 * CW_YIELD_TIRES; i++, now_ns += 10000) {
        cw_yield_policy_note(&yield_policy, now_ns, now_ns + CW_YIELD_SHARED_NS);
        assert_false(cw_yield_policy_is_tired(&yield_policy));
    }
    for (uint32_t i = 1; i < 5 * CW_YIELD_TIRES; i++, now_ns += 10000) {
        cw_yield_policy_note(&yield_policy, now_ns, now_ns + CW_YIELD_SHARED_NS + 1);
        assert_int_equal(cw_yield_policy_is_tired(&yield_policy), i % CW_YIELD_TIRES == 0);
    }
    assert_int_equal(yield_policy.resume_ns, 0); /* and yields still pay */
}

/* A long slice of another thread now and then is no reason to sleep. */
static void test_some_long_yields_among_short_ones(void **state)
{
    struct cw_yield_policy yield_policy = {.resume_ns = 0};
    uint64_t now_ns = 1000000000;
    for (uint32_t i = 0; i < 100; i++) {
        now_ns = yield_for(&yield_policy, now_ns, 100 * SHORT_NS);
        cw_yield_policy_note(&yield_policy, now_ns, now_ns + 4000000);
        now_ns += 4000000;
        assert_int_equal(yield_policy.resume_ns, 0);
    }
}

int main(void)
{
    return TESTS_RUN(test_short_yields_go_on, test_is_tired_of_sharing, test_long_yields_retreat,
                     test_some_long_yields_among_short_ones);
}
