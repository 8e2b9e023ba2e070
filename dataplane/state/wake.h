/* wake: which flow is looked at next, because it has something to send or at a time.
 *
 * Invariant: a flow in session that has something to send is among the endpoint's active ones, or waits for what wakes
 * it: an acknowledgement, its pace, its shaper, its timer. */
#pragma once

#include "dataplane/state/endpoint.h"

enum {
    CW_CHUNK_RESERVE_SHARE = 16, /* one record of packets in so many is for oldest operations */
    CW_SILENCE_SHARE = 4,        /* of the failure bound: a silent peer that holds something of ours is asked */
};

/* Puts the flow among those that may send, if it has something to send. */
void cw_flow_wake(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* Makes sure that the flow's timer comes out by `time_ns`. */
void cw_flow_wake_at(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t time_ns);

/* What has to wait until others give back records of packets is looked at again soon. */
void cw_flow_wake_soon(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The peer holds memory of ours: if it falls silent, find out whether it is still there. */
void cw_flow_watch(struct cw_endpoint *endpoint, struct cw_flow *flow);

/* The oldest operation that the peer may not know in full, sent or not; NULL: none. */
struct cw_operation *cw_flow_oldest(const struct cw_flow *flow);

/* True if that one is queued, and the next of its queue. */
bool cw_flow_has_oldest(const struct cw_flow *flow);

/* True if only the oldest operation may go: the peer's queues are full, or the records of packets run out. What the
 * peer holds, and will not let go of, may wait for that very one, for which it always has room. */
static inline bool cw_flow_restrained(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    uint32_t reserve = 1 + endpoint->config.sent_chunk_count / CW_CHUNK_RESERVE_SHARE;
    return flow->sender.stopped || cw_pool_available(&endpoint->sent_chunks) <= reserve;
}

/* True if the flow has operations that have not begun to leave, but for those that carry credit. */
static inline bool cw_flow_has_queued(const struct cw_flow *flow)
{
    return flow->sender.queue_short.first != NULL || flow->sender.queue_bulk.first != NULL;
}

/* True if the flow has something to send for the first time, and may. */
static inline bool cw_flow_has_new(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    return flow->sender.queue_credit_frames.first != NULL ||
           (cw_flow_has_queued(flow) && (!cw_flow_restrained(endpoint, flow) || cw_flow_has_oldest(flow)));
}
