#include "tests/simulation/tunnel_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/unit/pair_port.h"

enum { UDP_PORT = CW_UDP_PORT, HEADER = 54, MTU = 1500, BURST = 32 };

static const uint64_t MS = 1000000;
static const uint64_t STEP_NS = 100000;

void tunnel_options_init(struct tunnel_options *options, uint64_t seed)
{
    *options = (struct tunnel_options)
    {
        .seed = seed, .stream_count = 4, .flow_count = 8, .rate_bps = 100000000, .line_bps = 1000000000,
        .delay_ns = 5 * MS,
#if defined(CW_HAVE_DPDK)
        .encrypt = true,
#endif
        .key_of_second = 0x5a,
    };
}

/* ---- frames ---- */

/* Ethernet, IPv4, UDP, and then: sequence, time; the rest follows from these. */
static void frame_write(uint8_t *frame, uint32_t site, uint32_t flow, uint32_t sequence, uint32_t length,
                        uint64_t time_ns)
{
    static const uint8_t head[HEADER] = {0x02, 0, 0, 0, 0, 0,    0x02,      0,         0,
                                         0,    0, 0, 8, 0, 0x45, [23] = 17, [26] = 10, [30] = 10};
    struct cw_random random;
    memcpy(frame, head, HEADER);
    frame[4] = (uint8_t)(0x10 + 1 - site);
    frame[5] = (uint8_t)flow;
    frame[10] = (uint8_t)(0x10 + site);
    frame[11] = (uint8_t)flow;
    frame[29] = (uint8_t)(1 + site);
    frame[33] = (uint8_t)(2 - site);
    frame[35] = (uint8_t)flow;
    frame[37] = 9;
    memcpy(frame + 42, &sequence, 4);
    memcpy(frame + 46, &time_ns, 8);
    cw_random_seed(&random, (uint64_t)sequence << 32 | flow << 1 | site);
    cw_random_fill(&random, frame + HEADER, length - HEADER);
}

static void frame_check(struct tunnel_site *site, const struct cw_received *packet)
{
    uint8_t wanted[14 + MTU];
    uint32_t sequence;
    uint64_t time_ns;
    assert_in_range(packet->length, HEADER, sizeof(wanted));
    uint32_t flow = packet->data[5];
    assert_true(flow < FLOWS_MAX);
    memcpy(&sequence, packet->data + 42, 4);
    memcpy(&time_ns, packet->data + 46, 8);
    frame_write(wanted, 1 - site->index, flow, sequence, packet->length, time_ns);
    assert_memory_equal(packet->data, wanted, packet->length);
    assert_true(sequence >= site->expected[flow]); /* once, and in order */
    site->expected[flow] = sequence + 1;
    uint64_t delay_ns = cw_simulator_now(site->world->simulator) - time_ns;
    site->delay_total_ns += delay_ns;
    site->delay_max_ns = delay_ns > site->delay_max_ns ? delay_ns : site->delay_max_ns;
    site->received++;
}

static void hosts_receive(struct tunnel_site *site)
{
    struct cw_received packets[BURST];
    uint32_t count = site->deaf ? 0 : cw_port_receive(site->hosts, packets, BURST);
    while (count > 0) {
        for (uint32_t i = 0; i < count; i++) {
            frame_check(site, &packets[i]);
        }
        cw_port_release(site->hosts, packets, count);
        count = cw_port_receive(site->hosts, packets, BURST);
    }
}

/* False: there is no room towards the gate. */
static bool hosts_send(struct tunnel_site *site, struct cw_transmit *packet)
{
    if (cw_port_transmit(site->hosts, packet, 1) == 0) {
        cw_port_cancel(site->hosts, packet, 1);
        return false;
    }
    site->sent++;
    if (site->is_running) {
        cw_port_wake(site->outer);
    }
    return true;
}

void tunnel_site_send(struct tunnel_site *site, uint32_t flow, uint32_t length)
{
    struct cw_transmit packet;
    assert_int_equal(cw_port_reserve(site->hosts, &packet, 1), 1);
    frame_write(packet.data, site->index, flow, site->sequence[flow], length, cw_simulator_now(site->world->simulator));
    packet.length = length;
    site->sequence[flow] += hosts_send(site, &packet);
}

void tunnel_site_inject(struct tunnel_site *site, const void *frame, uint32_t length)
{
    struct cw_transmit packet;
    assert_int_equal(cw_port_reserve(site->hosts, &packet, 1), 1);
    memcpy(packet.data, frame, length);
    packet.length = length;
    assert_true(hosts_send(site, &packet));
}

/* ---- sites ---- */

