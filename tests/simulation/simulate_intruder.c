/* An attacker between two peers of a sealed session, with full control of packets but without a key: none of the
 * attacks reaches memory, and all are counted. And an attacker with the key of another job. */
#include "tests/simulation/attack.h"
#include "tests/simulation/fixture.h"

#include "dataplane/flow/transmit.h"
#include "dataplane/staging/stage.h"

enum { SENDER = MADMAN, FRAMES_MAX = 4000 };

static struct {
    struct cw_endpoint *target;
    struct recording recording; /* of frames that have left */
} world;

static void world_open(enum cw_encryption encryption)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.memory_bytes = 1 << 16;
    config.endpoint.encryption = encryption;
    config.endpoint.failure_timeout_ns = 3000 * SIMULATION_MS;
    memset(&world, 0, sizeof(world));
    hosts_make(&config);
    world.target = hosts.list[TARGET].endpoint;
    world.recording.kind = CW_SIMULATOR_DEPARTURE;
    recording_begin(&world.recording, &hosts, FRAMES_MAX);
}

static void world_close(void)
{
    free(world.recording.frames);
}

/* Puts one way, messages and gets the other; all of it comes through. */
static void converse(void)
{
    (void)sim_stream_send(&hosts, SENDER, TARGET, 3000, 40, 1000 * SIMULATION_MS);
    assert_completed(SENDER, 40);
    messages_and_gets(TARGET, SENDER, 5);
}

/* ---- what an attack may not change ---- */

/* All that the target knows of its peer and the memory it has given it. */
struct standing {
    struct cw_session session;
    struct cw_receiver receiver;
    struct cw_sender sender;
    struct cw_round_trip round_trip;
    struct cw_congestion congestion;
    struct cw_timers timers;
    uint64_t puts, messages, events;
    uint8_t state;
    uint8_t memory[1 << 16];
};

static void stand(struct standing *standing)
{
    const struct cw_flow *flow = cw_endpoint_flow(world.target, 0);
    const struct sim_host *host = &hosts.list[TARGET];
    memset(standing, 0, sizeof(*standing));
    standing->session = flow->session;
    standing->receiver = flow->receiver;
    standing->sender = flow->sender;
    standing->round_trip = flow->round_trip;
    standing->congestion = flow->congestion;
    standing->timers = flow->timers;
    standing->puts = counted(TARGET, CW_COUNTER_PUTS_ARRIVED);
    standing->messages = host->arrived_messages;
    standing->events = cw_events_count(&world.target->events);
    standing->state = flow->state;
    memcpy(standing->memory, host->memory, host->memory_bytes);
}

/* Has the target take a frame; true if it was refused, and counted, and nothing else has changed. */
static bool is_rejected(const uint8_t *bytes, uint32_t length)
{
    static struct standing before, after;
    struct burst burst = {.count = 0};
    stand(&before);
    uint64_t refused = rejected_count(world.target);
    burst_add(&burst, bytes, length);
    burst_let_in(&burst, world.target);
    stand(&after);
    return rejected_count(world.target) == refused + 1 && memcmp(&before, &after, sizeof(before)) == 0 &&
           world.target->staged_count == 0;
}

/* ---- the attacks ---- */

/* Packets of all types that the target has not got yet. */
static uint32_t catch_fresh(struct frame **caught)
{
    struct sim_host *sender = &hosts.list[SENDER];
    uint32_t first = world.recording.count;
    uint32_t peer = sim_hosts_peer(&hosts, SENDER, TARGET);
    struct cw_flow *flow = cw_endpoint_flow(sender->endpoint, peer);
    cw_simulator_partition(hosts.simulator, TARGET, true);
    for (uint32_t i = 0; i < 2; i++) {
        struct cw_put put = {.peer = peer,
                             .region = hosts.list[TARGET].token,
                             .offset = 100 * i,
                             .source = {.contiguous = {.data = sender->memory + 5000, .bytes = 60 + 200 * i}},
                             .flags = CW_ALONE};
        memset(sender->memory + 5000, 0xee, 1000);
        assert_int_equal(cw_put(sender->endpoint, &put), CW_OK);
    }
    for (enum cw_wire_type type = CW_WIRE_ACK; type <= CW_WIRE_BYE; type++) {
        uint32_t bytes = type == CW_WIRE_ACK || type == CW_WIRE_REJECT ? 16 : 0;
        uint8_t *payload = cw_transmit_control(sender->endpoint, flow, type, bytes);
        assert_non_null(payload);
        memset(payload, 0, bytes);
        cw_transmit_control_finish(sender->endpoint, flow, bytes);
    }
    (void)cw_flush(sender->endpoint);
    *caught = &world.recording.frames[first];
    assert_true(world.recording.count - first >= 6);
    return world.recording.count - first;
}

/* A world in which both have talked, and frames of it that have not come yet. */
static uint32_t world_overheard(struct frame **caught)
{
    world_open(CW_ENCRYPTION_REQUIRED);
    converse();
    return catch_fresh(caught);
}

