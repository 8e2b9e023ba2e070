/* Yield policy: how a thread that waits for packets shares its core with others, before it sleeps.
 *
 * It yields between its polls. If it is alone on its core, that costs nothing. If many processes wait like this, each
 * has its turn after microseconds: eight processes on two cores exchange packets three to five times as fast as by
 * spinning, which keeps the awaited process from running. But next to a process that computes all the time, a yield
 * takes one of its time slices: 4 ms measured, while a sleeper that is woken runs at once. So if yields take long on
 * average, the thread stops yielding for some time, and sleeps instead. A single long yield is no reason: if many
 * processes share a core, some time slice is due now and then, and to sleep and be woken costs more on average.
 *
 * A thread that would yield forever sleeps for a moment now and then if other processes run meanwhile
 * (cw_yield_policy_is_tired). If the threads of a core only yield to each other, Linux 6.18 keeps threads of another
 * session, or of another control group, off that core for seconds, even if these request short turns. With a moment of
 * sleep in 20 yields they wait for at most 4 ms.
 *
 * Order of calls: a zeroed one is new; cw_yield_policy_yield after each poll without a packet, until it returns false
 * or it is time to sleep. One thread at a time. */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/clock.h"

#define CW_YIELD_LONG_NS   500000 /* the mean of the last yields; among others who yield they take microseconds */
#define CW_YIELD_MEAN_OVER 16     /* yields, roughly */
#define CW_YIELD_RETREAT_MIN_NS \
    100000000ull /* no yields for so long, twice as long each time that they do not pay yet */
#define CW_YIELD_RETREAT_MAX_NS 2000000000ull
#define CW_YIELD_TRIAL_NS       10000000ull /* if yields are short for so long, they pay again */
#define CW_YIELD_SHARED_NS      1500        /* a longer one has let another thread run */
#define CW_YIELD_TIRES          16          /* of these, and a thread that never sleeps must sleep for a moment */

struct cw_yield_policy {
    uint64_t resume_ns;  /* no yields before */
    uint64_t retreat_ns; /* the last retreat; 0: forgotten */
    int64_t mean_ns;     /* of the last yields */
    uint32_t shared;     /* yields in which another process has run, since it was tired */
};

/* Updates the policy after a yield. */
static inline void cw_yield_policy_note(struct cw_yield_policy *yield_policy, uint64_t before_ns, uint64_t after_ns)
{
    yield_policy->shared += after_ns - before_ns > CW_YIELD_SHARED_NS;
    yield_policy->mean_ns += ((int64_t)(after_ns - before_ns) - yield_policy->mean_ns) / CW_YIELD_MEAN_OVER;
    if (yield_policy->mean_ns > CW_YIELD_LONG_NS) {
        yield_policy->mean_ns = CW_YIELD_LONG_NS / 2; /* it has to prove itself */
        uint64_t retreat_ns = 2 * yield_policy->retreat_ns;
        retreat_ns = retreat_ns > CW_YIELD_RETREAT_MIN_NS ? retreat_ns : CW_YIELD_RETREAT_MIN_NS;
        yield_policy->retreat_ns = retreat_ns < CW_YIELD_RETREAT_MAX_NS ? retreat_ns : CW_YIELD_RETREAT_MAX_NS;
        yield_policy->resume_ns = after_ns + yield_policy->retreat_ns;
    } else if (yield_policy->mean_ns < CW_YIELD_LONG_NS / CW_YIELD_MEAN_OVER &&
               after_ns > yield_policy->resume_ns + CW_YIELD_TRIAL_NS) {
        yield_policy->retreat_ns = 0;
    }
}

/* After a yield, for a thread that does not sleep otherwise. True: it must sleep now, for a moment. */
static inline bool cw_yield_policy_is_tired(struct cw_yield_policy *yield_policy)
{
    bool is_tired = yield_policy->shared >= CW_YIELD_TIRES;
    yield_policy->shared = is_tired ? 0 : yield_policy->shared;
    return is_tired;
}

/* Yields to other processes; false: it should sleep. `now_ns` as in cw_clock_ns. */
static inline bool cw_yield_policy_yield(struct cw_yield_policy *yield_policy, uint64_t now_ns)
{
    if (now_ns < yield_policy->resume_ns) {
        return false;
    }
    sched_yield();
    cw_yield_policy_note(yield_policy, now_ns, cw_clock_ns());
    return true;
}
