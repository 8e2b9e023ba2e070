/* Runs (flow/run.h) change nothing but time: of two worlds with the same seed and work, one sends and receives every
 * packet individually. Both must have the same frames, counters and memory. */
#include "tests/simulation/attack.h"

#include "dataplane/base/random.h"
#include "dataplane/state/endpoint.h"

/* ---- whole worlds with faults: the same frames at the same times ---- */

enum { PUTS = 40, LONGEST = 1 << 16, MEMORY_BYTES = PUTS * LONGEST };

/* All frames that any host has sent and got. */
struct seen {
    uint64_t digest;
    uint64_t frames;
};

static void digest(struct seen *seen, const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        seen->digest = (seen->digest ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    }
}

static void see(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node, const uint8_t *frame,
                uint32_t length)
{
    struct seen *seen = context;
    const uint64_t about[3] = {kind, time_ns, node};
    digest(seen, about, sizeof(about));
    digest(seen, frame, length);
    seen->frames++;
}

struct work {
    struct cw_random random;
    uint32_t left;
};

/* Long puts both ways, and short ones and messages between them. Each put has a place of its own: builds with
 * debug_overlap refuse others. */
static void post(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct work *work = context;
    for (; work->left > 0 && cw_random_below(&work->random, 4) > 0; work->left--) {
        bool is_long = cw_random_below(&work->random, 3) > 0;
        uint64_t bytes = cw_random_below(&work->random, is_long ? LONGEST - 64 : 3000);
        uint32_t peer = sim_hosts_peer(host->hosts, host->node, 1 - host->node);
        struct cw_source source = {.region = host->token, .contiguous = {.data = host->memory, .bytes = bytes}};
        struct cw_put put = {.peer = peer,
                             .lane_tag = cw_lane_tag((uint32_t)cw_random_below(&work->random, 3), 0),
                             .region = host->hosts->list[1 - host->node].token,
                             .offset = (work->left - 1) * (uint64_t)LONGEST + cw_random_below(&work->random, 64),
                             .source = source,
                             .flags = CW_SIGNAL};
        struct cw_message message = {.peer = peer, .source = source};
        message.source.contiguous.bytes = bytes % 900;
        if (is_long || bytes % 2 == 0) {
            int status = cw_put(host->endpoint, &put);
            assert_true(status == CW_OK || status == CW_ERROR_AGAIN);
        } else {
            (void)cw_message_send(host->endpoint, &message);
        }
    }
}

static bool has_faults(uint64_t seed)
{
    return seed % 3 != 0;
}

/* Data packets of a world. */
struct packets {
    uint64_t all, out, in; /* of them in runs */
};

