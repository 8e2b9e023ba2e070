/* The checker, on promises, which no run shows, and on the names of faults: one plan for most of them. The mutants of
 * tests/schedules compare with runs what a run shows: races, wrong results, deadlocks, messages without a partner. */
#include "built_plans.h"
#include "collectives/check/check.h"
#include "tests/schedules/mutate.h"

enum { RANKS = 6 };

#define NOTHING .wan_bytes = UINT64_MAX

/* A plan, its promise, and the fault. Blocks and vectors have 4 bytes. `clusters`: {0, 1, 2}, {3, 4, 5}. */
struct row {
    enum cw_collective collective;
    const char *algorithm;
    bool clusters;
    struct cw_promise promise;
    enum cw_check_fault fault;
    const char *words; /* in the report */
};

static const struct row rows[] = {
    /* the root sends to five, or receives from five, in one phase */
    {CW_SCATTER, "flat", false, {.fan_out = 5, .fan_in = 1, NOTHING}, CW_CHECK_PASSED, ""},
    {CW_SCATTER, "flat", false, {.fan_out = 4, NOTHING}, CW_CHECK_FAN_OUT, "rank 0"},
    {CW_GATHER, "flat", false, {.fan_in = 5, .fan_out = 1, NOTHING}, CW_CHECK_PASSED, ""},
    {CW_GATHER, "flat", false, {.fan_in = 4, NOTHING}, CW_CHECK_FAN_IN, "rank 0"},
    {CW_BCAST, "multicast", false, {.fan_out = 1, NOTHING}, CW_CHECK_PASSED, ""}, /* which counts as one message */
    /* without barriers, messages of two phases may be under way at once */
    {CW_ALLTOALL, "greedy-barriers", false, {.fan_in = 1, .phases_apart = 1, NOTHING}, CW_CHECK_PASSED, ""},
    {CW_ALLTOALL, "greedy", false, {.fan_in = 1, .phases_apart = 2, NOTHING}, CW_CHECK_PASSED, ""},
    {CW_ALLTOALL, "greedy", false, {.phases_apart = 1, NOTHING}, CW_CHECK_PHASES, "phase"},
    /* each of three ranks gets 4 bytes from the other cluster; a multicast crosses once */
    {CW_BCAST, "flat", true, {.wan_bytes = 12}, CW_CHECK_PASSED, ""},
    {CW_BCAST, "flat", true, {.wan_bytes = 11}, CW_CHECK_WAN_BYTES, "cluster 1"},
    {CW_BCAST, "multicast", true, {.wan_bytes = 4}, CW_CHECK_PASSED, ""},
    {CW_BCAST, "multicast", true, {.wan_bytes = 3}, CW_CHECK_WAN_BYTES, "cluster 1"},
    {CW_ALLTOALL, "direct", true, {.wan_senders = 3, NOTHING}, CW_CHECK_PASSED, ""},
    {CW_ALLTOALL, "direct", true, {.wan_senders = 2, NOTHING}, CW_CHECK_WAN_SENDERS, "3 ranks of cluster 0"},
    {CW_BCAST, "clusters-van-de-geijn", true, {.wan_senders = 2, .wan_bytes = 4}, CW_CHECK_PASSED, ""},
    {CW_BCAST,
     "clusters-van-de-geijn",
     true,
     {.wan_senders = 1, NOTHING},
     CW_CHECK_WAN_SENDERS,
     "2 ranks of cluster 0"},
    {CW_ALLREDUCE, "clusters-two-tier", true, {.wan_senders = 1, NOTHING}, CW_CHECK_PASSED, ""},
};

static void test_promises(void **state)
{
    static const uint32_t cluster_of[RANKS] = {0, 0, 0, 1, 1, 1};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        const struct cw_problem_request request = {.collective = row->collective,
                                                   .ranks = RANKS,
                                                   .element_bytes = 1,
                                                   .count = 4,
                                                   .cluster_count = row->clusters ? 2 : 0,
                                                   .cluster_of = row->clusters ? cluster_of : NULL};
        struct cw_parameters parameters = cw_parameters_default();
        parameters.senders = 2;
        struct cw_check_report report;
        struct cw_plan *plan = plan_built(&request, row->algorithm, &parameters);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            plan->schedules[rank].promise = row->promise;
        }
        assert_int_equal(cw_check(plan, &report), CW_OK);
        assert_true_msg(report.fault == row->fault && strstr(report.text, row->words) != NULL, "row %zu: %s: %s", i,
                        cw_check_fault_name(report.fault), report.text);
        plan->schedules[RANKS - 1].promise.fan_in++;
        assert_int_equal(cw_check(plan, &report), CW_OK);
        assert_int_equal(report.fault, CW_CHECK_PROMISE_DIFFERS);
        assert_int_equal(report.rank, RANKS - 1);
        cw_plan_destroy(plan);
    }
}

