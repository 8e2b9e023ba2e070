/* New communicators out of old ones (MPI 5.0, 7.4.2). */
#include <stdlib.h>
#include <string.h>

#include "mpi/collective/calls/collective.h"
#include "mpi/communicator/topology.h"
#include "mpi/group/communicator.h"
#include "mpi/point/internal.h"
#include "mpi/point/lost.h"
#include "mpi/runtime/attribute.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/info.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"

/* A communicator with the same group, and a copy of all that MPI_Comm_dup copies, except attributes. NULL: no
 * memory. */
static struct mpi_comm *dup_make(struct mpi_comm *comm, uint64_t context, struct mpi_info *info)
{
    struct mpi_comm *copy = mpi_comm_make(comm, comm->group, context);
    if (copy == NULL) {
        return NULL;
    }
    if (info != NULL) {
        copy->info = mpi_info_copy(info);
    }
    if (comm->topology != NULL) {
        const struct mpi_topology *grid = comm->topology;
        copy->topology = mpi_topology_make(grid->dimension_count, grid->sizes, grid->periodic, comm->rank);
    }
    return copy;
}

static int comm_dup(struct mpi_comm *comm, struct mpi_info *info, MPI_Comm *newcomm)
{
    uint64_t context = comm->rank == 0 ? mpi_context_next() : 0;
    int code = mpi_bcast(&context, sizeof(context), MPI_BYTE, 0, comm->handle);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_comm *copy = dup_make(comm, context, info);
    *newcomm = MPI_COMM_NULL;
    if (copy == NULL) {
        return mpi_error(comm->handle, MPI_ERR_NO_MEM, "no memory for a communicator");
    }
    code = mpi_attributes_copy_comm(comm->handle, comm->attributes, &copy->attributes);
    if (code != MPI_SUCCESS) {
        mpi_comm_handle_release(copy);
        return mpi_error(comm->handle, code, "an attribute's copy function failed");
    }
    *newcomm = copy->handle;
    return MPI_SUCCESS;
}

int mpi_comm_dup(MPI_Comm comm, MPI_Comm *newcomm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    return code != MPI_SUCCESS ? code : comm_dup(found, found->info, newcomm);
}

int mpi_comm_dup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code == MPI_SUCCESS && info != MPI_INFO_NULL && mpi_info_find(info) == NULL) {
        code = mpi_error(comm, MPI_ERR_INFO, "unknown info object");
    }
    return code != MPI_SUCCESS ? code : comm_dup(found, mpi_info_find(info), newcomm);
}

/* A member of a split: each sends this to all. */
struct member {
    int32_t color;
    int32_t key;
    uint64_t context; /* that this rank would number the communicator with, as its rank 0 */
    int32_t rank;
    int32_t is_error;
};

static int member_compare(const void *a, const void *b)
{
    const struct member *left = a, *right = b;
    return left->key != right->key ? (left->key < right->key ? -1 : 1) : left->rank - right->rank;
}

/* Makes the communicator of those with the own color; `members` are sorted in place. */
static int split_make(struct mpi_comm *comm, int color, struct member *members, MPI_Comm *newcomm)
{
    int size = 0;
    for (int rank = 0; rank < comm->size; rank++) {
        if (members[rank].color == color) {
            members[size++] = members[rank];
        }
    }
    qsort(members, (size_t)size, sizeof(*members), member_compare);
    uint32_t *ranks = malloc((size_t)size * sizeof(*ranks));
    for (int rank = 0; ranks != NULL && rank < size; rank++) {
        ranks[rank] = comm->group->ranks[members[rank].rank];
    }
    struct mpi_group *group = mpi_group_make(ranks, size);
    struct mpi_comm *made = group == NULL ? NULL : mpi_comm_make(comm, group, members[0].context);
    if (group != NULL) {
        mpi_group_release(group);
    }
    if (made == NULL) {
        return mpi_error(comm->handle, MPI_ERR_NO_MEM, "no memory for a communicator of %d", size);
    }
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

/* Error of a call that all must make: correct ranks get it too, instead of waiting forever. */
static int split_error(const struct mpi_comm *comm, const struct member *members, int *rank)
{
    for (*rank = 0; *rank < comm->size; (*rank)++) {
        if (members[*rank].is_error) {
            return members[*rank].is_error;
        }
    }
    return MPI_SUCCESS;
}

static int comm_split(struct mpi_comm *comm, int color, int key, int error, MPI_Comm *newcomm)
{
    struct member own = {
        .color = color, .key = key, .context = mpi_context_next(), .rank = comm->rank, .is_error = error};
    struct member *members = malloc((size_t)comm->size * sizeof(*members));
    if (members == NULL) {
        return mpi_error(comm->handle, MPI_ERR_NO_MEM, "no memory for %d ranks", comm->size);
    }
    int rank;
    int code = mpi_allgather(&own, sizeof(own), MPI_BYTE, members, sizeof(own), MPI_BYTE, comm->handle);
    if (code == MPI_SUCCESS) {
        code = split_error(comm, members, &rank);
        if (code != MPI_SUCCESS) {
            code = mpi_error(comm->handle, code, "color %d of rank %d is neither MPI_UNDEFINED nor at least 0",
                             members[rank].color, rank);
        }
    }
    *newcomm = MPI_COMM_NULL;
    if (code == MPI_SUCCESS && color != MPI_UNDEFINED) {
        code = split_make(comm, color, members, newcomm);
    }
    free(members);
    return code;
}

int mpi_comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    return comm_split(found, color, key, color < 0 && color != MPI_UNDEFINED ? MPI_ERR_ARG : MPI_SUCCESS, newcomm);
}

