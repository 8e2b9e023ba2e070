#include "dataplane/base/thread.h"

#include <sched.h>
#include <signal.h>

int cw_thread_start(pthread_t *thread, int core, bool takes_signals, void *(*run)(void *context), void *context)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_attr_init(&attributes);
    if (core >= 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET((size_t)core, &cores);
        pthread_attr_setaffinity_np(&attributes, sizeof(cores), &cores);
    }
    sigfillset(&all);
    if (!takes_signals) {
        pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread inherits it */
    }
    int failed = pthread_create(thread, &attributes, run, context);
    if (!takes_signals) {
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    pthread_attr_destroy(&attributes);
    return failed;
}
