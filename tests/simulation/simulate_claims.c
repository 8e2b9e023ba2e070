/* The promises of congestion control, as numbers in virtual time; a thousand endpoints, each with flows to 32 others;
 * the memory of a flow, and of peers without any traffic. */
#include "tests/simulation/fixture.h"

/* Senders of one receiver share its port. */
static void incast_uses_the_port_and_is_fair(void **state)
{
    enum { SENDERS = 32, BYTES = 65536, UNDER_WAY = 4, WARM_MS = 50, LONG_MS = 100 };
    struct sim_stream streams[SENDERS];
    uint64_t before[SENDERS];
    double sum = 0, squares = 0;
    struct sim_hosts_config config = sim_hosts_config_of(SENDERS + 1);
    config.node.down.queue_limit_bytes = 256 << 10;
    config.memory_bytes = SENDERS * UNDER_WAY * BYTES;
    hosts_make(&config);
    for (uint32_t i = 0; i < SENDERS; i++) {
        sim_stream_start(&hosts, &streams[i], i, SENDERS, BYTES, UINT64_MAX);
        streams[i].space = UNDER_WAY * BYTES;
        streams[i].base = i * streams[i].space;
    }
    sim_hosts_run(&hosts, WARM_MS * SIMULATION_MS);
    for (uint32_t i = 0; i < SENDERS; i++) {
        before[i] = hosts.list[i].completed;
    }
    sim_hosts_run(&hosts, LONG_MS * SIMULATION_MS);
    for (uint32_t i = 0; i < SENDERS; i++) {
        double puts = (double)(hosts.list[i].completed - before[i]);
        sum += puts;
        squares += puts * puts;
    }
    double goodput_bps = sum * BYTES * 8 * 1000 / LONG_MS, jain = sum * sum / (SENDERS * squares);
    double share = goodput_bps / simulation_payload_share(false) / (double)config.node.down.rate_bps;
    uint64_t queue_bytes = cw_link_queue_bytes_max(cw_simulator_link_down(hosts.simulator, SENDERS));
    printf("incast: %.4f of the port, Jain %.4f, longest queue %llu bytes\n", share, jain,
           (unsigned long long)queue_bytes);
    /* puts are counted whole, so a run may seem to have a little more than all of it */
    assert_true(share >= 0.95 && share <= 1.01);
    assert_true(jain >= 0.95);
    assert_true(queue_bytes <= config.node.down.queue_limit_bytes);
}

/* One message at a time, on lines where a full frame takes longer than a small one takes for all the way: with two in
 * flight it would be half of the line. */
static void a_slow_line_is_filled(void **state)
{
    enum { PUTS = 40, BYTES = 64 * 1024 };
    static const uint64_t rates_bps[] = {10000000, 100000000};
    for (size_t i = 0; i < sizeof(rates_bps) / sizeof(rates_bps[0]); i++) {
        struct sim_stream stream;
        struct sim_hosts_config config = sim_hosts_config_of(2);
        config.node.up.rate_bps = config.node.down.rate_bps = rates_bps[i];
        config.node.up.delay_ns = config.node.down.delay_ns = 50000;
        hosts_make(&config);
        sim_stream_start(&hosts, &stream, 0, 1, BYTES, PUTS);
        stream.under_way_max = 1;
        uint64_t took_ns = sim_stream_finish(&hosts, 0, 100000 * SIMULATION_MS);
        double share = (double)PUTS * BYTES * 8e9 / (double)took_ns / (double)rates_bps[i];
        printf("one put of 64 KiB at a time at %llu Mb/s: %.3f of the line\n",
               (unsigned long long)rates_bps[i] / 1000000, share);
        assert_true(share >= 0.78);
    }
}

enum { HOSTS = 1000, FLOWS = 32, PUTS_A_FLOW = 6, PUT_BYTES = 3000, STRIDE = 31 };

struct sprayer {
    uint64_t posted;
    uint32_t peers[FLOWS];
    uint64_t tokens[FLOWS];
};

static void spray(struct sim_host *host, void *context, uint64_t now_ns)
{
    struct sprayer *sprayer = context;
    while (sprayer->posted < (uint64_t)FLOWS * PUTS_A_FLOW) {
        uint64_t to = sprayer->posted % FLOWS;
        uint64_t place = to * PUTS_A_FLOW + sprayer->posted / FLOWS; /* this flow's alone: distances are fixed */
        struct cw_put put = {
            .peer = sprayer->peers[to],
            .region = sprayer->tokens[to],
            .offset = place * PUT_BYTES,
            .source = {.contiguous = {.data = host->memory, .bytes = PUT_BYTES}},
            .flags = CW_SIGNAL | CW_MORE,
        };
        if (cw_put(host->endpoint, &put) != CW_OK) {
            break;
        }
        sprayer->posted++;
    }
}

