#include "dataplane/core/loop.h"

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

#include "dataplane/core/clock.h"
#include "dataplane/core/command.h"
#include "dataplane/core/endpoint.h"
#include "dataplane/core/token.h"

enum {
    COMMANDS_AT_ONCE = 64,
    SKIP_MAX = 4,             /* idle turns that look for packets only */
    SPINS_A_CLOCK = 64,       /* looks of a spinning waiter between two at the clock */
    BUSY_MIN = 8,             /* packets and the like in a turn whose duration says something */
    SLEEP_MAX_NS = 500000000, /* nobody sleeps longer without looking */
};

struct cw_loop {
    struct cw_loop_config config;
    struct cw_endpoint *endpoint;
    struct cw_port *port;
    struct cw_commands commands;
    _Alignas(64) struct cw_token token;
    atomic_int sleeping;              /* the owner sleeps on the port: wake it for commands */
    atomic_int wanted;                /* somebody would like the token that the fallback thread has */
    atomic_ulong polls;               /* by the application; the fallback thread watches it */
    _Alignas(64) atomic_int consumer; /* 1: the consumer sleeps and must be told of events (dedicated mode) */
    atomic_int stop;
    uint32_t skipped; /* the owner's, as is the next */
    struct cw_loop_counters counters;
    pthread_t thread;
    bool has_thread;
};

void cw_loop_config_init(struct cw_loop_config *config)
{
    *config = (struct cw_loop_config){
        .mode = CW_LOOP_INLINE,
        .core = -1,
        .fallback = true,
        .command_count = 1024,
        .spin_ns = 20000,
        .yield_ns = 50000,
    };
}

enum cw_waiting cw_loop_waiting(const struct cw_loop_config *config, const struct cw_port_info *info)
{
    if (config->spin) {
        return CW_WAITING_SPIN;
    }
    return info->wait == CW_PORT_WAIT_TIMED ? CW_WAITING_NAP : CW_WAITING_SLEEP;
}

/* ---- commands ---- */

/* A short source is copied into the command, since the caller may reuse its own at once, and found there when the command runs. */
static bool is_short(const struct cw_source *source)
{
    return source->kind == CW_SOURCE_CONTIGUOUS && source->contiguous.bytes <= CW_INLINE_MAX &&
           source->contiguous.bytes > 0 && source->contiguous.data != NULL;
}

static void bring_source(const struct cw_source *source, struct cw_command *command)
{
    if (is_short(source)) {
        memcpy(command->bytes_inline, source->contiguous.data, source->contiguous.bytes);
    }
}

static void aim_source(struct cw_source *source, struct cw_command *command)
{
    if (is_short(source)) {
        source->contiguous.data = command->bytes_inline;
        source->region = 0;
    }
}

static void fail(struct cw_endpoint *endpoint, const struct cw_command *command, int status)
{
    struct cw_event *event =
        cw_events_reserve(&endpoint->events); /* cw_loop's run_commands has seen that there is room */
    if (event == NULL) {
        return;
    }
    bool get = command->kind == CW_COMMAND_GET;
    *event = (struct cw_event){
        .kind = get ? CW_EVENT_GET : CW_EVENT_COMPLETE,
        .status = status,
        .peer = get                               ? command->get.peer
                : command->kind == CW_COMMAND_PUT ? command->put.peer
                                                  : command->message.peer,
        .lane_tag = get                               ? command->get.lane_tag
                    : command->kind == CW_COMMAND_PUT ? command->put.lane_tag
                                                      : command->message.lane_tag,
        .context = get                               ? command->get.context
                   : command->kind == CW_COMMAND_PUT ? command->put.context
                                                     : command->message.context,
    };
    cw_events_publish(&endpoint->events);
}

