/* The common data of the loop's files: loop.c turns and waits, loop_threads.c has the threads, loop_calls.c the calls
 * of other threads. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "dataplane/base/yield_policy.h"
#include "dataplane/loop/backlog.h"
#include "dataplane/loop/command.h"
#include "dataplane/loop/loop.h"
#include "dataplane/loop/token.h"
#include "dataplane/state/endpoint.h"

/* For an application with its own event loop (loop_descriptor.c). The owner's. */
struct loop_watch {
    bool is_open;
    bool has_port; /* the port has a descriptor in the set */
    bool is_armed;
    uint64_t until_ns; /* the time of cw_clock_ns at which the application turns the loop at the latest; 0: not armed */
    int set;           /* epoll: the bell, and the port's descriptor */
    int bell;          /* an eventfd */
};

struct cw_loop {
    struct cw_loop_config config;
    struct cw_endpoint *endpoint;
    struct cw_port *port;
    struct cw_commands commands;
    _Atomic(struct cw_command_call *) calls; /* of other threads, which wait for them; newest first */
    struct cw_backlog backlog;               /* the owner's, except its counts */
    _Alignas(64) struct cw_token token;
    atomic_int sleeping;              /* the owner sleeps on the port: wake it for commands */
    atomic_int turning;               /* a thread of ours has the token and turns all the time */
    atomic_int wanted;                /* a thread waits for the token of the fallback thread */
    atomic_ulong polls;               /* by the application; the fallback thread watches it */
    _Alignas(64) atomic_int consumer; /* 1: the consumer sleeps and must be woken for events (dedicated mode) */
    atomic_int stop;
    atomic_int recalled;                    /* 1: the fallback thread must return from cw_loop_stand_in */
    atomic_int parked;                      /* 1: the fallback thread sleeps until the owner that sleeps is awake */
    unsigned long polls_seen;               /* the fallback thread's, as is the next */
    uint32_t looks_asleep;                  /* at an application that sleeps, in a row */
    struct cw_yield_policy yield_policy;    /* of the thread that waits */
    struct cw_yield_policy stand_by_policy; /* ... and of the one that stands by */
    uint32_t skipped;                       /* the owner's, as is the next */
    struct loop_watch watch;
    struct cw_loop_counters counters;
    pthread_t thread;
    bool has_thread;
    struct cw_loop *first; /* of those whose events one consumer takes; often itself */
    struct cw_loop *next;  /* of these, from the first on */
};

/* ---- loop.c ---- */

/* Turns once as owner; returns the amount of work. */
uint32_t cw_loop_turn(struct cw_loop *loop);

/* Releases the token, and then runs commands of threads that could not get it. */
void cw_loop_release(struct cw_loop *loop);

/* Wakes the owner if it sleeps on the port. */
void cw_loop_wake_owner(struct cw_loop *loop);

/* Sleeps while *word is `value`, at most `timeout_ns`. */
void cw_loop_futex_wait(atomic_int *word, int value, uint64_t timeout_ns);

/* Sleeps as owner until a packet, a command, the endpoint's deadline or `until_ns`. `standing_in`: for the application,
 * which may want the token. */
void cw_loop_sleep_on_port(struct cw_loop *loop, uint64_t until_ns, bool standing_in,
                           const struct cw_port_alarm *alarm);

/* True: this loop, or one after it, has events. NULL: no. Any thread. */
bool cw_loop_has_events(const struct cw_loop *loop);

/* Wakes the consumer if it sleeps and has work: events, or no other thread that turns. */
void cw_loop_notify_consumer(struct cw_loop *loop);

/* Wakes the fallback thread, which sleeps until the owner is awake. */
void cw_loop_unpark(struct cw_loop *loop);

enum { LOOP_SLEEP_MAX_NS = 500000000 /* each sleep ends after this, for a check */ };

static inline void cw_loop_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* ---- loop_descriptor.c ---- */

/* Makes the descriptor readable. Any thread. */
void cw_loop_watch_ring(const struct cw_loop *loop);

/* Ends the wait of an application, as owner: it turns the loop now. */
void cw_loop_watch_disarm(struct cw_loop *loop);

/* Before the owner releases the token while an application waits: rings if there are events, or a turn is due earlier
 * than the application knows. */
void cw_loop_watch_look(struct cw_loop *loop);

void cw_loop_watch_close(struct cw_loop *loop);

/* ---- loop_threads.c ---- */

/* Starts the thread of the configuration, if any. CW_OK, CW_ERROR_SYSTEM with a line in `error`. */
int cw_loop_start_thread(struct cw_loop *loop, char *error, size_t error_bytes);

/* ---- loop_calls.c ---- */

/* Runs commands in order, as owner, and the calls; commands without room go to the backlog. Returns their number. */
uint32_t cw_loop_run_commands(struct cw_loop *loop);

/* Runs commands of the backlog that find room now, as owner; returns their number. */
uint32_t cw_loop_run_backlog(struct cw_loop *loop);

static inline bool cw_loop_has_calls(const struct cw_loop *loop)
{
    return atomic_load_explicit(&loop->calls, memory_order_relaxed) != NULL;
}
