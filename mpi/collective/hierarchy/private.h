/* What the files of the hierarchy share. */
#pragma once

#include "mpi/collective/choice/choice.h"
#include "mpi/collective/hierarchy/hierarchy.h"

struct mpi_hierarchy {
    struct mpi_comm *inside; /* the ranks of this host */
    struct mpi_comm *heads;  /* the first rank of each host; NULL: this rank is none */
    int *host_of;            /* per rank, numbered as they come */
    int *by_host;            /* the ranks of each host, in order, one host after the other */
    int hosts;
    int per_host; /* ranks of each host; 0: not all have as many */
};

/* One call on its way through the hierarchy. */
struct passage {
    const struct mpi_hierarchy *hierarchy;
    const struct mpi_collective *call;
    MPI_Comm inside;
    MPI_Comm heads;
    bool is_head;
    bool is_alone; /* on its host */
    int root_host;
    bool is_at_root; /* on the root's host */
    int root_inside; /* the root's rank within its host */
    MPI_Count count; /* of elements */
    MPI_Datatype type;
    MPI_Op op;
};

/* The first rank of a host tells the others how it went among the hosts. */
int hierarchy_verdict_tell(const struct passage *passage, int code);

/* Whether this rank goes on among the hosts. If its host has failed before that, the others' first ranks are told: they
 * would wait for it. */
bool hierarchy_goes_on(const struct passage *passage, int code);

/* Whether an all-to-all goes by way of the hosts' first ranks. The same at all ranks. */
bool hierarchy_alltoall_serves(const struct mpi_collective *call, enum mpi_choice_verdict verdict);
int hierarchy_alltoall(const struct passage *passage, const void *send, void *receive);
