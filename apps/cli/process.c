#include "apps/cli/process.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "apps/cli/cli.h"

enum { SIGNAL_BASE = 128 };

/* Handlers can reach nothing else. */
static struct app_signals signals;

static void signal_note(int number)
{
    if (number == SIGUSR1) {
        signals.report = 1;
    } else {
        signals.stop = 1;
    }
}

struct app_signals *app_signals_hold(sigset_t *before)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};
    struct sigaction action = {.sa_handler = signal_note};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigaction(numbers[i], &action, NULL);
        sigaddset(&set, numbers[i]);
    }
    sigprocmask(SIG_BLOCK, &set, before);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        sigdelset(before, numbers[i]);
    }
    signal(SIGPIPE, SIG_IGN); /* a reader of the counters may end; the program stays */
    return &signals;
}

int app_signal_report(int number)
{
    char text[64];
    const char *name = sigabbrev_np(number);
    snprintf(text, sizeof(text), "SIG%s: ended before a rank was started", name != NULL ? name : "?");
    app_error(text, NULL, NULL);
    return SIGNAL_BASE + number;
}

int app_pin(uint64_t core)
{
    if (core == APP_CORE_ANY) {
        return APP_EXIT_SUCCESS;
    }
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((size_t)core, &cores);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0) {
        char where[32];
        snprintf(where, sizeof(where), "--core %u", (unsigned)core);
        app_error("cannot run on that core", where, "`nproc` and `taskset -p $$` say which there are");
        return errno == EINVAL ? APP_EXIT_USAGE : APP_EXIT_MACHINE;
    }
    return APP_EXIT_SUCCESS;
}
