#include "dataplane/congestion/bandwidth.h"

#include "dataplane/congestion/congestion.h"
#include "dataplane/state/endpoint.h"

enum {
    UNIT = 1024,            /* of gains */
    GAIN_START = 2955,      /* 2 / ln 2: the least that doubles the rate each round */
    GAIN_DRAIN = 355,       /* its inverse */
    GAIN_WINDOW = 2 * UNIT, /* acknowledgements come late and in bunches */
    GAIN_LOOK = UNIT / 2,   /* while the smallest round trip is looked for */
    FLAT_ROUNDS = 3,        /* without growth by a quarter: the rate has been found */
    FIRST_PACKETS = 32,     /* in flight before anything is known */
    LEAST_PACKETS = 2,      /* a round trip, however slow the path seems */
    SLACK_PACKETS = 16,     /* in the window beyond the model: acknowledgements in flight, turns */
    LOSS_HEAVY = 16,        /* more than one in LOSS_HEAVY in a round */
    LOSS_ROUND_MIN = 64,    /* packets of a round before its loss says something, at a known rate */
    LOSS_SAMPLE_MIN = 512,  /* at one that is found: of as many rounds as it takes */
    SHARE_LEAST = UNIT / 8, /* of a known rate's window */
    LOOK_INTERVAL_S = 10,
};
#define LOOK_NS        200000000ull
#define NS_PER_SECOND  1000000000ull
#define WINDOW_UNKNOWN UINT64_MAX

/* Of the rate in each eighth of a cycle. */
static const uint16_t cycle_gain[8] = {UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT};

static uint64_t frame_bytes_of(const struct cw_flow *flow)
{
    return cw_flow_overhead(flow) + (uint64_t)flow->session.payload_bytes_max;
}

/* Bytes on the way at `rate_bps` when no queue stands; WINDOW_UNKNOWN before a round trip has been seen. */
static uint64_t on_the_way(const struct cw_flow *flow, uint64_t rate_bps)
{
    uint64_t trip_ns = flow->round_trip.min_ns;
    return trip_ns == 0 ? WINDOW_UNKNOWN : (uint64_t)((double)rate_bps / 8e9 * (double)trip_ns);
}

static uint64_t scaled(uint64_t value, uint32_t gain)
{
    return value == WINDOW_UNKNOWN ? value : value / UNIT * gain + value % UNIT * gain / UNIT;
}

static void window_set(const struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t bytes)
{
    uint64_t most = endpoint->config.congestion_window_max_bytes;
    uint64_t slack = SLACK_PACKETS * frame_bytes_of(flow);
    flow->congestion.window_bytes = bytes > most - slack ? most : bytes + slack;
}

/* ---- rounds ---- */

/* Packets before their loss is a signal. Next to fast flows that lose as large a part, the few packets of a slow flow's
 * round have heavy loss by chance every other time. If it then reduced its estimate of the path it would never get its
 * share of the link, so it counts on for more rounds. */
static uint32_t loss_sample_min(const struct cw_bandwidth *model)
{
    return model->known_bps != 0 ? LOSS_ROUND_MIN : LOSS_SAMPLE_MIN;
}

static void round_begin(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_bandwidth *model = flow->bandwidth;
    model->round_begin_ns = endpoint->now_ns;
    model->round_begin_bytes = model->delivered_bytes;
    model->round_end_bytes = model->delivered_bytes + flow->sender.in_flight_bytes;
    model->round_open = true;
    flow->congestion.limited = false;
    if (model->known_bps != 0 || flow->congestion.round_sent >= LOSS_SAMPLE_MIN) {
        flow->congestion.round_sent = 0;
        flow->congestion.round_lost = 0;
    }
}

static uint64_t greatest(const struct cw_bandwidth *model)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < CW_BANDWIDTH_ROUNDS; i++) {
        most = model->rounds_bps[i] > most ? model->rounds_bps[i] : most;
    }
    return most;
}

static bool heavy_loss(const struct cw_flow *flow)
{
    const struct cw_congestion *counted = &flow->congestion;
    return counted->round_sent >= loss_sample_min(flow->bandwidth) &&
           counted->round_lost > counted->round_sent / LOSS_HEAVY;
}

/* The round has ended: one sample. If the application had too little to send, the sample can only raise the
 * estimate. */