/* Runs one command as owner; CW_ERROR_AGAIN: it has to stay where it is. */
static int run_command(struct cw_loop *loop, struct cw_command *command)
{
    struct cw_endpoint *endpoint = loop->endpoint;
    int status;
    switch (command->kind) {
    case CW_COMMAND_PUT:
        aim_source(&command->put.source, command);
        status = cw_put(endpoint, &command->put);
        break;
    case CW_COMMAND_GET:
        status = cw_get(endpoint, &command->get);
        break;
    case CW_COMMAND_MESSAGE:
        aim_source(&command->message.source, command);
        status = cw_message_send(endpoint, &command->message);
        break;
    case CW_COMMAND_RELEASE:
        (void)cw_message_release(endpoint, command->slot); /* the caller has checked the number */
        return CW_OK;
    default:
        command->call->status = command->call->function(endpoint, command->call->context);
        /* pairs with the acquire in cw_loop_call */
        atomic_store_explicit(&command->call->done, 1, memory_order_release);
        syscall(SYS_futex, &command->call->done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        return CW_OK;
    }
    if (status == CW_ERROR_AGAIN) {
        return status;
    }
    if (status != CW_OK) {
        fail(endpoint, command, status);
    }
    return CW_OK;
}

static uint32_t run_commands(struct cw_loop *loop)
{
    uint32_t count = 0;
    struct cw_command *command;
    while (count < COMMANDS_AT_ONCE &&
           cw_events_count(&loop->endpoint->events) < loop->endpoint->config.event_count_max &&
           (command = cw_commands_peek(&loop->commands)) != NULL) {
        if (run_command(loop, command) == CW_ERROR_AGAIN) {
            break;
        }
        cw_commands_pop(&loop->commands);
        count++;
    }
    loop->counters.commands += count;
    return count;
}

static void wake_owner(struct cw_loop *loop)
{
    /* pairs with the fence in sleep_on_port: either it sees the command, or this sees that it sleeps */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&loop->sleeping, memory_order_relaxed) != 0) {
        cw_port_wake(loop->port);
    }
}

/* Turns once as owner. An idle loop reads the clock only every few turns: looking for packets is what it is for. */
static uint32_t turn(struct cw_loop *loop)
{
    struct cw_endpoint *endpoint = loop->endpoint;
    uint32_t packets = cw_endpoint_fetch(endpoint);
    bool commands = !cw_commands_empty(&loop->commands);
    loop->counters.turns++;
    if (packets == 0 && !commands && loop->skipped < SKIP_MAX && cw_endpoint_idle(endpoint)) {
        cw_endpoint_fetched_nothing(endpoint);
        loop->skipped++;
        loop->counters.turns_idle++;
        return 0;
    }
    loop->skipped = 0;
    cw_endpoint_clock(endpoint, cw_clock_ns());
    uint32_t work = commands ? run_commands(loop) : 0;
    work += cw_endpoint_turn(endpoint, endpoint->now_ns);
    if (work >= BUSY_MIN) {
        cw_endpoint_busy(endpoint, cw_clock_ns() - endpoint->now_ns);
    }
    loop->counters.turns_idle += work == 0;
    return work;
}

/* Gives the token back; commands that came meanwhile, from threads that could not have it, are not left behind. */
static void give_and_look(struct cw_loop *loop)
{
    for (;;) {
        cw_token_give(&loop->token);
        if (cw_commands_empty(&loop->commands) || !cw_token_take(&loop->token)) {
            return;
        }
        uint32_t done = run_commands(loop);
        if (done == 0) {
            cw_token_give(&loop->token); /* it has to wait for room: the next turn tries again */
            return;
        }
        (void)cw_flush(loop->endpoint);
    }
}

/* Takes the token for a call. False: it has to be queued, since another thread has the token or older commands wait for room. */
static inline bool enter(struct cw_loop *loop, uint32_t flags)
{
    if (!cw_token_take(&loop->token)) {
        return false;
    }
    if (!cw_commands_empty(&loop->commands)) {
        (void)run_commands(loop);
        if (!cw_commands_empty(&loop->commands)) {
            give_and_look(loop);
            return false;
        }
    }
    if ((flags & CW_MORE) == 0) { /* what waits for more leaves in a turn, which reads the clock */
        cw_endpoint_clock(loop->endpoint, cw_clock_ns());
    }
    return true;
}

static int enqueue(struct cw_loop *loop, const struct cw_command *command)
{
    if (!cw_commands_push(&loop->commands, command)) {
        wake_owner(loop);
        return CW_ERROR_AGAIN;
    }
    cw_token_announce(&loop->token);
    if (cw_token_take(&loop->token)) {
        (void)run_commands(loop);
        give_and_look(loop);
    } else {
        wake_owner(loop);
    }
    return CW_OK;
}

/* ---- calls ---- */

