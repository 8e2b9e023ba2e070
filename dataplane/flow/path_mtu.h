/* path_mtu: how large the packets to a peer may be (packetization layer path MTU discovery, RFC 8899).
 *
 * A path may be narrower than the links at its ends, and routers, switches and tunnels need not say so. A session begins
 * with packets for CW_PATH_MTU_BASE. Once much is to be sent that would fill larger ones, a PROBE goes that is as large
 * as both ports take packets; each ACK tells of the latest one that has come. What is not answered is asked again, and
 * smaller sizes before it; what was found too large is looked at again later, since packets get lost for other reasons,
 * too.
 *
 * A packet that is sent again is the same packet: where the path becomes narrower than what is under way, the session
 * ends (CW_ERROR_PATH_MTU). */
#pragma once

#include "dataplane/state/endpoint.h"

/* A session begins: nothing is known of its path. */
void cw_path_mtu_begin(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* An operation would fill larger packets than are known to arrive. */
void cw_path_mtu_want(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A packet with so much payload has been sent again and again. */
void cw_path_mtu_doubt(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes);

/* The largest packets that are sent. */
uint32_t cw_path_mtu_bytes(const struct cw_endpoint *endpoint, const struct cw_flow *flow);

/* What is due at mtu.due_ns. The session may end. */
void cw_path_mtu_turn(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* An ACK has come that says so of the latest PROBE with a payload (cw_wire_probe_word). */
void cw_path_mtu_answered(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t word);
