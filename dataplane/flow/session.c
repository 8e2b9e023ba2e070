/* Set-up of connections, incarnations, keys.
 *
 * HELLO carries a fresh nonce (session) and what the receiver must know; HELLO_REPLY carries the same of the other side and echoes the
 * nonce, which proves that it is no replay. The keys of both directions are derived from both nonces, so the first valid packet under
 * them proves the asker's freshness too: only then does a new session take an old one's place. Simultaneous set-up from both sides
 * ends in the same session, since both use the nonces they have.
 */
#include <assert.h>
#include <string.h>

#include "dataplane/core/endpoint.h"

static uint32_t data_number_first(uint64_t session)
{
    return (uint32_t)(session >> 7);
}

static uint32_t control_number_first(uint64_t session)
{
    return (uint32_t)(session >> 29);
}

static uint64_t random_nonzero(struct cw_endpoint *endpoint)
{
    uint64_t value;
    do {
        value = cw_random_next(&endpoint->random);
    } while (value == 0);
    return value;
}

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
static void send_hello(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_wire_type type, uint64_t local,
                       uint64_t peer_session, const struct cw_wire_header *echo)
{
    struct cw_transmit *packet = cw_stage(endpoint);
    if (packet == NULL) {
        return; /* the timer tries again */
    }
    const struct cw_address *own = &endpoint->config.address;
    uint8_t *at = packet->data;
    memcpy(at, &flow->network, sizeof(flow->network));
    cw_wire_network_finish((struct cw_wire_network *)at, sizeof(struct cw_wire_hello));
    if (echo != NULL && flow->mac_learned) {
        memcpy(at, ((const struct cw_wire_hello *)(echo + 1))->sender_mac, 6); /* back to whoever asked */
    }
    struct cw_wire_hello hello = {
        .session = local,
        .peer_session = peer_session,
        .incarnation = endpoint->incarnation,
        .pool_token = endpoint->messages.region == NULL ? 0 : endpoint->messages.region->token,
        .pool_slot_bytes = endpoint->config.pool_slot_bytes,
        .flow = flow->index,
        .data_number = data_number_first(local),
        .control_number = control_number_first(local),
        .sender_ipv4 = own->ipv4,
        .receiver_ipv4 = flow->address.ipv4,
        .sender_port = own->udp_port,
        .receiver_port = flow->address.udp_port,
        .payload_bytes_max = (uint16_t)endpoint->payload_bytes_max,
        .packet_window = (uint32_t)cw_window_span(),
        .put_window = CW_PUT_WINDOW,
    };
    memcpy(hello.sender_mac, own->mac, 6);
    memcpy(at + CW_WIRE_OVERHEAD_BYTES, &hello, sizeof(hello));
    struct cw_wire_header header = {
        .version = CW_WIRE_VERSION,
        .type = (uint8_t)type,
        .flags = endpoint->packet_flags,
        .timestamp = cw_wire_timestamp(endpoint->now_ns),
        .echo = echo == NULL ? 0 : echo->timestamp,
        .echo_delay = echo == NULL ? CW_WIRE_DELAY_UNKNOWN : 0,
        .payload_bytes = sizeof(hello),
        .checksum = cw_wire_checksum(0, &hello, sizeof(hello)),
    };
    struct cw_wire_key key;
    memcpy(key.bytes, endpoint->config.job_key, sizeof(key.bytes));
    header.tag = cw_wire_tag(&header, 0, &key);
    memcpy(at + CW_WIRE_NETWORK_BYTES, &header, sizeof(header));
    packet->length = CW_WIRE_OVERHEAD_BYTES + sizeof(hello);
}

