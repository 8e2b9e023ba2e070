/* Set-up of connections, incarnations, keys.
 *
 * HELLO asks with a fresh nonce (session). HELLO_REPLY echoes it, which proves that it is no replay, and brings the
 * nonce of the other side. The requesting side has a session then, and proves its own freshness by a HELLO that echoes
 * that nonce; only then has the other side one too.
 *
 * Invariant: in any state, a set-up packet that does not echo the nonce of our next session is answered and changes
 * nothing: it may be a replay. One nonce serves all answers and requests until a session begins with it, so both sides
 * of a simultaneous set-up find the same session.
 *
 * A side that requires an encrypted session seals its set-up packets, in answer to any request, and accepts no others,
 * so that an attacker between the two cannot downgrade it. */
#include "dataplane/flow/session.h"

#include <string.h>

#include "dataplane/congestion/bandwidth.h"
#include "dataplane/congestion/congestion.h"
#include "dataplane/flow/ack_send.h"
#include "dataplane/flow/acknowledge.h"
#include "dataplane/flow/compress.h"
#include "dataplane/flow/integrity.h"
#include "dataplane/flow/path_mtu.h"
#include "dataplane/flow/setup.h"
#include "dataplane/flow/shaper.h"
#include "dataplane/flow/timers.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/put/message.h"
#include "dataplane/put/operation.h"
#include "dataplane/put/reassembly.h"
#include "dataplane/staging/seal.h"
#include "dataplane/staging/stage.h"
#include "dataplane/state/wake.h"

enum {
    STEER_REQUESTS = 10, /* without an answer, in some 750 ms: longer than any round trip */
    BYES_NARROW = 3,     /* of which one arrives, likely */
};

/* ---- telling the application ---- */

static bool deliver_event(struct cw_endpoint *endpoint, const struct cw_flow *flow, struct cw_peer_event told)
{
    struct cw_event *event = cw_events_reserve(&endpoint->events);
    if (event == NULL) {
        return false;
    }
    *event = (struct cw_event){.kind = told.kind, .status = told.status, .peer = flow->index};
    cw_events_publish(&endpoint->events);
    return true;
}

static void notify(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_event_kind kind, int status)
{
    struct cw_peer_event event = {.kind = (uint8_t)kind, .status = (int8_t)status};
    bool is_first = endpoint->rdma_order == UINT64_MAX; /* nothing of the session before waits for room */
    if (!flow->in_event_list && is_first && deliver_event(endpoint, flow, event)) {
        return;
    }
    enum { EVENTS = sizeof(flow->events) / sizeof(flow->events[0]) };
    if (flow->event_count == EVENTS) {
        /* an up and a down that were not read cancel out; later events stay valid */
        memmove(&flow->events[0], &flow->events[2], sizeof(flow->events[0]) * (EVENTS - 2));
        flow->event_count = EVENTS - 2;
    }
    flow->events[flow->event_count++] = event;
    if (!flow->in_event_list) {
        flow->in_event_list = true;
        endpoint->event_order = endpoint->event_first == NULL ? endpoint->notify_order++ : endpoint->event_order;
        flow->event_next = endpoint->event_first;
        endpoint->event_first = flow;
    }
}

uint32_t cw_session_deliver(struct cw_endpoint *endpoint)
{
    uint32_t count = 0;
    while (endpoint->event_first != NULL && endpoint->event_order < endpoint->rdma_order) {
        struct cw_flow *flow = endpoint->event_first;
        while (flow->event_count > 0) {
            if (!deliver_event(endpoint, flow, flow->events[0])) {
                return count;
            }
            count++;
            flow->event_count--;
            memmove(&flow->events[0], &flow->events[1], sizeof(flow->events[0]) * flow->event_count);
        }
        flow->in_event_list = false;
        endpoint->event_first = flow->event_next;
    }
    return count;
}

/* ---- set-up packets ---- */

/* The nonce of the next session with this peer: another phase tells its packets from those of the present one. */
static uint64_t next_nonce(struct cw_endpoint *endpoint, struct cw_session *session)
{
    while (session->next == 0) {
        uint64_t drawn = cw_setup_session(endpoint);
        bool alike = session->local != 0 && cw_seal_phase(drawn) == cw_seal_phase(session->local);
        session->next = alike ? 0 : drawn;
    }
    return session->next;
}

