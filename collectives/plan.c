#include "collectives/plan.h"

#include <stdlib.h>

void cw_plan_destroy(struct cw_plan *plan)
{
    if (plan == NULL) {
        return;
    }
    if (plan->schedules != NULL) {
        for (uint32_t rank = 0; rank < plan->problem->ranks; rank++) {
            cw_schedule_dispose(&plan->schedules[rank]);
        }
        free(plan->schedules);
    }
    cw_problem_destroy(plan->problem);
    free(plan);
}
