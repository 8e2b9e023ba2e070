/* The simulated network: a switch with a port for each host, or the sites of a topology as switches. Ranks of one host
 * share its link by a bridge of the host. */
#include "apps/simulate/simulate.h"

#include <stdio.h>
#include <stdlib.h>

#include "control/topology/clusters.h"
#include "control/topology/topology.h"
#include "dataplane/fabric/bridge.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    SEND_QUEUE_PACKETS = 256,
    RECEIVE_RING_PACKETS = 1024,
    PACKETS_A_RANK = 1024,
    PACKETS_MIN = 1 << 16,
    PACKETS_MAX = 1 << 22,
    DELIVERIES_A_PACKET = 4,
    WAKES_A_RANK = 64, /* wake-ups under way */
};

struct builder {
    const struct simulate_config *config;
    const struct cw_topology *topology; /* NULL: one switch */
    struct cw_simulator *simulator;
    uint32_t *host_first; /* the first rank of each host, and the number of ranks behind the last */
};

static bool is_shared(const struct builder *builder, uint32_t host)
{
    return builder->host_first[host + 1] - builder->host_first[host] > 1;
}

/* One direction of a host's link. Half of the delay lies on each side of the switch. */
static struct cw_link_config host_link(const struct builder *builder, uint32_t host)
{
    struct cw_link_config link = builder->config->link;
    if (builder->topology != NULL) {
        link = cw_topology_cluster(builder->topology, cw_topology_host_cluster(builder->topology, host))->host_link;
    } else {
        link.queue_limit_bytes = builder->config->buffer_bytes;
    }
    link.delay_ns /= 2;
    return link;
}

static int host_add(struct builder *builder, uint32_t host, int site)
{
    struct cw_simulator_node_config node;
    struct cw_link_config link = host_link(builder, host);
    uint32_t ranks = builder->host_first[host + 1] - builder->host_first[host];
    int bridge = site;
    cw_simulator_node_config_init(&node);
    node.up = node.down = link;
    if (is_shared(builder, host)) {
        bridge = cw_simulator_bridge_add(builder->simulator, ranks + 1);
        int trunk = bridge < 0
                        ? bridge
                        : cw_simulator_bridges_join(builder->simulator, (uint32_t)site, (uint32_t)bridge, &link, false);
        if (trunk < 0) {
            return trunk;
        }
        node.up = node.down = (struct cw_link_config){.rate_bps = 0}; /* within the host */
    }
    node.send_queue_packets = SEND_QUEUE_PACKETS;
    node.receive_ring_packets = RECEIVE_RING_PACKETS;
    node.group_count_max = CW_CABLE_GROUPS_MAX;
    node.processing_delay_ns = 0;
    for (uint32_t rank = builder->host_first[host]; rank < builder->host_first[host + 1]; rank++) {
        const uint8_t mac[6] = CW_VIRTUAL_MAC(rank);
        for (int i = 0; i < 6; i++) {
            node.mac[i] = mac[i];
        }
        int index = cw_simulator_node_add(builder->simulator, (uint32_t)bridge, &node);
        if (index < 0) {
            return index;
        }
    }
    return CW_OK;
}

