/* The simulated network: a switch with a port for each host, or the sites of a topology as switches. Ranks of one host
 * share its link by a bridge of the host. */
#include "apps/simulate/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/topology/clusters.h"
#include "control/topology/topology.h"
#include "dataplane/fabric/bridge.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

enum {
    SEND_QUEUE_PACKETS = 256,
    RECEIVE_RING_PACKETS = 1024,
    PACKETS_A_RANK = 1 << 14, /* may be in flight; only those in flight take memory */
    PACKETS_MIN = 1 << 16,
    DELIVERIES_A_PACKET = 4,
    WAKES_A_RANK = 64, /* wake-ups in progress */
};
#define PACKETS_MAX_BYTES (8ull << 30) /* of all packets that may be in flight */

struct builder {
    const struct simulate_config *config;
    const struct cw_topology *topology; /* NULL: one switch */
    struct simulate_network *network;
    struct cw_simulator *simulator; /* the network's */
    int *bridges;                   /* of each host's ranks */
    uint32_t *host_first;           /* the first rank of each host, and the number of ranks behind the last */
};

static struct simulate_link *link_note(struct builder *builder, struct cw_link *link)
{
    struct simulate_link *noted = &builder->network->links[builder->network->link_count++];
    noted->link = link;
    return noted;
}

/* Notes both directions of a host's link. */
static void host_link_note(struct builder *builder, uint32_t host, struct cw_link *up, struct cw_link *down)
{
    for (int is_down = 0; is_down < 2; is_down++) {
        struct simulate_link *link = link_note(builder, is_down ? down : up);
        if (builder->topology != NULL) {
            snprintf(link->name, sizeof(link->name), "%s", cw_topology_host_name(builder->topology, host));
        } else {
            snprintf(link->name, sizeof(link->name), "h%u", host);
        }
        strcpy(link->direction, is_down ? "down" : "up");
    }
}

static bool is_shared(const struct builder *builder, uint32_t host)
{
    return builder->host_first[host + 1] - builder->host_first[host] > 1;
}

/* The faults of --simulate, on a link of the topology. */
static struct cw_link_config with_faults(const struct builder *builder, const struct cw_link_config *of)
{
    const struct cw_link_config *faults = &builder->config->link;
    struct cw_link_config link = *of;
    link.loss = 1 - (1 - link.loss) * (1 - faults->loss);
    link.corrupt = faults->corrupt;
    link.duplicate = faults->duplicate;
    link.reorder = faults->reorder;
    link.reorder_delay_max_ns = faults->reorder_delay_max_ns;
    return link;
}

/* One direction of a host's link. Half of the delay lies on each side of the switch. */
static struct cw_link_config host_link(const struct builder *builder, uint32_t host)
{
    struct cw_link_config link = builder->config->link;
    if (builder->topology != NULL) {
        uint32_t cluster = cw_topology_host_cluster(builder->topology, host);
        link = with_faults(builder, &cw_topology_cluster(builder->topology, cluster)->host_link);
    }
    link.delay_ns /= 2;
    return link;
}

/* The bridge of a host whose ranks share its link. In the host nothing is dropped for lack of a buffer. */
static int bridge_add(struct builder *builder, uint32_t host, int site)
{
    uint32_t ranks = builder->host_first[host + 1] - builder->host_first[host];
    struct cw_link_config link = host_link(builder, host);
    int bridge = cw_simulator_bridge_add(builder->simulator, ranks + 1);
    int trunk = bridge < 0
                    ? bridge
                    : cw_simulator_bridges_join(builder->simulator, (uint32_t)site, (uint32_t)bridge, &link, false);
    if (trunk < 0) {
        return trunk;
    }
    cw_simulator_trunk_router(builder->simulator, (uint32_t)trunk);
    link.queue_limit_bytes = 0;
    cw_link_configure(cw_simulator_link_trunk(builder->simulator, (uint32_t)trunk, 1), &link);
    host_link_note(builder, host, cw_simulator_link_trunk(builder->simulator, (uint32_t)trunk, 1),
                   cw_simulator_link_trunk(builder->simulator, (uint32_t)trunk, 0));
    return bridge;
}

