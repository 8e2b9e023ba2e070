/* One turn of the loop: packets in, due work, packets out. */
#include "dataplane/endpoint/turn.h"

#include <assert.h>
#include <string.h>

#include "dataplane/flow/ack_send.h"
#include "dataplane/flow/extension.h"
#include "dataplane/flow/integrity.h"
#include "dataplane/flow/owned.h"
#include "dataplane/flow/receive.h"
#include "dataplane/flow/session.h"
#include "dataplane/flow/timers.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/put/message.h"
#include "dataplane/put/operation.h"
#include "dataplane/put/reassembly.h"
#include "dataplane/staging/stage.h"
#include "dataplane/state/rdma.h"

enum {
    PORT_RETRY_NS = 1000,  /* a full port is offered packets again after this, and not before a frame has left */
    FETCH_SKIPS = 64,      /* turns without a look at a port that costs a call of the kernel ... */
    FETCH_SKIPS_CHEAP = 4, /* ... at any other ... */
    FETCH_LOOKS = 16,      /* ... and after this number of empty polls in a row: */
    FETCH_SKIPS_MOST = 512,
};

void cw_endpoint_push(struct cw_endpoint *endpoint, uint32_t flags)
{
    if ((flags & CW_MORE) != 0) {
        return;
    }
    if (endpoint->rdma != NULL) {
        endpoint->rdma->ops->push(endpoint->rdma);
    }
    if (endpoint->port_full) {
        return;
    }
    cw_transmit_turn(endpoint);
    cw_flush(endpoint);
}

/* ---- packets in ---- */

/* With a device the port is polled every few turns, while nothing arrives. */
static bool port_can_wait(struct cw_endpoint *endpoint)
{
    bool is_dear = endpoint->port->info.wait == CW_PORT_WAIT_DESCRIPTOR;
    bool is_quiet = endpoint->fetch_looks >= FETCH_LOOKS;
    return endpoint->fetch_skips++ < (!is_dear ? FETCH_SKIPS_CHEAP : is_quiet ? FETCH_SKIPS_MOST : FETCH_SKIPS);
}

uint32_t cw_endpoint_fetch(struct cw_endpoint *endpoint)
{
    if (!endpoint->has_fetched) {
        endpoint->has_fetched = true;
        if (endpoint->rdma == NULL || !port_can_wait(endpoint)) {
            endpoint->fetched_count = cw_port_receive(endpoint->port, endpoint->fetched, CW_BURST);
            bool has_come = endpoint->fetched_count > 0;
            endpoint->fetch_skips = has_come ? FETCH_SKIPS_MOST : 0;
            if (has_come) {
                endpoint->fetch_looks = 0;
            } else if (endpoint->fetch_looks < FETCH_LOOKS) {
                endpoint->fetch_looks++;
            }
        }
        endpoint->fetched_completions = endpoint->rdma != NULL ? endpoint->rdma->ops->fetch(endpoint->rdma) : 0;
    }
    return endpoint->fetched_count + endpoint->fetched_completions;
}

bool cw_endpoint_arm(struct cw_endpoint *endpoint)
{
    if (endpoint->rdma == NULL) {
        return false;
    }
    endpoint->fetch_skips = FETCH_SKIPS_MOST; /* a sleep that the port ends is followed by a look at it */
    endpoint->rdma->ops->arm(endpoint->rdma);
    return endpoint->rdma->ops->fetch(endpoint->rdma) > 0;
}

/* Packets from now on have arrived later. */
static inline void port_emptied(struct cw_endpoint *endpoint)
{
    if (endpoint->offloads_in) {
        endpoint->empty_ns = endpoint->now_ns;
    }
}

static uint32_t receive_burst(struct cw_endpoint *endpoint)
{
    uint32_t count = endpoint->fetched_count;
    endpoint->has_fetched = false;
    if (count == 0) {
        if (endpoint->fetch_skips == 0) { /* otherwise the port was not polled */
            port_emptied(endpoint);
        }
        return 0;
    }
    cw_integrity_look(endpoint);
    struct cw_received *packets = endpoint->fetched;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += packets[i].length;
    }
    cw_receive_frames(endpoint, packets, count);
    if (count < CW_BURST) {
        port_emptied(endpoint);
    }
    cw_count(endpoint, CW_COUNTER_PACKETS_IN, count);
    cw_count(endpoint, CW_COUNTER_BYTES_IN, bytes);
    endpoint->fetched_count = 0;
    cw_port_release(endpoint->port, packets, count);
    return count;
}

/* ---- the turn ---- */

static uint32_t deliver(struct cw_endpoint *endpoint)
{
    uint32_t count = 0;
    if (endpoint->reassemblies.ready_first != NULL) {
        count += cw_reassemblies_deliver(endpoint);
    }
    if (endpoint->rdma_order != UINT64_MAX) {
        count += endpoint->rdma->ops->deliver(endpoint->rdma);
    }
    if (endpoint->undelivered.first != NULL) {
        count += cw_operations_deliver(endpoint);
    }
    if (endpoint->event_first != NULL) {
        count += cw_session_deliver(endpoint);
    }
    return count;
}