int cw_loop_put(struct cw_loop *loop, const struct cw_put *put)
{
    if (enter(loop, put->flags)) {
        int status = cw_put(loop->endpoint, put);
        give_and_look(loop);
        return status;
    }
    struct cw_command command;
    command.kind = CW_COMMAND_PUT;
    command.put = *put;
    bring_source(&command.put.source, &command);
    return enqueue(loop, &command);
}

int cw_loop_get(struct cw_loop *loop, const struct cw_get *get)
{
    if (enter(loop, get->flags)) {
        int status = cw_get(loop->endpoint, get);
        give_and_look(loop);
        return status;
    }
    struct cw_command command;
    command.kind = CW_COMMAND_GET;
    command.get = *get;
    return enqueue(loop, &command);
}

int cw_loop_message_send(struct cw_loop *loop, const struct cw_message *message)
{
    if (enter(loop, message->flags)) {
        int status = cw_message_send(loop->endpoint, message);
        give_and_look(loop);
        return status;
    }
    struct cw_command command;
    command.kind = CW_COMMAND_MESSAGE;
    command.message = *message;
    bring_source(&command.message.source, &command);
    return enqueue(loop, &command);
}

int cw_loop_message_release(struct cw_loop *loop, uint32_t slot)
{
    if (slot >= loop->endpoint->config.pool_slot_count) {
        return CW_ERROR_ARGUMENT;
    }
    if (enter(loop, 0)) {
        int status = cw_message_release(loop->endpoint, slot);
        give_and_look(loop);
        return status;
    }
    struct cw_command command;
    command.kind = CW_COMMAND_RELEASE;
    command.slot = slot;
    return enqueue(loop, &command);
}

static void futex_wait(atomic_int *word, int value, uint64_t timeout_ns)
{
    struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000ull),
                               .tv_nsec = (long)(timeout_ns % 1000000000ull)};
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &timeout, NULL, 0);
}

int cw_loop_call(struct cw_loop *loop, int (*function)(struct cw_endpoint *endpoint, void *context), void *context)
{
    if (enter(loop, 0)) {
        int status = function(loop->endpoint, context);
        give_and_look(loop);
        return status;
    }
    struct cw_command_call call = {.function = function, .context = context};
    atomic_init(&call.done, 0);
    struct cw_command command;
    command.kind = CW_COMMAND_CALL;
    command.call = &call;
    while (enqueue(loop, &command) != CW_OK) {
        sched_yield();
    }
    /* pairs with the release in run_command */
    while (atomic_load_explicit(&call.done, memory_order_acquire) == 0) {
        futex_wait(&call.done, 0, 1000000);
        if (atomic_load_explicit(&call.done, memory_order_acquire) == 0 && cw_token_take(&loop->token)) {
            (void)turn(loop); /* nobody turns it: the call waits for room that a turn may make */
            give_and_look(loop);
        }
    }
    return call.status;
}

/* ---- polling and waiting ---- */

