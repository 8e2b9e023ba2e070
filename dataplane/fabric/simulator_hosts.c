/* Hosts: nodes with an endpoint; and a test's faults for the whole network. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "dataplane/fabric/simulator_state.h"

#define IP_FIRST 0x0a000001u /* 10.0.0.1 */

/* ---- life ---- */

void cw_simulator_endpoint_config_init(struct cw_endpoint_config *config, uint32_t host_count)
{
    cw_endpoint_config_init(config);
    memset(config->job_key, 0x5a, sizeof(config->job_key));
    config->accept_unknown = true;
    config->peer_count_max = host_count + 1;
    config->region_count_max = 64;
    config->reassembly_count_max = 4096 + 2 * (host_count + 1);
    config->pool_slot_count = 64;
    config->pool_slot_bytes = 1024;
}

static uint64_t host_turn(void *context, uint64_t now_ns)
{
    struct sim_node *node = context;
    uint64_t next_ns = CW_SIMULATOR_NEVER;
    (void)cw_endpoint_turn(node->endpoint, now_ns);
    if (node->host_turn != NULL) {
        next_ns = node->host_turn(node->host_context, now_ns);
    }
    if (node->endpoint == NULL) { /* it has ended its own process */
        return CW_SIMULATOR_NEVER;
    }
    uint64_t deadline_ns = cw_endpoint_deadline(node->endpoint);
    return deadline_ns < next_ns ? deadline_ns : next_ns;
}

int cw_simulator_host_start(struct cw_simulator *simulator, uint32_t index, const struct cw_endpoint_config *config,
                            cw_simulator_turn turn, void *context, char *error, size_t error_bytes)
{
    static const struct cw_ip none;
    struct cw_endpoint_config own = *config;
    struct cw_port *port;
    if (index < simulator->node_count && simulator->nodes[index].endpoint == NULL) {
        cw_simulator_restart(simulator, index);
    }
    int status = cw_port_sim_open(simulator, index, &port);
    if (status != CW_OK) {
        snprintf(error, error_bytes, "node %u: %s", index, cw_status_text(status));
        return status;
    }
    struct sim_node *node = &simulator->nodes[index];
    if (memcmp(&own.address.ip, &none, sizeof(none)) == 0) {
        own.address.ip = cw_ip_v4(IP_FIRST + index);
    }
    own.address.udp_port = own.address.udp_port != 0 ? own.address.udp_port : CW_UDP_PORT;
    if (own.seed == 0) {
        own.seed = cw_random_derive(simulator->config.seed, ((uint64_t)node->lives << 32) + index + 1);
    }
    status = cw_endpoint_create(&own, port, simulator->now_ns, &node->endpoint, error, error_bytes);
    if (status != CW_OK) {
        cw_port_close(port);
        return status;
    }
    node->lives++;
    node->host_turn = turn;
    node->host_context = context;
    cw_simulator_attach(simulator, index, host_turn, node);
    return CW_OK;
}

void sim_host_end(struct sim_node *node)
{
    if (node->endpoint != NULL) {
        cw_endpoint_destroy(node->endpoint);
        node->endpoint = NULL;
        cw_port_close(&node->port);
    }
}

void cw_simulator_host_close(struct cw_simulator *simulator, uint32_t node)
{
    assert(node < simulator->node_count);
    sim_host_end(&simulator->nodes[node]);
    cw_simulator_crash(simulator, node);
}

/* ---- calls ---- */

struct cw_endpoint *cw_simulator_endpoint(const struct cw_simulator *simulator, uint32_t node)
{
    assert(node < simulator->node_count);
    return simulator->nodes[node].endpoint;
}

int cw_simulator_peer(struct cw_simulator *simulator, uint32_t from, uint32_t to, uint32_t *peer)
{
    struct cw_endpoint *endpoint = cw_simulator_endpoint(simulator, from);
    const struct cw_endpoint *other = cw_simulator_endpoint(simulator, to);
    if (endpoint == NULL || other == NULL) {
        return CW_ERROR_CLOSED;
    }
    const struct cw_address address = cw_endpoint_address(other);
    return cw_peer_add(endpoint, &address, peer);
}

void cw_simulator_wake(struct cw_simulator *simulator, uint32_t node)
{
    assert(node < simulator->node_count);
    sim_node_wake(&simulator->nodes[node], simulator->now_ns);
}

/* ---- faults ---- */

static void partition_begin(void *context)
{
    const struct sim_node *node = context;
    cw_simulator_partition(node->simulator, node->index, true);
}

static void partition_end(void *context)
{
    const struct sim_node *node = context;
    cw_simulator_partition(node->simulator, node->index, false);
}

static void stop_begin(void *context)
{
    const struct sim_node *node = context;
    cw_simulator_stop(node->simulator, node->index);
}

static void stop_end(void *context)
{
    const struct sim_node *node = context;
    cw_simulator_resume(node->simulator, node->index);
}

static int period_add(struct cw_simulator *simulator, uint32_t index, uint64_t start_ns, uint64_t end_ns,
                      void (*begin)(void *context), void (*end)(void *context))
{
    if (index >= simulator->node_count || end_ns < start_ns) {
        return CW_ERROR_ARGUMENT;
    }
    if (simulator->script_free == NULL || simulator->script_free->next == NULL) {
        return CW_ERROR_LIMIT; /* for the two of them */
    }
    (void)cw_simulator_at(simulator, start_ns, begin, &simulator->nodes[index]);
    return cw_simulator_at(simulator, end_ns, end, &simulator->nodes[index]);
}

int cw_simulator_partition_at(struct cw_simulator *simulator, uint32_t node, uint64_t start_ns, uint64_t end_ns)
{
    return period_add(simulator, node, start_ns, end_ns, partition_begin, partition_end);
}

int cw_simulator_stop_at(struct cw_simulator *simulator, uint32_t node, uint64_t start_ns, uint64_t end_ns)
{
    return period_add(simulator, node, start_ns, end_ns, stop_begin, stop_end);
}

static void link_heal(struct cw_link *link)
{
    struct cw_link_config config = link->config;
    config.loss = config.duplicate = config.corrupt = config.reorder = 0;
    link->down = false;
    cw_link_configure(link, &config);
}

void cw_simulator_heal(struct cw_simulator *simulator)
{
    for (uint32_t i = 0; i < 2 * simulator->trunk_count; i++) {
        link_heal(cw_simulator_link_trunk(simulator, i / 2, i % 2));
    }
    for (uint32_t node = 0; node < simulator->node_count; node++) {
        link_heal(cw_simulator_link_up(simulator, node));
        link_heal(cw_simulator_link_down(simulator, node));
    }
}