uint32_t cw_endpoint_turn(struct cw_endpoint *endpoint, uint64_t now_ns)
{
    assert(now_ns >= endpoint->now_ns);
    endpoint->now_ns = now_ns;
    uint32_t work = deliver(endpoint);
    /* a packet that was sent once its sender knew of a put by the queue pair comes after that put */
    (void)cw_endpoint_fetch(endpoint);
    if (endpoint->rdma != NULL) {
        work += endpoint->rdma->ops->turn(endpoint->rdma);
    }
    work += receive_burst(endpoint);
    if (cw_wheel_due(&endpoint->wheel, now_ns)) {
        work += cw_timers_turn(endpoint);
    }
    if (endpoint->messages.waiting_first != NULL) {
        work += cw_messages_turn(endpoint);
    }
    if (endpoint->neighbours != NULL) {
        work += cw_owned_turn(endpoint);
    }
    if (endpoint->extension != NULL) {
        work += endpoint->extension->turn(endpoint->extension, now_ns);
    }
    if (endpoint->staged_count > 0) {
        cw_flush(endpoint);
    }
    work += cw_ack_turn(endpoint);
    if (endpoint->active_first != NULL) {
        work += cw_transmit_turn(endpoint);
    }
    cw_flush(endpoint);
    if (endpoint->rdma != NULL) {
        endpoint->rdma->ops->push(endpoint->rdma);
    }
    return work;
}

void cw_endpoint_clock(struct cw_endpoint *endpoint, uint64_t now_ns)
{
    if (now_ns > endpoint->now_ns) {
        endpoint->now_ns = now_ns;
    }
}

void cw_endpoint_busy(struct cw_endpoint *endpoint, uint64_t duration_ns)
{
    uint32_t busy_ns = duration_ns < CW_BUSY_MAX_NS ? (uint32_t)duration_ns : CW_BUSY_MAX_NS;
    /* up at once, down slowly: batches come and go */
    endpoint->busy_ns = busy_ns > endpoint->busy_ns ? busy_ns : endpoint->busy_ns - (endpoint->busy_ns - busy_ns) / 64;
}

bool cw_endpoint_idle(const struct cw_endpoint *endpoint)
{
    return endpoint->active_first == NULL && endpoint->report_first == NULL && endpoint->staged_count == 0 &&
           endpoint->reassemblies.ready_first == NULL && endpoint->undelivered.first == NULL &&
           endpoint->event_first == NULL && endpoint->messages.waiting_first == NULL && endpoint->stop_count == 0 &&
           endpoint->rdma_order == UINT64_MAX;
}

static uint64_t port_retry_ns(const struct cw_endpoint *endpoint)
{
    const struct cw_port_info *info = &endpoint->port->info;
    uint64_t frame_bits = 8ull * (info->mtu_bytes + CW_ETHERNET_OVERHEAD_BYTES);
    uint64_t frame_ns = info->rate_bps == 0 ? 0 : frame_bits * 1000000000ull / info->rate_bps;
    return endpoint->now_ns + (frame_ns > PORT_RETRY_NS ? frame_ns : PORT_RETRY_NS);
}

uint64_t cw_endpoint_deadline(const struct cw_endpoint *endpoint)
{
    uint64_t rdma_ns = endpoint->rdma != NULL ? endpoint->rdma->ops->deadline(endpoint->rdma) : UINT64_MAX;
    bool has_packets = endpoint->active_first != NULL || endpoint->report_first != NULL;
    if (endpoint->port_full || (has_packets && endpoint->is_out_of_buffers)) {
        uint64_t retry_ns = port_retry_ns(endpoint);
        return rdma_ns < retry_ns ? rdma_ns : retry_ns;
    }
    bool stuck = endpoint->reassemblies.ready_first != NULL || endpoint->undelivered.first != NULL ||
                 endpoint->event_first != NULL || endpoint->messages.waiting_first != NULL ||
                 endpoint->stop_count > 0 || endpoint->rdma_order != UINT64_MAX;
    if (has_packets) {
        return stuck ? endpoint->now_ns + PORT_RETRY_NS : 0;
    }
    uint64_t next_ns = cw_wheel_next(&endpoint->wheel);
    next_ns = rdma_ns < next_ns ? rdma_ns : next_ns;
    if (endpoint->extension != NULL) {
        uint64_t extension_ns = endpoint->extension->deadline(endpoint->extension);
        next_ns = extension_ns < next_ns ? extension_ns : next_ns;
    }
    if (endpoint->neighbours != NULL) {
        uint64_t question_ns = cw_neighbour_deadline(endpoint->neighbours);
        next_ns = question_ns < next_ns ? question_ns : next_ns;
    }
    /* flows that wait for the application or for a slot are checked periodically; taking events also ends the wait */
    uint64_t stuck_ns = endpoint->now_ns + CW_ACK_DELAY_NS;
    return stuck && stuck_ns < next_ns ? stuck_ns : next_ns;
}
