/* Host ops, and the levels that are made of them: what is wrong with one is found, by the rules of one schedule or by the
 * checker; files keep them; the interpreter prices them. schedules_sweep proves the algorithms. */
#include <stdlib.h>
#include <string.h>

#include "collectives/algorithms/build.h"
#include "collectives/check/check.h"
#include "collectives/execute/execute.h"
#include "collectives/file/plan_file.h"
#include "collectives/price/price.h"
#include "dataplane/status.h"
#include "tests/test.h"

enum { RANKS = 6 };

/* Three hosts of two ranks each; `hosts` 1: one of six. */
static struct cw_plan *plan_make(enum cw_collective collective, uint32_t hosts, const char *algorithm, uint64_t count)
{
    static const uint32_t host_of[RANKS] = {0, 1, 2, 0, 1, 2};
    const struct cw_problem_request request = {
        .collective = collective,
        .ranks = RANKS,
        .root = cw_collective_rooted(collective) ? 4 : 0,
        .element_bytes = 4,
        .count = count,
        .host_count = hosts,
        .host_of = host_of,
    };
    const struct cw_parameters parameters = {.eager_max_bytes = 64};
    struct cw_problem *problem = NULL;
    struct cw_plan *plan = NULL;
    char error[300] = "";
    if (cw_problem_create(&request, &problem, error, sizeof(error)) != CW_OK ||
        cw_plan_build(problem, cw_algorithm_find(collective, algorithm), &parameters, &plan, error, sizeof(error)) !=
            CW_OK) {
        fail_msg("%s", error);
    }
    return plan;
}

/* The first host op of a rank. */
static struct cw_op *host_op(struct cw_plan *plan, uint32_t rank)
{
    struct cw_schedule *schedule = &plan->schedules[rank];
    for (uint32_t i = 0; i < schedule->op_count; i++) {
        if (schedule->ops[i].kind == CW_OP_HOST) {
            return &schedule->ops[i];
        }
    }
    fail_msg("rank %u has no host op", rank);
    return NULL;
}

static void expect_invalid(struct cw_plan *plan, const char *words)
{
    char error[300] = "";
    assert_int_equal(cw_plan_validate(plan, error, sizeof(error)), CW_ERROR_ARGUMENT);
    if (strstr(error, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error, words);
    }
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

static struct cw_plan *usual(void)
{
    return plan_make(CW_ALLREDUCE, 3, "hierarchical", 100);
}

static void test_rules_of_one_schedule(void **state)
{
    struct cw_plan *plan = usual();
    host_op(plan, 3)->collective = CW_COLLECTIVE_COUNT;
    expect_invalid(plan, "collective 11");
    plan = usual();
    host_op(plan, 3)->root = 1;
    expect_invalid(plan, "root 1 is none of its ranks");
    plan = usual();
    host_op(plan, 3)->tag = 1;
    expect_invalid(plan, "number 1 where 0 of 2 is due");
    plan = usual();
    plan->schedules[3].host_count = 3;
    expect_invalid(plan, "2 of 3 host ops are there");
    plan = usual();
    host_op(plan, 3)->peer = 7;
    expect_invalid(plan, "group 7 does not exist");
    plan = usual();
    host_op(plan, 3)->flags = CW_OP_WHOLE;
    expect_invalid(plan, "the whole problem, but of 2 of 6 ranks");
    plan = usual();
    host_op(plan, 3)->from.offset = 4;
    expect_invalid(plan, "`from` ends beyond the send buffer");
    plan = usual();
    host_op(plan, 3)->bytes = host_op(plan, 3)->last_bytes = UINT64_MAX / 2;
    expect_invalid(plan, "the last of its pieces");
    plan = usual();
    host_op(plan, 0)->to.buffer = CW_BUFFER_SEND;
    expect_invalid(plan, "never written");
    plan = usual();
    host_op(plan, 3)->to = host_op(plan, 3)->from;
    expect_invalid(plan, "has no use for `to`");
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
}

/* Data that are not there yet, or that somebody else writes meanwhile. */
static void test_what_is_read_and_written(void **state)
{
    struct cw_plan *plan = usual();
    struct cw_schedule *head = &plan->schedules[0];
    head->ops[host_op(plan, 0) - head->ops + 1].dependency_count = 0; /* the level begins with the host op */
    expect_fault(plan, CW_CHECK_RACE, "nothing orders the two");
    plan = plan_make(CW_BCAST, 3, "hierarchical", 10);
    struct cw_schedule *rank = &plan->schedules[1];
    rank->ops[host_op(plan, 1) - rank->ops + 1].dependency_count = 0;
    for (uint32_t i = 0; i < rank->op_count; i++) {
        rank->ops[i].dependency_count = rank->ops[i].kind == CW_OP_HOST ? rank->ops[i].dependency_count : 0;
    }
    struct cw_check_report report;
    assert_int_equal(cw_check(plan, &report), CW_OK);
    assert_true(report.fault == CW_CHECK_READ_UNDEFINED || report.fault == CW_CHECK_RACE);
    cw_plan_destroy(plan);
}

static void test_files_keep_them(void **state)
{
    struct cw_plan *plan = usual(), *again = NULL;
    struct cw_check_report report;
    void *bytes = NULL, *bytes_again = NULL;
    size_t length = 0, length_again = 0;
    char error[300] = "";
    assert_int_equal(cw_plan_encode(plan, &bytes, &length), CW_OK);
    assert_int_equal(cw_plan_decode(bytes, length, &again, error, sizeof(error)), CW_OK);
    assert_int_equal(again->problem->hosts.count, 3);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(cw_problem_host(again->problem, rank), rank % 3);
    }
    assert_int_equal(cw_check(again, &report), CW_OK);
    assert_int_equal(report.fault, CW_CHECK_PASSED);
    assert_int_equal(cw_plan_encode(again, &bytes_again, &length_again), CW_OK);
    assert_int_equal(length, length_again);
    assert_memory_equal(bytes, bytes_again, length);
    free(bytes);
    free(bytes_again);
    cw_plan_destroy(plan);
    cw_plan_destroy(again);
}