void cw_session_start(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_session *session = &flow->session;
    if (flow->state == CW_PEER_CLOSED) {
        session->local = random_nonzero(endpoint);
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
    send_hello(endpoint, flow, CW_WIRE_HELLO, session->local,
               session->candidate == NULL ? 0 : session->candidate->session, NULL);
    uint32_t shift = session->hello_count < 16 ? session->hello_count : 16;
    uint64_t interval_ns = CW_HELLO_FIRST_NS << shift;
    session->hello_count++;
    session->hello_ns = endpoint->now_ns + (interval_ns < CW_HELLO_MAX_NS ? interval_ns : CW_HELLO_MAX_NS);
    cw_timers_need(endpoint, flow, session->hello_ns);
}

/* ---- sessions ---- */

static void drop_candidate(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    if (flow->session.candidate != NULL) {
        cw_pool_give(&endpoint->candidates, flow->session.candidate);
        flow->session.candidate = NULL;
    }
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
    session->key_in = peer->key_in;
    cw_wire_key_derive(&session->key_out, endpoint->config.job_key, session->local, session->peer);
    session->peer_flow = peer->flow;
    session->packet_window = least((uint32_t)least((uint32_t)cw_sent_span(), CW_PACKET_WINDOW), peer->packet_window);
    session->put_window = least(CW_PUT_WINDOW, peer->put_window);
    session->payload_bytes_max = (uint16_t)least(endpoint->payload_bytes_max, peer->payload_bytes_max);
    session->peer_waiting = peer->waiting;
    session->active = false;
    flow->state = CW_PEER_ESTABLISHED;
    flow->was_up = true;
    if (flow->mac_learned) {
        memcpy(flow->address.mac, peer->mac, 6);
        memcpy(flow->network.destination_mac, peer->mac, 6);
    }
    cw_sent_init(&flow->sender.sent, data_number_first(session->local));
    flow->sender.control_next = control_number_first(session->local);
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
    drop_candidate(endpoint, flow);
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
    flow->timers.waiting_since_ns = UINT64_MAX;
    flow->timers.probes = 0;
    flow->session.active = false;
    flow->round_trip = (struct cw_round_trip){0};
    if (state != CW_PEER_CONNECTING) {
        drop_candidate(endpoint, flow);
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
    int up_status = CW_OK;
    if (flow->state == CW_PEER_ESTABLISHED) {
        up_status = CW_ERROR_PEER_RESTARTED;
        cw_session_end(endpoint, flow, CW_PEER_CONNECTING, CW_ERROR_PEER_RESTARTED);
    }
    flow->session.local = peer.local;
    establish(endpoint, flow, &peer, up_status);
}

/* ---- set-up packets that come in ---- */

static bool hello_fits(const struct cw_endpoint *endpoint, const struct cw_wire_hello *hello)
{
    return hello->session != 0 && hello->receiver_ipv4 == endpoint->config.address.ipv4 &&
           hello->receiver_port == endpoint->config.address.udp_port && hello->packet_window >= CW_SENT_CHUNK &&
           hello->put_window > CW_PUT_WINDOW_RESERVED && hello->payload_bytes_max >= CW_PORT_MTU_MIN - 128;
}

static bool hello_verified(struct cw_endpoint *endpoint, const struct cw_wire_header *header)
{
    struct cw_wire_key key;
    memcpy(key.bytes, endpoint->config.job_key, sizeof(key.bytes));
    if (header->flow != 0 || header->number != 0 || cw_wire_tag(header, 0, &key) != header->tag) {
        cw_count(endpoint, CW_COUNTER_DROP_TAG, 1);
        return false;
    }
    if (cw_wire_checksum(0, header + 1, header->payload_bytes) != header->checksum) {
        cw_count(endpoint, CW_COUNTER_DROP_CHECKSUM, 1);
        return false;
    }
    return true;
}

static void candidate_from(struct cw_endpoint *endpoint, const struct cw_wire_header *header,
                           const struct cw_wire_hello *hello, struct cw_candidate *candidate)
{
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
        .waiting = header->flags & CW_WIRE_WAITING_MASK,
    };
    memcpy(candidate->mac, hello->sender_mac, 6);
    cw_wire_key_derive(&candidate->key_in, endpoint->config.job_key, hello->session, candidate->local);
}

/* A place for who asks. Whoever has one keeps it for a while: a request that was recorded long ago must not push out the one that is about
 * to prove itself; who finds it taken asks again. */
static bool candidate_place(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t asker)
{
    struct cw_session *session = &flow->session;
    struct cw_candidate *candidate = session->candidate;
    if (candidate != NULL && candidate->session == asker) {
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
    }
    candidate->since_ns = endpoint->now_ns;
    candidate->local = flow->state == CW_PEER_ESTABLISHED ? random_nonzero(endpoint) : session->local;
    return true;
}

/* A request: answered always, since the answer may have been lost; taken up when the asker has proved to be there now. */
static void hello_asked(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                        const struct cw_wire_hello *hello)
{
    struct cw_session *session = &flow->session;
    if (flow->state == CW_PEER_CLOSED || flow->state == CW_PEER_FAILED) {
        session->local = random_nonzero(endpoint);
        session->started_ns = endpoint->now_ns;
        session->active = false;
        flow->state = CW_PEER_CONNECTING;
        cw_timers_need(endpoint, flow, endpoint->now_ns + endpoint->config.failure_timeout_ns);
    }
    uint64_t local = session->local;
    if (flow->state != CW_PEER_ESTABLISHED || session->peer != hello->session) {
        if (!candidate_place(endpoint, flow, hello->session)) {
            return;
        }
        candidate_from(endpoint, header, hello, session->candidate);
        local = session->candidate->local;
    }
    send_hello(endpoint, flow, CW_WIRE_HELLO_REPLY, local, hello->session, header);
}

/* An answer to our request of this attempt: the peer is there, and so is the session. */
static void hello_answered(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                           const struct cw_wire_hello *hello)
{
    if (flow->state == CW_PEER_ESTABLISHED && flow->session.peer == hello->session) {
        return; /* a second answer */
    }
    if (flow->state != CW_PEER_CONNECTING || hello->peer_session != flow->session.local) {
        cw_count(endpoint, CW_COUNTER_DROP_HELLO, 1);
        return;
    }
    struct cw_candidate peer = {.local = flow->session.local};
    candidate_from(endpoint, header, hello, &peer);
    establish(endpoint, flow, &peer, CW_OK);
    cw_acknowledge_echo(endpoint, flow, header);
    if (cw_transmit_control(endpoint, flow, CW_WIRE_PROBE, 0) != NULL) {
        cw_transmit_control_finish(endpoint, flow, 0);
    }
    cw_timers_ask(endpoint, flow); /* until it has heard us the peer has no session, and would forget us */
}

void cw_session_hello(struct cw_endpoint *endpoint, const struct cw_wire_header *header)
{
    if (header->payload_bytes != sizeof(struct cw_wire_hello)) {
        cw_count(endpoint, CW_COUNTER_DROP_MALFORMED, 1);
        return;
    }
    if (!hello_verified(endpoint, header)) {
        return;
    }
    const struct cw_wire_hello *hello = (const struct cw_wire_hello *)(header + 1);
    if (!hello_fits(endpoint, hello)) {
        cw_count(endpoint, CW_COUNTER_DROP_HELLO, 1);
        return;
    }
    struct cw_flow *flow = cw_flow_find(endpoint, hello->sender_ipv4, hello->sender_port);
    if (flow == NULL && header->type == CW_WIRE_HELLO && endpoint->config.accept_unknown) {
        struct cw_address address = {.ipv4 = hello->sender_ipv4, .udp_port = hello->sender_port};
        memcpy(address.mac, hello->sender_mac, 6);
        flow = cw_flow_add(endpoint, &address);
        if (flow != NULL) {
            flow->mac_learned = true;
        }
    }
    if (flow == NULL) {
        cw_count(endpoint, CW_COUNTER_DROP_UNKNOWN_PEER, 1);
        return;
    }
    if (header->type == CW_WIRE_HELLO) {
        hello_asked(endpoint, flow, header, hello);
    } else {
        hello_answered(endpoint, flow, header, hello);
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
