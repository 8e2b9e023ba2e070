/* Time-outs, probes, failure, pacing. Deadlines are plain fields; the wheel holds one entry per flow that comes out no
 * later than the earliest of them and is put back for the next. So setting a deadline for a packet costs a store. */
#include "dataplane/flow/timers.h"

#include <assert.h>

#include "dataplane/congestion/congestion.h"
#include "dataplane/flow/ack_send.h"
#include "dataplane/flow/acknowledge.h"
#include "dataplane/flow/integrity.h"
#include "dataplane/flow/path_mtu.h"
#include "dataplane/flow/session.h"
#include "dataplane/flow/shaper.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/put/message.h"
#include "dataplane/state/wake.h"

#define TIMEOUT_BY_LOSS_NS 200000000ull /* CW_CONGESTION_LOSS: of Linux 2.4's TCP */

enum {
    STEER_PROBES = 3,           /* that nobody answered: a rule that steers packets may take too much */
    PACE_CATCH_UP_NS = 1000000, /* a loop that came late may make up for this much */
    VAIN_PROBES = 3,            /* at least, before a peer is declared failed: a stalled loop has sent no probes */
    PROBE_SHARE = 16, /* of the failure bound: probes are no further apart, so that half of them may be lost */
};

uint64_t cw_timers_timeout(const struct cw_flow *flow)
{
    static const uint64_t least_ns[] = {
        [CW_WAITING_SPIN] = CW_PROBE_SPIN_NS,
        [CW_WAITING_SLEEP] = CW_PROBE_SLEEP_NS,
        [CW_WAITING_NAP] = CW_PROBE_NAP_NS,
        [3] = CW_PROBE_NAP_NS,
    };
    const struct cw_round_trip *trip = &flow->round_trip;
    uint64_t spread_ns = 4 * trip->variance_ns;
    uint64_t least = least_ns[flow->session.peer_waiting & CW_WIRE_WAITING_MASK];
    uint64_t timeout_ns = trip->smoothed_ns + CW_ACK_DELAY_NS + (spread_ns > least ? spread_ns : least);
    return flow->congestion.by_loss && timeout_ns < TIMEOUT_BY_LOSS_NS ? TIMEOUT_BY_LOSS_NS : timeout_ns;
}

/* Asks after the time-out. A flow that waits for nothing yet begins to: packets from now on must be shown to arrive. */
static void wait_on(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_timers *timers = &flow->timers;
    if (timers->probe_ns == UINT64_MAX) {
        timers->shown_ns = endpoint->now_ns;
        timers->vain_probes = 0;
        timers->unshown_ns = endpoint->now_ns >> CW_WIRE_TIMESTAMP_SHIFT << CW_WIRE_TIMESTAMP_SHIFT;
    }
    timers->probe_ns = endpoint->now_ns + cw_timers_timeout(flow);
    cw_flow_wake_at(endpoint, flow, timers->probe_ns);
}

void cw_timers_sent(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_timers *timers = &flow->timers;
    const struct cw_sent_records *sent = &flow->sender.sent;
    if (timers->probe_ns == UINT64_MAX || sent->next - sent->base == 1) {
        /* the only one in flight: earlier waits set longer and longer intervals */
        timers->probes = 0;
        wait_on(endpoint, flow);
    }
}

/* Each packet of the peer reports when the latest of our packets that it has was sent. Its other contents prove
 * nothing: it requests missing packets even if none of ours arrives any more. */
void cw_timers_received(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t echo)
{
    struct cw_timers *timers = &flow->timers;
    timers->heard_ns = endpoint->now_ns;
    uint64_t left_ns = cw_timestamp_time(endpoint, echo);
    if (left_ns >= timers->unshown_ns) {
        timers->unshown_ns = left_ns + 1;
        timers->shown_ns = endpoint->now_ns;
        timers->vain_probes = 0;
        timers->answered = true;
    }
}

static inline bool nothing_in_flight(const struct cw_flow *flow)
{
    return flow->sender.sent.base == flow->sender.sent.next && !flow->sender.stopped;
}

void cw_timers_progress(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_timers *timers = &flow->timers;
    const struct cw_sender *sender = &flow->sender;
    timers->probes = 0;
    if (nothing_in_flight(flow) && sender->open_count == 0) {
        timers->probe_ns = UINT64_MAX;
        return;
    }
    wait_on(endpoint, flow);
}

void cw_timers_probe(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    flow->timers.answered = false;
    wait_on(endpoint, flow);
}

