/* One process of the crowd: asks, answers, checks what it gets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "apps/bench/processes/crowd.h"
#include "apps/cli/cli.h"
#include "dataplane/base/random.h"

/* Nobody sleeps longer without a look at how far the others are, or at a put that found no room. */
#define LOOK_NS  10000000ull
#define RETRY_NS 100000ull

enum {
    EVENTS = 32,
    LANE_FIRST = 1,
    STAMP_BITS = 40, /* of the first eight bytes: the time since the start; the rest is a check */
};

struct crowd_peer {
    uint64_t sent[CROWD_KINDS];
    uint64_t received[CROWD_KINDS];
    uint32_t busy[CROWD_KINDS]; /* bit by slot: the source is still needed */
    uint32_t due;               /* questions to answer */
};

struct crowd_side {
    struct bench_member *member;
    const struct crowd_settings *settings;
    struct crowd_result *result;
    struct cw_random random;
    uint8_t *sources;
    uint64_t stride_bytes;
    uint64_t start_ns; /* 0: not all are connected */
    uint64_t cpu_start_ns;
    uint64_t next_ns;    /* of the next question */
    uint32_t due;        /* of all peers */
    bool asked;          /* an answer is due to us */
    bool retry;          /* a put found no room */
    bool done;           /* nothing of ours will come any more */
    const char *failure; /* what went wrong; NULL: nothing */
    struct crowd_peer peers[BENCH_GROUP_MEMBERS_MAX];
};

static uint64_t stride_bytes(const struct crowd_settings *settings)
{
    return (settings->size_bytes + 63) & ~63ull;
}

uint64_t crowd_region_bytes(const struct crowd_settings *settings, uint32_t count)
{
    return (uint64_t)count * CROWD_KINDS * CROWD_SLOTS * stride_bytes(settings);
}

/* The place of a put: in the sources by its receiver, in the region by its sender. */
static uint64_t place(const struct crowd_side *side, uint32_t other, enum crowd_kind kind, uint64_t number)
{
    return (((uint64_t)other * CROWD_KINDS + kind) * CROWD_SLOTS + number % CROWD_SLOTS) * side->stride_bytes;
}

/* ---- what is in a put ---- */

/* The first eight bytes: when it was sent, and a check that depends on everything that tells it from others. */
static uint64_t make_word(uint64_t stamp_ns, uint32_t from, uint32_t to, enum crowd_kind kind, uint64_t number)
{
    uint64_t names = (uint64_t)from << 48 | (uint64_t)to << 40 | (uint64_t)kind << 32;
    uint64_t check = cw_random_derive(stamp_ns ^ names, number);
    return stamp_ns | check << STAMP_BITS;
}

static void fill(uint8_t *data, uint64_t bytes, uint64_t word)
{
    memcpy(data, &word, sizeof(word));
    for (uint64_t i = sizeof(word); i < bytes; i++) {
        data[i] = (uint8_t)(word + i);
    }
}

static bool intact(const uint8_t *data, uint64_t bytes, uint64_t word)
{
    for (uint64_t i = sizeof(word); i < bytes; i++) {
        if (data[i] != (uint8_t)(word + i)) {
            return false;
        }
    }
    return true;
}

/* ---- sending ---- */

static uint64_t context_of(uint32_t other, enum crowd_kind kind, uint64_t number)
{
    return (uint64_t)other << 16 | (uint64_t)kind << 8 | number % CROWD_SLOTS;
}

/* Posts a put. False: there is no room yet, or it failed. */
static bool post(struct crowd_side *side, uint32_t to, enum crowd_kind kind)
{
    struct crowd_peer *peer = &side->peers[to];
    uint64_t number = peer->sent[kind];
    uint64_t at = place(side, to, kind, number);
    uint32_t bit = 1u << number % CROWD_SLOTS;
    if ((peer->busy[kind] & bit) != 0) {
        side->retry = true;
        return false;
    }
    uint64_t bytes = side->settings->size_bytes;
    bool signal = bytes > CW_INLINE_MAX; /* a shorter source is free at once */
    uint64_t stamp_ns = bench_member_clock_ns() - side->start_ns;
    fill(side->sources + at, bytes, make_word(stamp_ns, side->member->index, to, kind, number));
    struct cw_put put = {
        .peer = side->member->peers[to],
        .lane_tag = cw_lane_tag((uint32_t)LANE_FIRST + kind, (uint32_t)number),
        .region = side->member->tokens[to],
        .offset = place(side, side->member->index, kind, number),
        .source = {.kind = CW_SOURCE_CONTIGUOUS, .contiguous = {.data = side->sources + at, .bytes = bytes}},
        .context = context_of(to, kind, number),
        .flags = signal ? (uint32_t)CW_SIGNAL : 0,
    };
    int status = cw_loop_put(side->member->loop, &put);
    if (status != CW_OK) {
        side->retry = status == CW_ERROR_AGAIN;
        side->failure = side->retry ? NULL : cw_status_text(status);
        return false;
    }
    peer->sent[kind]++;
    peer->busy[kind] |= signal ? bit : 0;
    return true;
}

