/* Hostile multicast: a member that holds the keys writes anything at all, well signed; and strangers do, badly signed.
 * Nothing may be written outside of slots and registrations (guards, sanitizers), and nobody may fall over.
 * CW_TEST_PACKETS tells how many packets. */
#include "dataplane/codec/codec.h"
#include "dataplane/flow/extension.h"
#include "mcast/packet.h"
#include "tests/simulation/mcast_world.h"

enum { MEMBERS = 4, HOSTILE = 3, PACKETS = 200000, PAYLOAD_MAX = 1400 };

static uint64_t random_state = 1;

static uint64_t draw(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 29;
}

/* Numbers that are right, nearly right, and wrong. */
static uint64_t near(uint64_t value)
{
    switch (draw() % 6) {
    case 0:
        return draw() << 30 ^ draw();
    case 1:
        return value + draw() % 5000;
    case 2:
        return UINT64_MAX - draw() % 4;
    default:
        return value + draw() % 4;
    }
}

/* A chunk that a codec has made, and then perhaps damaged; or anything at all. */
static uint32_t chunk_write(uint8_t *at)
{
    static struct cw_codec_scratch *scratch;
    uint64_t source[256];
    uint32_t taken = 0;
    struct cw_mcast_chunk *chunk = (struct cw_mcast_chunk *)at;
    uint32_t head_bytes = (uint32_t)(draw() % CW_MCAST_INLINE_MAX);
    enum cw_codec codec = CW_CODEC_RUN + (enum cw_codec)(draw() % (CW_CODECS - CW_CODEC_RUN));
    uint64_t noise = draw() % 2 == 0 ? 0 : 255;
    scratch = scratch == NULL ? cw_codec_scratch_create() : scratch;
    for (size_t i = 0; i < 256; i++) {
        source[i] = UINT64_C(0x3ff0000000000000) + (codec == CW_CODEC_RUN ? 0 : i << 20 | (draw() & noise));
    }
    struct cw_codec_plan plan = cw_codec_plan(scratch, codec, CW_ELEMENT_DOUBLE, source, sizeof(source));
    uint32_t bytes =
        cw_codec_fill(scratch, plan, source, sizeof(source), at + sizeof(*chunk) + head_bytes, 900, &taken);
    *chunk = (struct cw_mcast_chunk){(uint16_t)taken, (uint16_t)head_bytes, plan.codec, plan.parameter, 0};
    uint32_t all = (uint32_t)sizeof(*chunk) + head_bytes + bytes;
    for (uint64_t damages = draw() % 3; damages > 0; damages--) {
        at[draw() % 2 == 0 ? draw() % sizeof(*chunk) : draw() % all] = (uint8_t)draw();
    }
    return draw() % 8 == 0 ? (uint32_t)(draw() % all) : all;
}

static uint32_t payload_write(uint8_t *at, uint8_t type, uint64_t id)
{
    union {
        struct cw_mcast_prefix prefix;
        struct cw_mcast_data data;
        struct cw_mcast_state state;
        struct cw_mcast_ack ack;
        struct cw_mcast_nak nak;
        uint8_t bytes[PAYLOAD_MAX];
    } *packet = (void *)at;
    for (uint32_t i = 0; i < PAYLOAD_MAX; i++) {
        packet->bytes[i] = (uint8_t)draw();
    }
    packet->prefix = (struct cw_mcast_prefix){
        .group_high = (uint32_t)(id >> 32),
        .author = draw() % 20 == 0 ? (uint16_t)draw() : HOSTILE,
        .sender = draw() % 20 == 0  ? (uint16_t)draw()
                  : draw() % 2 == 0 ? HOSTILE
                                    : (uint16_t)(draw() % MEMBERS),
        .epoch = draw() % 4 == 0 ? (uint32_t)near(1) : 1,
    };
    switch (type) {
    case CW_MCAST_DATA:
        packet->data.flags &= CW_MCAST_LONG | CW_MCAST_PACKED;
        packet->data.place = (uint32_t)near(0);
        packet->data.message = near(draw() % 8);
        packet->data.position = near(0);
        packet->data.total = near(draw() % 3000);
        if ((packet->data.flags & CW_MCAST_PACKED) != 0) {
            const struct cw_mcast_chunk *chunk = (const struct cw_mcast_chunk *)(&packet->data + 1);
            uint32_t chunk_bytes = chunk_write(at + sizeof(packet->data));
            packet->data.total = near((uint64_t)chunk->raw_bytes + chunk->head_bytes);
            return sizeof(packet->data) + chunk_bytes;
        }
        return sizeof(packet->data) + (uint32_t)(draw() % 1000);
    case CW_MCAST_STATE:
        packet->state.flags = 0;
        packet->state.next = near(CW_MCAST_NUMBER_FIRST);
        return sizeof(packet->state);
    case CW_MCAST_ACK:
        packet->ack.received = near(CW_MCAST_NUMBER_FIRST + draw() % 100);
        packet->ack.released = near(draw() % 20);
        packet->ack.registered = near(draw() % 20);
        return sizeof(packet->ack);
    default:
        packet->nak.from = near(CW_MCAST_NUMBER_FIRST);
        packet->nak.run_count = draw() % 4 == 0 ? (uint32_t)near(0) : (uint32_t)(draw() % CW_MCAST_RUNS_MAX);
        return sizeof(packet->nak) + (uint32_t)(draw() % CW_MCAST_RUNS_MAX) * 4;
    }
}

