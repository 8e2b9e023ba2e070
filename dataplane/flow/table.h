/* table: flows by address. */
#pragma once

#include "dataplane/state/endpoint.h"

/* A flow for an address that has none; `stream`: from our UDP port that much further on. When the table is full, it
 * reclaims one that a set-up request made, of which the application has no notice, and whose requester has not proved
 * itself in time. CW_OK; CW_ERROR_LIMIT: there is none. The flow itself begins on demand (cw_endpoint_flow). */
int cw_flow_add(struct cw_endpoint *endpoint, const struct cw_address *address, uint32_t stream, uint32_t *index);
struct cw_flow *cw_flow_find(const struct cw_endpoint *endpoint, const struct cw_ip *ip, uint16_t udp_port);

/* Our UDP port towards the peer. */
static inline uint16_t cw_flow_port(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    return (uint16_t)(endpoint->config.address.udp_port + flow->stream);
}

/* The receiver of a flow's packets. In place: a copy of fields just written would wait for their stores. */
static inline void cw_flow_receiver(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                    struct cw_wire_receiver *receiver)
{
    receiver->ip = flow->address.ip;
    memcpy(receiver->mac, flow->address.mac, sizeof(receiver->mac));
    receiver->port = flow->address.udp_port;
    receiver->own_port = cw_flow_port(endpoint, flow);
    receiver->by_device = false;
}
