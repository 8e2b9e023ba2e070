/* What the files of the loop share: loop.c turns, waits and has the threads, loop_calls.c is what other threads ask of
 * it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "dataplane/base/yield_policy.h"
#include "dataplane/loop/backlog.h"
#include "dataplane/loop/command.h"
#include "dataplane/loop/loop.h"
#include "dataplane/loop/token.h"
#include "dataplane/state/endpoint.h"

struct cw_loop {
    struct cw_loop_config config;
    struct cw_endpoint *endpoint;
    struct cw_port *port;
    struct cw_commands commands;
    _Atomic(struct cw_command_call *) calls; /* of other threads, which wait for them; newest first */
    struct cw_backlog backlog;               /* the owner's, but for its counts */
    _Alignas(64) struct cw_token token;
    atomic_int sleeping;              /* the owner sleeps on the port: wake it for commands */
    atomic_int turning;               /* a thread of ours has the token and turns all the time */
    atomic_int wanted;                /* somebody would like the token that the fallback thread has */
    atomic_ulong polls;               /* by the application; the fallback thread watches it */
    _Alignas(64) atomic_int consumer; /* 1: the consumer sleeps and must be told of events (dedicated mode) */
    atomic_int stop;
    atomic_int recalled;                 /* 1: the fallback thread is to return from cw_loop_stand_in */
    atomic_int parked;                   /* 1: the fallback thread sleeps until the owner that sleeps is awake */
    unsigned long polls_seen;            /* the fallback thread's, as is the next */
    uint32_t looks_asleep;               /* at an application that sleeps, in a row */
    struct cw_yield_policy yield_policy; /* of the thread that waits */
    uint32_t skipped;                    /* the owner's, as is the next */
    struct cw_loop_counters counters;
    pthread_t thread;
    bool has_thread;
};

/* ---- loop.c ---- */

/* Turns once as owner; returns how much there was to do. */
uint32_t cw_loop_turn(struct cw_loop *loop);

/* Gives the token back; commands that came meanwhile, from threads that could not have it, are not left behind. */
void cw_loop_give(struct cw_loop *loop);

/* Wakes the owner if it sleeps on the port. */
void cw_loop_wake_owner(struct cw_loop *loop);

/* Sleeps while *word is `value`, at most `timeout_ns`. */
void cw_loop_futex_wait(atomic_int *word, int value, uint64_t timeout_ns);

/* ---- loop_calls.c ---- */

/* Runs commands in order, as owner, and the calls; what finds no room goes to the backlog. Returns how many it took. */
uint32_t cw_loop_run_commands(struct cw_loop *loop);

/* Runs what has waited for room and finds it now, as owner; returns how many. */
uint32_t cw_loop_run_backlog(struct cw_loop *loop);

static inline bool cw_loop_has_calls(const struct cw_loop *loop)
{
    return atomic_load_explicit(&loop->calls, memory_order_relaxed) != NULL;
}
