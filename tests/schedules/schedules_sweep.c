/* Every algorithm of one collective on all cases: the checker passes it, and the adversarial transport delivers the
 * right bytes.
 *
 * Arguments: the collective, and `clusters` for the algorithms that need clusters or `flat` for the others.
 * CW_TEST_THIN: only about each n-th case. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static bool case_judge(void *context, const struct schedule_case *one)
{
    static const uint32_t eager_buffers[] = {0, 2, PLAN_TRIAL_EAGER_BUFFERS_MANY};
    struct sweep *counted = context;
    uint64_t seed = one->number + 1;
    if (seed < counted->seeds.first || seed > counted->seeds.last) {
        return true;
    }
    struct cw_plan *plan = schedule_case_build(one);
    struct cw_check_report report;
    char error[400];
    assert_int_equal(cw_check(plan, &report), CW_OK);
    if (report.fault != CW_CHECK_PASSED) {
        fail_msg("%s: %s: %s", one->name, cw_check_fault_name(report.fault), report.text);
    }
    if (plan_trial_once(plan, seed, eager_buffers[seed % 3], error, sizeof(error)) != 0) {
        fail_msg("%s: run with seed %llu: %s", one->name, (unsigned long long)seed, error);
    }
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
            assert_true(schedule_cases(algorithm, schedule_case_ranks[j], sweep.thin, case_judge, &sweep));
        }
        print_message("%s %s: %llu cases\n", cw_collective_name(algorithm->collective), algorithm->name,
                      (unsigned long long)(sweep.cases - before));
        assert_true(!sweep.seeds.is_all || sweep.cases > before);
    }
    assert_true(sweep.cases > 0);
}

int main(int argc, char **argv)
{
    sweep.collective = argc == 3 ? cw_collective_find(argv[1]) : CW_COLLECTIVE_COUNT;
    if (sweep.collective == CW_COLLECTIVE_COUNT) {
        fprintf(stderr, "usage: schedules_sweep COLLECTIVE flat|clusters\n");
        return 2;
    }
    sweep.clusters = strcmp(argv[2], "clusters") == 0;
    sweep.thin = (uint32_t)test_count("CW_TEST_THIN", 20);
    sweep.seeds = test_seeds(1, UINT64_MAX);
    return TESTS_RUN(test_all_cases);
}
