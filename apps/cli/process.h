/* App process: shared by programs that run until they are stopped: signals, and the core they run on. */
#pragma once

#include <signal.h>
#include <stdint.h>

#define APP_CORE_ANY UINT64_MAX

/* Set by signal handlers; the code that acts upon `report` clears it. */
struct app_signals {
    volatile sig_atomic_t stop;   /* SIGINT, SIGTERM, SIGHUP */
    volatile sig_atomic_t report; /* SIGUSR1 */
};

/* Notes the signals from now on, but admits none until sigprocmask(SIG_SETMASK, before): threads that start in between
 * block them permanently, so that each one ends the sleep of the right thread. Once in a process. */
struct app_signals *app_signals_hold(sigset_t *before);

/* Says that a signal has ended the command before a rank was started; the exit code for that. */
int app_signal_report(int number);

/* Runs on this core from now on, if it is not APP_CORE_ANY. APP_EXIT_SUCCESS, or an exit code after reporting the error
 * for `--core`. */
int app_pin(uint64_t core);
