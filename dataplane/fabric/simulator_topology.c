#include <string.h>

#include "dataplane/fabric/nic_sim.h"
#include "dataplane/fabric/simulator_state.h"
#include "dataplane/limits.h"

/* Links, bridges and so on draw from generators of their own, so that one more packet on one link changes nothing on
 * another. */
enum seed_stream {
    SEED_UP = 1,
    SEED_DOWN = 2,
    SEED_TRUNK = 3,
    SEED_BRIDGE = 4,
    SEED_NIC = 5,
};

static uint64_t part_seed(const struct cw_simulator *simulator, enum seed_stream stream, uint64_t index)
{
    return cw_random_derive(simulator->config.seed, index << 8 | (uint64_t)stream);
}

void cw_simulator_node_config_init(struct cw_simulator_node_config *config)
{
    struct cw_link_config link = {
        .rate_bps = 10000000000,
        .delay_ns = 5000,
        .queue_limit_bytes = 256000,
        .overhead_bytes = CW_ETHERNET_OVERHEAD_BYTES,
    };

    *config = (struct cw_simulator_node_config){
        .up = link,
        .down = link,
        .send_queue_packets = 256,
        .receive_ring_packets = 1024,
        .group_count_max = 20, /* as few as NICs have */
        .processing_delay_ns = 500,
        .gather = true,
    };
}

size_t cw_simulator_node_bytes(const struct cw_simulator_node_config *config)
{
    return sizeof(struct sim_node) + sizeof(struct sim_packet *) * config->receive_ring_packets +
           sizeof(uint64_t) * config->send_queue_packets + sizeof(uint64_t) * config->group_count_max;
}

/* ---- bridges ---- */

int cw_simulator_bridge_add(struct cw_simulator *simulator, uint32_t port_count)
{
    struct sim_bridge *bridge = &simulator->bridges[simulator->bridge_count];
    struct cw_bridge_config config;
    int status;

    if (simulator->bridge_count == simulator->config.bridge_count_max) {
        return CW_ERROR_LIMIT;
    }
    cw_bridge_config_init(&config);
    config.port_count = port_count;
    config.address_count_max = simulator->config.node_count_max + 64; /* all hosts, and room for a few hostile ones */
    config.group_count_max = simulator->config.group_count_max;
    config.snooping = simulator->config.multicast == CW_SIMULATOR_SNOOPS;
    config.flood_unregistered = simulator->config.multicast != CW_SIMULATOR_DROPS;
    config.hash_seed = part_seed(simulator, SEED_BRIDGE, simulator->bridge_count);
    *bridge = (struct sim_bridge){.port_count = port_count, .tree = simulator->bridge_count};
    status = cw_bridge_create(&config, &bridge->bridge);
    if (status != CW_OK) {
        return status;
    }
    bridge->wires = calloc(port_count, sizeof(*bridge->wires));
    bridge->peers = calloc(port_count, sizeof(*bridge->peers));
    if (!bridge->wires || !bridge->peers) {
        cw_bridge_destroy(bridge->bridge);
        free(bridge->wires);
        free(bridge->peers);
        return CW_ERROR_MEMORY;
    }
    return (int)simulator->bridge_count++;
}

/* The port of bridge `from` by which bridge `to` is reached, -1: it is not. The bridges form a small tree, or a full
 * mesh of them, so a depth-first walk finds the one way; after one mesh trunk another one is no way (split horizon). */
static int port_towards(const struct cw_simulator *simulator, uint32_t from, uint32_t to, int32_t came_from,
                        bool by_mesh)
{
    const struct sim_bridge *bridge = &simulator->bridges[from];

    for (uint32_t port = 0; port < bridge->port_used; port++) {
        int32_t peer = bridge->peers[port];
        bool mesh = peer >= 0 && simulator->bridges[peer].tree != bridge->tree;

        if (peer < 0 || peer == came_from || (mesh && by_mesh)) {
            continue;
        }
        if ((uint32_t)peer == to || port_towards(simulator, (uint32_t)peer, to, (int32_t)from, mesh) >= 0) {
            return (int)port;
        }
    }
    return -1;
}

/* The port of `bridge` by which the node is reached. */
static int port_towards_node(const struct cw_simulator *simulator, uint32_t bridge, const struct sim_node *node)
{
    return node->bridge == bridge ? (int)node->up.bridge_port
                                  : port_towards(simulator, bridge, node->bridge, -1, false);
}

