#include "dataplane/loop/backlog.h"

#include <assert.h>
#include <stdlib.h>

enum {
    FULL_PEERS = 1024, /* that all have their share */
    NO_PEER = UINT32_MAX,
};

int cw_backlog_init(struct cw_backlog *backlog, uint32_t peers)
{
    uint32_t full = peers < FULL_PEERS ? peers : FULL_PEERS;
    *backlog = (struct cw_backlog){
        .peers = peers,
        .queued = calloc(peers, sizeof(*backlog->queued)),
        .chains = calloc(2 * (size_t)peers, sizeof(*backlog->chains)),
    };
    if (backlog->queued != NULL && backlog->chains != NULL &&
        cw_pool_init(&backlog->entries, full * CW_BACKLOG_SHARE, sizeof(struct cw_backlog_entry)) == CW_OK) {
        return CW_OK;
    }
    cw_backlog_dispose(backlog);
    return CW_ERROR_MEMORY;
}

void cw_backlog_dispose(struct cw_backlog *backlog)
{
    cw_pool_dispose(&backlog->entries);
    free(backlog->chains);
    free(backlog->queued);
    backlog->chains = NULL;
    backlog->queued = NULL;
}

/* A command for an unknown peer is rejected by the endpoint at once, and so delays no other. */
static uint32_t peer_of(const struct cw_backlog *backlog, const struct cw_command *command)
{
    uint32_t peer = command->kind == CW_COMMAND_PUT       ? command->put.peer
                    : command->kind == CW_COMMAND_GET     ? command->get.peer
                    : command->kind == CW_COMMAND_MESSAGE ? command->message.peer
                                                          : NO_PEER;
    return peer < backlog->peers ? peer : NO_PEER;
}

bool cw_backlog_admit(struct cw_backlog *backlog, const struct cw_command *command)
{
    uint32_t peer = peer_of(backlog, command);
    if (peer == NO_PEER ||
        atomic_fetch_add_explicit(&backlog->queued[peer], 1, memory_order_relaxed) < CW_BACKLOG_SHARE) {
        return true;
    }
    cw_backlog_leave(backlog, command);
    return false;
}

void cw_backlog_leave(struct cw_backlog *backlog, const struct cw_command *command)
{
    uint32_t peer = peer_of(backlog, command);
    if (peer != NO_PEER) {
        atomic_fetch_sub_explicit(&backlog->queued[peer], 1, memory_order_relaxed);
    }
}

struct cw_backlog_chain *cw_backlog_chain(struct cw_backlog *backlog, const struct cw_command *command)
{
    uint32_t peer = peer_of(backlog, command);
    return peer == NO_PEER ? NULL : &backlog->chains[2 * (size_t)peer + (command->kind == CW_COMMAND_GET)];
}

static void chain_append(struct cw_backlog *backlog, struct cw_backlog_chain *chain)
{
    chain->next = NULL;
    if (backlog->ready_first == NULL) {
        backlog->ready_first = chain;
    } else {
        backlog->ready_last->next = chain;
    }
    backlog->ready_last = chain;
}

bool cw_backlog_keep(struct cw_backlog *backlog, struct cw_backlog_chain *chain, const struct cw_command *command)
{
    struct cw_backlog_entry *entry = cw_pool_acquire(&backlog->entries);
    if (entry == NULL) {
        return false;
    }
    entry->next = NULL;
    entry->command = *command;
    if (chain->first == NULL) {
        chain->first = entry;
        backlog->chain_count++;
        chain_append(backlog, chain);
    } else {
        chain->last->next = entry;
    }
    chain->last = entry;
    return true;
}

void cw_backlog_drop(struct cw_backlog *backlog, struct cw_backlog_chain *chain)
{
    struct cw_backlog_entry *entry = chain->first;
    assert(entry != NULL);
    chain->first = entry->next;
    cw_pool_release(&backlog->entries, entry);
}

struct cw_backlog_chain *cw_backlog_turn(struct cw_backlog *backlog)
{
    struct cw_backlog_chain *chain = backlog->ready_first;
    if (chain != NULL) {
        backlog->ready_first = chain->next;
    }
    return chain;
}

void cw_backlog_return(struct cw_backlog *backlog, struct cw_backlog_chain *chain)
{
    if (chain->first != NULL) {
        chain_append(backlog, chain);
    } else {
        backlog->chain_count--;
    }
}
