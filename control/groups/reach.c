/* Networks whose multicast does not reach all members. */
#include "control/groups/private.h"
#include "dataplane/status.h"

void cw_group_laggard(void *group, uint32_t rank)
{
    const struct cw_group *late = group;
    const struct cw_groups_links *links = &late->groups->config.links;
    late->groups->laggard = rank;
    if (late->live[groups_member(late, rank)]) { /* slow, or gone */
        links->probe(links->context, rank);
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
        groups_send_all(group, &message);
    }
}
