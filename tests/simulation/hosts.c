#include "tests/simulation/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/rdma/rdma.h"

enum { EVENTS = 64 };

struct sim_hosts_config sim_hosts_config_of(uint32_t count)
{
    struct sim_hosts_config config = {
        .count = count,
        .seed = 1,
        .mtu_bytes = 1500,
        .memory_bytes = 1 << 20,
        .switches = 1,
        .ip_first = cw_ip_v4(0x0a000001u),
    };
    cw_simulator_node_config_init(&config.node);
    config.node.up.rate_bps = config.node.down.rate_bps = 10000000000ull;
    config.node.up.delay_ns = config.node.down.delay_ns = 10000;
    config.trunk = config.node.down;
    config.trunk.delay_ns = 0;
    cw_simulator_endpoint_config_init(&config.endpoint, count);
    return config;
}

static void events_receive(struct sim_host *host)
{
    struct cw_event events[EVENTS];
    uint32_t count;
    while (!host->holds_events && (count = cw_endpoint_events(host->endpoint, events, EVENTS)) > 0) {
        for (uint32_t i = 0; i < count; i++) {
            switch (events[i].kind) {
            case CW_EVENT_PUT:
                host->arrived_puts++;
                host->arrived_bytes += events[i].bytes;
                break;
            case CW_EVENT_COMPLETE:
                host->completed++;
                host->failed += events[i].status < 0;
                break;
            case CW_EVENT_MESSAGE:
                (void)cw_message_release(host->endpoint, events[i].slot);
                host->arrived_messages++;
                break;
            case CW_EVENT_GET:
                host->got += events[i].status == CW_OK;
                host->failed += events[i].status != CW_OK;
                break;
            case CW_EVENT_PEER_UP:
                host->up++;
                break;
            case CW_EVENT_PEER_DOWN:
                host->down++;
                host->down_status = events[i].status;
                host->down_ns = cw_simulator_now(host->hosts->simulator);
                break;
            default:
                break;
            }
        }
    }
}

static uint64_t turn(void *context, uint64_t now_ns)
{
    struct sim_host *host = context;
    events_receive(host);
    host->again_ns = 0;
    if (host->work != NULL) {
        host->work(host, host->context, now_ns);
    }
    return host->again_ns != 0 ? host->again_ns : CW_SIMULATOR_NEVER;
}

/* In place of the endpoint's turn. */
static uint64_t turn_own(void *context, uint64_t now_ns)
{
    struct sim_host *host = context;
    return host->hosts->config.turn(host, now_ns);
}

static int memory_create(struct sim_host *host, uint64_t bytes, char *error, size_t error_bytes)
{
    host->memory = calloc(1, bytes + 1);
    host->memory_bytes = bytes;
    if (host->memory == NULL) {
        snprintf(error, error_bytes, "no memory for the regions of %u hosts", host->hosts->count);
        return CW_ERROR_MEMORY;
    }
    return cw_region_register(host->endpoint, host->memory, bytes, CW_REGION_WRITE | CW_REGION_READ, &host->token);
}