/* The lowest rank on this host: all of a host come to the same color. */
static int host_color(const struct mpi_comm *comm)
{
    for (int rank = 0; rank < comm->size; rank++) {
        if (cw_paths_transport(mpi_process.paths, comm->group->ranks[rank]) == CW_PATH_TRANSPORT_SHARED) {
            return rank;
        }
    }
    return comm->rank;
}

/* Whether hints ask for the one resource that is known: memory that processes share (MPI 5.0, 7.4.2). */
static bool requests_shared_memory(MPI_Info info)
{
    const struct mpi_info *hints = mpi_info_find(info);
    const char *resource = hints == NULL ? NULL : mpi_info_value(hints, "mpi_hw_resource_type");
    return resource != NULL && strcmp(resource, "mpi_shared_memory") == 0;
}

int mpi_comm_split_type(MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *newcomm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (info != MPI_INFO_NULL && mpi_info_find(info) == NULL) {
        return mpi_error(comm, MPI_ERR_INFO, "unknown info object");
    }
    switch (split_type) {
    case MPI_COMM_TYPE_HW_GUIDED:
    case MPI_COMM_TYPE_RESOURCE_GUIDED:
        return comm_split(found, requests_shared_memory(info) ? host_color(found) : MPI_UNDEFINED, key, MPI_SUCCESS,
                          newcomm);
    case MPI_UNDEFINED:
    case MPI_COMM_TYPE_HW_UNGUIDED: /* no part of a host is known: no rank is in any */
        return comm_split(found, MPI_UNDEFINED, key, MPI_SUCCESS, newcomm);
    case MPI_COMM_TYPE_SHARED:
        return comm_split(found, host_color(found), key, MPI_SUCCESS, newcomm);
    default:
        return mpi_error(comm, MPI_ERR_ARG, "unknown split type %d", split_type);
    }
}

/* Members of a group as ranks of a communicator; MPI_ERR_GROUP if one is none. */
static int members_find(struct mpi_comm *comm, const struct mpi_group *group)
{
    for (int rank = 0; rank < group->size; rank++) {
        if (mpi_group_rank_of(comm->group, group->ranks[rank]) == MPI_UNDEFINED) {
            return mpi_error(comm->handle, MPI_ERR_GROUP, "rank %d of the group is no member of %s", rank, comm->name);
        }
    }
    return MPI_SUCCESS;
}

/* Makes the communicator of a group once its context is known. */
static int group_make(struct mpi_comm *comm, struct mpi_group *group, uint64_t context, MPI_Comm *newcomm)
{
    struct mpi_comm *made = mpi_comm_make(comm, group, context);
    if (made == NULL) {
        return mpi_error(comm->handle, MPI_ERR_NO_MEM, "no memory for a communicator of %d", group->size);
    }
    *newcomm = made->handle;
    return MPI_SUCCESS;
}

int mpi_comm_create_group(MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *newcomm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    struct mpi_group *members = mpi_group_find(group);
    if (code != MPI_SUCCESS || members == NULL) {
        return code != MPI_SUCCESS ? code : mpi_error(comm, MPI_ERR_GROUP, "unknown group");
    }
    if (tag < 0 || tag > MPI_TAG_MAX) {
        return mpi_error(comm, MPI_ERR_TAG, "tag %d is outside 0 .. %d", tag, MPI_TAG_MAX);
    }
    *newcomm = MPI_COMM_NULL;
    code = members_find(found, members);
    if (code != MPI_SUCCESS || members->rank == MPI_UNDEFINED) {
        return code;
    }
    uint64_t context = members->rank == 0 ? mpi_context_next() : 0;
    code = mpi_internal_bcast(found, members, MPI_TAG_CREATE_GROUP + (tag & 0x3fffffff), &context, sizeof(context));
    return code != MPI_SUCCESS ? code : group_make(found, members, context, newcomm);
}

