/* Shaper: limits the total rate to several peers, to the rate of a link that they share (Takano et al. 2005: gaps of
 * exact length between frames, instead of bursts that a distant queue must hold).
 *
 * Invariants
 *   - In any time T at most rate x T and one frame leave, in bytes on the line (frame, preamble, check sequence, gap).
 *     A late turn may also send the amount that it has missed, at most catch_up_ns of it. An idle shaper saves no time.
 *   - Acknowledgements and probes of the same flows count, and go first; the few packets that set a session up do not.
 *   - Flows that wait have their turn one after the other.
 * Owner: the thread that turns the endpoint. */
#pragma once

#include "dataplane/state/endpoint.h"

/* The line shaper of an endpoint: on a slow line, all flows without another shaper take turns at its port's rate.
 * Otherwise whole windows would wait in the NIC, in front of acknowledgements and short messages to other peers. Flows
 * across a wide area have their own pace, and do not wait for it. Multicasts do not count. This sets it by the port's
 * rate. */
void cw_shaper_line(struct cw_endpoint *endpoint);

/* The shaper of a flow for which no other is set. */
static inline uint8_t cw_shaper_default(const struct cw_endpoint *endpoint)
{
    return (uint8_t)(endpoint->shapers[CW_SHAPER_LINE].rate_bps != 0 ? (uint32_t)CW_SHAPER_LINE : CW_SHAPER_NONE);
}

/* True: a packet without data must wait; *until_ns: until then. */
bool cw_shaper_holds(struct cw_endpoint *endpoint, const struct cw_flow *flow, uint64_t *until_ns);

/* The time on the line of a frame that leaves now: now, or later if the port sends frames at their time. */
uint64_t cw_shaper_departure(const struct cw_endpoint *endpoint, const struct cw_shaping *shaping);

/* True: a data packet of the flow may leave now; otherwise the flow waits, and is woken for its turn. */
bool cw_shaper_pass(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A frame of any kind has left. */
void cw_shaper_sent(struct cw_endpoint *endpoint, const struct cw_shaping *shaping, uint32_t frame_bytes);

/* The flow has sent its packets: the next one's turn. */
void cw_shaper_done(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The timer has expired. */
void cw_shaper_turn(struct cw_endpoint *endpoint, struct cw_shaper *shaper);

/* Removes the flow from the queue: its session has ended. */
void cw_shaper_remove(struct cw_endpoint *endpoint, struct cw_flow *flow);
