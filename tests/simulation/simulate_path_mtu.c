/* Paths that are narrower than the ports at their ends, or become so, and say nothing: the largest packets that arrive
 * are found, all data does, and where that cannot be the session says why. */
#include "dataplane/flow/path_mtu.h"
#include "dataplane/state/endpoint.h"
#include "tests/simulation/fixture.h"

enum {
    ETHERNET = 14,
    PUT_BYTES = 256 << 10,
    PUTS = 8,
    SEALED_VARIANTS = 2,
};

static void trunk_mtu(uint32_t mtu_bytes)
{
    for (uint32_t direction = 0; direction < 2; direction++) {
        struct cw_link *link = cw_simulator_link_trunk(hosts.simulator, 0, direction);
        struct cw_link_config config = link->config;
        config.frame_bytes_max = mtu_bytes + ETHERNET;
        cw_link_configure(link, &config);
    }
}

static void world_open(uint32_t mtu_bytes, uint32_t path_bytes, double loss, bool sealed)
{
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.mtu_bytes = mtu_bytes;
    config.memory_bytes = 16 << 20;
    config.switches = 2;
    config.trunk.loss = loss;
    config.endpoint.encryption = sealed ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF;
    hosts_make(&config);
    trunk_mtu(path_bytes);
}

static const struct cw_session *session_of(void)
{
    return &cw_endpoint_flow(hosts.list[0].endpoint, sim_hosts_peer(&hosts, 0, 1))->session;
}

static uint64_t too_long(void)
{
    return cw_simulator_link_trunk(hosts.simulator, 0, 0)->counters.dropped_length;
}

/* All of it arrives. */
static void send(void)
{
    (void)sim_stream_send(&hosts, 0, 1, PUT_BYTES, PUTS, 60000 * SIMULATION_MS);
    assert_completed(0, PUTS);
}

static void the_largest_is_found(void **state)
{
    static const struct {
        uint32_t port, path, found; /* MTUs */
    } table[] = {
        {1500, 1500, 1500}, {1500, 1499, 1450},    {1500, 1450, 1450},  {1500, 1420, 1400}, {1500, 1280, 1280},
        {9000, 9000, 9000}, {9000, 8896, 8800},    {9000, 1500, 1500},  {9600, 4096, 4000}, {1280, 1280, 1280},
        {576, 576, 576},    {64000, 64000, 64000}, {64000, 9000, 8800},
    };
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        for (uint32_t variant = 0; variant < 2 * SEALED_VARIANTS; variant++) {
            bool lossy = variant % 2 == 1, sealed = variant / 2 == 1;
            world_open(table[i].port, table[i].path, lossy ? 0.02 : 0, sealed);
            send();
            sim_hosts_run(&hosts, 3000 * SIMULATION_MS); /* it may take longer than the data */
            uint32_t mac = sealed ? CW_WIRE_MAC_BYTES : 0;
            /* sizes of probes are multiples of 8 or 64 bytes, except the limit of both ports */
            uint32_t found = cw_wire_payload_bytes(table[i].found) - mac;
            assert_in_range(session_of()->payload_bytes_max, found - (found < 8192 ? 24 : 88), found);
            assert_true(table[i].found < table[i].port || session_of()->payload_bytes_max == found);
            assert_true(lossy || too_long() <= 42); /* probes alone */
            send();
        }
    }
}

/* A larger one is looked for now and then. */
static void a_path_that_becomes_wider_is_used(void **state)
{
    world_open(9000, 1500, 0, false);
    send();
    sim_hosts_run(&hosts, 3000 * SIMULATION_MS);
    send();
    assert_int_equal(session_of()->payload_bytes_max, cw_wire_payload_bytes(1500));
    trunk_mtu(9000);
    sim_hosts_run(&hosts, 5000 * SIMULATION_MS);
    send();
    assert_int_equal(session_of()->payload_bytes_max, cw_wire_payload_bytes(1500));
    sim_hosts_run(&hosts, 30000 * SIMULATION_MS);
    send();
    sim_hosts_run(&hosts, 1000 * SIMULATION_MS);
    assert_int_equal(session_of()->payload_bytes_max, cw_wire_payload_bytes(9000));
}

/* Packets in flight cannot be divided again: the session ends, with the reason, before the peer would be declared
 * failed. */
static void a_path_that_becomes_narrower_is_reported(void **state)
{
    static const struct {
        uint32_t before, after;
    } table[] = {{1500, 1400}, {1500, 1280}, {1280, 1000}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        struct sim_stream stream;
        world_open(1500, table[i].before, 0, false);
        send();
        sim_stream_start(&hosts, &stream, 0, 1, PUT_BYTES, 1000);
        sim_hosts_run(&hosts, 5 * SIMULATION_MS);
        trunk_mtu(table[i].after);
        uint64_t before_ns = sim_hosts_now(&hosts);
        while (hosts.list[0].down == 0 && sim_hosts_now(&hosts) - before_ns < 60000 * SIMULATION_MS) {
            sim_hosts_run(&hosts, 10 * SIMULATION_MS);
        }
        assert_int_equal(hosts.list[0].down, 1);
        assert_int_equal(hosts.list[0].down_status, CW_ERROR_PATH_MTU);
        assert_true(sim_hosts_now(&hosts) - before_ns < CW_DEFAULT_FAILURE_TIMEOUT_NS);
        sim_hosts_run(&hosts, 10 * SIMULATION_MS); /* the other end may wait for something, too */
        assert_int_equal(hosts.list[1].down, 1);
        assert_int_equal(hosts.list[1].down_status, CW_ERROR_PATH_MTU);
    }
}

/* One that is narrower for a moment only is waited for; and silence is no matter of size. */
static void what_passes_is_no_reason(void **state)
{
    static const uint32_t mtus[] = {1300, 20};
    for (size_t i = 0; i < sizeof(mtus) / sizeof(mtus[0]); i++) {
        struct sim_stream stream;
        world_open(1500, 1500, 0, false);
        send();
        sim_stream_start(&hosts, &stream, 0, 1, PUT_BYTES, 50);
        sim_hosts_run(&hosts, 5 * SIMULATION_MS);
        trunk_mtu(mtus[i]);
        sim_hosts_run(&hosts, (mtus[i] < 100 ? 8000 : 200) * SIMULATION_MS);
        assert_true(too_long() > 0);
        trunk_mtu(1500);
        (void)sim_stream_finish(&hosts, 0, 60000 * SIMULATION_MS);
        assert_int_equal(hosts.list[0].down, 0);
        assert_int_equal(hosts.list[0].completed, 50);
    }
}

int main(void)
{
    return HOSTS_TESTS_RUN(the_largest_is_found, a_path_that_becomes_wider_is_used,
                           a_path_that_becomes_narrower_is_reported, what_passes_is_no_reason);
}