static uint64_t flow_bytes_most(void)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct cw_peer_info info;
        for (uint32_t peer = 0; cw_peer_query(hosts.list[i].endpoint, peer, &info) == CW_OK; peer++) {
            most = info.bytes_active > most ? info.bytes_active : most;
        }
    }
    return most;
}

static void a_thousand_endpoints(void **state)
{
    struct sim_hosts_config config = sim_hosts_config_of(HOSTS);
    config.memory_bytes = FLOWS * PUTS_A_FLOW * PUT_BYTES;
    config.endpoint.peer_count_max = 2 * FLOWS + 2;
    config.endpoint.reassembly_count_max = 1024;
    config.endpoint.event_count_max = 512;
    config.endpoint.operation_count_max = 1024;
    hosts_make(&config);
    struct sprayer *sprayers = calloc(HOSTS, sizeof(*sprayers));
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (uint32_t flow = 0; flow < FLOWS; flow++) {
            uint32_t to = (i + 1 + flow * STRIDE) % HOSTS;
            sprayers[i].peers[flow] = sim_hosts_peer(&hosts, i, to);
            sprayers[i].tokens[flow] = hosts.list[to].token;
        }
        sim_host_begin(&hosts.list[i], spray, &sprayers[i]);
    }
    cw_simulator_run_until(hosts.simulator, 400 * SIMULATION_US);
    uint64_t active = flow_bytes_most();
    cw_simulator_run_until(hosts.simulator, 2000 * SIMULATION_MS);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_completed(i, FLOWS * PUTS_A_FLOW);
        assert_int_equal(hosts.list[i].arrived_puts, FLOWS * PUTS_A_FLOW);
        assert_int_equal(hosts.list[i].down, 0);
    }
    struct cw_memory_info memory = cw_endpoint_memory(hosts.list[0].endpoint);
    printf(
        "%d endpoints with %d flows each way: %d bytes an idle peer, at least %d more an active flow, most seen %d\n",
        HOSTS, FLOWS, (int)memory.peer_bytes, (int)memory.active_flow_bytes, (int)active);
    assert_true(memory.peer_bytes <= 1024);
    assert_true(active > 0);
    assert_true(memory.active_flow_bytes <= 4096);
    assert_int_equal(flow_bytes_most(), 0); /* all of it has been given back */
    free(sprayers);
}

static uint64_t touched_bytes(void)
{
    return cw_endpoint_memory(hosts.list[0].endpoint).touched_bytes;
}

static void peers_without_traffic_need_little_memory(void **state)
{
    enum { PEERS = 10000, USED = 7 };
    uint32_t peers[PEERS];
    struct sim_hosts_config config = sim_hosts_config_of(2);
    config.endpoint.peer_count_max = PEERS + 2;
    config.endpoint.reassembly_count_max = 2 * PEERS + 4;
    hosts_make(&config);
    struct cw_endpoint *endpoint = hosts.list[0].endpoint;
    uint64_t before = touched_bytes();
    for (uint32_t i = 0; i < PEERS; i++) {
        struct cw_address address = {.udp_port = CW_UDP_PORT, .mac = {2, 0, 1, 0, (uint8_t)(i >> 8), (uint8_t)i}};
        char text[CW_IP_TEXT_BYTES];
        snprintf(text, sizeof(text), "10.200.%u.%u", i >> 8, i & 255);
        assert_true(cw_ip_read(text, &address.ip));
        assert_int_equal(cw_peer_add(endpoint, &address, &peers[i]), CW_OK);
    }
    assert_int_equal(touched_bytes() - before, PEERS * 32);
    for (uint32_t i = 0; i < USED; i++) {
        assert_int_equal(cw_peer_connect(endpoint, peers[i * 1000]), CW_OK);
    }
    assert_int_equal(touched_bytes() - before, PEERS * 32 + USED * cw_endpoint_memory(endpoint).peer_bytes);
    for (uint32_t i = 0; i < PEERS; i++) { /* each number is still its address */
        struct cw_peer_info info;
        assert_int_equal(cw_peer_query(endpoint, peers[i], &info), CW_OK);
        assert_int_equal(info.address.mac[4] << 8 | info.address.mac[5], i);
        assert_int_equal(info.state, i % 1000 == 0 && i / 1000 < USED ? CW_PEER_CONNECTING : CW_PEER_CLOSED);
    }
}

int main(void)
{
    return HOSTS_TESTS_RUN(incast_uses_the_port_and_is_fair, a_slow_line_is_filled,
                           peers_without_traffic_need_little_memory, a_thousand_endpoints);
}
