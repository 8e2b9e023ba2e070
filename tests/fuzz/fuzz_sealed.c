/* Hostile packets into an endpoint with sealed sessions: sealed ones that were changed, or made up, without the key, of
 * which none is let in; and such as a peer gone mad seals with the valid key, whose content is anything. No crash, no
 * store outside of what was granted, and who did nothing wrong is served. CW_TEST_PACKETS (100,000) packets. */
#include "tests/simulation/attack.h"

#include "dataplane/crypt/aead.h"
#include "dataplane/flow/table.h"
#include "dataplane/staging/seal.h"
#include "dataplane/state/endpoint.h"
#include "dataplane/wire/sealed.h"
#include "tests/skip.h"

enum {
    PACKETS = 100000,
    FRAMES_MAX = 2000,
    PACKETS_A_WORLD = 400,
    GRANTED_BYTES = 16384,
};

struct grounds {
    uint8_t before[GUARD_BYTES];
    uint8_t granted[GRANTED_BYTES];
    uint8_t after[GUARD_BYTES];
};

struct world {
    struct sim_hosts hosts;
    struct cw_random random;
    struct frame *sealed; /* as they came from the madman */
    struct frame *plain;  /* the same opened: an ordinary header, and the payload */
    uint32_t count;
    struct grounds *grounds;
    uint64_t tokens[3];
    uint64_t sent; /* counts that the madman has used for what he makes up */
    struct burst burst;
    uint64_t outside, inside; /* packets */
};

static struct cw_flow *flow_of(const struct world *world)
{
    return flow_from(world->hosts.list[TARGET].endpoint, 0x0a000001u + MADMAN);
}

/* Seals, or opens, a whole frame under the key of the session as the target knows it. */
static bool packet_crypt(const struct world *world, enum cw_aead_direction direction, uint64_t count, uint8_t *frame,
                         uint32_t length)
{
    const struct cw_endpoint *target = world->hosts.list[TARGET].endpoint;
    const struct cw_flow *flow = flow_of(world);
    struct cw_wire_seal_key derived;
    struct cw_aead_key *key;
    struct cw_wire_sealed *header = (struct cw_wire_sealed *)(frame + CW_WIRE_NETWORK_BYTES);
    cw_wire_seal_derive(&derived, target->config.job_key, flow->session.peer, flow->session.local);
    assert_int_equal(
        cw_aead_key_create(target->aead, direction, derived.key, derived.salt, CW_WIRE_READABLE_BYTES, &key), CW_OK);
    struct cw_aead_packet packet = {.readable = (uint8_t *)header,
                                    .data = header->fields,
                                    .bytes =
                                        length - CW_WIRE_NETWORK_BYTES - CW_WIRE_READABLE_BYTES - CW_WIRE_MAC_BYTES,
                                    .count = count};
    if (direction == CW_AEAD_SEAL) {
        cw_aead_seal(key, &packet, 1);
    } else {
        cw_aead_unseal(key, &packet, 1);
    }
    cw_aead_key_destroy(key);
    return packet.good;
}

static void open_and_record(void *context, enum cw_simulator_tap_kind kind, uint64_t time_ns, uint32_t node,
                            const uint8_t *frame, uint32_t length)
{
    struct world *world = context;
    (void)time_ns;
    if (kind != CW_SIMULATOR_ARRIVAL || node != TARGET || frame[29] != MADMAN + 1 || length > FRAME_BYTES ||
        world->count == FRAMES_MAX) {
        return;
    }
    struct frame *sealed = &world->sealed[world->count];
    struct frame *plain = &world->plain[world->count];
    sealed->length = plain->length = length;
    memcpy(sealed->bytes, frame, length);
    memcpy(plain->bytes, frame, length);
    struct cw_wire_header *header = (struct cw_wire_header *)(plain->bytes + CW_WIRE_NETWORK_BYTES);
    if (header->type > CW_WIRE_HELLO_REPLY) {
        const struct cw_flow *flow = flow_of(world);
        const struct cw_wire_sealed *front = (const struct cw_wire_sealed *)header;
        if (flow == NULL || flow->state != CW_PEER_ESTABLISHED ||
            !packet_crypt(world, CW_AEAD_UNSEAL, front->count, plain->bytes, length)) {
            return; /* the first of a session, whose keys are not known yet */
        }
        assert_true(cw_wire_sealed_restore(header, cw_wire_sealed_bytes(header)));
    }
    world->count++;
}

