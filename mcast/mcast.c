/* The extension: packets and timers of groups, and events. */
#include "mcast/mcast.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mcast/state.h"

enum { PORT_RETRY_NS = 1000 };

/* ---- events ---- */

bool mcast_notify(struct stream *stream, enum notice notice, struct cw_event event)
{
    struct cw_mcast *mcast = stream->group->mcast;
    event.kind = CW_EVENT_EXTENSION;
    event.slot = notice;
    event.region = (uint64_t)(uintptr_t)stream;
    bool is_given = cw_extension_event(mcast->endpoint, &event,
                                       notice == NOTICE_COMPLETE ? UINT32_MAX : mcast->config.event_count_max);
    mcast->events_given += is_given;
    mcast->is_full = mcast->is_full || !is_given;
    return is_given;
}

static void message_handle(struct stream *stream, const struct cw_event *event, uint32_t name)
{
    struct cw_mcast_group *group = stream->group;
    struct cw_mcast *mcast = group->mcast;
    bool is_heard = mcast->config.handler.message != NULL && !group->is_muted;
    if (is_heard && event->lane_tag != CW_MCAST_TAG_PROBE) {
        mcast->config.handler.message(group->context, name, event->lane_tag, event->data, event->bytes);
    }
    if (event->region != 0) { /* the handler has not shut the group; pairs with the acquire in notices_turn */
        atomic_fetch_add_explicit(&stream->receiving->short_taken, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&mcast->taken, 1, memory_order_release);
    }
}

/* In the application's thread. */
static void extension_event(struct cw_extension *extension, const struct cw_event *event)
{
    const struct cw_mcast_handler *handler = &((struct cw_mcast *)extension)->config.handler;
    struct stream *stream = (struct stream *)(uintptr_t)event->region;
    const struct cw_mcast_group *group = stream == NULL ? NULL : stream->group;
    void *context = group == NULL ? NULL : group->context;
    uint32_t name = group == NULL ? NOBODY : group->members[event->peer].name;
    if (event->slot == NOTICE_COMPLETE && handler->complete != NULL) {
        handler->complete(context, event->context, event->status);
    } else if (group == NULL) {
        return;
    } else if (event->slot == NOTICE_MESSAGE) {
        message_handle(stream, event, name);
    } else if (event->slot == NOTICE_ARRIVED && handler->arrived != NULL && !group->is_muted) {
        handler->arrived(context, name, event->lane_tag, event->bytes, event->context, event->status);
    } else if (event->slot == NOTICE_LAGGARD && handler->laggard != NULL) {
        handler->laggard(context, name);
    } else if (event->slot == NOTICE_UNREACHED && handler->unreached != NULL) {
        handler->unreached(context, name);
    }
}

void mcast_wait(struct stream *stream)
{
    if (!stream->is_waiting) {
        stream->is_waiting = true;
        stream->waiting_next = stream->group->mcast->waiting_first;
        stream->group->mcast->waiting_first = stream;
    }
}

void mcast_notify_end(struct stream *stream)
{
    struct stream **link = &stream->group->mcast->waiting_first;
    cw_extension_event_orphan(stream->group->mcast->endpoint, (uint64_t)(uintptr_t)stream);
    if (stream->is_waiting) {
        while (*link != stream) {
            link = &(*link)->waiting_next;
        }
        *link = stream->waiting_next;
        stream->is_waiting = false;
    }
}

/* Slots are returned, and events that found no room are tried again. */
static uint32_t waiting_turn(struct cw_mcast *mcast)
{
    struct stream *stream = mcast->waiting_first;
    uint64_t given = mcast->events_given;
    mcast->waiting_first = NULL;
    mcast->is_full = false;
    /* pairs with the release in message_handle */
    mcast->taken_seen = atomic_load_explicit(&mcast->taken, memory_order_acquire);
    while (stream != NULL) {
        struct stream *next = stream->waiting_next;
        stream->is_waiting = false;
        if (stream->sending != NULL) {
            mcast_send_notify(stream);
        } else {
            mcast_deliver(stream);
        }
        if (stream->group->is_shut && !stream->is_waiting) {
            mcast_group_free(stream->group);
        }
        stream = next;
    }
    return (uint32_t)(mcast->events_given - given);
}

/* ---- timers ---- */

