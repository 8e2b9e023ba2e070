/* Incoming acknowledgements: packets that arrived, lost packets, and the round trip.
 *
 * Loss is judged by time (RFC 8985): acknowledgements echo the timestamp of the latest transmission that arrived, so a
 * packet whose last transmission is older than that by the reordering window, and which the report describes as
 * missing, is lost. A silent path proves nothing: then a probe is sent, and its answer decides. */
#include "dataplane/flow/acknowledge.h"

#include <assert.h>
#include <string.h>

#include "dataplane/congestion/bandwidth.h"
#include "dataplane/congestion/congestion.h"
#include "dataplane/flow/compress.h"
#include "dataplane/flow/integrity.h"
#include "dataplane/flow/path_mtu.h"
#include "dataplane/flow/timers.h"
#include "dataplane/put/operation.h"
#include "dataplane/state/wake.h"

/* How long this packet, and with it the answer to ours, waited in queues on its way back: the difference to the
 * shortest recent trip. The clocks of the two hosts need not agree, except in their rate over a second or two. */
static uint64_t back_queue_ns(const struct cw_endpoint *endpoint, struct cw_round_trip *trip, uint32_t timestamp)
{
    uint32_t back = cw_wire_timestamp(endpoint->now_ns) - timestamp;
    if (trip->back_since_ns == 0) {
        trip->back_min = trip->back_min_next = back;
        trip->back_since_ns = endpoint->now_ns;
    } else if (endpoint->now_ns - trip->back_since_ns > CW_BACK_MIN_WINDOW_NS) {
        trip->back_min = trip->back_min_next;
        trip->back_min_next = back;
        trip->back_since_ns = endpoint->now_ns;
    }
    trip->back_min = (int32_t)(back - trip->back_min) < 0 ? back : trip->back_min;
    trip->back_min_next = (int32_t)(back - trip->back_min_next) < 0 ? back : trip->back_min_next;
    uint64_t queue_ns = (uint64_t)(back - trip->back_min) << CW_WIRE_TIMESTAMP_SHIFT;
    return queue_ns < CW_BACK_QUEUE_MAX_NS ? queue_ns : CW_BACK_QUEUE_MAX_NS;
}

/* A packet with a departure time at the port was acknowledged. */
static void departure_check(struct cw_endpoint *endpoint, uint32_t echo)
{
    if (endpoint->port->info.departure_ahead_ns > 0 && (int32_t)(echo - cw_wire_timestamp(endpoint->now_ns)) > 0) {
        cw_count(endpoint, CW_COUNTER_DEPARTURE_LIES, 1);
        cw_integrity_doubt(endpoint, CW_OFFLOAD_DEPARTURE);
    }
}

void cw_acknowledge_echo(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header,
                         uint64_t arrival_ns)
{
    if (header->echo_delay == CW_WIRE_DELAY_UNKNOWN) {
        return;
    }
    uint64_t held_ns = (uint64_t)header->echo_delay << CW_WIRE_DELAY_SHIFT;
    if (endpoint->offloads_out) {
        departure_check(endpoint, header->echo);
    }
    uint64_t elapsed_ns = arrival_ns - cw_timestamp_time(endpoint, header->echo);
    if (elapsed_ns >= 1ull << 35 || elapsed_ns <= held_ns) {
        return; /* a timestamp from the future, or held longer than it was on its way: not one of ours */
    }
    uint64_t sample_ns = elapsed_ns - held_ns;
    struct cw_round_trip *trip = &flow->round_trip;
    if (trip->smoothed_ns == 0) {
        trip->smoothed_ns = sample_ns;
        trip->variance_ns = sample_ns / 2;
        trip->min_ns = trip->min_next_ns = sample_ns;
        trip->min_since_ns = endpoint->now_ns;
    } else { /* RFC 6298 */
        uint64_t deviation =
            sample_ns > trip->smoothed_ns ? sample_ns - trip->smoothed_ns : trip->smoothed_ns - sample_ns;
        trip->variance_ns += (deviation >> 2) - (trip->variance_ns >> 2);
        trip->smoothed_ns = trip->smoothed_ns - (trip->smoothed_ns >> 3) + (sample_ns >> 3);
    }
    if (endpoint->now_ns - trip->min_since_ns > CW_ROUND_TRIP_MIN_WINDOW_NS) {
        trip->min_ns = trip->min_next_ns;
        trip->min_next_ns = sample_ns;
        trip->min_since_ns = endpoint->now_ns;
    }
    trip->min_ns = sample_ns < trip->min_ns ? sample_ns : trip->min_ns;
    trip->min_next_ns = sample_ns < trip->min_next_ns ? sample_ns : trip->min_next_ns;
    if (trip->reordering_ns == 0) {
        trip->reordering_ns = trip->min_ns / 4;
    }
    uint64_t queue_ns = back_queue_ns(endpoint, trip, header->timestamp);
    uint64_t most_ns = sample_ns - trip->min_ns;
    cw_congestion_sample(flow, sample_ns - (queue_ns < most_ns ? queue_ns : most_ns));
}

