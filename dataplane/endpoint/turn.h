/* turn: all of an endpoint's work, and the signals that there is some. */
#pragma once

#include "dataplane/state/endpoint.h"

/* Something was posted from outside a turn: sends it at once, unless `flags` (CW_MORE) say that more follows. */
void cw_endpoint_push(struct cw_endpoint *endpoint, uint32_t flags);

/* Forgets a cw_endpoint_fetch that found nothing: the next turn, or the next fetch, looks again. */
static inline void cw_endpoint_fetched_nothing(struct cw_endpoint *endpoint)
{
    endpoint->has_fetched = false;
}

/* Before a sleep that the RDMA device's descriptor must end: true if an event has arrived there, and the thread must
 * not sleep. Without a device: false. */
bool cw_endpoint_arm(struct cw_endpoint *endpoint);

/* True if nothing but packets and timers can give this endpoint work. */
bool cw_endpoint_idle(const struct cw_endpoint *endpoint);
