/* Outgoing acknowledgements: their time and content. */
#include "dataplane/flow/ack_send.h"

#include <assert.h>
#include <string.h>

#include "dataplane/flow/integrity.h"
#include "dataplane/flow/shaper.h"
#include "dataplane/flow/transmit.h"
#include "dataplane/state/wake.h"

/* True if this endpoint's queues are so full that senders should pause. */
static bool is_congested(const struct cw_endpoint *endpoint)
{
    uint32_t events = cw_events_count(&endpoint->events);
    uint32_t limit = endpoint->config.event_count_max;
    uint32_t reassemblies = cw_pool_available(&endpoint->reassemblies.pool);
    uint32_t reassemblies_low = endpoint->flows.fresh + 1 + endpoint->config.reassembly_count_max / 8;
    if (endpoint->stop_count > 0) {
        /* once stopped, wait until there is real room again */
        limit /= 2;
        /* less than all of them, or it would never end */
        reassemblies_low = (reassemblies_low + endpoint->config.reassembly_count_max) / 2;
    } else {
        limit -= limit / 4;
    }
    return events >= limit || reassemblies < reassemblies_low;
}

/* If the kernel wakes this endpoint for packets, an acknowledgement costs as much as a message, or as 32 full packets.
 * So it acknowledges less often: for messages, whose sender continues without it, and for a stream, whose sender
 * requests one when it pauses. Senders know that this endpoint sleeps, and probe later. */
static bool is_costly(const struct cw_endpoint *endpoint)
{
    static_assert(CW_ACK_MESSAGE_NS <= CW_PROBE_SLEEP_NS / 2, "no sender asks before");
    return endpoint->config.waiting == CW_WAITING_SLEEP;
}

/* Duration of `bytes` on a line. */
static uint64_t line_ns(uint64_t rate_bps, uint64_t bytes)
{
    return bytes * 8 * 1000000000 / rate_bps;
}

/* On a slow line a full packet lasts as long as the usual delay of an acknowledgement. With that delay every packet of
 * a stream was acknowledged, which took a twelfth of the line in the other direction. Packets of a stream that shares
 * its line with others are further apart, and so are its acknowledgements. Senders by loss expect what TCP does. */
static uint64_t delay_ns(const struct cw_endpoint *endpoint, const struct cw_flow *flow, enum cw_ack_haste haste)
{
    uint64_t rate_bps = endpoint->port->info.rate_bps;
    if (haste == CW_ACK_MESSAGE && is_costly(endpoint)) {
        return CW_ACK_MESSAGE_NS;
    }
    if (haste != CW_ACK_STREAM || (rate_bps == 0 && !is_costly(endpoint))) {
        return CW_ACK_DELAY_NS;
    }
    if (rate_bps == 0) {
        return CW_ACK_STREAM_NS;
    }
    uint64_t frame_bytes = endpoint->overhead_bytes + flow->session.payload_bytes_agreed;
    uint64_t frames_ns = line_ns(rate_bps, CW_ACK_STREAM_FRAMES * frame_bytes);
    if (flow->receiver.streams >= CW_ACK_STREAMS && rate_bps <= CW_LINE_SLOW_BPS && !flow->congestion.by_loss) {
        uint64_t shared_ns = frames_ns * flow->receiver.streams;
        return shared_ns < CW_ACK_CARRIER_MAX_NS ? shared_ns : CW_ACK_CARRIER_MAX_NS;
    }
    frames_ns = frames_ns < CW_ACK_STREAM_NS ? frames_ns : CW_ACK_STREAM_NS;
    return frames_ns > CW_ACK_DELAY_NS ? frames_ns : CW_ACK_DELAY_NS;
}

/* Whether the cumulative acknowledgement in each packet is sufficient. */
static bool is_carried(const struct cw_receiver *receiver)
{
    return receiver->packets.base == receiver->packets.end && !receiver->report_from_base && !receiver->told_to_stop;
}

/* Duration of a frame of 1,500 bytes on the line to the peer: from the port's rate, or from the round trip while the
 * path is full. 0: not known. */
static uint64_t frame_ns(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    enum { BYTES = 1538 /* with Ethernet's overhead */, FULL_FRAMES = 2 };
    uint64_t rate_bps = endpoint->port->info.rate_bps, in_flight = flow->sender.in_flight_bytes;
    uint64_t full = (uint64_t)FULL_FRAMES * (endpoint->overhead_bytes + flow->session.payload_bytes_max);
    if (rate_bps != 0) {
        return line_ns(rate_bps, BYTES);
    }
    return in_flight < full ? 0 : flow->round_trip.smoothed_ns * BYTES / in_flight;
}

