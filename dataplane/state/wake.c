#include "dataplane/state/wake.h"

/* ---- because it has something to send ---- */

struct cw_operation *cw_flow_oldest(const struct cw_flow *flow)
{
    struct cw_operation *operation = flow->sender.open_first;
    /* past what is complete, and requests that have arrived and wait for their answer */
    while (operation != NULL && operation->sent && operation->packets_open == 0) {
        operation = operation->open_next;
    }
    return operation;
}

bool cw_flow_has_oldest(const struct cw_flow *flow)
{
    const struct cw_operation *oldest = cw_flow_oldest(flow);
    return oldest != NULL && !oldest->sent &&
           (oldest == flow->sender.queue_short.first || oldest == flow->sender.queue_bulk.first ||
            oldest == flow->sender.queue_credit_frames.first);
}

void cw_flow_wake_soon(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->state == CW_PEER_ESTABLISHED && cw_flow_has_queued(flow) && !flow->sender.stopped) {
        cw_flow_wake_at(endpoint, flow, endpoint->now_ns + CW_ACK_DELAY_NS);
    }
}

void cw_flow_wake(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_sender *sender = &flow->sender;
    if (sender->is_active || flow->state != CW_PEER_ESTABLISHED) {
        return;
    }
    if (sender->lost_count == 0 && !cw_flow_has_new(endpoint, flow)) {
        flow->timers.paced = false; /* from here on it is not the loop that is late */
        cw_flow_wake_soon(endpoint, flow);
        return;
    }
    sender->is_active = true;
    sender->active_next = NULL;
    if (endpoint->active_first == NULL) {
        endpoint->active_first = flow;
    } else {
        endpoint->active_last->sender.active_next = flow;
    }
    endpoint->active_last = flow;
}

/* ---- at a time ---- */

void cw_flow_wake_at(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t time_ns)
{
    struct cw_wheel_entry *timer = &flow->timers.timer;
    if (cw_wheel_waiting(timer)) {
        if (timer->time_ns <= time_ns) {
            return;
        }
        cw_wheel_remove(&endpoint->wheel, timer);
    }
    cw_wheel_insert(&endpoint->wheel, timer, time_ns);
}

void cw_flow_watch(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->timers.probe_ns == UINT64_MAX && !cw_wheel_waiting(&flow->timers.timer)) {
        cw_flow_wake_at(endpoint, flow, endpoint->now_ns + endpoint->config.failure_timeout_ns / CW_SILENCE_SHARE);
    }
}
