/* check: the steps in their order. */
#include "collectives/check/state.h"

#include <stdio.h>
#include <stdlib.h>

static int check_valid(struct check *check)
{
    char error[sizeof(check->report->text)] = "";
    int status = cw_plan_validate(check->plan, error, sizeof(error));
    if (status != CW_ERROR_ARGUMENT) {
        return status;
    }
    uint32_t rank = CHECK_NONE;
    uint32_t op = CHECK_NONE;
    (void)sscanf(error, "rank %u, op %u", &rank, &op);
    check_fail_rank(check, CW_CHECK_INVALID, CHECK_NONE, UINT64_MAX, "%s", error);
    check->report->rank = rank;
    check->report->op = op;
    return CHECK_FAULT;
}

static int check_steps(struct check *check)
{
    static int (*const steps[])(struct check *) = {
        check_valid,         check_number, check_hosts, check_match,  check_graph,
        check_reach_prepare, check_ready,  check_races, check_values, check_promises,
    };
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        int status = steps[i](check);
        if (status != CW_OK) {
            return status;
        }
    }
    return CW_OK;
}

int cw_check(const struct cw_plan *plan, struct cw_check_report *report)
{
    struct cw_check_report found = {
        .fault = CW_CHECK_PASSED, .rank = UINT32_MAX, .op = UINT32_MAX, .iteration = UINT32_MAX, .byte = UINT64_MAX};
    snprintf(found.text, sizeof(found.text), "passed");
    struct check check = {
        .plan = plan,
        .problem = plan->problem,
        .report = &found,
        .ranks = plan->problem->ranks,
        .reduces = cw_collective_reduces(plan->problem->collective),
    };
    int status = check_steps(&check);
    check_arena_dispose(&check.arena);
    free(check.edges.items);
    if (status != CW_OK && status != CHECK_FAULT) {
        return status;
    }
    assert((status == CHECK_FAULT) == (found.fault != CW_CHECK_PASSED));
    *report = found;
    return CW_OK;
}

int cw_check_validate(const struct cw_plan *plan, char *error, size_t error_bytes)
{
    struct cw_check_report report;
    int status = cw_check(plan, &report);
    if (status == CW_OK && report.fault != CW_CHECK_PASSED) {
        snprintf(error, error_bytes, "the plan is wrong: %s: %s", cw_check_fault_name(report.fault), report.text);
        status = CW_ERROR_ARGUMENT;
    }
    return status;
}
