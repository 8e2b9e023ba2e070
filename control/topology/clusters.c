#include "control/topology/clusters.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/dataplane.h"
#include "dataplane/limits.h"
#include "dataplane/port/error_text.h"
#include "dataplane/status.h"

struct cw_clusters {
    struct cw_topology *topology;
    uint32_t ranks;
    uint32_t *host_of;    /* per rank */
    uint32_t *on_host;    /* ranks per host */
    uint32_t *in_cluster; /* ranks per cluster */
    uint32_t *senders;    /* [2 * link + direction]: ranks that may send across at a time */
};

/* ---- who is where ---- */

/* Matches the whole name, else the part before the first dot. The error contains the whole name. */
static int host_find(const struct cw_topology *topology, const char *name, uint32_t *host, char *error,
                     size_t error_bytes)
{
    char first[CW_TOPOLOGY_NAME_BYTES];
    int status = cw_topology_host_find(topology, name, host, error, error_bytes);
    size_t length = strcspn(name, ".");
    if (status == CW_ERROR_NOT_FOUND && name[length] == '.' && length < sizeof(first)) {
        char ignored[CW_TOPOLOGY_ERROR_BYTES];
        memcpy(first, name, length);
        first[length] = '\0';
        status = cw_topology_host_find(topology, first, host, ignored, sizeof(ignored));
    }
    return status;
}

static int hosts_find(struct cw_clusters *clusters, const struct cw_clusters_request *request, char *error,
                      size_t error_bytes)
{
    uint32_t hosts = cw_topology_host_count(clusters->topology);
    char reason[CW_TOPOLOGY_ERROR_BYTES];
    if (request->emulated > 0 && request->emulated != hosts) {
        return cw_error_text(error, error_bytes, CW_ERROR_ARGUMENT,
                             "%s: the topology has %u hosts, and %u are emulated (causeway run --emulate "
                             "topology=FILE,memif makes as many)",
                             request->place, hosts, request->emulated);
    }
    for (uint32_t rank = 0; rank < request->ranks; rank++) {
        uint32_t *host = &clusters->host_of[rank];
        if (request->emulated > 0) {
            *host = cw_clusters_block(rank, request->ranks, hosts);
            continue;
        }
        int status =
            host_find(clusters->topology, request->host_name(request->context, rank), host, reason, sizeof(reason));
        if (status != CW_OK) {
            return cw_error_text(error, error_bytes, status, "%s: rank %u: %s", request->place, rank, reason);
        }
    }
    return CW_OK;
}

/* ---- who sends across what ---- */

static const struct cw_topology_hop *route(const struct cw_clusters *clusters, uint32_t from, uint32_t to,
                                           uint32_t *count)
{
    return cw_topology_route(clusters->topology, from, to, count);
}

static uint32_t index_of(const struct cw_topology_hop *hop)
{
    return 2u * hop->link + hop->direction;
}

/* The ranks of a cluster that may send across a link at a time. */
static uint32_t streams_of(const struct cw_clusters *clusters, uint32_t cluster, uint32_t link)
{
    uint32_t streams = cw_topology_link(clusters->topology, link)->streams;
    uint32_t ranks = clusters->in_cluster[cluster];
    return streams > 0 && streams < ranks ? streams : ranks;
}

/* Adds a cluster's ranks to each link that some of its routes cross, once. */
static void senders_add(struct cw_clusters *clusters, uint32_t from, bool *crosses)
{
    uint32_t links = cw_topology_link_count(clusters->topology);
    memset(crosses, 0, 2u * links * sizeof(*crosses));
    for (uint32_t to = 0; to < cw_clusters_count(clusters); to++) {
        uint32_t count = 0;
        const struct cw_topology_hop *hops = route(clusters, from, to, &count);
        for (uint32_t i = 0; i < count && clusters->in_cluster[to] > 0; i++) {
            crosses[index_of(&hops[i])] = true;
        }
    }
    for (uint32_t i = 0; i < 2 * links; i++) {
        clusters->senders[i] += crosses[i] ? streams_of(clusters, from, i / 2) : 0;
    }
}