static void hostile_send(struct mcast_world *world, uint64_t id)
{
    struct cw_endpoint *endpoint = world->hosts.list[HOSTILE].endpoint;
    struct cw_wire_receiver receiver;
    struct cw_wire_key key;
    uint8_t *at = cw_extension_stage(endpoint);
    if (at == NULL) {
        return;
    }
    uint8_t type = (uint8_t)(CW_MCAST_DATA + draw() % 5);
    uint32_t bytes = payload_write(at, type, id);
    bytes = draw() % 10 == 0 ? (uint32_t)(draw() % PAYLOAD_MAX) : bytes;
    struct cw_extension_header header = {
        .type = type,
        .flags = draw() % 2 == 0 ? CW_WIRE_ACK_NOW : 0,
        .flow = (uint32_t)id,
        .number = type == CW_MCAST_DATA ? near(CW_MCAST_NUMBER_FIRST + draw() % 64) : draw() % 100000,
        .echo = (uint32_t)draw(),
        .has_echo = true,
    };
    cw_extension_key(endpoint, id, draw() % 50 == 0 ? 0 : HOSTILE, &key);
    cw_extension_group(endpoint, 0xef010203u, CW_CARRIER_PORT, &receiver);
    header.checksum = cw_wire_checksum(0, at, bytes);
    cw_extension_finish(endpoint, &receiver, &header, bytes, &key);
    cw_extension_flush(endpoint);
}

static void nothing_falls_over(void **state)
{
    uint64_t packets = test_count("CW_TEST_PACKETS", PACKETS);
    struct cw_mcast_counters seen = {0};
    struct test_seeds seeds = test_seeds(1, (packets + 999) / 1000);
    uint64_t chunks = 0;
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        struct mcast_world_config config;
        struct mcast_world world;
        mcast_world_config_init(&config, MEMBERS);
        config.seed = random_state = seed;
        config.senders = MEMBERS - 1;
        config.messages = 1000;
        if (seed % 2 == 0) { /* messages wait for room */
            config.mcast.event_count_max = 1;
        }
        mcast_world_create(&world, &config);
        world.hosts.list[HOSTILE].work = NULL;
        uint64_t id = mcast_world_group(&world);
        for (uint32_t i = 0; i < 1000; i++) {
            hostile_send(&world, id);
            sim_hosts_run(&world.hosts, draw() % 3000);
        }
        struct cw_mcast_counters one = mcast_world_counters(&world);
        seen.drop_malformed += one.drop_malformed;
        seen.drop_tag += one.drop_tag;
        seen.drop_group += one.drop_group;
        seen.acks_in += one.acks_in;
        seen.naks_in += one.naks_in;
        for (uint32_t member = 0; member < MEMBERS; member++) {
            chunks += cw_endpoint_counter(world.hosts.list[member].endpoint, CW_COUNTER_CHUNKS_IN);
        }
        mcast_world_destroy(&world);
    }
    print_message("%llu chunks taken\n", (unsigned long long)chunks);
    if (seeds.is_all) {
        assert_true(seen.drop_malformed > 0 && seen.drop_tag > 0 && seen.drop_group > 0);
        assert_true(seen.acks_in > 0 && seen.naks_in > 0);
        assert_true(chunks > packets / 5000);
    }
}