static void answer_all(struct crowd_side *side)
{
    for (uint32_t i = 0; i < side->member->count && side->due > 0; i++) {
        while (side->peers[i].due > 0 && post(side, i, CROWD_ANSWER)) {
            side->peers[i].due--;
            side->due--;
        }
    }
}

static void ask(struct crowd_side *side)
{
    const struct bench_member *member = side->member;
    uint32_t other = (uint32_t)cw_random_below(&side->random, member->count - 1);
    other += other >= member->index;
    side->asked = post(side, other, CROWD_QUESTION);
}

/* ---- receiving ---- */

/* Reads the put of an event out of the region; NULL if it is what was sent, else what is wrong with it. */
static const char *check_put(struct crowd_side *side, const struct cw_event *event, uint64_t now_ns)
{
    const struct bench_member *member = side->member;
    uint32_t lane = cw_lane(event->lane_tag) - LANE_FIRST;
    if (event->peer >= BENCH_GROUP_MEMBERS_MAX || lane >= CROWD_KINDS || event->region != member->token) {
        return "a notification names a peer, a lane or a region that nobody uses";
    }
    enum crowd_kind kind = (enum crowd_kind)lane;
    uint32_t from = member->members[event->peer];
    struct crowd_peer *peer = &side->peers[from];
    uint64_t number = peer->received[kind];
    if (cw_tag(event->lane_tag) != (number & ((1u << CW_TAG_BITS) - 1))) {
        return "a notification came twice, or out of the order of its lane";
    }
    if (event->offset != place(side, from, kind, number) || event->bytes != side->settings->size_bytes) {
        return "a notification has another place or size than its put";
    }
    uint64_t word;
    memcpy(&word, member->region + event->offset, sizeof(word));
    uint64_t stamp_ns = word & ((1ull << STAMP_BITS) - 1);
    if (word != make_word(stamp_ns, from, member->index, kind, number) ||
        !intact(member->region + event->offset, event->bytes, word)) {
        return "the bytes of a put are not those that were sent";
    }
    if (stamp_ns > now_ns) {
        return "a put seems to have arrived before it was sent";
    }
    uint64_t duration_ns = side->settings->duration_ns;
    if (stamp_ns >= duration_ns / CROWD_WARMUP_SHARE && stamp_ns < duration_ns) {
        bench_histogram_add(&side->result->latency, now_ns - stamp_ns);
    }
    peer->received[kind]++;
    return NULL;
}

static void take_put(struct crowd_side *side, const struct cw_event *event, uint64_t now_ns)
{
    side->failure = check_put(side, event, now_ns);
    if (side->failure != NULL) {
        return;
    }
    if (cw_lane(event->lane_tag) - LANE_FIRST == CROWD_QUESTION) {
        side->peers[side->member->members[event->peer]].due++;
        side->due++;
    } else {
        side->asked = false;
        side->next_ns = now_ns + side->settings->gap_ns;
    }
}

static void take_event(struct crowd_side *side, const struct cw_event *event, uint64_t now_ns)
{
    if (event->kind == CW_EVENT_PUT) {
        take_put(side, event, now_ns);
    } else if (event->status < 0 && event->status != CW_ERROR_PEER_RESTARTED) {
        /* whoever leaves has seen that all are done */
        bool leaving = bench_member_all(side->member, BENCH_STEP_TRAFFIC);
        side->failure = leaving ? NULL : cw_status_text(event->status);
    } else if (event->kind == CW_EVENT_COMPLETE) {
        side->peers[event->context >> 16].busy[event->context >> 8 & 0xff] &= ~(1u << (event->context & 0xff));
    }
}

/* ---- one process ---- */