void mcast_timer_init(struct timer *timer, enum timer_kind kind, struct stream *stream)
{
    *timer = (struct timer){.kind = kind, .mcast = stream->group->mcast, .stream = stream};
}

void mcast_timer_by(struct timer *timer, uint64_t time_ns)
{
    struct cw_wheel *wheel = &timer->mcast->wheel;
    if (mcast_timer_runs(timer)) {
        if (timer->entry.time_ns <= time_ns) {
            return;
        }
        cw_wheel_remove(wheel, &timer->entry);
    }
    cw_wheel_insert(wheel, &timer->entry, time_ns);
}

void mcast_timer_stop(struct timer *timer)
{
    if (mcast_timer_runs(timer)) {
        cw_wheel_remove(&timer->mcast->wheel, &timer->entry);
    }
}

static uint32_t timers_turn(struct cw_mcast *mcast)
{
    static void (*const due[])(struct stream * stream) = {
        [TIMER_NAK] = mcast_nak_due,
        [TIMER_REPORT] = mcast_ack_due,
        [TIMER_STATE] = mcast_send_state_due,
    };
    uint32_t count = 0;
    struct cw_wheel_entry *entry;
    while ((entry = cw_wheel_expire(&mcast->wheel, mcast->now_ns)) != NULL) {
        const struct timer *timer = (const struct timer *)entry;
        if (timer->kind == TIMER_MEMBERSHIP) {
            mcast_membership_due(mcast, timer->membership);
        } else {
            due[timer->kind](timer->stream);
        }
        count++;
    }
    return count;
}

/* ---- packets out ---- */

static bool packet_write(struct stream *stream, const struct outgoing *packet, const struct cw_wire_receiver *receiver)
{
    struct cw_mcast_group *group = stream->group;
    struct cw_endpoint *endpoint = group->mcast->endpoint;
    bool has_room = !receiver->by_device || cw_extension_device_has_room(endpoint);
    uint8_t *at = has_room ? cw_extension_stage(endpoint) : NULL;
    if (at == NULL) {
        return false;
    }
    const struct receiving *receiving = stream->receiving;
    uint32_t before_bytes = packet->fixed_bytes + packet->head_bytes;
    uint32_t checksum = cw_wire_checksum_copy(0, at, packet->fixed, packet->fixed_bytes);
    if (packet->head_bytes > 0) {
        checksum = cw_wire_checksum_copy(checksum, at + packet->fixed_bytes, packet->head, packet->head_bytes);
    }
    if (packet->data_bytes > 0) {
        checksum = cw_wire_checksum_copy(checksum, at + before_bytes, packet->data, packet->data_bytes);
    }
    struct cw_extension_header header = {
        .type = (uint8_t)packet->type,
        .flags = packet->flags,
        .flow = (uint32_t)group->id,
        .number = packet->number,
        .acknowledged = stream->sending != NULL ? stream->sending->base : receiving->base,
        .echo = receiving != NULL ? receiving->echo : 0,
        .echo_ns = receiving != NULL ? receiving->echo_ns : 0,
        .has_echo = receiving != NULL && receiving->echo_ns != 0,
        .is_repeated = packet->is_repeated,
        .checksum = checksum,
    };
    cw_extension_finish(endpoint, receiver, &header, before_bytes + packet->data_bytes, mcast_key(group, group->self));
    return true;
}

static struct cw_wire_receiver member_of(const struct cw_mcast_group *group, uint32_t member)
{
    struct cw_wire_receiver receiver;
    bool is_known = cw_extension_peer(group->mcast->endpoint, group->members[member].peer, &receiver);
    assert(is_known); /* since the group was opened */
    (void)is_known;
    return receiver;
}

bool mcast_transmit(struct stream *stream, const struct outgoing *packet)
{
    struct cw_mcast_group *group = stream->group;
    struct cw_mcast_prefix *prefix = packet->fixed;
    *prefix = (struct cw_mcast_prefix){
        .group_high = (uint32_t)(group->id >> 32),
        .author = (uint16_t)group->self,
        .sender = (uint16_t)stream->sender,
        .epoch = group->epoch,
    };
    if (packet->to != NOBODY) {
        struct cw_wire_receiver member = member_of(group, packet->to);
        return packet_write(stream, packet, &member);
    }
    if (group->delivery == CW_MCAST_BY_NETWORK && !packet->by_members) {
        return packet_write(stream, packet, &group->all);
    }
    uint32_t first;
    uint32_t count = cw_mcast_tree_children(&group->relay, stream->sender, group->self, &first);
    for (uint32_t i = 0; i < count; i++) {
        struct cw_wire_receiver child =
            member_of(group, cw_mcast_tree_member(&group->relay, stream->sender, first + i));
        if (!packet_write(stream, packet, &child) && i == 0) {
            return false; /* a packet that is not sent later counts as lost, and is requested */
        }
    }
    return true;
}