static uint64_t site_turn(void *context, uint64_t now_ns)
{
    struct tunnel_site *site = context;
    cw_gate_turn(site->gate, now_ns);
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    for (uint32_t i = 0; i < cw_tunnel_stream_count(tunnel); i++) {
        uint64_t bytes = cw_tunnel_queue_bytes(tunnel, i);
        site->queue_max_bytes = bytes > site->queue_max_bytes ? bytes : site->queue_max_bytes;
    }
    if (site->world->options.hosts_turn != NULL) {
        uint64_t hosts_ns = site->world->options.hosts_turn(site, now_ns);
        uint64_t gate_ns = cw_gate_deadline(site->gate);
        return hosts_ns < gate_ns ? hosts_ns : gate_ns;
    }
    hosts_receive(site);
    return cw_gate_deadline(site->gate);
}

static void news(void *context, uint32_t stream, bool up, int status)
{
    struct tunnel_site *site = context;
    (void)stream;
    site->news_up += up;
    site->news_down += !up;
    site->news_status = up ? site->news_status : status;
}

static uint32_t streams_of(const struct tunnel_options *options, uint32_t site)
{
    return site == 1 && options->streams_of_second != 0 ? options->streams_of_second : options->stream_count;
}

void tunnel_site_start(struct tunnel_site *site)
{
    const struct tunnel_options *options = &site->world->options;
    struct cw_simulator *simulator = site->world->simulator;
    uint32_t streams = streams_of(options, site->index);
    char error[200] = "";
    struct cw_endpoint_config config;
    struct cw_gate_config gate;
    if (site->lives > 0) {
        cw_simulator_restart(simulator, site->index);
    }
    assert_int_equal(cw_port_sim_open(simulator, site->index, &site->outer), CW_OK);
    cw_endpoint_config_init(&config);
    cw_tunnel_endpoint_config(&config, streams);
    config.address = (struct cw_address){.ipv4 = 0x0a090001u + site->index, .udp_port = UDP_PORT};
    config.seed = cw_random_derive(options->seed, 100 * site->lives++ + site->index);
    config.encryption = options->encrypt ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF;
    config.failure_timeout_ns = 2000 * MS;
    memset(config.job_key, site->index == 1 ? options->key_of_second : 0x5a, sizeof(config.job_key));
    uint64_t now_ns = cw_simulator_now(simulator);
    if (cw_endpoint_create(&config, site->outer, now_ns, &site->endpoint, error, sizeof(error)) != CW_OK) {
        fail_msg("%s", error);
    }
    cw_gate_config_init(&gate);
    gate.port = site->inner;
    gate.context = site;
    gate.drops_multicast = options->drops_multicast;
    gate.tunnel.stream_count = streams;
    gate.tunnel.rate_bps = options->rate_bps;
    gate.tunnel.queue_bytes = options->queue_bytes;
    gate.tunnel.ring_bytes = options->ring_bytes;
    gate.tunnel.news = news;
    struct cw_address peer = {.ipv4 = 0x0a090002u - site->index, .udp_port = UDP_PORT};
    memcpy(peer.mac, cw_simulator_mac(simulator, 1 - site->index), 6);
    assert_int_equal(cw_peer_add(site->endpoint, &peer, &gate.tunnel.peers[0]), CW_OK);
    for (uint32_t i = 1; i < streams; i++) {
        assert_int_equal(cw_peer_stream(site->endpoint, gate.tunnel.peers[0], i, &gate.tunnel.peers[i]), CW_OK);
    }
    assert_int_equal(cw_gate_create(site->endpoint, &gate, now_ns, &site->gate), CW_OK);
    cw_simulator_attach(simulator, site->index, site_turn, site);
    site->is_running = true;
}

static void site_end(struct tunnel_site *site)
{
    site->is_running = false;
    cw_endpoint_destroy(site->endpoint);
    cw_gate_destroy(site->gate);
    cw_port_close(site->outer);
}

void tunnel_site_crash(struct tunnel_site *site)
{
    cw_simulator_crash(site->world->simulator, site->index);
    site_end(site);
}

uint64_t tunnel_site_counter(const struct tunnel_site *site, enum cw_tunnel_counter counter)
{
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < cw_tunnel_stream_count(tunnel); i++) {
        sum += cw_tunnel_counter(tunnel, i, counter);
    }
    return sum;
}

/* ---- the world ---- */

static struct cw_link_config link_of(const struct tunnel_options *options)
{
    return (struct cw_link_config){.rate_bps = options->line_bps,
                                   .delay_ns = options->delay_ns / 2,
                                   .queue_limit_bytes = 1 << 20,
                                   .overhead_bytes = CW_ETHERNET_OVERHEAD_BYTES,
                                   .loss = options->loss,
                                   .duplicate = options->other_faults,
                                   .corrupt = options->other_faults,
                                   .reorder = options->other_faults,
                                   .reorder_delay_max_ns = options->other_faults > 0 ? 2 * MS : 0};
}

