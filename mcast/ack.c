/* Acknowledgements. Each member reports to its parent in the sender's tree the counts that all members of its subtree
 * have reached: they only grow, so that any report may be lost. Only reports gathered under the same membership count:
 * a member that another one treats as its child, or not, while the two disagree on the tree, is left out nowhere. */
#include <stdlib.h>

#include "mcast/state.h"

/* Without a stream whose sender is alive, no acknowledgement is of use. */
static bool is_of_use(const struct stream *stream)
{
    return stream->group->members[stream->sender].is_live;
}

static void children_find(struct stream *stream)
{
    const struct cw_mcast_group *group = stream->group;
    stream->report.child_count = is_of_use(stream) ? cw_mcast_tree_children(&group->tree, stream->sender, group->self,
                                                                            &stream->report.child_first)
                                                   : 0;
}

int mcast_ack_make(struct stream *stream)
{
    struct report *report = &stream->report;
    children_find(stream);
    mcast_timer_init(&report->timer, TIMER_REPORT, stream);
    /* as many as there may ever be: the tree changes with the membership */
    uint32_t most = stream->group->tree.arity < stream->group->member_count ? stream->group->tree.arity
                                                                            : stream->group->member_count;
    report->children = calloc(most, sizeof(struct child));
    return report->children == NULL ? CW_ERROR_MEMORY : CW_OK;
}

void mcast_ack_destroy(struct stream *stream)
{
    if (stream->report.children != NULL) {
        mcast_timer_stop(&stream->report.timer);
        free(stream->report.children);
    }
}

static bool is_root(const struct stream *stream)
{
    return stream->sending != NULL;
}

static uint32_t child_member(const struct stream *stream, uint32_t index)
{
    return cw_mcast_tree_member(&stream->group->tree, stream->sender, stream->report.child_first + index);
}

static bool is_behind(const struct counts *one, const struct counts *other)
{
    if (one->received != other->received) {
        return one->received < other->received;
    }
    return one->registered != other->registered ? one->registered < other->registered : one->released < other->released;
}

static void least(struct counts *all, const struct counts *more)
{
    all->received = earlier(all->received, more->received);
    all->released = earlier(all->released, more->released);
    all->registered = earlier(all->registered, more->registered);
}

/* A member of the subtree to which packets of the stream come only if they are sent to it alone; NOBODY. */
static uint32_t unreached_find(const struct stream *stream)
{
    const struct receiving *receiving = stream->receiving;
    if (receiving != NULL && receiving->to_self >= CW_MCAST_UNREACHED_PACKETS &&
        stream->group->mcast->now_ns - receiving->to_self_ns >= CW_MCAST_UNREACHED_NS) {
        return stream->group->self;
    }
    for (uint32_t i = 0; i < stream->report.child_count; i++) {
        const struct child *child = &stream->report.children[i];
        if (child->epoch == stream->group->epoch && child->unreached != NOBODY) {
            return child->unreached;
        }
    }
    return NOBODY;
}

/* The longest pause of any member in the subtree. */
static uint64_t pause_find(const struct stream *stream)
{
    uint64_t pause_ns = stream->receiving != NULL ? stream->receiving->pause_ns : 0;
    for (uint32_t i = 0; i < stream->report.child_count; i++) {
        const struct child *child = &stream->report.children[i];
        pause_ns = child->epoch == stream->group->epoch ? later(pause_ns, child->pause_ns) : pause_ns;
    }
    return pause_ns;
}

/* The counts that all of the subtree have reached, and the member with the least. */
static struct counts gather(const struct stream *stream, uint32_t *laggard)
{
    const struct cw_mcast_group *group = stream->group;
    const struct receiving *receiving = stream->receiving;
    struct counts all = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct counts behind = all;
    *laggard = NOBODY;
    if (receiving != NULL) {
        *laggard = group->self;
        all = behind = (struct counts){receiving->base, receiving->short_released, receiving->registered};
    }
    for (uint32_t i = 0; i < stream->report.child_count; i++) {
        const struct child *child = &stream->report.children[i];
        static const struct counts none;
        bool is_known = child->epoch == group->epoch;
        const struct counts *counts = is_known ? &child->counts : &none;
        least(&all, counts);
        if (is_behind(counts, &behind)) {
            behind = *counts;
            /* a member that was silent for long may hold up all below it */
            bool is_heard = is_known && group->mcast->now_ns - child->heard_ns < group->mcast->config.lag_ns / 2;
            *laggard = is_heard ? child->laggard : child_member(stream, i);
        }
    }
    return all;
}