/* Sends what came from the parent on to the children. */
static void pass_on(struct stream *stream, const struct cw_wire_header *header)
{
    struct cw_mcast_group *group = stream->group;
    uint32_t first;
    uint32_t count = cw_mcast_tree_children(&group->relay, stream->sender, group->self, &first);
    for (uint32_t i = 0; i < count; i++) {
        struct cw_wire_receiver child =
            member_of(group, cw_mcast_tree_member(&group->relay, stream->sender, first + i));
        group->mcast->counters.relayed += cw_extension_pass_on(group->mcast->endpoint, &child, header);
    }
}

/* ---- packets in ---- */

/* Whether a packet was written by the author that it names, in whole. */
static bool is_authentic(struct cw_mcast_group *group, uint32_t author, const struct cw_wire_header *header,
                         uint64_t number)
{
    struct cw_mcast_counters *counters = &group->mcast->counters;
    if (cw_wire_tag(header, (uint32_t)(number >> 32), mcast_key(group, author)) != header->tag) {
        counters->drop_tag++;
        return false;
    }
    if (cw_wire_checksum(0, header + 1, header->payload_bytes) != header->checksum) {
        counters->drop_checksum++;
        return false;
    }
    return true;
}

static void data_accept(struct cw_mcast_group *group, const struct cw_wire_header *header)
{
    const struct cw_mcast_data *data = (const struct cw_mcast_data *)(header + 1);
    uint64_t number = mcast_receive_number(group->streams[data->prefix.sender], header->number);
    if (!is_authentic(group, data->prefix.author, header, number)) {
        return; /* before anything is made for it: a stream takes 256 KiB */
    }
    struct stream *stream = mcast_stream(group, data->prefix.sender);
    if (stream == NULL) {
        group->mcast->counters.drop_room++;
        return;
    }
    if ((data->flags & CW_MCAST_PASS_ON) != 0) {
        pass_on(stream, header);
    }
    mcast_receive_data(stream, header, data, number, header->payload_bytes - (uint32_t)sizeof(*data));
}

static bool nak_fits(const struct cw_wire_header *header)
{
    const struct cw_mcast_nak *nak = (const struct cw_mcast_nak *)(header + 1);
    return nak->run_count <= CW_MCAST_RUNS_MAX &&
           header->payload_bytes == sizeof(*nak) + nak->run_count * sizeof(struct cw_wire_run);
}

static void control_accept(struct cw_mcast_group *group, const struct cw_wire_header *header)
{
    const struct cw_mcast_prefix *prefix = (const struct cw_mcast_prefix *)(header + 1);
    struct cw_mcast_counters *counters = &group->mcast->counters;
    struct member *author = &group->members[prefix->author];
    uint64_t number = cw_wire_number_expand(author->control_highest, header->number);
    if (!is_authentic(group, prefix->author, header, number)) {
        return;
    }
    bool is_new = number > author->control_highest;
    author->control_highest = later(author->control_highest, number);
    if (header->type == CW_MCAST_FLOOD_PROBE) {
        mcast_flood_receive(group->mcast, header, is_new);
        return;
    }
    struct stream *stream = mcast_stream(group, prefix->sender);
    if (stream == NULL) {
        counters->drop_room++;
        return;
    }
    if (header->type == CW_MCAST_STATE && stream->receiving != NULL) {
        const struct cw_mcast_state *state = (const struct cw_mcast_state *)prefix;
        if ((state->flags & CW_MCAST_PASS_ON) != 0) {
            pass_on(stream, header);
        }
        mcast_receive_state(stream, header, state);
    } else if (header->type == CW_MCAST_ACK) {
        counters->acks_in++;
        mcast_ack_child(stream, prefix->author, (const struct cw_mcast_ack *)prefix, number);
    } else if (header->type == CW_MCAST_NAK && stream->sending != NULL && nak_fits(header)) {
        counters->naks_in++;
        mcast_send_nak(stream, prefix->author, header, (const struct cw_mcast_nak *)prefix);
    } else {
        counters->drop_malformed++;
    }
}

