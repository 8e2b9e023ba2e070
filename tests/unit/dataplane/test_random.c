/* The seeded generator: it must never change, since printed seeds are replayed later. */
#include "dataplane/base/random.h"
#include "tests/test.h"

static void test_numbers_are_fixed(void **state)
{
    /* xoshiro256** seeded by splitmix64(0), as the authors' programs print it. */
    static const uint64_t expected[] = {0x99ec5f36cb75f2b4, 0xbf6e1f784956452a, 0x1a5f849d4933e6e0, 0x6aa594f1262d2d2c};
    struct cw_random random;
    cw_random_seed(&random, 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(cw_random_next(&random), expected[i]);
    }
}

static void test_ranges(void **state)
{
    struct cw_random random;
    uint32_t counts[10] = {0};
    uint32_t hits = 0;
    cw_random_seed(&random, 7);
    for (int i = 0; i < 100000; i++) {
        uint64_t number = cw_random_below(&random, 10);
        assert_true(number < 10);
        counts[number]++;
        number = cw_random_between(&random, 5, 6);
        assert_true(number == 5 || number == 6);
        hits += cw_random_chance(&random, 0.25);
    }
    for (int i = 0; i < 10; i++) {
        assert_in_range(counts[i], 9600, 10400);
    }
    assert_in_range(hits, 24500, 25500);
    assert_int_equal(cw_random_below(&random, 1), 0);
    assert_int_equal(cw_random_between(&random, 9, 9), 9);
}

static void test_chance_of_nothing_draws_nothing(void **state)
{
    struct cw_random random, before;
    cw_random_seed(&random, 1);
    before = random;
    assert_false(cw_random_chance(&random, 0));
    assert_memory_equal(&random, &before, sizeof(random));
    for (int i = 0; i < 1000; i++) {
        assert_true(cw_random_chance(&random, 1));
    }
}

static void test_streams_differ(void **state)
{
    struct cw_random random;
    uint8_t a[13], b[13];
    for (uint64_t i = 0; i < 100; i++) {
        for (uint64_t k = 0; k < i; k++) {
            assert_int_not_equal(cw_random_derive(3, i), cw_random_derive(3, k));
        }
        assert_int_not_equal(cw_random_derive(3, i), cw_random_derive(4, i));
    }
    cw_random_seed(&random, 5);
    cw_random_fill(&random, a, sizeof(a));
    cw_random_seed(&random, 5);
    cw_random_fill(&random, b, sizeof(b));
    assert_memory_equal(a, b, sizeof(a));
}

int main(void)
{
    return TESTS_RUN(test_numbers_are_fixed, test_ranges, test_chance_of_nothing_draws_nothing, test_streams_differ);
}
