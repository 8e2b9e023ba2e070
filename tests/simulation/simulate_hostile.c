/* Packets that a peer of the job, which has its key, must not get anything out of: written by hand, each against one
 * way to be short of room. (tests/fuzz looks for more of them at random.) */
#include "tests/simulation/attack.h"
#include "tests/simulation/fixture.h"

#include "dataplane/codec/codec.h"

enum { RECORDS = 64 };

static struct {
    struct cw_endpoint *endpoint; /* the target's */
    struct cw_flow *flow;         /* towards the madman */
    uint64_t base;                /* the first put number that is not done */
    uint8_t frame[2048];
    uint32_t used;
} world;

/* Two hosts in session; the target has little of everything. */
static void world_open(uint32_t window_blocks)
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
    memset(&world, 0, sizeof(world));
    hosts_make(&config);
    (void)sim_stream_send(&hosts, MADMAN, TARGET, 32, 20, 1000 * SIMULATION_MS);
    world.endpoint = hosts.list[TARGET].endpoint;
    world.flow = flow_from(world.endpoint, MADMAN_IPV4);
    assert_non_null(world.flow);
    world.base = world.flow->receiver.puts.base;
}

static void add(const void *bytes, uint32_t count)
{
    uint8_t *payload = world.frame + CW_WIRE_OVERHEAD_BYTES;
    memcpy(payload + world.used, bytes, count);
    world.used += count;
    while (world.used % 8 != 0) {
        payload[world.used++] = 0;
    }
}

static void add_put(uint64_t number, uint16_t predecessor)
{
    struct cw_wire_put put = {.frame = {.kind = CW_FRAME_PUT, .put_number = (uint32_t)number},
                              .predecessor = predecessor,
                              .token = hosts.list[TARGET].token};
    add(&put, sizeof(put));
}

static void add_bare(enum cw_wire_frame_kind kind, uint16_t length, uint64_t number)
{
    struct cw_wire_frame frame = {.kind = (uint8_t)kind, .length = length, .put_number = (uint32_t)number};
    add(&frame, sizeof(frame));
}

static void add_get(uint64_t number)
{
    struct cw_wire_get get = {.put = {.frame = {.kind = CW_FRAME_GET, .put_number = (uint32_t)number},
                                      .reply = 1,
                                      .token = hosts.list[TARGET].token}};
    add(&get, sizeof(get));
}

static void add_half(uint64_t number, uint64_t token, uint64_t offset)
{
    struct {
        struct cw_wire_part part;
        uint64_t data;
    } half = {.part = {.put = {.frame = {.kind = CW_FRAME_PART, .length = 8, .put_number = (uint32_t)number},
                               .token = token,
                               .offset = offset},
                       .total = 16}};
    add(&half, sizeof(half));
}

/* Signs the packet as the madman and lets it in, `ahead` numbers after the next one: the next packet is empty again. */
static void deliver_as(uint64_t ahead, uint16_t flags, uint32_t covered)
{
    uint64_t number = world.flow->receiver.packets.base + ahead;
    struct cw_wire_header header = header_next(world.flow, world.used);
    header.number = (uint32_t)number;
    header.flags = flags;
    uint32_t length = packet_sign(world.frame, world.endpoint, &header, number, covered, &world.flow->session.key_in);
    frame_let_in(world.endpoint, world.frame, length);
    world.used = 0;
}

static void deliver(void)
{
    deliver_as(0, 0, world.used);
}

/* Lets a packet in of which so much has a CRC; returns how many were dropped for that. */
static uint32_t deliver_covered(uint16_t flags, uint32_t covered)
{
    uint64_t before = counted(TARGET, CW_COUNTER_DROP_CHECKSUM);
    deliver_as(0, flags, covered);
    return (uint32_t)(counted(TARGET, CW_COUNTER_DROP_CHECKSUM) - before);
}

static uint64_t rejected_for_room(void)
{
    return counted(TARGET, CW_COUNTER_DROP_FULL);
}

static void puts_out_of_turn_find_no_records(void **state)
{
    world_open(64);
    for (uint32_t i = 0; i < RECORDS - 1; i++) {
        add_put(world.base + 10 + i, (uint16_t)(5 + i)); /* waits for a put that never comes */
        deliver();
    }
    uint64_t refused = rejected_for_room();
    add_put(world.base, 0); /* the oldest one, which always has room, and behind it others that have none */
    for (uint32_t i = 0; i < 20; i++) {
        add_put(world.base + 200 + i, (uint16_t)(195 + i));
    }
    deliver();
    assert_int_equal(rejected_for_room(), refused + 1);
    assert_int_equal(world.flow->receiver.puts.base, world.base);
    add_put(world.base, 0); /* alone it comes through, */
    deliver();
    assert_int_equal(world.flow->receiver.puts.base, world.base + 1);
    for (uint16_t i = 1; i <= 4; i++) {
        add_put(world.base + i, 1); /* and so do others that wait for nothing but each other */
    }
    deliver();
    assert_true(world.flow->receiver.puts.base >= world.base + 5);
}

