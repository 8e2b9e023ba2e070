/* The checker is itself tested: small changes to valid plans of every algorithm. The checker must have rejected every
 * plan that ever fails under the adversarial transport; plans rejected without a failure are counted by the checker's
 * fault, and only faults with a reason for that are accepted. The transport is tested, too: it must find each kind of
 * fault that a run can have, and the same one again with the same seed.
 *
 * CW_TEST_SEEDS: runs of each mutant (default 30, at most 1,000). CW_TEST_THIN: only about each n-th mutant. Argument:
 * the collective. */
#include "collectives/check/check.h"
#include "dataplane/status.h"
#include "tests/schedules/cases.h"
#include "tests/schedules/mutate.h"
#include "tests/schedules/trial.h"
#include "tests/test.h"

/* Why a plan with this fault may deliver the right bytes in all runs that were tried. NULL: it may not. */
static const char *const false_alarms[CW_CHECK_FAULT_COUNT] = {
    [CW_CHECK_INVALID] = "refused before it runs: no run to compare with",
    [CW_CHECK_MISMATCH] = "the wait for a direct put only repeats where the bytes land",
    [CW_CHECK_DEADLOCK] = "only with certain numbers of buffers, or in orders that were not drawn",
    [CW_CHECK_NOT_READY] = "the target happened to have entered in time",
    [CW_CHECK_READ_UNDEFINED] = "the read bytes are overwritten, or not part of the result",
    [CW_CHECK_RACE] = "the accesses did not meet in the orders that were drawn, or wrote the same bytes",
    [CW_CHECK_WRITTEN_TWICE] = "the same bytes, or in the right order: wasteful, not wrong",
    [CW_CHECK_DIFFERENT_RESULTS] = "the operation of the test does not round",
    [CW_CHECK_NOT_SYNCHRONIZED] = "every rank happened to have entered",
    [CW_CHECK_FAN_IN] = "a promise about contention, not about the result",
    [CW_CHECK_FAN_OUT] = "a promise about contention, not about the result",
    [CW_CHECK_PHASES] = "a promise about contention, not about the result",
    [CW_CHECK_WAN_SENDERS] = "a promise about contention, not about the result",
    [CW_CHECK_WAN_BYTES] = "a promise about contention, not about the result",
    [CW_CHECK_WRONG_REDUCTION] = "an operand combined wrongly in bytes that are not part of the result",
};

/* Faults that the adversarial transport finds in mutants of a collective, in words of its messages. */
static struct {
    enum cw_collective collective;
    const char *words;
    uint64_t found;
} expected[] = {
    {CW_ALLTOALL, "the source of its put", 0}, {CW_ALLTOALL, "changed before it had arrived", 0},
    {CW_ALLTOALL, "has not entered", 0},       {CW_ALLTOALL, "deadlock: ", 0},
    {CW_ALLTOALL, "received is", 0},           {CW_ALLTOALL, "no wait", 0},
    {CW_BCAST, "two puts with tag", 0},        {CW_BARRIER, "leaves the barrier", 0},
};

enum {
    SEEDS_MAX = 1000,
    EXPECTED = sizeof(expected) / sizeof(expected[0]),
    THIN_MAX = 100 /* else some are not drawn */
};

struct tally {
    uint64_t mutants;
    uint64_t harmless; /* the checker passes them, and no run fails */
    uint64_t caught;   /* ... it does not, and some run fails */
    uint64_t alarms[CW_CHECK_FAULT_COUNT];
    struct test_seeds seeds;
    uint32_t thin;
    uint64_t passed_by;
};

static struct tally tally;
static enum cw_collective collective;

/* The seed of the first run that fails; 0: none does. */
static uint64_t failing_seed(const struct cw_plan *plan, char *error, size_t error_bytes)
{
    static const uint32_t eager_buffers[] = {0, 1, 3, PLAN_TRIAL_EAGER_BUFFERS_MANY};
    struct plan_trial *trial;
    uint64_t failing = 0;
    assert_true_msg(plan_trial_create(plan, 1, &trial, error, error_bytes) == 0, "the trial cannot be made: %s", error);
    for (uint64_t seed = tally.seeds.first; seed <= tally.seeds.last && failing == 0; seed++) {
        failing = plan_trial_run(trial, seed, eager_buffers[seed % 4], error, error_bytes) != 0 ? seed : 0;
    }
    char again[400] = "";
    if (failing != 0) {
        assert_int_equal(plan_trial_run(trial, failing, eager_buffers[failing % 4], again, sizeof(again)), -1);
        assert_string_equal(error, again);
    }
    plan_trial_destroy(trial);
    return failing;
}

