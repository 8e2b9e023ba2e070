/* Loop: threads that turn an endpoint, on the real clock; the calls of dataplane.h for any thread.
 *
 * Invariants
 *   - The right to turn an endpoint is a token. The thread that has it is the owner.
 *   - A call from a thread that cannot get the token becomes a command in a bounded queue. The owner runs commands in
 *     order before any newer call. A command never waits for a thread that has left: a thread that releases the token
 *     checks the queue again.
 *   - A command that finds no room waits behind commands to the same peer only. Further commands to that peer are
 *     rejected: CW_ERROR_AGAIN.
 *   - Waiting has two stages: yield, unless another process computes on the core; then sleep on the port until a
 *     packet, a command or a deadline.
 *
 * Modes, all with the same turn:
 *   inline      the application's threads turn it inside cw_loop_poll, cw_loop_wait and the posting calls (the default)
 *   dedicated   a separate thread, pinned to a core if one is given, turns it all the time
 *   fallback    in addition to inline: a thread that sleeps, and turns the endpoint if no other thread has done so for
 *               CW_LOOP_FALLBACK_NS. So acknowledgements and retransmissions do not wait for the application's next
 *               call. The thread is the loop's, or one of the application's that calls cw_loop_stand_in
 *   standing by fallback by a thread that never sleeps, on a dedicated core: it turns the endpoint if no other thread
 *               has done so for CW_LOOP_STEP_IN_NS, also while the application sleeps inside a call. So a thread that
 *               waits inside turns the endpoint itself, at the latency of inline. A thread that computes loses no time:
 *               its calls are commands then
 *   event loop  inline without fallback: the application waits for a descriptor among its own (cw_loop_descriptor,
 *               cw_loop_arm), and turns the endpoint by cw_loop_poll. No thread is needed
 *
 * Order of calls: cw_endpoint_create; cw_loop_create; any of the others; cw_loop_destroy; cw_endpoint_destroy. */
#ifndef CW_LOOP_H
#define CW_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/dataplane.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cw_loop;
struct cw_port_alarm;
struct cw_port_info;

enum cw_loop_mode {
    CW_LOOP_INLINE = 0,
    CW_LOOP_DEDICATED = 1,
};

enum cw_loop_fallback {
    CW_FALLBACK_NONE = 0,
    CW_FALLBACK_THREAD = 1, /* of the loop's */
    CW_FALLBACK_CALLER = 2, /* a thread that calls cw_loop_stand_in */
};

struct cw_loop_config {
    enum cw_loop_mode mode;
    int core;                       /* for the dedicated thread; -1: any core */
    bool spin;                      /* never sleep: the core is reserved */
    enum cw_loop_fallback fallback; /* INLINE */
    bool stands_by;                 /* ... with CALLER: that thread never sleeps */
    uint32_t command_count;         /* a power of two */
    uint64_t yield_ns;              /* before sleeping, if that pays */
    /* DEDICATED: a thread that waits at this loop waits for events of both loops. The first loop has a thread that
     * turns it during the sleep (DEDICATED, or standing by). NULL: no other loop. Destroy it after this one; no thread
     * may be inside it meanwhile. */
    struct cw_loop *first;
};

#define CW_LOOP_FALLBACK_NS 2000000ull
#define CW_LOOP_STEP_IN_NS  5000ull

/* Inline with fallback, 1,024 commands; yields 50 us before it sleeps, or spins forever if `spin`. */
void cw_loop_config_init(struct cw_loop_config *config);

/* The value of `waiting` of struct cw_endpoint_config for this configuration on this port. */
enum cw_waiting cw_loop_waiting(const struct cw_loop_config *config, const struct cw_port_info *info);

/* The endpoint belongs to the loop until cw_loop_destroy. CW_OK, CW_ERROR_ARGUMENT, CW_ERROR_MEMORY, CW_ERROR_SYSTEM
 * (the reason in `error`). */
int cw_loop_create(const struct cw_loop_config *config, struct cw_endpoint *endpoint, struct cw_port *port,
                   struct cw_loop **loop, char *error, size_t error_bytes);

/* The function of the fallback thread with CW_FALLBACK_CALLER: sleeps until `until_ns` of CLOCK_MONOTONIC. Meanwhile it
 * turns the endpoint if no other thread has done so for CW_LOOP_FALLBACK_NS. One thread at a time; cw_loop_recall, from
 * any thread, ends the call, or the next one. Standing by, it does not sleep, and returns true as soon as there are
 * events that no thread waits for: the caller may take them. */
bool cw_loop_stand_in(struct cw_loop *loop, uint64_t until_ns);
void cw_loop_recall(struct cw_loop *loop);

