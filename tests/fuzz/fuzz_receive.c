/* Hostile packets into a live endpoint: real ones of every type, changed, half of them signed again with the valid key
 * as if a peer of the job had gone mad. No crash, no store outside of what was granted; without the key none is let in,
 * and each is counted by reason. CW_TEST_PACKETS (100,000) packets. */
#include "tests/simulation/attack.h"

#include "dataplane/flow/table.h"
#include "dataplane/state/endpoint.h"

enum {
    PACKETS = 100000,
    FRAMES_MAX = 4000,
    PACKETS_A_WORLD = 400,
    GRANTED_BYTES = 16384,
    CLOSED_BYTES = 4096,
};

enum { UNSIGNED, NOISE, SIGNED, KINDS };

/* Memory around what the target grants. */
struct grounds {
    uint8_t before[GUARD_BYTES];
    uint8_t granted[GRANTED_BYTES];
    uint8_t between[GUARD_BYTES];
    uint8_t closed[CLOSED_BYTES]; /* may be read, not written */
    uint8_t gone[CLOSED_BYTES];   /* was registered once */
    uint8_t after[GUARD_BYTES];
};

struct world {
    struct sim_hosts hosts;
    struct cw_random random;
    struct recording recording; /* of what came to the target from the madman */
    struct grounds *grounds;
    uint64_t tokens[6]; /* that a packet may name */
    struct sim_stream stream;
    struct burst burst;
    uint64_t counts[KINDS]; /* of packets */
};

static uint32_t seen_types; /* bits by enum cw_wire_type, over all worlds */
static uint32_t seen_kinds; /* bits by enum cw_wire_frame_kind */

/* The kinds of frames in the payload of a well-formed data packet. */
static uint32_t frame_kinds(const uint8_t *at, uint32_t left)
{
    static const uint32_t header_bytes[] = {
        [CW_FRAME_PUT] = sizeof(struct cw_wire_put),      [CW_FRAME_PART] = sizeof(struct cw_wire_part),
        [CW_FRAME_VOID] = sizeof(struct cw_wire_frame),   [CW_FRAME_GET] = sizeof(struct cw_wire_get),
        [CW_FRAME_ASK] = sizeof(struct cw_wire_frame),    [CW_FRAME_GRANT] = sizeof(struct cw_wire_frame),
        [CW_FRAME_RECALL] = sizeof(struct cw_wire_frame), [CW_FRAME_RETURN] = sizeof(struct cw_wire_frame),
        [CW_FRAME_CHUNK] = sizeof(struct cw_wire_chunk),
    };
    uint32_t kinds = 0;
    while (left >= sizeof(struct cw_wire_frame)) {
        struct cw_wire_frame frame;
        memcpy(&frame, at, sizeof(frame));
        bool data = frame.kind == CW_FRAME_PUT || frame.kind == CW_FRAME_PART || frame.kind == CW_FRAME_CHUNK;
        bool slots = frame.kind == CW_FRAME_GRANT || frame.kind == CW_FRAME_RETURN;
        uint32_t bytes = cw_wire_pad(header_bytes[frame.kind] + (data ? frame.length : slots ? 2u * frame.length : 0));
        kinds |= 1u << frame.kind;
        bytes = bytes < left ? bytes : left;
        at += bytes;
        left -= bytes;
    }
    return kinds;
}

static bool is_from_madman(uint32_t node, const uint8_t *frame, uint32_t length)
{
    const struct cw_wire_header *header = (const struct cw_wire_header *)(frame + CW_WIRE_NETWORK_BYTES);
    (void)length;
    if (node != TARGET || frame[29] != MADMAN + 1) {
        return false;
    }
    seen_types |= 1u << header->type;
    if (header->type == CW_WIRE_DATA) {
        seen_kinds |= frame_kinds(frame + CW_WIRE_OVERHEAD_BYTES, header->payload_bytes);
    }
    return true;
}

/* ---- the world before the attack ---- */

static uint64_t grant(struct world *world, void *base, uint64_t bytes, uint32_t rights)
{
    uint64_t token;
    assert_int_equal(cw_region_register(world->hosts.list[TARGET].endpoint, base, bytes, rights, &token), CW_OK);
    return token;
}

