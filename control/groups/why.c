/* Texts about a group, for users. */
#include <inttypes.h>
#include <stdio.h>

#include "control/groups/private.h"
#include "dataplane/status.h"

enum cw_group_state cw_group_state(const struct cw_group *group)
{
    return group->stage == STAGE_FAILED                                  ? CW_GROUP_FAILED
           : group->stage == STAGE_OPEN || group->stage == STAGE_LEAVING ? CW_GROUP_OPEN
                                                                         : CW_GROUP_OPENING;
}

void *cw_group_context(const struct cw_group *group)
{
    return group->context;
}

uint32_t cw_groups_awaited(const struct cw_groups *groups)
{
    for (const struct cw_group *group = groups->first; group != NULL; group = group->next) {
        uint32_t leader = groups_leader(group);
        if (group->is_closed && leader != group->self) {
            return group->ranks[leader];
        }
        for (uint32_t member = 0; group->is_closed && member < group->count; member++) {
            if (member != group->self && group->live[member] && group->said[member] != MESSAGE_BYE) {
                return group->ranks[member];
            }
        }
    }
    return UINT32_MAX;
}

static void why_failed(const struct cw_group *group, char *text, size_t text_bytes)
{
    static const char *const reasons[FAIL_END] = {
        [FAIL_DIFFERENT] = "opens it with other members",
        [FAIL_DIED] = "died while it was opened",
        [FAIL_LIMIT] = "has no room for another group",
        [FAIL_MEMORY] = "has no memory for it",
        [FAIL_PORT] = "cannot have its port join, or does not reach a member",
    };
    snprintf(text, text_bytes, "cannot be opened: rank %" PRIu32 " %s", group->reason_rank,
             reasons[group->reason] != NULL ? reasons[group->reason] : "refuses");
}

void cw_group_why(const struct cw_group *group, char *text, size_t text_bytes)
{
    if (group->stage == STAGE_FAILED) {
        why_failed(group, text, text_bytes);
        return;
    }
    if (group->stage < STAGE_OPEN) {
        uint32_t leader = groups_leader(group);
        for (uint32_t member = 0; leader == group->self && member < group->count; member++) {
            if (group->said[member] == 0) {
                snprintf(text, text_bytes, "waits for rank %" PRIu32 " to open it", group->ranks[member]);
                return;
            }
        }
        snprintf(text, text_bytes, "waits for rank %" PRIu32 " to say that all have opened it", group->ranks[leader]);
        return;
    }
    if (group->delivery == CW_MCAST_BY_MEMBERS) {
        snprintf(text, text_bytes,
                 "multicast packets do not reach rank %" PRIu32 ": members pass them on (does a switch drop them?)",
                 group->unreached);
        return;
    }
    snprintf(text, text_bytes, "multicast%s%s",
             group->address >= CW_GROUPS_BY_DEVICE ? " by datagrams of RDMA devices" : "",
             group->is_shared ? ", at an address that it shares" : "");
}

struct compression_call {
    const struct cw_mcast_group *group;
    enum cw_element element;
    struct cw_compression_report *report;
};

static int compression_query(void *argument)
{
    const struct compression_call *call = argument;
    return cw_mcast_compression(call->group, call->element, call->report) ? CW_OK : CW_ERROR_NOT_FOUND;
}

bool cw_group_compression(const struct cw_group *group, enum cw_element element, struct cw_compression_report *report)
{
    const struct cw_groups_links *links = &group->groups->config.links;
    struct compression_call call = {group->mcast, element, report};
    return group->mcast != NULL && links->run(links->context, compression_query, &call) == CW_OK;
}

struct counters_call {
    struct cw_mcast *mcast;
    struct cw_mcast_counters counters;
};

static int counters_get(void *argument)
{
    struct counters_call *call = argument;
    call->counters = cw_mcast_counters(call->mcast);
    return CW_OK;
}

struct cw_groups_info cw_groups_info(struct cw_groups *groups)
{
    struct counters_call call = {.mcast = groups->config.mcast};
    (void)groups->config.links.run(groups->config.links.context, counters_get, &call);
    struct cw_groups_info info = {
        .filters = groups_filters_count(&groups->filters),
        .malformed = groups->malformed,
        .unreached = groups->unreached,
        .floods = call.counters.flood_probes > 0,
        .packets = call.counters,
        .laggard = groups->laggard,
    };
    for (const struct cw_group *group = groups->first; group != NULL; group = group->next) {
        info.open += group->mcast != NULL;
        info.shared += group->mcast != NULL && group->is_shared;
    }
    return info;
}
