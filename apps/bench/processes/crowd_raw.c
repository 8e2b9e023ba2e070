/* The crowd's reference: the same questions and answers in bare frames, without any protocol. Who has nothing to do
 * lets others run for some time, and then sleeps. */
#include <string.h>
#include <sys/random.h>

#include "apps/bench/processes/crowd.h"
#include "apps/cli/cli.h"
#include "dataplane/base/random.h"
#include "dataplane/base/yield_policy.h"

#define YIELD_NS 50000ull
/* A frame that is so late is taken for lost; the rest of the answers are waited for so long at the end. */
#define LOST_NS  50000000ull
#define AFTER_NS 2000000ull

enum { FRAME_HEADER_BYTES = 14, FRAME_BYTES_MIN = 64, ETHERTYPE = 0x88b5 /* for local experiments */ };

struct raw_content {
    uint64_t stamp_ns;
    uint64_t number; /* of the question */
    uint32_t from;
    uint32_t kind;
};

struct raw_side {
    struct bench_member *member;
    const struct crowd_settings *settings;
    struct crowd_result *result;
    struct cw_random random;
    struct cw_yield_policy yield_policy;
    uint32_t frame_bytes;
    uint64_t start_ns;
    uint64_t number;   /* of the last question */
    uint64_t asked_ns; /* 0: none is open */
    uint64_t next_ns;
};

static void send_frame(struct raw_side *side, uint32_t to, enum crowd_kind kind, uint64_t number)
{
    struct cw_port *port = side->member->port;
    struct cw_transmit packet;
    if (cw_port_reserve(port, &packet, 1) == 0) {
        return; /* counts as lost */
    }
    const uint8_t type[2] = {ETHERTYPE >> 8, ETHERTYPE & 0xff};
    struct raw_content content = {.stamp_ns = bench_member_clock_ns() - side->start_ns,
                                  .number = number,
                                  .from = side->member->index,
                                  .kind = kind};
    memset(packet.data, 0, side->frame_bytes);
    memcpy(packet.data, side->member->macs[to], 6);
    memcpy(packet.data + 6, port->info.mac, 6);
    memcpy(packet.data + 12, type, sizeof(type));
    memcpy(packet.data + FRAME_HEADER_BYTES, &content, sizeof(content));
    packet.length = side->frame_bytes;
    if (cw_port_transmit(port, &packet, 1) == 0) {
        cw_port_cancel(port, &packet, 1);
    }
}

static void take_frame(struct raw_side *side, const struct cw_received *frame, uint64_t now_ns)
{
    struct raw_content content;
    const struct crowd_settings *settings = side->settings;
    if (frame->length < FRAME_HEADER_BYTES + sizeof(content) || frame->data[12] != ETHERTYPE >> 8 ||
        frame->data[13] != (ETHERTYPE & 0xff) || memcmp(frame->data, side->member->port->info.mac, 6) != 0) {
        return; /* the first frame to an address goes to everybody */
    }
    memcpy(&content, frame->data + FRAME_HEADER_BYTES, sizeof(content));
    if (content.from >= side->member->count || content.stamp_ns > now_ns) {
        return;
    }
    if (content.stamp_ns >= settings->duration_ns / CROWD_WARMUP_SHARE && content.stamp_ns < settings->duration_ns) {
        bench_histogram_add(&side->result->raw_latency, now_ns - content.stamp_ns);
    }
    if (content.kind == CROWD_QUESTION) {
        send_frame(side, content.from, CROWD_ANSWER, content.number);
    } else if (content.number == side->number) {
        side->asked_ns = 0;
        side->next_ns = now_ns + settings->gap_ns;
    }
}

static uint32_t take_frames(struct raw_side *side)
{
    struct cw_received frames[CW_PORT_BURST_MAX];
    uint32_t count = cw_port_receive(side->member->port, frames, CW_PORT_BURST_MAX);
    if (count > 0) {
        uint64_t now_ns = bench_member_clock_ns() - side->start_ns;
        for (uint32_t i = 0; i < count; i++) {
            take_frame(side, &frames[i], now_ns);
        }
        cw_port_release(side->member->port, frames, count);
    }
    return count;
}

static void ask(struct raw_side *side, uint64_t now_ns)
{
    const struct bench_member *member = side->member;
    side->result->raw_lost += side->asked_ns != 0;
    uint32_t other = (uint32_t)cw_random_below(&side->random, member->count - 1);
    other += other >= member->index;
    side->number++;
    side->asked_ns = now_ns + 1;
    send_frame(side, other, CROWD_QUESTION, side->number);
}

/* Nothing came for `idle_ns`. */
static void wait_more(struct raw_side *side, uint64_t idle_ns, uint64_t until_ns, uint64_t now_ns)
{
    bool yielded = idle_ns < YIELD_NS && cw_yield_policy_yield(&side->yield_policy, now_ns + side->start_ns);
    if (!yielded && until_ns > now_ns) {
        cw_port_sleep(side->member->port, until_ns - now_ns);
    }
}

static void converse(struct raw_side *side)
{
    uint64_t duration_ns = side->settings->duration_ns;
    uint64_t busy_ns = 0;
    for (;;) {
        uint64_t now_ns = bench_member_clock_ns() - side->start_ns;
        bool over = now_ns >= duration_ns;
        if (over && now_ns >= duration_ns + AFTER_NS) {
            return;
        }
        bool lost = side->asked_ns != 0 && now_ns > side->asked_ns + LOST_NS;
        if (!over && (lost || (side->asked_ns == 0 && now_ns >= side->next_ns))) {
            ask(side, now_ns);
            busy_ns = now_ns;
        }
        if (take_frames(side) > 0) {
            busy_ns = now_ns;
            continue;
        }
        uint64_t until_ns = over ? duration_ns + AFTER_NS : duration_ns;
        uint64_t due_ns = side->asked_ns != 0 ? side->asked_ns + LOST_NS : side->next_ns;
        wait_more(side, now_ns - busy_ns, !over && due_ns < until_ns ? due_ns : until_ns, now_ns);
    }
}

int crowd_run_raw(struct bench_member *member)
{
    struct raw_side side = {.member = member, .settings = member->settings, .result = member->result};
    uint64_t seed;
    if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        return bench_member_fail(member, CW_ERROR_SYSTEM, "getrandom fails");
    }
    cw_random_seed(&side.random, seed);
    uint64_t bytes = FRAME_BYTES_MIN + side.settings->size_bytes;
    uint64_t bytes_max = FRAME_HEADER_BYTES + member->port->info.mtu_bytes;
    side.frame_bytes = (uint32_t)(bytes < bytes_max ? bytes : bytes_max);
    side.start_ns = bench_member_start_ns(member, BENCH_STEP_LINK);
    converse(&side);
    return APP_EXIT_SUCCESS;
}
