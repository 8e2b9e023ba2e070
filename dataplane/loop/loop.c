#include "dataplane/loop/loop_private.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/base/clock.h"
#include "dataplane/base/virtual.h"
#include "dataplane/endpoint/turn.h"
#include "dataplane/staging/stage.h"

enum {
    SKIP_MAX = 4,       /* idle turns that look for packets only */
    SPINS_A_CLOCK = 64, /* looks of a spinning waiter between two at the clock */
    TURN_VIRTUAL_NS = 100,
    BUSY_MIN = 8, /* packets and the like in a turn whose duration says something */
};

void cw_loop_config_init(struct cw_loop_config *config)
{
    *config = (struct cw_loop_config){
        .mode = CW_LOOP_INLINE,
        .core = -1,
        .fallback = CW_FALLBACK_THREAD,
        .command_count = 1024,
        .yield_ns = 50000,
    };
}

enum cw_waiting cw_loop_waiting(const struct cw_loop_config *config, const struct cw_port_info *info)
{
    if (config->spin || config->stands_by) {
        return CW_WAITING_SPIN;
    }
    return info->wait == CW_PORT_WAIT_TIMED ? CW_WAITING_NAP : CW_WAITING_SLEEP;
}

/* ---- turning ---- */

void cw_loop_wake_owner(struct cw_loop *loop)
{
    /* pairs with the fence in cw_loop_sleep_on_port: either it sees the command, or this sees that it sleeps */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&loop->sleeping, memory_order_relaxed) != 0) {
        cw_port_wake(loop->port);
    }
}

/* An idle loop reads the clock only every few turns: its purpose is to poll for packets. */
uint32_t cw_loop_turn(struct cw_loop *loop)
{
    struct cw_endpoint *endpoint = loop->endpoint;
    uint32_t packets = cw_endpoint_fetch(endpoint);
    bool commands = !cw_commands_empty(&loop->commands) || cw_loop_has_calls(loop);
    loop->counters.turns++;
    if (packets == 0 && !commands && loop->skipped < SKIP_MAX && cw_endpoint_idle(endpoint)) {
        cw_endpoint_fetched_nothing(endpoint);
        loop->skipped++;
        loop->counters.turns_idle++;
        return 0;
    }
    loop->skipped = 0;
    if (commands) {
        cw_token_notice(&loop->token);
    }
    cw_endpoint_clock(endpoint, cw_clock_ns());
    uint32_t work = commands ? cw_loop_run_commands(loop) : 0;
    work += cw_endpoint_turn(endpoint, endpoint->now_ns);
    if (loop->backlog.chain_count > 0 && cw_loop_run_backlog(loop) > 0) {
        (void)cw_flush(endpoint);
        work++;
    }
    if (work >= BUSY_MIN) {
        cw_endpoint_busy(endpoint, cw_clock_ns() - endpoint->now_ns);
    }
    loop->counters.turns_idle += work == 0;
    return work;
}

void cw_loop_release(struct cw_loop *loop)
{
    bool is_stuck = false; /* commands wait for room among the events: the next turn tries again */
    for (;;) {
        if (loop->watch.until_ns != 0) {
            cw_loop_watch_look(loop);
        }
        cw_token_release(&loop->token);
        bool has_commands = !is_stuck && !cw_commands_empty(&loop->commands);
        if ((!has_commands && !cw_loop_has_calls(loop)) || !cw_token_acquire(&loop->token)) {
            return;
        }
        /* checked before anything runs: later commands are announced later */
        bool is_waiting = !cw_commands_empty(&loop->commands);
        uint32_t done = cw_loop_run_commands(loop);
        is_stuck = done == 0 && is_waiting;
        if (done > 0) {
            (void)cw_flush(loop->endpoint);
        }
    }
}

/* ---- polling and waiting ---- */

void cw_loop_futex_wait(atomic_int *word, int value, uint64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000ull),
                               .tv_nsec = (long)(timeout_ns % 1000000000ull)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
}