static void round_end(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_bandwidth *model = flow->bandwidth;
    uint64_t elapsed_ns = endpoint->now_ns - model->round_begin_ns;
    /* packets sent as one burst arrive as one, and show the rate of the line */
    elapsed_ns = elapsed_ns > flow->round_trip.min_ns ? elapsed_ns : flow->round_trip.min_ns;
    uint64_t bytes = model->delivered_bytes - model->round_begin_bytes; /* as they are on the line, as all rates */
    uint64_t sample_bps = elapsed_ns > 0 ? (uint64_t)((double)bytes * 8e9 / (double)elapsed_ns) : 0;
    bool limited = flow->congestion.limited && model->round_begin_bytes >= model->dry_bytes;
    bool lost = limited && heavy_loss(flow);
    if (limited || sample_bps > model->rate_bps) {
        if (lost && model->phase != CW_BANDWIDTH_LOOK) {
            for (uint32_t i = 0; i < CW_BANDWIDTH_ROUNDS; i++) {
                model->rounds_bps[i] = 0; /* earlier deliveries do not count any more */
            }
        }
        if (model->phase != CW_BANDWIDTH_LOOK) {
            model->rounds_bps[model->round_count++ % CW_BANDWIDTH_ROUNDS] = sample_bps;
            model->rate_bps = greatest(model);
        }
    }
    if (model->phase == CW_BANDWIDTH_START && !limited && heavy_loss(flow)) {
        model->phase = CW_BANDWIDTH_DRAIN; /* an application that waits for lost data has too little to send */
    }
    if (model->phase != CW_BANDWIDTH_START || !limited) {
        return;
    }
    if (model->rate_bps >= model->start_bps + model->start_bps / 4 && !lost) {
        model->start_bps = model->rate_bps;
        model->rounds_flat = 0;
    } else if (++model->rounds_flat >= FLAT_ROUNDS || lost) {
        model->phase = CW_BANDWIDTH_DRAIN;
    }
}

/* ---- phases ---- */

static void probe_begin(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_bandwidth *model = flow->bandwidth;
    model->phase = CW_BANDWIDTH_PROBE;
    model->cycle = 2 + flow->index % 6; /* flows that share a link probe at different times */
    model->phase_since_ns = endpoint->now_ns;
}

static void phase_advance(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_bandwidth *model = flow->bandwidth;
    uint64_t since_ns = endpoint->now_ns - model->phase_since_ns;
    uint64_t in_flight = flow->sender.in_flight_bytes;
    switch (model->phase) {
    case CW_BANDWIDTH_DRAIN:
        /* at least this number is in flight: a rate that seems lower could never be found to be higher */
        if (in_flight <= on_the_way(flow, model->rate_bps) || in_flight <= LEAST_PACKETS * frame_bytes_of(flow)) {
            probe_begin(endpoint, flow);
        }
        break;
    case CW_BANDWIDTH_PROBE:
        if (since_ns >= flow->round_trip.min_ns) {
            model->cycle = (model->cycle + 1) % 8;
            model->phase_since_ns = endpoint->now_ns;
        }
        if (endpoint->now_ns - model->looked_ns >= LOOK_INTERVAL_S * NS_PER_SECOND) {
            model->phase = CW_BANDWIDTH_LOOK;
            model->phase_since_ns = endpoint->now_ns;
        }
        break;
    case CW_BANDWIDTH_LOOK:
        if (since_ns >= LOOK_NS && since_ns >= 2 * flow->round_trip.min_ns) {
            model->looked_ns = endpoint->now_ns;
            probe_begin(endpoint, flow);
        }
        break;
    default:
        break;
    }
}

/* Window and rate from the model. */
static void steer(const struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_bandwidth *model = flow->bandwidth;
    if (model->rate_bps == 0) {
        flow->timers.rate_bps = 0;
        flow->congestion.window_bytes = FIRST_PACKETS * frame_bytes_of(flow);
        return;
    }
    uint32_t rate_gain = UNIT;
    uint32_t window_gain = GAIN_WINDOW;
    switch (model->phase) {
    case CW_BANDWIDTH_START:
        rate_gain = window_gain = GAIN_START;
        break;
    case CW_BANDWIDTH_DRAIN:
        rate_gain = GAIN_DRAIN;
        break;
    case CW_BANDWIDTH_PROBE:
        rate_gain = cycle_gain[model->cycle];
        break;
    default:
        window_gain = GAIN_LOOK;
        break;
    }
    /* the estimate may come from a few bytes; and the flow must probe for more */
    uint32_t least_packets = model->phase == CW_BANDWIDTH_START ? FIRST_PACKETS : LEAST_PACKETS;
    uint64_t least_bps = least_packets * frame_bytes_of(flow) * 8 * NS_PER_SECOND / (flow->round_trip.min_ns + 1);
    uint64_t rate_bps = scaled(model->rate_bps, rate_gain);
    flow->timers.rate_bps = rate_bps > least_bps ? rate_bps : least_bps;
    window_set(endpoint, flow, scaled(on_the_way(flow, model->rate_bps), window_gain));
}

