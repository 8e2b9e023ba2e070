#include "apps/bench/processes/put.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/bench/processes/group_shared.h"
#include "dataplane/base/clock.h"
#include "dataplane/port/port.h"
#include "dataplane/statistics.h"

enum {
    EVENTS = 64,
    LANE = 1,
    WINDOW_BYTES = 2 << 20, /* of large puts in flight */
    WALK_BYTES = 1 << 20,
    SIGNAL_EVERY = 64,
    SAMPLES_MAX = 1 << 20,
};

static bool is_initiator(const struct bench_member *member)
{
    return member->index == 1;
}

static void fill_put(const struct bench_member *member, uint64_t offset, uint64_t size, struct cw_put *put)
{
    *put = (struct cw_put){
        .peer = member->peer,
        .lane_tag = cw_lane_tag(LANE, 0),
        .region = member->peer_token,
        .offset = offset,
        .source = {.kind = CW_SOURCE_CONTIGUOUS,
                   .region = member->token,
                   .contiguous = {.data = member->region + offset, .bytes = size}},
    };
}

/* ---- what is moved ---- */

static uint64_t step_of(uint64_t size)
{
    return (size + 63) & ~63ull;
}

/* Number of places that the puts of a size cycle through: two puts or 1 MiB, whichever is more. */
static uint64_t places_of(const struct bench_member *member, uint64_t size)
{
    uint64_t step = step_of(size), region_bytes = member->group->config.region_bytes;
    uint64_t walk_bytes = 2 * step > WALK_BYTES ? 2 * step : WALK_BYTES;
    return step == 0 ? 4096 : (walk_bytes < region_bytes ? walk_bytes : region_bytes) / step;
}

static uint8_t byte_of(uint64_t offset, uint64_t size)
{
    return (uint8_t)((offset + size) * UINT64_C(0x9e3779b97f4a7c15) >> 56); /* no period below the region's length */
}

/* Writes the data of the puts into the own region of the initiator, and other data into that of the responder. Then
 * both may begin. */
static void region_prepare(struct bench_member *member, uint64_t size, uint64_t places)
{
    for (uint64_t offset = 0; offset < places * step_of(size); offset++) {
        uint8_t value = byte_of(offset, size);
        member->region[offset] = is_initiator(member) ? value : (uint8_t)~value;
    }
    bench_member_meet(member);
}

/* Whether the first `places` have what was put there. */
static int region_check(const struct bench_member *member, uint64_t size, uint64_t places)
{
    for (uint64_t place = 0; place < places; place++) {
        for (uint64_t offset = place * step_of(size); offset < place * step_of(size) + size; offset++) {
            if (member->region[offset] != byte_of(offset, size)) {
                fprintf(stderr, "causeway bench put: byte %llu of the region is wrong after puts of %llu bytes\n",
                        (unsigned long long)offset, (unsigned long long)size);
                return CW_ERROR_SYSTEM;
            }
        }
    }
    return CW_OK;
}

/* Waits for one put; an error if the peer goes. */
static int await_put(struct bench_member *member)
{
    for (;;) {
        struct cw_event event;
        if (cw_loop_wait(member->loop, &event, 1, BENCH_HANG_NS) == 0) {
            return CW_ERROR_TIMEOUT;
        }
        if (event.kind == CW_EVENT_PUT) {
            return (int)cw_tag(event.lane_tag);
        }
        if (event.status < 0) {
            return event.status;
        }
    }
}

/* ---- times of round trips ---- */

int bench_samples_begin(struct bench_samples *samples, uint64_t duration_ns, uint64_t patience_ns)
{
    uint64_t now_ns = cw_clock_ns();
    *samples = (struct bench_samples){.times_ns = malloc(SAMPLES_MAX * sizeof(double)),
                                      .measure_ns = now_ns + duration_ns / 4,
                                      .end_ns = now_ns + duration_ns / 4 + duration_ns,
                                      .patience_ns = patience_ns};
    return samples->times_ns != NULL ? CW_OK : CW_ERROR_MEMORY;
}

bool bench_samples_continue(const struct bench_samples *samples)
{
    uint64_t now_ns = cw_clock_ns();
    return samples->count < SAMPLES_MAX &&
           (now_ns < samples->end_ns || (samples->count == 0 && now_ns < samples->end_ns + samples->patience_ns));
}

void bench_samples_add(struct bench_samples *samples, uint64_t time_ns)
{
    if (time_ns > 0 && cw_clock_ns() >= samples->measure_ns) {
        samples->times_ns[samples->count++] = (double)time_ns;
    }
}

