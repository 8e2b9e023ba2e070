/* clusters: which cluster each rank of a job is in, and what it may send to the others.
 *
 * From a topology file (topology/topology.h) and the ranks' hosts: emulated ones in equal blocks (job/wire.h), others
 * by their names, whole or up to the first dot.
 *
 * Shares
 *   A rank may send to another cluster at the least of its own host's link, of which all ranks of the host have equal
 *   parts, and of its parts of the links on the way. A link is divided, in each direction, by the ranks that may send
 *   across it: of each cluster whose routes cross it in that direction, as many as the link's `streams` says, else all.
 *   So what all send together fits each link, as far as no more send at a time than `streams` promises, and each to one
 *   cluster at a time beyond the same bottleneck. Ways with the same bottleneck share a shaper: what a rank sends to
 *   all of them is its part of that link. An endpoint has CW_SHAPERS_MAX shapers; if there are more bottlenecks, the
 *   last shaper serves all that remain, at the least of their rates.
 *
 * Invariants
 *   - Ranks that have the same text, hosts and size have the same answers.
 *   - It never changes after it was made, and belongs to whoever made it: queries may come from any thread.
 *   - NULL stands for a job of one cluster, of which nothing is known; only cw_clusters_count and cw_clusters_of take
 *     it. */
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

/* CW_OK; CW_ERROR_ARGUMENT (the text makes no sense, or emulated hosts are not as many as the file has),
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

/* Whether what goes from one cluster to another is to be sealed: a link on the way says so. */
bool cw_clusters_is_sealed(const struct cw_clusters *clusters, uint32_t from, uint32_t to);

/* What a rank may send to a cluster. */
struct cw_clusters_share {
    uint64_t rate_bps;      /* on the line; 0: nobody knows the rate of some link on the way, it has to be found out */
    uint64_t link_rate_bps; /* the least rate of the links on the way: what all ranks together can send; 0: as above */
    /* below CW_SHAPERS_MAX: numbered from 0 by the clusters that they serve first; CW_SHAPER_NONE if the rate is not
     * known */
    uint32_t shaper;
};

/* `to` is another cluster than the rank's. */
struct cw_clusters_share cw_clusters_share(const struct cw_clusters *clusters, uint32_t rank, uint32_t to);
