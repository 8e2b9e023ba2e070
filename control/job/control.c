#include "control/job/control.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/base/thread.h"
#include "dataplane/base/virtual.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum control_state {
    CONTROL_AWAKE = 0, /* or in a sleep that is short enough */
    CONTROL_ASLEEP = 1,
    CONTROL_STOP = 2,
};

struct cw_control {
    struct cw_control_config config;
    pthread_t thread;
    pthread_mutex_t calls; /* around ticks and heartbeats */
    bool is_quiet;
    bool has_thread; /* else nothing is done while the program computes: in virtual time its calls do it */
    _Atomic int pending;
    _Atomic uint32_t state; /* the futex */
};

/* Until `state` is no longer `expected`, a wake-up arrives, or the time has passed. At a loop it may wake too early. */
static void state_sleep(struct cw_control *control, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec time = {.tv_sec = (time_t)(timeout_ns / 1000000000), .tv_nsec = (long)(timeout_ns % 1000000000)};
    if (control->config.loop != NULL) {
        (void)cw_loop_stand_in(control->config.loop, cw_clock_ns() + timeout_ns);
    } else {
        syscall(SYS_futex, &control->state, FUTEX_WAIT_PRIVATE, expected, &time, NULL, 0);
    }
}

static void state_wake(struct cw_control *control)
{
    if (control->config.loop != NULL) {
        cw_loop_recall(control->config.loop);
    } else {
        syscall(SYS_futex, &control->state, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
    }
}

static bool is_stopped(struct cw_control *control)
{
    return atomic_load_explicit(&control->state, memory_order_acquire) == CONTROL_STOP;
}

/* The long sleep, which cw_control_pending ends: true if it has. Both sides write, then read what the other has
 * written: in the one order of all sequentially consistent operations one of the two sees the other. */
static bool sleep_long(struct cw_control *control, uint64_t duration_ns)
{
    uint32_t expected = CONTROL_AWAKE;
    if (!atomic_compare_exchange_strong(&control->state, &expected, CONTROL_ASLEEP)) {
        return false; /* to be stopped */
    }
    if (atomic_load(&control->pending) <= 0) { /* pairs with cw_control_pending */
        state_sleep(control, CONTROL_ASLEEP, duration_ns);
    }
    expected = CONTROL_ASLEEP;
    return !atomic_compare_exchange_strong(&control->state, &expected, CONTROL_AWAKE) && expected == CONTROL_AWAKE;
}

static bool is_pending(struct cw_control *control)
{
    return atomic_load_explicit(&control->pending, memory_order_relaxed) > 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void calls_make(struct cw_control *control, bool tick, bool heartbeat)
{
    const struct cw_control_config *config = &control->config;
    pthread_mutex_lock(&control->calls);
    if (!control->is_quiet && (tick || heartbeat)) {
        config->tick(config->context);
    }
    if (!control->is_quiet && heartbeat) {
        config->heartbeat(config->context);
    }
    pthread_mutex_unlock(&control->calls);
}

/* On a core of its own. Without a loop there is nothing to look for all the time. */
static void *control_spin(void *argument)
{
    struct cw_control *control = argument;
    uint64_t heartbeat_ns = cw_clock_ns() + CW_CONTROL_HEARTBEAT_NS;
    pthread_setname_np(pthread_self(), "cw-dataplane");
    while (!is_stopped(control)) {
        bool has_events = false;
        if (control->config.loop != NULL) {
            has_events = cw_loop_stand_in(control->config.loop, cw_clock_ns() + CW_CONTROL_SPIN_NS);
        } else {
            state_sleep(control, CONTROL_AWAKE, is_pending(control) ? CW_CONTROL_SPIN_NS : CW_CONTROL_TICK_NS);
        }
        bool heartbeat = cw_clock_ns() >= heartbeat_ns;
        if (has_events || heartbeat || is_pending(control)) {
            calls_make(control, true, heartbeat);
        }
        heartbeat_ns = heartbeat ? cw_clock_ns() + CW_CONTROL_HEARTBEAT_NS : heartbeat_ns;
    }
    return NULL;
}

static void *control_run(void *argument)
{
    struct cw_control *control = argument;
    uint64_t heartbeat_ns = cw_clock_ns() + CW_CONTROL_HEARTBEAT_NS;
    bool woken = false;
    pthread_setname_np(pthread_self(), "cw-control");
    while (!is_stopped(control)) {
        uint64_t now_ns = cw_clock_ns();
        uint64_t left_ns = heartbeat_ns > now_ns ? heartbeat_ns - now_ns : 0;
        bool tick = false;
        /* A woken thread stays awake for a tick: so short pending states cost at most one system call per tick. */
        if (!woken && !is_pending(control)) {
            woken = sleep_long(control, left_ns);
        } else {
            state_sleep(control, CONTROL_AWAKE, earlier(left_ns, CW_CONTROL_TICK_NS));
            woken = false;
            tick = is_pending(control);
        }
        bool heartbeat = cw_clock_ns() >= heartbeat_ns;
        calls_make(control, tick, heartbeat);
        if (heartbeat) {
            heartbeat_ns = cw_clock_ns() + CW_CONTROL_HEARTBEAT_NS; /* one that was late is not made up for */
        }
    }
    return NULL;
}

int cw_control_create(const struct cw_control_config *config, struct cw_control **control, char *error,
                      size_t error_bytes)
{
    struct cw_control *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the control thread");
    }
    made->config = *config;
    pthread_mutex_init(&made->calls, NULL);
    made->has_thread = !cw_virtual_is_on();
    int failed = made->has_thread ? cw_thread_start(&made->thread, config->has_core ? config->core : -1, false,
                                                    config->has_core ? control_spin : control_run, made)
                                  : 0;
    if (failed != 0) {
        free(made);
        if (config->has_core) {
            return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM,
                                 "the dataplane thread cannot be started on core %d: %s (name cores that this process "
                                 "may use, as its cgroup says: CAUSEWAY_DEDICATED=cores:LIST, or --dedicated off)",
                                 config->core, strerror(failed));
        }
        return cw_error_text(error, error_bytes, CW_ERROR_SYSTEM,
                             "the control thread cannot be started: %s (`ulimit -u` limits threads, `ulimit -v` memory "
                             "for their stacks)",
                             strerror(failed));
    }
    *control = made;
    return CW_OK;
}

void cw_control_quiet(struct cw_control *control)
{
    if (control != NULL) {
        pthread_mutex_lock(&control->calls);
        control->is_quiet = true;
        pthread_mutex_unlock(&control->calls);
    }
}

void cw_control_destroy(struct cw_control *control)
{
    if (control == NULL) {
        return;
    }
    cw_control_quiet(control);
    atomic_store_explicit(&control->state, CONTROL_STOP, memory_order_release); /* pairs with is_stopped */
    if (control->has_thread) {
        state_wake(control);
        pthread_join(control->thread, NULL);
    }
    free(control);
}

void cw_control_pending(struct cw_control *control, int change)
{
    atomic_fetch_add(&control->pending, change); /* pairs with sleep_long */
    uint32_t asleep = CONTROL_ASLEEP;
    if (change > 0 && atomic_load(&control->state) == CONTROL_ASLEEP &&
        atomic_compare_exchange_strong(&control->state, &asleep, CONTROL_AWAKE)) {
        state_wake(control);
    }
}