struct bench_latency bench_samples_end(struct bench_samples *samples)
{
    struct bench_latency latency = {.count = samples->count};
    if (samples->count > 0) {
        latency.p50_ns = cw_statistics_median(samples->times_ns, samples->count);
        latency.p99_ns = cw_statistics_percentile(samples->times_ns, samples->count, 0.99);
    }
    free(samples->times_ns);
    return latency;
}

/* ---- latency ---- */

static int latency_initiator(struct bench_member *member, uint64_t size, uint64_t duration_ns,
                             struct bench_latency *latency)
{
    struct bench_samples samples;
    struct cw_put put;
    int status = bench_samples_begin(&samples, duration_ns, BENCH_HANG_NS);
    fill_put(member, 0, size, &put);
    for (bool last = false; status >= 0 && !last;) {
        uint64_t start_ns = cw_clock_ns();
        last = !bench_samples_continue(&samples);
        put.lane_tag = cw_lane_tag(LANE, last ? 1 : 0);
        status = cw_loop_put(member->loop, &put);
        status = status == CW_OK ? await_put(member) : status;
        bench_samples_add(&samples, status >= 0 && !last ? cw_clock_ns() - start_ns : 0);
    }
    *latency = bench_samples_end(&samples);
    return status < 0 ? status : CW_OK;
}

static int latency_responder(struct bench_member *member, uint64_t size)
{
    struct cw_put put;
    fill_put(member, 0, size, &put);
    for (;;) {
        int tag = await_put(member);
        if (tag < 0) {
            return tag;
        }
        int status = cw_loop_put(member->loop, &put);
        if (status != CW_OK) {
            return status;
        }
        if (tag == 1) {
            return CW_OK;
        }
    }
}

/* Turns until nothing of ours is in progress. */
static int drain(struct bench_member *member)
{
    struct cw_peer_info info;
    uint64_t until_ns = cw_clock_ns() + BENCH_HANG_NS;
    do {
        struct cw_event events[EVENTS];
        (void)cw_loop_poll(member->loop, events, EVENTS);
        int status = cw_peer_query(member->endpoint, member->peer, &info);
        if (status != CW_OK || info.state != CW_PEER_ESTABLISHED) {
            return status == CW_OK ? CW_ERROR_PEER_FAILED : status;
        }
    } while (info.operations_open > 0 && cw_clock_ns() < until_ns);
    return info.operations_open == 0 ? CW_OK : CW_ERROR_TIMEOUT;
}

/* Meets the other side while both continue to turn, so that the last acknowledgements flow, and discards old events.
 * After the meeting a side may put at once, and the other side might discard that event: so they meet twice, the second
 * time without turning. */
static int meet(struct bench_member *member)
{
    struct cw_event events[EVENTS];
    int status = drain(member);
    if (status != CW_OK) {
        return status;
    }
    bench_member_mark(member);
    while (!bench_member_marked(member, 0) || cw_loop_poll(member->loop, events, EVENTS) > 0) {
        (void)cw_loop_poll(member->loop, events, EVENTS);
    }
    bench_member_meet(member);
    return CW_OK;
}

int bench_put_latency(struct bench_member *member, uint64_t size, uint64_t duration_ns, struct bench_latency *latency)
{
    region_prepare(member, size, 1);
    int status =
        is_initiator(member) ? latency_initiator(member, size, duration_ns, latency) : latency_responder(member, size);
    status = status == CW_OK ? meet(member) : status;
    return status == CW_OK && !is_initiator(member) ? region_check(member, size, 1) : status;
}

/* ---- rate ---- */

/* Until the end; past it as long as the other side has measured nothing. */
static bool rate_continues(const struct bench_member *member, uint64_t end_ns)
{
    uint64_t now_ns = cw_clock_ns();
    return now_ns < end_ns || (now_ns < end_ns + BENCH_HANG_NS && !bench_member_measured(member));
}

