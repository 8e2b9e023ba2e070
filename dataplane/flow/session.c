/* Set-up of connections, incarnations, keys.
 *
 * HELLO carries a fresh nonce (session) and what the receiver must know; HELLO_REPLY carries the same of the other side and echoes the
 * nonce, which proves that it is no replay. The keys of both directions are derived from both nonces, so the first valid packet under
 * them proves the asker's freshness too: only then does a new session take an old one's place. Simultaneous set-up from both sides
 * ends in the same session, since both use the nonces they have.
 *
 * Who wants an encrypted session seals its set-up packets, and is answered by sealed ones; it takes no others, so nobody between the two can
 * talk them out of it. An ordinary request makes it ask itself: the other side may not have been told.
 */
#include <assert.h>
#include <string.h>

#include "dataplane/core/endpoint.h"
#include "dataplane/flow/setup.h"

enum { DETOUR_REQUESTS = 10 /* that nobody answered, in some 750 ms: longer than any way there and back */ };

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

static void tell(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_event_kind kind, int status)
{
    struct cw_peer_event event = {.kind = (uint8_t)kind, .status = (int8_t)status};
    if (!flow->in_event_list && deliver_event(endpoint, flow, event)) {
        return;
    }
    enum { EVENTS = sizeof(flow->events) / sizeof(flow->events[0]) };
    if (flow->event_count == EVENTS) {
        /* an up and a down that nobody has seen cancel out; what follows stays true */
        memmove(&flow->events[0], &flow->events[2], sizeof(flow->events[0]) * (EVENTS - 2));
        flow->event_count = EVENTS - 2;
    }
    flow->events[flow->event_count++] = event;
    if (!flow->in_event_list) {
        flow->in_event_list = true;
        flow->event_next = endpoint->event_first;
        endpoint->event_first = flow;
    }
}