/* Messages between hosts cost as on the network, calls within one by the memory: longer data takes longer, and the level
 * less than all ranks by messages. */
static void test_prices(void **state)
{
    struct cw_network network;
    double before = 0;
    assert_int_equal(cw_network_find(cw_network_name(0), &network), CW_OK);
    for (uint64_t count = 1; count <= 1000000; count *= 100) {
        struct cw_price flat, levels;
        struct cw_plan *plan = plan_make(CW_ALLREDUCE, 3, "hierarchical", count);
        assert_int_equal(cw_price_interpret(plan, &network, &levels, NULL), CW_OK);
        cw_plan_destroy(plan);
        plan = plan_make(CW_ALLREDUCE, 3, "recursive-doubling", count);
        assert_int_equal(cw_price_interpret(plan, &network, &flat, NULL), CW_OK);
        cw_plan_destroy(plan);
        assert_true(levels.time_ns > before);
        assert_true(levels.time_ns < flat.time_ns);
        before = levels.time_ns;
    }
}

static int no_put(void *put_state, const struct cw_transport_put *put)
{
    return CW_ERROR_UNSUPPORTED;
}

static void test_transports_without_them_are_refused(void **state)
{
    struct cw_plan *plan = usual();
    const struct cw_transport transport = {.put = no_put};
    const struct cw_execution_request request = {
        .schedule = &plan->schedules[3], .ranks = RANKS, .element_bytes = 4, .transport = &transport};
    struct cw_execution *execution = NULL;
    assert_int_equal(cw_execution_create(&request, &execution), CW_ERROR_ARGUMENT);
    assert_null(execution);
    cw_plan_destroy(plan);
}

static void test_problems_tell_hosts(void **state)
{
    uint32_t host_of[RANKS] = {0, 0, 0, 1, 1, 3};
    struct cw_problem_request request = {
        .collective = CW_BCAST, .ranks = RANKS, .element_bytes = 1, .count = 1, .host_count = 3, .host_of = host_of};
    struct cw_problem *problem = NULL;
    char error[300] = "";
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_non_null(strstr(error, "on a host that is not there"));
    host_of[5] = 1;
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_non_null(strstr(error, "a host has no rank"));
    request.host_count = RANKS + 1;
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_ERROR_ARGUMENT);
    assert_null(problem);
    host_of[5] = 2;
    request.host_count = 3;
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_algorithm_fits(cw_algorithm_find(CW_BCAST, "host"), problem, error, sizeof(error)),
                     CW_ERROR_UNSUPPORTED);
    assert_int_equal(cw_algorithm_fits(cw_algorithm_find(CW_BCAST, "hierarchical"), problem, error, sizeof(error)),
                     CW_OK);
    cw_problem_destroy(problem);
    request.collective = CW_ALLTOALL;
    assert_int_equal(cw_problem_create(&request, &problem, error, sizeof(error)), CW_OK);
    assert_int_equal(cw_algorithm_fits(cw_algorithm_find(CW_ALLTOALL, "hierarchical"), problem, error, sizeof(error)),
                     CW_ERROR_UNSUPPORTED);
    assert_non_null(strstr(error, "as many ranks on each host"));
    cw_problem_destroy(problem);
}

int main(void)
{
    return TESTS_RUN(test_rules_of_one_schedule, test_ranks_that_do_not_agree, test_what_is_read_and_written,
                     test_files_keep_them, test_prices, test_transports_without_them_are_refused,
                     test_problems_tell_hosts);
}
