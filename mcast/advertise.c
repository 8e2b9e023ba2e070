/* Reports of a sender: to the application, the messages that have ended; to members, when nothing moves, its progress
 * and the slowest member. */
#include "mcast/state.h"

void mcast_send_notify(struct stream *stream)
{
    struct sending *sending = stream->sending;
    for (; sending->message_noted < sending->message_base; sending->message_noted++) {
        const struct message *message = mcast_message(stream, sending->message_noted);
        int status = sending->message_noted < sending->message_lost ? CW_OK : CW_ERROR_CLOSED;
        if ((message->flags & CW_MCAST_SIGNAL) != 0 &&
            !mcast_notify(stream, NOTICE_COMPLETE, (struct cw_event){.context = message->context, .status = status})) {
            mcast_wait(stream);
            return;
        }
    }
}

static bool state_transmit(struct stream *stream, bool by_members)
{
    const struct sending *sending = stream->sending;
    struct cw_mcast_state state = {
        .round_trip = mcast_time_encode(sending->round_trip_ns),
        .flags = by_members ? CW_MCAST_PASS_ON : 0,
        .next = sending->next,
    };
    bool has_left = mcast_transmit(stream, &(struct outgoing){
                                               .type = CW_MCAST_STATE,
                                               .flags = CW_WIRE_ACK_NOW,
                                               .to = NOBODY,
                                               .by_members = by_members,
                                               .number = mcast_control_number(stream->group),
                                               .fixed = &state,
                                               .fixed_bytes = sizeof(state),
                                           });
    stream->group->mcast->counters.states_out += has_left;
    return has_left;
}

static void state_send(struct stream *stream)
{
    struct sending *sending = stream->sending;
    bool is_network = stream->group->delivery == CW_MCAST_BY_NETWORK;
    /* the network may not reach a member that has not answered the first */
    if (is_network) {
        mcast_send_noted(stream);
        (void)state_transmit(stream, false);
    }
    if ((!is_network || sending->doubts > 0) && !state_transmit(stream, true)) {
        return;
    }
    sending->state_ns = stream->group->mcast->now_ns;
    sending->doubts += sending->doubts < DOUBTS_MAX;
}

/* A member that has been silent for long is named, repeatedly as long as nothing moves. */
static void lag_name(struct stream *stream)
{
    struct sending *sending = stream->sending;
    struct cw_mcast *mcast = stream->group->mcast;
    uint64_t since_ns = later(sending->moved_ns, sending->named_ns);
    if (mcast->now_ns - since_ns < mcast->config.lag_ns) {
        return;
    }
    sending->laggard = mcast_ack_laggard(stream); /* without a message from any member it was never determined */
    if (sending->laggard != NOBODY &&
        mcast_notify(stream, NOTICE_LAGGARD, (struct cw_event){.peer = sending->laggard})) {
        sending->named_ns = mcast->now_ns;
    }
}

void mcast_send_state_due(struct stream *stream)
{
    struct sending *sending = stream->sending;
    uint64_t now_ns = stream->group->mcast->now_ns;
    if (sending->message_base == sending->message_next) {
        return;
    }
    uint64_t interval_ns = sending->state_interval_ns;
    interval_ns = interval_ns != 0 ? interval_ns : mcast_congestion_patience(sending);
    uint64_t due_ns = sending->moved_ns + interval_ns;
    if (now_ns >= due_ns) {
        state_send(stream);
        lag_name(stream);
        /* often enough that a named member is really silent, and was not merely left without a request */
        uint64_t most_ns = earlier(CW_MCAST_STATE_MAX_NS, stream->group->mcast->config.lag_ns / 8);
        sending->state_interval_ns = earlier(2 * interval_ns, most_ns);
        due_ns = now_ns + sending->state_interval_ns;
    }
    mcast_timer_by(&sending->state_timer, due_ns);
}

void mcast_send_unreached(struct stream *stream, uint32_t member)
{
    const struct sending *sending = stream->sending;
    struct cw_mcast_group *group = stream->group;
    if (group->delivery != CW_MCAST_BY_NETWORK || sending->to_group < CW_MCAST_UNREACHED_PACKETS ||
        group->mcast->now_ns - sending->to_group_ns < CW_MCAST_UNREACHED_NS ||
        !mcast_notify(stream, NOTICE_UNREACHED, (struct cw_event){.peer = member})) {
        return;
    }
    cw_mcast_delivery_set(group, CW_MCAST_BY_MEMBERS);
}

void mcast_send_epoch(struct stream *stream)
{
    stream->sending->moved_ns = stream->group->mcast->now_ns;
    stream->sending->named_ns = 0;
}

struct cw_mcast_stream_info cw_mcast_stream(const struct cw_mcast_group *group)
{
    const struct stream *stream = group->streams[group->self];
    const struct sending *sending = stream == NULL ? NULL : stream->sending;
    if (sending == NULL) {
        return (struct cw_mcast_stream_info){.laggard = NOBODY};
    }
    return (struct cw_mcast_stream_info){
        .round_trip_ns = sending->round_trip_ns,
        .window_packets = sending->window,
        .in_flight_packets = (uint32_t)(sending->next - sending->base),
        .queued = (uint32_t)(sending->message_next - sending->message_base),
        .laggard = sending->laggard,
    };
}
