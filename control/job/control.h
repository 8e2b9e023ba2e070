/* control: the thread that sleeps most of the time, and services duties that must continue while the application
 * computes.
 *
 * It calls `tick` every CW_CONTROL_TICK_NS while something is pending (cw_control_pending) and every
 * CW_CONTROL_HEARTBEAT_NS otherwise, and `heartbeat` every CW_CONTROL_HEARTBEAT_NS. Both run on the control thread and
 * take whatever lock their owner needs. Meanwhile it assists at the loop, if there is one (cw_loop_stand_in).
 *
 * With a core of its own it is the process's dataplane thread: it never sleeps, turns the loop whenever the application
 * does not (stands_by of loop.h), and ticks as soon as there are events without a waiting thread, and every
 * CW_CONTROL_SPIN_NS while something is pending.
 *
 * Thread: create and destroy one at a time; cw_control_pending from any, and cheap: no call to the kernel unless the
 * thread is in its long sleep. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/loop/loop.h"

#define CW_CONTROL_TICK_NS      2000000ull
#define CW_CONTROL_SPIN_NS      100000ull
#define CW_CONTROL_HEARTBEAT_NS 500000000ull

struct cw_control;

struct cw_control_config {
    struct cw_loop *loop; /* with CW_FALLBACK_CALLER; outlives the thread. NULL: none */
    bool has_core;        /* `core` is the thread's own */
    int core;
    void *context;
    void (*tick)(void *context);
    void (*heartbeat)(void *context);
};

/* The thread blocks all signals, so that the application's handlers never run on it. CW_OK, CW_ERROR_MEMORY,
 * CW_ERROR_SYSTEM with a line in `error`: no thread, or none on that core. */
int cw_control_create(const struct cw_control_config *config, struct cw_control **control, char *error,
                      size_t error_bytes);
/* No tick and no heartbeat runs any more when it returns; the thread continues at the loop. NULL is allowed. */
void cw_control_quiet(struct cw_control *control);
/* Ends the thread. NULL is allowed. */
void cw_control_destroy(struct cw_control *control);

/* Adds to the number of things that are pending; may be negative. */
void cw_control_pending(struct cw_control *control, int change);