/* The least bytes of each type; exact for all but DATA and NAK. */
static const uint16_t fixed_bytes[CW_MCAST_TYPE_END - CW_MCAST_DATA] = {
    [CW_MCAST_DATA - CW_MCAST_DATA] = sizeof(struct cw_mcast_data),
    [CW_MCAST_STATE - CW_MCAST_DATA] = sizeof(struct cw_mcast_state),
    [CW_MCAST_ACK - CW_MCAST_DATA] = sizeof(struct cw_mcast_ack),
    [CW_MCAST_NAK - CW_MCAST_DATA] = sizeof(struct cw_mcast_nak),
    [CW_MCAST_FLOOD_PROBE - CW_MCAST_DATA] = sizeof(struct cw_mcast_prefix),
};

static void extension_receive(struct cw_extension *extension, const struct cw_wire_header *header, uint64_t now_ns)
{
    struct cw_mcast *mcast = (struct cw_mcast *)extension;
    const struct cw_mcast_prefix *prefix = (const struct cw_mcast_prefix *)(header + 1);
    mcast->now_ns = later(mcast->now_ns, now_ns);
    bool is_open = header->type == CW_MCAST_DATA || header->type == CW_MCAST_NAK;
    uint16_t least = header->type < CW_MCAST_TYPE_END ? fixed_bytes[header->type - CW_MCAST_DATA] : UINT16_MAX;
    if (is_open ? header->payload_bytes < least : header->payload_bytes != least) {
        mcast->counters.drop_malformed++;
        return;
    }
    struct cw_mcast_group *group = mcast_group_find(mcast, (uint64_t)prefix->group_high << 32 | header->flow);
    if (group == NULL || prefix->author >= group->member_count || prefix->sender >= group->member_count ||
        prefix->author == group->self || !group->members[prefix->author].is_live) {
        mcast->counters.drop_group++;
        return;
    }
    if (header->type == CW_MCAST_ACK || header->type == CW_MCAST_NAK) {
        control_accept(group, header);
    } else if (prefix->author != prefix->sender) {
        mcast->counters.drop_malformed++;
    } else if (header->type == CW_MCAST_DATA) {
        data_accept(group, header);
    } else {
        control_accept(group, header);
    }
}

/* ---- turns ---- */

static bool has_taken(const struct cw_mcast *mcast)
{
    return atomic_load_explicit(&mcast->taken, memory_order_relaxed) != mcast->taken_seen;
}

static uint32_t extension_turn(struct cw_extension *extension, uint64_t now_ns)
{
    struct cw_mcast *mcast = (struct cw_mcast *)extension;
    uint32_t count = 0;
    mcast->now_ns = later(mcast->now_ns, now_ns);
    if (cw_wheel_due(&mcast->wheel, mcast->now_ns)) {
        count += timers_turn(mcast);
    }
    count += mcast->is_full || has_taken(mcast) ? waiting_turn(mcast) : 0;
    count += mcast->active_first != NULL ? mcast_send_turn(mcast) : 0;
    mcast->turn_ns = mcast->now_ns;
    return count;
}

static uint64_t extension_deadline(const struct cw_extension *extension)
{
    const struct cw_mcast *mcast = (const struct cw_mcast *)extension;
    if (mcast->active_first != NULL) {
        return mcast->port_full ? mcast->now_ns + PORT_RETRY_NS : 0;
    }
    uint64_t next_ns = has_taken(mcast) ? 0 : cw_wheel_next(&mcast->wheel);
    /* room for events is looked for now and then; taking events also ends it */
    return mcast->is_full ? earlier(next_ns, mcast->now_ns + CW_ACK_DELAY_NS) : next_ns;
}

/* ---- life ---- */