/* `in_runs` false: the endpoint treats its port as one with offloads, which excludes runs, and has no other effect. */
static struct seen world_run(uint64_t seed, bool in_runs, struct packets *packets)
{
    struct sim_hosts hosts;
    struct work works[2];
    struct seen seen = {0};
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.seed = seed;
    config.memory_bytes = MEMORY_BYTES;
    config.node.gather = seed % 5 < 2;
    config.turn_ns = 20 * SIMULATION_US; /* so that packets come in bursts */
    if (seed % 7 < 3) {
        (void)cw_ip_read("fd77::1", &config.ip_first);
    }
    config.mtu_bytes = seed % 4 == 0 ? 9000 : 1500;
    if (has_faults(seed)) {
        config.node.down.loss = 0.01;
        config.node.down.reorder = 0.02;
        config.node.down.reorder_delay_max_ns = 50000;
        config.node.down.duplicate = 0.01;
        config.node.down.corrupt = seed % 2 == 0 ? 0 : 0.01;
    }
    simulation_hosts(&hosts, &config);
    cw_simulator_tap_set(hosts.simulator, see, &seen);
    for (uint32_t i = 0; i < 2; i++) {
        cw_random_seed(&works[i].random, seed + i);
        cw_random_fill(&works[i].random, hosts.list[i].memory, MEMORY_BYTES);
        works[i].left = PUTS;
        hosts.list[i].endpoint->port->info.medium = seed % 2 == 0 ? 7 : 0;
        hosts.list[i].endpoint->offloads_out = !in_runs;
        hosts.list[i].endpoint->offloads_in = !in_runs;
        sim_host_begin(&hosts.list[i], post, &works[i]);
    }
    for (uint32_t turn = 0; turn < 40; turn++) {
        sim_hosts_run(&hosts, 10 * SIMULATION_MS);
        sim_host_wake(&hosts.list[turn % 2]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct cw_ip ip = sim_hosts_ip(&config, 1 - i);
        struct cw_flow *flow = cw_flow_find(hosts.list[i].endpoint, &ip, CW_UDP_PORT);
        assert_non_null(flow);
        assert_int_equal(works[i].left, 0);
        assert_true(has_faults(seed) || hosts.list[i].failed == 0);
        assert_int_equal(flow->sender.open_count, 0);
        assert_int_equal(flow->sender.in_flight_bytes, 0);
        assert_true(flow->sender.sent.base == flow->sender.sent.next);
        digest(&seen, &flow->congestion, sizeof(flow->congestion));
        digest(&seen, &flow->sender.short_run, sizeof(flow->sender.short_run));
        uint64_t *counters = hosts.list[i].endpoint->counters;
        packets->out += counters[CW_COUNTER_RUN_OUT];
        packets->in += counters[CW_COUNTER_RUN_IN];
        packets->all += counters[CW_COUNTER_DATA_OUT];
        counters[CW_COUNTER_RUN_OUT] = counters[CW_COUNTER_RUN_IN] = 0; /* the one thing that differs */
        digest(&seen, hosts.list[i].memory, MEMORY_BYTES);
        digest(&seen, counters, sizeof(hosts.list[i].endpoint->counters));
    }
    sim_hosts_destroy(&hosts);
    return seen;
}

static void frames_are_the_same_in_runs_and_one_by_one(void **state)
{
    enum { SEEDS = 40 };
    struct packets packets = {0}, single = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct seen runs = world_run(seed, true, &packets), alone = world_run(seed, false, &single);
        assert_true_msg(runs.digest == alone.digest && runs.frames == alone.frames,
                        "seed %lu: %lu frames in runs, %lu one by one, or others", (unsigned long)seed,
                        (unsigned long)runs.frames, (unsigned long)alone.frames);
    }
    print_message("%lu data packets, %lu left and %lu came in runs\n", (unsigned long)packets.all,
                  (unsigned long)packets.out, (unsigned long)packets.in);
    assert_int_equal(single.out + single.in, 0);
    assert_true(packets.out > packets.all / 2 && packets.in > packets.all / 8 && packets.all > SEEDS * 1000);
}

/* ---- packets that a peer makes up: a burst at once, or one after the other ---- */

enum { PART_DATA = 512, PARTS = 24, FRAME_MAX = CW_WIRE_OVERHEAD_BYTES + 2 * sizeof(struct cw_wire_part) + PART_DATA };

struct target {
    struct sim_hosts hosts;
    struct cw_endpoint *endpoint;
    struct cw_flow *flow; /* towards the madman */
};

/* Where the madman continues. */
struct story {
    struct cw_random random;
    uint64_t number; /* of the next packet */
    uint64_t put_number;
    uint64_t position;
    uint32_t acknowledged; /* packets of the target's, from here on */
};

static void target_open(struct target *target, uint64_t seed)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.seed = seed;
    config.memory_bytes = 1 << 16;
    config.endpoint.reassembly_count_max = 64;
    simulation_hosts(&target->hosts, &config);
    (void)sim_stream_send(&target->hosts, MADMAN, TARGET, 32, 20, 1000 * SIMULATION_MS);
    target->endpoint = target->hosts.list[TARGET].endpoint;
    target->flow = flow_from(target->endpoint, MADMAN_IPV4);
    assert_non_null(target->flow);
    target->flow->session.kept = seed % 2 == 0;
}

/* A packet as it should be. */
struct forged {
    struct cw_wire_header header;
    uint64_t number;
    struct cw_wire_part part;
    uint32_t data_bytes;
    uint32_t covered; /* 0: all */
};

/* The errors of its put, by numbers 5 to 16. */
static void put_alter(struct cw_wire_put *put, uint32_t what, struct cw_random *random, const struct target *target)
{
    switch (what) {
    case 5:
        put->token ^= 1;
        break;
    case 6:
        put->token = target->endpoint->messages.region->token;
        break;
    case 7:
        put->offset += 64;
        break;
    case 8:
        put->offset = UINT64_MAX - 64;
        break;
    case 9:
        put->lane_tag++;
        break;
    case 10:
        put->predecessor = 1;
        break;
    case 11:
        put->reply = 1;
        break;
    case 12:
        put->frame.put_number++;
        break;
    case 13:
        put->frame.length = PART_DATA / 2;
        break;
    case 14:
        put->frame.length = PART_DATA + 8;
        break;
    case 15:
        put->frame.kind = (uint8_t)cw_random_below(random, 16);
        break;
    default:
        put->frame.flags = 1;
        break;
    }
}