static int run_counters(struct cw_endpoint *endpoint, void *context)
{
    struct crowd_result *result = context;
    result->data_packets = cw_endpoint_counter(endpoint, CW_COUNTER_DATA_OUT);
    result->retransmitted = cw_endpoint_counter(endpoint, CW_COUNTER_RETRANSMITTED);
    result->duplicates = cw_endpoint_counter(endpoint, CW_COUNTER_DROP_DUPLICATE);
    result->probes = cw_endpoint_counter(endpoint, CW_COUNTER_PROBES_OUT);
    result->acknowledgements = cw_endpoint_counter(endpoint, CW_COUNTER_ACKNOWLEDGEMENTS_OUT);
    return CW_OK;
}

/* Posts what is to be posted; returns how long to wait for events then. */
static uint64_t act(struct crowd_side *side)
{
    struct bench_member *member = side->member;
    if (side->start_ns == 0 && bench_member_all(member, BENCH_STEP_CONNECTED)) {
        side->start_ns = bench_member_start_ns(member, BENCH_STEP_CONNECTED);
        side->next_ns = 0;
        side->cpu_start_ns = bench_member_cpu_ns();
    }
    if (side->start_ns == 0) {
        return RETRY_NS;
    }
    side->retry = false;
    answer_all(side);
    uint64_t now_ns = bench_member_clock_ns() - side->start_ns;
    bool over = now_ns >= side->settings->duration_ns;
    if (!over && !side->asked && now_ns >= side->next_ns && side->failure == NULL) {
        ask(side);
    }
    if (over && !side->done && !side->asked && side->due == 0) {
        side->done = true;
        side->result->elapsed_ns = now_ns;
        side->result->cpu_ns = bench_member_cpu_ns() - side->cpu_start_ns;
        bench_member_reach(member, BENCH_STEP_TRAFFIC);
    }
    if (side->retry) {
        return RETRY_NS;
    }
    bool waits = !over && !side->asked && side->next_ns > now_ns;
    return waits && side->next_ns - now_ns < LOOK_NS ? side->next_ns - now_ns : LOOK_NS;
}

static void converse(struct crowd_side *side)
{
    struct cw_event events[EVENTS];
    while (side->failure == NULL && !(side->done && bench_member_all(side->member, BENCH_STEP_TRAFFIC))) {
        uint64_t timeout_ns = act(side);
        if (side->failure != NULL) {
            return;
        }
        uint32_t count = cw_loop_wait(side->member->loop, events, EVENTS, timeout_ns);
        if (count > 0 && side->start_ns == 0) {
            (void)act(side); /* others have seen before us that all are connected */
        }
        uint64_t now_ns = bench_member_clock_ns() - side->start_ns;
        for (uint32_t i = 0; i < count && side->failure == NULL; i++) {
            take_event(side, &events[i], now_ns);
        }
    }
}

int crowd_run(struct bench_member *member)
{
    struct crowd_side *side = calloc(1, sizeof(*side));
    uint8_t *sources = calloc(1, crowd_region_bytes(member->settings, member->count));
    uint64_t seed;
    if (side == NULL || sources == NULL || getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed)) {
        free(side);
        free(sources);
        return bench_member_fail(member, CW_ERROR_MEMORY, "no room for the puts");
    }
    side->member = member;
    side->settings = member->settings;
    side->result = member->result;
    side->sources = sources;
    side->stride_bytes = stride_bytes(side->settings);
    cw_random_seed(&side->random, seed);
    converse(side);
    int code = APP_EXIT_SUCCESS;
    if (side->failure != NULL) {
        char where[64];
        snprintf(where, sizeof(where), "process %u", member->index);
        app_error(side->failure, where, "the run is over; try it again");
        code = APP_EXIT_FAILURE;
    } else {
        struct cw_loop_counters counters = cw_loop_counters(member->loop);
        side->result->sleeps = counters.sleeps;
        side->result->fallback_turns = counters.fallback_turns;
        (void)cw_loop_call(member->loop, run_counters, side->result);
        for (uint32_t i = 0; i < member->count; i++) {
            memcpy(side->result->sent[i], side->peers[i].sent, sizeof(side->peers[i].sent));
            memcpy(side->result->received[i], side->peers[i].received, sizeof(side->peers[i].received));
        }
        bench_member_reach(member, BENCH_STEP_LEAVE);
    }
    free(sources);
    free(side);
    return code;
}
