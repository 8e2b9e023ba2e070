/* The files of topology: topology/topology.c queries, topology/decode.c the file, topology/hosts.c lists of hosts,
 * topology/routes.c the routes. */
#pragma once

#include <jansson.h>

#include "control/topology/topology.h"

enum { TOPOLOGY_SITES_MAX = CW_TOPOLOGY_CLUSTERS_MAX + CW_TOPOLOGY_PLACES_MAX };

struct topology_host {
    char name[CW_TOPOLOGY_NAME_BYTES];
    uint32_t cluster;
};

/* Of an ordered pair of clusters. */
struct topology_route {
    uint32_t first; /* in `hops` */
    uint32_t count;
    uint32_t via;
    uint64_t rate_bps;
    uint64_t delay_ns;
};

struct cw_topology {
    uint32_t cluster_count;
    uint32_t place_count;
    uint32_t link_count;
    uint32_t host_count;
    struct cw_topology_cluster clusters[CW_TOPOLOGY_CLUSTERS_MAX];
    char places[CW_TOPOLOGY_PLACES_MAX][CW_TOPOLOGY_NAME_BYTES];
    struct cw_topology_link links[CW_TOPOLOGY_LINKS_MAX];
    struct topology_host *hosts;   /* room for CW_TOPOLOGY_HOSTS_MAX */
    struct topology_route *routes; /* [from * cluster_count + to] */
    struct cw_topology_hop *hops;
};

/* The file being read: the place of an error. */
struct topology_reader {
    struct cw_topology *topology;
    char *error;
    size_t error_bytes;
};

/* "WHERE: WHAT (TODO)"; returns CW_ERROR_ARGUMENT. */
__attribute__((format(printf, 2, 3))) int topology_reject(const struct topology_reader *reader, const char *format,
                                                          ...);

/* Whether a name is one: not empty, short, of the letters that are allowed. */
bool topology_name_valid(const char *name);

/* Takes the `hosts` of cluster `cluster`, which is named and the last one so far. */
int topology_hosts_parse(const struct topology_reader *reader, uint32_t cluster, const json_t *hosts);

/* Finds all routes. CW_OK, CW_ERROR_ARGUMENT (some clusters are not joined), CW_ERROR_MEMORY. */
int topology_routes_find(const struct topology_reader *reader);
