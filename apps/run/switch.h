/* Run switch: the `causeway switch` between the memif hosts of a job: a child of the launcher's, in a process group of
 * its own.
 *
 * Invariants
 *   - It ends with the launcher, also when it is stopped: the kernel continues it then (PR_SET_PDEATHSIG), and it sees
 *     that its owner is gone.
 *   - Nothing waits for it without a bound: RUN_SWITCH_READY_MS at the start, RUN_SWITCH_END_MS at the end, and in
 *     between cw_launch_config's helper.
 *
 * Thread: one. */
#pragma once

#include <signal.h>

#include "apps/cli/folder.h"

enum {
    RUN_SWITCH_READY_MS = 30000, /* DPDK starts, and makes its memory; without what its first thread waits for a core */
    RUN_SWITCH_END_MS = 10000,   /* it writes the last of its statistics */
};

struct run_switch {
    char folder[RUN_FOLDER_BYTES]; /* empty: none */
    int process;                   /* 0: none */
    int handle;                    /* its pidfd, since whoever sweeps may reap it */
};

/* Starts one with `arguments` of the command, NULL last, behind its own, and waits until it forwards. Signals of
 * `handled`, which are blocked, end the wait. The socket is FOLDER/s. 0, or the exit code of the command, the reason
 * told; run_switch_stop is due in both cases. */
int run_switch_start(struct run_switch *made, const char *const *arguments, const sigset_t *handled);
/* Ends it, in order within its bound, and removes what it has left. One that is zero is allowed. Its parent, or the
 * launcher if that is gone. Returns its exit code, which it has explained; 0 also if it was killed. */
int run_switch_stop(struct run_switch *made);