int mpi_comm_create(MPI_Comm comm, MPI_Group group, MPI_Comm *newcomm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    struct mpi_group *members = mpi_group_find(group);
    if (code != MPI_SUCCESS || members == NULL) {
        return code != MPI_SUCCESS ? code : mpi_error(comm, MPI_ERR_GROUP, "unknown group");
    }
    code = members_find(found, members);
    if (code != MPI_SUCCESS) {
        return code;
    }
    /* groups of different callers may be disjoint: rank 0 of each numbers its communicator */
    return comm_split(
        found, members->rank == MPI_UNDEFINED ? MPI_UNDEFINED : mpi_group_rank_of(found->group, members->ranks[0]),
        members->rank, MPI_SUCCESS, newcomm);
}

int mpi_comm_free(MPI_Comm *comm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(*comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (found == mpi_comm_world || found == mpi_comm_self) {
        return mpi_error(*comm, MPI_ERR_COMM, "%s cannot be freed", found->name);
    }
    code = mpi_attributes_free_comm(*comm, &found->attributes);
    if (code != MPI_SUCCESS) {
        return mpi_error(*comm, code, "an attribute's delete function failed");
    }
    mpi_lost_abandon(found);
    mpi_comm_handle_release(found);
    *comm = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int mpi_comm_disconnect(MPI_Comm *comm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(*comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (found == mpi_comm_world || found == mpi_comm_self) {
        return mpi_error(*comm, MPI_ERR_COMM, "%s cannot be disconnected", found->name);
    }
    mpi_internal_drain(found);
    return mpi_comm_free(comm);
}

/* MPI_Comm_idup: the context comes by a broadcast that need not have ended when the call returns. Attributes are copied
 * by the call itself, as they are then (MPI 5.0, 7.4.2): the
 * broadcast may end on the control thread, where no copy function of the program may run. */
struct idup {
    struct mpi_after after;
    uint64_t context;
    struct mpi_comm *comm;
    struct mpi_info *info;
    struct mpi_attributes *attributes;
    int code; /* of copying them */
    MPI_Comm *newcomm;
};

static int idup_end(struct mpi_after *after, int code)
{
    struct idup *idup = (struct idup *)after;
    code = code == MPI_SUCCESS ? idup->code : code;
    struct mpi_comm *copy = code == MPI_SUCCESS ? dup_make(idup->comm, idup->context, idup->info) : NULL;
    if (copy != NULL) {
        copy->attributes = idup->attributes;
        *idup->newcomm = copy->handle;
    } else if (code == MPI_SUCCESS) {
        code = MPI_ERR_NO_MEM;
    }
    mpi_info_free_object(idup->info);
    free(idup);
    return code;
}

static int comm_idup(struct mpi_comm *comm, struct mpi_info *info, MPI_Comm *newcomm, MPI_Request *request)
{
    struct idup *idup = malloc(sizeof(*idup));
    if (idup == NULL) {
        return mpi_error(comm->handle, MPI_ERR_NO_MEM, "no memory for a communicator");
    }
    *idup = (struct idup){
        .after = {.end = idup_end},
        .context = comm->rank == 0 ? mpi_context_next() : 0,
        .comm = comm,
        .info = info == NULL ? NULL : mpi_info_copy(info),
        .newcomm = newcomm,
    };
    *newcomm = MPI_COMM_NULL;
    int code = mpi_ibcast(&idup->context, sizeof(idup->context), MPI_BYTE, 0, comm->handle, request);
    if (code != MPI_SUCCESS) {
        mpi_info_free_object(idup->info);
        free(idup);
        return code;
    }
    /* after the broadcast has begun: the others get their context even if a copy function fails here */
    idup->code = mpi_attributes_copy_comm(comm->handle, comm->attributes, &idup->attributes);
    mpi_collective_after(*request, &idup->after);
    return MPI_SUCCESS;
}

int mpi_comm_idup(MPI_Comm comm, MPI_Comm *newcomm, MPI_Request *request)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    return code != MPI_SUCCESS ? code : comm_idup(found, found->info, newcomm, request);
}

int mpi_comm_idup_with_info(MPI_Comm comm, MPI_Info info, MPI_Comm *newcomm, MPI_Request *request)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code == MPI_SUCCESS && info != MPI_INFO_NULL && mpi_info_find(info) == NULL) {
        code = mpi_error(comm, MPI_ERR_INFO, "unknown info object");
    }
    return code != MPI_SUCCESS ? code : comm_idup(found, mpi_info_find(info), newcomm, request);
}