void cw_session_start(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->state == CW_PEER_CLOSED) {
        flow->state = CW_PEER_CONNECTING;
        flow->session.started_ns = endpoint->now_ns;
        flow->hello_count = 0;
        cw_session_retry(endpoint, flow);
    }
}

void cw_session_retry(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_session *session = &flow->session;
    struct cw_setup_content content = {.local = next_nonce(endpoint, session), .sealed = flow->encrypt};
    cw_setup_send(endpoint, flow, CW_WIRE_HELLO, &content);
    if (flow->hello_count >= STEER_REQUESTS && endpoint->port->info.steers) {
        cw_integrity_doubt(endpoint, CW_OFFLOAD_STEER);
    }
    uint32_t shift = flow->hello_count < 16 ? flow->hello_count : 16;
    uint64_t interval_ns = CW_HELLO_FIRST_NS << shift;
    flow->hello_count = flow->hello_count < UINT16_MAX ? (uint16_t)(flow->hello_count + 1) : UINT16_MAX;
    session->hello_ns = endpoint->now_ns + (interval_ns < CW_HELLO_MAX_NS ? interval_ns : CW_HELLO_MAX_NS);
    cw_flow_wake_at(endpoint, flow, session->hello_ns);
}

void cw_session_prove(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    const struct cw_session *session = &flow->session;
    struct cw_setup_content content = {.local = session->local, .peer = session->peer, .sealed = session->seal != NULL};
    cw_setup_send(endpoint, flow, CW_WIRE_HELLO, &content);
}

/* ---- sessions ---- */

bool cw_session_spent(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->session.seal == NULL || flow->session.seal->sent < CW_SEAL_COUNT_SPENT) {
        return false;
    }
    if (cw_transmit_control(endpoint, flow, CW_WIRE_BYE, 0) != NULL) {
        cw_transmit_control_finish(endpoint, flow, 0);
    }
    cw_session_end(endpoint, flow, CW_PEER_CLOSED, CW_ERROR_LIMIT);
    return true;
}

