/* Counts of sealed packets: each is accepted once, in any order. */
#include "dataplane/base/random.h"
#include "dataplane/staging/seal.h"
#include "tests/test.h"

static void in_order_and_again(void **state)
{
    struct cw_seal seal = {0};
    for (uint64_t count = 0; count < 100000; count++) {
        assert_true(cw_seal_fresh(&seal, count));
        assert_false(cw_seal_fresh(&seal, count));
        if (count >= CW_SEAL_WINDOW) {
            assert_false(cw_seal_fresh(&seal, count - CW_SEAL_WINDOW));
        }
    }
}

static void leaps_lose_nothing_that_counts(void **state)
{
    static const uint64_t leaps[] = {
        1, 63, 64, 65, CW_SEAL_WINDOW - 1, CW_SEAL_WINDOW, CW_SEAL_WINDOW + 1, 10 * CW_SEAL_WINDOW, 1ull << 32};
    for (size_t i = 0; i < sizeof(leaps) / sizeof(leaps[0]); i++) {
        for (uint64_t start = 0; start < 130; start++) {
            struct cw_seal seal = {0};
            uint64_t far = start + leaps[i];
            assert_true(cw_seal_fresh(&seal, start));
            assert_true(cw_seal_fresh(&seal, far));
            assert_false(cw_seal_fresh(&seal, far));
            assert_false(cw_seal_fresh(&seal, start));
            /* all in between is new if it is in the window, and taken once */
            uint64_t lowest = far >= CW_SEAL_WINDOW ? far + 1 - CW_SEAL_WINDOW : 0;
            for (uint64_t count = lowest > start ? lowest : start + 1; count < far; count++) {
                assert_true(cw_seal_fresh(&seal, count));
                assert_false(cw_seal_fresh(&seal, count));
            }
        }
    }
}

/* Against a table of everything that has come. */
static void at_random(void **state)
{
    enum { COUNTS = 200000 };
    bool *taken = calloc(COUNTS, sizeof(*taken));
    struct cw_seal seal = {0};
    struct cw_random random;
    cw_random_seed(&random, 11);
    uint64_t highest = 0, front = 0;
    for (uint32_t i = 0; i < 2000000 && front < COUNTS - 200; i++) {
        front += cw_random_chance(&random, 0.1) ? cw_random_below(&random, 20) : 0;
        front += cw_random_chance(&random, 0.0005) ? cw_random_below(&random, 100) : 0;
        uint64_t back = cw_random_below(&random, cw_random_chance(&random, 0.5) ? 100 : CW_SEAL_WINDOW + 500);
        uint64_t count = front > back ? front - back : 0;
        bool old = highest >= count + CW_SEAL_WINDOW;
        assert_int_equal(cw_seal_fresh(&seal, count), !taken[count] && !old);
        taken[count] = taken[count] || !old;
        highest = count > highest ? count : highest;
    }
    assert_true(front >= COUNTS - 200);
    free(taken);
}

static void beyond_the_end(void **state)
{
    struct cw_seal seal = {0};
    assert_true(cw_seal_fresh(&seal, CW_SEAL_COUNT_MAX - 1));
    assert_false(cw_seal_fresh(&seal, CW_SEAL_COUNT_MAX));
    assert_false(cw_seal_fresh(&seal, UINT64_MAX));
    assert_false(cw_seal_fresh(&seal, 0));
}

int main(void)
{
    return TESTS_RUN(in_order_and_again, leaps_lose_nothing_that_counts, at_random, beyond_the_end);
}