static int senders_count(struct cw_clusters *clusters)
{
    bool *crosses = calloc(2u * cw_topology_link_count(clusters->topology) + 1, sizeof(*crosses));
    if (crosses == NULL) {
        return CW_ERROR_MEMORY;
    }
    for (uint32_t from = 0; from < cw_clusters_count(clusters); from++) {
        senders_add(clusters, from, crosses);
    }
    free(crosses);
    return CW_OK;
}

/* ---- sealing ---- */

bool cw_clusters_is_sealed(const struct cw_clusters *clusters, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    const struct cw_topology_hop *hops = route(clusters, from, to, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (cw_topology_link(clusters->topology, hops[i].link)->encrypt) {
            return true;
        }
    }
    return false;
}

/* ---- making ---- */

static int tables_make(struct cw_clusters *clusters)
{
    clusters->host_of = calloc(clusters->ranks, sizeof(uint32_t));
    clusters->on_host = calloc(cw_topology_host_count(clusters->topology), sizeof(uint32_t));
    clusters->in_cluster = calloc(cw_clusters_count(clusters), sizeof(uint32_t));
    clusters->senders = calloc(2u * cw_topology_link_count(clusters->topology) + 1, sizeof(uint32_t));
    return clusters->host_of == NULL || clusters->on_host == NULL || clusters->in_cluster == NULL ||
                   clusters->senders == NULL
               ? CW_ERROR_MEMORY
               : CW_OK;
}

int cw_clusters_create(const struct cw_clusters_request *request, struct cw_clusters **clusters, char *error,
                       size_t error_bytes)
{
    char reason[CW_TOPOLOGY_ERROR_BYTES] = "";
    assert(request->ranks > 0 && (request->emulated > 0 || request->host_name != NULL));
    struct cw_clusters *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return cw_error_text(error, error_bytes, CW_ERROR_MEMORY, "no memory for the topology");
    }
    made->ranks = request->ranks;
    int status = cw_topology_decode(request->text, request->length, &made->topology, reason, sizeof(reason));
    if (status != CW_OK) {
        free(made);
        return cw_error_text(error, error_bytes, status, "%s: %s", request->place, reason);
    }
    status = tables_make(made);
    if (status == CW_OK) {
        status = hosts_find(made, request, error, error_bytes);
    }
    for (uint32_t rank = 0; status == CW_OK && rank < made->ranks; rank++) {
        made->on_host[made->host_of[rank]]++;
        made->in_cluster[cw_clusters_of(made, rank)]++;
    }
    status = status == CW_OK ? senders_count(made) : status;
    if (status != CW_OK) {
        cw_clusters_destroy(made);
        return status == CW_ERROR_MEMORY ? cw_error_text(error, error_bytes, status, "no memory for the topology")
                                         : status;
    }
    *clusters = made;
    return CW_OK;
}

void cw_clusters_destroy(struct cw_clusters *clusters)
{
    if (clusters == NULL) {
        return;
    }
    cw_topology_destroy(clusters->topology);
    free(clusters->host_of);
    free(clusters->on_host);
    free(clusters->in_cluster);
    free(clusters->senders);
    free(clusters);
}

/* ---- queries ---- */

uint32_t cw_clusters_count(const struct cw_clusters *clusters)
{
    return clusters == NULL ? 1 : cw_topology_cluster_count(clusters->topology);
}

uint32_t cw_clusters_of(const struct cw_clusters *clusters, uint32_t rank)
{
    return clusters == NULL ? 0 : cw_topology_host_cluster(clusters->topology, cw_clusters_host(clusters, rank));
}

const struct cw_topology *cw_clusters_topology(const struct cw_clusters *clusters)
{
    return clusters->topology;
}

