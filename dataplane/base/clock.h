/* Clock: the one place that reads the time; only loops and applications do.
 *
 * A put and its answer read it some eight times, and clock_gettime costs 25 ns. So each thread interpolates with the
 * processor's time stamp counter, for a millisecond at a time, at the rate that the last millisecond had: no
 * calibration at the start, no drift, and a counter that jumps (a virtual machine that moves) is found out at once.
 * Elsewhere clock_gettime is asked each time. */
#pragma once

#include <stdint.h>

/* From now on the clock of this process is `now_ns` (base/virtual.h), which stays valid. Before the process has other
 * threads that read the clock. */
void cw_clock_follow(const uint64_t *now_ns);

#if defined(__x86_64__)
#include <x86intrin.h>

struct cw_clock_base {
    uint64_t ticks; /* of the counter when it was `ns` */
    uint64_t ns;
    uint64_t scale; /* nanoseconds a tick, times 2^32 */
    uint64_t span;  /* ticks from then on that may be interpolated */
};

extern _Thread_local struct cw_clock_base cw_clock_base;

/* Asks the kernel and begins a new span. */
uint64_t cw_clock_rebase(void);

/* As cw_clock_ns, for outgoing packets: it may be a little earlier than earlier loads, which does not matter there. */
static inline uint64_t cw_clock_posting_ns(void)
{
    const struct cw_clock_base *base = &cw_clock_base;
    uint64_t ticks = __rdtsc() - base->ticks;
    return ticks < base->span ? base->ns + (ticks * base->scale >> 32) : cw_clock_rebase();
}

/* Monotonic nanoseconds (CLOCK_MONOTONIC, within a microsecond; never goes back within a thread). Any thread. */
static inline uint64_t cw_clock_ns(void)
{
    _mm_lfence(); /* earlier loads, such as a packet, are before this time */
    return cw_clock_posting_ns();
}

#else

uint64_t cw_clock_ns(void);

static inline uint64_t cw_clock_posting_ns(void)
{
    return cw_clock_ns();
}

#endif
