/* Reading and setting statuses (MPI 5.0, 3.2.5, 5.1.11 and 13.3). */
#include "mpi/point/request.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

int mpi_get_count(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    const struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "unknown datatype");
    }
    MPI_Count bytes = mpi_status_bytes(status);
    if (type->size == 0) {
        *count = bytes == 0 ? 0 : MPI_UNDEFINED;
    } else {
        *count = bytes % type->size == 0 ? bytes / type->size : MPI_UNDEFINED;
    }
    return MPI_SUCCESS;
}

int mpi_get_elements(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    const struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "unknown datatype");
    }
    *count = mpi_type_elements(type, mpi_status_bytes(status));
    return MPI_SUCCESS;
}

int mpi_get_elements_x(const MPI_Status *status, MPI_Datatype datatype, MPI_Count *count)
{
    return mpi_get_elements(status, datatype, count);
}

int mpi_status_set_elements(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    const struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL || count < 0) {
        return mpi_error(MPI_COMM_NULL, type == NULL ? MPI_ERR_TYPE : MPI_ERR_COUNT,
                         type == NULL ? "unknown datatype" : "a negative count");
    }
    MPI_Count bytes = mpi_type_elements_bytes(type, count);
    if (bytes == 0 && count > 0 && type->size > 0) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COUNT, "%lld elements exceed the range of MPI_Count in bytes",
                         (long long)count);
    }
    mpi_status_set_bytes(status, bytes);
    return MPI_SUCCESS;
}

int mpi_status_set_elements_x(MPI_Status *status, MPI_Datatype datatype, MPI_Count count)
{
    return mpi_status_set_elements(status, datatype, count);
}

int mpi_status_set_cancelled(MPI_Status *status, int flag)
{
    status->MPI_internal[2] = flag != 0;
    return MPI_SUCCESS;
}

int mpi_test_cancelled(const MPI_Status *status, int *flag)
{
    *flag = status->MPI_internal[2] != 0;
    return MPI_SUCCESS;
}

int mpi_status_get_error(const MPI_Status *status, int *err)
{
    *err = status->MPI_ERROR;
    return MPI_SUCCESS;
}

int mpi_status_get_source(const MPI_Status *status, int *source)
{
    *source = status->MPI_SOURCE;
    return MPI_SUCCESS;
}

int mpi_status_get_tag(const MPI_Status *status, int *tag)
{
    *tag = status->MPI_TAG;
    return MPI_SUCCESS;
}

int mpi_status_set_error(MPI_Status *status, int err)
{
    status->MPI_ERROR = err;
    return MPI_SUCCESS;
}

int mpi_status_set_source(MPI_Status *status, int source)
{
    status->MPI_SOURCE = source;
    return MPI_SUCCESS;
}

int mpi_status_set_tag(MPI_Status *status, int tag)
{
    status->MPI_TAG = tag;
    return MPI_SUCCESS;
}