/* ---- what has arrived ---- */

static void record_acknowledged(struct cw_endpoint *endpoint, struct cw_flow *flow, struct cw_sent *record,
                                bool was_lost)
{
    if (flow->bandwidth != NULL) {
        cw_bandwidth_delivered(flow, record->frame_bytes);
    }
    if (was_lost) {
        flow->sender.lost_count--; /* it was only late */
    } else {
        flow->sender.in_flight_bytes -= record->frame_bytes;
    }
    if (cw_flow_compress_counts(record)) {
        cw_flow_compress_acknowledged(endpoint, flow, record);
    }
    struct cw_operation *operation = record->operation;
    for (uint32_t i = 0; i < record->count; i++) {
        struct cw_operation *next = operation->chain; /* the operation may be gone after this */
        cw_operation_acknowledged(endpoint, operation);
        operation = next;
    }
}

/* Marks from .. to - 1, all within one chunk, as acknowledged; returns how many are new. */
static uint32_t chunk_acknowledged(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t from, uint64_t to)
{
    struct cw_sent_chunk *chunk = cw_sent_chunk_of(&flow->sender.sent, from);
    if (chunk == NULL) {
        return 0;
    }
    uint64_t mask = (to - from == 64 ? UINT64_MAX : (1ull << (to - from)) - 1) << (from % CW_SENT_CHUNK);
    uint64_t fresh = mask & ~chunk->acknowledged;
    uint64_t lost = fresh & chunk->lost;
    chunk->acknowledged |= fresh;
    chunk->lost &= ~fresh;
    uint32_t count = (uint32_t)__builtin_popcountll(fresh);
    while (fresh != 0) {
        uint32_t bit = (uint32_t)__builtin_ctzll(fresh);
        fresh &= fresh - 1;
        record_acknowledged(endpoint, flow, &chunk->records[bit], (lost >> bit & 1) != 0);
    }
    return count;
}

static uint32_t range_acknowledged(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t from, uint64_t to)
{
    uint32_t count = 0;
    while (from < to) {
        uint64_t end = (from | (CW_SENT_CHUNK - 1)) + 1;
        end = end < to ? end : to;
        count += chunk_acknowledged(endpoint, flow, from, end);
        cw_sent_finish(&flow->sender.sent, from, &endpoint->sent_chunks);
        from = end;
    }
    return count;
}

/* Something new was acknowledged: windows have moved. */
static void progress(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    cw_timers_progress(endpoint, flow);
    cw_congestion_progress(endpoint, flow);
    cw_flow_wake(endpoint, flow);
}

void cw_acknowledge_below(struct cw_endpoint *endpoint, struct cw_flow *flow, uint64_t number)
{
    struct cw_sent_records *sent = &flow->sender.sent;
    if (number <= sent->base || number > sent->next) {
        return; /* old, or about packets that were never sent */
    }
    range_acknowledged(endpoint, flow, sent->base, number);
    cw_sent_advance(sent, number, &endpoint->sent_chunks, &endpoint->blocks);
    progress(endpoint, flow);
}

/* ---- what is lost ---- */

static inline bool is_resolved(const struct cw_sent_chunk *chunk, uint64_t bit)
{
    return chunk == NULL || ((chunk->acknowledged | chunk->lost) & bit) != 0;
}

/* Stays the flow's. Without memory a probe has to do. */
static void late_make(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    flow->late = cw_pool_acquire(&endpoint->lates);
    if (flow->late != NULL) {
        *flow->late = (struct cw_late){0};
    }
}

/* A missing packet that may only be late. A packet sent after all that has arrived is not counted: a probe must request
 * it. */
static void late_note(struct cw_flow *flow, uint64_t number, uint64_t sent_ns)
{
    struct cw_late *late = flow->late;
    late->from = late->to == 0 || number < late->from ? number : late->from;
    late->first_ns = late->to == 0 || sent_ns < late->first_ns ? sent_ns : late->first_ns;
    late->to = number >= late->to ? number + 1 : late->to;
}