static bool is_excused(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    const struct cw_endpoint_config *config = &endpoint->config;
    return config->is_excused != NULL &&
           config->is_excused(config->excuse_context, cw_pool_index(&endpoint->flows, flow));
}

/* No packet arrived for which we wait (an acknowledgement, the answer to a get, credit): probe with one small packet,
 * at growing intervals; end the session when for the bound nothing has shown that our packets arrive. */
static void probe(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_timers *timers = &flow->timers;
    if (nothing_in_flight(flow) && flow->sender.open_count == 0 && timers->answered) {
        timers->probe_ns = UINT64_MAX; /* cw_timers_probe has its answer */
        return;
    }
    if (nothing_in_flight(flow) && endpoint->now_ns - timers->shown_ns < cw_timers_timeout(flow)) {
        timers->probe_ns = timers->shown_ns + cw_timers_timeout(flow); /* it owes an answer or credit, and is there */
        return;
    }
    if (cw_shaper_holds(endpoint, flow, &timers->probe_ns)) {
        return;
    }
    /* a lost report that arrives later is outdated */
    uint64_t fresh_ns = timers->unshown_ns + cw_timers_timeout(flow);
    uint64_t since_ns = fresh_ns < timers->shown_ns ? fresh_ns : timers->shown_ns;
    uint64_t silent_ns = timers->vain_probes >= VAIN_PROBES ? endpoint->now_ns - since_ns : 0;
    if (silent_ns >= endpoint->config.failure_timeout_ns / 2 && is_excused(endpoint, flow)) {
        /* from half of the time on, so that a peer has the other half when its excuse ends */
        timers->shown_ns = endpoint->now_ns;
        timers->unshown_ns = endpoint->now_ns;
        timers->vain_probes = 0;
    } else if (silent_ns >= endpoint->config.failure_timeout_ns) {
        cw_session_end(endpoint, flow, CW_PEER_FAILED, CW_ERROR_PEER_FAILED);
        return;
    }
    if (!flow->session.confirmed) {
        cw_session_prove(endpoint, flow);
        timers->vain_probes++;
    } else if (cw_transmit_control(endpoint, flow, CW_WIRE_PROBE, 0) != NULL) {
        cw_transmit_control_finish(endpoint, flow, 0);
        cw_count(endpoint, CW_COUNTER_PROBES_OUT, 1);
        timers->vain_probes++;
    }
    cw_congestion_timeout(flow);
    timers->probes++;
    if (timers->probes >= STEER_PROBES && endpoint->port->info.steers) {
        cw_integrity_doubt(endpoint, CW_OFFLOAD_STEER); /* or the peer would be silent forever */
    }
    uint64_t interval_ns = cw_timers_timeout(flow) << (timers->probes < 20 ? timers->probes : 20);
    uint64_t most_ns = endpoint->config.failure_timeout_ns / PROBE_SHARE;
    most_ns = most_ns < CW_PROBE_MAX_NS ? most_ns : CW_PROBE_MAX_NS;
    timers->probe_ns = endpoint->now_ns + (interval_ns < most_ns ? interval_ns : most_ns);
}

static void run_connecting(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_session *session = &flow->session;
    uint64_t silent_ns = endpoint->now_ns - session->started_ns;
    if (silent_ns >= endpoint->config.failure_timeout_ns / 2 && is_excused(endpoint, flow)) {
        flow->session.started_ns = endpoint->now_ns;
    } else if (silent_ns >= endpoint->config.failure_timeout_ns) {
        cw_session_end(endpoint, flow, CW_PEER_FAILED, CW_ERROR_PEER_FAILED);
        return;
    }
    if (endpoint->now_ns >= session->hello_ns) {
        cw_session_retry(endpoint, flow);
    }
    cw_flow_wake_at(endpoint, flow, session->hello_ns);
}

/* True if the peer has something of ours that others need: records of puts it has not finished, slots it was asked to
 * give back. */
static bool holds_ours(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    const struct cw_receiver *receiver = &flow->receiver;
    const struct cw_credit *credit = &flow->credit;
    return receiver->reassemblies > 0 || receiver->packets.base != receiver->packets.end ||
           (credit->recalled && credit->lent > 0 && endpoint->messages.waiting_first != NULL);
}

/* ... and may be gone with it: a peer that is silent for long is probed. */
static void watch(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_timers *timers = &flow->timers;
    if (timers->probe_ns != UINT64_MAX || !holds_ours(endpoint, flow)) {
        return;
    }
    uint64_t due_ns = timers->heard_ns + endpoint->config.failure_timeout_ns / CW_SILENCE_SHARE;
    if (endpoint->now_ns >= due_ns) {
        cw_timers_probe(endpoint, flow);
    } else {
        cw_flow_wake_at(endpoint, flow, due_ns);
    }
}