static int ranks_add(struct builder *builder, uint32_t host)
{
    struct cw_simulator_node_config node;
    cw_simulator_node_config_init(&node);
    node.up = node.down = host_link(builder, host);
    if (is_shared(builder, host)) {
        node.up = node.down = (struct cw_link_config){.rate_bps = 0}; /* within the host */
    }
    node.send_queue_packets = SEND_QUEUE_PACKETS;
    node.receive_ring_packets = RECEIVE_RING_PACKETS;
    node.group_count_max = CW_SHM_PORT_GROUPS_MAX;
    node.processing_delay_ns = 0;
    struct cw_simulator_nic nic;
    simulate_config_nic(builder->config, host, &nic);
    for (uint32_t rank = builder->host_first[host]; rank < builder->host_first[host + 1]; rank++) {
        const uint8_t mac[6] = CW_VIRTUAL_MAC(rank);
        memcpy(node.mac, mac, sizeof(node.mac));
        int index = cw_simulator_node_add(builder->simulator, (uint32_t)builder->bridges[host], &node);
        if (index < 0) {
            return index;
        }
        cw_port_sim_nic(builder->simulator, (uint32_t)index, &nic);
        if (!is_shared(builder, host)) {
            host_link_note(builder, host, cw_simulator_link_up(builder->simulator, (uint32_t)index),
                           cw_simulator_link_down(builder->simulator, (uint32_t)index));
        }
    }
    return CW_OK;
}

/* A bridge for each host of several ranks. */
static int host_bridges_add(struct builder *builder)
{
    int status = CW_OK;
    for (uint32_t host = 0; host < builder->config->hosts && status == CW_OK; host++) {
        int site = builder->topology != NULL ? (int)cw_topology_host_cluster(builder->topology, host) : 0;
        builder->bridges[host] = is_shared(builder, host) ? bridge_add(builder, host, site) : site;
        status = builder->bridges[host] < 0 ? builder->bridges[host] : CW_OK;
    }
    return status;
}

/* Whether the topology joins each site with each other one: then a frame takes one such link at most. Two sites are a
 * tree. CW_ERROR_MEMORY. */
static int mesh_find(const struct cw_topology *topology, uint32_t sites, bool *is_mesh)
{
    uint32_t links = cw_topology_link_count(topology), pairs = 0;
    bool *joined = calloc((size_t)sites * sites, sizeof(*joined));
    if (joined == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t i = 0; i < links; i++) {
        const struct cw_topology_link *link = cw_topology_link(topology, i);
        uint32_t low = link->sites[0] < link->sites[1] ? link->sites[0] : link->sites[1];
        uint32_t high = link->sites[0] < link->sites[1] ? link->sites[1] : link->sites[0];
        pairs += !joined[low * sites + high];
        joined[low * sites + high] = true;
    }
    free(joined);
    *is_mesh = sites > 2 && links == pairs && pairs == sites * (sites - 1) / 2;
    return CW_OK;
}

/* The switches of the sites. Their numbers are those of the sites. */
static int sites_add(struct builder *builder, uint32_t *sites)
{
    const struct cw_topology *topology = builder->topology;
    uint32_t links = cw_topology_link_count(topology), clusters = cw_topology_cluster_count(topology);
    *sites = clusters;
    for (uint32_t i = 0; i < links; i++) {
        const struct cw_topology_link *link = cw_topology_link(topology, i);
        for (int end = 0; end < 2; end++) {
            *sites = link->sites[end] >= *sites ? link->sites[end] + 1 : *sites;
        }
    }
    for (uint32_t site = 0; site < *sites; site++) {
        uint32_t hosts = site < clusters ? cw_topology_cluster(topology, site)->host_count : 0;
        int bridge = cw_simulator_bridge_add(builder->simulator, hosts + links);
        if (bridge < 0) {
            return bridge;
        }
    }
    return CW_OK;
}

static int links_add(struct builder *builder, uint32_t sites, char *error, size_t error_bytes)
{
    const struct cw_topology *topology = builder->topology;
    bool mesh;
    int status = mesh_find(topology, sites, &mesh);
    if (status != CW_OK) {
        return status;
    }
    for (uint32_t i = 0; i < cw_topology_link_count(topology); i++) {
        const struct cw_topology_link *link = cw_topology_link(topology, i);
        struct cw_link_config faulty = with_faults(builder, &link->link);
        int trunk = cw_simulator_bridges_join(builder->simulator, link->sites[0], link->sites[1], &faulty, mesh);
        if (trunk == CW_ERROR_ARGUMENT) {
            return cw_error_text(
                error, error_bytes, trunk,
                "%s: the link '%s' closes a loop: the links of a simulated topology form a tree, or join "
                "each site with each other one",
                builder->config->topology, link->name);
        }
        if (trunk < 0) {
            return trunk;
        }
        for (uint32_t direction = 0; direction < 2; direction++) {
            struct simulate_link *noted =
                link_note(builder, cw_simulator_link_trunk(builder->simulator, (uint32_t)trunk, direction));
            snprintf(noted->name, sizeof(noted->name), "%s", link->name);
            snprintf(noted->direction, sizeof(noted->direction), "%s>%s",
                     cw_topology_site_name(topology, link->sites[direction]),
                     cw_topology_site_name(topology, link->sites[1 - direction]));
        }
    }
    return CW_OK;
}

