/* The clock of a simulated program: `causeway run --simulate` preloads it (LD_PRELOAD) into each rank.
 *
 * While the rank is in a simulation, the functions of the C library that read a wall clock or sleep use virtual time.
 * CLOCK_REALTIME starts at 2000-01-01. Clocks of CPU time, and threads other than the one that has called MPI_Init, use
 * the kernel's time; so do waits with a time-out, such as poll(2). */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "dataplane/base/virtual.h"

#define NS_PER_SECOND 1000000000ull
#define EPOCH_S       946684800 /* 2000-01-01 */

static const struct cw_virtual_hooks *_Atomic hooks;

/* Called by the library when it joins a simulation, and with NULL when it leaves. */
void causeway_simulated_clock(const struct cw_virtual_hooks *by);
void causeway_simulated_clock(const struct cw_virtual_hooks *by)
{
    atomic_store_explicit(&hooks, by, memory_order_release);
}

/* NULL: the kernel's time. */
static const struct cw_virtual_hooks *hooks_get(void)
{
    return atomic_load_explicit(&hooks, memory_order_acquire); /* pairs with the release of causeway_simulated_clock */
}

static bool is_wall(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW ||
           clock == CLOCK_BOOTTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_MONOTONIC_COARSE;
}

static struct timespec time_make(clockid_t clock, uint64_t now_ns)
{
    bool is_real = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    return (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SECOND) + (is_real ? EPOCH_S : 0),
                             .tv_nsec = (long)(now_ns % NS_PER_SECOND)};
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    const struct cw_virtual_hooks *by = hooks_get();
    if (by == NULL || !is_wall(clock) || !by->is_mine()) {
        return (int)syscall(SYS_clock_gettime, clock, now);
    }
    *now = time_make(clock, by->now_ns());
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec time;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &time);
    struct timeval *volatile to = now; /* the header calls it non-null; programs call it with NULL all the same */
    if (to != NULL) {
        *to = (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
    }
    return result;
}

time_t time(time_t *now)
{
    struct timespec all;
    (void)clock_gettime(CLOCK_REALTIME, &all);
    if (now != NULL) {
        *now = all.tv_sec;
    }
    return all.tv_sec;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wanted, struct timespec *left)
{
    const struct cw_virtual_hooks *by = hooks_get();
    if (by == NULL || !is_wall(clock) || !by->is_mine()) {
        return syscall(SYS_clock_nanosleep, clock, flags, wanted, left) == 0 ? 0 : errno;
    }
    if (wanted->tv_sec < 0 || wanted->tv_nsec < 0 || wanted->tv_nsec >= (long)NS_PER_SECOND) {
        return EINVAL;
    }
    uint64_t wanted_ns = (uint64_t)wanted->tv_sec * NS_PER_SECOND + (uint64_t)wanted->tv_nsec;
    if ((flags & TIMER_ABSTIME) != 0) {
        struct timespec now = time_make(clock, by->now_ns());
        uint64_t now_ns = (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
        wanted_ns = wanted_ns > now_ns ? wanted_ns - now_ns : 0;
    }
    by->sleep_ns(wanted_ns);
    return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    int failed = clock_nanosleep(CLOCK_MONOTONIC, 0, wanted, left);
    errno = failed != 0 ? failed : errno;
    return failed != 0 ? -1 : 0;
}

int usleep(useconds_t wanted_us)
{
    return nanosleep(&(struct timespec){.tv_sec = wanted_us / 1000000, .tv_nsec = wanted_us % 1000000 * 1000}, NULL);
}

unsigned sleep(unsigned seconds)
{
    struct timespec left = {.tv_sec = 0};
    return nanosleep(&(struct timespec){.tv_sec = seconds}, &left) == 0 ? 0 : (unsigned)left.tv_sec;
}
