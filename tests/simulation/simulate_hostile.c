/* Packets that a peer of the job, which has its key, must not get anything out of: written by hand, each against one
 * way to be short of room. (tests/fuzz looks for more of them at random.) */
#include "tests/simulation/attack.h"

#include "dataplane/codec/codec.h"
#include "dataplane/flow/extension.h"
#include "dataplane/flow/table.h"
#include "dataplane/state/endpoint.h"
#include "mcast/packet.h"
#include "tests/simulation/mcast_world.h"

enum { RECORDS = 64 };

struct world {
    struct sim_hosts hosts;
    struct cw_endpoint *endpoint; /* the target's */
    struct cw_flow *flow;         /* towards the madman */
    uint64_t base;                /* the first put number that is not done */
    uint8_t frame[2048];
    uint32_t used;
    uint16_t flags;   /* of the next packet */
    uint32_t covered; /* how much of its payload has a CRC; 0: all */
};

/* Two hosts in session; the target has little of everything. */
static void world_open(struct world *world, uint32_t window_blocks)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.memory_bytes = 1 << 16;
    config.endpoint.pool_slot_count = 6;
    config.endpoint.pool_slot_bytes = 1024;
    config.endpoint.reassembly_count_max = RECORDS;
    config.endpoint.operation_count_max = 256;
    config.endpoint.event_count_max = 256;
    config.endpoint.get_count_max = 32;
    config.endpoint.window_block_count = window_blocks;
    memset(world, 0, sizeof(*world));
    simulation_hosts(&world->hosts, &config);
    (void)sim_stream_send(&world->hosts, MADMAN, TARGET, 32, 20, 1000 * SIMULATION_MS);
    world->endpoint = world->hosts.list[TARGET].endpoint;
    world->flow = flow_from(world->endpoint, 0x0a000001u + MADMAN);
    assert_non_null(world->flow);
    world->base = world->flow->receiver.puts.base;
}

static void begin(struct world *world)
{
    world->used = 0;
}

static void add(struct world *world, const void *bytes, uint32_t count)
{
    uint8_t *payload = world->frame + CW_WIRE_OVERHEAD_BYTES;
    memcpy(payload + world->used, bytes, count);
    world->used += count;
    while (world->used % 8 != 0) {
        payload[world->used++] = 0;
    }
}

static void add_put(struct world *world, uint64_t number, uint16_t predecessor)
{
    struct cw_wire_put put = {.frame = {.kind = CW_FRAME_PUT, .put_number = (uint32_t)number},
                              .predecessor = predecessor,
                              .token = world->hosts.list[TARGET].token};
    add(world, &put, sizeof(put));
}

static void add_bare(struct world *world, enum cw_wire_frame_kind kind, uint16_t length, uint64_t number)
{
    struct cw_wire_frame frame = {.kind = (uint8_t)kind, .length = length, .put_number = (uint32_t)number};
    add(world, &frame, sizeof(frame));
}

static void add_get(struct world *world, uint64_t number)
{
    struct cw_wire_get get = {.put = {.frame = {.kind = CW_FRAME_GET, .put_number = (uint32_t)number},
                                      .reply = 1,
                                      .token = world->hosts.list[TARGET].token}};
    add(world, &get, sizeof(get));
}

static void add_half(struct world *world, uint64_t number, uint64_t token, uint64_t offset)
{
    struct {
        struct cw_wire_part part;
        uint64_t data;
    } half = {.part = {.put = {.frame = {.kind = CW_FRAME_PART, .length = 8, .put_number = (uint32_t)number},
                               .token = token,
                               .offset = offset},
                       .total = 16}};
    add(world, &half, sizeof(half));
}

/* Signs the packet as the madman and lets it in, `ahead` numbers after the next one. */
static void deliver(struct world *world, uint64_t ahead)
{
    network_write(world->frame, world->endpoint, 0x0a000001u + MADMAN, world->used);
    uint64_t number = world->flow->receiver.packets.base + ahead;
    struct cw_wire_header header = {
        .version = CW_WIRE_VERSION,
        .type = CW_WIRE_DATA,
        .flow = world->flow->index,
        .number = (uint32_t)number,
        .acknowledged = (uint32_t)world->flow->sender.sent.base,
        .payload_bytes = (uint16_t)world->used,
        .timestamp = world->flow->receiver.echo,
        .flags = world->flags,
        .checksum = cw_wire_checksum(0, world->frame + CW_WIRE_OVERHEAD_BYTES,
                                     world->covered > 0 ? world->covered : world->used),
    };
    header.tag = cw_wire_tag(&header, (uint32_t)(number >> 32), &world->flow->session.key_in);
    memcpy(world->frame + CW_WIRE_NETWORK_BYTES, &header, sizeof(header));
    struct cw_received packet = {.data = world->frame, .length = CW_WIRE_OVERHEAD_BYTES + world->used};
    cw_receive_frames(world->endpoint, &packet, 1);
}

