/* virtual: time of a rank that runs on a simulated network (`causeway run --simulate`).
 *
 * The simulator (apps/simulate/) owns the virtual clock and the network. Each rank is a process that shares one page
 * with the simulator. Exactly one of all these processes runs at a time: the simulator, or one rank. The word `turn` of
 * the page says which. A rank runs from the time at which it was resumed until it waits; virtual time passes only while
 * ranks wait.
 *
 *    rank        sets `state` and `deadline_ns`, turn = SIMULATOR, sleeps on `turn`
 *    simulator   sends the rank's frames, processes events until an event is for a rank;
 *                sets `now_ns` and `horizon_ns` of that rank, turn = RANK, sleeps on `turn`
 *
 * Invariants
 *  - cw_clock_ns returns `now_ns` in all threads of the process.
 *  - A rank changes `now_ns` only to a time before `horizon_ns`, and only while it has neither sent a frame nor woken a
 *    rank since it was resumed. So no event of another process is overtaken.
 *  - Nothing here does anything in a process that has not joined a simulation.
 *
 * A process has one clock, so this state is one per process, like the clock's.
 *
 * Thread: the one that has called cw_virtual_join, for all calls. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CW_VIRTUAL_RANKS_MAX = 4096,
    CW_VIRTUAL_PAGE_BYTES = 4096,
    CW_VIRTUAL_WORDS = CW_VIRTUAL_RANKS_MAX / 64,
};

#define CW_VIRTUAL_NEVER UINT64_MAX

/* The MAC address of a rank's port. */
#define CW_VIRTUAL_MAC(rank)                                                                         \
    {                                                                                                \
        2, 0, 10, (uint8_t)(((rank) + 1) >> 16), (uint8_t)(((rank) + 1) >> 8), (uint8_t)((rank) + 1) \
    }

enum cw_virtual_turn { CW_VIRTUAL_SIMULATOR = 0, CW_VIRTUAL_RANK = 1 };

enum cw_virtual_state {
    CW_VIRTUAL_JOINS = 0, /* it has not been resumed yet */
    CW_VIRTUAL_WAITS,     /* until `deadline_ns`, a frame, or a wake-up by another rank */
    CW_VIRTUAL_COMPUTES,  /* until `deadline_ns` */
    CW_VIRTUAL_OUTSIDE,   /* waits for processes that have no virtual time; virtual time stands still */
    CW_VIRTUAL_LEFT,      /* the rank has closed its port, and runs in real time */
};

/* One page of a memfd of the simulator for each rank; the ranks map all of it. */
struct cw_virtual_page {
    /* of both, handed over by `turn` */
    _Alignas(64) _Atomic uint32_t turn; /* enum cw_virtual_turn; both sleep on it (futex(2)) */
    uint32_t state;                     /* enum cw_virtual_state */
    uint64_t now_ns;
    /* of the simulator */
    uint64_t horizon_ns;       /* of the next event of the simulation */
    _Atomic uint32_t gathered; /* how often all ranks have gathered */
    uint32_t is_stuck;         /* the simulation has ended: no rank can continue */
    /* of the rank */
    uint64_t deadline_ns;
    uint64_t moved;                   /* grows with each message and packet of data, and with each MPI call */
    uint32_t gathers;                 /* it waits until all ranks gather */
    uint32_t needs_others;            /* the wait ends by other ranks only */
    uint64_t wakes[CW_VIRTUAL_WORDS]; /* ranks that it has woken since it was resumed, a bit each */
    /* of the rank, at any time */
    _Alignas(64) _Atomic uint32_t is_back; /* it was OUTSIDE, and waits to be resumed */
    /* of the simulator, constant */
    _Alignas(64) uint64_t seed; /* of the rank's random numbers */
    uint32_t rank;
    uint64_t cpu_scale;     /* virtual time per CPU time, times 2^20; 0: computation takes no time */
    uint64_t call_ns;       /* time of each MPI call */
    uint64_t poll_ns;       /* time of a call that looks for messages, or at the clock, without waiting */
    uint64_t copy_scale;    /* nanoseconds per byte that is copied between ranks of a host, times 2^20 */
    uint32_t offloads;      /* of the rank's NIC, a bit of each enum cw_port_offload */
    uint64_t device_offset; /* of the memory of the rank's RDMA device (verbs/verbs_virtual.h), in the same memfd ... */
    uint64_t device_bytes;  /* ... and its size; 0: the rank has no such device */
};

