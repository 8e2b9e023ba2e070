/* acknowledge: acknowledgements that have come in. */
#pragma once

#include "dataplane/core/endpoint.h"

/* Everything below `number` has arrived. */
void cw_acknowledge_below(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t number);

/* The payload of a verified ACK packet. False: malformed. */
bool cw_acknowledge_runs(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);

/* What was missing and may have been late: takes for lost what is so for too long. */
void cw_acknowledge_late(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* A REJECT packet. False: malformed. */
bool cw_acknowledge_reject(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);

/* A round trip can be taken from the echo of this packet. */
void cw_acknowledge_echo(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header);
