/* Calls from any thread: done at once with the token, or queued as commands for whoever has it. */
#include "dataplane/core/loop_private.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/core/clock.h"

enum { COMMANDS_AT_ONCE = 64 };

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

uint32_t cw_loop_run_commands(struct cw_loop *loop)
{
    uint32_t count = 0;
    struct cw_command *command;
    cw_endpoint_clock(loop->endpoint, cw_clock_ns());
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

/* True if nothing leaves and no time is taken before the next turn, which reads the clock. */
static inline bool waits_for_turn(const struct cw_loop *loop, uint32_t peer, uint32_t flags)
{
    const struct cw_flow *flow = (flags & CW_MORE) == 0 ? NULL : cw_endpoint_flow(loop->endpoint, peer);
    return flow != NULL && flow->state == CW_PEER_ESTABLISHED;
}

/* Takes the token for a call. False: it has to be queued, since another thread has the token or older commands wait for room. */
static inline bool enter(struct cw_loop *loop, uint32_t peer, uint32_t flags)
{
    if (!cw_token_take(&loop->token)) {
        return false;
    }
    if (!cw_commands_idle(&loop->commands)) {
        (void)cw_loop_run_commands(loop);
        if (!cw_commands_idle(&loop->commands)) {
            cw_loop_give(loop);
            return false;
        }
    }
    if (!waits_for_turn(loop, peer, flags)) {
        cw_endpoint_clock(loop->endpoint, cw_clock_ns());
    }
    return true;
}

static int enqueue(struct cw_loop *loop, const struct cw_command *command)
{
    if (!cw_commands_push(&loop->commands, command)) {
        cw_loop_wake_owner(loop);
        return CW_ERROR_AGAIN;
    }
    cw_token_announce(&loop->token);
    if (cw_token_take(&loop->token)) {
        (void)cw_loop_run_commands(loop);
        cw_loop_give(loop);
    } else {
        cw_loop_wake_owner(loop);
    }
    return CW_OK;
}

/* ---- calls ---- */

int cw_loop_put(struct cw_loop *loop, const struct cw_put *put)
{
    if (enter(loop, put->peer, put->flags)) {
        int status = cw_put(loop->endpoint, put);
        cw_loop_give(loop);
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
    if (enter(loop, get->peer, get->flags)) {
        int status = cw_get(loop->endpoint, get);
        cw_loop_give(loop);
        return status;
    }
    struct cw_command command;
    command.kind = CW_COMMAND_GET;
    command.get = *get;
    return enqueue(loop, &command);
}

int cw_loop_message_send(struct cw_loop *loop, const struct cw_message *message)
{
    if (enter(loop, message->peer, message->flags)) {
        int status = cw_message_send(loop->endpoint, message);
        cw_loop_give(loop);
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
    if (enter(loop, 0, 0)) {
        int status = cw_message_release(loop->endpoint, slot);
        cw_loop_give(loop);
        return status;
    }
    struct cw_command command;
    command.kind = CW_COMMAND_RELEASE;
    command.slot = slot;
    return enqueue(loop, &command);
}

int cw_loop_call(struct cw_loop *loop, int (*function)(struct cw_endpoint *endpoint, void *context), void *context)
{
    if (enter(loop, 0, 0)) {
        int status = function(loop->endpoint, context);
        cw_loop_give(loop);
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
        cw_loop_futex_wait(&call.done, 0, 1000000);
        if (atomic_load_explicit(&call.done, memory_order_acquire) == 0 && cw_token_take(&loop->token)) {
            (void)cw_loop_turn(loop); /* nobody turns it: the call waits for room that a turn may make */
            cw_loop_give(loop);
        }
    }
    return call.status;
}