static void world_create(struct world *world, uint64_t seed)
{
    cw_random_seed(&world->random, seed);
    three_hosts(&world->hosts, seed, CW_ENCRYPTION_REQUIRED);
    world->count = 0;
    world->sent = CW_SEAL_COUNT_MAX / 2;
    memset(world->grounds, GUARD, sizeof(*world->grounds));
    struct cw_endpoint *target = world->hosts.list[TARGET].endpoint;
    assert_int_equal(
        cw_region_register(target, world->grounds->granted, GRANTED_BYTES, CW_REGION_WRITE, &world->tokens[0]), CW_OK);
    world->tokens[1] = world->hosts.list[TARGET].token;
    world->tokens[2] = 12345;
    cw_simulator_tap_set(world->hosts.simulator, open_and_record, world);
    small_talk(&world->hosts, MADMAN, TARGET);
    (void)sim_stream_send(&world->hosts, MADMAN, TARGET, 3000, 20, 100 * SIMULATION_MS);
    assert_true(world->count > 20);
}

static void change_bytes(struct cw_random *random, uint8_t *bytes, uint32_t from, uint32_t to)
{
    for (uint64_t i = cw_random_between(random, 1, 6); i > 0; i--) {
        bytes[cw_random_between(random, from, to - 1)] = (uint8_t)cw_random_next(random);
    }
}

static void network(const struct world *world, struct frame *frame)
{
    network_write(frame->bytes, world->hosts.list[TARGET].endpoint, 0x0a000001u + MADMAN,
                  frame->length - CW_WIRE_OVERHEAD_BYTES);
}

/* Without the key: never let in. */
static void attack_from_outside(struct world *world)
{
    struct cw_random *random = &world->random;
    struct cw_endpoint *target = world->hosts.list[TARGET].endpoint;
    const struct frame *original = &world->sealed[cw_random_below(random, world->count)];
    struct frame changed = *original;
    do {
        switch (cw_random_below(random, 4)) {
        case 0: /* another length, which is written outside as well */
            changed.length = (uint32_t)cw_random_between(random, CW_WIRE_OVERHEAD_BYTES, 400);
            network(world, &changed);
            break;
        case 1: /* noise behind what finds the key */
            cw_random_fill(random, changed.bytes + CW_WIRE_NETWORK_BYTES + 8,
                           changed.length - CW_WIRE_NETWORK_BYTES - 8);
            break;
        default:
            change_bytes(random, changed.bytes, CW_WIRE_NETWORK_BYTES, changed.length);
            break;
        }
    } while (changed.length == original->length &&
             memcmp(changed.bytes + CW_WIRE_NETWORK_BYTES, original->bytes + CW_WIRE_NETWORK_BYTES,
                    changed.length - CW_WIRE_NETWORK_BYTES) == 0);
    uint64_t refused = refused_count(target);
    uint64_t arrived = cw_endpoint_counter(target, CW_COUNTER_PUTS_ARRIVED);
    burst_add(&world->burst, changed.bytes, changed.length);
    burst_let_in(&world->burst, target);
    assert_int_equal(refused_count(target), refused + 1);
    assert_int_equal(cw_endpoint_counter(target, CW_COUNTER_PUTS_ARRIVED), arrived);
    world->outside++;
}

/* A set-up packet with the job's key, and anything in it. */
static void mad_setup(struct world *world, struct frame *frame)
{
    const struct cw_endpoint *target = world->hosts.list[TARGET].endpoint;
    struct cw_wire_sealed_setup setup;
    const struct cw_flow *flow = flow_of(world);
    struct cw_random *random = &world->random;
    setup = (struct cw_wire_sealed_setup){
        .version = CW_WIRE_VERSION,
        .type = cw_random_chance(random, 0.7) ? CW_WIRE_HELLO : CW_WIRE_HELLO_REPLY,
        .flags = CW_WIRE_ENCRYPTED,
        .hello = {.session = cw_random_below(random, 5),
                  .peer_session = flow->session.local,
                  .sender_ip = cw_ip_v4(0x0a000001u + MADMAN),
                  .receiver_ip = target->config.address.ip,
                  .sender_port = CW_UDP_PORT,
                  .receiver_port = CW_UDP_PORT,
                  .payload_bytes_max = cw_random_chance(random, 0.2) ? 0 : 1400,
                  .packet_window = 1000,
                  .put_window = 1000},
    };
    if (cw_random_chance(random, 0.5)) {
        change_bytes(random, (uint8_t *)&setup.hello, 0, sizeof(setup.hello));
    }
    cw_random_fill(random, setup.nonce, sizeof(setup.nonce));
    cw_wire_setup_seal(&setup, target->setup_key);
    frame->length = CW_WIRE_NETWORK_BYTES + sizeof(setup);
    memcpy(frame->bytes + CW_WIRE_NETWORK_BYTES, &setup, sizeof(setup));
    network(world, frame);
}

