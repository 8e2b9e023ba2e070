/* transmit: flows send, in turn. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Sends for the flows in turn; returns the number of packets. */
uint32_t cw_transmit_turn(struct cw_endpoint *endpoint);

/* A packet outside the data sequence, with `payload_bytes` of room behind the header (payload returned; NULL: the port
 * has no buffer); completed by cw_transmit_control_finish. */
uint8_t *cw_transmit_control(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_wire_type type,
                             uint32_t payload_bytes);
void cw_transmit_control_finish(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t payload_bytes);

/* Bytes of a bulk operation that a full packet carries; 0: not in session. */
uint32_t cw_transmit_part_bytes(const struct cw_flow *flow);