/* Shows bridges the place of a node. */
static void address_spread(struct cw_simulator *simulator, const struct sim_node *node)
{
    if (simulator->config.learning) {
        return;
    }
    for (uint32_t i = 0; i < simulator->bridge_count; i++) {
        int port = port_towards_node(simulator, i, node);

        if (port >= 0) {
            cw_bridge_address_set(simulator->bridges[i].bridge, node->port.info.mac, (uint32_t)port);
        }
    }
}

void sim_group_joined(struct sim_node *node, const uint8_t mac[6])
{
    struct cw_simulator *simulator = node->simulator;

    if (simulator->config.learning || simulator->config.group_learning) {
        return;
    }
    for (uint32_t i = 0; i < simulator->bridge_count; i++) {
        int port = port_towards_node(simulator, i, node);

        if (port >= 0) {
            /* Without room for the group the bridge floods it and counts. */
            cw_bridge_group_join(simulator->bridges[i].bridge, mac, (uint32_t)port);
        }
    }
}

/* True if another member of the group is reached by the same port of the bridge. */
static bool port_has_member(const struct cw_simulator *simulator, uint32_t bridge, int port, uint64_t key)
{
    for (uint32_t i = 0; i < simulator->node_count; i++) {
        const struct sim_node *node = &simulator->nodes[i];

        for (uint32_t k = 0; k < node->group_count; k++) {
            if (node->groups[k] == key && port_towards_node(simulator, bridge, node) == port) {
                return true;
            }
        }
    }
    return false;
}

void sim_group_left(struct sim_node *node, const uint8_t mac[6])
{
    struct cw_simulator *simulator = node->simulator;

    if (simulator->config.learning || simulator->config.group_learning) {
        return;
    }
    for (uint32_t i = 0; i < simulator->bridge_count; i++) {
        int port = port_towards_node(simulator, i, node);

        if (port >= 0 && (i == node->bridge || !port_has_member(simulator, i, port, sim_mac_key(mac)))) {
            cw_bridge_group_leave(simulator->bridges[i].bridge, mac, (uint32_t)port);
        }
    }
}

/* ---- trunks ---- */

static void tree_merge(struct cw_simulator *simulator, uint32_t from, uint32_t into)
{
    for (uint32_t i = 0; i < simulator->bridge_count; i++) {
        if (simulator->bridges[i].tree == from) {
            simulator->bridges[i].tree = into;
        }
    }
}

static void trunk_end_add(struct cw_simulator *simulator, struct sim_wire *out, uint32_t bridge_index,
                          uint32_t peer_index, bool mesh)
{
    struct sim_bridge *bridge = &simulator->bridges[bridge_index];
    uint32_t port = bridge->port_used++;

    bridge->wires[port] = out;
    bridge->peers[port] = (int32_t)peer_index;
    bridge->gateway |= mesh;
    cw_bridge_mesh_port_set(bridge->bridge, port, mesh);
}

/* Split horizon keeps frames from circling only if one bridge of a tree has all its mesh trunks. */
static bool tree_has_other_gateway(const struct cw_simulator *simulator, uint32_t bridge)
{
    for (uint32_t i = 0; i < simulator->bridge_count; i++) {
        if (i != bridge && simulator->bridges[i].gateway &&
            simulator->bridges[i].tree == simulator->bridges[bridge].tree) {
            return true;
        }
    }
    return false;
}

static bool bridges_are_joined(const struct cw_simulator *simulator, uint32_t bridge_a, uint32_t bridge_b)
{
    const struct sim_bridge *bridge = &simulator->bridges[bridge_a];

    for (uint32_t port = 0; port < bridge->port_used; port++) {
        if (bridge->peers[port] == (int32_t)bridge_b) {
            return true;
        }
    }
    return false;
}

/* True if frames would circle through a trunk between these bridges. */
static bool trunk_makes_loop(const struct cw_simulator *simulator, uint32_t bridge_a, uint32_t bridge_b, bool mesh)
{
    if (simulator->bridges[bridge_a].tree == simulator->bridges[bridge_b].tree ||
        bridges_are_joined(simulator, bridge_a, bridge_b)) {
        return true;
    }
    return mesh ? tree_has_other_gateway(simulator, bridge_a) || tree_has_other_gateway(simulator, bridge_b)
                : simulator->has_mesh; /* it would tie two trees together that may see a third one each */
}

