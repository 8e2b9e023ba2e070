/* run wan: the contents of CAUSEWAY_TOPOLOGY, before the job is started. */
#pragma once

/* Looks at the file that the environment names, if it does, and for this host in it, unless `emulate` (--emulate, or
 * NULL) brings its own hosts; and at CAUSEWAY_PACING. 0, or an exit code after reporting. */
int run_wan_check(const char *emulate);
