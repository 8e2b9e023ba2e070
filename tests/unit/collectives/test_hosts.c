/* Host ops, and the levels made of them: errors in them are found, by the rules of one schedule or by the checker; the
 * interpreter prices them. schedules_sweep proves the algorithms. */
#include "built_plans.h"
#include "collectives/check/check.h"
#include "collectives/execute/execute.h"
#include "collectives/price/price.h"

enum { RANKS = 6 };

/* Three hosts of two ranks each; `hosts` 1: one of six. */
static struct cw_plan *plan_make(enum cw_collective collective, uint32_t hosts, const char *algorithm, uint64_t count)
{
    static const uint32_t host_of[RANKS] = {0, 1, 2, 0, 1, 2};
    const struct cw_parameters parameters = {.eager_max_bytes = 64};
    return plan_built(&(struct cw_problem_request){.collective = collective,
                                                   .ranks = RANKS,
                                                   .root = cw_collective_rooted(collective) ? 4 : 0,
                                                   .element_bytes = 4,
                                                   .count = count,
                                                   .host_count = hosts,
                                                   .host_of = host_of},
                      algorithm, &parameters);
}

static struct cw_plan *usual(void)
{
    return plan_make(CW_ALLREDUCE, 3, "hierarchical", 100);
}

/* The first host op of a rank. */
static struct cw_op *host_op(struct cw_plan *plan, uint32_t rank)
{
    struct cw_schedule *schedule = &plan->schedules[rank];
    uint32_t i = 0;
    while (i < schedule->op_count && schedule->ops[i].kind != CW_OP_HOST) {
        i++;
    }
    assert_true(i < schedule->op_count);
    return &schedule->ops[i];
}

static void expect_invalid(struct cw_plan *plan, const char *words)
{
    char error[300] = "";
    assert_int_equal(cw_plan_validate(plan, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_true_msg(strstr(error, words) != NULL, "\"%s\" does not say \"%s\"", error, words);
    cw_plan_destroy(plan);
}

static void expect_fault(struct cw_plan *plan, enum cw_check_fault fault, const char *words)
{
    struct cw_check_report report;
    assert_int_equal(cw_check(plan, &report), CW_OK);
    if (report.fault != fault || strstr(report.text, words) == NULL) {
        fail_msg("%s: %s; expected %s: %s", cw_check_fault_name(report.fault), report.text, cw_check_fault_name(fault),
                 words);
    }
    cw_plan_destroy(plan);
}

#define WRONG(words, rank, field, value)                                                         \
    {                                                                                            \
        words, rank, offsetof(struct cw_op, field), sizeof(((struct cw_op *)NULL)->field), value \
    }

/* A field of a rank's host op, and the error text for that value. */
static const struct {
    const char *words;
    uint32_t rank;
    size_t offset, bytes;
    uint64_t value;
} fields[] = {
    WRONG("collective 11", 3, collective, CW_COLLECTIVE_COUNT),
    WRONG("root 1 is none of its ranks", 3, root, 1),
    WRONG("number 1 where 0 of 2 is due", 3, tag, 1),
    WRONG("group 7 does not exist", 3, peer, 7),
    WRONG("the whole problem, but of 2 of 6 ranks", 3, flags, CW_OP_WHOLE),
    WRONG("`from` ends beyond the send buffer", 3, from.offset, 4),
    WRONG("the last of its pieces", 3, bytes, UINT64_MAX / 2),
    WRONG("never written", 0, to.buffer, CW_BUFFER_SEND),
    WRONG("has no use for `to`", 3, to.buffer, CW_BUFFER_SEND),
};

static void test_rules_of_one_schedule(void **state)
{
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct cw_plan *plan = usual();
        memcpy((uint8_t *)host_op(plan, fields[i].rank) + fields[i].offset, &fields[i].value, fields[i].bytes);
        expect_invalid(plan, fields[i].words);
    }
    struct cw_plan *plan = usual();
    plan->schedules[3].host_count = 3;
    expect_invalid(plan, "2 of 3 host ops are there");
    plan = usual();
    plan->schedules[3].ops[plan->schedules[3].op_count - 1].dependency_count = 0;
    expect_invalid(plan, "does not depend on host op 0 before it");
    plan = plan_make(CW_ALLREDUCE, 1, "host", 100);
    plan->schedules[2].members[0] = 1;
    plan->schedules[2].members[1] = 0;
    expect_invalid(plan, "do not rise");
}

static void test_ranks_that_do_not_agree(void **state)
{
    struct cw_plan *plan = usual();
    host_op(plan, 3)->bytes = host_op(plan, 3)->last_bytes = 396;
    expect_fault(plan, CW_CHECK_HOST, "is another call");
    plan = usual();
    plan->schedules[4].members[plan->schedules[4].groups[host_op(plan, 4)->peer].first] = 0;
    for (uint32_t i = 0; i < plan->schedules[4].op_count; i++) {
        struct cw_op *op = &plan->schedules[4].ops[i];
        op->root = op->kind == CW_OP_HOST ? 0 : op->root;
    }
    expect_fault(plan, CW_CHECK_HOST, "is another call");
    plan = plan_make(CW_BARRIER, 1, "host", 0);
    plan->schedules[5].op_count = 0;
    plan->schedules[5].host_count = 0;
    expect_fault(plan, CW_CHECK_HOST, "rank 5 has no host op 0");
    plan = plan_make(CW_BCAST, 1, "host", 10);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        struct cw_op *op = host_op(plan, rank);
        *op = (struct cw_op){
            .kind = CW_OP_HOST, .peer = op->peer, .iterations = 1, .blocks = 1, .collective = CW_BARRIER};
    }
    expect_fault(plan, CW_CHECK_WRONG_RESULT, "never written");
    plan = usual();
    host_op(plan, 0)[1].dependency_count = 0; /* the level among hosts begins with the host op */
    expect_fault(plan, CW_CHECK_RACE, "nothing orders the two");
}