/* Looks again when the first of them is due. */
static void late_wait(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    struct cw_late *late = flow->late;
    late->due_ns = 0;
    if (late->to > 0) {
        uint64_t due_ns = late->reported_ns + late->first_ns + flow->round_trip.reordering_ns - late->echoed_ns;
        due_ns += 2 * CW_ACK_DELAY_NS; /* it may be there already, and the next report wait for company */
        late->due_ns = due_ns > endpoint->now_ns ? due_ns : endpoint->now_ns + 1;
        cw_flow_wake_at(endpoint, flow, late->due_ns);
    }
}

/* Marks those of from .. to - 1 as lost that were last sent at or before `lost_before_ns`, and notes those at or before
 * `late_before_ns`. */
static void range_missing(struct cw_flow *flow, uint64_t from, uint64_t to, uint64_t lost_before_ns,
                          uint64_t late_before_ns)
{
    struct cw_sender *sender = &flow->sender;
    for (uint64_t number = from; number < to; number++) {
        struct cw_sent_chunk *chunk = cw_sent_chunk_of(&sender->sent, number);
        uint64_t bit = 1ull << (number % CW_SENT_CHUNK);
        if (is_resolved(chunk, bit)) {
            continue;
        }
        struct cw_sent *record = &chunk->records[number % CW_SENT_CHUNK];
        if (record->time_ns > lost_before_ns) {
            if (record->time_ns <= late_before_ns && flow->late != NULL) {
                late_note(flow, number, record->time_ns);
            }
            continue;
        }
        chunk->lost |= bit;
        sender->in_flight_bytes -= record->frame_bytes;
        sender->lost_count++;
        sender->lost_lowest = number < sender->lost_lowest ? number : sender->lost_lowest;
        flow->congestion.round_lost++;
    }
}

/* How far from `from` on packets left no later than `before_ns`. They leave in the order of their numbers, so the first
 * one that is younger ends the search: a report costs what it changes, not what is in flight. */
static uint64_t tail_older(const struct cw_sent_records *sent, uint64_t from, uint64_t before_ns)
{
    uint64_t number = from;
    while (number < sent->next) {
        const struct cw_sent_chunk *chunk = cw_sent_chunk_of(sent, number);
        uint32_t index = (uint32_t)(number % CW_SENT_CHUNK);
        if (!is_resolved(chunk, 1ull << index) && chunk->records[index].time_ns > before_ns) {
            break;
        }
        number++;
    }
    return number;
}

/* The peer got packets twice that we took for lost too early: be more patient. */
static void adapt_reordering(struct cw_flow *flow, uint32_t duplicates)
{
    struct cw_round_trip *trip = &flow->round_trip;
    if (duplicates != flow->sender.duplicates_known) {
        flow->sender.duplicates_known = duplicates;
        uint64_t limit = trip->smoothed_ns + 4 * trip->variance_ns;
        trip->reordering_ns = trip->reordering_ns * 2 < limit ? trip->reordering_ns * 2 : limit;
    }
}

void cw_acknowledge_late(struct cw_endpoint *endpoint, struct cw_flow *flow)
{
    const struct cw_sent_records *sent = &flow->sender.sent;
    struct cw_late late = *flow->late;
    uint64_t from = late.from > sent->base ? late.from : sent->base;
    uint64_t to = late.to < sent->next ? late.to : sent->next;
    uint64_t before_ns = late.echoed_ns + (endpoint->now_ns - late.reported_ns);
    uint64_t patience_ns = flow->round_trip.reordering_ns;
    uint32_t lost_before = flow->sender.lost_count;
    before_ns = before_ns > patience_ns ? before_ns - patience_ns : 0;
    flow->late->to = 0;
    if (from < to) {
        range_missing(flow, from, to, before_ns < late.echoed_ns ? before_ns : late.echoed_ns, late.echoed_ns);
    }
    late_wait(endpoint, flow);
    if (flow->sender.lost_count > lost_before) {
        cw_timers_progress(endpoint, flow);
        cw_flow_wake(endpoint, flow);
    }
}