int cw_simulator_bridges_join(struct cw_simulator *simulator, uint32_t bridge_a, uint32_t bridge_b,
                              const struct cw_link_config *link, bool mesh)
{
    struct sim_trunk *trunk = &simulator->trunks[simulator->trunk_count];
    struct sim_bridge *a = &simulator->bridges[bridge_a];
    struct sim_bridge *b = &simulator->bridges[bridge_b];

    if (bridge_a >= simulator->bridge_count || bridge_b >= simulator->bridge_count ||
        !cw_link_config_valid(link, NULL) || trunk_makes_loop(simulator, bridge_a, bridge_b, mesh)) {
        return CW_ERROR_ARGUMENT;
    }
    if (simulator->trunk_count == simulator->trunk_count_max || a->port_used == a->port_count ||
        b->port_used == b->port_count) {
        return CW_ERROR_LIMIT;
    }
    cw_link_init(&trunk->wires[0].link, link, part_seed(simulator, SEED_TRUNK, 2 * (uint64_t)simulator->trunk_count));
    cw_link_init(&trunk->wires[1].link, link,
                 part_seed(simulator, SEED_TRUNK, 2 * (uint64_t)simulator->trunk_count + 1));
    trunk->wires[0].bridge = bridge_b;
    trunk->wires[0].bridge_port = b->port_used;
    trunk->wires[1].bridge = bridge_a;
    trunk->wires[1].bridge_port = a->port_used;
    trunk_end_add(simulator, &trunk->wires[0], bridge_a, bridge_b, mesh);
    trunk_end_add(simulator, &trunk->wires[1], bridge_b, bridge_a, mesh);
    if (mesh) {
        simulator->has_mesh = true;
    } else {
        tree_merge(simulator, b->tree, a->tree);
    }
    for (uint32_t i = 0; i < simulator->node_count; i++) {
        address_spread(simulator, &simulator->nodes[i]);
    }
    return (int)simulator->trunk_count++;
}

void cw_simulator_bridge_buffer(struct cw_simulator *simulator, uint32_t bridge, uint64_t bytes)
{
    simulator->bridges[bridge].buffer_bytes = bytes;
}

void cw_simulator_groups_flush(struct cw_simulator *simulator, uint32_t bridge)
{
    for (uint32_t port = 0; port < simulator->bridges[bridge].port_count; port++) {
        cw_bridge_port_flush(simulator->bridges[bridge].bridge, port);
    }
}

void cw_simulator_trunk_router(struct cw_simulator *simulator, uint32_t trunk)
{
    const struct sim_wire *wire = &simulator->trunks[trunk].wires[0];
    assert(trunk < simulator->trunk_count);
    struct cw_bridge *bridge = simulator->bridges[wire->bridge].bridge;
    cw_bridge_router_port_set(bridge, wire->bridge_port, true);
    if (simulator->config.multicast == CW_SIMULATOR_SNOOPS) {
        cw_bridge_flood_unregistered_set(bridge, false);
    }
}

/* ---- nodes ---- */

static bool ring_size_valid(uint32_t packets)
{
    return packets >= 1 && packets <= CW_SIMULATOR_RING_MAX && (packets & (packets - 1)) == 0;
}

static bool node_config_valid(const struct cw_simulator_node_config *config)
{
    return cw_link_config_valid(&config->up, NULL) && cw_link_config_valid(&config->down, NULL) &&
           ring_size_valid(config->send_queue_packets) && ring_size_valid(config->receive_ring_packets) &&
           config->group_count_max <= CW_SIMULATOR_GROUPS_MAX && (config->mac[0] & 1) == 0;
}

static void node_mac_default(struct sim_node *node)
{
    static const uint8_t none[6];

    if (memcmp(node->config.mac, none, 6) == 0) {
        node->config.mac[0] = 2;
        node->config.mac[3] = (uint8_t)(node->index >> 16);
        node->config.mac[4] = (uint8_t)(node->index >> 8);
        node->config.mac[5] = (uint8_t)node->index;
    }
}

static bool node_rings_allocate(struct sim_node *node)
{
    node->ring = calloc(node->config.receive_ring_packets, sizeof(struct sim_packet *));
    node->departures = calloc(node->config.send_queue_packets, sizeof(*node->departures));
    node->groups = calloc((size_t)node->config.group_count_max + 1, sizeof(*node->groups));
    node->group_joins = calloc((size_t)node->config.group_count_max + 1, sizeof(*node->group_joins));
    return node->ring && node->departures && node->groups && node->group_joins;
}

void sim_node_dispose(struct sim_node *node)
{
    if (node->open) {
        node->port.ops->close(&node->port);
    }
    free(node->ring);
    free(node->departures);
    free(node->groups);
    free(node->group_joins);
}

