/* A client of the emulator that is measured: bare frames with the time in them. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "apps/bench/processes/switch.h"
#include "apps/cli/cli.h"
#include "dataplane/base/yield_policy.h"
#include "dataplane/statistics.h"

#define YIELD_NS    50000ull
#define NAP_MIN_NS  200000ull
#define NAP_LESS_NS 100000ull

enum { HEADER_BYTES = 14, ETHERTYPE = 0x88b5 /* for local experiments */, BURST = 32, HELLOS = 3, LATE_MAX = 1 << 20 };

struct content {
    uint64_t sent_ns;
    uint32_t kind;
};

enum { KIND_HELLO = 1, KIND_PROBE = 2 };

struct side {
    struct bench_member *member;
    const struct switch_bench_settings *settings;
    struct switch_bench_result *result;
    struct cw_yield_policy yield_policy;
    uint64_t start_ns;
    uint64_t delay_ns; /* of the frame before; 0: none */
    double *late_ns;   /* LATE_MAX */
    uint64_t late_count;
};

static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/* Returns how many of `count` frames went out. */
static uint32_t frames_send(const struct side *side, const uint8_t to[6], uint32_t kind, uint32_t count)
{
    struct cw_port *port = side->member->port;
    struct cw_transmit packets[BURST];
    const uint8_t type[2] = {ETHERTYPE >> 8, ETHERTYPE & 0xff};
    uint32_t got = cw_port_reserve(port, packets, count);
    for (uint32_t i = 0; i < got; i++) {
        struct content content = {.sent_ns = bench_member_clock_ns(), .kind = kind};
        memcpy(packets[i].data, to, 6);
        memcpy(packets[i].data + 6, port->info.mac, 6);
        memcpy(packets[i].data + 12, type, sizeof(type));
        memcpy(packets[i].data + HEADER_BYTES, &content, sizeof(content));
        packets[i].length = side->settings->frame_bytes;
    }
    uint32_t sent = got > 0 ? cw_port_transmit(port, packets, got) : 0;
    cw_port_cancel(port, packets + sent, got - sent);
    return sent;
}

static void delay_note(struct side *side, uint64_t delay_ns)
{
    struct switch_bench_result *result = side->result;
    uint64_t expected_ns = side->settings->expected_ns;
    if (side->settings->gap_ns > 0 && side->late_count < LATE_MAX) {
        side->late_ns[side->late_count++] = delay_ns > expected_ns ? (double)(delay_ns - expected_ns) : 0;
    }
    result->early += delay_ns < expected_ns;
    if (side->delay_ns != 0) {
        result->jitter_ns += delay_ns > side->delay_ns ? delay_ns - side->delay_ns : side->delay_ns - delay_ns;
    }
    side->delay_ns = delay_ns;
}

static void frame_receive(struct side *side, const struct cw_received *frame, uint64_t now_ns)
{
    const struct switch_bench_settings *settings = side->settings;
    struct switch_bench_result *result = side->result;
    struct content content;
    if (frame->length != settings->frame_bytes || frame->data[12] != ETHERTYPE >> 8 ||
        frame->data[13] != (ETHERTYPE & 0xff)) {
        return;
    }
    memcpy(&content, frame->data + HEADER_BYTES, sizeof(content));
    uint64_t warm_ns = side->start_ns + settings->expected_ns + settings->duration_ns / SWITCH_BENCH_WARMUP_SHARE;
    if (content.kind != KIND_PROBE || now_ns < warm_ns ||
        now_ns > side->start_ns + settings->expected_ns + settings->duration_ns) {
        return;
    }
    result->received++;
    result->between += result->first_ns != 0;
    result->first_ns = result->first_ns == 0 ? now_ns : result->first_ns;
    result->last_ns = now_ns;
    delay_note(side, now_ns - content.sent_ns);
}