static uint32_t end_of(const struct cw_ip *ip)
{
    const uint8_t *at = ip->bytes + 12;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

struct cw_ip sim_hosts_ip(const struct sim_hosts_config *config, uint32_t node)
{
    struct cw_ip ip = config->ip_first, end = cw_ip_v4(end_of(&ip) + node);
    memcpy(ip.bytes + 12, end.bytes + 12, 4);
    return ip;
}

uint32_t sim_hosts_node(const struct sim_hosts_config *config, const struct cw_ip *ip)
{
    return end_of(ip) - end_of(&config->ip_first);
}

static int device_attach(struct sim_host *host, char *error, size_t error_bytes)
{
    struct cw_verbs_device *device;
    int status = cw_verbs_sim_open(host->hosts->verbs, host->node, host->port, NULL, &device);
    if (status != CW_OK) {
        snprintf(error, error_bytes, "node %u has no RDMA device: %s", host->node, cw_status_text(status));
        return status;
    }
    return cw_rdma_attach(host->endpoint, device, error, error_bytes);
}

static int host_create(struct sim_hosts *hosts, uint32_t node, char *error, size_t error_bytes)
{
    const struct sim_hosts_config *config = &hosts->config;
    struct sim_host *host = &hosts->list[node];
    host->hosts = hosts;
    host->node = node;
    host->port = cw_port_sim(hosts->simulator, node);
    host->lives++;
    struct cw_endpoint_config endpoint = config->endpoint;
    endpoint.address.ip = sim_hosts_ip(config, node);
    if (config->prepare != NULL) {
        config->prepare(host, &endpoint);
    }
    int status = cw_simulator_host_start(hosts->simulator, node, &endpoint, turn, host, error, error_bytes);
    host->endpoint = cw_simulator_endpoint(hosts->simulator, node);
    if (status == CW_OK && hosts->verbs != NULL && (config->verbs_count == 0 || node < config->verbs_count)) {
        status = device_attach(host, error, error_bytes);
    }
    if (status == CW_OK && config->memory_bytes > 0) {
        status = memory_create(host, config->memory_bytes, error, error_bytes);
    }
    if (status == CW_OK && config->turn != NULL) {
        cw_simulator_attach(hosts->simulator, node, turn_own, host);
    }
    return status;
}

/* Switches joined each with each, and hosts on them. CW_OK or more, or an error. */
static int mesh_create(struct cw_simulator *simulator, const struct sim_hosts_config *config)
{
    int status = CW_OK;
    for (uint32_t i = 0; i < config->switches && status >= 0; i++) {
        status = cw_simulator_bridge_add(simulator, config->count + config->switches);
    }
    for (uint32_t i = 0; i < config->switches; i++) {
        for (uint32_t j = i + 1; j < config->switches && status >= 0; j++) {
            status = cw_simulator_bridges_join(simulator, i, j, &config->trunk, true);
        }
    }
    for (uint32_t node = 0; node < config->count && status >= 0; node++) {
        uint32_t block = (uint32_t)((uint64_t)node * config->switches / config->count);
        status = cw_simulator_node_add(simulator, block, &config->node);
    }
    return status;
}

static int network_create(struct sim_hosts *hosts)
{
    const struct sim_hosts_config *config = &hosts->config;
    struct cw_simulator_config simulator;
    cw_simulator_config_init(&simulator);
    simulator.seed = config->seed;
    simulator.mtu_bytes = config->mtu_bytes;
    simulator.learning = config->learning;
    simulator.multicast = config->multicast;
    simulator.node_count_max = config->count;
    simulator.bridge_count_max = config->switches;
    simulator.packet_count_max = config->packet_count_max > 0 ? config->packet_count_max : 65536 + 64 * config->count;
    if (simulator.delivery_count_max < 2 * simulator.packet_count_max) {
        simulator.delivery_count_max = 2 * simulator.packet_count_max;
    }
    simulator.turn_ns = config->turn_ns > 0 ? config->turn_ns : simulator.turn_ns;
    int status = cw_simulator_create(&simulator, &hosts->simulator);
    if (status != CW_OK) {
        return status;
    }
    return config->is_mesh ? mesh_create(hosts->simulator, config)
                           : cw_simulator_switches(hosts->simulator, config->switches, config->count, &config->node,
                                                   &config->trunk);
}

int sim_hosts_create(struct sim_hosts *hosts, const struct sim_hosts_config *config, char *error, size_t error_bytes)
{
    *hosts = (struct sim_hosts){.count = config->count, .config = *config};
    int status = network_create(hosts);
    if (status < 0) {
        snprintf(error, error_bytes, "the simulated network cannot be made: %s", cw_status_text(status));
        return status;
    }
    hosts->list = calloc(config->count, sizeof(*hosts->list));
    status = hosts->list != NULL ? CW_OK : CW_ERROR_MEMORY;
    if (status == CW_OK && config->verbs != NULL) {
        status = cw_verbs_net_create(hosts->simulator, config->verbs, &hosts->verbs);
    }
    for (uint32_t node = 0; node < config->count && status == CW_OK; node++) {
        cw_port_sim_nic(hosts->simulator, node, &config->nic);
        status = host_create(hosts, node, error, error_bytes);
    }
    return status;
}

/* Once its process has ended. */
static void host_clear(struct sim_host *host)
{
    free(host->memory);
    *host = (struct sim_host){.lives = host->lives};
}

void sim_hosts_destroy(struct sim_hosts *hosts)
{
    for (uint32_t node = 0; hosts->list != NULL && node < hosts->count; node++) {
        sim_hosts_close(hosts, node);
    }
    free(hosts->list);
    cw_verbs_net_destroy(hosts->verbs);
    cw_simulator_destroy(hosts->simulator);
    *hosts = (struct sim_hosts){0};
}

void sim_hosts_crash(struct sim_hosts *hosts, uint32_t node)
{
    cw_simulator_crash(hosts->simulator, node);
    host_clear(&hosts->list[node]);
}

void sim_hosts_close(struct sim_hosts *hosts, uint32_t node)
{
    cw_simulator_host_close(hosts->simulator, node);
    host_clear(&hosts->list[node]);
}

int sim_hosts_restart(struct sim_hosts *hosts, uint32_t node, char *error, size_t error_bytes)
{
    return host_create(hosts, node, error, error_bytes);
}

uint32_t sim_hosts_peer(struct sim_hosts *hosts, uint32_t from, uint32_t to)
{
    uint32_t peer = UINT32_MAX;
    (void)cw_simulator_peer(hosts->simulator, from, to, &peer);
    return peer;
}

uint32_t *sim_hosts_peers(struct sim_hosts *hosts, uint32_t from, uint32_t count)
{
    uint32_t *peers = calloc(count, sizeof(*peers));
    for (uint32_t to = 0; peers != NULL && to < count; to++) {
        peers[to] = to == from || hosts->list[to].endpoint == NULL ? 0 : sim_hosts_peer(hosts, from, to);
    }
    return peers;
}

/* ---- time, faults, work ---- */

uint64_t sim_hosts_now(const struct sim_hosts *hosts)
{
    return cw_simulator_now(hosts->simulator);
}

void sim_hosts_run(struct sim_hosts *hosts, uint64_t duration_ns)
{
    cw_simulator_run_until(hosts->simulator, sim_hosts_now(hosts) + duration_ns);
}

void sim_link_lose(struct cw_link *link, double loss)
{
    struct cw_link_config config = link->config;
    config.loss = loss;
    cw_link_configure(link, &config);
}

void sim_host_begin(struct sim_host *host, sim_work work, void *context)
{
    host->work = work;
    host->context = context;
    sim_host_wake(host);
}

void sim_host_wake(struct sim_host *host)
{
    cw_simulator_wake(host->hosts->simulator, host->node);
}