/* Lets a packet in of which so much has a CRC; returns how many were dropped for that. */
static uint32_t deliver_covered(struct world *world, uint16_t flags, uint32_t covered)
{
    uint64_t before = cw_endpoint_counter(world->endpoint, CW_COUNTER_DROP_CHECKSUM);
    world->flags = flags;
    world->covered = covered;
    deliver(world, 0);
    world->flags = 0;
    world->covered = 0;
    return (uint32_t)(cw_endpoint_counter(world->endpoint, CW_COUNTER_DROP_CHECKSUM) - before);
}

static uint64_t refused_for_room(const struct world *world)
{
    return cw_endpoint_counter(world->endpoint, CW_COUNTER_DROP_FULL);
}

static void puts_out_of_turn_find_no_records(void **state)
{
    struct world world;
    world_open(&world, 64);
    for (uint32_t i = 0; i < RECORDS - 1; i++) {
        begin(&world);
        add_put(&world, world.base + 10 + i, (uint16_t)(5 + i)); /* waits for a put that never comes */
        deliver(&world, 0);
    }
    uint64_t refused = refused_for_room(&world);
    begin(&world);
    add_put(&world, world.base, 0); /* the oldest one, which always has room, and behind it others that have none */
    for (uint32_t i = 0; i < 20; i++) {
        add_put(&world, world.base + 200 + i, (uint16_t)(195 + i));
    }
    deliver(&world, 0);
    assert_int_equal(refused_for_room(&world), refused + 1);
    assert_int_equal(world.flow->receiver.puts.base, world.base);
    begin(&world);
    add_put(&world, world.base, 0); /* alone it comes through, */
    deliver(&world, 0);
    assert_int_equal(world.flow->receiver.puts.base, world.base + 1);
    begin(&world);
    for (uint16_t i = 1; i <= 4; i++) {
        add_put(&world, world.base + i, 1); /* and so do others that wait for nothing but each other */
    }
    deliver(&world, 0);
    assert_true(world.flow->receiver.puts.base >= world.base + 5);
    sim_hosts_destroy(&world.hosts);
}

static void credit_takes_no_number_that_a_get_was_promised(void **state)
{
    struct world world;
    world_open(&world, 64);
    world.flow->session.put_window = 65; /* the least that a peer may name: one number is left of it below */
    struct {
        struct cw_wire_frame frame;
        uint16_t slots[4];
    } grant = {{.kind = CW_FRAME_GRANT, .length = 4, .put_number = (uint32_t)world.base}, {0, 1, 2, 3}};
    begin(&world);
    add(&world, &grant, sizeof(grant));
    deliver(&world, 0);
    for (uint32_t i = 1; i <= 64; i++) {
        begin(&world);
        add_get(&world, world.base + i);
        deliver(&world, 0);
    }
    assert_int_equal(world.flow->sender.open_count, 64);
    uint64_t refused = refused_for_room(&world);
    begin(&world);
    add_bare(&world, CW_FRAME_RECALL, 0, world.base + 65); /* gives four slots back, by an operation of its own */
    add_get(&world, world.base + 66);
    deliver(&world, 0);
    assert_int_equal(refused_for_room(&world), refused + 1);
    sim_hosts_destroy(&world.hosts);
}

static void frames_far_apart_find_no_blocks(void **state)
{
    struct world world;
    world_open(&world, 4);
    uint64_t refused = refused_for_room(&world);
    begin(&world);
    for (uint32_t i = 1; i <= 6; i++) {
        add_bare(&world, CW_FRAME_ASK, 1, world.base + 8192ull * i);
    }
    deliver(&world, 0);
    assert_int_equal(refused_for_room(&world), refused + 1);
    /* a packet that came early takes a block itself, its two frames lie in one each */
    while (cw_pool_available(&world.endpoint->blocks) > 2) {
        assert_non_null(cw_pool_take(&world.endpoint->blocks));
    }
    begin(&world);
    add_bare(&world, CW_FRAME_ASK, 1, 0xffffffffull);
    add_bare(&world, CW_FRAME_RECALL, 0, 0x100000000ull);
    deliver(&world, 1);
    assert_int_equal(refused_for_room(&world), refused + 2);
    sim_hosts_destroy(&world.hosts);
}

static void half_a_put_keeps_its_number(void **state)
{
    struct world world;
    world_open(&world, 64);
    uint64_t malformed = cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED);
    for (uint32_t i = 0; i < RECORDS; i++) {
        begin(&world);
        add_half(&world, world.base + i, world.hosts.list[TARGET].token, 0);
        deliver(&world, 0);
        begin(&world);
        add_bare(&world, CW_FRAME_RECALL, 0, world.base + i);
        deliver(&world, 0);
    }
    assert_true(cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED) >= malformed + RECORDS - 2);
    assert_true(cw_pool_available(&world.endpoint->reassemblies.pool) > 0); /* for the oldest put of anybody */
    assert_int_equal(world.flow->receiver.puts.base, world.base);
    sim_hosts_destroy(&world.hosts);
}

