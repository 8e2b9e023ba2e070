/* Calls of mpix.h that make, keep and use phases of an all-to-all-v. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/settings/settings.h"
#include "dataplane/status.h"
#include "mpi/collective/calls/calls.h"
#include "mpi/collective/calls/collective.h"
#include "mpi/collective/compiled/count_matrix.h"
#include "mpi/collective/compiled/phases.h"
#include "mpi/collective/exchange/refusal.h"
#include "mpi/group/communicator.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/info.h"
#include "mpix_functions.h"

enum { PHASES_FILE_MAX = 1 << 30 };

/* ---- network control ---- */

/* Phases of a matrix of bytes, by the requested algorithm, and their handle. */
static int phases_return(struct mpi_comm *comm, const uint64_t *matrix, MPI_Info info, MPIX_Alltoallv_phases *handle)
{
    struct mpi_choice choice;
    struct mpi_phases *phases;
    char reason[600];
    const struct mpi_info *hints = mpi_info_find(info);
    if (hints == NULL && info != MPI_INFO_NULL) {
        return mpi_error(comm->handle, MPI_ERR_INFO, "%#lx is no info object", (unsigned long)(uintptr_t)info);
    }
    const char *words = hints == NULL ? NULL : mpi_info_value(hints, "causeway_algorithm");
    if (mpi_choice_phases(comm, words, &choice, reason, sizeof(reason)) != CW_OK) {
        return mpi_error(comm->handle, MPI_ERR_INFO, "causeway_algorithm: %s", reason);
    }
    int code = mpi_phases_make(comm, matrix, &choice, &phases);
    return code != MPI_SUCCESS ? code : mpi_phases_return(phases, comm->handle, handle);
}

/* Bytes that this rank sends and expects. */
static int row_make(struct mpi_comm *comm, struct mpi_counts sendcounts, MPI_Datatype sendtype,
                    struct mpi_counts recvcounts, MPI_Datatype recvtype, uint64_t *row)
{
    struct mpi_buffer send = {0}, receive = {0};
    const struct mpi_counts none = {0};
    int code = mpi_buffer_unequal(&send, comm->handle, &mpi_buffer_nowhere, comm->size, sendcounts, none, sendtype);
    if (code == MPI_SUCCESS) {
        code = mpi_buffer_unequal(&receive, comm->handle, &mpi_buffer_nowhere, comm->size, recvcounts, none, recvtype);
    }
    if (code == MPI_SUCCESS) {
        mpi_count_matrix_row(&send, &receive, row);
    }
    mpi_buffer_dispose(&send);
    mpi_buffer_dispose(&receive);
    return code;
}

/* All ranks' rows, by rank, to all. */
static int rows_exchange(struct mpi_comm *comm, const uint64_t *row, uint64_t *all)
{
    struct mpi_collective *call = NULL;
    MPI_Count bytes = 2 * (MPI_Count)comm->size * (MPI_Count)sizeof(*row);
    int code = mpi_collective_make("MPIX_Alltoallv_control1", comm->handle, &call);
    if (code == MPI_SUCCESS) {
        call->problem.collective = CW_ALLGATHER;
        call->problem.count = (uint64_t)bytes;
        code = mpi_buffer_equal(&call->receive, comm->handle, all, comm->size, bytes, MPI_BYTE);
    }
    if (code == MPI_SUCCESS) {
        code = mpi_buffer_equal(&call->send, comm->handle, row, 1, bytes, MPI_BYTE);
    }
    return mpi_collective_block(code, call);
}

int mpix_alltoallv_control1(struct mpi_counts sendcounts, MPI_Datatype sendtype, struct mpi_counts recvcounts,
                            MPI_Datatype recvtype, MPI_Info info, MPI_Comm comm, MPIX_Alltoallv_phases *phases)
{
    struct mpi_comm *found;
    char why[200];
    *phases = MPIX_ALLTOALLV_PHASES_NULL;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    size_t ranks = (size_t)found->size;
    uint64_t *row = malloc(2 * ranks * sizeof(*row));
    uint64_t *all = malloc(2 * ranks * ranks * sizeof(*all));
    uint64_t *matrix = malloc(ranks * ranks * sizeof(*matrix));
    code = row == NULL || all == NULL || matrix == NULL
               ? mpi_error(comm, MPI_ERR_NO_MEM, "no memory for the counts of %zu ranks", ranks)
               : row_make(found, sendcounts, sendtype, recvcounts, recvtype, row);
    if (code == MPI_SUCCESS) {
        code = rows_exchange(found, row, all);
    }
    if (code == MPI_SUCCESS) {
        code = mpi_count_matrix_join(all, (uint32_t)ranks, matrix, why, sizeof(why));
        code = code == MPI_SUCCESS ? phases_return(found, matrix, info, phases) : mpi_error(comm, code, "%s", why);
    }
    free(row);
    free(all);
    free(matrix);
    return code;
}

