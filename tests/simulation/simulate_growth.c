/* How collectives of ranks in clusters grow, in virtual time; the same as `causeway bench scale`, which goes on to
 * 1,024 ranks. Every byte is verified by the run itself. */
#include "tests/simulation/simulation.h"

#include "apps/bench/collectives/scale.h"

enum { FEW = 64, MANY = 256 }; /* in 16 clusters both */

static struct bench_scale_point run(enum cw_collective collective, const char *algorithm, uint32_t ranks)
{
    struct bench_scale_case of;
    struct bench_scale_point point = {0};
    bench_scale_case_init(&of);
    of.bytes = 256 << 10;
    assert_int_equal(bench_scale_run(&of, collective, algorithm, ranks, &point), 0);
    printf("%s %s, %u ranks: %.1f ms, by the model %.1f; %.1f packets and %llu bytes a rank, %u sessions\n",
           cw_collective_name(collective), point.algorithm, ranks, point.time_ns / 1e6, point.model_ns / 1e6,
           point.packets, (unsigned long long)point.memory.rank_bytes, point.memory.peers);
    assert_true(point.time_ns > 0 && point.packets > 0 && point.memory.peers > 0);
    assert_true(point.retransmitted <= 0); /* nothing is lost, so nothing may be sent twice */
    return point;
}

/* The exponents of P. */
static void assert_growth(enum cw_collective collective, const char *algorithm, double packets, double memory,
                          double time)
{
    const uint32_t most = collective == CW_ALLTOALL && test_is_short() ? MANY / 2 : MANY;
    struct bench_scale_point few = run(collective, algorithm, FEW), many = run(collective, algorithm, most);
    double packets_grow = bench_scale_exponent(FEW, few.packets, most, many.packets);
    double memory_grows =
        bench_scale_exponent(FEW, (double)few.memory.rank_bytes, most, (double)many.memory.rank_bytes);
    double time_grows = bench_scale_exponent(FEW, few.time_ns, most, many.time_ns);
    printf("  packets ~ P^%.2f, memory ~ P^%.2f, time ~ P^%.2f\n", packets_grow, memory_grows, time_grows);
    assert_true(packets_grow <= packets);
    assert_true(memory_grows <= memory);
    assert_true(time_grows <= time);
}

/* What a rank sends in all-to-all grows with P itself. */
static void alltoalls(void **state)
{
    /* what crosses between heads of few ranks is a message, and crosses once; of many it waits for the word that its
     * place is free */
    assert_growth(CW_ALLTOALL, "clusters-heads", 0.8, 0.5, 0.8);
    assert_growth(CW_ALLTOALL, "bruck", 1.0, 0.5, 0.9);
}

static void broadcasts(void **state)
{
    assert_growth(CW_BCAST, NULL, 0.2, 0.3, 0.4);
    assert_growth(CW_BCAST, "clusters-van-de-geijn", 0.2, 0.3, 0.4);
}

static void allreduces(void **state)
{
    assert_growth(CW_ALLREDUCE, NULL, 0.3, 0.3, 0.4);
}

/* Where pairs would be too many sessions the heads are chosen, with few of them and few packets; pairs are what they
 * are held against. */
static void few_sessions(void **state)
{
    struct bench_scale_point heads = run(CW_ALLTOALL, NULL, MANY), pairs = run(CW_ALLTOALL, "rotated", MANY);
    assert_string_equal(heads.algorithm, "clusters-heads");
    assert_true(heads.memory.peers <= 32 && pairs.memory.peers == 255);
    assert_true(heads.packets <= pairs.packets / 5);
    assert_true(heads.wan_frames <= pairs.wan_frames / 10);
    assert_true(heads.memory.rank_bytes <= pairs.memory.rank_bytes / 2);
}

/* Handed to a sender again for each other cluster, parts waited a round trip for each: 300 ms. */
static void handed_over_once(void **state)
{
    struct bench_scale_case of;
    struct bench_scale_point point = {0};
    bench_scale_case_init(&of);
    of.clusters_max = 8;
    of.bytes = 16384 * 32;
    assert_int_equal(bench_scale_run(&of, CW_BCAST, "clusters-van-de-geijn", 256, &point), 0);
    printf("%.1f ms, by the model %.1f, with %u senders of 32\n", point.time_ns / 1e6, point.model_ns / 1e6,
           point.senders);
    assert_true(point.senders > 0 && point.senders < 32);
    assert_true(point.time_ns <= 80e6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alltoalls),    cmocka_unit_test(broadcasts),       cmocka_unit_test(allreduces),
        cmocka_unit_test(few_sessions), cmocka_unit_test(handed_over_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
