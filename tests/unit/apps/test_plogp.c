/* From times to parameters: a machine that is known is found again, in spite of noise, and nonsense still makes a valid
 * table. */
#include <math.h>

#include "apps/plogp/arithmetic.h"
#include "dataplane/base/random.h"
#include "dataplane/status.h"
#include "tests/test.h"

static const uint64_t sizes[] = {0, 64, 1024, 8192, 65536, 1048576};

enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), REPETITIONS = 101 };

static const struct cw_plogp machine = {
    .latency_ns = 3000,
    .count = 3,
    .points = {{0, 500, 200, 300}, {8192, 4000, 1500, 2000}, {1048576, 900000, 5000, 450000}},
};

/* A part of the trips is disturbed, and takes up to a hundred times as long: medians do not see it. */
static double disturbed(struct cw_random *random, double time_ns)
{
    double noise = 1 + 0.02 * ((double)cw_random_below(random, 1000) / 1000 - 0.5);
    return time_ns * (cw_random_below(random, 4) == 0 ? (double)(2 + cw_random_below(random, 100)) : noise);
}

static void sample_make(struct cw_random *random, uint64_t bytes, struct plogp_sample *sample)
{
    double trips[REPETITIONS], sends[REPETITIONS], receives[REPETITIONS];
    double trip_ns = 2 * machine.latency_ns + cw_plogp_gap(&machine, bytes) + cw_plogp_gap(&machine, 0);
    for (int i = 0; i < REPETITIONS; i++) {
        trips[i] = disturbed(random, trip_ns);
        sends[i] = disturbed(random, cw_plogp_send(&machine, bytes));
        receives[i] = disturbed(random, cw_plogp_receive(&machine, bytes));
    }
    *sample =
        (struct plogp_sample){bytes, cw_statistics_median(trips, REPETITIONS), cw_statistics_median(sends, REPETITIONS),
                              cw_statistics_median(receives, REPETITIONS)};
}

static bool is_about(double value, double expected, double allowed)
{
    return fabs(value - expected) <= allowed * expected;
}

static void a_known_machine_is_found_again(void **state)
{
    struct test_seeds seeds = test_seeds(1, 20);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct cw_random random;
        struct plogp_sample samples[SIZES];
        struct cw_plogp found = {0};
        cw_random_seed(&random, seed);
        for (int i = 0; i < SIZES; i++) {
            sample_make(&random, sizes[i], &samples[i]);
        }
        plogp_solve(samples, SIZES, 500, &found);
        assert_true_msg(is_about(found.latency_ns, machine.latency_ns, 0.05), "seed %llu: L %g",
                        (unsigned long long)seed, found.latency_ns);
        for (int i = 0; i < SIZES; i++) {
            double gap_ns = cw_plogp_gap(&machine, sizes[i]);
            if (fabs(found.points[i].gap_ns - gap_ns) > 0.02 * (gap_ns + 7000) ||
                !is_about(found.points[i].send_ns, cw_plogp_send(&machine, sizes[i]), 0.05) ||
                !is_about(found.points[i].receive_ns, cw_plogp_receive(&machine, sizes[i]), 0.05)) {
                fail_msg("seed %llu, %llu bytes: g %g", (unsigned long long)seed, (unsigned long long)sizes[i],
                         found.points[i].gap_ns);
            }
        }
    }
}

static void any_samples_make_a_valid_table(void **state)
{
    struct cw_random random;
    cw_random_seed(&random, 7);
    for (int round = 0; round < 2000; round++) {
        struct plogp_sample samples[SIZES];
        struct cw_network network = {.ports = 1};
        char error[200] = "";
        for (int i = 0; i < SIZES; i++) {
            samples[i] = (struct plogp_sample){sizes[i], 1 + (double)cw_random_below(&random, 1 << 20),
                                               (double)cw_random_below(&random, 1 << 20),
                                               (double)cw_random_below(&random, 1 << 20)};
        }
        plogp_solve(samples, SIZES, (double)cw_random_below(&random, 1 << 20), &network.paths[0]);
        network.paths[1] = network.paths[0];
        assert_true_msg(cw_network_validate(&network, error, sizeof(error)) == CW_OK, "round %d: %s", round, error);
    }
}