static int rate_initiator(struct bench_member *member, uint64_t size, bool alone, uint64_t duration_ns,
                          struct bench_put_rate *rate)
{
    uint64_t step = step_of(size);
    uint64_t places = places_of(member, size);
    uint64_t under_way_max = size == 0 || WINDOW_BYTES / size > 4096 ? 4096 : WINDOW_BYTES / size;
    under_way_max = under_way_max < 2 ? 2 : under_way_max;
    under_way_max = under_way_max > places ? places : under_way_max;
    uint64_t signal_every = under_way_max / 4 > SIGNAL_EVERY ? SIGNAL_EVERY : under_way_max / 4 + 1;
    uint64_t data_before = cw_endpoint_counter(member->endpoint, CW_COUNTER_DATA_OUT);
    uint64_t again_before = cw_endpoint_counter(member->endpoint, CW_COUNTER_RETRANSMITTED);
    uint64_t end_ns = cw_clock_ns() + duration_ns;
    uint64_t posted = 0;
    uint64_t completed = 0;
    uint64_t place = 0; /* counted up, not divided: a division takes as long as half a put */
    uint64_t until_signal = signal_every;
    while (rate_continues(member, end_ns)) {
        for (uint32_t burst = 0; burst < 32 && posted - completed < under_way_max; burst++) {
            struct cw_put put;
            fill_put(member, place * step, size, &put);
            bool signal = until_signal == 1;
            put.flags = CW_MORE | (alone ? CW_ALONE : 0) | (signal ? CW_SIGNAL : 0);
            put.context = posted + 1;
            int status = cw_loop_put(member->loop, &put);
            if (status == CW_ERROR_AGAIN) {
                break;
            }
            if (status != CW_OK) {
                return status;
            }
            posted++;
            place = place + 1 == places ? 0 : place + 1;
            until_signal = signal ? signal_every : until_signal - 1;
        }
        struct cw_event events[EVENTS];
        uint32_t count = cw_loop_poll(member->loop, events, EVENTS);
        for (uint32_t i = 0; i < count; i++) {
            if (events[i].status < 0) {
                return events[i].status;
            }
            if (events[i].kind == CW_EVENT_COMPLETE && events[i].context > completed) {
                completed = events[i].context;
            }
        }
    }
    int status = drain(member);
    rate->packets_per_put =
        posted == 0
            ? 0
            : (double)(cw_endpoint_counter(member->endpoint, CW_COUNTER_DATA_OUT) - data_before) / (double)posted;
    rate->retransmits = cw_endpoint_counter(member->endpoint, CW_COUNTER_RETRANSMITTED) - again_before;
    return status;
}

static int rate_responder(struct bench_member *member, uint64_t warmup_ns, uint64_t duration_ns,
                          struct bench_put_rate *rate)
{
    uint64_t first_ns = 0;
    uint64_t last_ns = 0;
    uint64_t start_ns = 0;
    uint64_t puts = 0, bytes = 0;
    bool is_told = false;
    for (uint32_t round = 0;; round++) {
        struct cw_event events[EVENTS];
        uint32_t taken = cw_loop_poll(member->loop, events, EVENTS);
        if (taken == 0) {
            if (round % 256 == 0 && bench_member_marked(member, 1)) {
                double seconds = (double)(last_ns - start_ns) / 1e9;
                rate->puts_per_s = seconds > 0 ? (double)puts / seconds : 0;
                rate->bytes_per_s = seconds > 0 ? (double)bytes / seconds : 0;
                return CW_OK;
            }
            continue;
        }
        uint64_t now_ns = cw_clock_ns();
        for (uint32_t i = 0; i < taken; i++) {
            rate->all += events[i].kind == CW_EVENT_PUT;
        }
        first_ns = first_ns == 0 ? now_ns : first_ns;
        if (now_ns - first_ns < warmup_ns || (puts > 0 && now_ns - first_ns > warmup_ns + duration_ns)) {
            continue;
        }
        if (start_ns == 0) {
            start_ns = last_ns = now_ns; /* these events fall before the interval */
            continue;
        }
        last_ns = now_ns;
        for (uint32_t i = 0; i < taken; i++) {
            if (events[i].kind == CW_EVENT_PUT) {
                puts++;
                bytes += events[i].bytes;
            } else if (events[i].status < 0) {
                return events[i].status;
            }
        }
        if (puts > 0 && !is_told) {
            bench_member_measure(member);
            is_told = true;
        }
    }
}

int bench_put_rate(struct bench_member *member, uint64_t size, bool alone, uint64_t duration_ns,
                   struct bench_put_rate *rate)
{
    uint64_t warmup_ns = duration_ns / 4;
    uint64_t places = places_of(member, size);
    *rate = (struct bench_put_rate){0};
    region_prepare(member, size, places);
    int status = is_initiator(member)
                     ? rate_initiator(member, size, alone, warmup_ns + duration_ns + duration_ns / 10, rate)
                     : rate_responder(member, warmup_ns, duration_ns, rate);
    if (status != CW_OK) {
        return status;
    }
    bench_member_mark(member);
    status = meet(member);
    bool is_checked = status == CW_OK && !is_initiator(member);
    return is_checked ? region_check(member, size, rate->all < places ? rate->all : places) : status;
}
