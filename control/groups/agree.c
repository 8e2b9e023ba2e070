/* How members open and close a group. The leader, the first live member, waits until all have joined (JOIN), chooses an
 * address and an id (OPEN), waits until all admit its packets (READY), and starts all (GO). At the end it waits until
 * all have finished (BYE) and releases them (GONE). Four messages per member to open, two to close. */
#include <stdlib.h>

#include "control/groups/private.h"
#include "dataplane/status.h"

static void leader_send(struct cw_group *group, const struct message *message)
{
    groups_send(group, group->ranks[groups_leader(group)], message);
}

void groups_agree_begin(struct cw_group *group)
{
    struct message message = groups_message(group, MESSAGE_JOIN);
    const struct cw_groups_links *links = &group->groups->config.links;
    bool has_device = links->has_device != NULL && links->has_device(links->context);
    group->groups->filters.has_device = has_device && !group->groups->device_refuses;
    message.digest = group->digest;
    message.offer = groups_filters_offer(&group->groups->filters, &group->is_reserved);
    leader_send(group, &message);
}

static int can_continue(void *argument)
{
    const struct cw_group *group = argument;
    bool can =
        group->stage == STAGE_READY ? cw_mcast_is_joined(group->mcast) : cw_mcast_stream(group->mcast).queued == 0;
    return can ? CW_OK : CW_ERROR_AGAIN;
}

uint32_t groups_agree_poll(struct cw_groups *groups)
{
    const struct cw_groups_links *links = &groups->config.links;
    uint32_t before = groups->polled_count;
    for (struct cw_group *group = groups->first; group != NULL && groups->polled_count > 0; group = group->next) {
        if (group->is_polled && links->run(links->context, can_continue, group) == CW_OK) {
            bool is_ready = group->stage == STAGE_READY;
            struct message message = groups_message(group, is_ready ? MESSAGE_READY : MESSAGE_BYE);
            group->stage = is_ready ? STAGE_READY : STAGE_LEAVING;
            group->is_polled = false;
            groups->polled_count--;
            leader_send(group, &message);
        }
    }
    return before - groups->polled_count;
}

static void poll_begin(struct cw_group *group)
{
    group->is_polled = true;
    group->groups->polled_count++;
    groups_due(group->groups);
    (void)groups_agree_poll(group->groups);
}

void groups_agree_leave(struct cw_group *group)
{
    if (group->stage == STAGE_OPEN && !group->is_polled) {
        poll_begin(group);
    }
}

static void group_fail(struct cw_group *group, enum fail_reason reason, uint32_t rank)
{
    if (group->stage == STAGE_FAILED) {
        return;
    }
    group->stage = STAGE_FAILED;
    group->reason = reason;
    group->reason_rank = rank;
    struct message message = groups_message(group, MESSAGE_FAIL);
    message.reason = (uint8_t)reason;
    message.rank = rank;
    groups_send_all(group, &message);
    groups_filters_finish(&group->groups->filters, group->is_reserved);
    group->is_reserved = false;
    groups_shut(group);
    if (group->is_closed) {
        groups_free(group);
    }
}

/* ---- the leader ---- */

/* Whether all live members have sent at least this. */
static bool all_reported(const struct cw_group *group, enum message_kind kind)
{
    for (uint32_t member = 0; member < group->count; member++) {
        if (group->live[member] && group->said[member] < kind) {
            return false;
        }
    }
    return true;
}

