/* What goes and comes by multicast. */
#include <assert.h>

#include "control/groups/private.h"
#include "dataplane/status.h"

enum { EVENTS_AT_ONCE = 32 };

#define TAG_PROBE 0xffffffffu /* of messages that only show whether they come */

struct events_call {
    struct cw_mcast *mcast;
    struct cw_mcast_event events[EVENTS_AT_ONCE];
    uint32_t count;
};

static int events_get(void *argument)
{
    struct events_call *call = argument;
    call->count = cw_mcast_events(call->mcast, call->events, EVENTS_AT_ONCE);
    return CW_OK;
}

/* Gives the slots of all messages back that have been looked at. */
static int events_release(void *argument)
{
    const struct events_call *call = argument;
    for (uint32_t i = 0; i < call->count; i++) {
        if (call->events[i].kind == CW_MCAST_MESSAGE) {
            (void)cw_mcast_release(call->events[i].group, call->events[i].member);
        }
    }
    return CW_OK;
}

static void event_take(struct cw_groups *groups, const struct cw_mcast_event *event)
{
    const struct cw_groups_links *links = &groups->config.links;
    struct cw_group *group = event->owner;
    switch (event->kind) {
    case CW_MCAST_MESSAGE:
        if (event->lane_tag != TAG_PROBE && !group->is_closed) {
            links->message(links->context, group, group->ranks[event->member], event->data, event->bytes);
        }
        break;
    case CW_MCAST_COMPLETE:
        group->under_way--;
        if (event->lane_tag != TAG_PROBE) {
            links->complete(links->context, event->context, event->status);
        }
        if (group->is_closed) {
            groups_agree_leave(group);
        }
        break;
    case CW_MCAST_LAGGARD:
        groups->laggard = group->ranks[event->member];
        if (group->live[event->member]) { /* slow, or gone */
            links->ask(links->context, groups->laggard);
        }
        break;
    case CW_MCAST_UNREACHED:
        groups_deliver_by_members(group, group->ranks[event->member], true);
        break;
    case CW_MCAST_ARRIVED: /* nothing is registered */
        break;
    }
}

uint32_t groups_events_take(struct cw_groups *groups)
{
    const struct cw_groups_links *links = &groups->config.links;
    struct events_call call = {.mcast = groups->config.mcast};
    uint32_t count = 0;
    do {
        (void)links->run(links->context, events_get, &call);
        bool has_messages = false;
        for (uint32_t i = 0; i < call.count; i++) {
            has_messages = has_messages || call.events[i].kind == CW_MCAST_MESSAGE;
            event_take(groups, &call.events[i]);
        }
        if (has_messages) {
            (void)links->run(links->context, events_release, &call);
        }
        count += call.count;
    } while (call.count == EVENTS_AT_ONCE);
    return count;
}

static int group_shut(void *argument)
{
    cw_mcast_shut(argument);
    return CW_OK;
}

void groups_shut(struct cw_group *group)
{
    struct cw_groups *groups = group->groups;
    if (group->mcast == NULL) {
        return;
    }
    (void)groups_events_take(groups); /* what comes from here on is not looked at any more */
    (void)groups->config.links.run(groups->config.links.context, group_shut, group->mcast);
    group->mcast = NULL;
    (void)groups_events_take(groups); /* its own messages have ended */
    groups_filters_give(&groups->filters, group->address);
}

struct send_call {
    struct cw_group *group;
    struct cw_mcast_put put;
};

static int group_send(void *argument)
{
    struct send_call *call = argument;
    return cw_mcast_send(call->group->mcast, &call->put);
}

static int put_send(struct cw_group *group, const struct cw_mcast_put *put)
{
    struct send_call call = {.group = group, .put = *put};
    const struct cw_groups_links *links = &group->groups->config.links;
    int status = links->run(links->context, group_send, &call);
    group->under_way += status == CW_OK;
    return status;
}

static int flood_probe_send(void *argument)
{
    const struct cw_group *group = argument;
    cw_mcast_flood_probe(group->mcast);
    return CW_OK;
}

void groups_probe(struct cw_group *group)
{
    struct cw_mcast_put put = {.lane_tag = TAG_PROBE, .flags = CW_MCAST_SIGNAL};
    (void)put_send(group, &put); /* without memory the first message is the probe */
}

void groups_flood_probe(struct cw_group *group)
{
    const struct cw_groups_links *links = &group->groups->config.links;
    (void)links->run(links->context, flood_probe_send, group);
}

int cw_group_send(struct cw_group *group, const void *head, uint32_t head_bytes, const void *data, uint64_t bytes,
                  uint64_t put_context)
{
    assert(!group->is_closed);
    if (group->stage != STAGE_OPEN) {
        return group->stage == STAGE_FAILED ? CW_ERROR_UNSUPPORTED : CW_ERROR_AGAIN;
    }
    struct cw_mcast_put put = {
        .head = head,
        .head_bytes = head_bytes,
        .data = data,
        .bytes = bytes,
        .context = put_context,
        .flags = CW_MCAST_SIGNAL,
    };
    return put_send(group, &put);
}

uint64_t cw_group_message_max(const struct cw_groups *groups)
{
    return cw_mcast_short_max(groups->config.mcast);
}
