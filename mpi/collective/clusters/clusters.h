/* clusters: those of a communicator's ranks, as in problems of collectives (collectives/schedule/problem.h), and the
 * known properties of the routes between them.
 *
 * Invariants
 *   - The same at all ranks of the communicator: from its group and the job's clusters (mpi/init/wan_policy.h),
 *     which all have alike.
 *   - Clusters are numbered from 0 as the topology has them, those without a rank left out. A way through a cluster
 *     that has no rank in the communicator counts as direct.
 *   - One network represents all routes between the communicator's clusters: the longest delay and the least rates.
 *
 * Within the lock of enter.h only. */
#pragma once

#include "collectives/choose/measured.h"
#include "mpi/state/comm.h"

struct mpi_clusters {
    uint32_t count; /* 2 or more */
    uint32_t *of;   /* per rank of the communicator */
    uint32_t *via;  /* [a * count + b], as in problem.h */
    struct cw_measured_wan wan;
    uint64_t digest; /* of all of this */
};

/* NULL: all ranks are in one cluster, or there is no memory. Stays the communicator's. */
const struct mpi_clusters *mpi_clusters_of(struct mpi_comm *comm);

/* Whether the ranks are in several clusters; makes nothing. */
bool mpi_clusters_are_several(const struct mpi_comm *comm);

/* Longest eager multicast, or message to another cluster: goes in parts where a message has less room. */
enum { EXCHANGE_PARTS_MAX_BYTES = 65536 };

/* Whether a communicator's ranks are on several hosts, all in one cluster, and all can multicast: the same at all of
 * them. Long links carry no multicast: who would pace it? */
bool mpi_clusters_can_multicast(const struct mpi_comm *comm);
/* The longest multicast that needs no word from its receivers. */
uint64_t mpi_clusters_multicast_eager_max(void);

/* The longest message that waits for no word from its receiver where that is far away, or dear. It may be there before
 * its call: less with more ranks. */
uint64_t mpi_clusters_eager_max(uint32_t ranks);

/* The request with the communicator's clusters and, if it has levels and they apply, its hosts; it points to their
 * lists. */
struct cw_problem_request mpi_clusters_request(struct mpi_comm *comm, const struct cw_problem_request *request,
                                               bool has_levels);

/* NULL is allowed. */
void mpi_clusters_free(struct mpi_clusters *clusters);
