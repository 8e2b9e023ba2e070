/* Problems and plans of algorithms, for tests: a failure to make one fails the test. */
#pragma once

#include "collectives/algorithms/build.h"
#include "dataplane/status.h"
#include "tests/test.h"

static inline struct cw_problem *problem_built(const struct cw_problem_request *request)
{
    struct cw_problem *problem = NULL;
    char error[300] = "";
    assert_true_msg(cw_problem_create(request, &problem, error, sizeof(error)) == CW_OK, "%s", error);
    return problem;
}

/* cw_plan_destroy() frees it with its problem. */
static inline struct cw_plan *plan_built(const struct cw_problem_request *request, const char *algorithm,
                                         const struct cw_parameters *parameters)
{
    struct cw_plan *plan = NULL;
    char error[300] = "";
    if (cw_plan_build(problem_built(request), cw_algorithm_find(request->collective, algorithm), parameters, &plan,
                      error, sizeof(error)) != CW_OK) {
        fail_msg("%s: %s", algorithm, error);
    }
    return plan;
}