void cw_mcast_config_init(struct cw_mcast_config *config)
{
    *config = (struct cw_mcast_config){
        .group_count_max = CW_MCAST_DEFAULT_GROUPS,
        .queue_max = CW_MCAST_DEFAULT_QUEUE,
        .slot_count = CW_MCAST_DEFAULT_SLOTS,
        .slot_bytes = CW_MCAST_DEFAULT_SLOT_BYTES,
        .registration_max = CW_MCAST_DEFAULT_REGISTRATIONS,
        .event_count_max = CW_MCAST_DEFAULT_EVENTS,
        .lag_ns = CW_MCAST_LAG_NS,
    };
}

static int config_check(const struct cw_mcast_config *config, char *error, size_t error_bytes)
{
    const struct {
        const char *name;
        uint64_t value, least, most;
    } ranges[] = {
        {"group_count_max", config->group_count_max, 1, 65536},
        {"queue_max", config->queue_max, 1, 4096},
        {"slot_count", config->slot_count, 1, 4096},
        {"slot_bytes", config->slot_bytes, 1, 65536},
        {"registration_max", config->registration_max, 1, 4096},
        {"event_count_max", config->event_count_max, 1, 1u << 20},
        {"lag_ns", config->lag_ns, 1000000, UINT64_MAX / 4},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++) {
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most) {
            snprintf(error, error_bytes, "mcast: %s is %llu, must be %llu to %llu", ranges[i].name,
                     (unsigned long long)ranges[i].value, (unsigned long long)ranges[i].least,
                     (unsigned long long)ranges[i].most);
            return CW_ERROR_ARGUMENT;
        }
    }
    return CW_OK;
}

uint32_t mcast_payload_max(const struct cw_mcast_group *group)
{
    uint32_t most = group->mcast->payload_max;
    return group->payload_max < most ? group->payload_max : most;
}

static uint32_t payload_at(const struct cw_mcast *mcast, uint32_t mtu_bytes)
{
    return cw_extension_payload_at(mcast->endpoint, mtu_bytes) - (uint32_t)sizeof(struct cw_mcast_data);
}

void cw_mcast_mtu(struct cw_mcast *mcast, uint32_t mtu_bytes)
{
    mcast->payload_max = payload_at(mcast, mtu_bytes);
}

void mcast_narrow(struct cw_mcast *mcast, uint32_t mtu_bytes)
{
    mcast->payload_max = (uint32_t)earlier(mcast->payload_max, payload_at(mcast, mtu_bytes));
}

int cw_mcast_create(const struct cw_mcast_config *config, struct cw_endpoint *endpoint, struct cw_mcast **mcast,
                    char *error, size_t error_bytes)
{
    int status = config_check(config, error, error_bytes);
    if (status != CW_OK) {
        return status;
    }
    struct cw_mcast *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return CW_ERROR_MEMORY;
    }
    made->config = *config;
    made->extension = (struct cw_extension){
        .receive = extension_receive, .turn = extension_turn, .deadline = extension_deadline, .event = extension_event};
    made->endpoint = endpoint;
    made->now_ns = cw_extension_now(endpoint);
    cw_mcast_mtu(made, UINT16_MAX);
    cw_wheel_init(&made->wheel, made->now_ns);
    status = cw_endpoint_invite(endpoint, &made->extension);
    if (status == CW_OK && (status = mcast_flood_begin(made)) != CW_OK) {
        (void)cw_endpoint_invite(endpoint, NULL);
    }
    if (status != CW_OK) {
        free(made);
        return status;
    }
    *mcast = made;
    return CW_OK;
}

void cw_mcast_destroy(struct cw_mcast *mcast)
{
    if (mcast == NULL) {
        return;
    }
    for (uint32_t bucket = 0; bucket < GROUP_BUCKETS; bucket++) {
        while (mcast->buckets[bucket] != NULL) {
            cw_mcast_shut(mcast->buckets[bucket]);
        }
    }
    while (mcast->waiting_first != NULL) { /* a group that has been shut notifies no handler */
        mcast_group_free(mcast->waiting_first->group);
    }
    mcast_flood_end(mcast);
    (void)cw_endpoint_invite(mcast->endpoint, NULL);
    free(mcast);
}

struct cw_mcast_counters cw_mcast_counters(const struct cw_mcast *mcast)
{
    return mcast->counters;
}

uint32_t cw_mcast_short_max(const struct cw_mcast_group *group)
{
    return group->mcast->config.slot_bytes;
}

void cw_mcast_mute(struct cw_mcast_group *group)
{
    group->is_muted = true;
}
