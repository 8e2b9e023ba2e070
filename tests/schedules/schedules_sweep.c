/* Every algorithm of one collective on all cases: the checker passes it, and the adversarial transport delivers the
 * right bytes. The same for plans of ranks that know only their own counts.
 *
 * Arguments: the collective, and `clusters` for the algorithms that need clusters or `flat` for the others; or `own`.
 * CW_TEST_THIN: only about each n-th case. */
#include "collectives/algorithms/own.h"
#include "collectives/check/check.h"
#include "dataplane/status.h"
#include "tests/schedules/cases.h"
#include "tests/schedules/trial.h"
#include "tests/test.h"

struct sweep {
    enum cw_collective collective;
    bool clusters;
    uint32_t thin;
    uint64_t cases;
    struct test_seeds seeds; /* one for each case of an algorithm and a number of ranks */
};

static struct sweep sweep;

static void plan_check(const struct cw_plan *plan, const char *name, uint64_t seed)
{
    static const uint32_t eager_buffers[] = {0, 2, PLAN_TRIAL_EAGER_BUFFERS_MANY};
    struct cw_check_report report;
    char error[400];
    assert_int_equal(cw_check(plan, &report), CW_OK);
    assert_true_msg(report.fault == CW_CHECK_PASSED, "%s: %s: %s", name, cw_check_fault_name(report.fault),
                    report.text);
    if (plan_trial_once(plan, seed, eager_buffers[seed % 3], error, sizeof(error)) != 0) {
        fail_msg("%s: run with seed %llu: %s", name, (unsigned long long)seed, error);
    }
}

static bool case_check(void *context, const struct schedule_case *one)
{
    struct sweep *counted = context;
    uint64_t seed = one->number + 1;
    if (seed < counted->seeds.first || seed > counted->seeds.last) {
        return true;
    }
    struct cw_plan *plan = schedule_case_build(one);
    plan_check(plan, one->name, seed);
    cw_plan_destroy(plan);
    counted->cases++;
    return true;
}

static void test_all_cases(void **state)
{
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        bool clusters = (algorithm->needs & CW_NEEDS_CLUSTERS) != 0;
        if (algorithm->collective != sweep.collective || clusters != sweep.clusters) {
            continue;
        }
        uint64_t before = sweep.cases;
        for (uint32_t j = 0; schedule_case_ranks[j] != 0; j++) {
            assert_true(schedule_cases(algorithm, schedule_case_ranks[j], sweep.thin, case_check, &sweep));
        }
        print_message("%s %s: %llu cases\n", cw_collective_name(algorithm->collective), algorithm->name,
                      (unsigned long long)(sweep.cases - before));
        assert_true(!sweep.seeds.is_all || sweep.cases > before);
    }
    assert_true(sweep.cases > 0);
}

/* ---- Ranks that know only their own counts ---- */

enum { RANKS_MAX = 12, SEEDS = 400 };

static const enum cw_collective collectives[] = {CW_SCATTER, CW_GATHER, CW_ALLTOALL};

/* The problem as `rank` knows it: its own blocks. */
static void blocks_fill(const struct cw_problem *problem, uint32_t rank, struct cw_own_block *sends,
                        struct cw_own_block *receives)
{
    for (uint32_t other = 0; other < problem->ranks; other++) {
        sends[other] = receives[other] = (struct cw_own_block){0, 0};
        if (problem->collective == CW_ALLTOALL) {
            sends[other] = (struct cw_own_block){cw_problem_pair_bytes(problem, rank, other),
                                                 cw_problem_pair_send_offset(problem, rank, other)};
            receives[other] = (struct cw_own_block){cw_problem_pair_bytes(problem, other, rank),
                                                    cw_problem_pair_receive_offset(problem, other, rank)};
        }
    }
    if (problem->collective == CW_ALLTOALL) {
        return;
    }
    bool is_scatter = problem->collective == CW_SCATTER;
    struct cw_own_block *leaf = is_scatter ? receives : sends, *root = is_scatter ? sends : receives;
    leaf[problem->root] = (struct cw_own_block){cw_problem_block_bytes(problem, rank), 0};
    for (uint32_t other = 0; rank == problem->root && other < problem->ranks; other++) {
        root[other] =
            (struct cw_own_block){cw_problem_block_bytes(problem, other), cw_problem_block_offset(problem, other)};
    }
}

static struct cw_plan *plan_draw(void)
{
    uint32_t ranks = 1 + (uint32_t)random() % RANKS_MAX;
    uint64_t counts[RANKS_MAX * RANKS_MAX];
    for (uint32_t i = 0; i < ranks * ranks; i++) {
        counts[i] = random() % 3 == 0 ? 0 : (uint64_t)random() % 300;
    }
    const struct cw_problem_request request = {
        .collective = collectives[(uint32_t)random() % 3],
        .ranks = ranks,
        .root = (uint32_t)random() % ranks,
        .element_bytes = 1,
        .counts = counts,
    };
    struct cw_problem_request flat = request;
    flat.root = request.collective == CW_ALLTOALL ? 0 : request.root;
    char error[200];
    struct cw_plan *plan = calloc(1, sizeof(*plan));
    assert_non_null(plan);
    assert_int_equal(cw_problem_create(&flat, &plan->problem, error, sizeof(error)), CW_OK);
    plan->schedules = calloc(ranks, sizeof(*plan->schedules));
    assert_non_null(plan->schedules);
    for (uint32_t rank = 0; rank < ranks; rank++) {
        struct cw_own_block sends[RANKS_MAX], receives[RANKS_MAX];
        blocks_fill(plan->problem, rank, sends, receives);
        assert_int_equal(cw_own_build(rank, ranks, sends, receives, &plan->schedules[rank]), CW_OK);
    }
    return plan;
}

static void test_own_counts(void **state)
{
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        srandom((unsigned)seed);
        struct cw_plan *plan = plan_draw();
        plan_check(plan, "own counts", seed);
        cw_plan_destroy(plan);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "own") == 0) {
        return TESTS_RUN(test_own_counts);
    }
    sweep.collective = argc == 3 ? cw_collective_find(argv[1]) : CW_COLLECTIVE_COUNT;
    if (sweep.collective == CW_COLLECTIVE_COUNT) {
        fprintf(stderr, "usage: schedules_sweep own|COLLECTIVE flat|clusters\n");
        return 2;
    }
    sweep.clusters = strcmp(argv[2], "clusters") == 0;
    sweep.thin = (uint32_t)test_count("CW_TEST_THIN", 20);
    sweep.seeds = test_seeds(1, UINT64_MAX);
    return TESTS_RUN(test_all_cases);
}
