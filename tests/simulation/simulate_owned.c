/* Addresses that no kernel has: two hosts resolve each other and exchange puts, while a third sends requests to one of
 * them, with the answers among its packets. Over IPv4 and IPv6. */
#include "tests/simulation/attack.h"
#include "tests/simulation/fixture.h"

#include "dataplane/flow/extension.h"
#include "dataplane/flow/owned.h"
#include "dataplane/state/endpoint.h"
#include "tests/unit/dataplane/neighbour_frames.h"

enum { ONE, TWO, ASKER, HOSTS, PUTS = 2000, PUT_BYTES = 3000, ANSWERS_MAX = 1000 };

static struct {
    struct cw_neighbour_cache *neighbours[2];
    struct party parties[HOSTS];
    bool is_v4;
    uint8_t frame[FRAME_ROOM];
    struct recording recording; /* frames to the third host */
} world;

static bool is_the_askers(uint32_t node, const uint8_t *frame, uint32_t length)
{
    return node == ASKER && length >= 42 && memcmp(frame, everybody_mac, 6) != 0;
}

static void own(uint32_t node)
{
    struct cw_neighbour_config config = {
        .ip = world.parties[node].ip, .bits = world.is_v4 ? CW_IP_V4_BITS + 24 : 64, .frame_bytes_max = 1514};
    memcpy(config.mac, world.parties[node].mac, 6);
    world.neighbours[node] = cw_neighbour_create(&config);
    assert_non_null(world.neighbours[node]);
    assert_int_equal(cw_endpoint_own(hosts.list[node].endpoint, world.neighbours[node]), CW_OK);
}

static void world_open(bool is_v4)
{
    struct cw_ip v6_first = {{0xfd, 0x77, [15] = 1}};
    struct sim_hosts_config config = sim_hosts_config_of(HOSTS);
    config.seed = is_v4 ? 4 : 6;
    config.ip_first = is_v4 ? config.ip_first : v6_first;
    memset(&world, 0, sizeof(world));
    world.is_v4 = is_v4;
    hosts_make(&config);
    for (uint32_t node = 0; node < HOSTS; node++) {
        world.parties[node].ip = cw_endpoint_address(hosts.list[node].endpoint).ip;
        memcpy(world.parties[node].mac, cw_simulator_mac(hosts.simulator, node), 6);
    }
    own(ONE);
    own(TWO);
    world.recording.kind = CW_SIMULATOR_ARRIVAL;
    world.recording.wants = is_the_askers;
    recording_begin(&world.recording, &hosts, ANSWERS_MAX);
}

static void world_close(void)
{
    sim_hosts_destroy(&hosts);
    cw_neighbour_destroy(world.neighbours[ONE]);
    cw_neighbour_destroy(world.neighbours[TWO]);
    free(world.recording.frames);
}

/* The third host sends the frame in world.frame; the answer is `wanted`, or there is none: NULL. */
static void query(uint32_t bytes, const uint8_t *wanted, uint32_t wanted_bytes)
{
    struct sim_host *asker = &hosts.list[ASKER];
    world.recording.count = 0;
    assert_true(cw_extension_frame(asker->endpoint, world.frame, bytes));
    sim_host_wake(asker);
    sim_hosts_run(&hosts, SIMULATION_MS);
    assert_int_equal(world.recording.count, wanted != NULL);
    if (wanted != NULL) {
        assert_int_equal(world.recording.frames[0].length, wanted_bytes);
        assert_memory_equal(world.recording.frames[0].bytes, wanted, wanted_bytes);
    }
}

static void questions_send(uint32_t sequence)
{
    uint8_t wanted[FRAME_ROOM];
    const struct party *one = &world.parties[ONE], *asker = &world.parties[ASKER];
    const struct party unknown = {.ip = one->ip}, group = solicited_of(&one->ip);
    uint32_t data = sequence * 37 % 1400;
    if (world.is_v4) {
        uint32_t bytes = arp_put(wanted, asker->mac, 2, one, asker);
        query(arp_put(world.frame, everybody_mac, 1, asker, &unknown), wanted, bytes);
        bytes = v4_echo_put(wanted, 0, 64, asker, one, sequence, data);
        query(v4_echo_put(world.frame, 8, 64, one, asker, sequence, data), wanted, bytes);
        world.frame[24] ^= 1;
        query(bytes, NULL, 0);
    } else {
        uint32_t bytes = nd_put(wanted, 136, 0x60, asker, one, &one->ip, one->mac);
        query(nd_put(world.frame, 135, 0, &group, asker, &one->ip, asker->mac), wanted, bytes);
        bytes = v6_echo_put(wanted, 129, 64, asker, one, sequence, data);
        query(v6_echo_put(world.frame, 128, 64, one, asker, sequence, data), wanted, bytes);
        world.frame[56] ^= 1;
        query(bytes, NULL, 0);
    }
}

