/* Commands: the bounded queue of typed commands from any thread to the owner of an endpoint.
 *
 * Invariants: many producers, one consumer at a time (the owner). First in, first out for each producer. A full queue
 * refuses. After the bounded queue of D. Vyukov: each cell has a sequence number that shows whether it is free or
 * full. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/dataplane.h"

enum cw_command_kind {
    CW_COMMAND_PUT,
    CW_COMMAND_GET,
    CW_COMMAND_MESSAGE,
    CW_COMMAND_RELEASE,
};

/* A function to be run by the owner, and the one who waits for it. */
struct cw_command_call {
    struct cw_command_call *next; /* asked for before */
    int (*function)(struct cw_endpoint *endpoint, void *context);
    void *context;
    int status;
    atomic_int done;
};

struct cw_command {
    enum cw_command_kind kind;
    union {
        struct cw_put put;
        struct cw_get get;
        struct cw_message message;
        uint32_t slot;
    };
    uint8_t bytes_inline[CW_INLINE_MAX]; /* the source, if it is short: the caller may reuse its own at once */
};

struct cw_command_cell {
    atomic_uint turn;
    struct cw_command command;
};

struct cw_commands {
    struct cw_command_cell *cells;
    uint32_t mask;
    _Alignas(64) atomic_uint head; /* producers */
    _Alignas(64) atomic_uint tail; /* the consumer */
};

/* `count` is a power of two. CW_OK, CW_ERROR_MEMORY. */
int cw_commands_init(struct cw_commands *commands, uint32_t count);
void cw_commands_dispose(struct cw_commands *commands);

/* Copies a command in. False: full. Any thread. */
bool cw_commands_push(struct cw_commands *commands, const struct cw_command *command);

/* The oldest command, still in its place; NULL: none. Owner only. */
struct cw_command *cw_commands_peek(struct cw_commands *commands);

/* Frees the place of the command last peeked. Owner only. */
void cw_commands_pop(struct cw_commands *commands);

/* True if there is no complete command: one that is still being pushed has not been announced either. A snapshot; any
 * thread. */
static inline bool cw_commands_empty(const struct cw_commands *commands)
{
    uint32_t tail = atomic_load_explicit(&commands->tail, memory_order_relaxed);
    /* pairs with the release in cw_commands_push */
    return atomic_load_explicit(&commands->cells[tail & commands->mask].turn, memory_order_acquire) != tail + 1;
}

/* True if no thread has pushed or is pushing a command that has not been popped. Unlike cw_commands_empty this also
 * sees commands behind one that another thread is still writing: a thread with older commands there must not overtake
 * them. Any thread, as to its own commands. */
static inline bool cw_commands_idle(const struct cw_commands *commands)
{
    return atomic_load_explicit(&commands->head, memory_order_relaxed) ==
           atomic_load_explicit(&commands->tail, memory_order_acquire); /* pairs with the release in cw_commands_pop */
}
