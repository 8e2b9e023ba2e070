/* acknowledge: acknowledgements that have come in. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Everything below `number` has arrived. */
void cw_acknowledge_below(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t number);

/* The payload of a verified ACK packet. False: malformed. */
bool cw_acknowledge_runs(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);

/* Packets that were missing and may have been late: treats them as lost after too long a time. */
void cw_acknowledge_late(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A REJECT packet. False: malformed. */
bool cw_acknowledge_reject(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);

/* A round trip can be taken from the echo of this packet. */
void cw_acknowledge_echo(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                         uint64_t arrival_ns);

/* The local time of a timestamp of ours: the last one that had it, since they repeat after 69 s; 0: there was none. */
static inline uint64_t cw_timestamp_time(const struct cw_endpoint *endpoint, uint32_t timestamp)
{
    uint64_t now_ticks = endpoint->now_ns >> CW_WIRE_TIMESTAMP_SHIFT;
    uint32_t ago = (uint32_t)now_ticks - timestamp;
    return now_ticks < ago ? 0 : (now_ticks - ago) << CW_WIRE_TIMESTAMP_SHIFT;
}
