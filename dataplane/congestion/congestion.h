/* congestion: how much a flow may have in flight. */
#pragma once

#include "dataplane/state/endpoint.h"

void cw_congestion_init(const struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The target round trip of a sender with the smallest round trip `min_ns`, in nanoseconds: the same for all that share
 * a LAN, flows and multicasts alike. The time of some full frames on the port's line is part of it: the smallest round
 * trip is a small packet's, and slow lines would allow less than a few full frames in flight. `frame_bytes`: with all
 * headers. `spins`: sender and receiver poll all the time. */
uint64_t cw_congestion_target(const struct cw_endpoint *endpoint, uint64_t min_ns, uint32_t frame_bytes, bool spins);

/* True if another full packet may be in flight. */
bool cw_congestion_open(struct cw_flow *flow);

/* Full packets for which the window has room. */
uint64_t cw_congestion_room(const struct cw_flow *flow);

/* A round trip was measured. */
void cw_congestion_sample(struct cw_flow *flow, uint64_t round_trip_ns);

/* Packets below `number` were acknowledged. */
void cw_congestion_progress(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The next round's window by delay, or by loss (RFC 2581) where the endpoint is configured so; called when all packets
 * of the round are acknowledged. */
void cw_congestion_round_end(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* No acknowledgement arrived for the packets in flight within the time-out. */
void cw_congestion_timeout(struct cw_flow *flow);