static void hosts_find_each_other(void)
{
    for (uint32_t node = 0; node < 2; node++) {
        struct sim_host *host = &hosts.list[node];
        assert_int_equal(cw_neighbour_want(world.neighbours[node], &world.parties[1 - node].ip, sim_hosts_now(&hosts)),
                         CW_OK);
        sim_host_wake(host);
    }
    sim_hosts_run(&hosts, SIMULATION_MS);
    for (uint32_t node = 0; node < 2; node++) {
        uint8_t mac[6];
        assert_true(cw_neighbour_find(world.neighbours[node], &world.parties[1 - node].ip, mac));
        assert_memory_equal(mac, world.parties[1 - node].mac, 6);
        assert_true(counted(node, CW_COUNTER_NEIGHBOUR_REQUESTS) <= 1);
    }
}

static void puts_go_on_beside_questions(void **state)
{
    for (int is_v4 = 0; is_v4 < 2; is_v4++) {
        enum { ROUNDS = 50 };
        struct sim_stream there, back;
        world_open(is_v4 != 0);
        hosts_find_each_other();
        struct sim_host *one = &hosts.list[ONE], *two = &hosts.list[TWO];
        uint64_t before = cw_endpoint_counter(one->endpoint, CW_COUNTER_NEIGHBOUR_ANSWERS);
        sim_stream_start(&hosts, &there, ONE, TWO, PUT_BYTES, PUTS);
        sim_stream_start(&hosts, &back, TWO, ONE, PUT_BYTES, PUTS);
        for (uint32_t i = 0; i < ROUNDS; i++) {
            questions_send(i);
        }
        (void)sim_stream_finish(&hosts, ONE, 10000 * SIMULATION_MS);
        (void)sim_stream_finish(&hosts, TWO, 10000 * SIMULATION_MS);
        assert_int_equal(one->completed + two->completed, 2 * PUTS);
        assert_int_equal(one->failed + two->failed, 0);
        assert_int_equal(cw_endpoint_counter(one->endpoint, CW_COUNTER_NEIGHBOUR_ANSWERS) - before, 2 * ROUNDS);
        assert_int_equal(cw_endpoint_counter(one->endpoint, CW_COUNTER_DROP_NEIGHBOUR), ROUNDS);
        assert_int_equal(cw_endpoint_counter(one->endpoint, CW_COUNTER_DROP_NEIGHBOUR_LIMIT), 0);
        world_close();
    }
}

/* A flow that was begun with an unused MAC address; the owner of the address advertises its own, and puts arrive. */
static void flows_go_to_the_mac_address_that_is_found(void **state)
{
    for (int is_v4 = 0; is_v4 < 2; is_v4++) {
        world_open(is_v4 != 0);
        struct sim_host *one = &hosts.list[ONE], *two = &hosts.list[TWO];
        struct cw_address wrong = cw_endpoint_address(two->endpoint);
        uint32_t peer;
        wrong.mac[5] = 0x77;
        assert_int_equal(cw_peer_add(one->endpoint, &wrong, &peer), CW_OK);
        assert_int_equal(cw_peer_connect(one->endpoint, peer), CW_OK);
        sim_host_wake(one);
        sim_hosts_run(&hosts, 100 * SIMULATION_MS);
        assert_int_equal(one->up, 0);
        hosts_find_each_other();
        sim_hosts_run(&hosts, 1000 * SIMULATION_MS);
        assert_int_equal(one->up, 1);
        (void)sim_stream_send(&hosts, ONE, TWO, PUT_BYTES, 10, 1000 * SIMULATION_MS);
        assert_int_equal(one->completed, 10);
        assert_int_equal(one->failed, 0);
        world_close();
    }
}

int main(void)
{
    return HOSTS_TESTS_RUN(puts_go_on_beside_questions, flows_go_to_the_mac_address_that_is_found);
}
