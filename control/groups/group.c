/* A group as this process knows it, and the messages to its members that wait to be sent. */
#include <stdlib.h>

#include "control/groups/private.h"

struct cw_group *groups_find(struct cw_groups *groups, uint64_t scope, uint64_t number)
{
    struct cw_group *group = groups->first;
    while (group != NULL && (group->scope != scope || group->number != number)) {
        group = group->next;
    }
    return group;
}

uint32_t groups_member(const struct cw_group *group, uint32_t rank)
{
    for (uint32_t member = 0; member < group->count; member++) {
        if (group->ranks[member] == rank) {
            return member;
        }
    }
    return NO_RANK;
}

void groups_show(struct cw_group *group, struct cw_mcast_group *mcast)
{
    if (group->shown != NULL) {
        *group->shown = mcast;
    }
}

static int group_shut(void *argument)
{
    cw_mcast_shut(argument);
    return CW_OK;
}

void groups_shut(struct cw_group *group)
{
    struct cw_groups *groups = group->groups;
    const struct cw_groups_links *links = &groups->config.links;
    if (group->mcast == NULL) {
        return;
    }
    groups_show(group, NULL);
    groups->polled_count -= group->is_polled;
    group->is_polled = false;
    (void)links->run(links->context, group_shut, group->mcast);
    group->mcast = NULL;
    groups_filters_release(&groups->filters, group->address);
}

void groups_memory_free(struct cw_group *group)
{
    free(group->ranks);
    free(group->live);
    free(group->said);
    free(group);
}

void groups_free(struct cw_group *group)
{
    struct cw_group **link = &group->groups->first;
    while (*link != group) {
        link = &(*link)->next;
    }
    *link = group->next;
    groups_filters_finish(&group->groups->filters, group->is_reserved);
    groups_memory_free(group);
}

uint32_t groups_leader(const struct cw_group *group)
{
    uint32_t member = 0;
    while (member < group->count && !group->live[member]) {
        member++;
    }
    return member;
}

struct message groups_message(const struct cw_group *group, enum message_kind kind)
{
    return (struct message){.kind = (uint8_t)kind, .scope = group->scope, .number = group->number, .rank = NO_RANK};
}

void groups_due(const struct cw_groups *groups)
{
    if (groups->config.links.is_due != NULL) {
        *groups->config.links.is_due = true;
    }
}

void groups_queue(struct cw_groups *groups, uint32_t rank, const struct message *message)
{
    struct waiting *waiting = malloc(sizeof(*waiting));
    if (waiting == NULL) {
        groups->malformed++; /* no memory for a message; the watchdog reports the ranks that wait */
        return;
    }
    *waiting = (struct waiting){.rank = rank, .message = *message};
    *(groups->out_last == NULL ? &groups->out_first : &groups->out_last->next) = waiting;
    groups->out_last = waiting;
    groups_due(groups);
}

void groups_send(struct cw_group *group, uint32_t rank, const struct message *message)
{
    groups_queue(group->groups, rank, message);
}

void groups_send_all(struct cw_group *group, const struct message *message)
{
    for (uint32_t member = 0; member < group->count; member++) {
        if (member != group->self && group->live[member]) {
            groups_send(group, group->ranks[member], message);
        }
    }
}