/* Time that an acknowledgement waits for outgoing data that carry it, because on a slow line a separate packet takes
 * the time of data. 0: it does not wait, since no data leave soon, or they would not carry all of it. With traffic in
 * both directions data leave with each frame, or when the flow has its turn on the line, or, on a long path, in bursts.
 * A used-up window does not matter: the peer's next data open it. */
static uint64_t carrier_ns(const struct cw_endpoint *endpoint, const struct cw_flow *flow)
{
    const struct cw_sender *sender = &flow->sender;
    if (sender->queue_bulk.first == NULL || sender->stopped || cw_shaper_is_set(&flow->shaping) ||
        sender->sent.next - sender->sent.base >= flow->session.packet_window || !is_carried(&flow->receiver)) {
        return 0;
    }
    uint64_t one_ns = frame_ns(endpoint, flow), wait_ns = CW_ACK_CARRIER_FRAMES * one_ns;
    uint64_t burst_ns = flow->round_trip.smoothed_ns / 8;
    wait_ns = wait_ns > burst_ns ? wait_ns : burst_ns;
    wait_ns = wait_ns < CW_ACK_CARRIER_MAX_NS && !flow->shaping.waits ? wait_ns : CW_ACK_CARRIER_MAX_NS;
    bool is_paced_later = flow->timers.rate_bps != 0 && flow->timers.pace_next_ns > endpoint->now_ns + wait_ns;
    return one_ns >= CW_ACK_CARRIER_NS && !is_paced_later ? wait_ns : 0;
}

/* Finds how many streams share the line: as many packets, or runs of packets, came since the last one of this stream.
 * After a long pause the number is not known. */
static void streams_count(struct cw_endpoint *endpoint, struct cw_receiver *receiver)
{
    uint16_t packets = (uint16_t)(++endpoint->stream_packets - receiver->stream_packets);
    receiver->stream_packets = endpoint->stream_packets;
    receiver->streams = packets > CW_ACK_STREAM_PAUSE ? 1 : packets < CW_ACK_STREAMS_MAX ? packets : CW_ACK_STREAMS_MAX;
}

void cw_ack_want(struct cw_endpoint *endpoint, struct cw_flow *flow, enum cw_ack_haste haste)
{
    struct cw_receiver *receiver = &flow->receiver;
    if (haste == CW_ACK_STREAM) {
        streams_count(endpoint, receiver);
    }
    uint32_t most = is_costly(endpoint) ? CW_ACK_EVERY_ASLEEP : CW_ACK_EVERY;
    uint64_t waits_ns = haste == CW_ACK_NOW ? 0 : carrier_ns(endpoint, flow);
    bool is_due = haste == CW_ACK_NOW || receiver->unreported >= most || (haste == CW_ACK_ASKED && waits_ns == 0);
    receiver->report_now = receiver->report_now || is_due;
    if (receiver->report_now) {
        if (!receiver->in_report_list) {
            receiver->in_report_list = true;
            receiver->report_next = endpoint->report_first;
            endpoint->report_first = flow;
        }
        return;
    }
    uint64_t other_ns = delay_ns(endpoint, flow, haste);
    uint64_t report_ns = endpoint->now_ns + (waits_ns > other_ns || haste == CW_ACK_ASKED ? waits_ns : other_ns);
    if (report_ns < flow->timers.report_ns) {
        flow->timers.report_ns = report_ns;
        cw_flow_wake_at(endpoint, flow, report_ns);
    }
}

void cw_ack_carried(struct cw_flow *flow)
{
    struct cw_receiver *receiver = &flow->receiver;
    if (is_carried(receiver)) {
        receiver->unreported = 0;
        receiver->report_now = false;
        receiver->focus = UINT64_MAX;
        flow->timers.report_ns = UINT64_MAX;
    }
}

/* Where the description begins: at the base now and then and when asked to; else so that it reaches to the newest
 * packet or covers the hole that was filled last, in turn. */
static uint64_t choose_start(const struct cw_receiver *receiver, uint32_t runs_max)
{
    const struct cw_window *packets = &receiver->packets;
    if (receiver->report_from_base || receiver->reports % 8 == 0) {
        return packets->base;
    }
    uint64_t start = packets->end;
    for (uint32_t i = 0; i < runs_max && start > packets->base; i++) {
        start = cw_window_previous_run(packets, start);
    }
    if (receiver->focus < start && receiver->focus >= packets->base && receiver->reports % 2 == 0) {
        return cw_window_previous_run(packets, receiver->focus + 1);
    }
    return start;
}