static void two_messages_cannot_share_a_slot(void **state)
{
    struct world world;
    world_open(&world, 64);
    begin(&world);
    add_bare(&world, CW_FRAME_ASK, 1, world.base);
    deliver(&world, 0);
    sim_host_wake(&world.hosts.list[TARGET]);
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    uint32_t slot = 0;
    while (world.endpoint->messages.slots[slot].state != CW_SLOT_LENT) {
        slot++;
        assert_true(slot < 6);
    }
    uint64_t token = world.endpoint->messages.region->token;
    uint64_t rejected = cw_endpoint_counter(world.endpoint, CW_COUNTER_REJECTS_OUT);
    for (uint32_t i = 1; i <= 2; i++) {
        begin(&world);
        add_half(&world, world.base + i, token, 1024ull * slot);
        deliver(&world, 0);
        assert_int_equal(cw_endpoint_counter(world.endpoint, CW_COUNTER_REJECTS_OUT), rejected + i - 1);
    }
    sim_hosts_destroy(&world.hosts);
}

static void numbers_that_do_not_rise_are_malformed(void **state)
{
    struct world world;
    world_open(&world, 64);
    uint64_t malformed = cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED);
    uint64_t arrived = cw_endpoint_counter(world.endpoint, CW_COUNTER_PUTS_ARRIVED);
    begin(&world);
    add_put(&world, world.base, 0);
    add_put(&world, world.base, 0);
    deliver(&world, 0);
    begin(&world);
    add_put(&world, world.base + 1, 0);
    add_put(&world, world.base, 0);
    deliver(&world, 0);
    assert_int_equal(cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED), malformed + 2);
    assert_int_equal(cw_endpoint_counter(world.endpoint, CW_COUNTER_PUTS_ARRIVED), arrived);
    sim_hosts_destroy(&world.hosts);
}

static void add_chunk(struct world *world, uint64_t number, struct cw_codec_plan plan, uint16_t raw_bytes,
                      const void *data, uint16_t bytes)
{
    struct cw_wire_chunk chunk = {
        .put = {.frame = {.kind = CW_FRAME_CHUNK, .length = bytes, .put_number = (uint32_t)number},
                .token = world->hosts.list[TARGET].token},
        .total = 4096,
        .raw_bytes = raw_bytes,
        .codec = plan.codec,
        .parameter = plan.parameter};
    add(world, &chunk, sizeof(chunk));
    add(world, data, bytes);
}

/* A chunk that no codec makes, signed: nothing of it is stored, and the session is over. Beside another frame, or where
 * it leaves its put, it is malformed like any other. */
static void damaged_chunks_end_the_session(void **state)
{
    static const uint8_t pattern[8] = "pattern";
    static const uint8_t nothing[64] = {0};
    static const struct cw_codec_plan plans[] = {
        {CW_CODEC_NONE, 0}, {CW_CODEC_RUN, 1}, {CW_CODEC_LORENZO, 0},   {CW_CODEC_DFCM, 7},
        {CW_CODEC_LZ4, 0},  {CW_CODECS, 0},    {CW_CODEC_SHUFFLE, 200}, {CW_CODEC_ZSTD, 0},
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct world world;
        world_open(&world, 64);
        uint8_t *memory = world.hosts.list[TARGET].memory;
        memset(memory, 0x5a, 4096);
        struct cw_codec_plan run = {CW_CODEC_RUN, 0};
        begin(&world);
        add_chunk(&world, world.base, run, 800, pattern, 8);
        deliver(&world, 0);
        assert_memory_equal(memory + 792, pattern, 8);
        assert_int_equal(memory[800], 0x5a);
        uint64_t malformed = cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED);
        begin(&world);
        add_chunk(&world, world.base, run, 4100, pattern, 8);
        deliver(&world, 0);
        begin(&world);
        add_chunk(&world, world.base, run, 800, pattern, 8);
        add_put(&world, world.base + 1, 0);
        deliver(&world, 0);
        assert_int_equal(cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED), malformed + 2);
        memset(memory, 0x5a, 4096);
        begin(&world);
        add_chunk(&world, world.base, plans[i], 1600, nothing, 64);
        deliver(&world, 0);
        assert_int_equal(cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_CHUNK), 1);
        assert_int_equal(world.flow->state, CW_PEER_FAILED);
        for (uint32_t at = 0; at < 4096; at++) {
            assert_int_equal(memory[at], 0x5a);
        }
        sim_host_wake(&world.hosts.list[TARGET]);
        sim_hosts_run(&world.hosts, SIMULATION_MS);
        assert_int_equal(world.hosts.list[TARGET].down_status, CW_ERROR_DAMAGED);
        sim_hosts_destroy(&world.hosts);
    }
}

