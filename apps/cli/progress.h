/* CLI progress: a line on standard error, where that is a terminal, while a command works for longer than some seconds:
 * "plogp: shared, 8 ranks: 37 %, 12 s, about 20 s left". It is gone when the command ends, or prints a result.
 *
 * Invariants
 *  - Nothing at all is written where standard error is no terminal.
 *  - A thread of its own draws, twice a second: what takes long need not think of it.
 *  - There is one at a time, and it is the process's that began it: those that it forks write nothing, and take no lock
 *    that somebody may have held when they were made.
 *
 * Order of calls: app_progress_begin, { app_progress_step | app_progress_hide }*, app_progress_end. All but the first
 * do nothing if there is none. Thread: the one that began it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { APP_PROGRESS_BYTES = 80 };

/* What a command says of itself: `what` it is, and `step`, what it is at ("": nothing). `done` of `all` parts, of any
 * size, were over after `done_ns`; all of 0: not known. Cut to APP_PROGRESS_BYTES with its final 0. */
void app_progress_text(char text[APP_PROGRESS_BYTES], const char *what, const char *step, uint64_t done, uint64_t all,
                       uint64_t done_ns, uint64_t elapsed_ns);

/* Begins it, unless `quiet` or standard error is no terminal. It ends with the process at the latest. */
void app_progress_begin(const char *what, bool quiet);

/* `done` of `all` parts are over, and `step` begins. */
void app_progress_step(uint64_t done, uint64_t all, const char *step);

/* Takes the line away for a moment: something is to be printed, and flushed, now. */
void app_progress_hide(void);
void app_progress_end(void);
