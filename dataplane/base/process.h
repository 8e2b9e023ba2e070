/* process: what the kernel says of another process of this machine.
 *
 * Thread: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The number by which this process is found in /proc; 0: there is no /proc. It is another than getpid() where /proc was
 * mounted for another namespace, as after `unshare -pf` without --mount-proc. */
int32_t cw_process_number(void);

/* The state letter of /proc: 'R', 'S', 'D', 'T' stopped by a signal, 't' by a debugger, 'Z' ended; 0: there is none, or
 * no way to know, since numbers in /proc are others'. */
char cw_process_state(int process);

/* Whether it has been stopped by a signal, and takes no part in anything until somebody continues it. One that a
 * debugger holds has not. */
bool cw_process_is_stopped(int process);
