/* The lines and bridges, by the topology or by the options. */
#include "apps/switch/wan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/cli/cli.h"
#include "control/topology/clusters.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

/* ---- lines ---- */

/* Numbers that have nothing to do with one another for each line; those towards ports as before there were others. */
static uint64_t seed_of(const struct switch_config *config, uint32_t index)
{
    return index < SWITCH_PORTS_MAX ? config->seed * SWITCH_PORTS_MAX + index
                                    : config->seed ^ (UINT64_C(0x9e3779b97f4a7c15) * index);
}

static struct switch_line *line_add(struct switch_fabric *fabric, enum switch_line_kind kind, const char *name,
                                    const struct cw_link_config *link)
{
    struct switch_line *line = &fabric->lines[fabric->line_count];
    switch_line_init(line, kind, fabric->line_count, link, seed_of(fabric->config, fabric->line_count));
    line->name = name;
    snprintf(line->direction, sizeof(line->direction), "%s", kind == SWITCH_LINE_UP ? "up" : "down");
    fabric->line_count++;
    return line;
}

static void wan_lines_add(struct switch_fabric *fabric, const struct cw_topology *topology)
{
    for (uint32_t i = 0; i < cw_topology_link_count(topology); i++) {
        const struct cw_topology_link *link = cw_topology_link(topology, i);
        for (uint32_t direction = 0; direction < 2; direction++) {
            struct switch_line *line = line_add(fabric, SWITCH_LINE_WAN, link->name, &link->link);
            snprintf(line->direction, sizeof(line->direction), "%s>%s",
                     cw_topology_site_name(topology, link->sites[direction]),
                     cw_topology_site_name(topology, link->sites[1 - direction]));
        }
    }
}

static void lines_add(struct switch_fabric *fabric)
{
    const struct cw_topology *topology = fabric->config->topology;
    if (topology == NULL) {
        fabric->host_count = fabric->config->port_count;
        for (uint32_t i = 0; i < fabric->host_count; i++) {
            (void)line_add(fabric, SWITCH_LINE_DOWN, fabric->config->ports[i].name, &fabric->config->ports[i].link);
        }
        return;
    }
    fabric->host_count = cw_topology_host_count(topology);
    for (int kind = SWITCH_LINE_DOWN; kind <= SWITCH_LINE_UP; kind++) {
        for (uint32_t i = 0; i < fabric->host_count; i++) {
            uint32_t cluster = cw_topology_host_cluster(topology, i);
            (void)line_add(fabric, (enum switch_line_kind)kind, cw_topology_host_name(topology, i),
                           &cw_topology_cluster(topology, cluster)->host_link);
        }
    }
    wan_lines_add(fabric, topology);
}

/* ---- clusters ---- */

static void port_place(struct switch_fabric *fabric, uint32_t index)
{
    const struct cw_topology *topology = fabric->config->topology;
    struct switch_port *port = &fabric->ports[index];
    uint32_t host = cw_clusters_block(index, fabric->config->port_count, fabric->host_count);
    port->down = &fabric->lines[host];
    port->up = topology != NULL ? &fabric->lines[fabric->host_count + host] : NULL;
    port->cluster = topology != NULL ? cw_topology_host_cluster(topology, host) : 0;
    struct switch_cluster *cluster = &fabric->clusters[port->cluster];
    cluster->port_first = cluster->port_count == 0 ? index : cluster->port_first;
    port->bridge_port = cluster->port_count++;
}

static int bridges_open(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    struct cw_bridge_config bridge;
    int status = CW_OK;
    cw_bridge_config_init(&bridge);
    bridge.hash_seed = config->seed;
    bridge.snooping = config->snoops;
    bridge.flood_unregistered = !config->drops_unregistered;
    for (uint32_t i = 0; i < fabric->cluster_count && status == CW_OK; i++) {
        struct switch_cluster *cluster = &fabric->clusters[i];
        bridge.port_count = cluster->port_count + fabric->cluster_count - 1;
        status = cw_bridge_create(&bridge, &cluster->bridge);
        for (uint32_t port = cluster->port_count; port < bridge.port_count && status == CW_OK; port++) {
            cw_bridge_mesh_port_set(cluster->bridge, port, true);
            cw_bridge_router_port_set(cluster->bridge, port,
                                      true); /* multicast goes to all clusters, and reports of members */
        }
    }
    return status == CW_OK ? APP_EXIT_SUCCESS : app_error_status(status, "cannot set up the bridge", NULL);
}

int switch_wan_open(struct switch_fabric *fabric)
{
    const struct switch_config *config = fabric->config;
    uint64_t line_bytes = 0;
    fabric->lines = calloc(SWITCH_LINES_MAX, sizeof(*fabric->lines));
    if (fabric->lines == NULL || !cw_heap_init(&fabric->heap, SWITCH_LINES_MAX)) {
        return app_error_status(CW_ERROR_MEMORY, "no room for links", NULL);
    }
    lines_add(fabric);
    fabric->cluster_count = config->topology != NULL ? cw_topology_cluster_count(config->topology) : 1;
    for (uint32_t i = 0; i < config->port_count; i++) {
        port_place(fabric, i);
    }
    for (uint32_t i = 0; i < fabric->line_count; i++) {
        line_bytes += switch_line_bytes(&fabric->lines[i].link.config);
    }
    if (switch_pool_open(&fabric->pool, line_bytes, CW_BRIDGE_FRAME_MIN_BYTES + (uint32_t)config->mtu_bytes) != CW_OK) {
        return app_error_status(CW_ERROR_MEMORY, "no room for frames on their way", "lower queues or delays");
    }
    return bridges_open(fabric);
}

void switch_wan_close(struct switch_fabric *fabric)
{
    for (uint32_t i = 0; i < fabric->cluster_count; i++) {
        cw_bridge_destroy(fabric->clusters[i].bridge);
    }
    cw_heap_dispose(&fabric->heap);
    switch_pool_close(&fabric->pool);
    free(fabric->lines);
}

/* ---- by name ---- */

int switch_wan_find(const struct switch_fabric *fabric, const char *name, struct switch_line *lines[2], char *error,
                    size_t error_bytes)
{
    const struct cw_topology *topology = fabric->config->topology;
    char text[CW_TOPOLOGY_ERROR_BYTES];
    uint32_t index;
    lines[1] = NULL;
    if (topology == NULL) {
        for (index = 0; index < fabric->host_count; index++) {
            if (strcmp(fabric->lines[index].name, name) == 0) {
                lines[0] = &fabric->lines[index];
                return CW_OK;
            }
        }
        return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND,
                             "no port is called '%.64s': there are port0 to port%u", name, fabric->host_count - 1);
    }
    if (cw_topology_host_find(topology, name, &index, text, sizeof(text)) == CW_OK) {
        lines[0] = &fabric->lines[index];
        lines[1] = &fabric->lines[fabric->host_count + index];
        return CW_OK;
    }
    if (cw_topology_link_find(topology, name, &index, error, error_bytes) == CW_OK) {
        lines[0] = &fabric->lines[2 * fabric->host_count + 2 * index];
        lines[1] = lines[0] + 1;
        return CW_OK;
    }
    size_t used = strnlen(error, error_bytes);
    return cw_error_text(error + used, error_bytes - used, CW_ERROR_NOT_FOUND, "; %s", text);
}
