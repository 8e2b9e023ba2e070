/* Packets to a group that travel compressed, in virtual time: once for all members; for any change to a message in
 * flight. Random worlds with compression are among those of simulate_mcast. */
#include "mcast/state.h"
#include "tests/simulation/mcast_fixture.h"

static void compressing_create(uint32_t members, enum cw_mcast_delivery delivery, double loss)
{
    struct mcast_world_config config = mcast_world_config_of(members);
    config.messages = 40;
    config.short_max = 0;
    config.long_max = 100000;
    config.is_uniform = true;
    config.delivery = delivery;
    config.compresses = CW_COMPRESSION_ON;
    config.node.up.loss = config.node.down.loss = loss;
    world_make(&config);
}

/* Its sender compresses a message once, for any number of members and any delivery; all expand it. */
static void a_group_is_sent_chunks_once(void **state)
{
    for (enum cw_mcast_delivery delivery = CW_MCAST_BY_NETWORK; delivery <= CW_MCAST_BY_MEMBERS; delivery++) {
        enum { MEMBERS = 6 };
        struct cw_compression_report report;
        compressing_create(MEMBERS, delivery, 0);
        mcast_world_finish(&world, 10000 * SIMULATION_MS);
        struct cw_mcast_counters counters = mcast_world_counters(&world);
        uint64_t chunks = mcast_world_counted(&world, CW_COUNTER_CHUNKS_OUT);
        uint64_t raw_bytes = mcast_world_counted(&world, CW_COUNTER_CHUNK_RAW_OUT);
        assert_int_equal(cw_endpoint_counter(world.hosts.list[0].endpoint, CW_COUNTER_CHUNKS_OUT), chunks);
        assert_int_equal(mcast_world_counted(&world, CW_COUNTER_CHUNKS_IN), (MEMBERS - 1) * chunks);
        assert_true(chunks > 100 && 2 * raw_bytes > 3 * mcast_world_counted(&world, CW_COUNTER_CHUNK_BYTES_OUT));
        /* so much fewer packets than the messages would be as they are */
        uint64_t plain = world.config.messages * (world.config.long_max / 1400);
        assert_true(counters.data_out < plain * 3 / 4);
        assert_true(cw_mcast_compression(world.members[0].group, CW_ELEMENT_DOUBLE, &report));
        assert_true(report.chunk_bytes > 0 && report.raw_bytes > report.chunk_bytes);
        assert_false(cw_mcast_compression(world.members[1].group, CW_ELEMENT_DOUBLE, &report));
    }
}

/* A program that changes a message in flight damages only its data, and no member waits: lost packets are sent again,
 * though they cannot be made as they were. */
static void what_changes_under_way_holds_nobody_up(void **state)
{
    compressing_create(5, CW_MCAST_BY_NETWORK, 0.05);
    for (uint32_t i = 0; world.members[0].completed < world.config.messages; i++) {
        assert_true(i < 100000);
        sim_hosts_run(&world.hosts, 100 * SIMULATION_US);
        for (uint32_t message = world.members[0].completed; message < world.members[0].posted; message++) {
            for (uint64_t at = 0; at < world.config.long_max; at += 8) {
                world.sources[message][at] ^= (uint8_t)(at / 8 * 113 >> 3);
            }
        }
    }
    assert_true(world.faulty > 0);
}

/* After compression is switched off, nothing more is compressed, not even of messages in flight; earlier packets are
 * still repaired. */
static void what_is_under_way_can_be_left_plain(void **state)
{
    const struct cw_compression off = {.mode = CW_COMPRESSION_OFF};
    compressing_create(5, CW_MCAST_BY_NETWORK, 0.02);
    struct cw_endpoint *endpoint = world.hosts.list[0].endpoint;
    while (cw_endpoint_counter(endpoint, CW_COUNTER_CHUNKS_OUT) == 0) {
        (void)mcast_world_run(&world, 10 * SIMULATION_US);
    }
    uint64_t chunks = cw_endpoint_counter(endpoint, CW_COUNTER_CHUNKS_OUT);
    assert_int_equal(cw_endpoint_compress(endpoint, &off), CW_OK);
    mcast_world_finish(&world, 10000 * SIMULATION_MS);
    assert_int_equal(cw_endpoint_counter(endpoint, CW_COUNTER_CHUNKS_OUT), chunks);
}

int main(void)
{
    return WORLD_TESTS_RUN(a_group_is_sent_chunks_once, what_changes_under_way_holds_nobody_up,
                           what_is_under_way_can_be_left_plain);
}
