#include "mpi/collective/clusters/clusters.h"

#include <stdlib.h>
#include <xxhash.h>

#include "mpi/collective/clusters/levels.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/state/process.h"

enum { EARLY_MAX_BYTES = 4 << 20 /* from all ranks that send at once */ };

static uint32_t cluster_of(const struct mpi_comm *comm, int rank)
{
    return cw_clusters_of(mpi_process.clusters, comm->group->ranks[rank]);
}

bool mpi_clusters_are_several(const struct mpi_comm *comm)
{
    for (int rank = 1; mpi_process.clusters != NULL && rank < comm->size; rank++) {
        if (cluster_of(comm, rank) != cluster_of(comm, 0)) {
            return true;
        }
    }
    return false;
}

uint64_t mpi_clusters_eager_max(uint32_t ranks)
{
    uint64_t share = EARLY_MAX_BYTES / ranks;
    return share < EXCHANGE_PARTS_MAX_BYTES ? share : EXCHANGE_PARTS_MAX_BYTES;
}

bool mpi_clusters_can_multicast(const struct mpi_comm *comm)
{
    if (mpi_process.job == NULL || cw_job_groups(mpi_process.job) == NULL || comm->size < 2 ||
        mpi_clusters_are_several(comm)) {
        return false;
    }
    for (int rank = 0; rank < comm->size; rank++) {
        uint32_t world = comm->group->ranks[rank];
        if (world != mpi_process.rank && !cw_paths_is_here(mpi_process.paths, world)) {
            return true;
        }
    }
    return false;
}

uint64_t mpi_clusters_multicast_eager_max(void)
{
    return mpi_process.job == NULL || cw_job_groups(mpi_process.job) == NULL ? 0 : EXCHANGE_PARTS_MAX_BYTES;
}

/* Numbers the clusters that are there: numbers[] by the topology's, back[] the other way. */
static uint32_t number(const struct mpi_comm *comm, uint32_t numbers[CW_TOPOLOGY_CLUSTERS_MAX],
                       uint32_t back[CW_TOPOLOGY_CLUSTERS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < CW_TOPOLOGY_CLUSTERS_MAX; i++) {
        numbers[i] = CW_DIRECT;
    }
    for (int rank = 0; rank < comm->size; rank++) {
        numbers[cluster_of(comm, rank)] = 0;
    }
    for (uint32_t i = 0; i < CW_TOPOLOGY_CLUSTERS_MAX; i++) {
        if (numbers[i] == 0) {
            back[count] = i;
            numbers[i] = count++;
        }
    }
    return count;
}

static uint64_t host_delay_ns(uint32_t cluster)
{
    return cw_topology_cluster(cw_clusters_topology(mpi_process.clusters), cluster)->host_link.delay_ns;
}

static uint64_t least(uint64_t rate_bps, uint64_t other_bps)
{
    return rate_bps == 0 || (other_bps > 0 && other_bps < rate_bps) ? other_bps : rate_bps;
}

static uint64_t greatest(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

/* Adds a rank's data: its host's link, and its routes to the other clusters. */
static void wan_add(struct cw_measured_wan *wan, uint32_t rank, const uint32_t *back, uint32_t count)
{
    const struct cw_topology *topology = cw_clusters_topology(mpi_process.clusters);
    uint32_t own = cw_clusters_of(mpi_process.clusters, rank);
    wan->host_bps = least(wan->host_bps, cw_clusters_host_share_bps(mpi_process.clusters, rank));
    wan->host_delay_ns = greatest(wan->host_delay_ns, 2 * host_delay_ns(own));
    for (uint32_t i = 0; i < count; i++) {
        if (back[i] != own) {
            struct cw_clusters_share share = cw_clusters_share(mpi_process.clusters, rank, back[i]);
            uint64_t delay_ns =
                cw_topology_delay_ns(topology, own, back[i]) + host_delay_ns(own) + host_delay_ns(back[i]);
            wan->rank_bps = least(wan->rank_bps, share.rate_bps);
            wan->link_bps = least(wan->link_bps, share.link_rate_bps);
            wan->delay_ns = greatest(wan->delay_ns, delay_ns);
        }
    }
}

static void vias_set(struct mpi_clusters *made, const uint32_t *numbers, const uint32_t *back)
{
    const struct cw_topology *topology = cw_clusters_topology(mpi_process.clusters);
    for (uint32_t i = 0; i < made->count * made->count; i++) {
        uint32_t from = back[i / made->count], to = back[i % made->count];
        uint32_t via = from == to ? CW_TOPOLOGY_DIRECT : cw_topology_via(topology, from, to);
        made->via[i] = via == CW_TOPOLOGY_DIRECT ? CW_DIRECT : numbers[via];
    }
}

static struct mpi_clusters *clusters_make(const struct mpi_comm *comm)
{
    uint32_t numbers[CW_TOPOLOGY_CLUSTERS_MAX], back[CW_TOPOLOGY_CLUSTERS_MAX];
    struct mpi_clusters *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    made->count = number(comm, numbers, back);
    made->of = calloc((size_t)comm->size, sizeof(*made->of));
    made->via = calloc((size_t)made->count * made->count, sizeof(*made->via));
    if (made->of == NULL || made->via == NULL) {
        mpi_clusters_free(made);
        return NULL;
    }
    for (int rank = 0; rank < comm->size; rank++) {
        made->of[rank] = numbers[cluster_of(comm, rank)];
        wan_add(&made->wan, comm->group->ranks[rank], back, made->count);
    }
    vias_set(made, numbers, back);
    made->digest = XXH3_64bits(made->of, (size_t)comm->size * sizeof(*made->of));
    made->digest =
        XXH3_64bits_withSeed(made->via, (size_t)made->count * made->count * sizeof(*made->via), made->digest);
    made->digest = XXH3_64bits_withSeed(&made->wan, sizeof(made->wan), made->digest);
    return made;
}

const struct mpi_clusters *mpi_clusters_of(struct mpi_comm *comm)
{
    struct mpi_collectives *collectives = mpi_collectives_of(comm);
    if (collectives != NULL && !collectives->knows_clusters && mpi_clusters_are_several(comm)) {
        collectives->clusters = clusters_make(comm);
    }
    if (collectives != NULL) {
        collectives->knows_clusters = true;
    }
    return collectives == NULL ? NULL : collectives->clusters;
}

struct cw_problem_request mpi_clusters_request(struct mpi_comm *comm, const struct cw_problem_request *request,
                                               bool has_levels)
{
    struct cw_problem_request made = *request;
    const struct mpi_clusters *clusters = mpi_clusters_of(comm);
    if (clusters != NULL) {
        made.cluster_count = clusters->count;
        made.cluster_of = clusters->of;
        made.cluster_via = clusters->via;
    }
    const struct mpi_levels *levels = has_levels ? comm->collectives->levels : NULL;
    if (levels != NULL) {
        made.host_count = levels->hosts;
        made.host_of = levels->host_of;
    }
    return made;
}

void mpi_clusters_free(struct mpi_clusters *clusters)
{
    if (clusters != NULL) {
        free(clusters->of);
        free(clusters->via);
        free(clusters);
    }
}
