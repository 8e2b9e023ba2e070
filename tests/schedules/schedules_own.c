/* The schedules of ranks that know only their own counts, put together as a plan: the checker passes it, and the
 * adversarial transport delivers the right bytes. */
#include <stdlib.h>

#include "collectives/algorithms/own.h"
#include "collectives/check/check.h"
#include "dataplane/status.h"
#include "tests/schedules/trial.h"
#include "tests/test.h"

enum { RANKS_MAX = 12, SEEDS = 400 };

static const enum cw_collective collectives[] = {CW_SCATTER, CW_GATHER, CW_ALLTOALL};

/* What `rank` knows of the problem: its own blocks. */
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

static void all_ranks_together_are_a_right_plan(void **state)
{
    static const uint32_t eager_buffers[] = {0, 2, PLAN_TRIAL_EAGER_BUFFERS_MANY};
    struct test_seeds seeds = test_seeds(1, SEEDS);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        srandom((unsigned)seed);
        struct cw_plan *plan = plan_draw();
        struct cw_check_report report;
        char error[400];
        assert_int_equal(cw_check(plan, &report), CW_OK);
        if (report.fault != CW_CHECK_PASSED) {
            fail_msg("seed %llu: %s: %s", (unsigned long long)seed, cw_check_fault_name(report.fault), report.text);
        }
        if (plan_trial_once(plan, seed, eager_buffers[seed % 3], error, sizeof(error)) != 0) {
            fail_msg("seed %llu: %s", (unsigned long long)seed, error);
        }
        cw_plan_destroy(plan);
    }
}

int main(void)
{
    return TESTS_RUN(all_ranks_together_are_a_right_plan);
}