static uint64_t draw(struct cw_groups *groups)
{
    groups->random = groups->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    uint64_t mixed = (groups->random ^ groups->random >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return mixed ^ mixed >> 33;
}

static void everybody_send(struct cw_group *group, const struct message *message)
{
    groups_send_all(group, message);
    groups_send(group, group->ranks[group->self], message);
}

static void all_have_joined(struct cw_group *group)
{
    struct cw_groups *groups = group->groups;
    struct message message = groups_message(group, MESSAGE_OPEN);
    /* no two ranks draw the same number */
    message.id = draw(groups) << 16 | (uint64_t)(groups->config.rank & 0x7fff) << 1 | 1;
    message.address = (uint8_t)groups_filters_choose(group->offers.may, group->offers.has, draw(groups));
    message.delivery = groups->unreached == NO_RANK ? CW_MCAST_BY_NETWORK : CW_MCAST_BY_MEMBERS;
    message.rank = groups->unreached;
    everybody_send(group, &message);
}

static void handle_join(struct cw_group *group, uint32_t member, const struct message *message)
{
    if (group->stage == STAGE_FAILED) {
        return; /* the member was notified of the failure, and finds it when it opens the group */
    }
    if (message->digest != group->digest) {
        group_fail(group, FAIL_DIFFERENT, group->ranks[member]);
        return;
    }
    group->said[member] = MESSAGE_JOIN;
    group->offers.may &= message->offer.may;
    group->offers.has |= message->offer.has;
    if (all_reported(group, MESSAGE_JOIN)) {
        all_have_joined(group);
    }
}

static void handle_progress(struct cw_group *group, uint32_t member, enum message_kind kind)
{
    enum message_kind answer = kind == MESSAGE_READY ? MESSAGE_GO : MESSAGE_GONE;
    group->said[member] = (uint8_t)kind;
    if (all_reported(group, kind)) {
        struct message message = groups_message(group, answer);
        everybody_send(group, &message);
    }
}

/* ---- a member ---- */

struct open_call {
    struct cw_mcast *mcast;
    struct cw_mcast_group_config config;
    struct cw_mcast_group *group;
};

static int group_open(void *argument)
{
    struct open_call *call = argument;
    return cw_mcast_open(call->mcast, &call->config, &call->group, NULL, 0);
}

static int peers_find(const struct cw_group *group, uint32_t *peers)
{
    const struct cw_groups_links *links = &group->groups->config.links;
    int status = CW_OK;
    for (uint32_t member = 0; status == CW_OK && member < group->count; member++) {
        if (member != group->self) {
            status = links->peer(links->context, group->ranks[member], &peers[member]);
        }
    }
    return status;
}

static int mcast_open(struct cw_group *group, const struct message *message)
{
    struct cw_groups *groups = group->groups;
    uint32_t *peers = calloc(group->count, sizeof(*peers));
    struct open_call call = {
        .mcast = groups->config.mcast,
        .config =
            {
                .id = message->id,
                .member_count = group->count,
                .self = group->self,
                .peers = peers,
                .names = group->ranks,
                .context = group,
                .ipv4 = groups->config.address_base + message->address,
                .by_device = message->address >= CW_GROUPS_BY_DEVICE,
                .delivery = message->delivery == CW_MCAST_BY_MEMBERS ? CW_MCAST_BY_MEMBERS : CW_MCAST_BY_NETWORK,
                .epoch = 1,
            },
    };
    int status = peers == NULL ? CW_ERROR_MEMORY : peers_find(group, peers);
    if (status == CW_OK) {
        status = groups->config.links.run(groups->config.links.context, group_open, &call);
    }
    if (status != CW_OK && call.config.by_device) { /* by the port then; members forward the rest */
        groups->device_refuses = true;
        call.config.by_device = false;
        status = groups->config.links.run(groups->config.links.context, group_open, &call);
    }
    free(peers);
    group->mcast = status == CW_OK ? call.group : NULL;
    return status;
}

static void handle_open(struct cw_group *group, const struct message *message)
{
    struct cw_groups *groups = group->groups;
    if (group->stage != STAGE_JOINING || message->address >= CW_GROUPS_ADDRESSES - 1 || message->id == 0) {
        groups->malformed += group->stage != STAGE_FAILED;
        return;
    }
    groups_filters_finish(&groups->filters, group->is_reserved);
    group->is_reserved = false;
    int status = mcast_open(group, message);
    if (status != CW_OK) {
        group_fail(group,
                   status == CW_ERROR_MEMORY  ? FAIL_MEMORY
                   : status == CW_ERROR_LIMIT ? FAIL_LIMIT
                                              : FAIL_PORT,
                   groups->config.rank);
        return;
    }
    group->address = message->address;
    group->is_shared = groups->filters.uses[group->address] > 0;
    group->id = message->id;
    group->unreached = message->rank;
    group->delivery = (enum cw_mcast_delivery)message->delivery;
    groups_filters_acquire(&groups->filters, group->address);
    group->stage = STAGE_READY;
    if (group->is_closed) {
        cw_mcast_mute(group->mcast);
    }
    poll_begin(group);
}

static void handle_go(struct cw_group *group)
{
    if (group->stage != STAGE_READY) {
        return;
    }
    group->stage = STAGE_OPEN;
    groups_probe(group);
    groups_show(group, group->mcast);
    if (group->is_closed) {
        groups_agree_leave(group);
    }
}

static void handle_gone(struct cw_group *group, uint32_t from)
{
    if (group->stage == STAGE_LEAVING && groups_leader(group) == group->self && from != group->self) {
        handle_progress(group, from, MESSAGE_BYE); /* another leader has already released it */
    } else if (group->stage == STAGE_LEAVING) {
        struct message gone = groups_message(group, MESSAGE_GONE);
        for (uint32_t member = 0; member < group->count; member++) {
            if (member != group->self && group->said[member] == MESSAGE_BYE) { /* that took this one for the leader */
                groups_send(group, group->ranks[member], &gone);
            }
        }
        groups_shut(group);
        groups_free(group);
    }
}

/* A member is missing: operations that waited only for it continue. */
static void group_renew(struct cw_group *group)
{
    if (group->stage == STAGE_LEAVING) { /* the leader may have changed; a second message is ignored */
        struct message message = groups_message(group, MESSAGE_BYE);
        leader_send(group, &message);
    }
}

/* The epoch of a membership follows from the set of dead members: the same set has the same epoch at all members, a
 * larger one a later epoch. Two different sets of the same size, known to different members for a moment, differ by
 * their hash. */
static uint32_t epoch_of(const struct cw_group *group)
{
    uint32_t dead = 0;
    uint64_t hash = 0;
    for (uint32_t member = 0; member < group->count; member++) {
        if (!group->live[member]) {
            dead++;
            hash = (hash ^ (member + 1)) * UINT64_C(0x9e3779b97f4a7c15);
            hash ^= hash >> 31;
        }
    }
    return (dead << 19 | (uint32_t)(hash & 0x7ffff)) + 1;
}

struct change_call {
    struct cw_group *group;
    uint32_t epoch;
};

static int group_change(void *argument)
{
    const struct change_call *call = argument;
    return cw_mcast_change(call->group->mcast, call->epoch, call->group->live);
}

/* All members must end with the same set of dead members: so the leader, which is notified of each death, sends the
 * whole set to all. A leader that has become one just now may know of more than the others. */
static void dead_send(struct cw_group *group)
{
    for (uint32_t member = 0; member < group->count; member++) {
        if (!group->live[member]) {
            struct message message = groups_message(group, MESSAGE_DEAD);
            message.rank = group->ranks[member];
            groups_send_all(group, &message);
        }
    }
}

void groups_exclude(struct cw_group *group, uint32_t member, bool is_first_hand)
{
    if (!group->live[member]) {
        return;
    }
    uint32_t rank = group->ranks[member];
    if (group->stage < STAGE_OPEN) {
        group_fail(group, FAIL_DIED, rank); /* Notify the member too: it may be alive. The group may be gone now */
        return;
    }
    group->live[member] = false;
    if (group->stage == STAGE_FAILED) {
        return;
    }
    struct change_call call = {.group = group, .epoch = epoch_of(group)};
    const struct cw_groups_links *links = &group->groups->config.links;
    (void)links->run(links->context, group_change, &call);
    struct message message = groups_message(group, MESSAGE_DEAD);
    message.rank = rank;
    uint32_t leader = groups_leader(group);
    if (leader == group->self) {
        dead_send(group);
    } else if (is_first_hand) {
        groups_send_all(group, &message);
    } else {
        groups_send(group, group->ranks[leader], &message);
    }
    groups_queue(group->groups, rank, &message); /* it may live: then it has to know, and not to wait for us */
    group_renew(group);
}

/* For a group that is not known here. */
static bool unknown_answer(struct cw_groups *groups, uint32_t rank, const struct message *message)
{
    if (message->kind != MESSAGE_BYE && message->kind != MESSAGE_DEAD) {
        return false;
    }
    /* it was open here, or its state is unknown: all had finished when it closed */
    struct message answer = {.kind = MESSAGE_GONE, .rank = NO_RANK, .scope = message->scope, .number = message->number};
    groups_queue(groups, rank, &answer);
    return true;
}

bool groups_agree_receive(struct cw_groups *groups, uint32_t rank, const struct message *message)
{
    struct cw_group *group = groups_find(groups, message->scope, message->number);
    if (group == NULL) {
        return unknown_answer(groups, rank, message);
    }
    uint32_t member = groups_member(group, rank);
    if (member == NO_RANK && message->kind == MESSAGE_JOIN) {
        struct message refusal = groups_message(group, MESSAGE_FAIL);
        refusal.reason = FAIL_DIFFERENT;
        refusal.rank = rank;
        groups_queue(groups, rank, &refusal);
        group_fail(group, FAIL_DIFFERENT, rank);
        return true;
    }
    if (member != NO_RANK && !group->live[member] && message->kind == MESSAGE_BYE) {
        return unknown_answer(groups, rank, message); /* it lives, and is none of this group's any more */
    }
    if (member == NO_RANK || !group->live[member]) {
        groups->malformed++;
        return true;
    }
    uint32_t about = groups_member(group, message->rank);
    switch (message->kind) {
    case MESSAGE_JOIN:
        handle_join(group, member, message);
        break;
    case MESSAGE_OPEN:
        handle_open(group, message);
        break;
    case MESSAGE_READY:
    case MESSAGE_BYE:
        handle_progress(group, member, (enum message_kind)message->kind);
        break;
    case MESSAGE_GO:
        handle_go(group);
        break;
    case MESSAGE_GONE:
        handle_gone(group, member);
        break;
    case MESSAGE_FAIL:
        group_fail(group, message->reason < FAIL_END ? (enum fail_reason)message->reason : FAIL_LIMIT, message->rank);
        break;
    case MESSAGE_SPREAD:
        groups_deliver_by_members(group, message->rank, false);
        break;
    case MESSAGE_DEAD:
        if (about != NO_RANK) { /* a member that has excluded us is excluded here too */
            groups_exclude(group, about == group->self ? member : about, false);
        }
        break;
    default:
        groups->malformed++;
        break;
    }
    return true;
}

/* Members have died: others may have been released by another leader. They report it on request. */
static void leaving_query(struct cw_group *group)
{
    const struct message bye = groups_message(group, MESSAGE_BYE);
    bool is_leader = groups_leader(group) == group->self;
    for (uint32_t member = 0; member < group->count; member++) {
        bool is_awaited = is_leader ? group->said[member] != MESSAGE_BYE : member == groups_leader(group);
        if (is_awaited && member != group->self && group->live[member]) {
            groups_send(group, group->ranks[member], &bye);
        }
    }
}

static bool has_dead(const struct cw_group *group)
{
    uint32_t live = 0;
    for (uint32_t member = 0; member < group->count; member++) {
        live += group->live[member];
    }
    return live < group->count;
}

void cw_groups_probe(struct cw_groups *groups)
{
    const struct cw_groups_links *links = &groups->config.links;
    for (struct cw_group *group = groups->first; group != NULL; group = group->next) {
        uint32_t leader = groups_leader(group);
        if (group->stage == STAGE_LEAVING && has_dead(group)) {
            leaving_query(group);
        }
        enum message_kind awaited = group->stage == STAGE_JOINING ? MESSAGE_JOIN : MESSAGE_READY;
        for (uint32_t member = 0; member < group->count && group->stage < STAGE_OPEN; member++) {
            bool is_late = leader == group->self ? group->said[member] != awaited : member == leader;
            if (is_late && member != group->self && group->live[member]) {
                links->probe(links->context, group->ranks[member]);
            }
        }
    }
}