uint32_t cw_session_deliver(struct cw_endpoint *endpoint)
{
    uint32_t count = 0;
    while (endpoint->event_first != NULL) {
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

/* `echo` is the header of the request that is answered, NULL: a request. */
void cw_session_start(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_session *session = &flow->session;
    if (flow->state == CW_PEER_CLOSED) {
        session->local = cw_setup_session(endpoint);
        session->started_ns = endpoint->now_ns;
        flow->state = CW_PEER_CONNECTING;
    }
    if (flow->state == CW_PEER_CONNECTING && !session->active) {
        session->active = true;
        session->started_ns = endpoint->now_ns;
        session->hello_count = 0;
        cw_session_retry(endpoint, flow);
    }
}

void cw_session_retry(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_session *session = &flow->session;
    struct cw_setup_content content = {.local = session->local,
                                       .peer = session->candidate == NULL ? 0 : session->candidate->session,
                                       .sealed = flow->encrypt};
    cw_setup_send(endpoint, flow, CW_WIRE_HELLO, &content);
    if (session->hello_count >= DETOUR_REQUESTS) {
        cw_way_detour(endpoint, flow);
    }
    uint32_t shift = session->hello_count < 16 ? session->hello_count : 16;
    uint64_t interval_ns = CW_HELLO_FIRST_NS << shift;
    session->hello_count++;
    session->hello_ns = endpoint->now_ns + (interval_ns < CW_HELLO_MAX_NS ? interval_ns : CW_HELLO_MAX_NS);
    cw_timers_need(endpoint, flow, session->hello_ns);
}

/* ---- sessions ---- */

void cw_session_drop_candidate(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->session.candidate != NULL) {
        cw_seal_destroy(endpoint, flow->session.candidate->seal);
        cw_pool_give(&endpoint->candidates, flow->session.candidate);
        flow->session.candidate = NULL;
    }
}

struct cw_seal *cw_session_candidate_seal(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_candidate *candidate = flow->session.candidate;
    if (candidate == NULL || !candidate->sealed) {
        return NULL;
    }
    if (candidate->seal == NULL) {
        candidate->seal = cw_seal_create(endpoint, candidate->local, candidate->session);
    }
    return candidate->seal;
}

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

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void establish(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_candidate *peer,
                      int up_status)
{
    struct cw_session *session = &flow->session;
    session->peer = peer->session;
    session->incarnation = peer->incarnation;
    session->pool_token = peer->pool_token;
    session->pool_slot_bytes = peer->pool_slot_bytes;
    session->seal = peer->seal;
    if (peer->seal == NULL) {
        session->key_in = peer->key_in;
        cw_wire_key_derive(&session->key_out, endpoint->config.job_key, session->local, session->peer);
    }
    flow->encrypt = flow->encrypt || peer->seal != NULL;
    session->peer_flow = peer->flow;
    session->packet_window = least((uint32_t)least((uint32_t)cw_sent_span(), CW_PACKET_WINDOW), peer->packet_window);
    session->put_window = least(CW_PUT_WINDOW, peer->put_window);
    session->payload_bytes_max = (uint16_t)(least(endpoint->payload_bytes_max, peer->payload_bytes_max) -
                                            (peer->seal != NULL ? CW_WIRE_MAC_BYTES : 0));
    session->peer_waiting = peer->waiting;
    session->active = false;
    flow->state = CW_PEER_ESTABLISHED;
    flow->was_up = true;
    if (flow->mac_learned) {
        cw_way_address(flow, peer->mac);
    }
    cw_sent_init(&flow->sender.sent, cw_setup_data_number(session->local));
    flow->sender.control_next = cw_setup_control_number(session->local);
    flow->sender.lost_lowest = flow->sender.sent.base;
    flow->sender.lost_turn = flow->sender.sent.base;
    flow->sender.report_asked = 0;
    flow->sender.duplicates_known = 0;
    flow->receiver.duplicates = 0;
    cw_window_init(&flow->receiver.packets, peer->data_number);
    cw_window_init(&flow->receiver.puts, CW_PUT_NUMBER_FIRST);
    flow->receiver.control_highest = (uint64_t)peer->control_number - 1;
    flow->round_trip.reordering_ns = 0;
    cw_congestion_init(endpoint, flow);
    if (flow->bandwidth != NULL) {
        cw_bandwidth_init(endpoint, flow);
    }
    flow->timers.heard_ns = endpoint->now_ns;
    flow->timers.shown_ns = endpoint->now_ns;
    flow->timers.unshown_ns = endpoint->now_ns;
    cw_session_drop_candidate(endpoint, flow);
    tell(endpoint, flow, CW_EVENT_PEER_UP, up_status);
    cw_messages_pump(endpoint, flow);
    cw_transmit_wake(endpoint, flow);
}

void cw_session_end(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_peer_state state, int status)
{
    bool was_up = flow->state == CW_PEER_ESTABLISHED;
    bool had_work = flow->sender.open_count > 0;
    cw_operations_abort(endpoint, flow, status);
    cw_arrivals_abort(endpoint, flow);
    cw_messages_abandon(endpoint, flow);
    if (was_up) {
        cw_sent_advance(&flow->sender.sent, flow->sender.sent.next, &endpoint->sent_chunks, &endpoint->blocks);
        cw_sent_trim(&flow->sender.sent, &endpoint->sent_chunks, &endpoint->blocks);
        cw_window_dispose(&flow->receiver.packets, &endpoint->blocks);
        cw_window_dispose(&flow->receiver.puts, &endpoint->blocks);
    }
    cw_wheel_remove(&endpoint->wheel, &flow->timers.timer);
    cw_wheel_remove(&endpoint->wheel, &flow->timers.pace);
    cw_shaper_forget(endpoint, flow);
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
    flow->session.active = false;
    cw_seal_destroy(endpoint, flow->session.seal);
    flow->session.seal = NULL;
    flow->round_trip = (struct cw_round_trip){0};
    if (state != CW_PEER_CONNECTING) {
        cw_session_drop_candidate(endpoint, flow);
        flow->session.local = 0;
    }
    flow->state = (uint8_t)state;
    if (was_up || had_work) {
        tell(endpoint, flow, CW_EVENT_PEER_DOWN, status);
    }
}

void cw_session_promote(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    assert(flow->session.candidate != NULL);
    struct cw_candidate peer = *flow->session.candidate;
    flow->session.candidate->seal = NULL; /* the session's from now on */
    int up_status = CW_OK;
    if (flow->state == CW_PEER_ESTABLISHED) {
        up_status = CW_ERROR_PEER_RESTARTED;
        cw_session_end(endpoint, flow, CW_PEER_CONNECTING, CW_ERROR_PEER_RESTARTED);
    }
    flow->session.local = peer.local;
    establish(endpoint, flow, &peer, up_status);
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
    return hello->session != 0 && hello->receiver_ipv4 == endpoint->config.address.ipv4 &&
           cw_setup_stream(endpoint, hello) < endpoint->config.stream_count && hello->packet_window >= CW_SENT_CHUNK &&
           hello->put_window > CW_PUT_WINDOW_RESERVED &&
           (hello->payload_bytes_max >= CW_PORT_MTU_MIN - 128 || is_refusal(setup));
}

static void candidate_from(struct cw_endpoint *endpoint, const struct cw_setup *setup, struct cw_candidate *candidate)
{
    const struct cw_wire_hello *hello = &setup->hello;
    *candidate = (struct cw_candidate){
        .local = candidate->local,
        .since_ns = candidate->since_ns,
        .session = hello->session,
        .incarnation = hello->incarnation,
        .pool_token = hello->pool_token,
        .pool_slot_bytes = hello->pool_slot_bytes,
        .flow = hello->flow,
        .data_number = hello->data_number,
        .control_number = hello->control_number,
        .packet_window = hello->packet_window,
        .put_window = hello->put_window,
        .payload_bytes_max = hello->payload_bytes_max,
        .waiting = setup->header.flags & CW_WIRE_WAITING_MASK,
        .sealed = cw_setup_is_sealed(setup),
        .seal = candidate->seal,
    };
    memcpy(candidate->mac, hello->sender_mac, 6);
    if (!candidate->sealed) {
        cw_wire_key_derive(&candidate->key_in, endpoint->config.job_key, hello->session, candidate->local);
    }
}

/* A nonce for a candidate beside a session: another phase tells the packets of the two apart. */
static uint64_t nonce_beside(struct cw_endpoint *endpoint, uint64_t local)
{
    uint64_t value;
    do {
        value = cw_setup_session(endpoint);
    } while (cw_seal_phase(value) == cw_seal_phase(local));
    return value;
}

/* A place for who asks. Whoever has one keeps it for a while: a request that was recorded long ago must not push out the one that is about
 * to prove itself; who finds it taken asks again. */
static bool candidate_place(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    struct cw_session *session = &flow->session;
    struct cw_candidate *candidate = session->candidate;
    if (candidate != NULL && candidate->session == setup->hello.session &&
        candidate->sealed == cw_setup_is_sealed(setup)) {
        return true;
    }
    if (candidate != NULL && endpoint->now_ns - candidate->since_ns < CW_CANDIDATE_NS) {
        cw_count(endpoint, CW_COUNTER_DROP_HELLO, 1);
        return false;
    }
    if (candidate == NULL) {
        candidate = cw_pool_take(&endpoint->candidates);
        if (candidate == NULL) {
            cw_count(endpoint, CW_COUNTER_DROP_UNKNOWN_PEER, 1);
            return false;
        }
        session->candidate = candidate;
    } else {
        cw_seal_destroy(endpoint, candidate->seal);
    }
    candidate->seal = NULL;
    candidate->since_ns = endpoint->now_ns;
    candidate->local = flow->state == CW_PEER_ESTABLISHED ? nonce_beside(endpoint, session->local) : session->local;
    return true;
}

/* A request: answered always, since the answer may have been lost; taken up when the asker has proved to be there now. */
static void hello_asked(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    struct cw_session *session = &flow->session;
    if (flow->state == CW_PEER_CLOSED || flow->state == CW_PEER_FAILED) {
        session->local = cw_setup_session(endpoint);
        session->started_ns = endpoint->now_ns;
        session->active = false;
        flow->state = CW_PEER_CONNECTING;
        cw_timers_need(endpoint, flow, endpoint->now_ns + endpoint->config.failure_timeout_ns);
    }
    uint64_t local = session->local;
    if (flow->state != CW_PEER_ESTABLISHED || session->peer != setup->hello.session) {
        if (!candidate_place(endpoint, flow, setup)) {
            return;
        }
        candidate_from(endpoint, setup, session->candidate);
        local = session->candidate->local;
    }
    struct cw_setup_content content = {
        .local = local, .peer = setup->hello.session, .echo = setup, .sealed = cw_setup_is_sealed(setup)};
    cw_setup_send(endpoint, flow, CW_WIRE_HELLO_REPLY, &content);
}

/* An answer to our request of this attempt: the peer is there, and so is the session. */
static void hello_answered(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    if (flow->state == CW_PEER_ESTABLISHED && flow->session.peer == setup->hello.session) {
        return; /* a second answer */
    }
    if (flow->state != CW_PEER_CONNECTING || setup->hello.peer_session != flow->session.local) {
        cw_count(endpoint, CW_COUNTER_DROP_HELLO, 1);
        return;
    }
    struct cw_candidate peer = {.local = flow->session.local};
    candidate_from(endpoint, setup, &peer);
    if (peer.sealed) {
        peer.seal = cw_seal_create(endpoint, peer.local, peer.session);
        if (peer.seal == NULL) {
            cw_count(endpoint, CW_COUNTER_DROP_FULL, 1); /* it is asked for again */
            return;
        }
    }
    establish(endpoint, flow, &peer, CW_OK);
    cw_acknowledge_echo(endpoint, flow, &setup->header);
    if (cw_transmit_control(endpoint, flow, CW_WIRE_PROBE, 0) != NULL) {
        cw_transmit_control_finish(endpoint, flow, 0);
    }
    cw_timers_ask(endpoint, flow); /* until it has heard us the peer has no session, and would forget us */
}

/* One side insists on a sealed session and the other cannot have one: no use in asking again. */
static void give_up(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    bool tells = flow->sender.open_count > 0;
    cw_session_end(endpoint, flow, CW_PEER_FAILED, CW_ERROR_UNSUPPORTED);
    if (!tells) {
        tell(endpoint, flow, CW_EVENT_PEER_DOWN, CW_ERROR_UNSUPPORTED);
    }
}

/* What a sealed set-up packet says of whether there can be a session. True: go on with it. */
static bool seal_possible(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_setup *setup)
{
    bool asked = setup->header.type == CW_WIRE_HELLO;
    bool ours = flow->state == CW_PEER_CONNECTING && flow->session.active;
    if (asked && endpoint->aead == NULL) {
        struct cw_setup_content refusal = {
            .local = cw_setup_session(endpoint), .peer = setup->hello.session, .echo = setup, .sealed = true};
        cw_setup_send(endpoint, flow, CW_WIRE_HELLO_REPLY, &refusal);
        if (ours) {
            give_up(endpoint, flow);
        }
        return false;
    }
    if (asked) {
        return true;
    }
    bool answers = ours && flow->encrypt && setup->hello.peer_session == flow->session.local;
    if (answers && is_refusal(setup)) {
        give_up(endpoint, flow);
        return false;
    }
    if (is_refusal(setup) || !flow->encrypt) {
        cw_count(endpoint, CW_COUNTER_DROP_HELLO, 1); /* not to what we have asked */
        return false;
    }
    return true;
}

/* What we do about an ordinary set-up packet of a peer with which we have none but sealed sessions: it may not know, so we ask. */
static void insist(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    cw_count(endpoint, CW_COUNTER_DROP_SEAL, 1);
    if (flow->state == CW_PEER_CLOSED) {
        cw_session_start(endpoint, flow);
    }
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
        insist(endpoint, flow);
        return;
    }
    if (cw_setup_is_sealed(&setup) && !seal_possible(endpoint, flow, &setup)) {
        return;
    }
    if (header->type == CW_WIRE_HELLO) {
        hello_asked(endpoint, flow, &setup);
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