/* The rate is known: a window of twice what is on the way, less of it while the path takes less than it should. */
static void steer_known(const struct cw_endpoint *endpoint, struct cw_flow *flow, bool round_over)
{
    struct cw_bandwidth *model = flow->bandwidth;
    if (round_over && heavy_loss(flow)) {
        model->share -= model->share / 4;
        model->share = model->share > SHARE_LEAST ? model->share : SHARE_LEAST;
    } else if (round_over) {
        model->share += (UNIT - model->share + 15) / 16;
    }
    uint64_t bytes = scaled(on_the_way(flow, model->known_bps), GAIN_WINDOW);
    window_set(endpoint, flow, scaled(bytes, model->share));
}

/* ---- calls ---- */

int cw_bandwidth_set(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_traffic *traffic)
{
    if (traffic->control == CW_TRAFFIC_DELAY) {
        if (flow->bandwidth != NULL) {
            cw_bandwidth_stop(endpoint, flow);
        }
        return CW_OK;
    }
    if (flow->bandwidth == NULL) {
        flow->bandwidth = cw_pool_acquire(&endpoint->bandwidths);
        if (flow->bandwidth == NULL) {
            return CW_ERROR_LIMIT;
        }
    }
    flow->bandwidth->known_bps = traffic->rate_bps;
    flow->bandwidth->by_itself = false;
    cw_bandwidth_init(endpoint, flow);
    return CW_OK;
}

void cw_bandwidth_start(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    uint64_t window_bytes = flow->congestion.window_bytes;
    const struct cw_traffic traffic = {.control = CW_TRAFFIC_BANDWIDTH, .shaper = flow->shaping.shaper};
    if (cw_bandwidth_set(endpoint, flow, &traffic) != CW_OK) {
        return; /* there is one for each flow */
    }
    struct cw_bandwidth *model = flow->bandwidth;
    model->by_itself = true;
    model->rate_bps = (uint64_t)((double)window_bytes * 8e9 / (double)flow->round_trip.min_ns);
    model->rounds_bps[model->round_count++] = model->rate_bps;
    steer(endpoint, flow);
}

void cw_bandwidth_stop(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    cw_pool_release(&endpoint->bandwidths, flow->bandwidth);
    flow->bandwidth = NULL;
    flow->timers.rate_bps = 0;
    cw_congestion_init(endpoint, flow);
}

struct cw_traffic cw_bandwidth_traffic(const struct cw_flow *flow)
{
    struct cw_traffic traffic = {.control = CW_TRAFFIC_DELAY, .shaper = flow->shaping.shaper};
    if (flow->bandwidth != NULL && !flow->bandwidth->by_itself) {
        traffic.rate_bps = flow->bandwidth->known_bps;
        traffic.control = traffic.rate_bps > 0 ? CW_TRAFFIC_RATE : CW_TRAFFIC_BANDWIDTH;
    }
    return traffic;
}

void cw_bandwidth_init(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->bandwidth->by_itself) {
        cw_bandwidth_stop(endpoint, flow); /* the next session looks at its path for itself */
        return;
    }
    uint64_t known_bps = flow->bandwidth->known_bps;
    flow->congestion.round_sent = 0;
    flow->congestion.round_lost = 0;
    *flow->bandwidth = (struct cw_bandwidth){
        .known_bps = known_bps, .phase_since_ns = endpoint->now_ns, .looked_ns = endpoint->now_ns, .share = UNIT};
    if (known_bps != 0) {
        flow->timers.rate_bps = cw_shaper_is_set(&flow->shaping) ? 0 : known_bps;
        steer_known(endpoint, flow, false);
    } else {
        steer(endpoint, flow);
    }
}

void cw_bandwidth_idle(struct cw_flow *flow)
{
    if (flow->congestion.limited) {
        return; /* it waited for its rate */
    }
    flow->bandwidth->round_open = false;
}

void cw_bandwidth_dry(struct cw_flow *flow)
{
    uint64_t in_flight = flow->sender.in_flight_bytes;
    flow->bandwidth->dry_bytes =
        flow->bandwidth->delivered_bytes + in_flight + in_flight / 32; /* with gaps and preambles */
}

void cw_bandwidth_delivered(struct cw_flow *flow, uint32_t frame_bytes)
{
    flow->bandwidth->delivered_bytes += frame_bytes + CW_ETHERNET_OVERHEAD_BYTES;
}

void cw_bandwidth_progress(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_bandwidth *model = flow->bandwidth;
    bool over = model->round_open && model->delivered_bytes >= model->round_end_bytes;
    if (model->known_bps != 0) {
        steer_known(endpoint, flow, over);
    } else {
        if (over) {
            round_end(endpoint, flow);
        }
        phase_advance(endpoint, flow);
        steer(endpoint, flow);
    }
    if (over || !model->round_open) {
        round_begin(endpoint, flow);
    }
}
