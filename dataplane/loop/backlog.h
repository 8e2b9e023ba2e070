/* Backlog: commands that the endpoint had no room for, kept by peer, so that a full peer delays no other.
 *
 * Invariants
 *   - A peer has at most CW_BACKLOG_SHARE commands in the queue and here together, so a peer cannot fill either.
 *   - What waits for a peer keeps its order. Gets are a chain of their own, since another limit holds them up and no
 *     lane orders them.
 *   - Memory is reserved at creation, and touched only as far as peers have been full.
 *
 * Order of calls, per command: cw_backlog_admit, by the thread that queues it; cw_backlog_keep if there was no room
 * (owner); cw_backlog_first and cw_backlog_drop, until it has run (owner); cw_backlog_leave when it has. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "dataplane/base/pool.h"
#include "dataplane/loop/command.h"

enum { CW_BACKLOG_SHARE = 64 };

struct cw_backlog_entry {
    struct cw_backlog_entry *next;
    struct cw_command command;
};

struct cw_backlog_chain {
    struct cw_backlog_entry *first;
    struct cw_backlog_entry *last;
    struct cw_backlog_chain *next; /* that has something, too */
};

struct cw_backlog {
    uint32_t peers;
    atomic_uint *queued;             /* [peers]: commands in the queue and here */
    struct cw_backlog_chain *chains; /* [2 * peers]: gets, everything else */
    struct cw_backlog_chain *ready_first, *ready_last;
    uint32_t chain_count; /* that have something */
    struct cw_pool entries;
};

/* CW_OK, CW_ERROR_MEMORY: nothing to dispose of. */
int cw_backlog_init(struct cw_backlog *backlog, uint32_t peers);
void cw_backlog_dispose(struct cw_backlog *backlog);

/* False: the peer has its share. Any thread. */
bool cw_backlog_admit(struct cw_backlog *backlog, const struct cw_command *command);

/* An admitted command has run, or was not queued after all. Any thread. */
void cw_backlog_leave(struct cw_backlog *backlog, const struct cw_command *command);

/* The chain of a command; NULL: it has none, since no peer can hold it up. Owner. */
struct cw_backlog_chain *cw_backlog_chain(struct cw_backlog *backlog, const struct cw_command *command);

/* Appends a copy to its chain. False: no memory is left, which more than a thousand full peers may bring about.
 * Owner. */
bool cw_backlog_keep(struct cw_backlog *backlog, struct cw_backlog_chain *chain, const struct cw_command *command);

/* The oldest of a chain; NULL: none. Owner. */
static inline struct cw_command *cw_backlog_first(const struct cw_backlog_chain *chain)
{
    return chain->first == NULL ? NULL : &chain->first->command;
}

/* Forgets the oldest of a chain. Owner. */
void cw_backlog_drop(struct cw_backlog *backlog, struct cw_backlog_chain *chain);

/* Whether commands of that kind to that peer wait, which others must not overtake. Owner. */
static inline bool cw_backlog_holds(const struct cw_backlog *backlog, enum cw_command_kind kind, uint32_t peer)
{
    return backlog->chain_count > 0 && peer < backlog->peers && kind != CW_COMMAND_RELEASE &&
           backlog->chains[2 * (size_t)peer + (kind == CW_COMMAND_GET)].first != NULL;
}

/* Takes the next chain in turn; it goes back by cw_backlog_return if anything is left in it. NULL: none. Owner. */
struct cw_backlog_chain *cw_backlog_turn(struct cw_backlog *backlog);
void cw_backlog_return(struct cw_backlog *backlog, struct cw_backlog_chain *chain);
