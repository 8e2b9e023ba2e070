/* clusters: the cluster of each rank of a job, and the rates at which ranks may send to other clusters.
 *
 * From a topology file (topology/topology.h) and the ranks' hosts: emulated ones in equal blocks (job/wire.h), others
 * by their names, whole or up to the first dot.
 *
 * Shares
 *   A rank may send to another cluster at the least of its own host's link, of which all ranks of the host have equal
 *   parts, and of its parts of the links on the way. In each direction, a link is divided by the number of ranks that
 *   may send across it: for each cluster whose routes cross it, the link's `streams`, else all ranks. So the sum of all
 *   traffic fits each link, provided that at most `streams` ranks send at a time, each to one cluster beyond the same
 *   bottleneck. Routes with the same bottleneck share a shaper: the rank's traffic to all of them has its part of that
 *   link. An endpoint has CW_SHAPERS_MAX shapers; if there are more bottlenecks, the last shaper serves all that
 *   remain, at the least of their rates.
 *
 * Invariants
 *   - Ranks that have the same text, hosts and size have the same answers.
 *   - It never changes after it was made; queries may come from any thread. Its creator owns it.
 *   - NULL represents a job of one cluster without further information; only cw_clusters_count and cw_clusters_of
 *     accept it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/topology/topology.h"

struct cw_clusters;

/* The host of a rank, of `hosts` emulated ones: equal blocks. */
static inline uint32_t cw_clusters_block(uint32_t rank, uint32_t size, uint32_t hosts)
{
    return (uint32_t)((uint64_t)rank * hosts / size);
}

struct cw_clusters_request {
    const char *text; /* of the file; need not outlive the call */
    size_t length;
    const char *place;                                      /* where it is from: errors begin with it */
    uint32_t ranks;                                         /* of the job, 1 or more */
    uint32_t emulated;                                      /* emulated hosts; 0: hosts by name */
    const char *(*host_name)(void *context, uint32_t rank); /* with `emulated` 0 */
    void *context;
};

/* CW_OK; CW_ERROR_ARGUMENT (the text is invalid, or the number of emulated hosts differs from the file's),
 * CW_ERROR_NOT_FOUND (a host that the file does not name), CW_ERROR_MEMORY, each with a line in `error`, of up to
 * CW_TOPOLOGY_ERROR_BYTES and `place`. */
int cw_clusters_create(const struct cw_clusters_request *request, struct cw_clusters **clusters, char *error,
                       size_t error_bytes);
/* NULL is allowed. */
void cw_clusters_destroy(struct cw_clusters *clusters);

/* Clusters of the file, some of which may have no ranks; 1 without a file. */
uint32_t cw_clusters_count(const struct cw_clusters *clusters);
/* The cluster of a rank, as the topology numbers it. */
uint32_t cw_clusters_of(const struct cw_clusters *clusters, uint32_t rank);

/* Lives as long as the clusters. */
const struct cw_topology *cw_clusters_topology(const struct cw_clusters *clusters);
/* The host of a rank, as the topology numbers it. */
uint32_t cw_clusters_host(const struct cw_clusters *clusters, uint32_t rank);
const char *cw_clusters_name(const struct cw_clusters *clusters, uint32_t rank);

/* A rank's part of its host's link, in bits per second on the line; 0: no limit. */
uint64_t cw_clusters_host_share_bps(const struct cw_clusters *clusters, uint32_t rank);

/* Whether traffic from one cluster to another must be sealed: a link on the route requires it. */
bool cw_clusters_is_sealed(const struct cw_clusters *clusters, uint32_t from, uint32_t to);

/* A rank's share of the rate to a cluster. */
struct cw_clusters_share {
    uint64_t rate_bps;      /* on the line; 0: the rate of some link on the route is unknown and must be probed */
    uint64_t link_rate_bps; /* the least rate of the links on the route: the limit of all ranks together; 0: as above */
    /* below CW_SHAPERS_MAX: numbered from 0 by the clusters that they serve first; CW_SHAPER_NONE if the rate is not
     * known */
    uint32_t shaper;
};

/* `to` is another cluster than the rank's. */
struct cw_clusters_share cw_clusters_share(const struct cw_clusters *clusters, uint32_t rank, uint32_t to);
