/* agent: serves a job on another host, for the launcher at the other end of its standard files. It consists of two
 * processes, as the launcher does: each cleans up the ranks when the other one is killed.
 *
 * Invariants
 *   - An agent whose input ends, or is silent for the failure timeout, ends its ranks and itself.
 *
 * Thread: the process's only one. */
#pragma once

/* `causeway agent`; its standard files are the connection. Returns the exit code to end with. */
int cw_launch_agent(void);