int cw_simulator_node_add(struct cw_simulator *simulator, uint32_t bridge_index,
                          const struct cw_simulator_node_config *config)
{
    struct sim_bridge *bridge = &simulator->bridges[bridge_index];
    struct sim_node *node = &simulator->nodes[simulator->node_count];

    if (bridge_index >= simulator->bridge_count || !node_config_valid(config)) {
        return CW_ERROR_ARGUMENT;
    }
    if (simulator->node_count == simulator->config.node_count_max || bridge->port_used == bridge->port_count) {
        return CW_ERROR_LIMIT;
    }
    *node = (struct sim_node){
        .simulator = simulator,
        .index = simulator->node_count,
        .bridge = bridge_index,
        .config = *config,
        .timer_position = CW_HEAP_OUT,
    };
    node->config.up.queue_limit_bytes = 0;
    if (!node_rings_allocate(node)) {
        sim_node_dispose(node);
        return CW_ERROR_MEMORY;
    }
    node_mac_default(node);
    sim_port_init(node);
    sim_nic_init(node, part_seed(simulator, SEED_NIC, node->index));
    cw_link_init(&node->up.link, &node->config.up, part_seed(simulator, SEED_UP, node->index));
    cw_link_init(&node->down.link, &node->config.down, part_seed(simulator, SEED_DOWN, node->index));
    node->up.bridge = bridge_index;
    node->up.bridge_port = bridge->port_used;
    node->down.node = node;
    bridge->wires[bridge->port_used] = &node->down;
    bridge->peers[bridge->port_used] = -1;
    bridge->port_used++;
    address_spread(simulator, node);
    return (int)simulator->node_count++;
}

/* ---- whole topologies ---- */

/* Adds equal nodes to a bridge. The index of the first one, or an error. */
static int nodes_add(struct cw_simulator *simulator, uint32_t bridge, uint32_t node_count,
                     const struct cw_simulator_node_config *config)
{
    int first = (int)simulator->node_count;

    for (uint32_t i = 0; i < node_count; i++) {
        int node = cw_simulator_node_add(simulator, bridge, config);

        if (node < 0) {
            return node;
        }
    }
    return first;
}

int cw_simulator_star(struct cw_simulator *simulator, uint32_t node_count,
                      const struct cw_simulator_node_config *config)
{
    int bridge = cw_simulator_bridge_add(simulator, node_count);

    return bridge < 0 ? bridge : nodes_add(simulator, (uint32_t)bridge, node_count, config);
}

int cw_simulator_switches(struct cw_simulator *simulator, uint32_t switch_count, uint32_t node_count,
                          const struct cw_simulator_node_config *config, const struct cw_link_config *trunk)
{
    uint32_t first_bridge = simulator->bridge_count;
    int first_node = (int)simulator->node_count;
    uint64_t placed = 0;
    int status = CW_OK;

    if (switch_count < 1 || switch_count > node_count) {
        return CW_ERROR_ARGUMENT;
    }
    for (uint32_t i = 0; i < switch_count && status >= 0; i++) {
        status = cw_simulator_bridge_add(simulator, node_count / switch_count + switch_count);
        if (status >= 0 && i > 0) {
            status = cw_simulator_bridges_join(simulator, first_bridge, first_bridge + i, trunk, false);
        }
    }
    for (uint64_t i = 1; i <= switch_count && status >= 0;
         i++) { /* block i - 1 ends behind node i * count / switches */
        uint64_t past = (i * node_count + switch_count - 1) / switch_count;

        status = nodes_add(simulator, first_bridge + (uint32_t)i - 1, (uint32_t)(past - placed), config);
        placed = past;
    }
    return status < 0 ? status : first_node;
}

/* ---- queries ---- */

struct cw_link *cw_simulator_link_up(struct cw_simulator *simulator, uint32_t node)
{
    assert(node < simulator->node_count);
    return &simulator->nodes[node].up.link;
}

struct cw_link *cw_simulator_link_down(struct cw_simulator *simulator, uint32_t node)
{
    assert(node < simulator->node_count);
    return &simulator->nodes[node].down.link;
}

struct cw_link *cw_simulator_link_trunk(struct cw_simulator *simulator, uint32_t trunk, uint32_t direction)
{
    assert(trunk < simulator->trunk_count && direction < 2);
    return &simulator->trunks[trunk].wires[direction].link;
}

const struct cw_bridge *cw_simulator_bridge(const struct cw_simulator *simulator, uint32_t bridge)
{
    assert(bridge < simulator->bridge_count);
    return simulator->bridges[bridge].bridge;
}

uint32_t cw_simulator_node_count(const struct cw_simulator *simulator)
{
    return simulator->node_count;
}

const uint8_t *cw_simulator_mac(const struct cw_simulator *simulator, uint32_t node)
{
    assert(node < simulator->node_count);
    return simulator->nodes[node].port.info.mac;
}