/* Ends the threads. No other call may be running. */
void cw_loop_destroy(struct cw_loop *loop);

/* As cw_put, cw_get, cw_message_send, cw_message_release, from any thread. CW_ERROR_AGAIN also if the queue of
 * commands, or the peer's share of it, is full. If another thread turns the loop, errors of the operation are
 * reported later, by its CW_EVENT_COMPLETE or CW_EVENT_GET. */
int cw_loop_put(struct cw_loop *loop, const struct cw_put *put);
int cw_loop_get(struct cw_loop *loop, const struct cw_get *get);
int cw_loop_message_send(struct cw_loop *loop, const struct cw_message *message);
int cw_loop_message_release(struct cw_loop *loop, uint32_t slot);

/* Runs `function` as owner of the endpoint and returns its result: for all other functions of dataplane.h. It waits for
 * no peer. Earlier commands of this thread run first, except commands that wait for room. Any thread except one that is
 * already the owner. */
int cw_loop_call(struct cw_loop *loop, int (*function)(struct cw_endpoint *endpoint, void *context), void *context);

/* Turns once, if the token is free, and takes up to `count_max` events; returns their number. One consumer at a time.
 * */
uint32_t cw_loop_poll(struct cw_loop *loop, struct cw_event *events, uint32_t count_max);

/* The same, but waits up to `timeout_ns` for the first event. 0 events: timed out, or another loop that has this one
 * as its `first` has some. */
uint32_t cw_loop_wait(struct cw_loop *loop, struct cw_event *events, uint32_t count_max, uint64_t timeout_ns);

/* The same, and also returns when the alarm goes off (NULL: none), even without events. */
uint32_t cw_loop_wait_alarm(struct cw_loop *loop, struct cw_event *events, uint32_t count_max, uint64_t timeout_ns,
                            const struct cw_port_alarm *alarm);
/* Turns the loop and sleeps for at most `timeout_ns`, until packets come or the alarm goes off; events stay in
 * the endpoint. For a loop in CW_LOOP_INLINE mode. */
void cw_loop_rest(struct cw_loop *loop, uint64_t timeout_ns, const struct cw_port_alarm *alarm);
/* True: an alarm needs its descriptor here. */
bool cw_loop_needs_descriptor(const struct cw_loop *loop);

/* ---- An event loop of the application: epoll, poll, or a library ----
 *
 *     for (;;) {
 *         while ((count = cw_loop_poll(loop, events, EVENTS)) > 0) { ... }
 *         timeout_ns = cw_loop_arm(loop);
 *         the application waits for the descriptor, for its own descriptors, and for timeout_ns at most
 *     }
 *
 * No wake-up is lost: if a packet or a call of another thread arrives between the last cw_loop_poll and the wait, the
 * descriptor is readable, or the time-out is 0. Calls of other threads run at once; if one of them causes an event or
 * an earlier deadline, the descriptor becomes readable. One thread polls, arms and waits. */

/* A descriptor for poll and epoll: readable after cw_loop_arm as soon as the endpoint needs a turn. The
 * loop owns and closes it; the caller neither reads nor writes it. Further calls return the same one.
 *
 * Ports "udp:" and DPDK devices with a receive interrupt or an AF_PACKET socket signal packets through the
 * descriptor. All others ("memif:", devices without an interrupt) signal only calls of other threads. cw_loop_arm then
 * returns at most CW_LOOP_LOOK_NS, so packets wait no longer than that for a turn.
 *
 * CW_OK, or with one line in `error`: CW_ERROR_ARGUMENT (a thread turns the loop: it must be CW_LOOP_INLINE with
 * CW_FALLBACK_NONE); CW_ERROR_UNSUPPORTED (an RDMA device is attached); CW_ERROR_LIMIT, CW_ERROR_MEMORY,
 * CW_ERROR_SYSTEM. */
int cw_loop_descriptor(struct cw_loop *loop, int *descriptor, char *error, size_t error_bytes);

/* Prepares a wait for the descriptor. Returns the nanoseconds after which a turn is due even if the descriptor is not
 * readable: 0: at once; UINT64_MAX: none is due. The next cw_loop_poll ends the wait. Never blocks. Only after
 * cw_loop_descriptor. */
uint64_t cw_loop_arm(struct cw_loop *loop);

#define CW_LOOP_LOOK_NS 1000000ull

struct cw_loop_counters {
    uint64_t turns;
    uint64_t turns_idle;
    uint64_t sleeps;
    uint64_t commands;
    uint64_t fallback_turns;
};
struct cw_loop_counters cw_loop_counters(const struct cw_loop *loop);

#ifdef __cplusplus
}
#endif

#endif