/* A short message of 8 bytes, well signed, from the hostile member; or, behind the same header, what no codec makes,
 * of a longer one. */
static void data_send(struct mcast_world *world, uint64_t message, uint32_t place, bool is_damaged)
{
    struct cw_endpoint *endpoint = world->hosts.list[HOSTILE].endpoint;
    uint64_t id = mcast_world_group(world);
    struct cw_wire_receiver receiver;
    struct cw_wire_key key;
    uint8_t *at = cw_extension_stage(endpoint);
    assert_non_null(at);
    memset(at, 0, sizeof(struct cw_mcast_data) + 8);
    *(struct cw_mcast_data *)at = (struct cw_mcast_data){
        .prefix = {.group_high = (uint32_t)(id >> 32), .author = HOSTILE, .sender = HOSTILE, .epoch = 1},
        .place = place,
        .message = message,
        .total = 8,
    };
    if (is_damaged) {
        struct cw_mcast_data *data = (struct cw_mcast_data *)at;
        data->flags = CW_MCAST_PACKED;
        data->total = 4000;
        *(struct cw_mcast_chunk *)(data + 1) = (struct cw_mcast_chunk){.raw_bytes = 4000, .codec = CW_CODEC_LORENZO};
    }
    struct cw_extension_header header = {
        .type = CW_MCAST_DATA, .flow = (uint32_t)id, .number = CW_MCAST_NUMBER_FIRST + message};
    cw_extension_key(endpoint, id, HOSTILE, &key);
    cw_extension_group(endpoint, 0xef010203u, CW_CARRIER_PORT, &receiver);
    header.checksum = cw_wire_checksum(0, at, sizeof(struct cw_mcast_data) + 8);
    cw_extension_finish(endpoint, &receiver, &header, sizeof(struct cw_mcast_data) + 8, &key);
    cw_extension_flush(endpoint);
}

static void message_send(struct mcast_world *world, uint64_t message, uint32_t place)
{
    data_send(world, message, place, false);
}

/* Nobody sends or takes anything but the test; at most so many events of groups wait. */
static void quiet_create(struct mcast_world *world, uint32_t event_count_max)
{
    struct mcast_world_config config;
    mcast_world_config_init(&config, MEMBERS);
    config.senders = 0;
    config.mcast.event_count_max = event_count_max;
    mcast_world_create(world, &config);
    for (uint32_t member = 0; member < MEMBERS; member++) {
        world->hosts.list[member].work = NULL;
        world->hosts.list[member].holds_events = true;
    }
}

/* What is dropped has done nothing: the message that comes then is taken, as long as it is. */
static void a_damaged_chunk_begins_nothing(void **state)
{
    struct mcast_world world;
    struct cw_event event;
    quiet_create(&world, CW_MCAST_DEFAULT_EVENTS);
    data_send(&world, 0, 0, true);
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    assert_int_equal(cw_mcast_counters(world.members[0].mcast).drop_malformed, 1);
    message_send(&world, 0, 0);
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    assert_int_equal(cw_mcast_counters(world.members[0].mcast).drop_malformed, 1);
    assert_int_equal(cw_endpoint_events(world.hosts.list[0].endpoint, &event, 1), 1);
    assert_int_equal(event.kind, CW_EVENT_EXTENSION);
    assert_int_equal(world.members[0].heard, 1);
    assert_int_equal(world.members[0].heard_bytes, 8);
    mcast_world_destroy(&world);
}

/* The message behind one that waits for room is not the next of its kind: what is right is notified, and nobody looks
 * for ever. */
static void who_counts_wrongly_holds_nobody_up(void **state)
{
    struct mcast_world world;
    struct cw_event event;
    quiet_create(&world, 1);
    message_send(&world, 0, 0);
    message_send(&world, 1, 1);
    message_send(&world, 2, 5);
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    for (int i = 0; i < 100; i++) {
        while (cw_endpoint_events(world.hosts.list[0].endpoint, &event, 1) == 1) {
        }
        sim_hosts_run(&world.hosts, SIMULATION_MS / 10);
    }
    assert_int_equal(world.members[0].heard, 2);
    mcast_world_destroy(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_falls_over),
        cmocka_unit_test(a_damaged_chunk_begins_nothing),
        cmocka_unit_test(who_counts_wrongly_holds_nobody_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
