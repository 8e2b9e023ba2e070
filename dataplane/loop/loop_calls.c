/* Calls from any thread: run at once with the token, or queued as commands for the thread that has it. */
#include "dataplane/loop/loop_private.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/base/clock.h"

enum {
    COMMANDS_AT_ONCE = 64,
    CALL_WAIT_NS = 500000000, /* the longest sleep without a check */
};

/* ---- commands ---- */

/* A short source is copied into the command, since the caller may reuse its own at once, and found there when the
 * command runs. */
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

/* Runs one command as owner; CW_ERROR_AGAIN: there was no room for it. */
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
    default:
        (void)cw_message_release(endpoint, command->slot); /* the caller has checked the number */
        return CW_OK;
    }
    if (status == CW_ERROR_AGAIN) {
        return status;
    }
    if (status != CW_OK) {
        fail(endpoint, command, status);
    }
    cw_backlog_leave(&loop->backlog, command);
    return CW_OK;
}

static inline bool has_event_room(const struct cw_loop *loop)
{
    return cw_events_count(&loop->endpoint->events) < loop->endpoint->config.event_count_max;
}

/* Runs what a chain has as far as there is room. */
static uint32_t run_chain(struct cw_loop *loop, struct cw_backlog_chain *chain)
{
    uint32_t count = 0;
    struct cw_command *command;
    while ((command = cw_backlog_first(chain)) != NULL && has_event_room(loop) && run_command(loop, command) == CW_OK) {
        cw_backlog_drop(&loop->backlog, chain);
        count++;
    }
    return count;
}

uint32_t cw_loop_run_backlog(struct cw_loop *loop)
{
    uint32_t count = 0;
    for (uint32_t chains = loop->backlog.chain_count; chains > 0; chains--) {
        struct cw_backlog_chain *chain = cw_backlog_turn(&loop->backlog);
        count += run_chain(loop, chain);
        cw_backlog_return(&loop->backlog, chain);
    }
    loop->counters.commands += count;
    return count;
}

/* Runs the oldest command of the queue, or keeps it behind others of its peer. False: it has to stay where it is. */
static bool run_oldest(struct cw_loop *loop, struct cw_command *command)
{
    struct cw_backlog_chain *chain = cw_backlog_chain(&loop->backlog, command);
    bool is_behind = chain != NULL && cw_backlog_first(chain) != NULL;
    if (!is_behind && run_command(loop, command) == CW_OK) {
        loop->counters.commands++;
        return true;
    }
    return cw_backlog_keep(&loop->backlog, chain, command);
}

/* Calls in the order of the requests: the last one pushed comes first in the list. */
static struct cw_command_call *calls_detach(struct cw_loop *loop)
{
    if (!cw_loop_has_calls(loop)) {
        return NULL; /* as almost always: a load costs less than an exchange */
    }
    /* pairs with the release in cw_loop_call; earlier commands of its thread are seen, too */
    struct cw_command_call *last = atomic_exchange_explicit(&loop->calls, NULL, memory_order_acquire);
    struct cw_command_call *first = NULL;
    while (last != NULL) {
        struct cw_command_call *before = last->next;
        last->next = first;
        first = last;
        last = before;
    }
    return first;
}

