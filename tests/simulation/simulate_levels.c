/* The levels of compiled communication in virtual time, as `causeway bench alltoallv` has them: Tables 2 and 3 of
 * CC-MPI, so far as a network that drops nothing has them. */
#include "apps/bench/collectives/alltoallv.h"
#include "tests/simulation/simulation.h"

enum { MEMBERS = 16 };

static void case_init(struct bench_alltoallv_case *of, uint64_t bytes)
{
    struct bench_mcast_result exchange;
    *of = (struct bench_alltoallv_case){
        .network = {.members = MEMBERS,
                    .bytes = bytes,
                    .runs = 2,
                    .rate_bps = 100000000,
                    .delay_ns = 100000,
                    .switches = 1,
                    .seed = 1},
        .schedule_ns = 25000,
    };
    assert_int_equal(bench_alltoallv_exchange(of, &exchange), 0);
    of->exchange_ns = exchange.median_ns;
}

/* What is known beforehand need not be done; and the longer messages are, the less that matters, and the less phases
 * cost beside pairs. */
static void knowing_more_takes_less(void **state)
{
    static const uint64_t sizes[] = {2048, 8192, 65536};
    double exchange_share = 1, phases_share = 1e9;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bench_alltoallv_case of;
        struct bench_alltoallv_line line, pairs;
        case_init(&of, sizes[i]);
        assert_int_equal(bench_alltoallv_run(&of, "all-to-all-based", &line), 0);
        assert_int_equal(bench_alltoallv_run(&of, "rotated", &pairs), 0);
        printf("%llu bytes: level 1 %.1f us, level 2 %.1f us, level 3 %.1f us, pairs %.1f us\n",
               (unsigned long long)sizes[i], line.level_ns[1] / 1e3, line.level_ns[2] / 1e3, line.level_ns[3] / 1e3,
               pairs.level_ns[3] / 1e3);
        assert_int_equal(line.phases, MEMBERS - 1);
        assert_int_equal(pairs.phases, 0);
        assert_true(line.level_ns[3] < line.level_ns[2] && line.level_ns[2] < line.level_ns[1]);
        assert_true(line.level_ns[2] - line.level_ns[3] == (double)of.schedule_ns);
        double share = (line.level_ns[1] - line.level_ns[3]) / line.level_ns[1];
        double behind = line.level_ns[1] / pairs.level_ns[1];
        assert_true(share < exchange_share && behind < phases_share);
        exchange_share = share;
        phases_share = behind;
        /* no link can carry it sooner */
        assert_true(line.level_ns[3] >= (double)(MEMBERS - 1) * (double)sizes[i] * 80);
        assert_true(pairs.level_ns[3] >= (double)(MEMBERS - 1) * (double)sizes[i] * 80);
    }
}

/* Barriers between the phases, as CC-MPI has them, cost more than leave from the next receiver. */
static void barriers_cost_more(void **state)
{
    struct bench_alltoallv_case of;
    struct bench_alltoallv_line line, barriers;
    case_init(&of, 2048);
    assert_int_equal(bench_alltoallv_run(&of, "all-to-all-based", &line), 0);
    assert_int_equal(bench_alltoallv_run(&of, "all-to-all-based-barriers", &barriers), 0);
    printf("2048 bytes: %.1f us, with barriers %.1f us\n", line.level_ns[3] / 1e3, barriers.level_ns[3] / 1e3);
    assert_true(line.level_ns[3] < barriers.level_ns[3]);
}

/* Messages between nearly all pairs, of three lengths: greedy makes more phases, and takes longer. */
static void all_to_all_based_is_ahead_of_greedy_on_dense_patterns(void **state)
{
    struct test_seeds seeds = test_seeds(1, 3);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct bench_alltoallv_case of;
        struct bench_alltoallv_line based, greedy;
        case_init(&of, BENCH_ALLTOALLV_RANDOM);
        of.network.seed = seed;
        assert_int_equal(bench_alltoallv_run(&of, "all-to-all-based", &based), 0);
        assert_int_equal(bench_alltoallv_run(&of, "greedy", &greedy), 0);
        printf("seed %llu: all-to-all-based %u phases, %.1f us; greedy %u phases, %.1f us\n", (unsigned long long)seed,
               based.phases, based.level_ns[3] / 1e3, greedy.phases, greedy.level_ns[3] / 1e3);
        assert_int_equal(based.phases, MEMBERS - 1);
        assert_true(greedy.phases > based.phases && greedy.level_ns[3] > based.level_ns[3]);
    }
}

static void algorithms_without_phases_are_told_apart(void **state)
{
    assert_true(bench_alltoallv_has_phases("greedy"));
    assert_true(bench_alltoallv_has_phases("greedy-barriers"));
    assert_true(bench_alltoallv_has_phases("splitting"));
    assert_false(bench_alltoallv_has_phases("greedy-nothing"));
    assert_false(bench_alltoallv_has_phases("direct"));
    assert_false(bench_alltoallv_has_phases(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knowing_more_takes_less),
        cmocka_unit_test(barriers_cost_more),
        cmocka_unit_test(all_to_all_based_is_ahead_of_greedy_on_dense_patterns),
        cmocka_unit_test(algorithms_without_phases_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
