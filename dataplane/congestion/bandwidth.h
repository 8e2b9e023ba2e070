/* Bandwidth: control of a flow across the wide area by a model of its path instead of by its round trip: the rate of
 * delivery, and the round trip without queues (BBR: Cardwell, Cheng, Gunn, Yeganeh and Jacobson 2016;
 * draft-cardwell-iccrg-bbr-congestion-control).
 *
 * Two modes, by enum cw_traffic_control:
 *   CW_TRAFFIC_RATE        the rate is known: the window is twice the data in flight at that rate. A shaper, or the
 *   flow
 *                          itself, keeps the rate.
 *   CW_TRAFFIC_BANDWIDTH   the rate is measured: start (2.9 times the rate of delivery until that stops growing),
 *   drain,
 *                          then cycles of eight round trips, of which one probes for more and one compensates for it.
 *                          Every ten seconds the window is halved for a moment, to measure the smallest round trip.
 * Random loss does not change the rate: it is repaired, and the rate is that of delivery. If more than one packet in
 * LOSS_HEAVY is lost in a round, the path has become slower.
 *
 * A flow that is controlled by its round trip switches to CW_TRAFFIC_BANDWIDTH on its own if its path is long, and back
 * if it is not.
 *
 * A round ends when the amount in flight at its start has been delivered, independent of losses; each gives one sample
 * of the rate. Owner: the thread that turns the endpoint. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_endpoint;
struct cw_flow;
struct cw_traffic;

enum { CW_BANDWIDTH_ROUNDS = 10 /* the rate is the highest of this number of rounds */ };

enum cw_bandwidth_phase {
    CW_BANDWIDTH_START = 0,
    CW_BANDWIDTH_DRAIN = 1,
    CW_BANDWIDTH_PROBE = 2,
    CW_BANDWIDTH_LOOK = 3, /* for the smallest round trip */
};

struct cw_bandwidth {
    uint64_t known_bps; /* CW_TRAFFIC_RATE; 0: to be measured */
    uint64_t rate_bps;  /* of delivery; 0: not known yet */
    uint64_t rounds_bps[CW_BANDWIDTH_ROUNDS];
    uint32_t round_count;
    uint64_t round_begin_ns;
    uint64_t round_begin_bytes; /* delivered by then */
    uint64_t round_end_bytes;
    bool round_open;
    uint64_t delivered_bytes;
    uint64_t dry_bytes; /* rounds that began before this amount was delivered had too little to send */
    uint8_t phase;
    uint8_t rounds_flat;     /* START: without growth */
    uint64_t start_bps;      /* START: the rate that growth is measured against */
    uint32_t cycle;          /* PROBE: which eighth */
    uint64_t phase_since_ns; /* start of this phase, or of this eighth of the cycle */
    uint64_t looked_ns;      /* last measurement of the smallest round trip */
    uint32_t share;          /* CW_TRAFFIC_RATE: of the window, in 1024ths; less after heavy loss */
    bool by_itself;          /* not requested: the path is long */
};

/* Starts or ends this kind of control. CW_OK, CW_ERROR_MEMORY. */
int cw_bandwidth_set(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_traffic *traffic);

/* The traffic control as set. */
struct cw_traffic cw_bandwidth_traffic(const struct cw_flow *flow);

/* The flow's path is long: starts CW_TRAFFIC_BANDWIDTH at the rate of the current window. */
void cw_bandwidth_start(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The opposite, for a flow that has started it on its own. */
void cw_bandwidth_stop(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A session begins: removes measurements of an earlier one. */
void cw_bandwidth_init(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A packet is about to be sent while none is in flight: the time before is no measurement of the path. */
void cw_bandwidth_idle(struct cw_flow *flow);

/* The flow has no more data to send: the delivery of the data in flight is only a lower bound of the path's rate. */
void cw_bandwidth_dry(struct cw_flow *flow);

/* A packet of `frame_bytes` was acknowledged for the first time. */
void cw_bandwidth_delivered(struct cw_flow *flow, uint32_t frame_bytes);

/* After each acknowledgement: sets the flow's window and rate. */
void cw_bandwidth_progress(struct cw_endpoint *endpoint, struct cw_flow *flow);
