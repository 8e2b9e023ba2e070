/* Groups: their members and their streams. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/port/error_text.h"
#include "mcast/state.h"

/* ---- members ---- */

const struct cw_wire_key *mcast_key(struct cw_mcast_group *group, uint32_t member)
{
    struct member *found = &group->members[member];
    if (!found->has_key) {
        cw_extension_key(group->mcast->endpoint, group->id, member, &found->key);
        found->has_key = true;
    }
    return &found->key;
}

/* The tree's tables, after the live members have changed. */
static void tree_renew(struct cw_mcast_group *group)
{
    uint32_t live = 0;
    for (uint32_t member = 0; member < group->member_count; member++) {
        group->tree_places[member] = live;
        if (group->members[member].is_live) {
            group->tree_live[live++] = member;
        }
    }
    group->tree.live_count = group->relay.live_count = live;
}

/* ---- streams ---- */

struct stream *mcast_stream(struct cw_mcast_group *group, uint32_t sender)
{
    struct stream *stream = group->streams[sender];
    if (stream != NULL) {
        return stream;
    }
    stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    stream->group = group;
    stream->sender = sender;
    int status = sender == group->self ? mcast_sending_make(stream) : mcast_receiving_make(stream);
    if (status == CW_OK) {
        status = mcast_ack_make(stream);
    }
    if (status != CW_OK) {
        mcast_ack_destroy(stream);
        mcast_sending_destroy(stream);
        mcast_receiving_destroy(stream);
        free(stream);
        return NULL;
    }
    group->streams[sender] = stream;
    return stream;
}

static void stream_destroy(struct stream *stream)
{
    mcast_notify_end(stream);
    mcast_ack_destroy(stream);
    mcast_sending_destroy(stream);
    mcast_receiving_destroy(stream);
    free(stream);
}

/* ---- groups ---- */

static struct cw_mcast_group **bucket_of(struct cw_mcast *mcast, uint64_t id)
{
    return &mcast->buckets[id % GROUP_BUCKETS];
}

struct cw_mcast_group *mcast_group_find(const struct cw_mcast *mcast, uint64_t id)
{
    struct cw_mcast_group *group = mcast->buckets[id % GROUP_BUCKETS];
    while (group != NULL && group->id != id) {
        group = group->next;
    }
    return group;
}

static enum cw_extension_carrier carrier_of(const struct cw_mcast_group_config *config)
{
    return config->by_device ? CW_CARRIER_DEVICE : CW_CARRIER_PORT;
}

static int config_check(const struct cw_mcast *mcast, const struct cw_mcast_group_config *config, char *error,
                        size_t error_bytes)
{
    const char *wrong = config->id == 0                               ? "id is 0, which names no group"
                        : mcast_group_find(mcast, config->id) != NULL ? "a group with this id is open"
                        : config->member_count < 2                    ? "member_count is below 2"
                        : config->member_count > CW_MCAST_MEMBERS_MAX ? "member_count is above CW_MCAST_MEMBERS_MAX"
                        : config->self >= config->member_count        ? "self is not below member_count"
                        : config->ipv4 >> 28 != 0xe ? "ipv4 is not within 224.0.0.0/4, host byte order"
                        : config->epoch == 0        ? "epoch is 0; the first one is 1"
                                                    : NULL;
    if (wrong != NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT, "group: %s", wrong);
    }
    if (config->by_device && cw_extension_payload_by_device(mcast->endpoint) < CW_MCAST_PAYLOAD_LEAST) {
        return cw_error_text(error, error_bytes, CW_ERROR_UNSUPPORTED,
                             "group: by_device, but the endpoint has no RDMA device that takes part in groups");
    }
    for (uint32_t member = 0; member < config->member_count; member++) {
        if (member != config->self && !cw_extension_knows(mcast->endpoint, config->peers[member])) {
            return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                                 "group: peers[%u] is %u, which is no peer of the endpoint; add it first", member,
                                 config->peers[member]);
        }
    }
    if (mcast->group_count >= mcast->config.group_count_max) {
        return cw_error_text(error, error_bytes, CW_ERROR_LIMIT,
                             "group: %u groups are open, which is group_count_max of struct cw_mcast_config",
                             mcast->group_count);
    }
    return CW_OK;
}

static void group_free(struct cw_mcast_group *group)
{
    free(group->members);
    free(group->streams);
    free(group->tree_places);
    free(group->tree_live);
    free(group);
}

