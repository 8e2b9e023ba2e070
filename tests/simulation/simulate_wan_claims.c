/* What collectives across two clusters take, in virtual time, against the cost model of Matsuda et al. (2006, Table 1);
 * the same as `causeway bench wan`. */
#include "tests/simulation/simulation.h"

#include <malloc.h>
#include <math.h>

#include "apps/bench/collectives/wan.h"

/* The paper's setting; half of the ranks, and half of the bytes over half of the rate, where every access is
 * checked. */
static struct bench_wan_case setting(void)
{
    struct bench_wan_case of;
    bench_wan_case_init(&of);
    if (test_is_short()) {
        of.ranks = 8;
        of.bytes = 16000000;
        of.wan_rate_bps = 5000000000;
        of.runs = 3; /* so short, one run may take a fifth longer by the order in which two transfers end */
    }
    return of;
}

static struct bench_wan_result run(const struct bench_wan_case *of, enum cw_collective collective,
                                   const char *algorithm, uint32_t senders)
{
    struct bench_wan_result result = {0};
    assert_int_equal(bench_wan_run(of, collective, algorithm, senders, 0, &result), 0);
    printf("%s, n = %u: %.1f ms, by the model %.1f; longest queue %llu bytes\n", algorithm, senders,
           result.median_ns / 1e6, result.model_ns / 1e6, (unsigned long long)result.wan_queue_max_bytes);
    assert_int_equal(result.wan_dropped, 0);
    return result;
}

/* Measured and by the model: how many times as fast. Latencies inside clusters, which the model leaves out, are a few
 * per cent. */
static void assert_ratio(const struct bench_wan_result *slow, const struct bench_wan_result *fast)
{
    double measured = slow->median_ns / fast->median_ns;
    double expected = slow->model_ns / fast->model_ns;
    printf("  %.3f times as fast, %.3f by the model\n", measured, expected);
    assert_true(fabs(measured / expected - 1) <= 0.05);
}

static void broadcasts(void **state)
{
    struct bench_wan_case of = setting();
    uint32_t half = of.ranks / 2;
    struct bench_wan_result slow = run(&of, CW_BCAST, "clusters-farfirst", 0);
    struct bench_wan_result fast = run(&of, CW_BCAST, "clusters-van-de-geijn", half);
    assert_true(slow.median_ns <= 1.1 * slow.model_ns); /* the baseline is no worse than it need be */
    assert_true(fast.median_ns <= 1.1 * fast.model_ns);
    assert_ratio(&slow, &fast);
    /* more senders than the link carries: the paper's throughput drops there */
    struct bench_wan_result all = run(&of, CW_BCAST, "clusters-van-de-geijn", of.ranks);
    assert_true(all.median_ns <= 1.02 * fast.median_ns);
    if (test_is_short()) {
        return; /* the pipeline of the next is too long for so few bytes */
    }
    struct bench_wan_result overlapped = run(&of, CW_BCAST, "clusters-overlapped", half);
    assert_true(overlapped.median_ns <= 1.2 * overlapped.model_ns);
}

static void allreduces(void **state)
{
    struct bench_wan_case of = setting();
    uint32_t half = of.ranks / 2;
    struct bench_wan_result slow = run(&of, CW_ALLREDUCE, "clusters-two-tier", 0);
    struct bench_wan_result fast = run(&of, CW_ALLREDUCE, "clusters-rabenseifner", half);
    assert_true(slow.median_ns <= 1.15 * slow.model_ns);
    assert_ratio(&slow, &fast);
    struct bench_wan_result all = run(&of, CW_ALLREDUCE, "clusters-rabenseifner", of.ranks);
    assert_true(all.median_ns <= 1.05 * fast.median_ns);
}

int main(void)
{
    /* Each run has a gigabyte of buffers: given back to the kernel in between, it would be cleared each time. */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broadcasts),
        cmocka_unit_test(allreduces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
