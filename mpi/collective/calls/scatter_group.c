/* Calls of mpix.h for one-to-many: a group of the receivers, opened once, used often (Karwande, Yuan and Lowenthal
 * 2003, section 4.1).
 *
 * The group is a communicator of its own, of the root and of all ranks whose count is not 0, with the root as rank 0;
 * its multicasts go to the group that it has (multicast.h). */
#include <stdlib.h>
#include <string.h>

#include "mpi/collective/calls/calls.h"
#include "mpi/collective/clusters/clusters.h"
#include "mpi/collective/exchange/groups.h"
#include "mpi/collective/exchange/refusal.h"
#include "mpi/collective/state/collectives.h"
#include "mpi/group/communicator.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/info.h"
#include "mpi/state/handle.h"
#include "mpi_functions.h"
#include "mpix_functions.h"

struct mpi_scatter_group {
    struct mpi_comm *parent;  /* held */
    struct mpi_comm *members; /* held by its handle; NULL: this rank gets nothing, or no rank does */
    int root;                 /* in the parent */
    int count;                /* of members, the root included */
    int *ranks;               /* of members, in the parent */
    uint64_t *bytes;          /* of members */
    bool is_member;
};

/* Sent by the root to all: the context for the communicator, then the bytes of each rank. */
static int counts_bcast(struct mpi_comm *comm, int root, struct mpi_counts counts, MPI_Datatype type, uint64_t *told)
{
    int code = MPI_SUCCESS;
    if (comm->rank == root) {
        struct mpi_buffer send = {0};
        const struct mpi_counts none = {0};
        code = mpi_buffer_unequal(&send, comm->handle, &mpi_buffer_nowhere, comm->size, counts, none, type);
        told[0] = code == MPI_SUCCESS ? mpi_context_next() : 0;
        for (int rank = 0; rank < comm->size; rank++) {
            told[1 + rank] = code == MPI_SUCCESS ? (uint64_t)mpi_buffer_block_bytes(&send, rank) : 0;
        }
        mpi_buffer_dispose(&send);
    }
    int bcast = mpi_bcast(told, (MPI_Count)(comm->size + 1) * (MPI_Count)sizeof(*told), MPI_BYTE, root, comm->handle);
    if (bcast != MPI_SUCCESS) { /* others may not have noticed, and continue with their expected counts */
        mpi_collective_reject(comm, &(struct mpi_refusal){.reason = MPI_REFUSAL_ARGUMENTS, .peer = -1});
    }
    if (code == MPI_SUCCESS && bcast == MPI_SUCCESS && told[0] == 0) {
        return mpi_error(comm->handle, MPI_ERR_COUNT, "the root's counts or type are wrong, as reported there");
    }
    return code != MPI_SUCCESS ? code : bcast;
}

/* Whether all ranks name one root, and expect what it sends them: an error at all, or at none. A broadcast need not
 * notice a root that differs at a rank, which may have the same part in it. */
