/* wake: the order of flows that have data to send, or that are due at a time.
 *
 * Invariant: a flow in session with data to send is among the endpoint's active ones, or waits for an event that wakes
 * it: an acknowledgement, its pace, its shaper, its timer. */
#pragma once

#include "dataplane/state/endpoint.h"

enum {
    CW_CHUNK_RESERVE_SHARE = 16, /* one in this number of packet records is for oldest operations */
    CW_SILENCE_SHARE = 4,        /* of the failure timeout: after it a silent peer with memory of ours is probed */
};

/* Makes the flow active, if it has data to send. */
void cw_flow_wake(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Sets the flow's timer to `time_ns`, unless it expires earlier. */
void cw_flow_wake_at(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t time_ns);

/* For a flow that waits until others return packet records: it is checked again soon. */
void cw_flow_wake_soon(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The peer has memory of ours: it is probed if it becomes silent. */
void cw_flow_watch(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The oldest operation that the peer may not have completely, sent or not; NULL: none. */
struct cw_operation *cw_flow_oldest(const struct cw_flow *flow);

/* True if that operation is queued, and the first of its queue. */
bool cw_flow_has_oldest(const struct cw_flow *flow);

/* True if only the oldest operation may go: the peer's queues are full, or few packet records are left.
 * Operations that occupy the peer may wait for the oldest one, for which it always has room. */
static inline bool cw_flow_restrained(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    uint32_t reserve = 1 + endpoint->config.sent_chunk_count / CW_CHUNK_RESERVE_SHARE;
    return flow->sender.stopped || cw_pool_available(&endpoint->sent_chunks) <= reserve;
}

/* True if the flow has operations that have not begun to leave, except credit frames. */
static inline bool cw_flow_has_queued(const struct cw_flow *flow)
{
    return flow->sender.queue_short.first != NULL || flow->sender.queue_bulk.first != NULL;
}

/* True if the flow has data to send for the first time, and may send it. */
static inline bool cw_flow_has_new(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    return flow->sender.queue_credit_frames.first != NULL ||
           (cw_flow_has_queued(flow) && (!cw_flow_restrained(endpoint, flow) || cw_flow_has_oldest(flow)));
}
