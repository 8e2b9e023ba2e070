/* The ways between clusters: for each cluster the least (delay, links) from everywhere, then the way itself, link by
 * link. */
#include "control/topology/private.h"

#include <stdlib.h>
#include <string.h>

#include "dataplane/status.h"

/* The distance of a site from the current cluster. Delays are 10 s a link at most: no sum overflows. */
struct distance {
    uint64_t delay_ns;
    uint32_t links; /* UINT32_MAX: there is no way */
};

static bool is_nearer(const struct distance *a, const struct distance *b)
{
    return b->links == UINT32_MAX || a->delay_ns < b->delay_ns || (a->delay_ns == b->delay_ns && a->links < b->links);
}

/* All distances to `target`, by rounds over all links until nothing changes (Bellman and Ford). */
static void distances_find(const struct cw_topology *topology, uint32_t target, struct distance *distances)
{
    bool changes = true;
    for (uint32_t site = 0; site < TOPOLOGY_SITES_MAX; site++) {
        distances[site] = (struct distance){.links = UINT32_MAX};
    }
    distances[target] = (struct distance){.links = 0};
    while (changes) {
        changes = false;
        for (uint32_t i = 0; i < 2 * topology->link_count; i++) {
            const struct cw_topology_link *link = &topology->links[i / 2];
            const struct distance *there = &distances[link->sites[1 - i % 2]];
            struct distance *here = &distances[link->sites[i % 2]];
            if (there->links == UINT32_MAX) {
                continue;
            }
            struct distance way = {there->delay_ns + link->link.delay_ns, there->links + 1};
            if (is_nearer(&way, here)) {
                *here = way;
                changes = true;
            }
        }
    }
}

/* The first link of the file on a shortest route from `site`. */
static struct cw_topology_hop hop_find(const struct cw_topology *topology, const struct distance *distances,
                                       uint32_t site)
{
    for (uint32_t i = 0; i < topology->link_count; i++) {
        const struct cw_topology_link *link = &topology->links[i];
        for (uint16_t direction = 0; direction < 2; direction++) {
            const struct distance *there = &distances[link->sites[1 - direction]];
            if (link->sites[direction] == site && there->links + 1 == distances[site].links &&
                there->delay_ns + link->link.delay_ns == distances[site].delay_ns) {
                return (struct cw_topology_hop){.link = (uint16_t)i, .direction = direction};
            }
        }
    }
    abort(); /* a site with a distance has a way */
}

/* The links of a route combined. */
static void route_sum(const struct cw_topology *topology, struct topology_route *route)
{
    for (uint32_t i = 0; i < route->count; i++) {
        const struct cw_link_config *link = &topology->links[topology->hops[route->first + i].link].link;
        route->rate_bps = i == 0 || link->rate_bps < route->rate_bps ? link->rate_bps : route->rate_bps;
        route->delay_ns += link->delay_ns;
    }
}

/* The only cluster between the ends of a route; CW_TOPOLOGY_DIRECT: none, or several. */
static uint32_t between_find(const struct cw_topology *topology, const struct topology_route *route)
{
    uint32_t found = CW_TOPOLOGY_DIRECT;
    for (uint32_t i = 0; i + 1 < route->count; i++) {
        const struct cw_topology_hop *hop = &topology->hops[route->first + i];
        uint32_t site = topology->links[hop->link].sites[1 - hop->direction];
        if (site < topology->cluster_count) {
            if (found != CW_TOPOLOGY_DIRECT) {
                return CW_TOPOLOGY_DIRECT;
            }
            found = site;
        }
    }
    return found;
}

static bool passes_clusters(const struct cw_topology *topology, const struct topology_route *route)
{
    for (uint32_t i = 0; i + 1 < route->count; i++) {
        const struct cw_topology_hop *hop = &topology->hops[route->first + i];
        if (topology->links[hop->link].sites[1 - hop->direction] < topology->cluster_count) {
            return true;
        }
    }
    return false;
}

static void vias_find(struct cw_topology *topology)
{
    uint32_t count = topology->cluster_count;
    for (uint32_t i = 0; i < count * count; i++) {
        uint32_t via = between_find(topology, &topology->routes[i]);
        bool whole = via != CW_TOPOLOGY_DIRECT &&
                     !passes_clusters(topology, &topology->routes[i / count * count + via]) &&
                     !passes_clusters(topology, &topology->routes[via * count + i % count]);
        topology->routes[i].via = whole ? via : CW_TOPOLOGY_DIRECT;
    }
}

/* Writes both routes of a pair behind the `used` hops so far. */
static void pair_write(struct cw_topology *topology, const struct distance *distances, uint32_t from, uint32_t to,
                       uint32_t *used)
{
    struct topology_route *there = &topology->routes[from * topology->cluster_count + to];
    struct topology_route *back = &topology->routes[to * topology->cluster_count + from];
    uint32_t length = distances[from].links;
    *there = (struct topology_route){.first = *used, .count = length};
    *back = (struct topology_route){.first = *used + length, .count = length};
    *used += 2 * length;
    for (uint32_t i = 0, site = from; i < length; i++) {
        struct cw_topology_hop hop = hop_find(topology, distances, site);
        topology->hops[there->first + i] = hop;
        site = topology->links[hop.link].sites[1 - hop.direction];
        hop.direction = 1 - hop.direction;
        topology->hops[back->first + length - 1 - i] = hop;
    }
    route_sum(topology, there);
    route_sum(topology, back);
}

/* All pairs with one end. */
static int routes_to(const struct topology_reader *reader, uint32_t to, uint32_t *used)
{
    struct cw_topology *topology = reader->topology;
    struct distance distances[TOPOLOGY_SITES_MAX];
    uint32_t more = 0;
    distances_find(topology, to, distances);
    for (uint32_t from = 0; from < to; from++) {
        if (distances[from].links == UINT32_MAX) {
            return topology_reject(reader,
                                   "there is no wide-area link between the clusters '%s' and '%s', direct or through "
                                   "others (add one to \"links\")",
                                   topology->clusters[from].name, topology->clusters[to].name);
        }
        more += 2 * distances[from].links;
    }
    struct cw_topology_hop *grown = realloc(topology->hops, (*used + more + 1) * sizeof(*grown));
    if (grown == NULL) {
        return CW_ERROR_MEMORY;
    }
    topology->hops = grown;
    for (uint32_t from = 0; from < to; from++) {
        pair_write(topology, distances, from, to, used);
    }
    return CW_OK;
}

int topology_routes_find(const struct topology_reader *reader)
{
    struct cw_topology *topology = reader->topology;
    uint32_t used = 0;
    topology->routes = calloc((size_t)topology->cluster_count * topology->cluster_count, sizeof(*topology->routes));
    int status = topology->routes == NULL ? CW_ERROR_MEMORY : CW_OK;
    for (uint32_t to = 0; to < topology->cluster_count && status == CW_OK; to++) {
        status = routes_to(reader, to, &used);
    }
    if (status == CW_OK) {
        vias_find(topology);
    }
    return status;
}
