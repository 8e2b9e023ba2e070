#include "tests/simulation/tunnel_world.h"
#include "tests/test.h"
#include "tests/unit/dataplane/pair_port.h"

enum { HEADER = 54, MTU = 1500, BURST = 32 };

static const uint64_t MS = 1000000;
static const uint64_t STEP_NS = 100000;

void tunnel_options_init(struct tunnel_options *options, uint64_t seed)
{
    *options = (struct tunnel_options){
        .seed = seed,
        .stream_count = 4,
        .flow_count = 8,
        .rate_bps = 100000000,
        .line_bps = 1000000000,
        .delay_ns = 5 * MS,
        .encrypt = true,
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
    uint64_t delay_ns = sim_hosts_now(&site->world->gates) - time_ns;
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
        sim_host_wake(&site->world->gates.list[site->index]);
    }
    return true;
}

void tunnel_site_send(struct tunnel_site *site, uint32_t flow, uint32_t length)
{
    struct cw_transmit packet;
    assert_int_equal(cw_port_reserve(site->hosts, &packet, 1), 1);
    frame_write(packet.data, site->index, flow, site->sequence[flow], length, sim_hosts_now(&site->world->gates));
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

static uint64_t site_turn(struct sim_host *host, uint64_t now_ns)
{
    struct tunnel_site *site = &((struct tunnel_world *)host->hosts->config.owner)->sites[host->node];
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
    site->news_up += up;
    site->news_down += !up;
    site->news_status = up ? site->news_status : status;
}

static uint32_t streams_of(const struct tunnel_options *options, uint32_t site)
{
    return site == 1 && options->streams_of_second != 0 ? options->streams_of_second : options->stream_count;
}

static void site_prepare(struct sim_host *host, struct cw_endpoint_config *config)
{
    const struct tunnel_options *options = &((struct tunnel_world *)host->hosts->config.owner)->options;
    cw_tunnel_endpoint_config(config, streams_of(options, host->node));
    config->seed = cw_random_derive(options->seed, 100 * (host->lives - 1) + host->node);
    config->encryption = options->encrypt ? CW_ENCRYPTION_REQUIRED : CW_ENCRYPTION_OFF;
    config->failure_timeout_ns = 2000 * MS;
    memset(config->job_key, host->node == 1 ? options->key_of_second : 0x5a, sizeof(config->job_key));
}

static void gate_start(struct tunnel_site *site)
{
    const struct tunnel_options *options = &site->world->options;
    struct sim_hosts *gates = &site->world->gates;
    uint32_t streams = streams_of(options, site->index);
    struct cw_gate_config gate;
    site->endpoint = gates->list[site->index].endpoint;
    cw_gate_config_init(&gate);
    gate.port = site->inner;
    gate.context = site;
    gate.drops_multicast = options->drops_multicast;
    gate.tunnel.stream_count = streams;
    gate.tunnel.rate_bps = options->rate_bps;
    gate.tunnel.queue_bytes = options->queue_bytes;
    gate.tunnel.ring_bytes = options->ring_bytes;
    gate.tunnel.news = news;
    gate.tunnel.peers[0] = sim_hosts_peer(gates, site->index, 1 - site->index);
    for (uint32_t i = 1; i < streams; i++) {
        assert_int_equal(cw_peer_stream(site->endpoint, gate.tunnel.peers[0], i, &gate.tunnel.peers[i]), CW_OK);
    }
    assert_int_equal(cw_gate_create(site->endpoint, &gate, sim_hosts_now(gates), &site->gate), CW_OK);
    site->is_running = true;
}

void tunnel_site_restart(struct tunnel_site *site)
{
    char error[200] = "";
    assert_true_msg(sim_hosts_restart(&site->world->gates, site->index, error, sizeof(error)) == CW_OK, "%s", error);
    gate_start(site);
}

void tunnel_site_crash(struct tunnel_site *site)
{
    site->is_running = false;
    sim_hosts_crash(&site->world->gates, site->index);
    cw_gate_destroy(site->gate);
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
    char error[200] = "";
    *world = (struct tunnel_world){.options = *options};
    cw_random_seed(&world->random, options->seed);
    struct sim_hosts_config config = sim_hosts_config_of(SITES);
    cw_endpoint_config_init(&config.endpoint);
    config.seed = options->seed;
    config.ip_first = cw_ip_v4(0x0a090001u);
    config.memory_bytes = 0;
    config.node.up = config.node.down = link_of(options);
    config.node.down.loss = config.node.down.duplicate = config.node.down.corrupt = config.node.down.reorder = 0;
    config.owner = world;
    config.prepare = site_prepare;
    config.turn = site_turn;
    assert_true_msg(sim_hosts_create(&world->gates, &config, error, sizeof(error)) == CW_OK, "%s", error);
    for (uint32_t i = 0; i < SITES; i++) {
        struct tunnel_site *site = &world->sites[i];
        struct cw_port *pair[2];
        pair_port_open(pair);
        site->world = world;
        site->index = i;
        site->inner = pair[0];
        site->hosts = pair[1];
        gate_start(site);
    }
}

void tunnel_world_close(struct tunnel_world *world)
{
    sim_hosts_destroy(&world->gates);
    for (uint32_t i = 0; i < SITES && world->sites[i].world != NULL; i++) {
        struct tunnel_site *site = &world->sites[i];
        if (site->is_running) {
            cw_gate_destroy(site->gate);
        }
        cw_port_close(site->inner);
        cw_port_close(site->hosts);
    }
    memset(world, 0, sizeof(*world));
}

void tunnel_world_run(struct tunnel_world *world, uint64_t duration_ns)
{
    sim_hosts_run(&world->gates, duration_ns);
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
    uint64_t end_ns = sim_hosts_now(&world->gates) + limit_ns;
    while (!site_is_up(&world->sites[0]) || !site_is_up(&world->sites[1])) {
        if (sim_hosts_now(&world->gates) >= end_ns) {
            return false;
        }
        tunnel_world_run(world, MS);
    }
    return true;
}

void tunnel_world_traffic(struct tunnel_world *world, uint64_t rate_bps, uint64_t duration_ns)
{
    uint64_t end_ns = sim_hosts_now(&world->gates) + duration_ns;
    int64_t due[SITES] = {0}; /* bytes */
    while (sim_hosts_now(&world->gates) < end_ns) {
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
    cw_simulator_heal(world->gates.simulator);
    world->sites[0].deaf = world->sites[1].deaf = false;
    uint64_t end_ns = sim_hosts_now(&world->gates) + 60000 * MS;
    tunnel_world_run(world, 20 * MS);
    while (held(&world->sites[0]) + held(&world->sites[1]) > 0) {
        assert_true(sim_hosts_now(&world->gates) < end_ns);
        tunnel_world_run(world, 10 * MS);
    }
    tunnel_world_run(world, 20 * MS);
}
