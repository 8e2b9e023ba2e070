/* Process numbers in /proc: those of the namespace that /proc was mounted for, and not of this process's own after
 * `unshare -pf` without --mount-proc. */
#ifndef CW_PROCESS_H
#define CW_PROCESS_H

#include <stdint.h>

/* The number by which this process is found in /proc; 0: there is no /proc. getpid() elsewhere, in system calls. Any
 * thread. */
int32_t cw_process_number(void);

#endif
