/* Bandwidth: control of a flow across the wide area by a model of its path instead of by its round trip: how fast it
 * delivers, and how long the way is when no queue stands on it (BBR: Cardwell, Cheng, Gunn, Yeganeh and Jacobson 2016;
 * draft-cardwell-iccrg-bbr-congestion-control).
 *
 * Two ways, by enum cw_traffic_control:
 *   CW_TRAFFIC_RATE        the rate is known: the window holds twice what is on the way at that rate, and a shaper
 *                          keeps the rate, or the flow itself.
 *   CW_TRAFFIC_BANDWIDTH   it is found: start (2.9 times the rate of delivery until that grows no more), drain, then
 *                          eight round trips a cycle, of which one probes for more, one makes good for it; every ten
 *                          seconds a moment of half the window, so that the smallest round trip can be seen.
 * Random loss changes nothing: it is repaired, and the rate is that of what was delivered. Only a round in which more
 * than one in LOSS_HEAVY was lost says that the path has less than was thought.
 *
 * A flow that is controlled by its round trip goes over to CW_TRAFFIC_BANDWIDTH by itself if its path turns out to be
 * long, and back if it was not.
 *
 * A round is over when as much has been delivered as was in flight when it began, whatever was lost meanwhile; each
 * gives one sample of the rate. Owner: whoever turns the endpoint. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cw_endpoint;
struct cw_flow;
struct cw_traffic;

enum { CW_BANDWIDTH_ROUNDS = 10 /* the rate is the greatest of so many rounds */ };

enum cw_bandwidth_phase {
    CW_BANDWIDTH_START = 0,
    CW_BANDWIDTH_DRAIN = 1,
    CW_BANDWIDTH_PROBE = 2,
    CW_BANDWIDTH_LOOK = 3, /* for the smallest round trip */
};

struct cw_bandwidth {
    uint64_t known_bps; /* CW_TRAFFIC_RATE; 0: to be found */
    uint64_t rate_bps;  /* of delivery, as far as is known; 0: not yet */
    uint64_t rounds_bps[CW_BANDWIDTH_ROUNDS];
    uint32_t round_count;
    uint64_t round_begin_ns;
    uint64_t round_begin_bytes; /* delivered by then */
    uint64_t round_end_bytes;
    bool round_open;
    uint64_t delivered_bytes;
    uint64_t dry_bytes; /* rounds that began before so much was delivered had too little to send */
    uint8_t phase;
    uint8_t rounds_flat;     /* START: without growth */
    uint64_t start_bps;      /* START: the rate that growth is measured against */
    uint32_t cycle;          /* PROBE: which eighth */
    uint64_t phase_since_ns; /* since when this phase, or this eighth of the cycle */
    uint64_t looked_ns;      /* when the smallest round trip was looked for the last time */
    uint32_t share;          /* CW_TRAFFIC_RATE: of the window, in 1024ths; less after heavy loss */
    bool by_itself;          /* nobody asked for it: the path is long */
};

/* Takes up or gives up this kind of control. CW_OK, CW_ERROR_MEMORY. */
int cw_bandwidth_set(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_traffic *traffic);

/* As it was set. */
struct cw_traffic cw_bandwidth_traffic(const struct cw_flow *flow);

/* The flow's path turned out to be long: takes up CW_TRAFFIC_BANDWIDTH with what the present window lets through. */
void cw_bandwidth_take_over(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The opposite, for a flow that has taken it up by itself. */
void cw_bandwidth_give_up(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A session begins: forgets what an earlier one had found. */
void cw_bandwidth_init(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A packet is about to be sent while nothing is in flight: the time before tells nothing of the path. */
void cw_bandwidth_idle(struct cw_flow *flow);

/* The flow has nothing more to send: what is delivered of all that is in flight tells nothing of the path's rate, but
 * that it is no less. */
void cw_bandwidth_dry(struct cw_flow *flow);

/* A packet of `frame_bytes` was acknowledged for the first time. */
void cw_bandwidth_delivered(struct cw_flow *flow, uint32_t frame_bytes);

/* After each acknowledgement: sets the flow's window and rate. */
void cw_bandwidth_progress(struct cw_endpoint *endpoint, struct cw_flow *flow);