/* Writes runs from `start` on; returns how many, and in *end where the last one ends. */
static uint32_t write_runs(const struct cw_window *packets, uint64_t start, uint32_t runs_max, uint8_t *at,
                           uint64_t *end_number)
{
    uint32_t count = 0;
    uint64_t number = start;
    while (count < runs_max && number < packets->end) {
        uint64_t received = cw_window_next(packets, number, true);
        uint64_t end = cw_window_next(packets, received, false);
        /* a run never reaches 65,536: the window spans less */
        struct cw_wire_run run = {.missing = (uint16_t)(received - number), .received = (uint16_t)(end - received)};
        memcpy(at + count * sizeof(run), &run, sizeof(run));
        count++;
        number = end;
    }
    *end_number = number;
    return count;
}

bool cw_ack_send(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_receiver *receiver = &flow->receiver;
    uint32_t runs_max =
        (flow->session.payload_bytes_max - (uint32_t)sizeof(struct cw_wire_ack)) / (uint32_t)sizeof(struct cw_wire_run);
    runs_max = runs_max < CW_ACK_RUNS_MAX ? runs_max : CW_ACK_RUNS_MAX;
    uint8_t *payload = cw_transmit_control(endpoint, flow, CW_WIRE_ACK, flow->session.payload_bytes_max);
    if (payload == NULL) {
        return false;
    }
    bool stop = is_congested(endpoint);
    if (stop != receiver->told_to_stop) {
        receiver->told_to_stop = stop;
        endpoint->stop_count += stop ? 1u : UINT32_MAX;
    }
    struct cw_wire_ack report = {.from = (uint32_t)receiver->packets.base,
                                 .busy_ns = endpoint->busy_ns,
                                 .flags =
                                     (uint16_t)(flow->session.mtu.in << CW_WIRE_ACK_PROBE_SHIFT |
                                                (stop ? CW_WIRE_ACK_STOP : 0) | cw_integrity_ack_flags(endpoint, flow)),
                                 .duplicates = receiver->duplicates};
    uint64_t end = receiver->packets.end;
    if (receiver->packets.base != end) {
        uint64_t start = choose_start(receiver, runs_max);
        report.from = (uint32_t)start;
        report.run_count = (uint16_t)write_runs(&receiver->packets, start, runs_max, payload + sizeof(report), &end);
    }
    if (end == receiver->packets.end) {
        report.flags |= CW_WIRE_ACK_END;
    }
    memcpy(payload, &report, sizeof(report));
    cw_transmit_control_finish(endpoint, flow,
                               (uint32_t)(sizeof(report) + report.run_count * sizeof(struct cw_wire_run)));
    cw_count(endpoint, CW_COUNTER_ACKNOWLEDGEMENTS_OUT, 1);
    receiver->reports++;
    receiver->unreported = 0;
    receiver->report_now = false;
    receiver->report_from_base = false;
    receiver->focus = UINT64_MAX;
    flow->timers.report_ns = UINT64_MAX;
    return true;
}

/* Lets stopped senders continue when there is room. */
static void release_stopped(struct cw_endpoint *endpoint)
{
    for (uint32_t i = 0; i < endpoint->flows.fresh && endpoint->stop_count > 0; i++) {
        struct cw_flow *flow = cw_pool_at(&endpoint->flows, i);
        if (flow->receiver.told_to_stop && !cw_ack_send(endpoint, flow)) {
            return; /* no buffer: next turn */
        }
    }
}

uint32_t cw_ack_turn(struct cw_endpoint *endpoint)
{
    uint32_t count = 0;
    if (endpoint->stop_count > 0 && !is_congested(endpoint)) {
        release_stopped(endpoint);
    }
    while (endpoint->report_first != NULL) {
        struct cw_flow *flow = endpoint->report_first;
        if (flow->state == CW_PEER_ESTABLISHED && flow->receiver.report_now &&
            cw_shaper_holds(endpoint, flow, &flow->timers.report_ns)) {
            cw_flow_wake_at(endpoint, flow, flow->timers.report_ns);
        } else if (flow->state == CW_PEER_ESTABLISHED && flow->receiver.report_now) {
            if (!cw_ack_send(endpoint, flow)) {
                break;
            }
            count++;
        }
        flow->receiver.in_report_list = false;
        endpoint->report_first = flow->receiver.report_next;
    }
    return count;
}
