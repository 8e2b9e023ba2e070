#include "mpi/group/hosts.h"

#include <stdlib.h>

#include "dataplane/path/path.h"
#include "mpi/group/communicator.h"
#include "mpi/state/process.h"

/* Ranks of one host are neighbours in this order, the lowest first. */
static int ranks_compare(const void *one, const void *other, void *context)
{
    const struct mpi_comm *comm = context;
    int a = *(const int *)one, b = *(const int *)other;
    int order = cw_paths_hosts_compare(mpi_process.paths, comm->group->ranks[a], comm->group->ranks[b]);
    return order != 0 ? order : (a > b) - (a < b);
}

int mpi_hosts_number(const struct mpi_comm *comm, int *host_of, int *firsts)
{
    int count = 0, first = 0;
    int *order = malloc((size_t)comm->size * sizeof(*order));
    if (order == NULL) {
        return 0;
    }
    for (int rank = 0; rank < comm->size; rank++) {
        order[rank] = rank;
    }
    qsort_r(order, (size_t)comm->size, sizeof(*order), ranks_compare, (void *)(uintptr_t)comm);
    for (int i = 0; i < comm->size; i++) { /* at first the host's first rank */
        first = i == 0 || cw_paths_hosts_compare(mpi_process.paths, comm->group->ranks[first],
                                                 comm->group->ranks[order[i]]) != 0
                    ? order[i]
                    : first;
        host_of[order[i]] = first;
    }
    for (int rank = 0; rank < comm->size; rank++) { /* the first rank comes before the others */
        if (host_of[rank] == rank) {
            firsts[count] = rank;
            order[rank] = count++;
        } else {
            order[rank] = order[host_of[rank]];
        }
    }
    for (int rank = 0; rank < comm->size; rank++) {
        host_of[rank] = order[rank];
    }
    free(order);
    return count;
}
