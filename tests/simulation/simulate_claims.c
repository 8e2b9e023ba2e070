/* What congestion control and pacing promise, held as numbers in virtual time. */
#include "dataplane/port/port.h"
#include "tests/simulation/claims_world.h"
#include "tests/simulation/simulation.h"

static void incast_uses_the_port_and_is_fair(uint64_t seed)
{
    const struct sim_incast_settings settings = {
        .senders = 32,
        .rate_bps = 10000000000ull,
        .delay_ns = 20000,
        .queue_bytes = 256 * 1024,
        .warmup_ns = 50000000,
        .duration_ns = 100000000,
        .seed = seed,
    };
    struct sim_incast_result result;
    char error[CW_PORT_TEXT_BYTES] = "";
    assert_int_equal(sim_incast(&settings, &result, error, sizeof(error)), CW_OK);
    printf("incast, seed %llu: %.4f of the port, Jain %.4f, longest queue %llu bytes\n", (unsigned long long)seed,
           result.port_share, result.jain, (unsigned long long)result.queue_max_bytes);
    /* puts are counted whole, so a run may seem to have a little more than all of it */
    assert_true(result.port_share >= 0.95 && result.port_share <= 1.01);
    assert_true(result.jain >= 0.95);
    assert_true(result.queue_max_bytes <= settings.queue_bytes);
}

static void test_incast_uses_the_port_and_is_fair(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_is_short() ? 1 : 3);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        incast_uses_the_port_and_is_fair(seed);
    }
}

static void paced_flows_keep_their_rates(uint64_t seed)
{
    const struct sim_pace_settings settings = {
        .flows = test_is_short() ? 20 : 1000,
        .rate_least_bps = 5000000,
        .rate_most_bps = test_is_short() ? 20000000 : 10000000,
        .packets = 1050,
        .seed = seed,
    };
    struct sim_pace_result result;
    char error[CW_PORT_TEXT_BYTES] = "";
    assert_int_equal(sim_pace(&settings, &result, error, sizeof(error)), CW_OK);
    printf("pacing, seed %llu: %llu packets, rate off by %.5f at most, %.1f bytes above rate x T + one frame at most\n",
           (unsigned long long)seed, (unsigned long long)result.packets, result.rate_error_max,
           result.excess_bytes_max);
    assert_true(result.windows >= settings.flows);
    assert_true(result.rate_error_max <= 0.01);
    /* what frames of other flows on the same line shift in time is a small part of a frame */
    assert_true(result.excess_bytes_max <= 64);
}

static void test_paced_flows_keep_their_rates(void **state)
{
    struct test_seeds seeds = test_seeds(1, test_is_short() ? 1 : 2);
    for (uint64_t seed; (seed = test_seeds_next(&seeds)) != 0;) {
        paced_flows_keep_their_rates(seed);
    }
}

/* One message at a time, on lines where a full frame takes longer than a small one takes for all the way: with two in
 * flight it would be half of the line. */
static void test_a_slow_line_is_filled(void **state)
{
    enum { PUTS = 40, BYTES = 64 * 1024 };
    static const uint64_t rates_bps[] = {10000000, 100000000};
    for (size_t i = 0; i < sizeof(rates_bps) / sizeof(rates_bps[0]); i++) {
        struct sim_hosts_config config;
        struct sim_hosts hosts;
        struct sim_stream stream;
        sim_hosts_config_init(&config, 2);
        config.node.up.rate_bps = config.node.down.rate_bps = rates_bps[i];
        config.node.up.delay_ns = config.node.down.delay_ns = 50000;
        simulation_hosts(&hosts, &config);
        sim_stream_start(&hosts, &stream, 0, 1, BYTES, PUTS);
        stream.under_way_max = 1;
        uint64_t begin_ns = sim_hosts_now(&hosts);
        while (hosts.list[0].completed < PUTS && cw_simulator_step(hosts.simulator)) {
        }
        double share = (double)PUTS * BYTES * 8e9 / (double)(sim_hosts_now(&hosts) - begin_ns) / (double)rates_bps[i];
        printf("one put of 64 KiB at a time at %llu Mb/s: %.3f of the line\n",
               (unsigned long long)rates_bps[i] / 1000000, share);
        assert_true(share >= 0.78);
        sim_hosts_destroy(&hosts);
    }
}

/* An idle peer costs little; a thousand endpoints fit one process. */
static void test_memory_of_peers(void **state)
{
    struct sim_hosts_config config;
    sim_hosts_config_init(&config, 2);
    struct sim_hosts hosts;
    simulation_hosts(&hosts, &config);
    struct cw_memory_info memory = cw_endpoint_memory(hosts.list[0].endpoint);
    printf("memory: %llu bytes an idle peer, %llu more with packets in flight\n", (unsigned long long)memory.peer_bytes,
           (unsigned long long)memory.active_flow_bytes);
    assert_true(memory.peer_bytes <= 1024);
    assert_true(memory.active_flow_bytes <= 4096);
    /* idle again, a flow gives back what it was lent */
    uint32_t peer = sim_hosts_peer(&hosts, 0, 1);
    struct cw_put put = {
        .peer = peer, .region = hosts.list[1].token, .source = {.contiguous = {hosts.list[0].memory, 100000}}};
    assert_int_equal(cw_put(hosts.list[0].endpoint, &put), CW_OK);
    cw_simulator_run_until(hosts.simulator, 1000000000);
    assert_int_equal(hosts.list[1].arrived_bytes, 100000);
    struct cw_peer_info info;
    assert_int_equal(cw_peer_query(hosts.list[0].endpoint, peer, &info), CW_OK);
    assert_int_equal(info.bytes_active, 0);
    sim_hosts_destroy(&hosts);
}

/* Each of many endpoints streams one put to 32 others. */
static void test_a_thousand_endpoints(void **state)
{
    enum { FLOWS = 32, BYTES = 4000 };
    uint32_t count = test_is_short() ? 100 : 1000;
    struct sim_hosts_config config;
    sim_hosts_config_init(&config, count);
    config.endpoint.peer_count_max = 2 * FLOWS + 8;
    config.endpoint.reassembly_count_max = 1024;
    config.endpoint.operation_count_max = 512;
    config.endpoint.event_count_max = 256;
    config.memory_bytes = FLOWS * BYTES;
    struct sim_hosts hosts;
    simulation_hosts(&hosts, &config);
    for (uint32_t from = 0; from < count; from++) {
        for (uint32_t k = 1; k <= FLOWS; k++) {
            uint32_t to = (from + k) % count;
            struct cw_put put = {.peer = sim_hosts_peer(&hosts, from, to),
                                 .region = hosts.list[to].token,
                                 .offset = (k - 1) * BYTES,
                                 .source = {.contiguous = {hosts.list[from].memory, BYTES}},
                                 .flags = CW_SIGNAL};
            assert_int_equal(cw_put(hosts.list[from].endpoint, &put), CW_OK);
        }
        sim_host_wake(&hosts.list[from]);
    }
    cw_simulator_run_until(hosts.simulator, 5000000000ull);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(hosts.list[i].arrived_puts, FLOWS);
        assert_int_equal(hosts.list[i].completed, FLOWS);
        assert_int_equal(hosts.list[i].failed, 0);
    }
    sim_hosts_destroy(&hosts);
}

int main(void)
{
    return TESTS_RUN(test_incast_uses_the_port_and_is_fair, test_paced_flows_keep_their_rates,
                     test_a_slow_line_is_filled, test_memory_of_peers, test_a_thousand_endpoints);
}
