/* objects: of each kind one that lives through the walk, and one whose handle has been freed. */
#pragma once

#include "mpix.h"

struct walk_objects {
    MPI_Comm grid; /* all ranks, in one dimension that is not periodic */
    MPI_Comm comm_of_group, comm_stale;
    MPI_Datatype derived, uncommitted, type_stale;
    MPI_Op op, op_stale;
    MPI_Group group, group_stale;
    MPI_Group group_kept; /* freed, but comm_of_group has it still */
    MPI_Info info, info_stale;
    MPI_Errhandler errhandler, errhandler_of_win, errhandler_stale;
    MPI_Request persistent, general, request_stale;
    MPIX_Alltoallv_phases phases, phases_stale;             /* of MPI_COMM_SELF */
    MPIX_Scatterv_group scatter_group, scatter_group_stale; /* of MPI_COMM_SELF */
    int comm_key, comm_key_stale, type_key, type_key_stale;
};

extern struct walk_objects walk_objects;

/* After MPI_Init; all ranks call them. */
void walk_objects_make(void);
void walk_objects_free(void);

/* Is never called. */
void walk_user_handler(MPI_Comm *comm, int *code, ...);