static void run_established(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_timers *timers = &flow->timers;
    if (endpoint->now_ns >= timers->report_ns && !cw_shaper_holds(endpoint, flow, &timers->report_ns) &&
        !cw_ack_send(endpoint, flow)) {
        timers->report_ns = endpoint->now_ns + CW_ACK_DELAY_NS; /* no buffer: a little later */
    }
    if (endpoint->now_ns >= timers->probe_ns) {
        probe(endpoint, flow);
        if (flow->state != CW_PEER_ESTABLISHED) {
            return;
        }
    }
    if (flow->late != NULL && flow->late->due_ns != 0 && endpoint->now_ns >= flow->late->due_ns) {
        cw_acknowledge_late(endpoint, flow);
    }
    if (endpoint->now_ns >= flow->session.mtu.due_ns) {
        cw_path_mtu_turn(endpoint, flow);
        if (flow->state != CW_PEER_ESTABLISHED) {
            return;
        }
    }
    struct cw_sent_records *sent = &flow->sender.sent;
    if (sent->base == sent->next) {
        cw_sent_trim(sent, &endpoint->sent_chunks, &endpoint->blocks);
    }
    watch(endpoint, flow);
    cw_messages_pump(endpoint, flow); /* if it was short of operations */
    cw_flow_wake(endpoint, flow);
    uint64_t next_ns = timers->probe_ns < timers->report_ns ? timers->probe_ns : timers->report_ns;
    next_ns = flow->session.mtu.due_ns < next_ns ? flow->session.mtu.due_ns : next_ns;
    if (flow->late != NULL && flow->late->due_ns != 0 && flow->late->due_ns < next_ns) {
        next_ns = flow->late->due_ns;
    }
    if (next_ns != UINT64_MAX) {
        cw_flow_wake_at(endpoint, flow, next_ns);
    }
}

uint32_t cw_timers_turn(struct cw_endpoint *endpoint)
{
    uint32_t count = 0;
    struct cw_wheel_entry *entry;
    while (count < 4 * CW_BURST && (entry = cw_wheel_expire(&endpoint->wheel, endpoint->now_ns)) != NULL) {
        count++;
        if ((const uint8_t *)entry >= (const uint8_t *)endpoint->shapers &&
            (const uint8_t *)entry < (const uint8_t *)(endpoint->shapers + CW_SHAPER_LINE + 1)) {
            cw_shaper_turn(endpoint, (struct cw_shaper *)entry); /* its first member */
            continue;
        }
        /* the flows are one array, so the entry's place in its flow tells which of the two it is */
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, cw_pool_index(&endpoint->flows, entry));
        if (entry == &flow->timers.pace) {
            cw_flow_wake(endpoint, flow);
        } else if (flow->state == CW_PEER_CONNECTING) {
            run_connecting(endpoint, flow);
        } else if (flow->state == CW_PEER_ESTABLISHED) {
            run_established(endpoint, flow);
        }
    }
    return count;
}

/* ---- pacing ---- */

bool cw_timers_pace(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_timers *timers = &flow->timers;
    if (endpoint->now_ns >= timers->pace_next_ns) {
        return true;
    }
    timers->paced = true;
    if (!cw_wheel_waiting(&timers->pace)) {
        cw_wheel_insert(&endpoint->wheel, &timers->pace, timers->pace_next_ns);
    }
    return false;
}

void cw_timers_paced(struct cw_endpoint *endpoint, struct cw_flow *flow, uint32_t frame_bytes)
{
    struct cw_timers *timers = &flow->timers;
    uint64_t bits = (frame_bytes + (uint64_t)CW_ETHERNET_OVERHEAD_BYTES) * 8 * 1000000000ull;
    uint64_t interval_ns = (bits + timers->rate_bps - 1) / timers->rate_bps;
    /* A flow that had waited for its time and was released late may make up for the loop's lateness, by as many packets
     * as it takes; one that had nothing to send or no window saves up nothing. */
    uint64_t earliest_ns =
        timers->paced && endpoint->now_ns > PACE_CATCH_UP_NS ? endpoint->now_ns - PACE_CATCH_UP_NS : endpoint->now_ns;
    timers->pace_next_ns = (timers->pace_next_ns > earliest_ns ? timers->pace_next_ns : earliest_ns) + interval_ns;
    timers->paced = timers->paced && timers->pace_next_ns < endpoint->now_ns;
}