uint32_t cw_loop_poll(struct cw_loop *loop, struct cw_event *events, uint32_t count_max)
{
    atomic_store_explicit(&loop->polls, atomic_load_explicit(&loop->polls, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (loop->config.mode == CW_LOOP_INLINE) {
        if (cw_token_acquire(&loop->token)) {
            if (loop->watch.is_armed) {
                cw_loop_watch_disarm(loop);
            }
            (void)cw_loop_turn(loop);
            cw_loop_release(loop);
        } else if (loop->config.fallback != CW_FALLBACK_NONE &&
                   atomic_exchange_explicit(&loop->wanted, 1, memory_order_relaxed) == 0) {
            cw_loop_wake_owner(loop); /* the fallback thread sleeps with it: it lets go */
        }
    }
    return cw_endpoint_events(loop->endpoint, events, count_max);
}

void cw_loop_unpark(struct cw_loop *loop)
{
    atomic_store_explicit(&loop->parked, 0, memory_order_relaxed);
    syscall(SYS_futex, &loop->parked, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Whether commands wait until the application takes events, which wakes no thread. A command that waits for room at its
 * peer gets it in a turn. */
static bool waits_for_events(const struct cw_loop *loop)
{
    return loop->backlog.chain_count > 0 &&
           cw_events_count(&loop->endpoint->events) >= loop->endpoint->config.event_count_max;
}

void cw_loop_sleep_on_port(struct cw_loop *loop, uint64_t until_ns, bool standing_in, const struct cw_port_alarm *alarm)
{
    atomic_store_explicit(&loop->sleeping, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in cw_loop_wake_owner */
    uint64_t now_ns = cw_clock_ns();
    uint64_t deadline_ns = cw_endpoint_deadline(loop->endpoint);
    uint64_t wake_ns = deadline_ns < until_ns ? deadline_ns : until_ns;
    /* The wish is for the token that the fallback thread has. A wish that came just after the release stays, and
     * concerns no other thread: an application that heeded it would never sleep again. */
    bool wanted = standing_in && (atomic_load_explicit(&loop->wanted, memory_order_relaxed) != 0 ||
                                  atomic_load_explicit(&loop->recalled, memory_order_relaxed) != 0);
    if (cw_commands_empty(&loop->commands) && !cw_loop_has_calls(loop) && !waits_for_events(loop) && !wanted &&
        wake_ns > now_ns && atomic_load_explicit(&loop->stop, memory_order_relaxed) == 0 &&
        !cw_endpoint_arm(loop->endpoint)) {
        uint64_t sleep_ns = wake_ns - now_ns;
        bool is_short = sleep_ns < LOOP_SLEEP_MAX_NS || cw_virtual_is_on();
        cw_port_sleep_alarm(loop->port, is_short ? sleep_ns : LOOP_SLEEP_MAX_NS, alarm);
        loop->counters.sleeps++;
    } else if (cw_virtual_is_on()) {
        cw_virtual_spend(TURN_VIRTUAL_NS); /* so that due timers expire eventually */
    }
    atomic_store_explicit(&loop->sleeping, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in park */
    if (atomic_load_explicit(&loop->parked, memory_order_relaxed) != 0) {
        cw_loop_unpark(loop);
    }
}

/* Waits as the consumer of a loop that another thread turns. */
static void sleep_for_events(struct cw_loop *loop, uint64_t until_ns, const struct cw_port_alarm *alarm)
{
    uint64_t now_ns = cw_clock_ns();
    if (now_ns >= until_ns) {
        return;
    }
    uint64_t sleep_ns = until_ns - now_ns < LOOP_SLEEP_MAX_NS ? until_ns - now_ns : LOOP_SLEEP_MAX_NS;
    atomic_store_explicit(&loop->consumer, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in cw_loop_notify_consumer */
    /* a token taken only for a call means that no thread turns the loop for us: then turn it ourselves */
    bool turning = atomic_load_explicit(&loop->turning, memory_order_relaxed) != 0;
    if (!cw_loop_has_events(loop) && turning) {
        static const struct cw_word none;
        cw_words_wait(&(struct cw_word){.at = &loop->consumer, .value = 1, .is_private = true},
                      alarm == NULL ? &none : &alarm->word, sleep_ns);
    } else if (!turning) {
        sched_yield();
    }
    atomic_store_explicit(&loop->consumer, 0, memory_order_relaxed);
}

void cw_loop_notify_consumer(struct cw_loop *loop)
{
    struct cw_loop *first = loop->first;
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in sleep_for_events */
    if (atomic_load_explicit(&first->consumer, memory_order_relaxed) != 0 &&
        (cw_events_count(&loop->endpoint->events) > 0 ||
         atomic_load_explicit(&loop->turning, memory_order_relaxed) == 0)) {
        atomic_store_explicit(&first->consumer, 0, memory_order_relaxed);
        syscall(SYS_futex, &first->consumer, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

bool cw_loop_has_events(const struct cw_loop *loop)
{
    bool has_some = false;
    for (; loop != NULL && !has_some; loop = loop->next) {
        has_some = cw_events_count(&loop->endpoint->events) > 0;
    }
    return has_some;
}

/* Polls a few dozen times, keeping the token meanwhile: on a core of its own a look for packets should cost nothing
 * else. */
static uint32_t spin(struct cw_loop *loop, struct cw_event *events, uint32_t count_max)
{
    if (loop->config.mode != CW_LOOP_INLINE || !cw_token_acquire(&loop->token)) {
        cw_loop_pause();
        return cw_loop_poll(loop, events, count_max);
    }
    for (uint32_t i = 0; i < SPINS_A_CLOCK && cw_events_count(&loop->endpoint->events) == 0; i++) {
        (void)cw_loop_turn(loop);
    }
    cw_loop_release(loop);
    return cw_endpoint_events(loop->endpoint, events, count_max);
}

uint32_t cw_loop_wait(struct cw_loop *loop, struct cw_event *events, uint32_t count_max, uint64_t timeout_ns)
{
    return cw_loop_wait_alarm(loop, events, count_max, timeout_ns, NULL);
}

bool cw_loop_needs_descriptor(const struct cw_loop *loop)
{
    return loop->port->info.wait == CW_PORT_WAIT_DESCRIPTOR || loop->port->info.wait == CW_PORT_WAIT_TIMED;
}

/* Whether the thread that waits turns the loop, and sleeps on its port. */
static bool turns_itself(const struct cw_loop *loop)
{
    return loop->config.mode == CW_LOOP_INLINE && !loop->config.stands_by;
}

uint32_t cw_loop_wait_alarm(struct cw_loop *loop, struct cw_event *events, uint32_t count_max, uint64_t timeout_ns,
                            const struct cw_port_alarm *alarm)
{
    uint32_t count = cw_loop_poll(loop, events, count_max);
    if (count == 0 && timeout_ns > 0 && loop->config.spin) {
        count = spin(loop, events, count_max); /* events that arrive soon cost no clock read */
    }
    if (count > 0 || timeout_ns == 0) {
        return count;
    }
    uint64_t start_ns = cw_clock_ns();
    uint64_t until_ns = timeout_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + timeout_ns;
    for (;;) {
        count = loop->config.spin ? spin(loop, events, count_max) : cw_loop_poll(loop, events, count_max);
        uint64_t now_ns = count > 0 ? until_ns : cw_clock_ns();
        if (cw_loop_has_events(loop->next) || now_ns >= until_ns ||
            (alarm != NULL && cw_word_has_changed(&alarm->word))) {
            return count;
        }
        uint64_t waited_ns = now_ns - start_ns;
        if (loop->config.spin) {
            continue;
        }
        if (waited_ns < loop->config.yield_ns && cw_yield_policy_yield(&loop->yield_policy, now_ns)) {
            continue;
        }
        if (turns_itself(loop) && cw_token_acquire(&loop->token)) {
            /* packets that arrived while another thread had the token are checked before the sleep */
            if (cw_loop_turn(loop) == 0 && cw_events_count(&loop->endpoint->events) == 0) {
                cw_loop_sleep_on_port(loop, until_ns, false, alarm);
                (void)cw_loop_turn(loop);
            }
            cw_loop_release(loop);
        } else {
            sleep_for_events(loop, until_ns, alarm);
        }
    }
}

void cw_loop_rest(struct cw_loop *loop, uint64_t timeout_ns, const struct cw_port_alarm *alarm)
{
    uint64_t now_ns = cw_clock_ns();
    if (cw_token_acquire(&loop->token)) {
        if (cw_loop_turn(loop) == 0) {
            cw_loop_sleep_on_port(loop, now_ns + timeout_ns, false, alarm);
            (void)cw_loop_turn(loop);
        }
        cw_loop_release(loop);
    }
}

/* ---- its life ---- */

int cw_loop_create(const struct cw_loop_config *config, struct cw_endpoint *endpoint, struct cw_port *port,
                   struct cw_loop **loop, char *error, size_t error_bytes)
{
    uint32_t count = config->command_count;
    if (count < 2 || (count & (count - 1)) != 0 || count > 1u << 20 || config->core >= CPU_SETSIZE) {
        snprintf(error, error_bytes, "loop: command_count must be a power of two from 2 to 2^20, core below %d",
                 CPU_SETSIZE);
        return CW_ERROR_ARGUMENT;
    }
    if (config->first != NULL && (config->mode != CW_LOOP_DEDICATED || turns_itself(config->first))) {
        snprintf(error, error_bytes,
                 "loop: a loop whose events are taken at another one must be dedicated, and so must that one, or a "
                 "thread must assist it");
        return CW_ERROR_ARGUMENT;
    }
    struct cw_loop *created = aligned_alloc(64, (sizeof(*created) + 63) & ~(size_t)63);
    if (created == NULL) {
        snprintf(error, error_bytes, "loop: no memory");
        return CW_ERROR_MEMORY;
    }
    memset(created, 0, sizeof(*created));
    created->config = *config;
    created->endpoint = endpoint;
    created->port = port;
    created->first = config->first != NULL ? config->first : created;
    cw_token_init(&created->token);
    atomic_init(&created->calls, NULL);
    int status = cw_commands_init(&created->commands, count);
    if (status == CW_OK) {
        status = cw_backlog_init(&created->backlog, endpoint->config.peer_count_max);
    }
    if (status == CW_OK) {
        status = cw_loop_start_thread(created, error, error_bytes);
    } else {
        snprintf(error, error_bytes, "loop: no memory for %u commands", count);
    }
    if (status != CW_OK) {
        cw_backlog_dispose(&created->backlog);
        cw_commands_dispose(&created->commands);
        free(created);
        return status;
    }
    if (config->first != NULL) {
        created->next = config->first->next;
        config->first->next = created;
    }
    *loop = created;
    return CW_OK;
}

void cw_loop_destroy(struct cw_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    atomic_store_explicit(&loop->stop, 1, memory_order_release); /* pairs with the acquire in fallback_thread */
    if (loop->has_thread) {
        cw_loop_recall(loop);
        cw_port_wake(loop->port);
        pthread_join(loop->thread, NULL);
    }
    struct cw_loop **link = &loop->first;
    while (*link != loop) {
        link = &(*link)->next;
    }
    *link = loop->next;
    cw_loop_watch_close(loop);
    cw_backlog_dispose(&loop->backlog);
    cw_commands_dispose(&loop->commands);
    free(loop);
}

struct cw_loop_counters cw_loop_counters(const struct cw_loop *loop)
{
    return loop->counters;
}
