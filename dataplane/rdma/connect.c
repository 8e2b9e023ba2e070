/* The life of a flow's queue pair.
 *
 *   OFFERED      a pair of ours is offered; the peer's offer of the same incarnation connects it
 *   CONNECTED    ACCEPT has told the peer so; its ACCEPT has us send a first message by the pair
 *   UP           its first message has come
 *   BREAKING     the pair is stopped; once all that came by it has been taken, the next one is offered, with the number
 *                of notifications that came
 *   BY_PACKETS   no pair any more: the same, once, with NONE instead of OFFER
 *
 * Either side may move on to a higher incarnation, and the other follows. */
#include <assert.h>
#include <string.h>

#include "dataplane/flow/timers.h"
#include "dataplane/put/operation.h"
#include "dataplane/rdma/rdma_state.h"

void rdma_retry(struct cw_rdma *base, struct cw_flow *flow)
{
    rdma_restless((struct rdma *)base, rdma_flow_of(flow));
}

/* ---- reports to the peer ---- */

/* False: no operation is free. */
static bool frame_send(struct rdma *rdma, struct cw_flow *flow, const struct cw_wire_rdma *what)
{
    struct cw_operation *operation =
        cw_operation_open(rdma->endpoint, flow, CW_OPERATION_RDMA, 0, CW_OPERATION_INTERNAL);
    if (operation == NULL) {
        return false;
    }
    static_assert(sizeof(*what) <= sizeof(operation->bytes_inline), "a queue pair");
    operation->is_inline = true;
    operation->bytes = sizeof(*what);
    memcpy(operation->bytes_inline, what, sizeof(*what));
    cw_operation_queue_up(rdma->endpoint, operation);
    return true;
}

static bool offer_send(struct rdma *rdma, struct rdma_flow *flow, const struct cw_verbs_address *address)
{
    struct cw_wire_rdma offer = {.kind = CW_WIRE_RDMA_NONE,
                                 .incarnation = flow->incarnation,
                                 .received = flow->received,
                                 .previous = flow->previous};
    if (address != NULL) {
        offer.kind = CW_WIRE_RDMA_OFFER;
        offer.lid = address->lid;
        offer.reads = address->reads;
        offer.number = address->number;
        offer.first = address->first;
        offer.mtu_bytes = address->mtu_bytes;
        memcpy(offer.gid, address->gid, sizeof(offer.gid));
    }
    return frame_send(rdma, flow->flow, &offer);
}

/* ---- from one pair to the next ---- */

/* Operations that the former pair has not carried out start again. */
static void resolve(struct rdma *rdma, struct rdma_flow *flow)
{
    struct cw_operation_queue posted = flow->posted;
    uint64_t received = flow->peer_received;
    flow->posted_by = 0;
    flow->has_peer_received = false;
    flow->posted = (struct cw_operation_queue){0};
    struct cw_operation_queue again = {0};
    struct cw_operation *operation;
    while ((operation = cw_operation_pop(&posted)) != NULL) {
        if (operation->kind != CW_OPERATION_GET && operation->number < received) {
            cw_operation_done(rdma->endpoint, operation, CW_OK);
            flow->tries = 0;
        } else {
            cw_operation_push(&again, operation);
        }
    }
    while ((operation = cw_operation_pop(&flow->queue)) != NULL) {
        cw_operation_push(&again, operation);
    }
    for (operation = again.first; operation != NULL; operation = operation->next) {
        operation->position = 0;
        operation->cursor = (struct cw_source_cursor){0};
    }
    flow->queue = again;
    flow->is_resolved = true;
}

/* No pair any more. */
static void to_packets(struct rdma *rdma, struct rdma_flow *flow)
{
    flow->queue = (struct cw_operation_queue){0};
    cw_operations_number(rdma->endpoint, flow->flow, true);
}

static void connect_offered(struct rdma *rdma, struct rdma_flow *flow)
{
    const struct cw_wire_rdma *offer = &flow->offer;
    if (offer->kind == 0 || offer->incarnation != flow->incarnation) {
        return;
    }
    if (!flow->is_resolved) {
        if (flow->posted.first != NULL && !flow->has_peer_received) {
            return; /* its earlier report was overtaken, and arrives later */
        }
        resolve(rdma, flow);
    }
    if (flow->state == CW_RDMA_BY_PACKETS) {
        to_packets(rdma, flow);
        return;
    }
    struct cw_verbs_address peer = {.number = offer->number,
                                    .first = offer->first,
                                    .mtu_bytes = offer->mtu_bytes,
                                    .lid = offer->lid,
                                    .reads = offer->reads};
    memcpy(peer.gid, offer->gid, sizeof(peer.gid));
    if (cw_verbs_pair_connect(flow->pair->verbs, &peer) != CW_OK) {
        rdma_pair_broken(rdma, flow);
        return;
    }
    flow->state = CW_RDMA_CONNECTED;
    flow->was_connected = true;
    flow->owes_accept = true;
    rdma_restless(rdma, flow);
}