/* Everything that could make a packet another than the one before it, or wrong. */
static void forged_alter(struct forged *forged, struct cw_random *random, const struct target *target)
{
    uint32_t what = (uint32_t)cw_random_below(random, 24);
    switch (what) {
    case 0:
        forged->number++;
        break;
    case 1:
        forged->number--;
        break;
    case 2:
        forged->part.position = forged->part.total - PART_DATA + 8;
        break;
    case 3:
        forged->part.position = UINT64_MAX - 7;
        break;
    case 4:
        forged->part.total += 8;
        break;
    case 17:
        forged->header.flags ^= CW_WIRE_ACK_NOW;
        break;
    case 18:
        forged->header.flags ^= CW_WIRE_KEPT;
        break;
    case 19:
        forged->header.timestamp += (uint32_t)cw_random_below(random, 5) - 2;
        break;
    case 20:
        forged->header.acknowledged += (uint32_t)cw_random_below(random, 9) - 4;
        break;
    case 21:
        forged->header.echo -= (uint32_t)cw_random_below(random, 100);
        break;
    case 22:
        forged->data_bytes = PART_DATA / 2;
        break;
    case 23:
        forged->part.position = 8 * cw_random_below(random, PARTS * PART_DATA / 8);
        break;
    default:
        put_alter(&forged->part.put, what, random, target);
        break;
    }
}

/* The next packet of the story, in `frame`; its length. */
static uint32_t packet_make(const struct target *target, struct story *story, uint8_t *frame)
{
    const struct cw_flow *flow = target->flow;
    struct forged forged = {
        .number = story->number,
        .data_bytes = PART_DATA,
        .part =
            {.put = {.frame = {.kind = CW_FRAME_PART, .length = PART_DATA, .put_number = (uint32_t)story->put_number},
                     .token = target->hosts.list[TARGET].token,
                     .offset = 4096},
             .position = story->position,
             .total = PARTS * PART_DATA},
        .header = header_next(flow, 0),
    };
    forged.header.flags = flow->session.kept ? CW_WIRE_KEPT : 0;
    forged.header.echo = flow->receiver.echo;
    forged.header.timestamp = flow->receiver.echo + 1;
    uint32_t fate = (uint32_t)cw_random_below(&story->random, 20);
    bool is_copy = fate < 2 && story->position >= PART_DATA;
    story->acknowledged += is_copy || fate == 19;
    forged.header.acknowledged += story->acknowledged;
    if (is_copy) { /* of the previous packet, perhaps with an error; the next packet continues behind it */
        forged.number--;
        forged.part.position -= PART_DATA;
        forged.header.flags ^= fate == 0 ? CW_WIRE_KEPT : 0;
    } else if (fate < 4) {
        forged_alter(&forged, &story->random, target);
    } else {
        story->position += PART_DATA;
        story->number++;
        if (story->position == forged.part.total) {
            story->position = 0;
            story->put_number++;
        }
    }
    uint8_t *payload = frame + CW_WIRE_OVERHEAD_BYTES;
    uint32_t bytes = (uint32_t)sizeof(forged.part) + forged.data_bytes;
    memcpy(payload, &forged.part, sizeof(forged.part));
    cw_random_fill(&story->random, payload + sizeof(forged.part), forged.data_bytes);
    bool is_kept = (forged.header.flags & CW_WIRE_KEPT) != 0;
    forged.header.number = (uint32_t)forged.number;
    forged.header.payload_bytes = (uint16_t)bytes;
    uint32_t length = packet_sign(frame, target->endpoint, &forged.header, forged.number,
                                  is_kept ? cw_wire_kept_bytes(payload[0]) : bytes, &flow->session.key_in);
    if (cw_random_below(&story->random, is_copy ? 2 : 40) == 0) { /* on its way */
        frame[CW_WIRE_NETWORK_BYTES + cw_random_below(&story->random, length - CW_WIRE_NETWORK_BYTES)] ^= 4;
    }
    return length;
}

