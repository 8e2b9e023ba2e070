/* How many packets of a stream may be in flight: as dataplane/congestion/delay.c has it, for round trips to the
 * last member and up the tree. Judged once a round by the smallest round trip seen in it; loss is a signal only if it
 * is heavy, since random loss is only repaired. Round trips in which a member did not poll its port for a while are
 * ignored: with 8 members on 2 cores the window fell to 4 packets, where the network was empty. As there, the line time
 * of a few full frames is no queue: at 100 Mb/s the window fell without it, and 4 KB to each of 5 took 2.9 ms instead
 * of 2.3. */
#include "mcast/state.h"

enum {
    PAUSE_MAX_NS = 75000, /* longer ones hide what the network does */
    LOSS_ROUND_MIN = 64,  /* packets in a round before its loss says something */
    LOSS_SHARE = 8,       /* more than one in LOSS_SHARE: the path is overrun */
};

void mcast_congestion_init(struct stream *stream)
{
    struct sending *sending = stream->sending;
    /* on a slow line this number of packets is a queue of milliseconds, and the smallest round trip would include that
     * queue */
    uint64_t room = cw_extension_line_packets(stream->group->mcast->endpoint);
    sending->window = (uint32_t)later(CW_MCAST_WINDOW_LEAST, earlier(room, CW_MCAST_WINDOW_FIRST));
    sending->slow_start = true;
    sending->round_trip_least_ns = UINT64_MAX;
    sending->round_trip_floor_ns = UINT64_MAX;
}

void mcast_congestion_sample(struct sending *sending, uint64_t round_trip_ns, uint64_t pause_ns)
{
    sending->doubts = 0;
    if (pause_ns > PAUSE_MAX_NS) {
        sending->round_pauses++;
        /* without the pauses of both ends, the rest is certainly the network's */
        sending->round_trip_floor_ns =
            earlier(sending->round_trip_floor_ns, round_trip_ns - earlier(2 * pause_ns, round_trip_ns));
    } else {
        sending->round_trip_least_ns = earlier(sending->round_trip_least_ns, round_trip_ns);
    }
    sending->round_trip_min_ns =
        sending->round_trip_min_ns == 0 ? round_trip_ns : earlier(sending->round_trip_min_ns, round_trip_ns);
    if (sending->round_trip_ns == 0) {
        sending->round_trip_ns = round_trip_ns;
        sending->round_trip_deviation_ns = round_trip_ns / 2;
        return;
    }
    uint64_t more_ns = later(sending->round_trip_ns, round_trip_ns) - earlier(sending->round_trip_ns, round_trip_ns);
    sending->round_trip_deviation_ns = (sending->round_trip_deviation_ns * 3 + more_ns) / 4;
    sending->round_trip_ns = (sending->round_trip_ns * 7 + round_trip_ns) / 8;
}

uint64_t mcast_congestion_patience(const struct sending *sending)
{
    uint64_t trip_ns = sending->round_trip_ns == 0 ? CW_MCAST_ROUND_TRIP_FIRST_NS : sending->round_trip_ns;
    /* asked too soon, a sender never measures what an answer takes: as long as it has not, it waits for longer (Karn
     * and Partridge, 1987) */
    return (trip_ns + later(4 * sending->round_trip_deviation_ns, CW_MCAST_STATE_LEAST_NS)) << sending->doubts;
}

static uint64_t window_next(struct sending *sending, uint64_t target_ns)
{
    uint64_t window = sending->window;
    uint64_t trip_ns = sending->round_trip_least_ns;
    if (sending->round_sent >= LOSS_ROUND_MIN && sending->round_lost > sending->round_sent / LOSS_SHARE) {
        sending->slow_start = false;
        return window - window / 4;
    }
    /* twice: in a tree of acknowledgements members wait for those below them, too, and the longer the fewer packets
     * there are */
    if (trip_ns == UINT64_MAX && sending->round_trip_floor_ns != UINT64_MAX &&
        sending->round_trip_floor_ns > 2 * target_ns) {
        trip_ns = sending->round_trip_floor_ns;
    }
    if (trip_ns == UINT64_MAX) {
        /* receivers that share a core with others look now and then, and take all that has come: their delay says
         * nothing of a queue in the network, only loss would */
        bool may_grow = sending->round_pauses > 0 && sending->is_limited && sending->round_lost == 0;
        return may_grow ? window + (sending->slow_start ? window : 1 + window / 8) : window;
    }
    uint64_t more_ns = target_ns - sending->round_trip_min_ns;
    if (trip_ns > target_ns) {
        sending->slow_start = false;
        uint64_t less = window * (trip_ns - target_ns) / trip_ns;
        return window - (less < window / 2 ? less : window / 2);
    }
    if (!sending->is_limited) {
        return window;
    }
    if (sending->slow_start && trip_ns <= target_ns - more_ns / 2) {
        return 2 * window;
    }
    sending->slow_start = false;
    return window + 1 + (trip_ns <= target_ns - more_ns / 2 ? window / 16 : 0);
}

void mcast_congestion_progress(struct stream *stream)
{
    struct sending *sending = stream->sending;
    if (sending->base < sending->round_end) {
        return;
    }
    const struct cw_endpoint *endpoint = stream->group->mcast->endpoint;
    uint64_t window = window_next(sending, cw_extension_round_trip_target(endpoint, sending->round_trip_min_ns));
    sending->window = (uint32_t)later(CW_MCAST_WINDOW_LEAST, earlier(window, CW_MCAST_WINDOW));
    sending->round_end = sending->next;
    sending->round_trip_least_ns = UINT64_MAX;
    sending->round_trip_floor_ns = UINT64_MAX;
    sending->round_pauses = 0;
    sending->round_sent = 0;
    sending->round_lost = 0;
    sending->is_limited = false;
}
