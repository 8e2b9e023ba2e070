/* How much may be in flight: delay-based, after Swift (SIGCOMM 2020), but judged once a round by the smallest round
 * trip seen in it.
 *
 * The aim is a round trip, not a queue: on a LAN it is the same for all flows, so that a flow that has never seen the
 * empty path and one that has share alike. (With an aim relative to the own smallest round trip, the last of 32 senders
 * took ten times its share.) On longer paths the aim is the smallest round trip and some more. The smallest of a round
 * distinguishes a standing queue from a peer that was descheduled for a moment. The smallest round trip is a small
 * packet's. The longer time of a full one on each line of its path is no queue, and at 100 Mb/s more than all else:
 * without it the window fell to two frames there, and a put got half of the line. Loss is no signal unless it is heavy;
 * random loss is only repaired. With CW_CONGESTION_LOSS it is the only signal. A flow across the wide area is
 * controlled by bandwidth.c, which sets the same window; congestion.c chooses between the two. */
#include "dataplane/congestion/congestion.h"

enum {
    ROUND_TRIP_LAN_NS = 150000, /* aimed at between peers that poll, on any path that can do it */
    QUEUE_SPIN_NS = 30000,      /* standing queue aimed at on longer paths */
    QUEUE_SLEEP_NS = 500000,    /* if one side must be woken, or scheduled */
    QUEUE_SHARE = 16,           /* plus this part of the smallest round trip */
    FRAMES_ON_LINES =
        4, /* and the line time of this number of full frames: two switches on the path, and one frame that waits */
    LOSS_ROUND_MIN = 64, /* packets in a round before its loss says something */
    LOSS_SHARE = 8,      /* more than one in LOSS_SHARE: the path is overrun */
};

static uint32_t full_frame_bytes(const struct cw_flow *flow)
{
    return cw_flow_overhead(flow) + flow->session.payload_bytes_max;
}

uint64_t cw_congestion_target(const struct cw_endpoint *endpoint, uint64_t min_ns, uint32_t frame_bytes, bool spins)
{
    uint64_t rate_bps = endpoint->port->info.rate_bps;
    uint64_t line_ns = rate_bps > 0 ? FRAMES_ON_LINES * 8ull * frame_bytes * 1000000000 / rate_bps : 0;
    uint64_t target = min_ns + min_ns / QUEUE_SHARE + (spins ? QUEUE_SPIN_NS : QUEUE_SLEEP_NS);
    return (target > ROUND_TRIP_LAN_NS ? target : ROUND_TRIP_LAN_NS) + line_ns;
}

/* The round trip aimed at. */
static uint64_t target_ns(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    bool both_spin = flow->session.peer_waiting == CW_WAITING_SPIN && endpoint->config.waiting == CW_WAITING_SPIN;
    /* Packets are handled in batches on both sides: a full pipeline waits for a turn on each side, there and back. */
    return cw_congestion_target(endpoint, flow->round_trip.min_ns, full_frame_bytes(flow), both_spin) +
           2 * ((uint64_t)endpoint->busy_ns + flow->congestion.peer_busy_ns);
}

void cw_congestion_init(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    bool by_loss = endpoint->config.congestion == CW_CONGESTION_LOSS;
    uint64_t first = (uint64_t)(by_loss ? 2 : CW_CONGESTION_WINDOW_FIRST) * full_frame_bytes(flow);
    uint64_t most = endpoint->config.congestion_window_max_bytes;
    first = first < most ? first : most;
    uint64_t least = 2ull * full_frame_bytes(flow);
    flow->congestion = (struct cw_congestion){
        .window_bytes = first > least ? first : least,
        .round_end = flow->sender.sent.next,
        .round_trip_ns = UINT64_MAX,
        .slow_start = true,
        .by_loss = by_loss,
        .threshold_bytes = UINT64_MAX,
    };
}

