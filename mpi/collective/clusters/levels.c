#include "mpi/collective/clusters/levels.h"

#include <stdlib.h>
#include <xxhash.h>

#include "mpi/collective/state/collectives.h"
#include "mpi/group/hosts.h"

struct mpi_levels *mpi_levels_make(const struct mpi_comm *comm)
{
    size_t size = (size_t)comm->size;
    struct mpi_levels *levels = calloc(1, sizeof(*levels));
    int *lists = malloc(2 * size * sizeof(*lists));
    int hosts = lists == NULL ? 0 : mpi_hosts_number(comm, lists, lists + size);
    if (levels != NULL && hosts > 0) {
        levels->hosts = (uint32_t)hosts;
        levels->host_of = malloc(size * sizeof(*levels->host_of));
        levels->heads = malloc((size_t)hosts * sizeof(*levels->heads));
    }
    if (levels == NULL || levels->host_of == NULL || levels->heads == NULL) {
        free(lists);
        mpi_levels_free(levels);
        return NULL;
    }
    for (size_t rank = 0; rank < size; rank++) {
        levels->host_of[rank] = (uint32_t)lists[rank];
    }
    for (size_t host = 0; host < (size_t)hosts; host++) {
        levels->heads[host] = (uint32_t)lists[size + host];
    }
    levels->digest = XXH3_64bits(levels->host_of, size * sizeof(*levels->host_of));
    free(lists);
    return levels;
}

void mpi_levels_free(struct mpi_levels *levels)
{
    if (levels != NULL) {
        free(levels->host_of);
        free(levels->heads);
        free(levels);
    }
}

bool mpi_levels_is_head(const struct mpi_comm *comm)
{
    const struct mpi_levels *levels = comm->collectives == NULL ? NULL : comm->collectives->levels;
    return levels != NULL && levels->heads[levels->host_of[comm->rank]] == (uint32_t)comm->rank;
}