/* A put to a closed region, so that there is a void frame too. */
static void post_refused(struct world *world, uint32_t peer)
{
    struct sim_host *madman = &world->hosts.list[MADMAN];
    for (uint32_t i = 0; i < 3; i++) {
        struct cw_put put = {.peer = peer,
                             .region = world->tokens[1],
                             .offset = 10000 * i,
                             .source = {.contiguous = {.data = madman->memory, .bytes = 100 + 2000 * i}}};
        assert_int_equal(cw_put(madman->endpoint, &put), CW_OK);
    }
}

static void world_create(struct world *world, uint64_t seed)
{
    cw_random_seed(&world->random, seed);
    three_hosts(&world->hosts, seed, CW_ENCRYPTION_OFF);
    world->recording.count = 0;
    world->recording.kind = CW_SIMULATOR_ARRIVAL;
    world->recording.wants = is_from_madman;
    struct grounds *grounds = world->grounds;
    memset(grounds, GUARD, sizeof(*grounds));
    struct sim_host *target = &world->hosts.list[TARGET];
    world->tokens[0] = grant(world, grounds->granted, GRANTED_BYTES, CW_REGION_WRITE);
    world->tokens[1] = grant(world, grounds->closed, CLOSED_BYTES, CW_REGION_READ);
    world->tokens[2] = grant(world, grounds->gone, CLOSED_BYTES, CW_REGION_WRITE | CW_REGION_READ);
    assert_int_equal(cw_region_deregister(target->endpoint, world->tokens[2]), CW_OK);
    world->tokens[3] = target->token;
    world->tokens[4] = target->endpoint->messages.region->token;
    world->tokens[5] = 0;
    if (seed % 4 == 0) { /* a chunk that is none ends the session: not in every world */
        const struct cw_compression compression = {.mode = CW_COMPRESSION_ON};
        assert_int_equal(cw_endpoint_compress(world->hosts.list[MADMAN].endpoint, &compression), CW_OK);
    }
    recording_begin(&world->recording, &world->hosts, FRAMES_MAX);
    small_talk(&world->hosts, MADMAN, TARGET);
    small_talk(&world->hosts, TARGET, MADMAN);
    sim_stream_start(&world->hosts, &world->stream, MADMAN, TARGET, 3000, UINT64_MAX);
    world->stream.under_way_max = 4;
    post_refused(world, world->stream.peer);
    cw_simulator_run_until(world->hosts.simulator, 3 * SIMULATION_MS);
}

/* ---- packets ---- */

static void change_bytes(struct world *world, uint8_t *bytes, uint32_t from, uint32_t to)
{
    uint64_t count = cw_random_between(&world->random, 1, 6);
    for (uint64_t i = 0; i < count; i++) {
        uint8_t *at = &bytes[cw_random_between(&world->random, from, to - 1)];
        switch (cw_random_below(&world->random, 4)) {
        case 0:
            *at ^= (uint8_t)(1u << cw_random_below(&world->random, 8));
            break;
        case 1:
            *at = (uint8_t)cw_random_next(&world->random);
            break;
        case 2:
            *at = 0;
            break;
        default:
            *at = 0xff;
            break;
        }
    }
}

static void inject(struct world *world, const uint8_t *bytes, uint32_t length)
{
    burst_add(&world->burst, bytes, length);
    burst_let_in(&world->burst, world->hosts.list[TARGET].endpoint);
}

/* Changed and not signed: refused, whatever was changed. */
static void attack_unsigned(struct world *world)
{
    struct cw_endpoint *endpoint = world->hosts.list[TARGET].endpoint;
    const struct frame *original = &world->recording.frames[cw_random_below(&world->random, world->recording.count)];
    struct frame changed = *original;
    uint64_t way = cw_random_below(&world->random, 10);
    if (way == 0) {
        changed.length = (uint32_t)cw_random_below(&world->random, changed.length);
    } else if (way == 1) {
        cw_random_fill(&world->random, changed.bytes + CW_WIRE_NETWORK_BYTES, changed.length - CW_WIRE_NETWORK_BYTES);
    } else {
        do {
            change_bytes(world, changed.bytes, CW_WIRE_NETWORK_BYTES, changed.length);
        } while (memcmp(changed.bytes, original->bytes, changed.length) == 0);
    }
    uint64_t before = refused_count(endpoint);
    uint64_t arrived = cw_endpoint_counter(endpoint, CW_COUNTER_PUTS_ARRIVED);
    inject(world, changed.bytes, changed.length);
    assert_int_equal(refused_count(endpoint), before + 1);
    assert_int_equal(cw_endpoint_counter(endpoint, CW_COUNTER_PUTS_ARRIVED), arrived);
}

