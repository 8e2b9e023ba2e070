/* receive: frames that have come in. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Received Ethernet frames, in order; at most CW_BURST. */
void cw_receive_frames(struct cw_endpoint *endpoint, const struct cw_received *packets, uint32_t count);