/* A packet of the session with the session's key, and anything in it. */
static void mad_packet(struct world *world, struct frame *frame)
{
    struct cw_random *random = &world->random;
    const struct cw_flow *flow = flow_of(world);
    *frame = world->plain[cw_random_below(random, world->count)];
    struct cw_wire_header header;
    memcpy(&header, frame->bytes + CW_WIRE_NETWORK_BYTES, sizeof(header));
    if (header.type <= CW_WIRE_HELLO_REPLY) {
        header.type = CW_WIRE_DATA;
        header.payload_bytes = 76;
    }
    if (cw_random_chance(random, 0.1)) {
        header.type = (uint8_t)cw_random_between(random, CW_WIRE_DATA, cw_random_chance(random, 0.1) ? 9 : 6);
    }
    uint8_t *payload = frame->bytes + CW_WIRE_OVERHEAD_BYTES;
    uint32_t payload_bytes = header.payload_bytes;
    if (header.type == CW_WIRE_DATA && payload_bytes >= sizeof(struct cw_wire_put)) {
        struct cw_wire_put put;
        memcpy(&put, payload, sizeof(put));
        put.frame.put_number = (uint32_t)(flow->receiver.puts.base + cw_random_below(random, 40) - 8);
        put.token = world->tokens[cw_random_below(random, 3)];
        put.offset = cw_random_chance(random, 0.2) ? cw_random_next(random) : cw_random_below(random, GRANTED_BYTES);
        memcpy(payload, &put, sizeof(put));
    }
    if (payload_bytes > 0 && cw_random_chance(random, 0.6)) {
        change_bytes(random, payload, 0, payload_bytes);
    }
    bool data = header.type == CW_WIRE_DATA;
    uint64_t number = data ? flow->receiver.packets.base + cw_random_below(random, 40)
                           : flow->receiver.control_end - 1 + cw_random_below(random, 3);
    header.number = (uint32_t)number;
    header.acknowledged = (uint32_t)(flow->sender.sent.base + cw_random_below(random, 3));
    header.flow = cw_seal_flow(flow->index, flow->session.local);
    if (cw_random_chance(random, 0.2)) {
        header.payload_bytes = (uint16_t)cw_random_next(random); /* another than there is */
    }
    if (cw_random_chance(random, 0.1)) {
        payload_bytes = (uint32_t)cw_random_below(random, 30);
    }
    uint64_t count = world->sent++;
    frame->length = CW_WIRE_OVERHEAD_BYTES + payload_bytes + CW_WIRE_MAC_BYTES;
    network(world, frame);
    cw_wire_sealed_write((struct cw_wire_sealed *)(frame->bytes + CW_WIRE_NETWORK_BYTES), &header, count);
    assert_true(packet_crypt(world, CW_AEAD_SEAL, count, frame->bytes, frame->length));
}

/* With the key: a burst of anything. The session may end in the middle of it. */
static void attack_from_inside(struct world *world)
{
    uint64_t count = cw_random_between(&world->random, 1, CW_BURST);
    for (uint64_t i = 0; i < count; i++) {
        struct frame frame;
        memset(&frame, 0, sizeof(frame));
        const struct cw_flow *flow = flow_of(world);
        if (flow->state != CW_PEER_ESTABLISHED || cw_random_chance(&world->random, 0.05)) {
            mad_setup(world, &frame);
        } else {
            mad_packet(world, &frame);
        }
        burst_add(&world->burst, frame.bytes, frame.length);
    }
    burst_let_in(&world->burst, world->hosts.list[TARGET].endpoint);
    world->inside += count;
}

static void check_grounds(const struct world *world)
{
    guard_check(world->grounds->before, GUARD_BYTES);
    guard_check(world->grounds->after, GUARD_BYTES);
}

static void hostile_packets(void **state)
{
    static struct world world;
    uint64_t packets = test_count("CW_TEST_PACKETS", PACKETS);
    world.sealed = calloc(FRAMES_MAX, sizeof(struct frame));
    world.plain = calloc(FRAMES_MAX, sizeof(struct frame));
    world.grounds = calloc(1, sizeof(struct grounds));
    struct test_seeds seeds = test_seeds(1, (packets + PACKETS_A_WORLD - 1) / PACKETS_A_WORLD);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        uint64_t end = world.outside + world.inside + PACKETS_A_WORLD;
        world_create(&world, seed);
        while (world.outside + world.inside < end) {
            if (cw_random_chance(&world.random, 0.9)) {
                attack_from_outside(&world);
            } else {
                attack_from_inside(&world);
            }
            sim_hosts_run(&world.hosts, 5 * SIMULATION_US);
        }
        check_grounds(&world);
        bystander_check(&world.hosts);
        check_grounds(&world);
        sim_hosts_destroy(&world.hosts);
    }
    printf("%llu packets from outside, none let in; %llu from inside\n", (unsigned long long)world.outside,
           (unsigned long long)world.inside);
    free(world.sealed);
    free(world.plain);
    free(world.grounds);
}

int main(void)
{
    struct cw_aead *aead;
    char error[200];
    if (cw_aead_open(NULL, &aead, error, sizeof(error)) != CW_OK) {
        test_skip(error);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(hostile_packets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