/* A change of a plan, and a fault that it is at some of its sites. */
static const struct {
    enum cw_collective collective;
    const char *algorithm;
    enum mutation change;
    enum cw_check_fault fault;
} changes[] = {
    {CW_BCAST, "flat", MUTATE_DROP_OP, CW_CHECK_UNMATCHED_PUT},
    {CW_BCAST, "flat", MUTATE_DROP_OP, CW_CHECK_UNMATCHED_WAIT},
    {CW_BCAST, "flat", MUTATE_DROP_ORDER, CW_CHECK_NOT_READY},
    {CW_BCAST, "flat", MUTATE_SHORTEN, CW_CHECK_MISMATCH},
    {CW_BCAST, "flat", MUTATE_SWAP_TO_BUFFER, CW_CHECK_OUT_OF_BOUNDS},
    {CW_REDUCE, "binomial", MUTATE_DROP_DEPENDENCY, CW_CHECK_RACE},
    {CW_ALLREDUCE, "recursive-doubling", MUTATE_SWAP_TO_BUFFER, CW_CHECK_MISMATCH},
    {CW_ALLREDUCE, "recursive-doubling", MUTATE_SHORTEN_PUT, CW_CHECK_READ_UNDEFINED},
    {CW_ALLREDUCE, "rabenseifner", MUTATE_SWAP_PEERS, CW_CHECK_TAG_REUSED},
    {CW_ALLREDUCE, "rabenseifner", MUTATE_SHIFT_PUT, CW_CHECK_WRONG_REDUCTION},
    {CW_ALLTOALL, "bruck", MUTATE_SHORTEN, CW_CHECK_WRONG_RESULT},
    {CW_ALLTOALL, "greedy-barriers", MUTATE_SWAP_PEERS, CW_CHECK_DEADLOCK},
    {CW_ALLTOALL, "greedy-barriers", MUTATE_OVERLAP_PUTS, CW_CHECK_WRITTEN_TWICE},
    {CW_ALLTOALL, "greedy-barriers", MUTATE_DROP_ORDER, CW_CHECK_PHASES},
    {CW_BARRIER, "dissemination", MUTATE_DROP_ORDER, CW_CHECK_NOT_SYNCHRONIZED},
};

static void test_changes(void **state)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        const struct cw_problem_request request = {.collective = changes[i].collective,
                                                   .ranks = RANKS,
                                                   .element_bytes = 1,
                                                   .count = changes[i].collective == CW_BARRIER ? 0 : 4};
        const struct cw_parameters parameters = {.eager_max_bytes = 0};
        bool is_there = true, changed, found = false;
        for (uint32_t site = 0; is_there && !found; site++) {
            struct cw_check_report report;
            struct cw_plan *plan = plan_built(&request, changes[i].algorithm, &parameters);
            is_there = plan_mutate(plan, changes[i].change, site, &changed);
            assert_int_equal(cw_check(plan, &report), CW_OK);
            found = report.fault == changes[i].fault && strlen(report.text) > 5;
            cw_plan_destroy(plan);
        }
        assert_true_msg(found, "row %zu: %s: no change is \"%s\"", i, changes[i].algorithm,
                        cw_check_fault_name(changes[i].fault));
    }
}

static void test_names(void **state)
{
    for (uint32_t i = 0; i < CW_CHECK_FAULT_COUNT; i++) {
        assert_string_not_equal(cw_check_fault_name(i), "unknown fault");
        for (uint32_t k = 0; k < i; k++) {
            assert_string_not_equal(cw_check_fault_name(i), cw_check_fault_name(k));
        }
    }
    assert_string_equal(cw_check_fault_name(CW_CHECK_FAULT_COUNT), "unknown fault");
}

int main(void)
{
    return TESTS_RUN(test_promises, test_changes, test_names);
}