static int expectations_check(struct mpi_comm *comm, int root, const uint64_t *bytes, uint64_t expected)
{
    struct {
        int32_t differs, root;
        uint64_t expected;
    } own = {bytes[comm->rank] != expected, root, expected}, *all;
    all = malloc((size_t)comm->size * sizeof(own));
    if (all == NULL) {
        return mpi_error(comm->handle, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks", comm->size);
    }
    int code = mpi_allgather(&own, sizeof(own), MPI_BYTE, all, sizeof(own), MPI_BYTE, comm->handle);
    for (int rank = 0; code == MPI_SUCCESS && rank < comm->size; rank++) {
        if (all[rank].root != all[0].root) {
            code = mpi_error(comm->handle, MPI_ERR_ROOT,
                             "the root is %d at rank 0, and %d at rank %d; no group has been opened", all[0].root,
                             all[rank].root, rank);
        } else if (all[rank].differs != 0) {
            code = mpi_error(comm->handle, bytes[rank] > all[rank].expected ? MPI_ERR_TRUNCATE : MPI_ERR_COUNT,
                             "the root sends rank %d %llu bytes, which expects %llu; no group has been opened", rank,
                             (unsigned long long)bytes[rank], (unsigned long long)all[rank].expected);
        }
    }
    free(all);
    return code;
}

/* ---- life ---- */

static void group_free(struct mpi_scatter_group *group)
{
    if (group->members != NULL) {
        mpi_comm_handle_release(group->members);
    }
    group->parent->open_groups--;
    mpi_comm_release(group->parent);
    free(group->ranks);
    free(group->bytes);
    free(group);
}

static struct mpi_scatter_group *group_make(struct mpi_comm *comm, int root, const uint64_t *bytes)
{
    struct mpi_scatter_group *made = calloc(1, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    made->parent = comm;
    made->root = root;
    made->ranks = malloc((size_t)comm->size * sizeof(*made->ranks));
    made->bytes = malloc((size_t)comm->size * sizeof(*made->bytes));
    mpi_comm_retain(comm);
    comm->open_groups++;
    if (made->ranks == NULL || made->bytes == NULL) {
        group_free(made);
        return NULL;
    }
    for (int at = 0; at < comm->size; at++) { /* the root first */
        int rank = at == 0 ? root : at <= root ? at - 1 : at;
        if (rank == root || bytes[rank] > 0) {
            made->ranks[made->count] = rank;
            made->bytes[made->count++] = bytes[rank];
            made->is_member = made->is_member || rank == comm->rank;
        }
    }
    return made;
}

/* Data goes by multicast, unless the parent's hints choose another algorithm for scatters. */
static int multicast_request(struct mpi_scatter_group *group)
{
    const struct mpi_comm *parent = group->parent;
    if (parent->info != NULL && mpi_info_value(parent->info, "causeway_algorithm") != NULL) {
        group->members->info = mpi_info_copy(parent->info);
        return MPI_SUCCESS;
    }
    MPI_Info info;
    int code = mpi_info_create(&info);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = mpi_info_set(info, "causeway_algorithm", "scatter=multicast");
    group->members->info = mpi_info_copy(mpi_info_find(info));
    (void)mpi_info_free(&info);
    return code;
}

/* The members' communicator, and its group. */
static int members_make(struct mpi_scatter_group *group, uint64_t context)
{
    if (!group->is_member) {
        return MPI_SUCCESS;
    }
    group->members = mpi_comm_among(group->parent, group->ranks, group->count, context);
    if (group->members == NULL) {
        return mpi_error(group->parent->handle, MPI_ERR_NO_MEM, "no memory for a communicator of %d", group->count);
    }
    if (mpi_clusters_can_multicast(group->members)) {
        mpi_groups_open(group->members);
        return multicast_request(group);
    }
    return MPI_SUCCESS;
}

int mpix_scatterv_open_group(struct mpi_counts sendcounts, MPI_Datatype sendtype, MPI_Count recvcount,
                             MPI_Datatype recvtype, int root, MPI_Comm comm, MPIX_Scatterv_group *group)
{
    struct mpi_comm *found;
    struct mpi_buffer receive = {0};
    *group = MPIX_SCATTERV_GROUP_NULL;
    int code = mpi_comm_lookup(comm, &found);
    if (code == MPI_SUCCESS && (root < 0 || root >= found->size)) {
        code = mpi_error(comm, MPI_ERR_ROOT, "root %d is none of the %d ranks of %s", root, found->size, found->name);
    }
    if (code == MPI_SUCCESS) {
        const struct mpi_counts none = {0};
        code = mpi_buffer_unequal(&receive, comm, &mpi_buffer_nowhere, 1, mpi_counts_wide(&recvcount), none, recvtype);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    uint64_t expected = (uint64_t)receive.bytes;
    mpi_buffer_dispose(&receive);
    uint64_t *told = malloc(((size_t)found->size + 1) * sizeof(*told));
    if (told == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks", found->size);
    }
    code = counts_bcast(found, root, sendcounts, sendtype, told);
    if (code == MPI_SUCCESS) {
        code = expectations_check(found, root, told + 1, expected);
    }
    struct mpi_scatter_group *made = code != MPI_SUCCESS ? NULL : group_make(found, root, told + 1);
    if (code == MPI_SUCCESS && made == NULL) {
        code = mpi_error(comm, MPI_ERR_NO_MEM, "no memory for a group");
    }
    if (code == MPI_SUCCESS) {
        code = members_make(made, told[0]);
    }
    free(told);
    uintptr_t handle = code == MPI_SUCCESS ? mpi_handle_make(MPI_KIND_SCATTER_GROUP, made) : 0;
    if (code == MPI_SUCCESS && handle == 0) {
        code = mpi_error(comm, MPI_ERR_NO_MEM, "no memory for the handle of a group");
    }
    if (code != MPI_SUCCESS) {
        if (made != NULL) {
            group_free(made);
        }
        return code;
    }
    *group = (MPIX_Scatterv_group)handle;
    return MPI_SUCCESS;
}

static int group_lookup(MPIX_Scatterv_group handle, struct mpi_scatter_group **group)
{
    *group = mpi_handle_object(MPI_KIND_SCATTER_GROUP, (uintptr_t)handle);
    return *group != NULL
               ? MPI_SUCCESS
               : mpi_error(MPI_COMM_NULL, MPI_ERR_ARG,
                           "%#lx is no group that is open: call MPIX_Scatterv_open_group first, and close it once",
                           (unsigned long)(uintptr_t)handle);
}

int mpix_scatterv_close_group(MPIX_Scatterv_group *group)
{
    struct mpi_scatter_group *found;
    int code = group_lookup(*group, &found);
    if (code == MPI_SUCCESS) {
        mpi_handle_free(MPI_KIND_SCATTER_GROUP, (uintptr_t)*group);
        group_free(found);
        *group = MPIX_SCATTERV_GROUP_NULL;
    }
    return code;
}

/* ---- data ---- */

/* The root's blocks, by member. */
static int root_buffer(struct mpi_scatter_group *group, const void *buffer, struct mpi_counts counts,
                       struct mpi_counts displacements, MPI_Datatype type, struct mpi_buffer *descriptor)
{
    if (counts.values == NULL || displacements.values == NULL) {
        return mpi_error(group->parent->handle, MPI_ERR_ARG, "the array of counts or displacements is NULL");
    }
    MPI_Count *values = malloc(2 * (size_t)group->count * sizeof(*values));
    if (values == NULL) {
        return mpi_error(group->parent->handle, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks", group->count);
    }
    for (int member = 0; member < group->count; member++) {
        values[member] = mpi_count_at(counts, group->ranks[member]);
        values[group->count + member] = mpi_count_at(displacements, group->ranks[member]);
    }
    int code = mpi_buffer_unequal(descriptor, group->members->handle, buffer, group->count, mpi_counts_wide(values),
                                  mpi_counts_wide(values + group->count), type);
    free(values);
    return code;
}

/* MPI_SUCCESS, or MPI_ERR_COUNT raised, with the notice for the other members. */
static int bytes_check(struct mpi_scatter_group *group, struct mpi_collective *call, struct mpi_refusal *refusal)
{
    const struct mpi_comm *members = group->members;
    for (int member = 0; member < group->count; member++) {
        bool is_own = member == members->rank;
        if (members->rank != 0 && !is_own) {
            continue;
        }
        uint64_t given =
            members->rank == 0 ? (uint64_t)mpi_buffer_block_bytes(&call->send, member) : (uint64_t)call->receive.bytes;
        if (members->rank == 0 && is_own && !call->receive_is_dropped) {
            given = (uint64_t)call->receive.bytes == group->bytes[0] ? given : (uint64_t)call->receive.bytes;
        }
        if (given != group->bytes[member]) {
            *refusal = (struct mpi_refusal){
                .reason = members->rank == 0 ? MPI_REFUSAL_SENDS : MPI_REFUSAL_EXPECTS,
                .peer = members->rank == 0 ? member : 0,
                .planned = group->bytes[member],
                .given = given,
            };
            return mpi_error(
                group->parent->handle, MPI_ERR_COUNT,
                "the group was opened for %llu bytes to rank %d, this call says %llu; close it and open another",
                (unsigned long long)group->bytes[member], group->ranks[member], (unsigned long long)given);
        }
    }
    return MPI_SUCCESS;
}

static int descriptors_make(struct mpi_scatter_group *group, struct mpi_collective *call, const void *sendbuf,
                            struct mpi_counts sendcounts, struct mpi_counts displs, MPI_Datatype sendtype,
                            void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype)
{
    MPI_Comm comm = group->members->handle;
    int code = MPI_SUCCESS;
    if (group->members->rank == 0) {
        code = root_buffer(group, sendbuf, sendcounts, displs, sendtype, &call->send);
        if (code == MPI_SUCCESS && recvbuf == MPI_IN_PLACE) {
            call->receive_is_dropped = true;
            return mpi_buffer_equal(&call->receive, comm, mpi_buffer_block_start(&call->send, 0), 1,
                                    mpi_buffer_block_count(&call->send, 0), sendtype);
        }
    }
    return code != MPI_SUCCESS ? code : mpi_buffer_equal(&call->receive, comm, recvbuf, 1, recvcount, recvtype);
}

int mpix_scatterv_data_movement(const void *sendbuf, struct mpi_counts sendcounts, struct mpi_counts displs,
                                MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype,
                                int root, MPIX_Scatterv_group group)
{
    struct mpi_scatter_group *found;
    struct mpi_collective *call = NULL;
    struct mpi_refusal refusal = {.reason = MPI_REFUSAL_ARGUMENTS, .peer = -1};
    int code = group_lookup(group, &found);
    if (code != MPI_SUCCESS || found->members == NULL) {
        return code != MPI_SUCCESS || recvcount == 0
                   ? code
                   : mpi_error(found->parent->handle, MPI_ERR_COUNT,
                               "the group was opened without this rank, whose count was 0; now it is %lld",
                               (long long)recvcount);
    }
    code = mpi_collective_make("MPIX_Scatterv_data_movement", found->members->handle, &call);
    if (code == MPI_SUCCESS && root != found->root) {
        code = mpi_error(found->parent->handle, MPI_ERR_ROOT,
                         "root is %d, but the group was opened for root %d; this rank takes no part in this movement",
                         root, found->root);
    }
    if (code == MPI_SUCCESS) {
        code = descriptors_make(found, call, sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype);
    }
    if (code == MPI_SUCCESS) {
        code = bytes_check(found, call, &refusal);
    }
    if (code == MPI_SUCCESS) {
        call->problem.collective = CW_SCATTER;
        call->counts = malloc((size_t)found->count * sizeof(*call->counts));
        code = call->counts != NULL ? MPI_SUCCESS : mpi_error(found->parent->handle, MPI_ERR_NO_MEM, "no memory");
    }
    if (code == MPI_SUCCESS) {
        memcpy(call->counts, found->bytes, (size_t)found->count * sizeof(*call->counts));
        call->problem.counts = call->counts;
    } else { /* the call has ended for this rank, and the other members do not wait for it */
        mpi_collective_reject(found->members, &refusal);
    }
    return mpi_collective_block(code, call);
}
