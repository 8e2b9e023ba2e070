/* The threads that turn a loop in addition to the application's: dedicated, and the fallback. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/base/thread.h"
#include "dataplane/loop/loop_private.h"

enum {
    PARK_AFTER = 16,    /* looks of the fallback thread at an application that sleeps */
    LOOKS_A_YIELD = 16, /* idle ones of a thread with a core of its own */
    MOMENT_NS = 50000,
};

/* A core that is not quite free gives others a turn. If other threads keep the core, it is left to them for a moment
 * now and then, or, if yields would cost whole slices, each time. */
static void idle(struct cw_loop *loop, uint32_t looks)
{
    static const struct timespec moment = {.tv_nsec = MOMENT_NS};
    if (looks % LOOKS_A_YIELD != LOOKS_A_YIELD - 1) {
        cw_loop_pause();
    } else if (!cw_yield_policy_yield(&loop->stand_by_policy, cw_clock_ns()) ||
               cw_yield_policy_is_tired(&loop->stand_by_policy)) {
        (void)nanosleep(&moment, NULL);
    }
}

static void *dedicated_thread(void *argument)
{
    struct cw_loop *loop = argument;
    while (!cw_token_acquire(&loop->token)) {
        sched_yield();
    }
    atomic_store_explicit(&loop->turning, 1, memory_order_relaxed);
    uint64_t busy_ns = cw_clock_ns();
    uint32_t looks = 0;
    while (atomic_load_explicit(&loop->stop, memory_order_relaxed) == 0) {
        uint32_t work = cw_loop_turn(loop);
        if (work > 0) {
            cw_loop_notify_consumer(loop);
            busy_ns = loop->endpoint->now_ns;
        } else if (loop->config.spin) {
            idle(loop, ++looks);
        } else if (loop->endpoint->now_ns - busy_ns >= loop->config.yield_ns ||
                   !cw_yield_policy_yield(&loop->yield_policy, cw_clock_ns()) ||
                   cw_yield_policy_is_tired(&loop->yield_policy)) {
            cw_loop_sleep_on_port(loop, UINT64_MAX, false, NULL);
        }
    }
    cw_token_release(&loop->token);
    return NULL;
}

/* Turns until the application wants the token, and sleeps on the port meanwhile, or, assisting, polls all the time.
 * True, assisting: there are events without a waiting thread. */
static bool turn_for_others(struct cw_loop *loop, uint64_t until_ns)
{
    bool stands_by = loop->config.stands_by;
    uint32_t looks = 0;
    while (atomic_load_explicit(&loop->recalled, memory_order_relaxed) == 0 &&
           atomic_load_explicit(&loop->wanted, memory_order_relaxed) == 0) {
        uint32_t work = cw_loop_turn(loop);
        loop->counters.fallback_turns++;
        if (stands_by && cw_loop_has_events(loop) && atomic_load_explicit(&loop->consumer, memory_order_relaxed) == 0) {
            return true;
        }
        if (work > 0) {
            cw_loop_notify_consumer(loop);
        }
        if (loop->endpoint->now_ns >= until_ns) {
            return false;
        }
        looks = work > 0 ? 0 : looks + 1;
        if (work == 0 && stands_by) {
            idle(loop, looks);
        } else if (work == 0) {
            cw_loop_sleep_on_port(loop, until_ns, true, NULL);
        }
    }
    return false;
}

/* The same, as whoever has taken the token, which it gives back. */
static bool step_in(struct cw_loop *loop, uint64_t until_ns)
{
    atomic_store_explicit(&loop->turning, 1, memory_order_relaxed);
    bool has_events = turn_for_others(loop, until_ns);
    atomic_store_explicit(&loop->turning, 0, memory_order_relaxed);
    atomic_store_explicit(&loop->wanted, 0, memory_order_relaxed);
    cw_loop_release(loop);
    cw_loop_notify_consumer(loop);
    return has_events;
}