/* Offers the pair of this incarnation, or reports that there is none. */
static void offer_next(struct rdma *rdma, struct rdma_flow *flow, uint32_t incarnation)
{
    struct cw_verbs_address address = {0};
    flow->incarnation = incarnation;
    flow->peer_accepted = flow->ready_in = flow->ready_out = flow->owes_accept = flow->is_resolved = false;
    flow->was_connected = false;
    flow->state = CW_RDMA_OFFERED;
    if (incarnation != RDMA_INCARNATION_NO && !rdma_pair_create(rdma, flow, &address)) {
        flow->incarnation = RDMA_INCARNATION_NO;
    }
    bool is_none = flow->incarnation == RDMA_INCARNATION_NO;
    if (is_none) {
        flow->state = CW_RDMA_BY_PACKETS;
        cw_count(rdma->endpoint, CW_COUNTER_RDMA_GIVEN_UP, 1);
    }
    flow->own_address = address;
    flow->owes_offer = !offer_send(rdma, flow, is_none ? NULL : &address);
    if (flow->owes_offer) {
        rdma_restless(rdma, flow);
    }
    connect_offered(rdma, flow);
}

/* The pair before is drained: the next one takes its place. */
static bool pair_replace(struct rdma *rdma, struct rdma_flow *flow)
{
    bool is_due = flow->offer.kind != 0 && flow->offer.incarnation >= flow->wanted;
    if (!rdma_pair_drained(rdma, flow->pair) || (!is_due && rdma->endpoint->now_ns < flow->retry_ns)) {
        return false;
    }
    if (flow->was_connected) {
        flow->received = flow->pair->received;
        flow->previous = flow->incarnation;
    }
    rdma_pair_destroy(rdma, flow->pair);
    flow->pair = NULL;
    offer_next(rdma, flow, is_due ? flow->offer.incarnation : flow->wanted);
    return true;
}

static void send_ready(struct rdma *rdma, struct rdma_flow *flow)
{
    if (flow->state == CW_RDMA_CONNECTED && flow->peer_accepted && !flow->ready_out) {
        flow->ready_out = rdma_post_ready(rdma, flow);
        if (!flow->ready_out) {
            rdma_restless(rdma, flow);
        }
    }
}

static void bring_up(struct rdma *rdma, struct rdma_flow *flow)
{
    if (flow->state == CW_RDMA_CONNECTED && flow->ready_in && flow->ready_out) {
        flow->state = CW_RDMA_UP;
        flow->posted_by = flow->incarnation;
        flow->base.is_up = true;
        cw_count(rdma->endpoint, CW_COUNTER_RDMA_UP, 1);
        rdma_wake(rdma, flow);
    }
}

void rdma_connect_ready(struct rdma *rdma, struct rdma_flow *flow)
{
    flow->ready_in = true;
    bring_up(rdma, flow);
}

/* ---- frames ---- */

static void offer_accept(struct rdma *rdma, struct rdma_flow *flow, const struct cw_wire_rdma *offer)
{
    if (flow->posted_by != 0 && offer->previous == flow->posted_by) {
        flow->peer_received = offer->received;
        flow->has_peer_received = true;
    }
    if (flow->state == CW_RDMA_NONE) {
        return;
    }
    if (offer->incarnation < flow->incarnation || offer->incarnation < flow->offer.incarnation) {
        /* from before it knew of ours, or overtaken: perhaps it has the count that was waited for */
        if (flow->state == CW_RDMA_OFFERED || flow->state == CW_RDMA_BY_PACKETS) {
            connect_offered(rdma, flow);
        }
        return;
    }
    flow->offer = *offer;
    if (flow->state == CW_RDMA_BREAKING) {
        return; /* after the end of that */
    }
    if (offer->incarnation == flow->incarnation) {
        connect_offered(rdma, flow);
        return;
    }
    rdma_pair_broken(rdma, flow);
    flow->wanted = flow->wanted != RDMA_INCARNATION_NO ? offer->incarnation : flow->wanted;
}

