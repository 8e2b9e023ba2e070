/* Run simulate: the simulator of `causeway run --simulate`: a child of the launcher's, in a process group of its own.
 *
 * Its socket exists before a rank starts. It ends with the launcher (PR_SET_PDEATHSIG).
 *
 * Thread: one. */
#pragma once

#include <stdint.h>

#include "apps/cli/folder.h"

struct run_simulation {
    char folder[RUN_FOLDER_BYTES]; /* of its socket; "": none */
    int process;                   /* 0: none */
};

/* Starts the simulator that `text` describes (apps/simulate/simulate.h), and sets the environment of the ranks. 0, or
 * the exit code of the command, with the reason reported; run_simulation_stop is due in both cases. */
int run_simulation_start(struct run_simulation *simulation, const char *text, uint32_t ranks);

/* Runs the command `words` again and again, with seeds from that of `text` on. Stops at the first that fails, and
 * reports the command that repeats it. The exit code of that one, or 0. */
int run_simulation_seeds(uint64_t seeds, const char *text, uint32_t ranks, int argc, char **words);
/* Ends it, and waits for its report. Its exit code. */
int run_simulation_stop(struct run_simulation *simulation);