static void mutant_check(const struct schedule_case *one, const struct cw_plan *plan, enum mutation kind, uint32_t site)
{
    struct cw_check_report report;
    char error[400] = "";
    assert_int_equal(cw_check(plan, &report), CW_OK);
    tally.mutants++;
    if (report.fault == CW_CHECK_INVALID) {
        tally.alarms[report.fault]++;
        return;
    }
    uint64_t failing = failing_seed(plan, error, sizeof(error));
    bool failed = failing != 0;
    assert_true_msg(!failed || report.fault != CW_CHECK_PASSED,
                    "missed: %s: mutation %u at site %u fails with seed %llu (%s), and the checker passes it",
                    one->name, (unsigned)kind, site, (unsigned long long)failing, error);
    if (!failed && report.fault != CW_CHECK_PASSED) {
        tally.alarms[report.fault]++;
        assert_true_msg(!tally.seeds.is_all || false_alarms[report.fault] != NULL,
                        "false alarm: %s: mutation %u at site %u: %s: %s", one->name, (unsigned)kind, site,
                        cw_check_fault_name(report.fault), report.text);
        return;
    }
    tally.caught += failed;
    for (size_t i = 0; i < EXPECTED; i++) {
        expected[i].found += strstr(error, expected[i].words) != NULL;
    }
    tally.harmless += !failed;
}

static bool case_mutate(void *context, const struct schedule_case *one)
{
    for (uint32_t kind = 0; kind < MUTATION_COUNT; kind++) {
        bool there = true;
        for (uint32_t site = 0; there; site++) {
            struct cw_plan *plan = schedule_case_build(one);
            bool changed = false;
            there = plan_mutate(plan, (enum mutation)kind, site, &changed);
            if (changed && (tally.passed_by++ * 0x9e3779b97f4a7c15ull >> 33) % tally.thin == 0) {
                mutant_check(one, plan, (enum mutation)kind, site);
            }
            cw_plan_destroy(plan);
        }
    }
    return true;
}

static void test_mutants(void **state)
{
    static const uint32_t ranks[] = {2, 3, 4, 5};
    const struct cw_algorithm *algorithm;
    for (uint32_t i = 0; (algorithm = cw_algorithm_at(i)) != NULL; i++) {
        if (algorithm->collective != collective) {
            continue;
        }
        for (uint32_t j = 0; j < sizeof(ranks) / sizeof(ranks[0]); j++) {
            schedule_cases(algorithm, ranks[j], 40, case_mutate, NULL);
        }
    }
    print_message("%llu mutants with %llu runs each: %llu fail and are caught, %llu are harmless and pass\n",
                  (unsigned long long)tally.mutants, (unsigned long long)tally.seeds.count,
                  (unsigned long long)tally.caught, (unsigned long long)tally.harmless);
    for (uint32_t fault = 0; fault < CW_CHECK_FAULT_COUNT; fault++) {
        if (tally.alarms[fault] != 0) {
            print_message("%6llu never failed and are caught as \"%s\": %s\n", (unsigned long long)tally.alarms[fault],
                          cw_check_fault_name(fault), false_alarms[fault]);
        }
    }
    assert_true(tally.mutants > 0);
    assert_true(!tally.seeds.is_all || tally.caught > 0);
    for (size_t i = 0; i < EXPECTED && tally.seeds.is_all && tally.thin <= THIN_MAX; i++) {
        assert_true_msg(expected[i].collective != collective || expected[i].found != 0, "no run says \"%s\"",
                        expected[i].words);
    }
}

/* Two ranks put, and wait when their own put is complete: with a buffer that always works, without one it never does.
 * */
static void test_buffers(void **state)
{
    struct cw_dependency on_put = {0};
    const struct schedule_case two = {
        .algorithm = cw_algorithm_find(CW_ALLTOALL, "direct"),
        .request = {.collective = CW_ALLTOALL, .ranks = 2, .element_bytes = 1, .count = 9},
        .parameters = {.eager_max_bytes = CW_EAGER_ALL},
        .name = "two ranks"};
    struct cw_plan *plan = schedule_case_build(&two);
    struct cw_dependency *lists[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        struct cw_schedule *schedule = &plan->schedules[rank];
        assert_int_equal(schedule->dependency_count, 0);
        lists[rank] = schedule->dependencies;
        schedule->dependencies = &on_put;
        schedule->dependency_count = 1;
        for (uint32_t i = 0; i < schedule->op_count; i++) {
            on_put.op = schedule->ops[i].kind == CW_OP_PUT ? i : on_put.op;
            schedule->ops[i].dependency_count = schedule->ops[i].kind == CW_OP_WAIT;
        }
    }
    for (uint64_t seed = 1; seed < 100; seed++) {
        char error[400] = "";
        assert_int_equal(plan_trial_once(plan, seed, 1, error, sizeof(error)), 0);
        assert_int_equal(plan_trial_once(plan, seed, 0, error, sizeof(error)), -1);
        assert_non_null(strstr(error, "deadlock: "));
    }
    for (uint32_t rank = 0; rank < 2; rank++) {
        plan->schedules[rank].dependencies = lists[rank];
    }
    cw_plan_destroy(plan);
}

int main(int argc, char **argv)
{
    collective = argc == 2 ? cw_collective_find(argv[1]) : CW_COLLECTIVE_COUNT;
    if (collective == CW_COLLECTIVE_COUNT) {
        fprintf(stderr, "usage: schedules_mutants COLLECTIVE\n");
        return 2;
    }
    uint64_t runs = test_count("CW_TEST_SEEDS", 30);
    tally.seeds = test_seeds(1, runs < SEEDS_MAX ? runs : SEEDS_MAX);
    tally.thin = (uint32_t)test_count("CW_TEST_THIN", 20);
    return TESTS_RUN(test_buffers, test_mutants);
}