_Static_assert(sizeof(struct cw_virtual_page) <= CW_VIRTUAL_PAGE_BYTES, "a page each");

/* Whether the calling thread is the one that has joined a simulation. */
bool cw_virtual_is_here(void);

/* This rank's page; NULL: the process has not joined a simulation. */
extern struct cw_virtual_page *cw_virtual_page;

static inline bool cw_virtual_is_on(void)
{
    return cw_virtual_page != NULL;
}

/* A message of a rank to the simulator, with the descriptor of its port's memory (port/shm_port.h). The answer is one
 * byte, with the descriptor of all pages. */
struct cw_virtual_hello {
    uint32_t rank;
    int32_t process;
};

/* Joins the simulation whose socket is at `path`, and waits until all ranks have joined and this one is resumed. The
 * descriptor `memory` stays the caller's. Once in a process. 0, or an errno. */
int cw_virtual_join(const char *path, uint32_t rank, int memory);
/* The rank continues in real time; its clock stands still. */
void cw_virtual_leave(void);

/* The memory that the rank shares with the simulator for its RDMA device; NULL: it has none. */
void *cw_virtual_device(void);
/* Gives the simulator the turn, and has it back without time passing: it has carried out what that memory asks for. */
void cw_virtual_call(void);

/* Waits for at most `timeout_ns`; a frame or a wake-up ends the wait. Time that the rank has computed passes first. */
void cw_virtual_wait(uint64_t timeout_ns);
/* Waits until `until_ns`; a frame or a wake-up ends the wait. */
void cw_virtual_wait_until(uint64_t until_ns);
/* Lets `duration_ns` pass. Frames and wake-ups that come meanwhile are found afterwards. */
void cw_virtual_spend(uint64_t duration_ns);
/* The same for a copy of `bytes` between two ranks of a host. */
void cw_virtual_copy(uint64_t bytes);
/* CPU time of the calling thread. In a simulation it is multiplied by the factor `cpu`: 0 if computation takes no time.
 * */
uint64_t cw_virtual_cpu_ns(void);
/* The time that the rank has computed since the last call of anything here, in virtual time; it has not passed yet. */
uint64_t cw_virtual_computed_ns(void);
/* Ends the wait of another rank of this host, after the latency of its shared memory. */
void cw_virtual_wake(uint32_t rank);
/* The port calls it before it sends frames: time that the rank has computed passes first. */
void cw_virtual_send(void);

/* This rank gathers: when all ranks do, its wait is ended, `gathered` (NULL: none) is called, and cw_virtual_gathered
 * changes. */
void cw_virtual_gather(void (*gathered)(void *context), void *context);
static inline uint32_t cw_virtual_gathered(void)
{
    return atomic_load_explicit(&cw_virtual_page->gathered, memory_order_relaxed);
}
/* Around a wait for processes that have no virtual time, such as the launcher. */
void cw_virtual_outside_begin(void);
void cw_virtual_outside_end(void);

/* Virtual time for the program: functions of the C library call these (apps/simulate/clock.c), if that library is
 * preloaded; it exports CW_VIRTUAL_CLOCK, a cw_virtual_clock_set. */
struct cw_virtual_hooks {
    bool (*is_mine)(void); /* whether the calling thread is the one that has joined; the others are for this one */
    uint64_t (*now_ns)(void);
    void (*sleep_ns)(uint64_t duration_ns);
};
typedef void cw_virtual_clock_set(const struct cw_virtual_hooks *hooks);
#define CW_VIRTUAL_CLOCK "causeway_simulated_clock"
/* The program's clock is virtual from now on; `sleep_ns` is called for its sleeps. Once other libraries have started:
 * these may wait for real time. */
void cw_virtual_sleep_by(void (*sleep_ns)(uint64_t duration_ns));

/* Fills `bytes` with random numbers of the simulation's seed, the same in each run. */
void cw_virtual_random(void *bytes, size_t count);