/* A PUT of 400 bytes, of which its header alone has a CRC. */
static void begin_kept(struct world *world, uint64_t number)
{
    static const uint8_t data[400];
    begin(world);
    struct cw_wire_put put = {.frame = {.kind = CW_FRAME_PUT, .length = sizeof(data), .put_number = (uint32_t)number},
                              .token = world->hosts.list[TARGET].token};
    add(world, &put, sizeof(put));
    add(world, data, sizeof(data));
}

static void data_without_a_crc_need_a_medium_and_one_frame(void **state)
{
    enum { PUT = sizeof(struct cw_wire_put) + CW_WIRE_KEPT_DATA };
    struct world world;
    world_open(&world, 64);
    uint64_t malformed = cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED);
    begin_kept(&world, world.base);
    assert_int_equal(deliver_covered(&world, CW_WIRE_KEPT, PUT), 1);   /* the session's ends have no medium in common */
    assert_int_equal(deliver_covered(&world, CW_WIRE_SUMMED, PUT), 1); /* there is no UDP checksum */
    world.flow->session.kept = true;
    assert_int_equal(deliver_covered(&world, CW_WIRE_KEPT, PUT - 8), 1);
    assert_int_equal(deliver_covered(&world, CW_WIRE_KEPT | CW_WIRE_SUMMED, PUT), 1);
    assert_int_equal(world.flow->receiver.puts.base, world.base);
    begin_kept(&world, world.base);
    add_put(&world, world.base + 1, 1); /* behind it a frame whose header has no CRC */
    assert_int_equal(deliver_covered(&world, CW_WIRE_KEPT, PUT), 0);
    assert_int_equal(cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED), malformed + 1);
    begin(&world);
    for (uint32_t i = 0; i < 40; i++) {
        add_bare(&world, CW_FRAME_VOID, 1, world.base + i);
    }
    assert_int_equal(deliver_covered(&world, CW_WIRE_KEPT, PUT), 0); /* frames of another kind */
    assert_int_equal(cw_endpoint_counter(world.endpoint, CW_COUNTER_DROP_MALFORMED), malformed + 2);
    begin(&world);
    add_put(&world, world.base, 0);
    assert_int_equal(deliver_covered(&world, CW_WIRE_KEPT, PUT), 1); /* too short */
    assert_int_equal(world.flow->receiver.puts.base, world.base);
    begin_kept(&world, world.base);
    assert_int_equal(deliver_covered(&world, CW_WIRE_KEPT, PUT), 0);
    assert_int_equal(world.flow->receiver.puts.base, world.base + 1);
    sim_hosts_destroy(&world.hosts);
}

/* ---- multicast ---- */

enum { GROUP_MEMBERS = 4, MEMBER_HOSTILE = 3 };

/* A short message of 8 bytes, well signed, from the hostile member; or, behind the same header, what no codec makes,
 * of a longer one. */
static void data_send(struct mcast_world *world, uint64_t message, uint32_t place, bool is_damaged)
{
    struct cw_endpoint *endpoint = world->hosts.list[MEMBER_HOSTILE].endpoint;
    uint64_t id = mcast_world_group(world);
    struct cw_wire_receiver receiver;
    struct cw_wire_key key;
    uint8_t *at = cw_extension_stage(endpoint);
    assert_non_null(at);
    memset(at, 0, sizeof(struct cw_mcast_data) + 8);
    *(struct cw_mcast_data *)at = (struct cw_mcast_data){
        .prefix = {.group_high = (uint32_t)(id >> 32), .author = MEMBER_HOSTILE, .sender = MEMBER_HOSTILE, .epoch = 1},
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
    cw_extension_key(endpoint, id, MEMBER_HOSTILE, &key);
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
    struct mcast_world_config config = mcast_world_config_of(GROUP_MEMBERS);
    config.senders = 0;
    config.mcast.event_count_max = event_count_max;
    mcast_world_create(world, &config);
    for (uint32_t member = 0; member < GROUP_MEMBERS; member++) {
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
    return TESTS_RUN(puts_out_of_turn_find_no_records, credit_takes_no_number_that_a_get_was_promised,
                     frames_far_apart_find_no_blocks, half_a_put_keeps_its_number, two_messages_cannot_share_a_slot,
                     numbers_that_do_not_rise_are_malformed, damaged_chunks_end_the_session,
                     data_without_a_crc_need_a_medium_and_one_frame, a_damaged_chunk_begins_nothing,
                     who_counts_wrongly_holds_nobody_up);
}