static void targets_compare(const struct target *a, const struct target *b, uint64_t seed)
{
    const struct cw_receiver *receivers[2] = {&a->flow->receiver, &b->flow->receiver};
    bool is_same =
        receivers[0]->packets.base == receivers[1]->packets.base &&
        receivers[0]->packets.end == receivers[1]->packets.end && receivers[0]->puts.base == receivers[1]->puts.base &&
        receivers[0]->puts.end == receivers[1]->puts.end && receivers[0]->unreported == receivers[1]->unreported &&
        receivers[0]->duplicates == receivers[1]->duplicates &&
        receivers[0]->reassemblies == receivers[1]->reassemblies && receivers[0]->focus == receivers[1]->focus &&
        receivers[0]->echo == receivers[1]->echo && receivers[0]->echo_arrival_ns == receivers[1]->echo_arrival_ns &&
        receivers[0]->report_now == receivers[1]->report_now && a->flow->state == b->flow->state &&
        a->flow->timers.report_ns == b->flow->timers.report_ns &&
        a->endpoint->reassemblies.pool.used == b->endpoint->reassemblies.pool.used &&
        cw_events_count(&a->endpoint->events) == cw_events_count(&b->endpoint->events);
    for (enum cw_counter counter = 0; counter < CW_COUNTER_COUNT; counter++) {
        is_same = is_same &&
                  (counter == CW_COUNTER_RUN_IN || a->endpoint->counters[counter] == b->endpoint->counters[counter]);
    }
    is_same = is_same && memcmp(a->hosts.list[TARGET].memory, b->hosts.list[TARGET].memory, 1 << 16) == 0;
    assert_true_msg(is_same, "seed %lu: a burst does not do what its packets do one after the other",
                    (unsigned long)seed);
}

/* Has packets of the target be under way, for the madman to acknowledge. */
static void target_send(struct target *target)
{
    enum { SENT = 8 };
    struct sim_host *host = &target->hosts.list[TARGET];
    for (uint32_t i = 0; i < SENT; i++) {
        struct cw_put put = {.peer = sim_hosts_peer(&target->hosts, TARGET, MADMAN),
                             .lane_tag = cw_lane_tag(1, 0),
                             .region = target->hosts.list[MADMAN].token,
                             .offset = 8 * i,
                             .source = {.region = host->token, .contiguous = {.data = host->memory, .bytes = 8}},
                             .flags = CW_ALONE};
        assert_int_equal(cw_put(host->endpoint, &put), CW_OK);
    }
    (void)cw_endpoint_turn(host->endpoint, sim_hosts_now(&target->hosts));
}

static void bursts_do_what_their_packets_do(void **state)
{
    enum { SEEDS = 300, BURSTS = 6 };
    uint64_t arrived = 0, in_runs = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct target together, apart;
        struct story story;
        target_open(&together, seed);
        target_open(&apart, seed);
        story = (struct story){.number = together.flow->receiver.packets.base,
                               .put_number = together.flow->receiver.puts.base};
        cw_random_seed(&story.random, seed);
        for (uint32_t i = 0; i < BURSTS && together.flow->state == CW_PEER_ESTABLISHED; i++) {
            struct burst burst = {.count = 0}, alone = {.count = 0};
            target_send(&together);
            target_send(&apart);
            for (uint32_t k = 0; k < CW_BURST; k++) {
                uint8_t frame[FRAME_MAX];
                uint32_t length = packet_make(&together, &story, frame);
                burst_add(&burst, frame, length);
                burst_add(&alone, frame, length);
            }
            burst_let_in(&burst, together.endpoint);
            for (uint32_t k = 0; k < CW_BURST; k++) {
                cw_receive_frames(apart.endpoint, &alone.packets[k], 1);
                free((void *)(uintptr_t)alone.packets[k].data);
            }
            targets_compare(&together, &apart, seed);
            story.number = together.flow->receiver.packets.base; /* repeats lost packets */
            story.acknowledged = 0;
            story.put_number = together.flow->receiver.puts.base;
            for (uint32_t k = 0; k < 2; k++) {
                struct target *each = k == 0 ? &together : &apart;
                sim_host_wake(&each->hosts.list[TARGET]);
                sim_hosts_run(&each->hosts, SIMULATION_MS);
            }
            targets_compare(&together, &apart, seed);
        }
        arrived += cw_endpoint_counter(together.endpoint, CW_COUNTER_PUTS_ARRIVED);
        in_runs += cw_endpoint_counter(together.endpoint, CW_COUNTER_RUN_IN);
        sim_hosts_destroy(&together.hosts);
        sim_hosts_destroy(&apart.hosts);
    }
    assert_true(arrived > SEEDS * 20 && in_runs > SEEDS * 20);
}

int main(void)
{
    return TESTS_RUN(frames_are_the_same_in_runs_and_one_by_one, bursts_do_what_their_packets_do);
}