/* Messages between hosts cost as on the network, calls within one by the memory: longer data takes longer, and the
 * level less than all ranks by messages. */
static void test_prices(void **state)
{
    static const char *const algorithms[] = {"hierarchical", "recursive-doubling"};
    struct cw_network network;
    double before = 0;
    assert_int_equal(cw_network_find(cw_network_name(0), &network), CW_OK);
    for (uint64_t count = 1; count <= 1000000; count *= 100) {
        struct cw_price prices[2];
        for (uint32_t i = 0; i < 2; i++) {
            struct cw_plan *plan = plan_make(CW_ALLREDUCE, 3, algorithms[i], count);
            assert_int_equal(cw_price_interpret(plan, &network, &prices[i], NULL), CW_OK);
            cw_plan_destroy(plan);
        }
        assert_true(prices[0].time_ns > before && prices[0].time_ns < prices[1].time_ns);
        before = prices[0].time_ns;
    }
}

static void test_transports_without_them_are_rejected(void **state)
{
    struct cw_plan *plan = usual();
    const struct cw_transport transport = {.put = NULL};
    const struct cw_execution_request request = {
        .schedule = &plan->schedules[3], .ranks = RANKS, .element_bytes = 4, .transport = &transport};
    struct cw_execution *execution = NULL;
    assert_int_equal(cw_execution_create(&request, &execution), CW_ERROR_ARGUMENT);
    cw_plan_destroy(plan);
}

static void test_problems_have_hosts(void **state)
{
    static const struct {
        uint32_t hosts;
        uint32_t host_of[RANKS];
        const char *words;
    } rows[] = {
        {3, {0, 0, 0, 1, 1, 3}, "on a host that is not there"},
        {3, {0, 0, 0, 1, 1, 1}, "a host has no rank"},
        {RANKS + 1, {0, 1, 2, 3, 4, 5}, ""},
    };
    char error[300] = "";
    struct cw_problem_request request = {.ranks = RANKS, .element_bytes = 1, .count = 1};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cw_problem *problem = NULL;
        request.collective = CW_BCAST;
        request.host_count = rows[i].hosts;
        request.host_of = rows[i].host_of;
        assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_ERROR_ARGUMENT);
        assert_non_null(strstr(error, rows[i].words));
    }
    static const struct {
        enum cw_collective collective;
        const char *algorithm, *words; /* NULL: it fits */
    } algorithms[] = {
        {CW_BCAST, "host", ""},
        {CW_BCAST, "hierarchical", NULL},
        {CW_ALLTOALL, "hierarchical", "as many ranks on each host"},
    };
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        static const uint32_t uneven[RANKS] = {0, 0, 0, 1, 1, 2};
        request.collective = algorithms[i].collective;
        request.host_count = 3;
        request.host_of = uneven;
        struct cw_problem *problem = problem_built(&request);
        int status = cw_algorithm_fits(cw_algorithm_find(algorithms[i].collective, algorithms[i].algorithm), problem,
                                       error, sizeof(error));
        assert_int_equal(status, algorithms[i].words == NULL ? CW_OK : CW_ERROR_UNSUPPORTED);
        assert_true(algorithms[i].words == NULL || strstr(error, algorithms[i].words) != NULL);
        cw_problem_destroy(problem);
    }
}

int main(void)
{
    return TESTS_RUN(test_rules_of_one_schedule, test_ranks_that_do_not_agree, test_prices,
                     test_transports_without_them_are_rejected, test_problems_have_hosts);
}