bool cw_acknowledge_runs(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header)
{
    const struct cw_wire_ack *report = (const struct cw_wire_ack *)(header + 1);
    if (header->payload_bytes < sizeof(*report) ||
        header->payload_bytes != sizeof(*report) + report->run_count * sizeof(struct cw_wire_run)) {
        return false;
    }
    struct cw_sent_records *sent = &flow->sender.sent;
    uint64_t at = cw_wire_number_expand(sent->base, report->from);
    uint64_t echoed_ns = header->echo_delay == CW_WIRE_DELAY_UNKNOWN ? 0 : cw_timestamp_time(endpoint, header->echo);
    adapt_reordering(flow, report->duplicates);
    flow->congestion.peer_busy_ns = report->busy_ns < CW_BUSY_MAX_NS ? report->busy_ns : CW_BUSY_MAX_NS;
    uint64_t patience_ns = flow->round_trip.reordering_ns;
    uint64_t lost_before_ns = echoed_ns > patience_ns ? echoed_ns - patience_ns : 0;
    uint32_t fresh = 0;
    uint32_t lost_before = flow->sender.lost_count;
    if (flow->late == NULL && report->run_count > 0) {
        late_make(endpoint, flow);
    }
    /* packets of one turn have one departure time, and the echo is rounded: a packet below a number that has arrived
     * counts as earlier */
    uint64_t echoed_most_ns = echoed_ns + (1ull << CW_WIRE_TIMESTAMP_SHIFT) - 1;
    if (flow->late != NULL && echoed_most_ns > flow->late->echoed_ns) {
        flow->late->echoed_ns = echoed_most_ns;
        flow->late->reported_ns = endpoint->now_ns;
    }
    const uint8_t *runs = (const uint8_t *)(report + 1);
    for (uint32_t i = 0; i < report->run_count; i++) {
        struct cw_wire_run run;
        memcpy(&run, runs + i * sizeof(run), sizeof(run));
        uint64_t received = at + run.missing;
        uint64_t end = received + run.received;
        if (end > sent->next) {
            return false; /* packets that were never sent */
        }
        uint64_t from = at > sent->base ? at : sent->base;
        if (from < received) {
            range_missing(flow, from, received, lost_before_ns, echoed_most_ns);
        }
        from = received > sent->base ? received : sent->base;
        if (from < end) {
            fresh += range_acknowledged(endpoint, flow, from, end);
        }
        at = end;
    }
    if ((report->flags & CW_WIRE_ACK_END) != 0 && at >= sent->base && at < sent->next) {
        /* above all that has arrived what left at the same time as that is still on its way */
        uint64_t before_ns = echoed_ns > 0 ? echoed_ns - 1 : 0;
        range_missing(flow, at, tail_older(sent, at, before_ns), lost_before_ns, before_ns);
    }
    if (flow->late != NULL) {
        late_wait(endpoint, flow);
    }
    cw_integrity_ack_receive(endpoint, flow, report->flags);
    cw_path_mtu_answered(endpoint, flow, report->flags >> CW_WIRE_ACK_PROBE_SHIFT);
    bool stop = (report->flags & CW_WIRE_ACK_STOP) != 0;
    bool may_go_on = flow->sender.stopped && !stop;
    bool must_wait = !flow->sender.stopped && stop; /* for a packet that may be lost: the time-out must run */
    flow->sender.stopped = stop;
    if (fresh > 0) {
        progress(endpoint, flow);
    } else if (flow->sender.lost_count > lost_before || may_go_on || must_wait) {
        cw_timers_progress(endpoint, flow);
        cw_flow_wake(endpoint, flow);
    }
    return true;
}

bool cw_acknowledge_reject(struct cw_endpoint *endpoint, struct cw_flow *flow, const struct cw_wire_header *header)
{
    if (header->payload_bytes != sizeof(struct cw_wire_reject)) {
        return false;
    }
    const struct cw_wire_reject *reject = (const struct cw_wire_reject *)(header + 1);
    struct cw_sent_records *sent = &flow->sender.sent;
    uint64_t number = cw_wire_number_expand(sent->base, reject->number);
    if (number < sent->base || number >= sent->next) {
        return true; /* finished meanwhile */
    }
    struct cw_sent_chunk *chunk = cw_sent_chunk_of(sent, number);
    uint64_t bit = 1ull << (number % CW_SENT_CHUNK);
    if (chunk == NULL || (chunk->acknowledged & bit) != 0) {
        return true;
    }
    struct cw_sent *record = &chunk->records[number % CW_SENT_CHUNK];
    struct cw_operation *operation = record->operation;
    for (uint32_t i = 0; i < record->count && operation != NULL; i++, operation = operation->chain) {
        if ((uint32_t)operation->number != reject->put_number) {
            continue;
        }
        if (operation->status == 0) {
            cw_count(endpoint, CW_COUNTER_REJECTS_IN, 1);
            cw_operation_reject(endpoint, operation, CW_ERROR_REMOTE_ACCESS);
            range_missing(flow, number, number + 1, UINT64_MAX, 0); /* to be sent again, void */
            cw_flow_wake(endpoint, flow);
        }
        return true;
    }
    return true;
}