/* The switches of the sites come first: their numbers are those of the sites. */
static int sites_build(struct builder *builder, char *error, size_t error_bytes)
{
    const struct cw_topology *topology = builder->topology;
    uint32_t links = cw_topology_link_count(topology), sites = cw_topology_cluster_count(topology);
    for (uint32_t i = 0; i < links; i++) {
        const struct cw_topology_link *link = cw_topology_link(topology, i);
        for (int end = 0; end < 2; end++) {
            sites = link->sites[end] >= sites ? link->sites[end] + 1 : sites;
        }
    }
    for (uint32_t site = 0; site < sites; site++) {
        uint32_t hosts =
            site < cw_topology_cluster_count(topology) ? cw_topology_cluster(topology, site)->host_count : 0;
        int bridge = cw_simulator_bridge_add(builder->simulator, hosts + links);
        if (bridge < 0) {
            return bridge;
        }
    }
    for (uint32_t i = 0; i < links; i++) {
        const struct cw_topology_link *link = cw_topology_link(topology, i);
        int trunk = cw_simulator_bridges_join(builder->simulator, link->sites[0], link->sites[1], &link->link, false);
        if (trunk < 0) {
            return cw_error_text(error, error_bytes, trunk,
                                 "%s: the link '%s' closes a loop: the links of a simulated topology form a tree",
                                 builder->config->topology, link->name);
        }
    }
    for (uint32_t host = 0; host < builder->config->hosts; host++) {
        int status = host_add(builder, host, (int)cw_topology_host_cluster(topology, host));
        if (status != CW_OK) {
            return status;
        }
    }
    return CW_OK;
}

static int switch_build(struct builder *builder)
{
    int bridge = cw_simulator_bridge_add(builder->simulator, builder->config->hosts);
    for (uint32_t host = 0; host < builder->config->hosts && bridge >= 0; host++) {
        int status = host_add(builder, host, 0);
        bridge = status != CW_OK ? status : bridge;
    }
    return bridge < 0 ? bridge : CW_OK;
}

static int build(struct builder *builder, char *error, size_t error_bytes)
{
    const struct simulate_config *config = builder->config;
    struct cw_simulator_config simulator;
    uint64_t packets = (uint64_t)PACKETS_A_RANK * config->ranks;
    cw_simulator_config_init(&simulator);
    simulator.seed = config->seed;
    simulator.mtu_bytes = config->mtu_bytes;
    simulator.node_count_max = config->ranks;
    simulator.bridge_count_max = CW_SIMULATOR_BRIDGES_MAX;
    simulator.packet_count_max = packets < PACKETS_MIN   ? PACKETS_MIN
                                 : packets < PACKETS_MAX ? (uint32_t)packets
                                                         : PACKETS_MAX;
    simulator.delivery_count_max = DELIVERIES_A_PACKET * simulator.packet_count_max;
    simulator.script_count_max = WAKES_A_RANK * config->ranks + 4 * SIMULATE_FAULTS_MAX;
    simulator.turn_ns = 1;
    simulator.multicast = config->multicast;
    simulator.learning = config->multicast != CW_SIMULATOR_SNOOPS;
    error[0] = '\0';
    int status = cw_simulator_create(&simulator, &builder->simulator);
    if (status == CW_OK) {
        status = builder->topology != NULL ? sites_build(builder, error, error_bytes) : switch_build(builder);
    }
    if (status != CW_OK && error[0] == '\0') {
        (void)cw_error_text(error, error_bytes, status, "no room for a network of %u hosts and %u ranks", config->hosts,
                            config->ranks);
    }
    return status;
}

int simulate_network_create(const struct simulate_config *config, struct cw_simulator **simulator, char *error,
                            size_t error_bytes)
{
    struct cw_topology *topology = NULL;
    struct builder builder = {.config = config, .host_first = calloc(config->hosts + 1, sizeof(uint32_t))};
    int status = builder.host_first == NULL    ? CW_ERROR_MEMORY
                 : config->topology[0] != '\0' ? cw_topology_load(config->topology, &topology, error, error_bytes)
                                               : CW_OK;
    builder.topology = topology;
    for (uint32_t rank = config->ranks; rank-- > 0 && status == CW_OK;) {
        builder.host_first[cw_clusters_block(rank, config->ranks, config->hosts)] = rank;
    }
    if (status == CW_OK) {
        builder.host_first[config->hosts] = config->ranks;
        status = build(&builder, error, error_bytes);
    }
    if (status != CW_OK) {
        cw_simulator_destroy(builder.simulator);
        builder.simulator = NULL;
    }
    free(builder.host_first);
    cw_topology_destroy(topology);
    *simulator = builder.simulator;
    return status;
}