static struct cw_mcast_group *group_make(struct cw_mcast *mcast, const struct cw_mcast_group_config *config)
{
    struct cw_mcast_group *group = calloc(1, sizeof(*group));
    uint32_t count = config->member_count;
    if (group == NULL) {
        return NULL;
    }
    *group = (struct cw_mcast_group){
        .mcast = mcast,
        .context = config->context,
        .id = config->id,
        .self = config->self,
        .member_count = count,
        .members = calloc(count, sizeof(struct member)),
        .streams = calloc(count, sizeof(struct stream *)),
        .epoch = config->epoch,
        .control_next = 1, /* newer than nothing, at a member without any */
        .by_device = config->by_device,
        .delivery = config->delivery,
        .tree_places = calloc(count, sizeof(uint32_t)),
        .tree_live = calloc(count, sizeof(uint32_t)),
    };
    if (group->members == NULL || group->streams == NULL || group->tree_places == NULL || group->tree_live == NULL) {
        group_free(group);
        return NULL;
    }
    for (uint32_t member = 0; member < count; member++) {
        group->members[member].peer = member == config->self ? NOBODY : config->peers[member];
        group->members[member].name = config->names == NULL ? member : config->names[member];
        group->members[member].is_live = true;
    }
    group->tree = (struct cw_mcast_tree){
        .member_count = count,
        .arity = config->arity == 0 ? CW_MCAST_ARITY : config->arity,
        .places = group->tree_places,
        .live = group->tree_live,
    };
    group->relay = group->tree;
    group->relay.arity = CW_MCAST_RELAY_ARITY;
    tree_renew(group);
    cw_extension_group(mcast->endpoint, config->ipv4, carrier_of(config), &group->all);
    group->payload_max = UINT32_MAX;
    if (config->by_device) {
        group->payload_max = cw_extension_payload_by_device(mcast->endpoint) - (uint32_t)sizeof(struct cw_mcast_data);
    }
    return group;
}

int cw_mcast_open(struct cw_mcast *mcast, const struct cw_mcast_group_config *config, struct cw_mcast_group **group,
                  char *error, size_t error_bytes)
{
    int status = config_check(mcast, config, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_mcast_group *made = group_make(mcast, config);
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "group: no memory for %u members%s",
                             config->member_count, cw_errno_remedy(ENOMEM));
    }
    status = mcast_membership_begin(mcast, &made->membership, config->ipv4, carrier_of(config));
    if (status != CW_OK) {
        group_free(made);
        return cw_error_text(error, error_bytes, status, "group: its multicast address cannot be joined: %s",
                             cw_status_text(status));
    }
    made->next = *bucket_of(mcast, made->id);
    *bucket_of(mcast, made->id) = made;
    mcast->group_count++;
    *group = made;
    return CW_OK;
}

void mcast_group_free(struct cw_mcast_group *group)
{
    for (uint32_t sender = 0; sender < group->member_count; sender++) {
        if (group->streams[sender] != NULL) {
            stream_destroy(group->streams[sender]);
        }
    }
    group_free(group);
}

void cw_mcast_shut(struct cw_mcast_group *group)
{
    struct cw_mcast *mcast = group->mcast;
    struct stream *own = group->streams[group->self];
    struct cw_mcast_group **link = bucket_of(mcast, group->id);
    while (*link != group) {
        link = &(*link)->next;
    }
    *link = group->next;
    mcast->group_count--;
    mcast_membership_end(mcast, &group->membership);
    for (uint32_t sender = 0; sender < group->member_count; sender++) {
        if (group->streams[sender] != NULL && sender != group->self) {
            stream_destroy(group->streams[sender]);
            group->streams[sender] = NULL;
        }
    }
    group->is_shut = true;
    if (own != NULL) {
        mcast_send_end(own);
    }
    if (own == NULL || !own->is_waiting) {
        mcast_group_free(group);
    }
}

int cw_mcast_change(struct cw_mcast_group *group, uint32_t epoch, const bool *live)
{
    if (epoch <= group->epoch || !live[group->self]) {
        return CW_ERROR_ARGUMENT;
    }
    for (uint32_t member = 0; member < group->member_count; member++) {
        if (live[member] && !group->members[member].is_live) {
            return CW_ERROR_ARGUMENT;
        }
    }
    group->epoch = epoch;
    for (uint32_t member = 0; member < group->member_count; member++) {
        group->members[member].is_live = live[member];
    }
    tree_renew(group);
    for (uint32_t sender = 0; sender < group->member_count; sender++) {
        struct stream *stream = group->streams[sender];
        if (stream != NULL && stream->sending != NULL) {
            mcast_send_epoch(stream);
        }
        if (stream != NULL && !group->members[sender].is_live) { /* the stream has no sender to notify */
            mcast_timer_stop(&stream->receiving->nak_timer);
            mcast_timer_stop(&stream->report.timer);
        }
        if (stream != NULL) {
            mcast_ack_renew(stream);
        }
    }
    return CW_OK;
}