void cw_congestion_timeout(struct cw_flow *flow)
{
    struct cw_congestion *congestion = &flow->congestion;
    uint64_t least = 2ull * full_frame_bytes(flow);
    if (!congestion->by_loss || flow->sender.sent.base == flow->sender.sent.next) {
        return;
    }
    congestion->threshold_bytes = congestion->window_bytes / 2 > least ? congestion->window_bytes / 2 : least;
    congestion->window_bytes = least;
    congestion->slow_start = true;
}

bool cw_congestion_open(struct cw_flow *flow)
{
    uint64_t in_flight = flow->sender.in_flight_bytes;
    return in_flight == 0 || in_flight + full_frame_bytes(flow) <= flow->congestion.window_bytes;
}

uint64_t cw_congestion_room(const struct cw_flow *flow)
{
    uint64_t window = flow->congestion.window_bytes, in_flight = flow->sender.in_flight_bytes;
    return window > in_flight ? (window - in_flight) / full_frame_bytes(flow) : 0;
}

void cw_congestion_sample(struct cw_flow *flow, uint64_t round_trip_ns)
{
    if (round_trip_ns < flow->congestion.round_trip_ns) {
        flow->congestion.round_trip_ns = round_trip_ns;
    }
}

/* The window for the next round. */
static uint64_t next_window(struct cw_congestion *congestion, uint64_t frame_bytes, uint64_t target, uint64_t min_ns)
{
    uint64_t window = congestion->window_bytes;
    uint64_t trip_ns = congestion->round_trip_ns;
    if (congestion->round_sent >= LOSS_ROUND_MIN && congestion->round_lost > congestion->round_sent / LOSS_SHARE) {
        congestion->slow_start = false;
        return window - window / 4;
    }
    if (trip_ns == UINT64_MAX) {
        return window; /* no sample in this round */
    }
    uint64_t half_way_ns = min_ns + (target - min_ns) / 2;
    if (congestion->slow_start && trip_ns <= half_way_ns) {
        return congestion->limited ? 2 * window : window;
    }
    if (congestion->slow_start) {
        congestion->slow_start = false;
        return trip_ns > target ? window * target / trip_ns : window;
    }
    if (trip_ns > target) {
        /* proportional to the excess, at most half */
        uint64_t share = (trip_ns - target) * 1024 / trip_ns * 4 / 5;
        return window - window * (share < 512 ? share : 512) / 1024;
    }
    if (!congestion->limited) {
        return window;
    }
    return window + frame_bytes / 2 + (trip_ns < half_way_ns ? window / 16 : 0);
}

/* The same as the TCP of 2003 has it (RFC 2581, RFC 3517), by the round: twice as much in slow start, one frame more
 * afterwards, half upon loss. */
static uint64_t next_window_by_loss(struct cw_congestion *congestion, uint64_t frame_bytes)
{
    uint64_t window = congestion->window_bytes;
    if (congestion->round_lost > 0) {
        congestion->slow_start = false;
        congestion->threshold_bytes = window / 2;
        return window / 2;
    }
    if (!congestion->limited) {
        return window;
    }
    uint64_t next = congestion->slow_start ? 2 * window : window + frame_bytes;
    if (congestion->slow_start && next >= congestion->threshold_bytes) {
        congestion->slow_start = false;
        return congestion->threshold_bytes > window ? congestion->threshold_bytes : window;
    }
    return next;
}

void cw_congestion_round_end(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_congestion *congestion = &flow->congestion;
    uint64_t frame_bytes = full_frame_bytes(flow);
    uint64_t window = congestion->by_loss
                          ? next_window_by_loss(congestion, frame_bytes)
                          : next_window(congestion, frame_bytes, target_ns(endpoint, flow), flow->round_trip.min_ns);
    uint64_t most = endpoint->config.congestion_window_max_bytes;
    window = window > most ? most : window;
    congestion->window_bytes = window > 2 * frame_bytes ? window : 2 * frame_bytes;
    congestion->round_end = flow->sender.sent.next;
    congestion->round_trip_ns = UINT64_MAX;
    congestion->round_sent = 0;
    congestion->round_lost = 0;
    congestion->limited = false;
}
