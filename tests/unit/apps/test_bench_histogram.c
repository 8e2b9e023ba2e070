/* Histograms of benchmarks: percentiles are within 1/64 of the truth, and never below it. */
#include <stdlib.h>

#include "apps/bench/histogram.h"
#include "dataplane/base/random.h"
#include "tests/test.h"

enum { SAMPLES = 10000 };

static int compare(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return left < right ? -1 : left > right;
}

static void check_percentiles(const struct bench_histogram *histogram, uint64_t *samples, size_t count)
{
    static const double shares[] = {0, 0.01, 0.5, 0.9, 0.99, 0.999, 1};
    qsort(samples, count, sizeof(*samples), compare);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        size_t index = (size_t)(shares[i] * (double)count);
        uint64_t truth = samples[index < count ? index : count - 1];
        uint64_t told = bench_histogram_percentile(histogram, shares[i]);
        assert_true(told >= truth);
        assert_true(told - truth <= truth / 64);
    }
}

static void test_percentiles(void **state)
{
    static struct bench_histogram histogram;
    static uint64_t samples[SAMPLES];
    struct cw_random random;
    cw_random_seed(&random, 1);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        /* from nanoseconds to minutes */
        samples[i] = cw_random_next(&random) >> cw_random_between(&random, 25, 63);
        bench_histogram_add(&histogram, samples[i]);
    }
    assert_int_equal(histogram.count, SAMPLES);
    check_percentiles(&histogram, samples, SAMPLES);
    assert_int_equal(bench_histogram_percentile(&histogram, 1), histogram.max_ns);
}

static void test_edges(void **state)
{
    static const uint64_t edges[] = {0, 1, 63, 64, 65, 127, 128, 4095, 4096, (1ull << 40) - 1, 1ull << 40, UINT64_MAX};
    static struct bench_histogram empty;
    assert_int_equal(bench_histogram_percentile(&empty, 0.5), 0);
    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        struct bench_histogram histogram = {.count = 0};
        bench_histogram_add(&histogram, edges[i]);
        assert_int_equal(bench_histogram_percentile(&histogram, 0.5), edges[i]);
        assert_int_equal(histogram.max_ns, edges[i]);
    }
}

static void test_merge(void **state)
{
    static struct bench_histogram both;
    static struct bench_histogram parts[2];
    for (uint64_t i = 0; i < SAMPLES; i++) {
        bench_histogram_add(&both, i * 7);
        bench_histogram_add(&parts[i % 2], i * 7);
    }
    bench_histogram_merge(&parts[0], &parts[1]);
    assert_memory_equal(&parts[0], &both, sizeof(both));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_percentiles),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_merge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