/* Nothing but noise, or noise in the headers below ours. */
static void attack_noise(struct world *world)
{
    struct frame frame = world->recording.frames[cw_random_below(&world->random, world->recording.count)];
    if (cw_random_chance(&world->random, 0.5)) {
        frame.length = (uint32_t)cw_random_below(&world->random, 200);
        cw_random_fill(&world->random, frame.bytes, frame.length);
    } else {
        change_bytes(world, frame.bytes, 0, CW_WIRE_NETWORK_BYTES);
    }
    inject(world, frame.bytes, frame.length);
}

/* Puts something plausible into the fields that matter. */
static void change_fields(struct world *world, uint8_t *payload, uint32_t payload_bytes, uint8_t type)
{
    struct cw_random *random = &world->random;
    if (type == CW_WIRE_DATA && payload_bytes >= sizeof(struct cw_wire_put)) {
        struct cw_wire_put put;
        memcpy(&put, payload, sizeof(put));
        if (cw_random_chance(random, 0.3)) {
            put.frame.kind = (uint8_t)cw_random_between(random, CW_FRAME_PUT, CW_FRAME_CHUNK);
        }
        if (cw_random_chance(random, 0.5)) {
            put.token = world->tokens[cw_random_below(random, 6)];
        }
        if (cw_random_chance(random, 0.5)) {
            static const uint64_t offsets[] = {
                0, 1, CLOSED_BYTES - 1, GRANTED_BYTES - 100, GRANTED_BYTES, 1ull << 32, UINT64_MAX - 50, 1024};
            put.offset = offsets[cw_random_below(random, 8)];
        }
        if (cw_random_chance(random, 0.5)) {
            const struct cw_flow *flow = flow_from(world->hosts.list[TARGET].endpoint, 0x0a000001u + MADMAN);
            put.frame.put_number = (uint32_t)(flow->receiver.puts.base + cw_random_below(random, 40) - 8);
        }
        put.predecessor = cw_random_chance(random, 0.2) ? (uint16_t)cw_random_next(random) : put.predecessor;
        put.reply = cw_random_chance(random, 0.2) ? (uint16_t)cw_random_below(random, 40) : put.reply;
        memcpy(payload, &put, sizeof(put));
    }
    if (payload_bytes > 0 && cw_random_chance(random, 0.6)) {
        change_bytes(world, payload, 0, payload_bytes < 64 || cw_random_chance(random, 0.3) ? payload_bytes : 64);
    }
}

/* A data packet of frames that no sender would put together: many kinds, numbers that leap, predecessors that are not
 * there. */