/* A bridge learns the addresses of the ranks behind its trunks as ranks are added, so all bridges and trunks come
 * before all ranks. A mesh of sites comes after the trunks to hosts. */
static int parts_add(struct builder *builder, char *error, size_t error_bytes)
{
    struct simulate_network *network = builder->network;
    uint32_t links = builder->topology != NULL ? cw_topology_link_count(builder->topology) : 0;
    int status;
    network->links = calloc(2 * ((size_t)builder->config->hosts + links), sizeof(*network->links));
    if (network->links == NULL) {
        return CW_ERROR_MEMORY;
    }
    if (builder->topology != NULL) {
        status = sites_add(builder, &network->switch_count);
    } else {
        int bridge = cw_simulator_bridge_add(builder->simulator, builder->config->hosts);
        status = bridge < 0 ? bridge : CW_OK;
        network->switch_count = 1;
    }
    for (uint32_t i = 0; i < network->switch_count && status == CW_OK; i++) {
        cw_simulator_bridge_buffer(builder->simulator, i, builder->config->shared_bytes);
    }
    if (status == CW_OK) {
        status = host_bridges_add(builder);
    }
    if (status == CW_OK && builder->topology != NULL) {
        status = links_add(builder, network->switch_count, error, error_bytes);
    }
    for (uint32_t host = 0; host < builder->config->hosts && status == CW_OK; host++) {
        status = ranks_add(builder, host);
    }
    return status;
}

static int build(struct builder *builder, char *error, size_t error_bytes)
{
    const struct simulate_config *config = builder->config;
    struct cw_simulator_config simulator;
    uint64_t packets = (uint64_t)PACKETS_A_RANK * config->ranks;
    uint64_t packets_max = PACKETS_MAX_BYTES / config->mtu_bytes;
    packets = packets < packets_max ? packets : packets_max;
    cw_simulator_config_init(&simulator);
    simulator.seed = config->seed;
    simulator.mtu_bytes = config->mtu_bytes;
    simulator.node_count_max = config->ranks;
    simulator.bridge_count_max = CW_SIMULATOR_BRIDGES_MAX;
    simulator.script_count_max = WAKES_A_RANK * config->ranks + 4 * SIMULATE_FAULTS_MAX;
    simulator.turn_ns = 1;
    simulator.multicast = config->multicast;
    simulator.group_learning = true; /* the ranks send IGMP reports */
    error[0] = '\0';
    int status;
    do { /* a smaller machine promises less memory */
        packets = packets < PACKETS_MIN ? PACKETS_MIN : packets;
        simulator.packet_count_max = (uint32_t)packets;
        simulator.delivery_count_max = DELIVERIES_A_PACKET * (uint32_t)packets;
        status = cw_simulator_create(&simulator, &builder->simulator);
        packets /= 2;
    } while (status == CW_ERROR_MEMORY && packets >= PACKETS_MIN / 2 + 1);
    status = status == CW_OK ? parts_add(builder, error, error_bytes) : status;
    if (status != CW_OK && error[0] == '\0') {
        (void)cw_error_text(error, error_bytes, status, "no room for a network of %u hosts and %u ranks", config->hosts,
                            config->ranks);
    }
    return status;
}

int simulate_network_create(const struct simulate_config *config, struct simulate_network *network, char *error,
                            size_t error_bytes)
{
    struct cw_topology *topology = NULL;
    struct builder builder = {.config = config,
                              .network = network,
                              .host_first = calloc(config->hosts + 1, sizeof(uint32_t)),
                              .bridges = calloc(config->hosts, sizeof(int))};
    int status = builder.host_first == NULL || builder.bridges == NULL ? CW_ERROR_MEMORY
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
    network->simulator = builder.simulator;
    if (status != CW_OK) {
        simulate_network_destroy(network);
    }
    free(builder.host_first);
    free(builder.bridges);
    cw_topology_destroy(topology);
    return status;
}

void simulate_network_destroy(struct simulate_network *network)
{
    cw_simulator_destroy(network->simulator);
    free(network->links);
    *network = (struct simulate_network){.simulator = NULL};
}
