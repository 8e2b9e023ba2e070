/* dump: plans as text for users. Prints to the caller's stream; errors of the stream are the caller's to see
 * (ferror). */
#pragma once

#include <stdio.h>

#include "collectives/schedule/plan.h"

/* The problem, the algorithm, the parameters and the promises: a line each. */
void cw_plan_dump_head(const struct cw_plan *plan, FILE *stream);

/* One rank's ops, a line each. */
void cw_schedule_dump(const struct cw_schedule *schedule, FILE *stream);
