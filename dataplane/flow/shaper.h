/* Shaper: caps the sum of what leaves to several peers, at the rate of a link that they share (Takano et al. 2005: gaps
 * of exact length between frames, instead of bursts that a queue far away has to take).
 *
 * Invariants
 *   - In any time T at most rate x T and one frame leave, as they are on the line (frame, preamble, check sequence,
 *     gap), but for what a turn that came late makes up for, at most catch_up_ns of it. An idle shaper saves up
 *     nothing.
 *   - Acknowledgements and probes of the same flows count, and go first; the few packets that set a session up do not.
 *   - Flows that wait have their turn one after the other.
 * Owner: whoever turns the endpoint. */
#pragma once

#include "dataplane/state/endpoint.h"

/* The line shaper of an endpoint: on a slow line, all flows without another shaper take turns at its port's rate. Else
 * whole windows would wait in the NIC, and acknowledgements and short messages to other peers behind them. Flows across a
 * wide area, which have their own pace, do not wait for it; multicasts do not count. Sets it by the port's rate. */
void cw_shaper_line(struct cw_endpoint *endpoint);

/* The shaper of a flow for which no other is set. */
static inline uint8_t cw_shaper_default(const struct cw_endpoint *endpoint)
{
    return (uint8_t)(endpoint->shapers[CW_SHAPER_LINE].rate_bps != 0 ? (uint32_t)CW_SHAPER_LINE : CW_SHAPER_NONE);
}

/* Whether a packet that is no data has to wait; *until_ns: until then. */
bool cw_shaper_holds(struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t *until_ns);

/* When a frame that leaves now is to be on the line: now, or later, where the port lets frames out at their time. */
uint64_t cw_shaper_departure(const struct cw_endpoint *endpoint, const struct cw_shaping *shaping);

/* Whether a data packet of the flow may leave now; else the flow waits, and is woken when its turn comes. */
bool cw_shaper_pass(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A frame has left, of whatever kind. */
void cw_shaper_sent(struct cw_endpoint *endpoint, const struct cw_shaping *shaping, uint32_t frame_bytes);

/* The flow has sent what it could: the next one's turn. */
void cw_shaper_done(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Whether an application may ask for this. */
bool cw_traffic_is_valid(const struct cw_traffic *traffic);

/* The timer has come out. */
void cw_shaper_turn(struct cw_endpoint *endpoint, struct cw_shaper *shaper);

/* The flow waits no more: its session is over. */
void cw_shaper_forget(struct cw_endpoint *endpoint, struct cw_flow *flow);
