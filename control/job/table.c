/* Texts in the launcher's table: in hexadecimal, since it takes no blanks, and in pieces of what one value holds,
 * behind one that says how many there are. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "control/job/private.h"
#include "dataplane/base/thread.h"
#include "dataplane/base/virtual.h"
#include "dataplane/loop/loop.h"
#include "dataplane/status.h"

enum { WAIT_NS = 100000000, QUIET_NS = 1000000 };

static void piece_name(char name[CW_BOOTSTRAP_KEY_MAX + 1], const char *key, size_t piece)
{
    snprintf(name, CW_BOOTSTRAP_KEY_MAX + 1, "%s.%zu", key, piece);
}

int cw_job_tell(struct cw_job *job, const char *key, const char *text)
{
    char name[CW_BOOTSTRAP_KEY_MAX + 1], value[CW_BOOTSTRAP_VALUE_MAX + 1];
    size_t bytes_each = job->info.value_max / 2, bytes = strlen(text);
    snprintf(value, sizeof(value), "%zu", bytes);
    int status = cw_bootstrap_put(job->bootstrap, key, value);
    for (size_t at = 0; at < bytes && status == CW_OK; at += bytes_each) {
        size_t part = bytes - at < bytes_each ? bytes - at : bytes_each;
        sodium_bin2hex(value, sizeof(value), (const uint8_t *)text + at, part);
        piece_name(name, key, at / bytes_each);
        status = cw_bootstrap_put(job->bootstrap, name, value);
    }
    return status;
}

int cw_job_learn(struct cw_job *job, const char *key, char **text)
{
    char name[CW_BOOTSTRAP_KEY_MAX + 1], value[CW_BOOTSTRAP_VALUE_MAX + 1];
    int status = cw_bootstrap_get(job->bootstrap, key, value, sizeof(value));
    size_t bytes = status == CW_OK ? strtoul(value, NULL, 10) : 0, got = 0;
    char *made = calloc(bytes + 1, 1);
    status = made == NULL ? CW_ERROR_MEMORY : status;
    for (size_t piece = 0; got < bytes && status == CW_OK; piece++) {
        size_t part = 0;
        piece_name(name, key, piece);
        status = cw_bootstrap_get(job->bootstrap, name, value, sizeof(value));
        if (status == CW_OK &&
            (sodium_hex2bin((uint8_t *)made + got, bytes - got, value, strlen(value), NULL, &part, NULL) != 0 ||
             part == 0)) {
            status = CW_ERROR_SYSTEM;
        }
        got += part;
    }
    if (status != CW_OK) {
        free(made);
        return status;
    }
    *text = made;
    return CW_OK;
}

/* ---- waiting for all ---- */

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
