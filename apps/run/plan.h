/* Run plan: what `causeway run --record` and `--plan` do before the ranks start; the rest is theirs
 * (mpi/collective/compiled/record.h, replay.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The ranks record into this file, wherever they run. False: reported, with *exit_code. */
bool run_plan_record(const char *path, int *exit_code);

/* The job is over: APP_EXIT_FAILURE, after an error, if no rank has written the trace that was asked for. */
int run_plan_recorded(void);

/* The ranks use this bundle of plans, if it is one for so many. 0, or the exit code of the command, the reason told. */
int run_plan_take(const char *path, uint32_t ranks);
