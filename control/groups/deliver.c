/* What goes and comes by multicast. */
#include <assert.h>

#include "control/groups/private.h"
#include "dataplane/status.h"

/* Of messages that only show whether they come. */
#define TAG_PROBE     0xffffffffu
#define PROBE_CONTEXT UINT64_MAX

/* ---- what has come ---- */

static int releases_give(void *argument)
{
    struct cw_groups *groups = argument;
    for (uint32_t i = 0; i < groups->release_count; i++) {
        (void)cw_mcast_release(groups->releases[i].group->mcast, groups->releases[i].member);
    }
    groups->release_count = 0;
    return CW_OK;
}

void groups_release(struct cw_groups *groups)
{
    (void)groups->config.links.run(groups->config.links.context, releases_give, groups);
}

/* It may be gone: what it has given last is still on its way. */
static struct cw_group *group_of(struct cw_groups *groups, uint64_t id)
{
    struct cw_group *group = groups->recent;
    if (group == NULL || group->id != id) {
        group = groups->first;
        while (group != NULL && (group->mcast == NULL || group->id != id)) {
            group = group->next;
        }
        groups->recent = group;
    }
    return group;
}

static void message_take(struct cw_groups *groups, struct cw_group *group, const struct cw_event *event)
{
    const struct cw_groups_links *links = &groups->config.links;
    if (event->lane_tag != TAG_PROBE && !group->is_closed) {
        links->message(links->context, group, group->ranks[event->member], event->data, event->bytes);
    }
    if (group_of(groups, event->group) != group) {
        return;
    }
    groups->releases[groups->release_count++] = (struct groups_release){group, event->member};
    if (groups->release_count == GROUPS_RELEASES) {
        groups_release(groups);
    }
}

static void complete_take(struct cw_groups *groups, struct cw_group *group, const struct cw_event *event)
{
    const struct cw_groups_links *links = &groups->config.links;
    if (group != NULL) {
        group->under_way--;
        if (group->is_closed) {
            groups_agree_leave(group);
        }
    }
    if (event->context != PROBE_CONTEXT) {
        links->complete(links->context, event->context, CW_OK);
    }
}

void cw_groups_event(struct cw_groups *groups, const struct cw_event *event)
{
    const struct cw_groups_links *links = &groups->config.links;
    struct cw_group *group = group_of(groups, event->group);
    if (event->kind == CW_EVENT_GROUP_COMPLETE) {
        complete_take(groups, group, event);
    } else if (group == NULL) {
        return;
    } else if (event->kind == CW_EVENT_GROUP_MESSAGE) {
        message_take(groups, group, event);
    } else if (event->kind == CW_EVENT_GROUP_UNREACHED) {
        groups_deliver_by_members(group, group->ranks[event->member], true);
    } else if (event->kind == CW_EVENT_GROUP_LAGGARD) {
        groups->laggard = group->ranks[event->member];
        if (group->live[event->member]) { /* slow, or gone */
            links->ask(links->context, groups->laggard);
        }
    }
}

struct shut_call {
    struct cw_mcast_group *group;
    uint64_t *contexts;
    uint32_t count;
    uint32_t complete_count; /* the first ones */
};

static int group_shut(void *argument)
{
    struct shut_call *call = argument;
    call->count = cw_mcast_shut(call->group, call->contexts, &call->complete_count);
    return CW_OK;
}

void groups_shut(struct cw_group *group)
{
    struct cw_groups *groups = group->groups;
    const struct cw_groups_links *links = &groups->config.links;
    if (group->mcast == NULL) {
        return;
    }
    groups->joining_count -= group->is_joining;
    group->is_joining = false;
    groups_release(groups); /* they name it */
    struct shut_call call = {.group = group->mcast, .contexts = group->contexts};
    (void)links->run(links->context, group_shut, &call);
    group->mcast = NULL;
    groups->recent = NULL;
    groups_filters_give(&groups->filters, group->address);
    group->is_shutting = true; /* who hears of the last of its messages may close it */
    for (uint32_t i = 0; i < call.count; i++) {
        if (group->contexts[i] != PROBE_CONTEXT) {
            links->complete(links->context, group->contexts[i], i < call.complete_count ? CW_OK : CW_ERROR_CLOSED);
        }
    }
    group->is_shutting = false;
}

/* ---- what goes ---- */

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
    struct cw_mcast_put put = {.lane_tag = TAG_PROBE, .context = PROBE_CONTEXT, .flags = CW_MCAST_SIGNAL};
    (void)put_send(group, &put); /* without memory the first message is the probe */
}

void groups_flood_probe(struct cw_group *group)
{
    const struct cw_groups_links *links = &group->groups->config.links;
    (void)links->run(links->context, flood_probe_send, group);
}

int cw_group_send(struct cw_group *group, const struct cw_mcast_put *put)
{
    assert(!group->is_closed && put->context != PROBE_CONTEXT);
    if (group->stage != STAGE_OPEN) {
        return group->stage == STAGE_FAILED ? CW_ERROR_UNSUPPORTED : CW_ERROR_AGAIN;
    }
    struct cw_mcast_put signalled = *put;
    signalled.flags = CW_MCAST_SIGNAL;
    signalled.lane_tag = 0;
    signalled.is_long = false;
    return put_send(group, &signalled);
}

struct compression_call {
    const struct cw_mcast_group *group;
    enum cw_element element;
    struct cw_compression_report *report;
};

static int compression_tell(void *argument)
{
    const struct compression_call *call = argument;
    return cw_mcast_compression(call->group, call->element, call->report) ? CW_OK : CW_ERROR_NOT_FOUND;
}

bool cw_group_compression(const struct cw_group *group, enum cw_element element, struct cw_compression_report *report)
{
    const struct cw_groups_links *links = &group->groups->config.links;
    struct compression_call call = {group->mcast, element, report};
    return group->mcast != NULL && links->run(links->context, compression_tell, &call) == CW_OK;
}

uint64_t cw_group_message_max(const struct cw_groups *groups)
{
    return cw_mcast_short_max(groups->config.mcast);
}