static void not_a_bit_can_be_altered(void **state)
{
    struct frame *caught;
    uint32_t count = world_overheard(&caught);
    uint32_t types = 0;
    for (uint32_t i = 0; i < count; i++) {
        types |= 1u << header_of(caught[i].bytes)->type;
        for (uint32_t bit = CW_WIRE_NETWORK_BYTES * 8; bit < caught[i].length * 8; bit++) {
            struct frame altered = caught[i];
            altered.bytes[bit / 8] ^= (uint8_t)(1u << (bit % 8));
            assert_true_msg(is_rejected(altered.bytes, altered.length), "type %u, bit %u of byte %u",
                            header_of(caught[i].bytes)->type, bit % 8, bit / 8);
        }
    }
    assert_int_equal(types, 1u << CW_WIRE_DATA | 1u << CW_WIRE_ACK | 1u << CW_WIRE_PROBE | 1u << CW_WIRE_REJECT |
                                1u << CW_WIRE_BYE);
    assert_true(counted(TARGET, CW_COUNTER_DROP_SEAL) > 1000);
    /* as they were they are let in */
    uint64_t arrived = counted(TARGET, CW_COUNTER_PUTS_ARRIVED);
    for (uint32_t i = 0; i < count; i++) {
        frame_let_in(world.target, caught[i].bytes, caught[i].length);
    }
    assert_int_equal(counted(TARGET, CW_COUNTER_PUTS_ARRIVED), arrived + 2);
    assert_int_equal(hosts.list[TARGET].memory[100 + 259], 0xee);
    assert_int_equal(cw_endpoint_flow(world.target, 0)->state, CW_PEER_CLOSED); /* the last one said goodbye */
    world_close();
}

/* Shorter, longer, and with the lengths outside that go with it. */
static void nothing_can_be_cut_off_or_added(void **state)
{
    struct frame *caught;
    uint32_t count = world_overheard(&caught);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t length = 0; length < caught[i].length + 64; length++) {
            struct frame altered = caught[i];
            if (length == altered.length) {
                continue;
            }
            if (length < altered.length) {
                assert_true(is_rejected(altered.bytes, length));
            }
            if (length >= CW_WIRE_OVERHEAD_BYTES) {
                network_write(altered.bytes, world.target, MADMAN_IPV4, length - CW_WIRE_OVERHEAD_BYTES);
                assert_true(is_rejected(altered.bytes, length));
            }
        }
    }
    world_close();
}

/* A put of eight bytes as the peer's next packet. */
static struct cw_wire_header next_put(uint8_t *frame)
{
    const struct cw_flow *flow = cw_endpoint_flow(world.target, 0);
    struct cw_wire_put put = {.frame = {.kind = CW_FRAME_PUT, .length = 8}, .token = hosts.list[TARGET].token};
    put.frame.put_number = (uint32_t)flow->receiver.puts.base;
    memset(frame, 0x66, FRAME_BYTES);
    memcpy(frame + CW_WIRE_OVERHEAD_BYTES, &put, sizeof(put));
    return header_next(flow, sizeof(put) + 8);
}

static void seal_as(const uint8_t *job_key, uint64_t count, uint8_t *frame)
{
    struct cw_wire_header header = next_put(frame);
    (void)packet_seal(frame, world.target, cw_endpoint_flow(world.target, 0), &header, header.payload_bytes, count,
                      job_key);
}

/* Whether a put that is signed by this key is refused. */
static bool is_put_rejected(const struct cw_wire_key *key, uint32_t number)
{
    uint8_t frame[FRAME_BYTES];
    struct cw_wire_header header = next_put(frame);
    header.number = number != 0 ? number : header.number;
    return is_rejected(frame, packet_sign(frame, world.target, &header, 0, header.payload_bytes, key));
}

