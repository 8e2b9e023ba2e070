/* Run plan: the work of `causeway run --record` and `--plan` before the ranks start; the rest is theirs
 * (mpi/collective/compiled/record.h, replay.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The ranks record into this file, wherever they run. False: reported, with *exit_code. */
bool run_plan_record(const char *path, int *exit_code);

/* The job has ended: APP_EXIT_FAILURE, after an error, if no rank has written the requested trace. */
int run_plan_recorded(void);

/* The ranks use this bundle of plans, if it is one for that number. 0, or the exit code of the command, with the reason
 * reported. */
int run_plan_apply(const char *path, uint32_t ranks);
