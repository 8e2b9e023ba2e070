#include "dataplane/base/clock.h"

#include <time.h>

static const uint64_t *followed_ns; /* NULL: the kernel's clock */

static uint64_t kernel_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

#if defined(__x86_64__)

#include <cpuid.h>
#include <stdatomic.h>
#include <stdbool.h>

enum {
    SPAN_NS = 1000000,
    RATE_SPAN_MIN_NS = 100000,     /* too short a time says little about the rate, */
    RATE_SPAN_MAX_NS = 1000000000, /* too long a one little about now */
    PAIR_TICKS_MAX = 2000,         /* between two looks at the counter around one at the kernel's clock */
    PAIR_TRIES = 3,
    TICKS_A_NS_MAX = 16,
};

_Thread_local struct cw_clock_base cw_clock_base;

/* True if the counter runs at one rate, independent of the core's state (Intel SDM 17.17.1, AMD APM 2,
 * "TscInvariant"). */
static bool counter_is_steady(void)
{
    static atomic_int known; /* 0: not looked yet */
    int steady = atomic_load_explicit(&known, memory_order_relaxed);
    if (steady == 0) {
        unsigned a;
        unsigned b;
        unsigned c;
        unsigned d;
        steady = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1u << 8) != 0 ? 1 : -1;
        atomic_store_explicit(&known, steady, memory_order_relaxed);
    }
    return steady > 0;
}

/* The kernel's time and the counter at the same moment. False: the thread was interrupted each time. */
static bool read_pair(uint64_t *ticks, uint64_t *ns)
{
    for (uint32_t i = 0; i < PAIR_TRIES; i++) {
        uint64_t before = __rdtsc();
        *ns = kernel_ns();
        uint64_t after = __rdtsc();
        *ticks = before + (after - before) / 2;
        if (after - before < PAIR_TICKS_MAX) {
            return true;
        }
    }
    return false;
}

/* The span that begins at `next`, at the rate since `base`. False: that time is no measure of the rate, or the counter
 * has jumped. */
static bool rate_set(const struct cw_clock_base *base, struct cw_clock_base *next)
{
    uint64_t elapsed_ns = next->ns - base->ns;
    uint64_t elapsed = next->ticks - base->ticks;
    if (base->ticks == 0 || next->ns <= base->ns || elapsed_ns < RATE_SPAN_MIN_NS || elapsed_ns > RATE_SPAN_MAX_NS ||
        elapsed / TICKS_A_NS_MAX > elapsed_ns || elapsed < elapsed_ns / TICKS_A_NS_MAX) {
        return false;
    }
    next->scale = (elapsed_ns << 32) / elapsed;
    next->span = ((uint64_t)SPAN_NS << 32) / next->scale;
    return true;
}

void cw_clock_follow(const uint64_t *now_ns)
{
    followed_ns = now_ns;
    cw_clock_base = (struct cw_clock_base){0}; /* no span: each read comes to cw_clock_rebase */
}

uint64_t cw_clock_rebase(void)
{
    struct cw_clock_base *base = &cw_clock_base;
    if (followed_ns != NULL) {
        return *followed_ns;
    }
    struct cw_clock_base next = {0};
    uint64_t said_ns = base->ns + (base->span * base->scale >> 32); /* at most */
    if (!counter_is_steady() || !read_pair(&next.ticks, &next.ns)) {
        next.ns = kernel_ns();
        next.ticks = 0;
    }
    bool measuring = base->span == 0 && base->ticks != 0 && next.ticks != 0 && next.ns - base->ns < RATE_SPAN_MIN_NS;
    bool known = rate_set(base, &next);
    /* interpolated time may be a little ahead of the kernel; the next rate makes up for it */
    next.ns = next.ns > said_ns ? next.ns : said_ns;
    if (known || !measuring) {
        *base = next;
    }
    return next.ns;
}

#else

void cw_clock_follow(const uint64_t *now_ns)
{
    followed_ns = now_ns;
}

uint64_t cw_clock_ns(void)
{
    return followed_ns != NULL ? *followed_ns : kernel_ns();
}

#endif