bool rdma_frame(struct cw_rdma *base, struct cw_flow *flow, const void *data, uint32_t bytes, bool check)
{
    struct rdma *rdma = (struct rdma *)base;
    struct cw_wire_rdma frame;
    if (bytes != sizeof(frame)) {
        return false;
    }
    memcpy(&frame, data, sizeof(frame));
    if (frame.kind < CW_WIRE_RDMA_OFFER || frame.kind > CW_WIRE_RDMA_NONE || frame.incarnation == 0 ||
        (frame.kind == CW_WIRE_RDMA_NONE) != (frame.incarnation == RDMA_INCARNATION_NO)) {
        return false;
    }
    struct rdma_flow *own = rdma_flow_of(flow);
    if (check) {
        return true;
    }
    if (own == NULL) {
        if (frame.kind == CW_WIRE_RDMA_OFFER) { /* otherwise a failure is reported twice */
            const struct cw_wire_rdma none = {.kind = CW_WIRE_RDMA_NONE, .incarnation = RDMA_INCARNATION_NO};
            (void)frame_send(rdma, flow, &none);
        }
        return true;
    }
    if (frame.kind == CW_WIRE_RDMA_ACCEPT) {
        if (frame.incarnation == own->incarnation) {
            own->peer_accepted = true;
            send_ready(rdma, own);
            bring_up(rdma, own);
        }
    } else {
        offer_accept(rdma, own, &frame);
    }
    return true;
}

/* ---- sessions ---- */

void rdma_session_begin(struct cw_rdma *base, struct cw_flow *flow)
{
    struct rdma *rdma = (struct rdma *)base;
    if (flow->stream != 0 || flow->session.seal != NULL) {
        return;
    }
    struct rdma_flow *created = cw_pool_acquire(&rdma->flows);
    if (created == NULL) {
        return;
    }
    memset(created, 0, sizeof(*created));
    created->flow = flow;
    flow->rdma = &created->base;
    offer_next(rdma, created, 1);
}

void rdma_session_stop(struct cw_rdma *base, struct cw_flow *flow)
{
    struct rdma *rdma = (struct rdma *)base;
    struct rdma_flow *own = rdma_flow_of(flow);
    own->base.is_up = false;
    own->state = CW_RDMA_NONE;
    if (own->pair != NULL) {
        rdma_pair_break(rdma, own->pair);
        own->pair->flow = NULL;
        own->pair->next_spent = rdma->spent_first;
        rdma->spent_first = own->pair;
        own->pair = NULL;
    }
    own->posted = own->queue = (struct cw_operation_queue){0};
}

/* Takes a flow out of a list that is linked by its member `next`. */
#define UNLIST(list, flow, next)                            \
    for (struct rdma_flow **at_ = &(list); *at_ != NULL;) { \
        if (*at_ == (flow)) {                               \
            *at_ = (flow)->next;                            \
        } else {                                            \
            at_ = &(*at_)->next;                            \
        }                                                   \
    }

void rdma_session_end(struct cw_rdma *base, struct cw_flow *flow)
{
    struct rdma *rdma = (struct rdma *)base;
    struct rdma_flow *own = rdma_flow_of(flow);
    assert(own->base.open_count == 0);
    UNLIST(rdma->restless_first, own, next_restless);
    UNLIST(rdma->pushed_first, own, next_pushed);
    UNLIST(rdma->starved_first, own, next_pushed);
    flow->rdma = NULL;
    cw_pool_release(&rdma->flows, own);
}

/* ---- turns ---- */

static uint32_t turn_spent(struct rdma *rdma)
{
    uint32_t count = 0;
    for (struct rdma_pair **link = &rdma->spent_first; *link != NULL;) {
        struct rdma_pair *pair = *link;
        if (rdma_pair_drained(rdma, pair)) {
            *link = pair->next_spent;
            rdma_pair_destroy(rdma, pair);
            count++;
        } else {
            link = &pair->next_spent;
        }
    }
    return count;
}

