/* table: flows by address. */
#pragma once

#include "dataplane/state/endpoint.h"

/* A flow for an address that has none; `stream`: from our UDP port that much further on. When the table is full, one is
 * reclaimed that a set-up request made, nobody was told of, and whose asker has not proved itself in time. CW_OK;
 * CW_ERROR_LIMIT: there is none. The flow itself begins when somebody needs it (cw_endpoint_flow). */
int cw_flow_add(struct cw_endpoint *endpoint, const struct cw_address *address, uint32_t stream, uint32_t *index);
struct cw_flow *cw_flow_find(const struct cw_endpoint *endpoint, const struct cw_ip *ip, uint16_t udp_port);

/* Our UDP port towards the peer. */
static inline uint16_t cw_flow_port(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    return (uint16_t)(endpoint->config.address.udp_port + flow->stream);
}

/* Whom packets of a flow are for. In place: a copy of what was just written field by field would wait for it. */
static inline void cw_flow_receiver(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                    struct cw_wire_receiver *receiver)
{
    receiver->ip = flow->address.ip;
    memcpy(receiver->mac, flow->address.mac, sizeof(receiver->mac));
    receiver->port = flow->address.udp_port;
    receiver->own_port = cw_flow_port(endpoint, flow);
    receiver->by_device = false;
}
