/* thread: threads that belong to this library and not to the program.
 *
 * Thread: any. */
#pragma once

#include <pthread.h>
#include <stdbool.h>

/* Starts a thread on a core; -1: wherever the system puts it. `takes_signals`: the program's handlers may run on it;
 * else all signals are blocked from its first moment on. 0, or an errno, as pthread_create has it. */
int cw_thread_start(pthread_t *thread, int core, bool takes_signals, void *(*run)(void *context), void *context);