/* True if there is no work left that no other event triggers. */
static bool turn_flow(struct rdma *rdma, struct rdma_flow *flow)
{
    if (flow->state == CW_RDMA_BREAKING && !pair_replace(rdma, flow)) {
        return false;
    }
    if (flow->owes_offer) {
        bool is_none = flow->state == CW_RDMA_BY_PACKETS;
        flow->owes_offer = !offer_send(rdma, flow, is_none ? NULL : &flow->own_address);
    }
    if (flow->owes_accept && !flow->owes_offer) {
        const struct cw_wire_rdma accept = {.kind = CW_WIRE_RDMA_ACCEPT, .incarnation = flow->incarnation};
        flow->owes_accept = !frame_send(rdma, flow->flow, &accept);
    }
    if (flow->state == CW_RDMA_CONNECTED && !flow->owes_accept) {
        send_ready(rdma, flow);
        bring_up(rdma, flow);
    }
    if (flow->base.is_short) {
        cw_operations_number(rdma->endpoint, flow->flow, flow->state == CW_RDMA_BY_PACKETS && flow->is_resolved);
    }
    bool owes_ready = flow->state == CW_RDMA_CONNECTED && flow->peer_accepted && !flow->ready_out;
    return !flow->owes_offer && !flow->owes_accept && !owes_ready && !flow->base.is_short &&
           flow->state != CW_RDMA_BREAKING;
}

static uint64_t patience_ns(const struct rdma *rdma)
{
    return rdma->endpoint->config.failure_timeout_ns / RDMA_PATIENCE_SHARE;
}

/* Peers without progress are probed, by packets: a device that waits for a receive buffer there, or an operation for
 * credit, does so forever and reports nothing. */
static void stalled_probe(struct rdma *rdma)
{
    struct cw_endpoint *endpoint = rdma->endpoint;
    rdma->ask_ns = endpoint->now_ns + patience_ns(rdma);
    for (uint32_t i = 0; i < endpoint->flows.fresh; i++) {
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, i);
        struct rdma_flow *own = rdma_flow_of(flow);
        if (flow->state != CW_PEER_ESTABLISHED || own == NULL || own->base.open_count == 0) {
            continue;
        }
        uint32_t work_done = own->pair != NULL ? own->pair->work_done : 0;
        if (own->work_known == work_done && flow->timers.probe_ns == UINT64_MAX) {
            cw_timers_probe(endpoint, flow);
        }
        own->work_known = work_done;
    }
}

/* A failed device may complete nothing any more: its operations are not waited for. */
static void look_after(struct rdma *rdma)
{
    struct cw_endpoint *endpoint = rdma->endpoint;
    rdma->look_ns = endpoint->now_ns + RDMA_LOOK_NS;
    if (rdma->has_failed || !cw_verbs_has_failed(rdma->device)) {
        return;
    }
    rdma->has_failed = true;
    for (uint32_t i = 0; i < endpoint->flows.fresh; i++) {
        struct rdma_flow *own = rdma_flow_of(cw_pool_at(&endpoint->flows, i));
        if (own != NULL && own->pair != NULL) {
            rdma_pair_broken(rdma, own);
        }
    }
}

uint32_t rdma_connect_turn(struct rdma *rdma)
{
    if (rdma->endpoint->now_ns >= rdma->look_ns) {
        look_after(rdma);
    }
    uint32_t count = rdma->spent_first != NULL ? turn_spent(rdma) : 0;
    struct rdma_flow *restless = rdma->restless_first;
    rdma->restless_first = NULL;
    while (restless != NULL) {
        struct rdma_flow *flow = restless;
        restless = flow->next_restless;
        flow->is_restless = false;
        uint8_t before = flow->state;
        if (!turn_flow(rdma, flow)) {
            rdma_restless(rdma, flow);
        }
        count += flow->state != before;
    }
    if (rdma->base.open_count == 0) {
        rdma->ask_ns = 0;
    } else if (rdma->ask_ns == 0) {
        rdma->ask_ns = rdma->endpoint->now_ns + patience_ns(rdma);
    } else if (rdma->endpoint->now_ns >= rdma->ask_ns) {
        stalled_probe(rdma);
    }
    return count;
}

uint64_t rdma_connect_deadline(const struct rdma *rdma)
{
    bool waits = rdma->spent_first != NULL || rdma->restless_first != NULL;
    uint64_t soon_ns = rdma->endpoint->now_ns + CW_ACK_DELAY_NS;
    uint64_t ask_ns = rdma->ask_ns != 0 ? rdma->ask_ns : rdma->endpoint->now_ns + patience_ns(rdma);
    ask_ns = rdma->base.open_count > 0 ? ask_ns : UINT64_MAX;
    return waits && soon_ns < ask_ns ? soon_ns : ask_ns;
}
