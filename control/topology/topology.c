#include "control/topology/private.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/settings.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

void cw_topology_destroy(struct cw_topology *topology)
{
    if (topology != NULL) {
        free(topology->hosts);
        free(topology->routes);
        free(topology->hops);
        free(topology);
    }
}

/* ---- what there is ---- */

uint32_t cw_topology_cluster_count(const struct cw_topology *topology)
{
    return topology->cluster_count;
}

uint32_t cw_topology_host_count(const struct cw_topology *topology)
{
    return topology->host_count;
}

uint32_t cw_topology_link_count(const struct cw_topology *topology)
{
    return topology->link_count;
}

const struct cw_topology_cluster *cw_topology_cluster(const struct cw_topology *topology, uint32_t cluster)
{
    assert(cluster < topology->cluster_count);
    return &topology->clusters[cluster];
}

const struct cw_topology_link *cw_topology_link(const struct cw_topology *topology, uint32_t link)
{
    assert(link < topology->link_count);
    return &topology->links[link];
}

const char *cw_topology_host_name(const struct cw_topology *topology, uint32_t host)
{
    assert(host < topology->host_count);
    return topology->hosts[host].name;
}

const char *cw_topology_site_name(const struct cw_topology *topology, uint32_t site)
{
    assert(site < topology->cluster_count + topology->place_count);
    return site < topology->cluster_count ? topology->clusters[site].name
                                          : topology->places[site - topology->cluster_count];
}

uint32_t cw_topology_host_cluster(const struct cw_topology *topology, uint32_t host)
{
    assert(host < topology->host_count);
    return topology->hosts[host].cluster;
}

/* ---- by name ---- */

/* Adds to a list that is cut when there is no more room. */
static void list_add(char *list, size_t list_bytes, const char *text)
{
    for (const char *part = list[0] != '\0' ? ", " : ""; part != NULL; part = part == text ? NULL : text) {
        strncat(list, part, list_bytes - 1 - strlen(list));
    }
}

int cw_topology_host_find(const struct cw_topology *topology, const char *name, uint32_t *host, char *error,
                          size_t error_bytes)
{
    char list[CW_TOPOLOGY_ERROR_BYTES / 2] = "";
    for (uint32_t i = 0; i < topology->host_count; i++) {
        if (strcmp(topology->hosts[i].name, name) == 0) {
            *host = i;
            return CW_OK;
        }
    }
    for (uint32_t i = 0; i < topology->cluster_count; i++) {
        const struct cw_topology_cluster *cluster = &topology->clusters[i];
        const char *first = topology->hosts[cluster->host_first].name;
        const char *last = topology->hosts[cluster->host_first + cluster->host_count - 1].name;
        char text[4 * CW_TOPOLOGY_NAME_BYTES];
        snprintf(text, sizeof(text), cluster->host_count > 1 ? "%s%s%s of %s" : "%s%.0s%.0s of %s", first,
                 cluster->host_count > 2 ? " to " : " and ", last, cluster->name);
        list_add(list, sizeof(list), text);
    }
    return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND, "no host is called '%.64s': there are %s", name, list);
}

int cw_topology_link_find(const struct cw_topology *topology, const char *name, uint32_t *link, char *error,
                          size_t error_bytes)
{
    char list[CW_TOPOLOGY_ERROR_BYTES / 2] = "";
    for (uint32_t i = 0; i < topology->link_count; i++) {
        if (strcmp(topology->links[i].name, name) == 0) {
            *link = i;
            return CW_OK;
        }
        list_add(list, sizeof(list), topology->links[i].name);
    }
    return cw_error_text(error, error_bytes, CW_ERROR_NOT_FOUND, "no link is called '%.64s': there %s %s", name,
                         topology->link_count == 1 ? "is" : "are", list[0] != '\0' ? list : "none");
}

const char *cw_topology_rate_unknown(const struct cw_topology *topology)
{
    for (uint32_t i = 0; i < topology->link_count; i++) {
        if (topology->links[i].link.rate_bps == 0) {
            return topology->links[i].name;
        }
    }
    return NULL;
}

/* ---- pairs of clusters ---- */

static const struct topology_route *route_of(const struct cw_topology *topology, uint32_t from, uint32_t to)
{
    assert(from < topology->cluster_count && to < topology->cluster_count);
    return &topology->routes[from * topology->cluster_count + to];
}

const struct cw_topology_hop *cw_topology_route(const struct cw_topology *topology, uint32_t from, uint32_t to,
                                                uint32_t *count)
{
    const struct topology_route *route = route_of(topology, from, to);
    *count = route->count;
    return topology->hops + route->first;
}

uint64_t cw_topology_rate_bps(const struct cw_topology *topology, uint32_t from, uint32_t to)
{
    return route_of(topology, from, to)->rate_bps;
}

uint64_t cw_topology_delay_ns(const struct cw_topology *topology, uint32_t from, uint32_t to)
{
    return route_of(topology, from, to)->delay_ns;
}

uint32_t cw_topology_via(const struct cw_topology *topology, uint32_t from, uint32_t to)
{
    return route_of(topology, from, to)->via;
}
