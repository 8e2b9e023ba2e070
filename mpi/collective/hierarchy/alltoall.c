/* All-to-all of short blocks: the first rank of a host has those of all its ranks, and sends each other host what all
 * of them have for it in one message. So a host sends one message to each other one, not one for each pair of ranks. */
#include <stdlib.h>
#include <string.h>

#include "collectives/price/network.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/hierarchy/private.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

enum {
    COPIES = 4, /* of each byte by the first rank, one after the other: to it, for the hosts, from the hosts, from it */
    HOPS = 3,   /* within the host: to the first rank, its verdict, from it */
};

/* By the work of the busiest core: of its ranks, or of the first ranks among them. */
bool hierarchy_alltoall_serves(const struct mpi_collective *call, enum mpi_choice_verdict verdict)
{
    const struct mpi_hierarchy *hierarchy = call->comm->collectives->hierarchy;
    struct cw_network wire, shared;
    uint32_t ranks = call->problem.ranks, own = (uint32_t)hierarchy->per_host, hosts = (uint32_t)hierarchy->hosts;
    if (own < 2 || verdict != MPI_CHOICE_OPEN) {
        return own >= 2;
    }
    if (call->problem.count == 0 || mpi_clusters_are_several(call->comm)) {
        return false; /* nothing has to be sent; there are schedules for clusters */
    }
    mpi_choice_networks(call->comm, &wire, &shared);
    double ranks_a_core = mpi_process.crowding, heads_a_core = (double)((mpi_process.crowding + own - 1) / own);
    double messages = ranks_a_core * (ranks - own) - heads_a_core * (hosts - 1); /* fewer */
    double bytes = (double)own * ranks * (double)(call->problem.count * call->problem.element_bytes);
    double hop = shared.paths[0].latency_ns + cw_plogp_gap(&shared.paths[0], 0);
    return messages * cw_plogp_gap(&wire.paths[0], 0) >
           heads_a_core * COPIES * bytes * shared.copy_ns_per_byte + ranks_a_core * HOPS * hop;
}

/* Blocks of a host's ranks, by sender and then receiver in rank order, to or from the order in which hosts get them: by
 * the other host, then its rank and the own one as `is_to` says who sends. */
static void blocks_order(const struct passage *passage, uint8_t *ranks_order, uint8_t *hosts_order, bool is_to)
{
    const struct mpi_hierarchy *hierarchy = passage->hierarchy;
    size_t bytes = (size_t)passage->count, own = (size_t)hierarchy->per_host;
    size_t ranks = own * (size_t)hierarchy->hosts;
    for (size_t host = 0; host < (size_t)hierarchy->hosts; host++) {
        for (size_t i = 0; i < own; i++) {
            for (size_t other = 0; other < own; other++) {
                size_t sender = is_to ? i : other, receiver = is_to ? other : i;
                uint8_t *one = ranks_order + (i * ranks + (size_t)hierarchy->by_host[host * own + other]) * bytes;
                uint8_t *two = hosts_order + ((host * own + sender) * own + receiver) * bytes;
                memcpy(is_to ? two : one, is_to ? one : two, bytes);
            }
        }
    }
}

int hierarchy_alltoall(const struct passage *passage, const void *send, void *receive)
{
    const struct mpi_hierarchy *hierarchy = passage->hierarchy;
    MPI_Count own = hierarchy->per_host, row = passage->count * own * hierarchy->hosts;
    MPI_Count parcel = passage->count * own * own;
    uint8_t *gathered = passage->is_head ? malloc((size_t)(2 * own * row) + 1) : NULL;
    uint8_t *parcels = gathered == NULL ? NULL : gathered + own * row;
    if (passage->is_head && gathered == NULL) {
        mpi_hierarchy_abandon((struct mpi_collective *)(uintptr_t)passage->call);
        return MPI_ERR_NO_MEM;
    }
    int code = mpi_gather(send, row, MPI_BYTE, gathered, row, MPI_BYTE, 0, passage->inside);
    if (hierarchy_goes_on(passage, code)) {
        blocks_order(passage, gathered, parcels, true);
        code = mpi_alltoall(MPI_IN_PLACE, parcel, MPI_BYTE, parcels, parcel, MPI_BYTE, passage->heads);
        blocks_order(passage, gathered, parcels, false);
    }
    code = hierarchy_verdict_tell(passage, code);
    if (code == MPI_SUCCESS) {
        code = mpi_scatter(gathered, row, MPI_BYTE, receive, row, MPI_BYTE, 0, passage->inside);
    }
    free(gathered);
    return code;
}