static void credit_uses_no_number_that_a_get_was_promised(void **state)
{
    world_open(64);
    world.flow->session.put_window = 65; /* the least that a peer may name: one number is left of it below */
    struct {
        struct cw_wire_frame frame;
        uint16_t slots[4];
    } grant = {{.kind = CW_FRAME_GRANT, .length = 4, .put_number = (uint32_t)world.base}, {0, 1, 2, 3}};
    add(&grant, sizeof(grant));
    deliver();
    for (uint32_t i = 1; i <= 64; i++) {
        add_get(world.base + i);
        deliver();
    }
    assert_int_equal(world.flow->sender.open_count, 64);
    uint64_t refused = rejected_for_room();
    add_bare(CW_FRAME_RECALL, 0, world.base + 65); /* gives four slots back, by an operation of its own */
    add_get(world.base + 66);
    deliver();
    assert_int_equal(rejected_for_room(), refused + 1);
}

static void frames_far_apart_find_no_blocks(void **state)
{
    world_open(4);
    uint64_t refused = rejected_for_room();
    for (uint32_t i = 1; i <= 6; i++) {
        add_bare(CW_FRAME_ASK, 1, world.base + 8192ull * i);
    }
    deliver();
    assert_int_equal(rejected_for_room(), refused + 1);
    /* a packet that came early takes a block itself, its two frames lie in one each */
    while (cw_pool_available(&world.endpoint->blocks) > 2) {
        assert_non_null(cw_pool_acquire(&world.endpoint->blocks));
    }
    add_bare(CW_FRAME_ASK, 1, 0xffffffffull);
    add_bare(CW_FRAME_RECALL, 0, 0x100000000ull);
    deliver_as(1, 0, world.used);
    assert_int_equal(rejected_for_room(), refused + 2);
}

static void half_a_put_keeps_its_number(void **state)
{
    world_open(64);
    uint64_t malformed = counted(TARGET, CW_COUNTER_DROP_MALFORMED);
    for (uint32_t i = 0; i < RECORDS; i++) {
        add_half(world.base + i, hosts.list[TARGET].token, 0);
        deliver();
        add_bare(CW_FRAME_RECALL, 0, world.base + i);
        deliver();
    }
    assert_true(counted(TARGET, CW_COUNTER_DROP_MALFORMED) >= malformed + RECORDS - 2);
    assert_true(cw_pool_available(&world.endpoint->reassemblies.pool) > 0); /* for the oldest put of any peer */
    assert_int_equal(world.flow->receiver.puts.base, world.base);
}

static void two_messages_cannot_share_a_slot(void **state)
{
    world_open(64);
    add_bare(CW_FRAME_ASK, 1, world.base);
    deliver();
    host_run(TARGET, SIMULATION_MS);
    uint32_t slot = 0;
    while (world.endpoint->messages.slots[slot].state != CW_SLOT_LENT) {
        slot++;
        assert_true(slot < 6);
    }
    uint64_t token = world.endpoint->messages.region->token;
    uint64_t rejected = counted(TARGET, CW_COUNTER_REJECTS_OUT);
    for (uint32_t i = 1; i <= 2; i++) {
        add_half(world.base + i, token, 1024ull * slot);
        deliver();
        assert_int_equal(counted(TARGET, CW_COUNTER_REJECTS_OUT), rejected + i - 1);
    }
}

static void numbers_that_do_not_rise_are_malformed(void **state)
{
    world_open(64);
    uint64_t malformed = counted(TARGET, CW_COUNTER_DROP_MALFORMED);
    uint64_t arrived = counted(TARGET, CW_COUNTER_PUTS_ARRIVED);
    add_put(world.base, 0);
    add_put(world.base, 0);
    deliver();
    add_put(world.base + 1, 0);
    add_put(world.base, 0);
    deliver();
    assert_int_equal(counted(TARGET, CW_COUNTER_DROP_MALFORMED), malformed + 2);
    assert_int_equal(counted(TARGET, CW_COUNTER_PUTS_ARRIVED), arrived);
}

static void add_chunk(uint64_t number, struct cw_codec_plan plan, uint16_t raw_bytes, const void *data, uint16_t bytes)
{
    struct cw_wire_chunk chunk = {
        .put = {.frame = {.kind = CW_FRAME_CHUNK, .length = bytes, .put_number = (uint32_t)number},
                .token = hosts.list[TARGET].token},
        .total = 4096,
        .raw_bytes = raw_bytes,
        .codec = plan.codec,
        .parameter = plan.parameter};
    add(&chunk, sizeof(chunk));
    add(data, bytes);
}

/* A signed chunk that is no codec's output: nothing of it is stored, and the session ends. Next to another frame, or
 * beyond its put, it is malformed like any other. */