static void samples_are_where_the_table_bends(void **state)
{
    struct plogp_sample line[] = {{0, 1000, 0, 0}, {1000, 2000, 0, 0}, {10000, 11000, 0, 0}, {100000, 101000, 0, 0}};
    assert_int_equal(plogp_next_size(line, 4), 0);
    line[2].trip_ns = 30000;
    uint64_t next = plogp_next_size(line, 4);
    assert_true(next > 1000 && next < 100000 && next != 10000);
    assert_int_equal(plogp_next_size(line, 2), 0);
    struct plogp_sample close[] = {{1000, 1000, 0, 0}, {1010, 9000, 0, 0}, {1020, 1000, 0, 0}};
    assert_int_equal(plogp_next_size(close, 3), 0); /* no room between them */
}

static void contention_lies_between_the_bounds(void **state)
{
    double lower_ns = 7 * 1500 + 7 * 2000 + 3000, upper_ns = 7 * 4000 + 7 * 2000 + 3000;
    assert_true(plogp_contention(&machine, 8, 8192, lower_ns - 1000) == 0);
    assert_true(plogp_contention(&machine, 8, 8192, upper_ns * 2) == 1);
    assert_true(is_about(plogp_contention(&machine, 8, 8192, lower_ns + 0.4 * (upper_ns - lower_ns)), 0.4, 0.001));
}

static void ports_are_what_goes_at_full_speed(void **state)
{
    struct cw_measured_concurrent tests[] = {
        {1024, 2, 100, 110, 0}, {8192, 2, 100, 120, 0}, {65536, 2, 100, 190, 0},
        {1024, 4, 100, 120, 0}, {8192, 4, 100, 300, 0}, {65536, 4, 100, 390, 0},
    };
    assert_int_equal(plogp_ports(tests, 6), 2);
    tests[4].all_ns = 140;
    assert_int_equal(plogp_ports(tests, 6), 4);
    assert_int_equal(plogp_ports(tests, 0), 1);
    tests[1].all_ns = tests[4].all_ns = 200;
    assert_int_equal(plogp_ports(tests, 6), 1);
}

/* A machine that is busy takes its slices from half of the trips or more; one that is disturbed now and then does
 * not. */
static void noise_is_distinguished_from_disturbances(void **state)
{
    double quiet[100], busy[100];
    for (int i = 0; i < 100; i++) {
        quiet[i] = i % 3 == 0 ? 4e6 : 300 + i;
        busy[i] = i % 3 == 0 ? 300 + i : 4e6 + i;
    }
    assert_true(plogp_noise(quiet, 100) <= PLOGP_NOISE_MAX);
    assert_true(plogp_noise(busy, 100) > 1000);
    assert_true(plogp_noise(NULL, 0) <= PLOGP_NOISE_MAX);
    assert_true(plogp_noise((double[]){0, 0, 0}, 3) <= PLOGP_NOISE_MAX); /* a clock that stands still */
}

static void medians(void **state)
{
    assert_true(cw_statistics_median((double[]){3, 1, 2}, 3) == 2);
    assert_true(cw_statistics_median((double[]){4, 1, 3, 2}, 4) == 2.5);
    assert_true(cw_statistics_median(NULL, 0) == 0);
}

int main(void)
{
    return TESTS_RUN(a_known_machine_is_found_again, any_samples_make_a_valid_table, samples_are_where_the_table_bends,
                     contention_lies_between_the_bounds, ports_are_what_goes_at_full_speed, medians,
                     noise_is_distinguished_from_disturbances);
}
