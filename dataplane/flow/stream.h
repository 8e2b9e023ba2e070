/* stream: further sessions with one process. */
#pragma once

#include "dataplane/state/endpoint.h"

/* A flow for a stream of the process whose stream 0 is `first`, sent to as that is. NULL: the table is full. */
struct cw_flow *cw_stream_add(struct cw_endpoint *endpoint, const struct cw_flow *first, uint32_t stream);