static void send(struct stream *stream, const struct counts *all, uint32_t laggard)
{
    struct cw_mcast_group *group = stream->group;
    struct cw_mcast_ack ack = {
        .laggard = (uint16_t)laggard,
        .unreached = (uint16_t)unreached_find(stream), /* NOBODY: CW_MCAST_ALL_REACHED */
        .pause = mcast_time_encode(pause_find(stream)),
        .received = all->received,
        .released = all->released,
        .registered = all->registered,
    };
    if (mcast_timer_runs(&stream->report.timer)) {
        mcast_timer_stop(&stream->report.timer);
    }
    if (mcast_transmit(stream, &(struct outgoing){
                                   .type = CW_MCAST_ACK,
                                   .to = cw_mcast_tree_parent(&group->tree, stream->sender, group->self),
                                   .number = mcast_control_number(group),
                                   .fixed = &ack,
                                   .fixed_bytes = sizeof(ack),
                               })) {
        group->mcast->counters.acks_out++;
        stream->report.told = *all;
    }
}

/* Whether it must be reported now; otherwise packets alone may wait for more of them, and a few slots are reported with
 * the next. */
static bool is_urgent(const struct stream *stream, const struct counts *all)
{
    const struct report *report = &stream->report;
    uint32_t slots = stream->group->mcast->config.slot_count / 4;
    return (all->received >= report->urgent && report->told.received < report->urgent) ||
           all->received >= report->told.received + CW_MCAST_ACK_EVERY || all->registered > report->told.registered ||
           all->released >= report->told.released + (slots > 0 ? slots : 1);
}

uint32_t mcast_ack_laggard(const struct stream *stream)
{
    uint32_t laggard;
    (void)gather(stream, &laggard);
    return laggard;
}

void mcast_ack_changed(struct stream *stream)
{
    struct cw_mcast *mcast = stream->group->mcast;
    uint32_t laggard;
    struct counts all = gather(stream, &laggard);
    if (is_root(stream)) {
        uint32_t unreached = unreached_find(stream);
        mcast_send_acknowledged(stream, &all, laggard, pause_find(stream));
        if (unreached != NOBODY) {
            mcast_send_unreached(stream, unreached);
        }
    } else if (!is_of_use(stream)) {
        return;
    } else if (is_urgent(stream, &all)) {
        send(stream, &all, laggard);
    } else if (all.received > stream->report.told.received) {
        /* on slow links packets come one by one, and acknowledgements of each would take the place of others; after
         * more than half a round trip the sender's window would feel it */
        uint64_t patience_ns = later(CW_MCAST_ACK_DELAY_NS, stream->receiving->round_trip_ns / 2);
        mcast_timer_by(&stream->report.timer, mcast->now_ns + patience_ns);
    }
}

void mcast_ack_requested(struct stream *stream)
{
    uint32_t laggard;
    struct counts all = gather(stream, &laggard);
    if (!is_root(stream) && is_of_use(stream)) {
        send(stream, &all, laggard);
    }
}

void mcast_ack_renew(struct stream *stream)
{
    children_find(stream);
    stream->report.told = (struct counts){0, 0, 0};
    for (uint32_t i = 0; i < stream->report.child_count; i++) {
        stream->report.children[i] = (struct child){.heard_ns = stream->group->mcast->now_ns, .unreached = NOBODY};
    }
    if (is_root(stream)) {
        mcast_ack_changed(stream);
    } else {
        mcast_ack_requested(stream);
    }
}

void mcast_ack_child(struct stream *stream, uint32_t member, const struct cw_mcast_ack *ack, uint64_t number)
{
    for (uint32_t i = 0; i < stream->report.child_count; i++) {
        struct child *child = &stream->report.children[i];
        if (child_member(stream, i) != member) {
            continue;
        }
        if (ack->prefix.epoch != stream->group->epoch ||
            (child->epoch == ack->prefix.epoch && number <= child->number)) {
            return; /* of another membership, or overtaken */
        }
        *child = (struct child){
            .epoch = ack->prefix.epoch,
            .laggard = ack->laggard < stream->group->member_count ? ack->laggard : member,
            .unreached = ack->unreached < stream->group->member_count ? ack->unreached : NOBODY,
            .pause_ns = (uint64_t)ack->pause << CW_MCAST_ROUND_TRIP_SHIFT,
            .counts = {ack->received, ack->released, ack->registered},
            .heard_ns = stream->group->mcast->now_ns,
            .number = number,
        };
        mcast_ack_changed(stream);
        return;
    }
}

void mcast_ack_due(struct stream *stream)
{
    uint32_t laggard;
    struct counts all = gather(stream, &laggard);
    if (!is_root(stream) && all.received > stream->report.told.received) {
        send(stream, &all, laggard);
    }
}