int mpix_alltoallv_control2(struct mpi_counts counts, MPI_Datatype datatype, MPI_Info info, MPI_Comm comm,
                            MPIX_Alltoallv_phases *phases)
{
    struct mpi_comm *found;
    struct mpi_type *type;
    *phases = MPIX_ALLTOALLV_PHASES_NULL;
    int code = mpi_comm_lookup(comm, &found);
    code = code != MPI_SUCCESS ? code : mpi_type_check(comm, 0, datatype, &type);
    if (code == MPI_SUCCESS && counts.values == NULL) {
        code = mpi_error(comm, MPI_ERR_ARG, "the matrix of counts is NULL");
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    MPI_Count ranks = found->size;
    uint64_t *matrix = malloc((size_t)(ranks * ranks) * sizeof(*matrix));
    if (matrix == NULL) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks", found->size);
    }
    for (MPI_Count pair = 0; code == MPI_SUCCESS && pair < ranks * ranks; pair++) {
        MPI_Count count = mpi_count_at(counts, pair);
        if (count < 0 || (type->size > 0 && count > (MPI_Count)(CW_BUFFER_BYTES_MAX / (uint64_t)type->size))) {
            code = mpi_error(comm, MPI_ERR_COUNT, "the count from rank %lld to rank %lld is %lld",
                             (long long)(pair / ranks), (long long)(pair % ranks), (long long)count);
        }
        matrix[pair] = (uint64_t)count * (uint64_t)type->size;
    }
    code = code != MPI_SUCCESS ? code : phases_return(found, matrix, info, phases);
    free(matrix);
    return code;
}

/* ---- data transmission ---- */

int mpix_alltoallv_data_trans2(const void *sendbuf, struct mpi_counts sendcounts, struct mpi_counts sdispls,
                               MPI_Datatype sendtype, void *recvbuf, struct mpi_counts recvcounts,
                               struct mpi_counts rdispls, MPI_Datatype recvtype, MPIX_Alltoallv_phases phases,
                               MPI_Comm comm)
{
    struct mpi_phases *found;
    struct mpi_collective *call = NULL;
    int code = mpi_phases_lookup(phases, comm, &found);
    if (code == MPI_SUCCESS) {
        code = mpi_collective_make("MPIX_Alltoallv_data_trans2", comm, &call);
    }
    if (code == MPI_SUCCESS) {
        code = mpi_phases_belong(found, call->comm);
    }
    if (code == MPI_SUCCESS) {
        code =
            mpi_alltoallv_buffers(call, sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype);
        if (code != MPI_SUCCESS) {
            mpi_collective_reject(call->comm, &(struct mpi_refusal){.reason = MPI_REFUSAL_ARGUMENTS, .peer = -1});
        }
    }
    if (code == MPI_SUCCESS) {
        code = mpi_count_matrix_make_with(call, found);
    }
    return mpi_collective_block(code, call);
}

/* ---- files ---- */

static int file_error(MPI_Comm comm, const char *filename, const char *what)
{
    int code = errno == ENOENT || errno == ENOTDIR ? MPI_ERR_NO_SUCH_FILE
               : errno == EACCES || errno == EPERM ? MPI_ERR_ACCESS
               : errno == ENOSPC                   ? MPI_ERR_NO_SPACE
               : errno == ENOMEM                   ? MPI_ERR_NO_MEM
                                                   : MPI_ERR_IO;
    return mpi_error(comm, code, "%.300s cannot be %s: %s", filename, what, strerror(errno));
}

int mpix_alltoallv_phases_save(MPIX_Alltoallv_phases phases, const char *filename)
{
    struct mpi_phases *found;
    void *bytes;
    size_t length;
    int code = mpi_phases_lookup(phases, MPI_COMM_NULL, &found);
    if (code == MPI_SUCCESS && filename == NULL) {
        code = mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "the name of the file is NULL");
    }
    if (code == MPI_SUCCESS) {
        code = mpi_phases_encode(found, &bytes, &length);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (!cw_settings_write(filename, bytes, length)) {
        code = file_error(MPI_COMM_NULL, filename, "written");
    }
    free(bytes);
    return code;
}

int mpix_alltoallv_phases_load(const char *filename, MPI_Comm comm, MPIX_Alltoallv_phases *phases)
{
    struct mpi_comm *found;
    struct mpi_phases *made;
    char place[320];
    size_t length;
    *phases = MPIX_ALLTOALLV_PHASES_NULL;
    int code = mpi_comm_lookup(comm, &found);
    if (code == MPI_SUCCESS && filename == NULL) {
        code = mpi_error(comm, MPI_ERR_ARG, "the name of the file is NULL");
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    char *bytes = cw_settings_read(filename, PHASES_FILE_MAX, &length);
    if (bytes == NULL) {
        return file_error(comm, filename, "read");
    }
    snprintf(place, sizeof(place), "%.300s", filename);
    code = mpi_phases_decode(found, bytes, length, place, &made);
    free(bytes);
    return code != MPI_SUCCESS ? code : mpi_phases_return(made, comm, phases);
}

int mpix_alltoallv_phases_free(MPIX_Alltoallv_phases *phases)
{
    struct mpi_phases *found;
    int code = mpi_phases_lookup(*phases, MPI_COMM_NULL, &found);
    if (code == MPI_SUCCESS) {
        mpi_phases_drop(*phases);
        *phases = MPIX_ALLTOALLV_PHASES_NULL;
    }
    return code;
}