void cw_session_end_narrow(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    for (uint32_t i = 0; i < BYES_NARROW; i++) {
        uint8_t *reason = cw_transmit_control(endpoint, flow, CW_WIRE_BYE, 1);
        if (reason != NULL) {
            *reason = CW_WIRE_BYE_NARROW;
            cw_transmit_control_finish(endpoint, flow, 1);
        }
    }
    cw_session_end(endpoint, flow, CW_PEER_FAILED, CW_ERROR_PATH_MTU);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Adopts the peer's values for the session of our nonce `local` and its own. False, and nothing has changed: no room
 * for the keys. */
static bool adopt(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup, uint64_t local)
{
    const struct cw_wire_hello *hello = &setup->hello;
    struct cw_session *session = &flow->session;
    struct cw_seal *seal = NULL;
    if (cw_setup_is_sealed(setup)) {
        seal = cw_seal_create(endpoint, local, hello->session);
        if (seal == NULL) {
            cw_count(endpoint, CW_COUNTER_DROP_FULL, 1); /* it is asked for again */
            return false;
        }
        if (session->seal != NULL) {
            seal->sent = session->seal->sent; /* the keys of before may come back, but no count */
        }
    } else {
        cw_wire_key_derive(&session->key_in, endpoint->config.job_key, hello->session, local);
        cw_wire_key_derive(&session->key_out, endpoint->config.job_key, local, hello->session);
    }
    cw_seal_destroy(endpoint, session->seal);
    session->seal = seal;
    session->local = local;
    session->peer = hello->session;
    session->incarnation = hello->incarnation;
    session->pool_token = hello->pool_token;
    session->pool_slot_bytes = hello->pool_slot_bytes;
    session->peer_flow = hello->flow;
    session->packet_window = least((uint32_t)least((uint32_t)cw_sent_span(), CW_PACKET_WINDOW), hello->packet_window);
    session->put_window = least(CW_PUT_WINDOW, hello->put_window);
    session->payload_bytes_agreed = (uint16_t)(least(endpoint->payload_bytes_max, hello->payload_bytes_max) -
                                               (seal != NULL ? CW_WIRE_MAC_BYTES : 0));
    session->peer_waiting = setup->header.flags & CW_WIRE_WAITING_MASK;
    session->confirmed = false;
    session->listens = session->summed = session->altered = false;
    session->kept = seal == NULL && hello->medium != 0 && hello->medium == cw_integrity_medium(endpoint);
    flow->rehearsal.sums_right = 0;
    cw_path_mtu_begin(endpoint, flow);
    flow->encrypt = flow->encrypt || seal != NULL;
    if (flow->mac_learned) {
        memcpy(flow->address.mac, hello->sender_mac, sizeof(flow->address.mac));
    }
    cw_window_init(&flow->receiver.packets, hello->data_number);
    flow->receiver.control_end = hello->control_number;
    return true;
}

/* Begins the session of our next nonce; there is none at the moment. */
static bool establish(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup, int up_status)
{
    struct cw_session *session = &flow->session;
    bool is_other = flow->was_up && session->incarnation != setup->hello.incarnation;
    if (!adopt(endpoint, flow, setup, session->next)) {
        return false;
    }
    session->next = 0;
    flow->state = CW_PEER_ESTABLISHED;
    flow->was_up = true;
    cw_sent_init(&flow->sender.sent, cw_setup_data_number(session->local));
    flow->sender.control_next = cw_setup_control_number(session->local);
    flow->sender.lost_lowest = flow->sender.sent.base;
    flow->sender.lost_turn = flow->sender.sent.base;
    flow->sender.report_asked = 0;
    flow->sender.duplicates_known = 0;
    flow->receiver.duplicates = 0;
    cw_window_init(&flow->receiver.puts, CW_PUT_NUMBER_FIRST);
    flow->round_trip.reordering_ns = 0;
    cw_congestion_init(endpoint, flow);
    if (flow->bandwidth != NULL) {
        cw_bandwidth_init(endpoint, flow);
    }
    flow->timers.heard_ns = endpoint->now_ns;
    flow->timers.shown_ns = endpoint->now_ns;
    flow->timers.unshown_ns = endpoint->now_ns;
    notify(endpoint, flow, CW_EVENT_PEER_UP, is_other ? CW_ERROR_PEER_RESTARTED : up_status);
    if (endpoint->rdma != NULL && (setup->header.flags & CW_WIRE_RDMA) != 0) {
        endpoint->rdma->ops->session_begin(endpoint->rdma, flow);
    }
    cw_messages_pump(endpoint, flow);
    cw_flow_wake(endpoint, flow);
    return true;
}

void cw_session_end(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_peer_state state, int status)
{
    bool was_up = flow->state == CW_PEER_ESTABLISHED;
    bool had_work = cw_operations_open(flow) > 0;
    struct cw_rdma *rdma = flow->rdma != NULL ? endpoint->rdma : NULL;
    if (rdma != NULL) {
        rdma->ops->session_stop(rdma, flow);
    }
    cw_operations_abort(endpoint, flow, status);
    cw_reassemblies_abort(endpoint, flow);
    cw_messages_abandon(endpoint, flow);
    if (rdma != NULL) {
        rdma->ops->session_end(rdma, flow);
    }
    if (was_up) {
        cw_sent_advance(&flow->sender.sent, flow->sender.sent.next, &endpoint->sent_chunks, &endpoint->blocks);
        cw_sent_trim(&flow->sender.sent, &endpoint->sent_chunks, &endpoint->blocks);
        cw_window_dispose(&flow->receiver.packets, &endpoint->blocks);
        cw_window_dispose(&flow->receiver.puts, &endpoint->blocks);
    }
    cw_wheel_remove(&endpoint->wheel, &flow->timers.timer);
    cw_wheel_remove(&endpoint->wheel, &flow->timers.pace);
    cw_shaper_remove(endpoint, flow);
    cw_flow_compress_reset(endpoint, flow);
    flow->sender.in_flight_bytes = 0;
    flow->sender.lost_count = 0;
    flow->sender.stopped = false;
    flow->sender.put_next = CW_PUT_NUMBER_FIRST;
    flow->receiver.unreported = 0;
    flow->receiver.report_now = false;
    flow->receiver.report_from_base = false;
    flow->receiver.has_echo = false;
    flow->receiver.focus = UINT64_MAX;
    if (flow->receiver.told_to_stop) {
        flow->receiver.told_to_stop = false;
        endpoint->stop_count--;
    }
    flow->timers.probe_ns = UINT64_MAX;
    flow->timers.report_ns = UINT64_MAX;
    flow->timers.probes = 0;
    cw_seal_destroy(endpoint, flow->session.seal);
    flow->session.seal = NULL;
    flow->session.local = 0;
    flow->session.mtu.due_ns = UINT64_MAX;
    flow->round_trip = (struct cw_round_trip){0};
    flow->state = (uint8_t)state;
    if (was_up || had_work || state == CW_PEER_FAILED) { /* a failed attempt is reported, too: there was a request */
        notify(endpoint, flow, CW_EVENT_PEER_DOWN, status);
    }
}

/* ---- set-up packets that come in ---- */

/* A peer that has nothing to seal with says so: a sealed answer without room for a payload. */
static bool is_refusal(const struct cw_setup *setup)
{
    return cw_setup_is_sealed(setup) && setup->header.type == CW_WIRE_HELLO_REPLY &&
           setup->hello.payload_bytes_max == 0;
}

static bool hello_fits(const struct cw_endpoint *endpoint, const struct cw_setup *setup)
{
    const struct cw_wire_hello *hello = &setup->hello;
    return hello->session != 0 && cw_ip_is_equal(&hello->receiver_ip, &endpoint->config.address.ip) &&
           cw_ip_is_v4(&hello->sender_ip) == cw_ip_is_v4(&hello->receiver_ip) &&
           cw_setup_stream(endpoint, hello) < endpoint->config.stream_count && hello->packet_window >= CW_SENT_CHUNK &&
           hello->put_window > CW_PUT_WINDOW_RESERVED &&
           (hello->pool_token == 0 || (hello->pool_slot_bytes > 0 && hello->pool_slot_bytes <= CW_SLOT_BYTES_MAX)) &&
           (hello->payload_bytes_max >= CW_PORT_MTU_MIN - 128 || is_refusal(setup));
}

/* The peer has this session of ours: it is notified at once, with the state of its packets. */
static void acknowledge(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    cw_session_confirm(endpoint, flow);
    if (!flow->receiver.has_echo) { /* else it may be an old one */
        flow->receiver.has_echo = true;
        flow->receiver.echo = setup->header.timestamp;
        flow->receiver.echo_arrival_ns = endpoint->now_ns;
    }
    flow->receiver.report_from_base = true;
    cw_ack_want(endpoint, flow, CW_ACK_NOW);
}

/* True if the peer means another session than we have for the same nonce of ours: with another nonce, or sealed. */
static bool is_outdated(const struct cw_flow *flow, const struct cw_setup *setup)
{
    const struct cw_session *session = &flow->session;
    return !session->confirmed &&
           (session->peer != setup->hello.session || cw_setup_is_sealed(setup) != (session->seal != NULL));
}

/* The peer has the session that echoes our nonce of this session or the next, and is there now. */
static void hello_proved(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    struct cw_session *session = &flow->session;
    if (setup->hello.peer_session == session->local) {
        if (!is_outdated(flow, setup) || adopt(endpoint, flow, setup, session->local)) {
            acknowledge(endpoint, flow, setup);
        }
        return;
    }
    int up_status = CW_OK;
    if (flow->state == CW_PEER_ESTABLISHED) {
        up_status = CW_ERROR_PEER_RESTARTED;
        cw_session_end(endpoint, flow, CW_PEER_CLOSED, CW_ERROR_PEER_RESTARTED);
    }
    if (establish(endpoint, flow, setup, up_status)) {
        acknowledge(endpoint, flow, setup);
    }
}

/* A request. An answer costs the state of nothing, so each one has it. */
static void hello_requested(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    struct cw_session *session = &flow->session;
    const struct cw_wire_hello *hello = &setup->hello;
    bool is_present = flow->state == CW_PEER_ESTABLISHED && session->peer == hello->session;
    bool seals = cw_setup_is_sealed(setup) || flow->encrypt;
    bool proves = hello->peer_session == session->next ||
                  (hello->peer_session == session->local && (is_present || !session->confirmed));
    if (hello->peer_session != 0 && proves && cw_setup_is_sealed(setup) == seals) {
        hello_proved(endpoint, flow, setup);
        return;
    }
    struct cw_setup_content content = {.local = is_present ? session->local : next_nonce(endpoint, session),
                                       .peer = hello->session,
                                       .echo = setup,
                                       .sealed = seals};
    cw_setup_send(endpoint, flow, CW_WIRE_HELLO_REPLY, &content);
}

/* An answer to a request of this attempt: the peer is there, and so is the session. A second answer may mean another
 * session, without packets so far: its place was taken, or sealing was requested. */
static void hello_answered(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    struct cw_session *session = &flow->session;
    bool again = flow->state == CW_PEER_ESTABLISHED && setup->hello.peer_session == session->local;
    if (again && !is_outdated(flow, setup)) {
        return; /* a second answer */
    }
    if (again && setup->hello.incarnation != session->incarnation) {
        cw_session_end(endpoint, flow, CW_PEER_CLOSED, CW_ERROR_PEER_RESTARTED);
        return;
    }
    if (!again && (flow->state != CW_PEER_CONNECTING || setup->hello.peer_session != session->next)) {
        cw_count(endpoint, CW_COUNTER_DROP_HELLO, 1);
        return;
    }
    if (again ? !adopt(endpoint, flow, setup, session->local) : !establish(endpoint, flow, setup, CW_OK)) {
        return;
    }
    cw_acknowledge_echo(endpoint, flow, &setup->header, endpoint->now_ns);
    cw_session_prove(endpoint, flow);
    cw_timers_probe(endpoint, flow); /* until it has the proof the peer has no session */
}

/* One side insists on a sealed session and the other cannot have one: no use in asking again. */
static void give_up(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    cw_session_end(endpoint, flow, CW_PEER_FAILED, CW_ERROR_UNSUPPORTED);
}

/* Whether there can be a session, after a sealed set-up packet. True: continue with it. */
static bool seal_possible(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    bool asked = setup->header.type == CW_WIRE_HELLO;
    if (asked && endpoint->config.encryption == CW_ENCRYPTION_OFF) {
        struct cw_setup_content refusal = {
            .local = cw_setup_session(endpoint), .peer = setup->hello.session, .echo = setup, .sealed = true};
        cw_setup_send(endpoint, flow, CW_WIRE_HELLO_REPLY, &refusal);
        return false;
    }
    if (asked || (endpoint->config.encryption != CW_ENCRYPTION_OFF && !is_refusal(setup))) {
        return true;
    }
    if (flow->state == CW_PEER_CONNECTING && setup->hello.peer_session == flow->session.next &&
        (flow->encrypt || endpoint->config.encryption == CW_ENCRYPTION_OFF)) {
        give_up(endpoint, flow);
    } else {
        cw_count(endpoint, CW_COUNTER_DROP_HELLO, 1); /* not an answer to our request */
    }
    return false;
}

void cw_session_hello(struct cw_endpoint *endpoint, const struct cw_wire_header *header)
{
    struct cw_setup setup;
    if (!cw_setup_verified(endpoint, header, &setup)) {
        return;
    }
    if (!hello_fits(endpoint, &setup)) {
        cw_count(endpoint, CW_COUNTER_DROP_HELLO, 1);
        return;
    }
    struct cw_flow *flow = cw_setup_flow(endpoint, &setup);
    if (flow == NULL) {
        cw_count(endpoint, CW_COUNTER_DROP_UNKNOWN_PEER, 1);
        return;
    }
    if (!cw_setup_is_sealed(&setup) && flow->encrypt) {
        cw_count(endpoint, CW_COUNTER_DROP_SEAL, 1);
        if (header->type != CW_WIRE_HELLO || flow->state == CW_PEER_ESTABLISHED) {
            return;
        }
    }
    if (cw_setup_is_sealed(&setup) && !seal_possible(endpoint, flow, &setup)) {
        return;
    }
    if (header->type == CW_WIRE_HELLO) {
        hello_requested(endpoint, flow, &setup);
    } else {
        hello_answered(endpoint, flow, &setup);
    }
}

void cw_session_goodbye(struct cw_endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->flows.fresh; i++) {
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, i);
        if (flow->state != CW_PEER_ESTABLISHED) {
            continue;
        }
        if (cw_transmit_control(endpoint, flow, CW_WIRE_BYE, 0) == NULL) {
            return; /* best effort */
        }
        cw_transmit_control_finish(endpoint, flow, 0);
    }
    cw_flush(endpoint);
}
