/* CLI progress: a line on standard error, where that is a terminal, while a command works for longer than some seconds:
 * "plogp: shared, 8 ranks: 37 %, 12 s, about 20 s left". It is gone when the command ends, or prints a result.
 *
 * Invariants
 *  - Nothing at all is written where standard error is no terminal.
 *  - A thread of its own draws, twice a second: long operations need no code for it.
 *  - There is one at a time, and it belongs to the process that began it: forked processes write nothing, and take no
 *    lock that another thread may have held when they were made.
 *
 * Order of calls: app_progress_begin, { app_progress_step | app_progress_hide }*, app_progress_end. All but the first
 * do nothing if there is none. Thread: the one that began it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { APP_PROGRESS_BYTES = 80 };

/* A command's description of itself: `what` it is, and `step`, its current step ("": none). `done` of `all` parts, of
 * any size, were over after `done_ns`; all of 0: not known. Cut to APP_PROGRESS_BYTES with its final 0. */
void app_progress_text(char text[APP_PROGRESS_BYTES], const char *what, const char *step, uint64_t done, uint64_t all,
                       uint64_t done_ns, uint64_t elapsed_ns);

/* Begins it, unless `quiet` or standard error is no terminal. It ends with the process at the latest. */
void app_progress_begin(const char *what, bool quiet);

/* `done` of `all` parts have ended, and `step` begins. */
void app_progress_step(uint64_t done, uint64_t all, const char *step);

/* Removes the line for a moment: other output is printed, and flushed, now. */
void app_progress_hide(void);
void app_progress_end(void);
