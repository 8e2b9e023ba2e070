/* Queries of communicators (MPI 5.0, 7.4.1, 7.4.4, 7.8). */
#include <stdio.h>
#include <string.h>

#include "mpi/collective/choice/choice.h"
#include "mpi/collective/host/host.h"
#include "mpi/group/communicator.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/info.h"
#include "mpi_functions.h"

int mpi_comm_size(MPI_Comm comm, int *size)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code == MPI_SUCCESS) {
        *size = found->size;
    }
    return code;
}

int mpi_comm_rank(MPI_Comm comm, int *rank)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code == MPI_SUCCESS) {
        *rank = found->rank;
    }
    return code;
}

int mpi_comm_compare(MPI_Comm comm1, MPI_Comm comm2, int *result)
{
    struct mpi_comm *a, *b;
    int code = mpi_comm_lookup(comm1, &a);
    if (code == MPI_SUCCESS) {
        code = mpi_comm_lookup(comm2, &b);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    int relation = mpi_group_relation(a->group, b->group);
    *result = a == b ? MPI_IDENT : relation == MPI_IDENT ? MPI_CONGRUENT : relation;
    return MPI_SUCCESS;
}

int mpi_comm_test_inter(MPI_Comm comm, int *flag)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code == MPI_SUCCESS) {
        *flag = 0;
    }
    return code;
}

/* There are no intercommunicators yet. */
static int remote_error(MPI_Comm comm)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    return code != MPI_SUCCESS ? code : mpi_error(comm, MPI_ERR_COMM, "%s is no intercommunicator", found->name);
}

int mpi_comm_remote_size(MPI_Comm comm, int *size)
{
    (void)size;
    return remote_error(comm);
}

int mpi_comm_remote_group(MPI_Comm comm, MPI_Group *group)
{
    (void)group;
    return remote_error(comm);
}

int mpi_comm_get_parent(MPI_Comm *parent)
{
    *parent = MPI_COMM_NULL;
    return MPI_SUCCESS;
}

int mpi_comm_set_name(MPI_Comm comm, const char *comm_name)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code == MPI_SUCCESS) {
        snprintf(found->name, sizeof(found->name), "%s", comm_name);
    }
    return code;
}

int mpi_comm_get_name(MPI_Comm comm, char *comm_name, int *resultlen)
{
    struct mpi_comm *found = mpi_comm_find(comm);
    const char *name = comm == MPI_COMM_NULL ? "MPI_COMM_NULL" : found == NULL ? NULL : found->name;
    if (name == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    memcpy(comm_name, name, strlen(name) + 1);
    *resultlen = (int)strlen(name);
    return MPI_SUCCESS;
}

int mpi_comm_set_info(MPI_Comm comm, MPI_Info info)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_info *hints = mpi_info_find(info);
    if (hints == NULL) {
        return mpi_error(comm, MPI_ERR_INFO, "%s",
                         info == MPI_INFO_NULL ? "the info object is MPI_INFO_NULL" : "unknown info object");
    }
    mpi_info_free_object(found->info);
    found->info = mpi_info_copy(hints);
    mpi_host_reconsider(found);
    return MPI_SUCCESS;
}

/* The hints that the library uses. MPI_Comm_get_info gives back no others (MPI 5.0, 7.4.4), and these only if their
 * values are understood. */
static const char *const supported_hints[] = {"causeway_algorithm", "causeway_compression"};

static bool hint_is_used(size_t hint, const char *value)
{
    return strcmp(supported_hints[hint], "causeway_algorithm") == 0 ? mpi_choice_understands(value)
                                                                    : strcmp(value, "off") == 0;
}

int mpi_comm_get_info(MPI_Comm comm, MPI_Info *info_used)
{
    struct mpi_comm *found;
    int code = mpi_comm_lookup(comm, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    code = mpi_info_return(NULL, info_used);
    for (size_t i = 0; i < sizeof(supported_hints) / sizeof(supported_hints[0]); i++) {
        const char *value = found->info == NULL ? NULL : mpi_info_value(found->info, supported_hints[i]);
        if (code == MPI_SUCCESS && value != NULL && hint_is_used(i, value)) {
            code = mpi_info_set(*info_used, supported_hints[i], value);
        }
    }
    return code != MPI_SUCCESS
               ? code
               : mpi_info_set(*info_used, "causeway_path", cw_measured_path_name(mpi_choice_path(found)));
}
