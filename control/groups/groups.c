/* Calls, and messages between ranks. */
#include "control/groups/private.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

enum { REFUSED_MAX = 16 };

/* ---- life ---- */

int cw_groups_create(const struct cw_groups_config *config, struct cw_groups **groups)
{
    if (config->filter_budget < CW_GROUPS_FILTERS_LEAST || config->address_base >> 28 != 0xe) {
        return CW_ERROR_ARGUMENT;
    }
    struct cw_groups *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    made->config = *config;
    made->filters.budget = config->filter_budget;
    made->random = config->seed;
    made->unreached = made->laggard = NO_RANK;
    *groups = made;
    return CW_OK;
}

static void waiting_free(struct waiting *first)
{
    while (first != NULL) {
        struct waiting *next = first->next;
        free(first);
        first = next;
    }
}

void cw_groups_destroy(struct cw_groups *groups)
{
    if (groups == NULL) {
        return;
    }
    while (groups->first != NULL) {
        groups_shut(groups->first);
        groups_free(groups->first);
    }
    waiting_free(groups->out_first);
    waiting_free(groups->unknown);
    free(groups);
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Each rank once, the own one among them; and all of them in one number. */
static int ranks_check(const struct cw_groups *groups, const struct cw_group_request *request, uint64_t *digest)
{
    bool has_self = false;
    *digest = request->count;
    if (request->count < 2 || request->count > CW_MCAST_MEMBERS_MAX) {
        return CW_ERROR_ARGUMENT;
    }
    for (uint32_t i = 0; i < request->count; i++) {
        has_self = has_self || request->ranks[i] == groups->config.rank;
        *digest = mix(*digest, request->ranks[i]);
        for (uint32_t k = 0; k < i; k++) {
            if (request->ranks[i] == request->ranks[k]) {
                return CW_ERROR_ARGUMENT;
            }
        }
    }
    return has_self ? CW_OK : CW_ERROR_ARGUMENT;
}

static struct cw_group *group_make(struct cw_groups *groups, const struct cw_group_request *request, uint64_t digest)
{
    struct cw_group *group = calloc(1, sizeof(*group));
    if (group == NULL) {
        return NULL;
    }
    *group = (struct cw_group){
        .groups = groups,
        .scope = request->scope,
        .number = request->number,
        .context = request->context,
        .shown = request->mcast,
        .count = request->count,
        .ranks = calloc(request->count, sizeof(uint32_t)),
        .live = calloc(request->count, sizeof(bool)),
        .said = calloc(request->count, 1),
        .digest = digest,
        .unreached = NO_RANK,
        .offers = {.may = UINT64_MAX},
    };
    if (group->ranks == NULL || group->live == NULL || group->said == NULL) {
        groups_memory_free(group);
        return NULL;
    }
    memcpy(group->ranks, request->ranks, request->count * sizeof(uint32_t));
    for (uint32_t member = 0; member < request->count; member++) {
        group->live[member] = true;
    }
    group->self = groups_member(group, groups->config.rank);
    group->next = groups->first;
    groups->first = group;
    return group;
}

/* Messages for the group that arrived before it was known here. */
static void unknown_deliver(struct cw_groups *groups, const struct cw_group *group)
{
    struct waiting **link = &groups->unknown;
    struct waiting *mine = NULL, **last = &mine;
    while (*link != NULL) {
        struct waiting *unknown = *link;
        if (unknown->message.scope != group->scope || unknown->message.number != group->number) {
            link = &unknown->next;
            continue;
        }
        *link = unknown->next;
        unknown->next = NULL;
        *last = unknown;
        last = &unknown->next;
        groups->unknown_count--;
    }
    for (struct waiting *at = mine; at != NULL; at = at->next) {
        (void)groups_agree_receive(groups, at->rank, &at->message);
    }
    waiting_free(mine);
}

int cw_group_open(struct cw_groups *groups, const struct cw_group_request *request, struct cw_group **group)
{
    uint64_t digest;
    int status = ranks_check(groups, request, &digest);
    if (status != CW_OK) {
        return status;
    }
    if (groups_find(groups, request->scope, request->number) != NULL) {
        return CW_ERROR_BUSY;
    }
    struct cw_group *made = group_make(groups, request, digest);
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    groups_show(made, NULL);
    groups_agree_begin(made);
    unknown_deliver(groups, made);
    *group = made;
    return CW_OK;
}

void cw_group_close(struct cw_group *group)
{
    groups_show(group, NULL);
    group->shown = NULL;
    group->is_closed = true;
    if (group->mcast != NULL) {
        cw_mcast_mute(group->mcast);
    }
    if (group->stage != STAGE_FAILED) {
        groups_agree_leave(group);
    } else {
        groups_free(group);
    }
}

/* ---- messages between ranks ---- */

/* Ranks whose path has rejected a message: later messages to them wait behind it. */
struct refused {
    uint32_t ranks[REFUSED_MAX];
    uint32_t count;
};

static bool is_refused(const struct refused *refused, uint32_t rank)
{
    for (uint32_t i = 0; i < refused->count; i++) {
        if (refused->ranks[i] == rank) {
            return true;
        }
    }
    return false;
}

/* False: it has to wait for room. */
static bool waiting_send(struct cw_groups *groups, const struct waiting *waiting, struct refused *refused)
{
    const struct cw_groups_links *links = &groups->config.links;
    if (waiting->rank == groups->config.rank) {
        return true; /* taken once it has left the queue */
    }
    if (is_refused(refused, waiting->rank)) {
        return false;
    }
    if (links->send(links->context, waiting->rank, &waiting->message, sizeof(waiting->message)) == CW_ERROR_AGAIN) {
        refused->ranks[refused->count++] = waiting->rank;
        return false;
    }
    return true;
}

/* In the order in which they were queued, for each rank. A message that a path rejects waits, with all later ones to
 * the same rank; if too many paths have no room, all later ones wait. */
static uint32_t queue_send(struct cw_groups *groups)
{
    struct refused refused = {.count = 0};
    struct waiting *before = NULL;
    uint32_t count = 0;
    while (refused.count < REFUSED_MAX) {
        struct waiting **link = before == NULL ? &groups->out_first : &before->next;
        struct waiting *waiting = *link;
        if (waiting == NULL) {
            break;
        }
        if (!waiting_send(groups, waiting, &refused)) {
            before = waiting;
            continue;
        }
        *link = waiting->next;
        groups->out_last = waiting->next == NULL ? before : groups->out_last;
        if (waiting->rank == groups->config.rank) {
            cw_groups_receive(groups, waiting->rank, &waiting->message, sizeof(waiting->message));
        }
        free(waiting);
        count++;
    }
    return count;
}

static void unknown_keep(struct cw_groups *groups, uint32_t rank, const struct message *message)
{
    struct waiting *unknown = groups->unknown_count < CW_GROUPS_UNKNOWN_MAX ? malloc(sizeof(*unknown)) : NULL;
    if (unknown == NULL) {
        groups->malformed++;
        return;
    }
    struct waiting **link = &groups->unknown;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *unknown = (struct waiting){.rank = rank, .message = *message};
    *link = unknown;
    groups->unknown_count++;
}

void cw_groups_receive(struct cw_groups *groups, uint32_t rank, const void *data, uint32_t bytes)
{
    struct message message;
    if (bytes != sizeof(message)) {
        groups->malformed++;
        return;
    }
    memcpy(&message, data, sizeof(message));
    if (!groups_agree_receive(groups, rank, &message) &&
        (message.kind == MESSAGE_JOIN || message.kind == MESSAGE_FAIL)) {
        unknown_keep(groups, rank, &message);
    }
}

void cw_groups_down(struct cw_groups *groups, uint32_t rank)
{
    for (struct cw_group *group = groups->first, *next; group != NULL; group = next) {
        next = group->next; /* it may go */
        uint32_t member = groups_member(group, rank);
        if (member != NO_RANK) {
            groups_exclude(group, member, true);
        }
    }
}

/* ---- going on ---- */

uint32_t cw_groups_poll(struct cw_groups *groups)
{
    uint32_t said = groups->polled_count > 0 ? groups_agree_poll(groups) : 0;
    return said + (groups->out_first != NULL ? queue_send(groups) : 0);
}

bool cw_groups_is_busy(const struct cw_groups *groups)
{
    return groups->out_first != NULL || groups->polled_count > 0;
}

bool cw_groups_is_closing(const struct cw_groups *groups)
{
    for (const struct cw_group *group = groups->first; group != NULL; group = group->next) {
        if (group->is_closed) {
            return true;
        }
    }
    return groups->out_first != NULL;
}
