/* timers: deadlines of a flow: probes, failure, pacing. */
#pragma once

#include "dataplane/state/endpoint.h"

/* A packet left that the peer must answer. */
void cw_timers_sent(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The peer must show that it receives our packets even if nothing is in flight. */
void cw_timers_probe(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A valid packet of the peer came. Echoed is the timestamp of the latest of ours that it had then. */
void cw_timers_received(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t echo);

/* Something was acknowledged: the time-out starts again, or ends if nothing is in flight. */
void cw_timers_progress(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Runs everything whose time has come; returns how much. */
uint32_t cw_timers_turn(struct cw_endpoint *endpoint);

/* True if pacing admits a packet now; else the flow is queued again when it does. */
bool cw_timers_pace(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* How long to wait for an answer before a probe: the round trip, its variation, and the delay of the peer's wait
 * mode. */
uint64_t cw_timers_timeout(const struct cw_flow *flow);

/* A packet of this many bytes has left a paced flow. */
void cw_timers_paced(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t frame_bytes);