void tunnel_world_open(struct tunnel_world *world, const struct tunnel_options *options)
{
    struct cw_simulator_config config;
    struct cw_simulator_node_config node;
    *world = (struct tunnel_world){.options = *options};
    cw_random_seed(&world->random, options->seed);
    cw_simulator_config_init(&config);
    config.seed = options->seed;
    config.node_count_max = SITES;
    config.bridge_count_max = 1;
    assert_int_equal(cw_simulator_create(&config, &world->simulator), CW_OK);
    cw_simulator_node_config_init(&node);
    node.up = node.down = link_of(options);
    node.down.loss = node.down.duplicate = node.down.corrupt = node.down.reorder = 0;
    assert_int_equal(cw_simulator_star(world->simulator, SITES, &node), 0);
    for (uint32_t i = 0; i < SITES; i++) {
        struct tunnel_site *site = &world->sites[i];
        struct cw_port *pair[2];
        pair_port_open(pair);
        site->world = world;
        site->index = i;
        site->inner = pair[0];
        site->hosts = pair[1];
        tunnel_site_start(site);
    }
}

void tunnel_world_close(struct tunnel_world *world)
{
    for (uint32_t i = 0; i < SITES; i++) {
        struct tunnel_site *site = &world->sites[i];
        if (site->is_running) {
            site_end(site);
        }
        cw_port_close(site->inner);
        cw_port_close(site->hosts);
    }
    cw_simulator_destroy(world->simulator);
}

void tunnel_world_run(struct tunnel_world *world, uint64_t duration_ns)
{
    cw_simulator_run_until(world->simulator, cw_simulator_now(world->simulator) + duration_ns);
    for (uint32_t i = 0; i < SITES && world->options.hosts_turn == NULL; i++) {
        hosts_receive(&world->sites[i]);
    }
}

static bool site_is_up(const struct tunnel_site *site)
{
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    uint32_t up = 0;
    for (uint32_t i = 0; i < cw_tunnel_stream_count(tunnel); i++) {
        up += cw_tunnel_is_up(tunnel, i);
    }
    return up == cw_tunnel_stream_count(tunnel);
}

bool tunnel_world_connect(struct tunnel_world *world, uint64_t limit_ns)
{
    uint64_t end_ns = cw_simulator_now(world->simulator) + limit_ns;
    while (!site_is_up(&world->sites[0]) || !site_is_up(&world->sites[1])) {
        if (cw_simulator_now(world->simulator) >= end_ns) {
            return false;
        }
        tunnel_world_run(world, MS);
    }
    return true;
}

void tunnel_world_traffic(struct tunnel_world *world, uint64_t rate_bps, uint64_t duration_ns)
{
    uint64_t end_ns = cw_simulator_now(world->simulator) + duration_ns;
    int64_t due[SITES] = {0}; /* bytes */
    while (cw_simulator_now(world->simulator) < end_ns) {
        for (uint32_t i = 0; i < SITES; i++) {
            due[i] += (int64_t)(rate_bps / 8 * STEP_NS / 1000000000);
            while (due[i] > 0) {
                bool is_short = cw_random_chance(&world->random, 0.4);
                uint32_t length = (uint32_t)cw_random_between(&world->random, 60, is_short ? 100 : 14 + MTU);
                uint32_t flow = (uint32_t)cw_random_below(&world->random, world->options.flow_count);
                tunnel_site_send(&world->sites[i], flow, length);
                due[i] -= length + 24;
            }
        }
        tunnel_world_run(world, STEP_NS);
    }
}

static uint64_t held(const struct tunnel_site *site)
{
    uint64_t frames = 0;
    const struct cw_tunnel *tunnel = cw_gate_tunnel(site->gate);
    for (uint32_t i = 0; i < cw_tunnel_stream_count(tunnel); i++) {
        frames += cw_tunnel_held(tunnel, i);
    }
    return frames;
}

void tunnel_world_heal(struct tunnel_world *world)
{
    struct tunnel_options options = world->options;
    options.loss = options.other_faults = 0;
    struct cw_link_config link = link_of(&options);
    for (uint32_t i = 0; i < SITES; i++) {
        world->sites[i].deaf = false;
        cw_link_configure(cw_simulator_link_up(world->simulator, i), &link);
    }
    uint64_t end_ns = cw_simulator_now(world->simulator) + 60000 * MS;
    tunnel_world_run(world, 20 * MS);
    while (held(&world->sites[0]) + held(&world->sites[1]) > 0) {
        assert_true(cw_simulator_now(world->simulator) < end_ns);
        tunnel_world_run(world, 10 * MS);
    }
    tunnel_world_run(world, 20 * MS);
}