static uint32_t compose(struct world *world, uint8_t *payload)
{
    struct cw_random *random = &world->random;
    const struct cw_flow *flow = flow_from(world->hosts.list[TARGET].endpoint, 0x0a000001u + MADMAN);
    uint64_t number = flow->receiver.puts.base + cw_random_below(random, 3);
    uint64_t count = cw_random_between(random, 1, 24);
    uint32_t used = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct cw_wire_get get = {
            .put = {.frame = {.kind = (uint8_t)cw_random_between(random, CW_FRAME_PUT, CW_FRAME_RETURN),
                              .put_number = (uint32_t)number},
                    .predecessor = cw_random_chance(random, 0.5) ? (uint16_t)cw_random_below(random, 30) : 0,
                    .token = world->tokens[cw_random_chance(random, 0.9) ? 3 : cw_random_below(random, 6)],
                    .offset = 8 * cw_random_below(random, 100)},
            .bytes = cw_random_below(random, 64),
        };
        struct cw_wire_part part = {.put = get.put, .position = 0, .total = 16};
        struct cw_wire_frame *frame = &get.put.frame;
        const void *from = &get;
        uint32_t bytes = sizeof(struct cw_wire_frame);
        if (frame->kind == CW_FRAME_PUT || frame->kind == CW_FRAME_GET) {
            bytes = frame->kind == CW_FRAME_PUT ? sizeof(get.put) : sizeof(get);
            get.put.reply = frame->kind == CW_FRAME_GET ? 1 : 0;
        } else if (frame->kind == CW_FRAME_PART) {
            part.put.frame.length = 8; /* what follows is its data */
            from = &part;
            bytes = sizeof(part) + 8;
        } else if (frame->kind == CW_FRAME_VOID || frame->kind == CW_FRAME_ASK) {
            frame->length = (uint16_t)cw_random_between(random, 1, 8);
        }
        uint8_t copy[sizeof(part) + 8] = {0};
        memcpy(copy, from, bytes < sizeof(get) ? bytes : frame->kind == CW_FRAME_PART ? sizeof(part) : sizeof(get));
        memcpy(payload + used, copy, bytes);
        used += bytes;
        number += cw_random_chance(random, 0.9) ? 1 : cw_random_below(random, 3 * 8192);
    }
    return used;
}

/* Changed by somebody who has the job's key: it may do what a peer may do, and no more. Kept for the next burst. */
static void attack_signed_one(struct world *world)
{
    struct cw_random *random = &world->random;
    struct cw_endpoint *endpoint = world->hosts.list[TARGET].endpoint;
    struct cw_flow *flow = flow_from(endpoint, 0x0a000001u + MADMAN);
    struct frame frame = world->recording.frames[cw_random_below(random, world->recording.count)];
    struct cw_wire_header header;
    memcpy(&header, frame.bytes + CW_WIRE_NETWORK_BYTES, sizeof(header));
    uint8_t *payload = frame.bytes + CW_WIRE_OVERHEAD_BYTES;
    bool hello = header.type == CW_WIRE_HELLO || header.type == CW_WIRE_HELLO_REPLY;
    if (cw_random_chance(random, 0.1) && !hello) {
        header.type =
            (uint8_t)cw_random_between(random, CW_WIRE_DATA, cw_random_chance(random, 0.02) ? 9 : CW_WIRE_REJECT);
    }
    bool data = header.type == CW_WIRE_DATA;
    uint64_t number =
        data ? flow->receiver.packets.base + cw_random_below(random, cw_random_chance(random, 0.05) ? 70000 : 40)
             : flow->receiver.control_end - 1 + cw_random_below(random, 3);
    if (data && cw_random_chance(random, 0.2)) {
        header.payload_bytes = (uint16_t)compose(world, payload);
        frame.length = CW_WIRE_OVERHEAD_BYTES + header.payload_bytes;
        network_write(frame.bytes, endpoint, 0x0a000001u + MADMAN, header.payload_bytes);
    } else {
        change_fields(world, payload, header.payload_bytes, header.type);
    }
    struct cw_wire_key key = flow->session.key_in;
    if (hello) {
        memcpy(key.bytes, endpoint->config.job_key, sizeof(key.bytes));
        number = 0;
    } else {
        header.flow = flow->index;
        header.number = (uint32_t)number;
        header.acknowledged =
            (uint32_t)(flow->sender.sent.base + cw_random_below(random, cw_random_chance(random, 0.05) ? 3 : 1));
        if (cw_random_chance(random, 0.05)) {
            header.acknowledged = (uint32_t)cw_random_next(random);
        }
    }
    if (header.type == CW_WIRE_ACK && cw_random_chance(random, 0.5)) {
        uint32_t from = (uint32_t)(flow->sender.sent.base + cw_random_below(random, 20) - 4);
        memcpy(payload, &from, sizeof(from));
    }
    header.echo = cw_random_chance(random, 0.1) ? (uint32_t)cw_random_next(random) : header.echo;
    header.timestamp = cw_random_chance(random, 0.1) ? (uint32_t)cw_random_next(random) : header.timestamp;
    bool only_header = data && header.payload_bytes >= CW_WIRE_KEPT_MIN && cw_random_chance(random, 0.3);
    if (only_header) { /* whether the session has the same medium or not */
        header.flags |= cw_random_chance(random, 0.7) ? CW_WIRE_KEPT : CW_WIRE_SUMMED;
        flow->session.kept = cw_random_chance(random, 0.7);
    }
    header.checksum = cw_wire_checksum(0, payload, only_header ? cw_wire_kept_bytes(*payload) : header.payload_bytes);
    header.tag = hello ? cw_wire_setup_tag(&header, (const struct cw_wire_hello *)payload, &key)
                       : cw_wire_tag(&header, (uint32_t)(number >> 32), &key);
    memcpy(frame.bytes + CW_WIRE_NETWORK_BYTES, &header, sizeof(header));
    burst_add(&world->burst, frame.bytes, frame.length);
}

