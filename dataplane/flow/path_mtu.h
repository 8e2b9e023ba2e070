/* path_mtu: the largest packets to a peer (packetization layer path MTU discovery, RFC 8899).
 *
 * A path may be narrower than the links at its ends, and routers, switches and tunnels need not report it. A session
 * begins with packets for CW_PATH_MTU_BASE. When there is much data that would fill larger packets, it sends a PROBE of
 * the largest size that both ports accept. Each ACK reports the latest PROBE that has arrived. A size without an answer
 * is probed again, after smaller sizes. A size that was too large is probed again later, since packets also get lost
 * for other reasons.
 *
 * A packet that is sent again keeps its length: if the path becomes narrower than packets in flight, the session ends
 * (CW_ERROR_PATH_MTU). */
#pragma once

#include "dataplane/state/endpoint.h"

/* A session begins: nothing is known of its path. */
void cw_path_mtu_begin(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* An operation would fill larger packets than are known to arrive. */
void cw_path_mtu_want(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A packet with this payload has been sent many times. */
void cw_path_mtu_doubt(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes);

/* The largest packets that are sent. */
uint32_t cw_path_mtu_bytes(const struct cw_endpoint *endpoint, const struct cw_flow *flow);

/* The step that is due at mtu.due_ns. The session may end. */
void cw_path_mtu_turn(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* An ACK has arrived with this report of the latest PROBE with a payload (cw_wire_probe_word). */
void cw_path_mtu_answered(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t word);