static uint32_t calls_run(struct cw_loop *loop, struct cw_command_call *call)
{
    uint32_t count = 0;
    for (struct cw_command_call *next; call != NULL; call = next, count++) {
        next = call->next; /* the caller leaves once it is done */
        call->status = call->function(loop->endpoint, call->context);
        atomic_int *done = &call->done;
        /* pairs with the acquire in cw_loop_call */
        atomic_store_explicit(done, 1, memory_order_release);
        syscall(SYS_futex, done, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    loop->counters.commands += count;
    return count;
}

/* Runs up to `count_max` commands of the queue. */
static uint32_t run_queue(struct cw_loop *loop, uint32_t count_max)
{
    uint32_t count = 0;
    struct cw_command *command;
    while (count < count_max && has_event_room(loop) && (command = cw_commands_peek(&loop->commands)) != NULL &&
           run_oldest(loop, command)) {
        cw_commands_pop(&loop->commands);
        count++;
    }
    return count;
}

/* Runs all queued commands, then the calls: commands that a caller has posted before its call run before it, unless
 * they must wait for room. */
static uint32_t run_all(struct cw_loop *loop)
{
    cw_endpoint_clock(loop->endpoint, cw_clock_ns());
    struct cw_command_call *calls = calls_detach(loop);
    uint32_t count = run_queue(loop, loop->config.command_count);
    return count + calls_run(loop, calls);
}

uint32_t cw_loop_run_commands(struct cw_loop *loop)
{
    if (cw_loop_has_calls(loop)) {
        return run_all(loop);
    }
    cw_endpoint_clock(loop->endpoint, cw_clock_ns());
    return run_queue(loop, COMMANDS_AT_ONCE);
}

/* True if nothing leaves and no time is taken before the next turn, which reads the clock. */
static inline bool waits_for_turn(const struct cw_loop *loop, uint32_t peer, uint32_t flags)
{
    const struct cw_flow *flow = (flags & CW_MORE) == 0 ? NULL : cw_endpoint_flow(loop->endpoint, peer);
    return flow != NULL && flow->state == CW_PEER_ESTABLISHED;
}

enum entry { ENTRY_OWNER, ENTRY_QUEUE, ENTRY_FULL };

/* Takes the token for a call (ENTRY_OWNER), unless another thread has it or older commands are queued (ENTRY_QUEUE), or
 * older ones of the same kind wait for room at that peer (ENTRY_FULL). */
static inline enum entry enter(struct cw_loop *loop, enum cw_command_kind kind, uint32_t peer, uint32_t flags)
{
    if (!cw_token_acquire(&loop->token)) {
        return ENTRY_QUEUE;
    }
    if (!cw_commands_idle(&loop->commands)) {
        (void)cw_loop_run_commands(loop);
        if (!cw_commands_idle(&loop->commands)) {
            cw_loop_release(loop);
            return ENTRY_QUEUE;
        }
    }
    if (cw_backlog_holds(&loop->backlog, kind, peer)) {
        cw_loop_release(loop);
        return ENTRY_FULL;
    }
    if (!waits_for_turn(loop, peer, flags)) {
        cw_endpoint_clock(loop->endpoint, cw_clock_posting_ns());
    }
    return ENTRY_OWNER;
}

/* Notifies the thread that turns the loop of the new command, or turns it, if no thread does. */
static void announce(struct cw_loop *loop)
{
    cw_token_announce(&loop->token);
    if (cw_token_acquire(&loop->token)) {
        (void)cw_loop_run_commands(loop);
        cw_loop_release(loop);
    } else {
        cw_loop_wake_owner(loop);
    }
}

static int enqueue(struct cw_loop *loop, const struct cw_command *command)
{
    if (!cw_backlog_admit(&loop->backlog, command)) {
        return CW_ERROR_AGAIN;
    }
    if (!cw_commands_push(&loop->commands, command)) {
        cw_backlog_leave(&loop->backlog, command);
        cw_loop_wake_owner(loop);
        return CW_ERROR_AGAIN;
    }
    announce(loop);
    return CW_OK;
}

/* ---- calls ---- */

int cw_loop_put(struct cw_loop *loop, const struct cw_put *put)
{
    enum entry entry = enter(loop, CW_COMMAND_PUT, put->peer, put->flags);
    if (entry == ENTRY_FULL) {
        return CW_ERROR_AGAIN;
    }
    if (entry == ENTRY_OWNER) {
        int status = cw_put(loop->endpoint, put);
        cw_loop_release(loop);
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
    enum entry entry = enter(loop, CW_COMMAND_GET, get->peer, get->flags);
    if (entry == ENTRY_FULL) {
        return CW_ERROR_AGAIN;
    }
    if (entry == ENTRY_OWNER) {
        int status = cw_get(loop->endpoint, get);
        cw_loop_release(loop);
        return status;
    }
    struct cw_command command;
    command.kind = CW_COMMAND_GET;
    command.get = *get;
    return enqueue(loop, &command);
}

int cw_loop_message_send(struct cw_loop *loop, const struct cw_message *message)
{
    enum entry entry = enter(loop, CW_COMMAND_MESSAGE, message->peer, message->flags);
    if (entry == ENTRY_FULL) {
        return CW_ERROR_AGAIN;
    }
    if (entry == ENTRY_OWNER) {
        int status = cw_message_send(loop->endpoint, message);
        cw_loop_release(loop);
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
    if (enter(loop, CW_COMMAND_RELEASE, 0, 0) == ENTRY_OWNER) {
        int status = cw_message_release(loop->endpoint, slot);
        cw_loop_release(loop);
        return status;
    }
    struct cw_command command;
    command.kind = CW_COMMAND_RELEASE;
    command.slot = slot;
    return enqueue(loop, &command);
}

int cw_loop_call(struct cw_loop *loop, int (*function)(struct cw_endpoint *endpoint, void *context), void *context)
{
    if (cw_token_acquire(&loop->token)) {
        if (cw_commands_idle(&loop->commands) && !cw_loop_has_calls(loop)) {
            cw_endpoint_clock(loop->endpoint, cw_clock_ns());
        } else {
            (void)run_all(loop);
        }
        int status = function(loop->endpoint, context);
        cw_loop_release(loop);
        return status;
    }
    struct cw_command_call call = {.function = function, .context = context};
    atomic_init(&call.done, 0);
    call.next = atomic_load_explicit(&loop->calls, memory_order_relaxed);
    /* pairs with the acquire in calls_detach */
    while (!atomic_compare_exchange_weak_explicit(&loop->calls, &call.next, &call, memory_order_release,
                                                  memory_order_relaxed)) {
    }
    announce(loop);
    /* pairs with the release in calls_run */
    while (atomic_load_explicit(&call.done, memory_order_acquire) == 0) {
        cw_loop_futex_wait(&call.done, 0, CALL_WAIT_NS);
    }
    return call.status;
}
