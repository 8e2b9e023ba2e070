/* Multicast packets made by hand: by a member with the keys, by an earlier job, by a process outside the group.
 * (tests/fuzz/fuzz_mcast.c searches for more of them at random.) */
#include "mcast/state.h"
#include "tests/simulation/mcast_fixture.h"

enum { MEMBERS = 4, HOSTILE = 3, AUTHOR = 1, OTHER = 2 };

/* Only the test sends. */
static struct mcast_world_config quiet_config(void)
{
    struct mcast_world_config config = mcast_world_config_of(MEMBERS);
    config.senders = 0;
    return config;
}

static struct cw_mcast_prefix prefix_of(uint64_t id, uint16_t author)
{
    return (struct cw_mcast_prefix){.group_high = (uint32_t)(id >> 32), .author = author, .sender = author, .epoch = 1};
}

/* ---- from a member ---- */

/* Only the test takes events; at most `event_count_max` events of groups wait. */
static void held_make(uint32_t event_count_max)
{
    struct mcast_world_config config = quiet_config();
    config.mcast.event_count_max = event_count_max;
    world_make(&config);
    for (uint32_t member = 0; member < MEMBERS; member++) {
        world.hosts.list[member].work = NULL;
        world.hosts.list[member].holds_events = true;
    }
}

/* A short message of 8 bytes, well signed, from the hostile member; or, behind the same header, invalid codec data of a
 * longer one. */
static void message_send(uint64_t message, uint32_t place, bool is_damaged)
{
    struct cw_endpoint *endpoint = world.hosts.list[HOSTILE].endpoint;
    uint64_t id = mcast_world_group(&world);
    struct cw_extension_header header = {
        .type = CW_MCAST_DATA, .flow = (uint32_t)id, .number = CW_MCAST_NUMBER_FIRST + message};
    struct {
        struct cw_mcast_data data;
        struct cw_mcast_chunk chunk;
    } packet = {.data = {.prefix = prefix_of(id, HOSTILE), .place = place, .message = message, .total = 8}};
    struct cw_wire_key key;
    static_assert(sizeof(packet.chunk) == 8, "as long as the message");
    if (is_damaged) {
        packet.data.flags = CW_MCAST_PACKED;
        packet.data.total = 4000;
        packet.chunk = (struct cw_mcast_chunk){.raw_bytes = 4000, .codec = CW_CODEC_LORENZO};
    }
    cw_extension_key(endpoint, id, HOSTILE, &key);
    mcast_packet_forge(endpoint, GROUP_IPV4, header, &key, &packet, sizeof(packet));
}

/* A dropped chunk has no effect: the message after it is accepted, with its own length. */
static void a_damaged_chunk_begins_nothing(void **state)
{
    struct cw_event event;
    held_make(CW_MCAST_DEFAULT_EVENTS);
    message_send(0, 0, true);
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    assert_int_equal(member_counters(0).drop_malformed, 1);
    message_send(0, 0, false);
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    assert_int_equal(member_counters(0).drop_malformed, 1);
    assert_int_equal(cw_endpoint_events(world.hosts.list[0].endpoint, &event, 1), 1);
    assert_int_equal(event.kind, CW_EVENT_EXTENSION);
    assert_int_equal(world.members[0].heard, 1);
    assert_int_equal(world.members[0].heard_bytes, 8);
}

/* The message behind one that waits for room is not the next of its kind: correct ones are notified, and no member
 * searches forever. */
static void who_counts_wrongly_holds_nobody_up(void **state)
{
    struct cw_event event;
    held_make(1);
    message_send(0, 0, false);
    message_send(1, 1, false);
    message_send(2, 5, false);
    sim_hosts_run(&world.hosts, SIMULATION_MS);
    for (int i = 0; i < 100; i++) {
        while (cw_endpoint_events(world.hosts.list[0].endpoint, &event, 1) == 1) {
        }
        sim_hosts_run(&world.hosts, SIMULATION_MS / 10);
    }
    assert_int_equal(world.members[0].heard, 2);
}

/* ---- from elsewhere ---- */

/* A packet to the flood address, signed with the key of that id and author. */
static void flood_probe_forge(uint64_t id, uint16_t author, uint64_t number)
{
    struct cw_endpoint *endpoint = world.hosts.list[author].endpoint;
    struct cw_mcast_prefix prefix = prefix_of(id, author);
    struct cw_extension_header header = {.type = CW_MCAST_FLOOD_PROBE, .flow = (uint32_t)id, .number = number};
    struct cw_wire_key key;
    cw_extension_key(endpoint, id, author, &key);
    mcast_packet_forge(endpoint, FLOOD_IPV4, header, &key, &prefix, sizeof(prefix));
    sim_hosts_run(&world.hosts, SIMULATION_MS);
}

/* Of an earlier job under the same key, with other ids of groups; of no group, as all jobs once sent it; and of this
 * group, but again. */
static void a_flood_probe_that_is_replayed_proves_nothing(void **state)
{
    struct mcast_world_config config = quiet_config();
    config.multicast = CW_SIMULATOR_FLOODS;
    config.learning = true;
    world_make(&config);
    uint64_t id = mcast_world_group(&world);
    flood_probe_forge(0, 0, 0);
    flood_probe_forge(id ^ 2, AUTHOR, 1);
    assert_int_equal(member_counters(OTHER).flood_probes, 0);
    for (int again = 0; again < 2; again++) {
        flood_probe_forge(id, AUTHOR, 7);
        assert_int_equal(member_counters(OTHER).flood_probes, 1);
    }
}

/* Members of a group without streams yet get data that no member has signed. */
static void unauthentic_packets_need_no_memory(void **state)
{
    enum { PACKETS = 100 };
    struct mcast_world_config config = quiet_config();
    world_make(&config);
    uint64_t id = mcast_world_group(&world);
    for (uint32_t i = 0; i < PACKETS; i++) {
        struct cw_wire_key key = {.bytes = {(uint8_t)i, 1}};
        struct cw_mcast_data data = {.prefix = prefix_of(id, (uint16_t)(i % HOSTILE))};
        struct cw_extension_header header = {
            .type = CW_MCAST_DATA, .flow = (uint32_t)id, .number = CW_MCAST_NUMBER_FIRST + i};
        mcast_packet_forge(world.hosts.list[HOSTILE].endpoint, GROUP_IPV4, header, &key, &data, sizeof(data));
        sim_hosts_run(&world.hosts, SIMULATION_MS);
    }
    uint64_t dropped = 0;
    for (uint32_t member = 0; member < HOSTILE; member++) {
        const struct cw_mcast_group *group = world.members[member].group;
        dropped += member_counters(member).drop_tag;
        for (uint32_t sender = 0; sender < MEMBERS; sender++) {
            assert_true(sender == member || group->streams[sender] == NULL);
        }
    }
    assert_int_equal(dropped, PACKETS * (HOSTILE - 1)); /* packets that name oneself are dropped before */
}

int main(void)
{
    return WORLD_TESTS_RUN(a_damaged_chunk_begins_nothing, who_counts_wrongly_holds_nobody_up,
                           a_flood_probe_that_is_replayed_proves_nothing, unauthentic_packets_need_no_memory);
}
