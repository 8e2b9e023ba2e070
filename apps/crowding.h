/* Crowding: whether a thread that spins keeps others from a core that they could use.
 *
 * Where every process has a core to itself, looking for packets for some time before a sleep saves the wake-up. Where processes outnumber
 * cores, one that spins keeps the very process that it waits for from running, and sched_yield is no remedy: since Linux 6.18 it gives
 * away the rest of the slice, which may be milliseconds. So a thread that has nothing to do asks here whether it may spin.
 *
 * The measure is how long the thread was runnable without running (the kernel's run delay): in a crowd of spinners everybody sees it.
 * Who is crowded spins only in a trial now and then, seldomer each time that the trial fails.
 *
 * Order of calls: cw_crowding_init; cw_crowding_look whenever there is nothing to do; cw_crowding_dispose. One thread at a time, though not
 * always the same one. Where the kernel does not tell the run delay, nobody counts as crowded.
 */
#ifndef CW_CROWDING_H
#define CW_CROWDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CW_CROWDING_TRIAL_NS       10000000ull /* what one judgement looks at */
#define CW_CROWDING_RETREAT_MIN_NS 100000000ull
#define CW_CROWDING_RETREAT_MAX_NS 2000000000ull

enum {
    CW_CROWDING_SHARE = 16
}; /* a larger part of the time than one in so many is spent waiting for a core: crowded */

struct cw_crowding {
    int descriptor; /* of the thread's figures; -1: none */
    pid_t thread;
    bool crowded;
    uint64_t look_ns;    /* when to look again */
    uint64_t since_ns;   /* of the last look; 0: there was none */
    uint64_t delay_ns;   /* the run delay then */
    uint64_t retreat_ns; /* for how long not to spin the next time */
};

void cw_crowding_init(struct cw_crowding *crowding);

/* Takes a look at the kernel's figures: some 1 us. */
void cw_crowding_refresh(struct cw_crowding *crowding, uint64_t now_ns);

/* True: do not spin. `now_ns` as in cw_clock_ns. */
static inline bool cw_crowding_look(struct cw_crowding *crowding, uint64_t now_ns)
{
    if (now_ns >= crowding->look_ns) {
        cw_crowding_refresh(crowding, now_ns);
    }
    return crowding->crowded;
}

/* What follows from a run delay that has grown to `delay_ns` by now. */
void cw_crowding_judge(struct cw_crowding *crowding, uint64_t now_ns, uint64_t delay_ns);

void cw_crowding_dispose(struct cw_crowding *crowding);

#endif