/* Sleeps for as long as the application sleeps with the token: it will not go away without waking up. */
static void park(struct cw_loop *loop, uint64_t sleep_ns)
{
    atomic_store_explicit(&loop->parked, 1, memory_order_relaxed);
    /* pairs with the fences in cw_loop_sleep_on_port and cw_loop_recall: either they see `parked`, or this sees what
     * they have done */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&loop->sleeping, memory_order_relaxed) != 0 &&
        atomic_load_explicit(&loop->recalled, memory_order_relaxed) == 0) {
        cw_loop_futex_wait(&loop->parked, 1, sleep_ns < LOOP_SLEEP_MAX_NS ? sleep_ns : LOOP_SLEEP_MAX_NS);
    }
    atomic_store_explicit(&loop->parked, 0, memory_order_relaxed);
}

static bool stand_by(struct cw_loop *loop, uint64_t until_ns)
{
    uint64_t now_ns = cw_clock_ns(), still_ns = now_ns;
    bool has_events = false;
    uint32_t looks = 0;
    while (!has_events && now_ns < until_ns &&
           atomic_exchange_explicit(&loop->recalled, 0, memory_order_acquire) == 0) {
        unsigned long polls = atomic_load_explicit(&loop->polls, memory_order_relaxed);
        bool is_asleep = atomic_load_explicit(&loop->consumer, memory_order_relaxed) != 0;
        if (polls != loop->polls_seen && !is_asleep) {
            loop->polls_seen = polls;
            still_ns = now_ns;
        } else if ((is_asleep || now_ns - still_ns >= CW_LOOP_STEP_IN_NS) && cw_token_acquire(&loop->token)) {
            has_events = step_in(loop, until_ns);
            still_ns = cw_clock_ns();
        }
        idle(loop, ++looks);
        now_ns = cw_clock_ns();
    }
    return has_events;
}

bool cw_loop_stand_in(struct cw_loop *loop, uint64_t until_ns)
{
    uint64_t now_ns;
    if (loop->config.stands_by) {
        return stand_by(loop, until_ns);
    }
    while (atomic_exchange_explicit(&loop->recalled, 0, memory_order_acquire) == 0 &&
           (now_ns = cw_clock_ns()) < until_ns) {
        uint64_t left_ns = until_ns - now_ns;
        cw_loop_futex_wait(&loop->recalled, 0, left_ns < CW_LOOP_FALLBACK_NS ? left_ns : CW_LOOP_FALLBACK_NS);
        unsigned long polls = atomic_load_explicit(&loop->polls, memory_order_relaxed);
        bool is_still = polls == loop->polls_seen;
        bool sleeps = is_still && atomic_load_explicit(&loop->sleeping, memory_order_relaxed) != 0;
        loop->looks_asleep = sleeps ? loop->looks_asleep + 1 : 0;
        if (loop->looks_asleep > PARK_AFTER) {
            park(loop, left_ns);
        } else if (is_still && cw_token_acquire(&loop->token)) {
            (void)step_in(loop, until_ns);
        }
        loop->polls_seen = polls;
    }
    return false;
}

void cw_loop_recall(struct cw_loop *loop)
{
    atomic_store_explicit(&loop->recalled, 1, memory_order_release); /* pairs with the acquire in cw_loop_stand_in */
    syscall(SYS_futex, &loop->recalled, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in park */
    if (atomic_load_explicit(&loop->parked, memory_order_relaxed) != 0) {
        cw_loop_unpark(loop);
    }
    cw_loop_wake_owner(loop);
}

static void *fallback_thread(void *argument)
{
    struct cw_loop *loop = argument;
    while (atomic_load_explicit(&loop->stop, memory_order_acquire) == 0) {
        (void)cw_loop_stand_in(loop, UINT64_MAX);
    }
    return NULL;
}

int cw_loop_start_thread(struct cw_loop *loop, char *error, size_t error_bytes)
{
    bool dedicated = loop->config.mode == CW_LOOP_DEDICATED;
    if (!dedicated && loop->config.fallback != CW_FALLBACK_THREAD) {
        return CW_OK;
    }
    int failed = cw_thread_start(&loop->thread, dedicated ? loop->config.core : -1, true,
                                 dedicated ? dedicated_thread : fallback_thread, loop);
    if (failed != 0) {
        snprintf(error, error_bytes, "loop: no thread on core %d (%s); choose a core this process may use",
                 loop->config.core, strerror(failed));
        return CW_ERROR_SYSTEM;
    }
    loop->has_thread = true;
    return CW_OK;
}