static uint32_t frames_receive(struct side *side)
{
    struct cw_received frames[CW_PORT_BURST_MAX];
    uint32_t count = cw_port_receive(side->member->port, frames, CW_PORT_BURST_MAX);
    uint64_t now_ns = count > 0 ? bench_member_clock_ns() : 0;
    for (uint32_t i = 0; i < count; i++) {
        frame_receive(side, &frames[i], now_ns);
    }
    if (count > 0) {
        cw_port_release(side->member->port, frames, count);
    }
    return count;
}

/* Sends what is due; returns whether it was anything. */
static bool send_due(struct side *side, uint64_t now_ns, uint64_t *next_ns)
{
    const struct switch_bench_settings *settings = side->settings;
    const uint8_t *to = side->member->macs[(side->member->index + 1) % side->member->count];
    if (now_ns < *next_ns) {
        return false;
    }
    uint32_t sent = frames_send(side, to, KIND_PROBE, settings->gap_ns == 0 ? (uint32_t)BURST : 1);
    /* frames late by more than a burst are left out: they would leave all at once */
    *next_ns = settings->gap_ns == 0                          ? now_ns
               : now_ns > *next_ns + BURST * settings->gap_ns ? now_ns + settings->gap_ns
                                                              : *next_ns + settings->gap_ns;
    return sent > 0;
}

static void rest(struct side *side, uint64_t now_ns, uint64_t until_ns, uint64_t idle_ns)
{
    if (until_ns < now_ns + NAP_MIN_NS || (idle_ns < YIELD_NS && cw_yield_policy_yield(&side->yield_policy, now_ns))) {
        sched_yield();
        return;
    }
    cw_port_sleep(side->member->port, until_ns - now_ns - NAP_LESS_NS);
}

static void converse(struct side *side, bool sends)
{
    const struct switch_bench_settings *settings = side->settings;
    uint64_t stop_ns = side->start_ns + settings->duration_ns;
    uint64_t end_ns = stop_ns + settings->expected_ns + settings->duration_ns / SWITCH_BENCH_WARMUP_SHARE;
    uint64_t next_ns = side->start_ns, busy_ns = 0, now_ns;
    while ((now_ns = bench_member_clock_ns()) < end_ns) {
        bool did = sends && now_ns < stop_ns && send_due(side, now_ns, &next_ns);
        did = frames_receive(side) > 0 || did;
        if (did) {
            busy_ns = now_ns;
        } else {
            rest(side, now_ns, sends && now_ns < stop_ns ? next_ns : end_ns, now_ns - busy_ns);
        }
    }
}

int switch_bench_member(struct bench_member *member)
{
    struct side side = {.member = member, .settings = member->settings, .result = member->result};
    side.late_ns = malloc(LATE_MAX * sizeof(*side.late_ns));
    if (side.late_ns == NULL) {
        return bench_member_fail(member, CW_ERROR_MEMORY, "no memory for the delays");
    }
    for (int i = 0; i < HELLOS; i++) { /* so that the bridge learns all addresses */
        (void)frames_send(&side, everybody, KIND_HELLO, 1);
        (void)cw_port_sleep(member->port, 1);
    }
    bench_member_reach(member, BENCH_STEP_REFERENCE);
    bench_member_await(member, BENCH_STEP_REFERENCE);
    side.start_ns = bench_member_start_ns(member, BENCH_STEP_REFERENCE);
    converse(&side, side.settings->all || member->index == 0);
    if (side.late_count > 0) {
        double *late_ns = side.result->late_ns;
        late_ns[0] = cw_statistics_median(side.late_ns, side.late_count); /* sorts them */
        late_ns[1] = cw_statistics_percentile(side.late_ns, side.late_count, 0.99);
        late_ns[2] = cw_statistics_percentile(side.late_ns, side.late_count, 0.999);
    }
    free(side.late_ns);
    bench_member_leave(member);
    return APP_EXIT_SUCCESS;
}
