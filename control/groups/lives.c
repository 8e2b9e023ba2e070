/* Members that die, and networks that do not reach them. */
#include <stdlib.h>

#include "control/groups/private.h"
#include "dataplane/status.h"

/* ---- death ---- */

/* The epoch of a membership follows from who has died: the same set has the same epoch at all, a larger one a later
 * epoch. Two different sets of the same size, known to different members for a moment, differ by their hash. */
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

/* All members have to end with the same set of dead ones: so the leader, who hears of each, tells all of all of them. A
 * leader that has become one just now may have heard of more than the others. */
static void dead_tell(struct cw_group *group)
{
    for (uint32_t member = 0; member < group->count; member++) {
        if (!group->live[member]) {
            struct message message = groups_message(group, MESSAGE_DEAD);
            message.rank = group->ranks[member];
            groups_tell_all(group, &message);
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
        groups_fail(group, FAIL_DIED, rank); /* the member is told, too: it may live. The group may be gone now */
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
        dead_tell(group);
    } else if (is_first_hand) {
        groups_tell_all(group, &message);
    } else {
        groups_tell(group, group->ranks[leader], &message);
    }
    groups_queue(group->groups, rank, &message); /* it may live: then it has to know, and not to wait for us */
    groups_agree_renew(group);
}

/* ---- reach ---- */

void cw_group_laggard(void *group, uint32_t rank)
{
    const struct cw_group *late = group;
    const struct cw_groups_links *links = &late->groups->config.links;
    late->groups->laggard = rank;
    if (late->live[groups_member(late, rank)]) { /* slow, or gone */
        links->ask(links->context, rank);
    }
}

void cw_group_unreached(void *group, uint32_t rank)
{
    groups_deliver_by_members(group, rank, true);
}

static int probe(void *argument)
{
    const struct cw_group *group = argument;
    cw_mcast_flood_probe(group->mcast);
    if (groups_leader(group) == group->self && group->delivery == CW_MCAST_BY_NETWORK) {
        /* without memory the first message is the probe */
        (void)cw_mcast_send(group->mcast, &(struct cw_mcast_put){.lane_tag = CW_MCAST_TAG_PROBE});
    }
    return CW_OK;
}

void groups_probe(struct cw_group *group)
{
    (void)group->groups->config.links.run(group->groups->config.links.context, probe, group);
}

static int group_deliver_by_members(void *argument)
{
    struct cw_group *group = argument;
    cw_mcast_delivery_set(group->mcast, CW_MCAST_BY_MEMBERS);
    return CW_OK;
}

void groups_deliver_by_members(struct cw_group *group, uint32_t rank, bool is_first_hand)
{
    struct cw_groups *groups = group->groups;
    groups->unreached = groups->unreached == NO_RANK ? rank : groups->unreached;
    if (group->delivery == CW_MCAST_BY_MEMBERS || group->mcast == NULL) {
        return;
    }
    group->delivery = CW_MCAST_BY_MEMBERS;
    group->unreached = rank;
    (void)groups->config.links.run(groups->config.links.context, group_deliver_by_members, group);
    if (is_first_hand) { /* so that the others need not find out one by one */
        struct message message = groups_message(group, MESSAGE_SPREAD);
        message.rank = rank;
        groups_tell_all(group, &message);
    }
}
