/* Requests for missing packets. Each member waits for a random time before it asks; a repair that comes meanwhile makes
 * the request needless. Times are drawn so that, for any number of receivers that miss the same packet, few send a
 * request before the first one's repair has reached all others: the truncated exponential distribution of Nonnenmacher
 * and Biersack (Scalable Feedback for Large Groups, 1999; also RFC 5740, 5.5), over a time that grows with the measured
 * round trip and the logarithm of the group's size. In small groups all members may send requests at once. */
#include <math.h>

#include "mcast/state.h"

enum {
    BACKOFF_TRIPS =
        2, /* the time in round trips, multiplied by the distribution's parameter: some 1.6 requests per loss */
};

static uint64_t backoff_ns(struct stream *stream)
{
    const struct cw_mcast_group *group = stream->group;
    if (group->tree.live_count <= CW_MCAST_EAGER_NAKS) {
        return 0;
    }
    double parameter = log((double)group->tree.live_count) + 1;
    double most_ns = BACKOFF_TRIPS * parameter * (double)stream->receiving->round_trip_ns;
    double uniform = (double)(cw_extension_random(group->mcast->endpoint) >> 11) / (double)(1ull << 53);
    return (uint64_t)(most_ns / parameter * log1p(uniform * expm1(parameter)));
}

static bool has_holes(const struct receiving *receiving)
{
    return receiving->base < receiving->known_next;
}

/* How long a request and its answer take, and some more. */
static uint64_t interval_least(const struct receiving *receiving)
{
    return 2 * receiving->round_trip_ns + CW_MCAST_REORDER_NS;
}

void mcast_nak_consider(struct stream *stream, bool is_old)
{
    struct receiving *receiving = stream->receiving;
    uint64_t guard_ns = is_old ? 0 : CW_MCAST_REORDER_NS;
    if (!has_holes(receiving)) {
        mcast_timer_stop(&receiving->nak_timer);
        receiving->nak_interval_ns = 0;
    } else if (!mcast_timer_runs(&receiving->nak_timer) && stream->group->members[stream->sender].is_live) {
        receiving->nak_interval_ns = interval_least(receiving);
        mcast_timer_by(&receiving->nak_timer, stream->group->mcast->now_ns + guard_ns + backoff_ns(stream));
    }
}

/* The next number from `from` on that has come (`seen`), or has not; at most `end`. */
static uint64_t run_end(const struct receiving *receiving, uint64_t from, uint64_t end, bool seen)
{
    while (from < end && mcast_is_seen(receiving, from) != seen) {
        from++;
    }
    return from;
}

void mcast_nak_due(struct stream *stream)
{
    struct receiving *receiving = stream->receiving;
    struct cw_mcast *mcast = stream->group->mcast;
    struct {
        struct cw_mcast_nak nak;
        struct cw_wire_run runs[CW_MCAST_RUNS_MAX];
    } asked;
    static_assert(offsetof(typeof(asked), runs) == sizeof(struct cw_mcast_nak), "one behind the other");
    if (!has_holes(receiving)) {
        return;
    }
    uint32_t count = 0;
    uint64_t number = receiving->base;
    while (number < receiving->known_next && count < CW_MCAST_RUNS_MAX) {
        uint64_t missing_end = run_end(receiving, number, receiving->known_next, true);
        uint64_t end = run_end(receiving, missing_end, receiving->known_next, false);
        asked.runs[count++] = (struct cw_wire_run){(uint16_t)(missing_end - number), (uint16_t)(end - missing_end)};
        number = end;
    }
    asked.nak = (struct cw_mcast_nak){.run_count = count, .from = receiving->base};
    if (mcast_transmit(stream, &(struct outgoing){
                                   .type = CW_MCAST_NAK,
                                   .to = stream->sender,
                                   .number = mcast_control_number(stream->group),
                                   .fixed = &asked,
                                   .fixed_bytes = (uint32_t)(sizeof(asked.nak) + count * sizeof(asked.runs[0])),
                               })) {
        mcast->counters.naks_out++;
    }
    /* packets have arrived since the last request: the path works. Otherwise the interval doubles */
    receiving->nak_interval_ns = receiving->base != receiving->nak_base
                                     ? interval_least(receiving)
                                     : earlier(2 * receiving->nak_interval_ns, CW_MCAST_NAK_MAX_NS);
    receiving->nak_base = receiving->base;
    mcast_timer_by(&receiving->nak_timer, mcast->now_ns + receiving->nak_interval_ns + backoff_ns(stream));
}