/* As many packets without the key, one by one, as with it, in one burst; returns how many in all. */
static uint32_t attack(struct world *world)
{
    uint32_t count =
        cw_random_chance(&world->random, 0.7) ? 1 : (uint32_t)cw_random_between(&world->random, 2, CW_BURST);
    for (uint32_t i = 0; i < count; i++) {
        bool noise = cw_random_chance(&world->random, 0.1);
        if (noise) {
            attack_noise(world);
        } else {
            attack_unsigned(world);
        }
        world->counts[noise ? NOISE : UNSIGNED]++;
    }
    for (uint32_t i = 0; i < count; i++) {
        attack_signed_one(world);
    }
    burst_let_in(&world->burst, world->hosts.list[TARGET].endpoint);
    world->counts[SIGNED] += count;
    return 2 * count;
}

/* ---- after the attack ---- */

static void check_grounds(const struct world *world)
{
    const struct grounds *grounds = world->grounds;
    guard_check(grounds->before, GUARD_BYTES);
    guard_check(grounds->between, GUARD_BYTES);
    guard_check(grounds->after, GUARD_BYTES);
    guard_check(grounds->closed, CLOSED_BYTES);
    guard_check(grounds->gone, CLOSED_BYTES);
}

/* A world of one seed, attacked with PACKETS_A_WORLD packets or a few more. */
static void run_world(struct world *world, uint64_t seed)
{
    uint64_t injected = 0;
    world_create(world, seed);
    while (injected < PACKETS_A_WORLD) {
        injected += attack(world);
        sim_hosts_run(&world->hosts, 5 * SIMULATION_US);
    }
    check_grounds(world);
    bystander_check(&world->hosts);
    check_grounds(world);
    sim_hosts_destroy(&world->hosts);
}

static int world_allocate(void **state)
{
    struct world *world = calloc(1, sizeof(*world));
    world->grounds = calloc(1, sizeof(*world->grounds));
    *state = world;
    return 0;
}

static int world_free(void **state)
{
    struct world *world = *state;
    free(world->recording.frames);
    free(world->grounds);
    free(world);
    return 0;
}

static void hostile_packets(void **state)
{
    struct world *world = *state;
    uint64_t packets = test_count("CW_TEST_PACKETS", PACKETS);
    struct test_seeds seeds = test_seeds(1, (packets + PACKETS_A_WORLD - 1) / PACKETS_A_WORLD);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        run_world(world, seed);
    }
    printf("%llu unsigned packets, none let in; %llu of noise; %llu signed again\n",
           (unsigned long long)world->counts[UNSIGNED], (unsigned long long)world->counts[NOISE],
           (unsigned long long)world->counts[SIGNED]);
    if (seeds.is_all && packets >= PACKETS) {
        /* every type of packet, but for the goodbye, and every kind of frame was among the originals */
        assert_int_equal(seen_types & 0x7e, 0x7e);
        assert_int_equal(seen_kinds & 0x5fe, 0x5fe);
    }
}

/* 5366: requests in the names of hosts that are not there filled the table of peers. */
static void seeds_that_have_found_something(void **state)
{
    static const uint64_t seeds[] = {5366};
    for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
        run_world(*state, seeds[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(seeds_that_have_found_something, world_allocate, world_free),
        cmocka_unit_test_setup_teardown(hostile_packets, world_allocate, world_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