uint32_t cw_loop_poll(struct cw_loop *loop, struct cw_event *events, uint32_t count_max)
{
    atomic_store_explicit(&loop->polls, atomic_load_explicit(&loop->polls, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    if (loop->config.mode == CW_LOOP_INLINE) {
        if (cw_token_take(&loop->token)) {
            (void)turn(loop);
            give_and_look(loop);
        } else if (loop->config.fallback && atomic_exchange_explicit(&loop->wanted, 1, memory_order_relaxed) == 0) {
            wake_owner(loop); /* the fallback thread sleeps with it: it lets go */
        }
    }
    return cw_endpoint_events(loop->endpoint, events, count_max);
}

/* Sleeps as owner until a packet, a command, the endpoint's deadline or `until_ns`. */
static void sleep_on_port(struct cw_loop *loop, uint64_t until_ns)
{
    atomic_store_explicit(&loop->sleeping, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in wake_owner */
    uint64_t now_ns = cw_clock_ns();
    uint64_t deadline_ns = cw_endpoint_deadline(loop->endpoint);
    uint64_t wake_ns = deadline_ns < until_ns ? deadline_ns : until_ns;
    bool wanted = atomic_load_explicit(&loop->wanted, memory_order_relaxed) != 0;
    if (cw_commands_empty(&loop->commands) && !wanted && wake_ns > now_ns &&
        atomic_load_explicit(&loop->stop, memory_order_relaxed) == 0) {
        uint64_t sleep_ns = wake_ns - now_ns;
        cw_port_sleep(loop->port, sleep_ns < SLEEP_MAX_NS ? sleep_ns : SLEEP_MAX_NS);
        loop->counters.sleeps++;
    }
    atomic_store_explicit(&loop->sleeping, 0, memory_order_relaxed);
}

/* Waits as the consumer of a loop that another thread turns. */
static void sleep_for_events(struct cw_loop *loop, uint64_t until_ns)
{
    uint64_t now_ns = cw_clock_ns();
    if (now_ns >= until_ns) {
        return;
    }
    uint64_t sleep_ns = until_ns - now_ns < SLEEP_MAX_NS ? until_ns - now_ns : SLEEP_MAX_NS;
    atomic_store_explicit(&loop->consumer, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in tell_consumer */
    /* a token that is free means that nobody turns the loop for us: then turn it ourselves */
    if (cw_events_count(&loop->endpoint->events) == 0 && cw_token_is_taken(&loop->token)) {
        futex_wait(&loop->consumer, 1, sleep_ns);
    }
    atomic_store_explicit(&loop->consumer, 0, memory_order_relaxed);
}

/* Wakes the consumer if it sleeps and there is something for it: events, or a token that has become free. */
static void tell_consumer(struct cw_loop *loop)
{
    atomic_thread_fence(memory_order_seq_cst); /* pairs with the fence in sleep_for_events */
    if (atomic_load_explicit(&loop->consumer, memory_order_relaxed) != 0 &&
        (cw_events_count(&loop->endpoint->events) > 0 || !cw_token_is_taken(&loop->token))) {
        atomic_store_explicit(&loop->consumer, 0, memory_order_relaxed);
        syscall(SYS_futex, &loop->consumer, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

static inline void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Polls a few dozen times, keeping the token meanwhile: on a core of its own a look for packets should cost nothing else. */
static uint32_t spin(struct cw_loop *loop, struct cw_event *events, uint32_t count_max)
{
    if (loop->config.mode != CW_LOOP_INLINE || !cw_token_take(&loop->token)) {
        pause_cpu();
        return cw_loop_poll(loop, events, count_max);
    }
    for (uint32_t i = 0; i < SPINS_A_CLOCK && cw_events_count(&loop->endpoint->events) == 0; i++) {
        (void)turn(loop);
    }
    give_and_look(loop);
    return cw_endpoint_events(loop->endpoint, events, count_max);
}

uint32_t cw_loop_wait(struct cw_loop *loop, struct cw_event *events, uint32_t count_max, uint64_t timeout_ns)
{
    uint32_t count = cw_loop_poll(loop, events, count_max);
    if (count > 0 || timeout_ns == 0) {
        return count;
    }
    uint64_t start_ns = cw_clock_ns();
    uint64_t until_ns = timeout_ns > UINT64_MAX - start_ns ? UINT64_MAX : start_ns + timeout_ns;
    for (;;) {
        count = loop->config.spin ? spin(loop, events, count_max) : cw_loop_poll(loop, events, count_max);
        uint64_t now_ns = cw_clock_ns();
        if (count > 0 || now_ns >= until_ns) {
            return count;
        }
        uint64_t waited_ns = now_ns - start_ns;
        if (loop->config.spin) {
            continue;
        }
        if (waited_ns < loop->config.spin_ns) {
            pause_cpu();
        } else if (waited_ns < loop->config.spin_ns + loop->config.yield_ns) {
            sched_yield();
        } else if (loop->config.mode == CW_LOOP_INLINE && cw_token_take(&loop->token)) {
            /* what came while the token was elsewhere is looked at before the sleep */
            if (turn(loop) == 0 && cw_events_count(&loop->endpoint->events) == 0) {
                sleep_on_port(loop, until_ns);
                (void)turn(loop);
            }
            give_and_look(loop);
        } else {
            sleep_for_events(loop, until_ns);
        }
    }
}

/* ---- threads ---- */

static void *dedicated_thread(void *argument)
{
    struct cw_loop *loop = argument;
    while (!cw_token_take(&loop->token)) {
        sched_yield();
    }
    uint64_t busy_ns = cw_clock_ns();
    while (atomic_load_explicit(&loop->stop, memory_order_relaxed) == 0) {
        uint32_t work = turn(loop);
        if (work > 0) {
            tell_consumer(loop);
            busy_ns = loop->endpoint->now_ns;
        } else if (loop->config.spin || loop->endpoint->now_ns - busy_ns < loop->config.spin_ns) {
            pause_cpu();
        } else if (loop->endpoint->now_ns - busy_ns < loop->config.spin_ns + loop->config.yield_ns) {
            sched_yield();
        } else {
            sleep_on_port(loop, UINT64_MAX);
        }
    }
    cw_token_give(&loop->token);
    return NULL;
}

/* Turns while there is something to do, then sleeps on the port; lets go when the application wants the token. */
static void stand_in(struct cw_loop *loop)
{
    while (atomic_load_explicit(&loop->stop, memory_order_relaxed) == 0 &&
           atomic_load_explicit(&loop->wanted, memory_order_relaxed) == 0) {
        uint32_t work = turn(loop);
        loop->counters.fallback_turns++;
        if (work > 0) {
            tell_consumer(loop);
        } else {
            sleep_on_port(loop, UINT64_MAX);
        }
    }
}

static void *fallback_thread(void *argument)
{
    struct cw_loop *loop = argument;
    unsigned long seen = atomic_load_explicit(&loop->polls, memory_order_relaxed);
    while (atomic_load_explicit(&loop->stop, memory_order_relaxed) == 0) {
        futex_wait(&loop->stop, 0, CW_LOOP_FALLBACK_NS);
        unsigned long polls = atomic_load_explicit(&loop->polls, memory_order_relaxed);
        if (polls == seen && cw_token_take(&loop->token)) {
            stand_in(loop);
            atomic_store_explicit(&loop->wanted, 0, memory_order_relaxed);
            give_and_look(loop);
            tell_consumer(loop);
        }
        seen = polls;
    }
    return NULL;
}

static int start_thread(struct cw_loop *loop, char *error, size_t error_bytes)
{
    bool dedicated = loop->config.mode == CW_LOOP_DEDICATED;
    if (!dedicated && !loop->config.fallback) {
        return CW_OK;
    }
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    if (dedicated && loop->config.core >= 0) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET((size_t)loop->config.core, &cores);
        pthread_attr_setaffinity_np(&attributes, sizeof(cores), &cores);
    }
    int failed = pthread_create(&loop->thread, &attributes, dedicated ? dedicated_thread : fallback_thread, loop);
    pthread_attr_destroy(&attributes);
    if (failed != 0) {
        snprintf(error, error_bytes, "loop: no thread on core %d (%s); choose a core this process may use",
                 loop->config.core, strerror(failed));
        return CW_ERROR_SYSTEM;
    }
    loop->has_thread = true;
    return CW_OK;
}

int cw_loop_create(const struct cw_loop_config *config, struct cw_endpoint *endpoint, struct cw_port *port,
                   struct cw_loop **loop, char *error, size_t error_bytes)
{
    uint32_t count = config->command_count;
    if (count < 2 || (count & (count - 1)) != 0 || count > 1u << 20 || config->core >= CPU_SETSIZE) {
        snprintf(error, error_bytes, "loop: command_count must be a power of two from 2 to 2^20, core below %d",
                 CPU_SETSIZE);
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
    cw_token_init(&created->token);
    int status = cw_commands_init(&created->commands, count);
    if (status == CW_OK) {
        status = start_thread(created, error, error_bytes);
    } else {
        snprintf(error, error_bytes, "loop: no memory for %u commands", count);
    }
    if (status != CW_OK) {
        cw_commands_dispose(&created->commands);
        free(created);
        return status;
    }
    *loop = created;
    return CW_OK;
}

void cw_loop_destroy(struct cw_loop *loop)
{
    if (loop == NULL) {
        return;
    }
    atomic_store_explicit(&loop->stop, 1, memory_order_relaxed);
    if (loop->has_thread) {
        syscall(SYS_futex, &loop->stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        atomic_thread_fence(memory_order_seq_cst);
        cw_port_wake(loop->port);
        pthread_join(loop->thread, NULL);
    }
    cw_commands_dispose(&loop->commands);
    free(loop);
}

struct cw_loop_counters cw_loop_counters(const struct cw_loop *loop)
{
    return loop->counters;
}
