/* stream: the sessions with one process, and the way that a flow's packets take. */
#pragma once

#include "dataplane/state/endpoint.h"

/* A flow for a stream of the process whose stream 0 is `first`, as cw_stream_set says. NULL: the table is full. */
struct cw_flow *cw_stream_add(struct cw_endpoint *endpoint, const struct cw_flow *first, uint32_t stream);

/* The peer's MAC address is known, or is another one. */
void cw_way_address(struct cw_flow *flow, const uint8_t mac[6]);

/* The relay on a flow's way, if there is one, seems to be silent: straight to the peer for a while. */
void cw_way_detour(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Back to the relay, if the while is over. */
void cw_way_return(struct cw_endpoint *endpoint, struct cw_flow *flow);