static void damaged_chunks_end_the_session(void **state)
{
    static const uint8_t pattern[8] = "pattern";
    static const uint8_t nothing[64] = {0};
    static const struct cw_codec_plan plans[] = {
        {CW_CODEC_NONE, 0}, {CW_CODEC_RUN, 1}, {CW_CODEC_LORENZO, 0},   {CW_CODEC_DFCM, 7},
        {CW_CODEC_LZ4, 0},  {CW_CODECS, 0},    {CW_CODEC_SHUFFLE, 200}, {CW_CODEC_ZSTD, 0},
    };
    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        world_open(64);
        uint8_t *memory = hosts.list[TARGET].memory;
        memset(memory, 0x5a, 4096);
        struct cw_codec_plan run = {CW_CODEC_RUN, 0};
        add_chunk(world.base, run, 800, pattern, 8);
        deliver();
        assert_memory_equal(memory + 792, pattern, 8);
        assert_int_equal(memory[800], 0x5a);
        uint64_t malformed = counted(TARGET, CW_COUNTER_DROP_MALFORMED);
        add_chunk(world.base, run, 4100, pattern, 8);
        deliver();
        add_chunk(world.base, run, 800, pattern, 8);
        add_put(world.base + 1, 0);
        deliver();
        assert_int_equal(counted(TARGET, CW_COUNTER_DROP_MALFORMED), malformed + 2);
        memset(memory, 0x5a, 4096);
        add_chunk(world.base, plans[i], 1600, nothing, 64);
        deliver();
        assert_int_equal(counted(TARGET, CW_COUNTER_DROP_CHUNK), 1);
        assert_int_equal(world.flow->state, CW_PEER_FAILED);
        for (uint32_t at = 0; at < 4096; at++) {
            assert_int_equal(memory[at], 0x5a);
        }
        host_run(TARGET, SIMULATION_MS);
        assert_int_equal(hosts.list[TARGET].down_status, CW_ERROR_DAMAGED);
    }
}

/* A PUT of 400 bytes, of which its header alone has a CRC. */
static void add_kept(uint64_t number)
{
    static const uint8_t data[400];
    struct cw_wire_put put = {.frame = {.kind = CW_FRAME_PUT, .length = sizeof(data), .put_number = (uint32_t)number},
                              .token = hosts.list[TARGET].token};
    add(&put, sizeof(put));
    add(data, sizeof(data));
}

static void data_without_a_crc_need_a_medium_and_one_frame(void **state)
{
    enum { PUT = sizeof(struct cw_wire_put) + CW_WIRE_KEPT_DATA };
    world_open(64);
    uint64_t malformed = counted(TARGET, CW_COUNTER_DROP_MALFORMED);
    add_kept(world.base);
    assert_int_equal(deliver_covered(CW_WIRE_KEPT, PUT), 1); /* the session's ends have no medium in common */
    add_kept(world.base);
    assert_int_equal(deliver_covered(CW_WIRE_SUMMED, PUT), 1); /* there is no UDP checksum */
    world.flow->session.kept = true;
    add_kept(world.base);
    assert_int_equal(deliver_covered(CW_WIRE_KEPT, PUT - 8), 1);
    add_kept(world.base);
    assert_int_equal(deliver_covered(CW_WIRE_KEPT | CW_WIRE_SUMMED, PUT), 1);
    assert_int_equal(world.flow->receiver.puts.base, world.base);
    add_kept(world.base);
    add_put(world.base + 1, 1); /* behind it a frame whose header has no CRC */
    assert_int_equal(deliver_covered(CW_WIRE_KEPT, PUT), 0);
    assert_int_equal(counted(TARGET, CW_COUNTER_DROP_MALFORMED), malformed + 1);
    for (uint32_t i = 0; i < 40; i++) {
        add_bare(CW_FRAME_VOID, 1, world.base + i);
    }
    assert_int_equal(deliver_covered(CW_WIRE_KEPT, PUT), 0); /* frames of another kind */
    assert_int_equal(counted(TARGET, CW_COUNTER_DROP_MALFORMED), malformed + 2);
    add_put(world.base, 0);
    assert_int_equal(deliver_covered(CW_WIRE_KEPT, PUT), 1); /* too short */
    assert_int_equal(world.flow->receiver.puts.base, world.base);
    add_kept(world.base);
    assert_int_equal(deliver_covered(CW_WIRE_KEPT, PUT), 0);
    assert_int_equal(world.flow->receiver.puts.base, world.base + 1);
}

int main(void)
{
    return HOSTS_TESTS_RUN(puts_out_of_turn_find_no_records, credit_uses_no_number_that_a_get_was_promised,
                           frames_far_apart_find_no_blocks, half_a_put_keeps_its_number,
                           two_messages_cannot_share_a_slot, numbers_that_do_not_rise_are_malformed,
                           damaged_chunks_end_the_session, data_without_a_crc_need_a_medium_and_one_frame);
}
