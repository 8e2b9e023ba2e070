/* Fences of the launcher, and messages that arrive from other ranks meanwhile. */
#include <pthread.h>
#include <stdatomic.h>

#include "control/job/private.h"
#include "dataplane/base/thread.h"
#include "dataplane/base/virtual.h"
#include "dataplane/loop/loop.h"
#include "dataplane/status.h"

enum { WAIT_NS = 100000000, QUIET_NS = 1000000 };

struct waiter {
    struct cw_job *job;
    _Atomic int status;
    atomic_bool is_over;
};

static void *waiter_run(void *argument)
{
    struct waiter *waiter = argument;
    atomic_store_explicit(&waiter->status, cw_bootstrap_fence(waiter->job->bootstrap), memory_order_relaxed);
    atomic_store_explicit(&waiter->is_over, true, memory_order_release); /* with the acquire of waiter_is_over */
    cw_paths_wake(waiter->job->paths);
    return NULL;
}

static bool waiter_is_over(void *argument)
{
    struct waiter *waiter = argument;
    return atomic_load_explicit(&waiter->is_over, memory_order_acquire);
}

static void gathered(void *context)
{
    struct cw_job *job = context;
    cw_paths_wake(job->paths);
}

/* In virtual time all ranks gather first, so that the launcher's answer takes none. */
static int fence_virtual(struct cw_job *job, bool takes)
{
    uint32_t before = cw_virtual_gathered();
    const struct cw_port_alarm alarm = {.word = {.at = &cw_virtual_page->gathered, .value = before}, .descriptor = -1};
    cw_virtual_gather(takes ? gathered : NULL, job);
    cw_virtual_page->needs_others = 1;
    while (cw_virtual_gathered() == before) {
        if (cw_virtual_page->is_stuck != 0) {
            cw_bootstrap_abort(job->bootstrap, 1, "the other ranks of the simulation cannot continue");
        }
        if (!takes) {
            cw_loop_rest(job->wire.loop, WAIT_NS, &alarm);
        } else if (cw_paths_poll(job->paths) == 0) {
            cw_paths_wait(job->paths, WAIT_NS, NULL, NULL);
        }
    }
    cw_virtual_page->needs_others = 0;
    cw_virtual_outside_begin();
    int status = cw_bootstrap_fence(job->bootstrap);
    cw_virtual_outside_end();
    return status;
}

/* `takes`: what comes meanwhile; else it stays with the endpoint, which answers its peers all the same. */
static int fence_wait(struct cw_job *job, bool takes)
{
    if (cw_virtual_is_on()) {
        return fence_virtual(job, takes);
    }
    struct waiter waiter = {.job = job};
    pthread_t thread;
    if (cw_thread_start(&thread, -1, false, waiter_run, &waiter) != 0) { /* signals are the program's threads' */
        return CW_ERROR_SYSTEM;
    }
    while (!waiter_is_over(&waiter)) {
        if (!takes) {
            (void)cw_loop_wait(job->wire.loop, NULL, 0, QUIET_NS);
        } else if (cw_paths_poll(job->paths) == 0) {
            cw_paths_wait(job->paths, WAIT_NS, waiter_is_over, &waiter);
        }
    }
    pthread_join(thread, NULL);
    return atomic_load_explicit(&waiter.status, memory_order_relaxed);
}

int cw_job_fence(struct cw_job *job)
{
    return fence_wait(job, true);
}

int job_fence_early(struct cw_job *job)
{
    return fence_wait(job, false);
}
