/* collectives: schedules of collective operations, as data.
 *
 * Purpose
 *   A collective is planned before it runs: a problem (the data of each rank before and after) and an algorithm give
 *   each rank a schedule, an array of typed ops with their dependencies. Schedules are checked, priced, chosen,
 *   executed, kept and listed by the code below; none of it does I/O.
 *
 * Invariants
 *   - All readers of an op use its definition in schedule.h.
 *   - All ranks that ask the same get schedules that fit together, without talking to each other.
 *   - 0 or a negative code of dataplane/status.h; outputs untouched on failure.
 *
 * Order of calls
 *   cw_problem_create
 *   cw_choose, or cw_algorithm_find                                         the algorithm and its parameters
 *   cw_schedule_build for one rank, or cw_plan_build for all, or cw_plan_decode from a file
 *   cw_check, cw_price_interpret                                            of plans, as far as wanted
 *   cw_execution_create over a transport, { cw_execution_poll }*, cw_execution_reset or cw_execution_destroy
 *   cw_schedule_dispose or cw_plan_destroy; cw_problem_destroy unless a plan owns it */
#pragma once

#include "collectives/algorithms/build.h"
#include "collectives/check/check.h"
#include "collectives/choose/choose.h"
#include "collectives/choose/measured.h"
#include "collectives/choose/override.h"
#include "collectives/execute/execute.h"
#include "collectives/execute/transport.h"
#include "collectives/file/plan_file.h"
#include "collectives/price/network.h"
#include "collectives/price/price.h"
#include "collectives/schedule/dump.h"
#include "collectives/schedule/limits.h"
#include "collectives/schedule/plan.h"
#include "collectives/schedule/problem.h"
#include "collectives/schedule/schedule.h"