uint32_t cw_clusters_host(const struct cw_clusters *clusters, uint32_t rank)
{
    assert(rank < clusters->ranks);
    return clusters->host_of[rank];
}

const char *cw_clusters_name(const struct cw_clusters *clusters, uint32_t rank)
{
    return cw_topology_cluster(clusters->topology, cw_clusters_of(clusters, rank))->name;
}

static uint64_t part(uint64_t rate_bps, uint32_t among)
{
    uint64_t share_bps = rate_bps / (among > 0 ? among : 1);
    return share_bps > 0 || rate_bps == 0 ? share_bps : 1;
}

uint64_t cw_clusters_host_share_bps(const struct cw_clusters *clusters, uint32_t rank)
{
    const struct cw_topology_cluster *cluster = cw_topology_cluster(clusters->topology, cw_clusters_of(clusters, rank));
    return part(cluster->host_link.rate_bps, clusters->on_host[cw_clusters_host(clusters, rank)]);
}

enum { BOTTLENECK_HOST = UINT32_MAX };

/* The tightest bottleneck of a rank towards a cluster: a link and direction, or BOTTLENECK_HOST; *rate_bps: the rank's
 * part, 0 if some link's rate is not known. */
static uint32_t bottleneck_find(const struct cw_clusters *clusters, uint32_t rank, uint32_t to, uint64_t *rate_bps)
{
    uint32_t count = 0;
    const struct cw_topology_hop *hops = route(clusters, cw_clusters_of(clusters, rank), to, &count);
    uint64_t host_bps = cw_clusters_host_share_bps(clusters, rank);
    uint32_t found = BOTTLENECK_HOST;
    *rate_bps = host_bps > 0 ? host_bps : UINT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = index_of(&hops[i]);
        uint64_t link_bps =
            part(cw_topology_link(clusters->topology, hops[i].link)->link.rate_bps, clusters->senders[index]);
        if (link_bps < *rate_bps) {
            *rate_bps = link_bps;
            found = index;
        }
    }
    return found;
}

struct cw_clusters_share cw_clusters_share(const struct cw_clusters *clusters, uint32_t rank, uint32_t to)
{
    uint32_t bottlenecks[CW_TOPOLOGY_CLUSTERS_MAX]; /* by shaper, or by candidate for one */
    uint64_t rates_bps[CW_TOPOLOGY_CLUSTERS_MAX] = {0};
    uint32_t count = 0;
    uint32_t found = 0;
    uint32_t own = cw_clusters_of(clusters, rank);
    assert(to != own && to < cw_clusters_count(clusters));
    if (cw_topology_rate_bps(clusters->topology, own, to) == 0) {
        return (struct cw_clusters_share){.shaper = CW_SHAPER_NONE};
    }
    for (uint32_t cluster = 0; cluster < cw_clusters_count(clusters); cluster++) {
        bool is_known = cluster != own && cw_topology_rate_bps(clusters->topology, own, cluster) > 0;
        if (!is_known) {
            continue;
        }
        uint64_t rate_bps;
        uint32_t at = 0;
        uint32_t bottleneck = bottleneck_find(clusters, rank, cluster, &rate_bps);
        while (at < count && bottlenecks[at] != bottleneck) {
            at++;
        }
        bottlenecks[at] = bottleneck;
        rates_bps[at] = rate_bps;
        count += at == count;
        found = cluster == to ? at : found;
    }
    struct cw_clusters_share share = {
        .rate_bps = rates_bps[found],
        .link_rate_bps = cw_topology_rate_bps(clusters->topology, own, to),
        .shaper = found,
    };
    if (count > CW_SHAPERS_MAX && found >= CW_SHAPERS_MAX - 1) {
        share.shaper = CW_SHAPERS_MAX - 1;
        for (uint32_t at = CW_SHAPERS_MAX - 1; at < count; at++) {
            share.rate_bps = rates_bps[at] < share.rate_bps ? rates_bps[at] : share.rate_bps;
        }
    }
    return share;
}
