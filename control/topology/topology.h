/* Topology: clusters of hosts joined by long links, from a file: the place of each rank, and the routes of traffic.
 *
 * The file is JSON; quantities are texts with their units (control/settings/units.h):
 *
 *    {"clusters": [{"name": "delft", "hosts": ["das[0-3]", "fs"], "rate": "1Gbps", "delay": "20us", "queue": "256KB",
 *    "loss": "0%"},
 *                  {"name": "leiden", "hosts": 4}],
 *     "places": ["amsterdam"], "links": [{"name": "sea", "between": ["delft", "amsterdam"], "rate": "1Gbps", "delay":
 *     "10ms", "queue": "1MB", "loss": "0.01%",
 *                "streams": 4, "encrypt": true},
 *               {"between": ["amsterdam", "leiden"], "rate": "100Mbps", "delay": "1ms"}]}
 *
 *  - A site is a cluster or a place; a place has no hosts. `hosts` is a list of names, with a range of numbers in
 *    brackets where there are several ("das[08-11]" has das08 to das11), or a number of hosts: then they are called
 *    delft0, delft1, ...
 *  - rate, delay, queue and loss of a cluster are those of each host's own link, either direction; all may be left out:
 *    a rate without limit, no delay, a queue without limit, no loss. A link between sites needs `rate` and `delay`; an
 *    unknown rate is "found": the senders probe it.
 *  - A link without a name is called by its sites: "amsterdam-leiden".
 *
 * Invariants
 *  - Hosts are numbered in the order of the file, cluster by cluster; sites: the clusters, then the places.
 *  - Traffic between two clusters takes the way of least delay; of several such ways one of fewest links; of these the
 *    one whose links stand earlier in the file, compared one by one from the end of the cluster with the lower number.
 *    The way back is the same, so routes are symmetric. One link serves all pairs whose route crosses it.
 *  - There is a route between every two clusters: a file without is refused.
 *  - It never changes after it was made: queries may come from any thread.
 *
 * Order of calls: cw_topology_load or cw_topology_decode, queries, cw_topology_destroy. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dataplane/fabric/link.h"

/* All limits. */
enum {
    CW_TOPOLOGY_CLUSTERS_MAX = 64,
    CW_TOPOLOGY_PLACES_MAX = 64,
    CW_TOPOLOGY_LINKS_MAX = 256,
    CW_TOPOLOGY_HOSTS_MAX = 4096,
    CW_TOPOLOGY_NAME_BYTES = 64, /* of a site, host or link, with its final 0; letters, digits and - _ . */
    CW_TOPOLOGY_ERROR_BYTES = 400,
    CW_TOPOLOGY_FILE_BYTES = 1 << 20,
};

#define CW_TOPOLOGY_DELAY_MAX_NS UINT64_C(10000000000) /* of one link */
#define CW_TOPOLOGY_DIRECT       UINT32_MAX            /* no cluster on the way; CW_DIRECT of the collectives */

struct cw_topology_cluster {
    char name[CW_TOPOLOGY_NAME_BYTES];
    uint32_t host_first;
    uint32_t host_count;
    struct cw_link_config host_link; /* of each host, either direction */
};

struct cw_topology_link {
    char name[CW_TOPOLOGY_NAME_BYTES];
    uint32_t sites[2];          /* as in `between`: direction 0 is from the first to the second */
    struct cw_link_config link; /* rate_bps 0: nobody knows it */
    uint32_t streams;           /* nodes of a cluster that send across at a time; 0: as many as like */
    bool encrypt;
};

/* One link of a route. */
struct cw_topology_hop {
    uint16_t link;
    uint16_t direction; /* 0: from sites[0] to sites[1]; 1: back */
};

struct cw_topology;

/* Reads a file. CW_OK; CW_ERROR_SYSTEM (it cannot be read), CW_ERROR_ARGUMENT (it is invalid), CW_ERROR_MEMORY, each
 * with a line in `error`: the problem, its line or key, and the fix. The caller destroys it. */
int cw_topology_load(const char *path, struct cw_topology **topology, char *error, size_t error_bytes);

/* The same of a text in memory, which need not end with 0 and may go afterwards. */
int cw_topology_decode(const char *text, size_t length, struct cw_topology **topology, char *error, size_t error_bytes);

/* NULL is allowed. */
void cw_topology_destroy(struct cw_topology *topology);

uint32_t cw_topology_cluster_count(const struct cw_topology *topology);
uint32_t cw_topology_host_count(const struct cw_topology *topology);
uint32_t cw_topology_link_count(const struct cw_topology *topology);

/* Arguments of the functions below are less than their counts; results live as long as the topology. */
const struct cw_topology_cluster *cw_topology_cluster(const struct cw_topology *topology, uint32_t cluster);
const struct cw_topology_link *cw_topology_link(const struct cw_topology *topology, uint32_t link);
const char *cw_topology_host_name(const struct cw_topology *topology, uint32_t host);
const char *cw_topology_site_name(const struct cw_topology *topology, uint32_t site);
uint32_t cw_topology_host_cluster(const struct cw_topology *topology, uint32_t host);

/* CW_OK; CW_ERROR_NOT_FOUND: there is no such host; `error` says which there are. */
int cw_topology_host_find(const struct cw_topology *topology, const char *name, uint32_t *host, char *error,
                          size_t error_bytes);
/* The same for links. */
int cw_topology_link_find(const struct cw_topology *topology, const char *name, uint32_t *link, char *error,
                          size_t error_bytes);

/* The name of a link whose rate is unknown; NULL: all are known. */
const char *cw_topology_rate_unknown(const struct cw_topology *topology);

/* The links from one cluster to another, in the order in which they are crossed; *count of them, 0 within a cluster. */
const struct cw_topology_hop *cw_topology_route(const struct cw_topology *topology, uint32_t from, uint32_t to,
                                                uint32_t *count);

/* The links between two clusters combined, without hosts' own links: the least rate (0 within a cluster: no limit; 0
 * also: that of some link is not known), the sum of the delays. */
uint64_t cw_topology_rate_bps(const struct cw_topology *topology, uint32_t from, uint32_t to);
uint64_t cw_topology_delay_ns(const struct cw_topology *topology, uint32_t from, uint32_t to);

/* The cluster whose site the route passes through, or CW_TOPOLOGY_DIRECT: as collectives/schedule/problem.h wants it.
 * It is symmetric, and the two legs are direct: a route that passes through several clusters, or whose legs alone take
 * another route, is reported as direct. */
uint32_t cw_topology_via(const struct cw_topology *topology, uint32_t from, uint32_t to);
