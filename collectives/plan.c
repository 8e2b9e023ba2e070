#include "collectives/plan.h"

#include <stdlib.h>

struct cw_problem *cw_plan_release(struct cw_plan *plan)
{
    struct cw_problem *problem = plan->problem;
    for (uint32_t rank = 0; plan->schedules != NULL && rank < problem->ranks; rank++) {
        cw_schedule_dispose(&plan->schedules[rank]);
    }
    free(plan->schedules);
    free(plan);
    return problem;
}

void cw_plan_destroy(struct cw_plan *plan)
{
    if (plan != NULL) {
        cw_problem_destroy(cw_plan_release(plan));
    }
}