static void another_jobs_key_opens_nothing(void **state)
{
    uint8_t frame[FRAME_BYTES], other[16];
    world_open(CW_ENCRYPTION_REQUIRED);
    converse();
    const uint8_t *own = world.target->config.job_key;
    const uint32_t length = CW_WIRE_OVERHEAD_BYTES + sizeof(struct cw_wire_put) + 8 + CW_WIRE_MAC_BYTES;
    memcpy(other, own, sizeof(other));
    uint64_t dropped = counted(TARGET, CW_COUNTER_DROP_SEAL);
    for (uint32_t bit = 0; bit < 128; bit++) {
        other[bit / 8] ^= (uint8_t)(1u << (bit % 8));
        seal_as(other, 1000000, frame);
        assert_true(is_rejected(frame, length));
        other[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    assert_int_equal(counted(TARGET, CW_COUNTER_DROP_SEAL), dropped + 128);
    seal_as(own, CW_SEAL_COUNT_MAX, frame); /* the right key, and a count that no sender gives */
    assert_true(is_rejected(frame, length));
    seal_as(own, 1000000, frame); /* which shows that nothing else was wrong with them */
    assert_false(is_rejected(frame, length));
    assert_int_equal(hosts.list[TARGET].memory[7], 0x66);
    /* a set-up packet of another job */
    struct cw_wire_sealed_setup setup = {.type = CW_WIRE_HELLO};
    uint8_t key[CW_WIRE_SETUP_KEY_BYTES];
    other[0] ^= 1;
    cw_wire_setup_derive(key, other);
    assert_true(is_rejected(frame, setup_seal(frame, world.target, &setup, key)));
    world_close();
}

/* Ordinary packets that are signed as well as can be, by the job's key even, as an intruder may have recorded them when
 * the peer was not told yet. */
static void nobody_is_talked_out_of_it(void **state)
{
    uint8_t frame[FRAME_BYTES];
    world_open(CW_ENCRYPTION_ASKED);
    uint32_t peer = sim_hosts_peer(&hosts, SENDER, TARGET);
    assert_int_equal(cw_peer_encrypt(hosts.list[SENDER].endpoint, peer, true), CW_OK); /* the target is not told */
    converse();
    const struct cw_flow *flow = cw_endpoint_flow(world.target, 0);
    const struct cw_endpoint_config *config = &world.target->config;
    struct cw_wire_key keys[3] = {{{0}}};
    memcpy(keys[1].bytes, config->job_key, 16);
    cw_wire_key_derive(&keys[2], config->job_key, flow->session.peer, flow->session.local);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(is_put_rejected(&keys[i], 0));
    }
    for (enum cw_wire_type type = CW_WIRE_HELLO; type <= CW_WIRE_HELLO_REPLY; type++) {
        struct cw_wire_hello hello = hello_next(world.target, 99, flow->session.local);
        struct cw_wire_header header = {
            .version = CW_WIRE_VERSION, .type = (uint8_t)type, .payload_bytes = sizeof(hello)};
        memcpy(frame + CW_WIRE_OVERHEAD_BYTES, &hello, sizeof(hello));
        uint64_t dropped = counted(TARGET, CW_COUNTER_DROP_SEAL);
        assert_true(is_rejected(frame, packet_sign(frame, world.target, &header, 0, sizeof(hello), &keys[1])));
        assert_int_equal(counted(TARGET, CW_COUNTER_DROP_SEAL), dropped + 1);
    }
    world_close();
}

/* A peer that requests a sealed session gets no other, not even from an attacker with the keys of an unsealed one. */
static void asking_for_it_opens_no_other_door(void **state)
{
    world_open(CW_ENCRYPTION_ASKED);
    struct sim_host *sender = &hosts.list[SENDER];
    uint32_t peer = sim_hosts_peer(&hosts, SENDER, TARGET);
    assert_int_equal(cw_peer_encrypt(sender->endpoint, peer, true), CW_OK);
    assert_int_equal(cw_peer_connect(sender->endpoint, peer), CW_OK);
    cw_simulator_partition(hosts.simulator, SENDER, true);
    frame_let_in(world.target, world.recording.frames[0].bytes, world.recording.frames[0].length);
    (void)cw_flush(world.target);
    const struct cw_flow *flow = cw_endpoint_flow(world.target, 0);
    uint64_t asking = cw_endpoint_flow(sender->endpoint, peer)->session.next;
    assert_true(asking != 0 && flow->session.next != 0);
    struct cw_wire_key keys[2] = {{{0}}};
    cw_wire_key_derive(&keys[1], world.target->config.job_key, asking, flow->session.next);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(is_put_rejected(&keys[i], (uint32_t)(asking >> 7)));
    }
    world_close();
}

/* Late, in any order: each packet that was held back is taken once. */
static void held_back_packets_are_accepted_once(void **state)
{
    struct frame *caught;
    uint32_t count = world_overheard(&caught) - 1; /* without the goodbye */
    uint64_t arrived = counted(TARGET, CW_COUNTER_PUTS_ARRIVED);
    uint64_t highest = cw_endpoint_flow(world.target, 0)->receiver.control_end;
    for (uint32_t i = count; i-- > 0;) {
        struct frame copy = caught[i];
        frame_let_in(world.target, copy.bytes, copy.length);
        (void)cw_flush(world.target);
        assert_true(is_rejected(caught[i].bytes, caught[i].length));
    }
    assert_int_equal(counted(TARGET, CW_COUNTER_PUTS_ARRIVED), arrived + 2);
    assert_true(cw_endpoint_flow(world.target, 0)->receiver.control_end > highest);
    world_close();
}

int main(void)
{
    return HOSTS_TESTS_RUN(not_a_bit_can_be_altered, nothing_can_be_cut_off_or_added, another_jobs_key_opens_nothing,
                           nobody_is_talked_out_of_it, asking_for_it_opens_no_other_door,
                           held_back_packets_are_accepted_once);
}
