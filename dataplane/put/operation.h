/* Operations: posted and in progress, with their number and their place in their lane.
 *
 * Invariants
 *   - Operations of a flow are numbered in posting order; the numbers of those still open span at most CW_PUT_WINDOW.
 *   - An operation is complete when all its packets are acknowledged, and retired (its number forgotten) when it is
 *     complete and the one before it in its lane is retired. So whatever is still held back at the target has a
 *     predecessor the target also knows.
 *   - The lane table holds the last operation of each lane that is not retired. */
#pragma once

#include "dataplane/state/endpoint.h"
#include "dataplane/state/rdma.h"

int cw_lanes_init(struct cw_lanes *lanes, uint32_t operation_count);
void cw_lanes_dispose(struct cw_lanes *lanes);

/* How a new operation takes its place. */
enum cw_operation_place {
    CW_OPERATION_ORDERED = 1,  /* last in its lane */
    CW_OPERATION_INTERNAL = 2, /* may use the reserve */
    CW_OPERATION_BY_RDMA = 4,  /* by the flow's queue pair */
};

/* A new operation on a flow, not yet queued; `place`: of enum cw_operation_place. NULL: no operation or number is
 * free. */
struct cw_operation *cw_operation_open(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_operation_kind kind,
                                       uint32_t lane_tag, uint32_t place);

/* CW_OPERATION_BY_RDMA if the flow's queue pair takes an operation of this kind; `token`: of the peer's region,
 * `local`: of the own one of a get. */
static inline uint32_t cw_operation_transport(const struct cw_endpoint *endpoint, const struct cw_flow *flow,
                                              enum cw_operation_kind kind, uint64_t token, uint64_t local)
{
    return flow->rdma != NULL && flow->rdma->is_up &&
                   endpoint->rdma->ops->accepts(endpoint->rdma, flow, kind, token, local)
               ? CW_OPERATION_BY_RDMA
               : 0;
}

/* Operations of a flow that are not retired. */
static inline uint32_t cw_operations_open(const struct cw_flow *flow)
{
    return flow->sender.open_count + (flow->rdma != NULL ? flow->rdma->open_count : 0);
}

/* Puts an operation into a queue by its number: one that had to wait (a message for its slot) goes before those posted
 * later. Older ones first keep a receiver with little memory moving, see cw_reassemblies_room. */
void cw_operation_push_ordered(struct cw_operation_queue *queue, struct cw_operation *operation);

/* Takes an operation out of a queue; false: it is not in it. */
bool cw_operation_queue_remove(struct cw_operation_queue *queue, struct cw_operation *operation);

/* Queues an opened operation to be sent. */
void cw_operation_queue_up(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* One packet of it is acknowledged. */
void cw_operation_acknowledged(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* Gives numbers to operations that go by packets, are not held back and got none for lack of numbers; `to_packets`:
 * packets carry those of the queue pair, too, from now on and from their beginning. If numbers are still short, the
 * flow's is_short is set. */
void cw_operations_number(struct cw_endpoint *endpoint, struct cw_flow *flow, bool to_packets);

/* BY_RDMA: it is at its target, or has failed with `status`. */
void cw_operation_done(struct cw_endpoint *endpoint, struct cw_operation *operation, int status);

/* Its last byte has left, in a packet that is not its first. */
void cw_operation_left(struct cw_endpoint *endpoint, const struct cw_operation *operation);

/* The answer of a get is here. */
void cw_operation_answered(struct cw_endpoint *endpoint, struct cw_operation *operation);

/* True if `count` internal operations could be numbered on this flow now. */
bool cw_operation_numbers_free(const struct cw_flow *flow, uint32_t count);

/* The peer has refused it: from now on it goes out as a void frame. */
void cw_operation_reject(struct cw_endpoint *endpoint, struct cw_operation *operation, int status);

/* Ends all operations of a flow with `status` (its session has ended). */
void cw_operations_abort(struct cw_endpoint *endpoint, struct cw_flow *flow, int status);

/* Hands over events that found no room before; returns how many. */
uint32_t cw_operations_deliver(struct cw_endpoint *endpoint);
