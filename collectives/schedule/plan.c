#include "collectives/schedule/plan.h"

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

uint64_t cw_plan_memory_bytes(const struct cw_plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
        bytes += cw_schedule_memory_bytes(&plan->schedules[rank]);
    }
    return bytes;
}

void cw_plan_destroy(struct cw_plan *plan)
{
    if (plan != NULL) {
        cw_problem_destroy(cw_plan_release(plan));
    }
}
