/* MPI_Pack, MPI_Unpack and addresses (MPI 5.0, 5.1.5 and 5.2). The packed form is the bytes alone, without a header. */
#include "mpi/datatype/datatype.h"
#include "mpi/runtime/error.h"
#include "mpi/state/comm.h"
#include "mpi_functions.h"

/* Checks the arguments that packing and unpacking share; *bytes is how much of the packed buffer they need. */
static int packing_check(MPI_Comm comm, const void *elements, MPI_Count count, MPI_Datatype datatype,
                         const void *packed, MPI_Count packed_bytes, MPI_Count position, struct mpi_type **type)
{
    if (mpi_comm_find(comm) == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    int code = mpi_type_check(comm, count, datatype, type);
    if (code != MPI_SUCCESS) {
        return code;
    }
    MPI_Count bytes = (*type)->size * count;
    if (packed_bytes < 0 || position < 0 || position > packed_bytes) {
        return mpi_error(comm, MPI_ERR_ARG, "position %lld is not within a packed buffer of %lld bytes",
                         (long long)position, (long long)packed_bytes);
    }
    if (bytes > packed_bytes - position) {
        return mpi_error(comm, MPI_ERR_TRUNCATE,
                         "%lld bytes do not fit behind position %lld of a packed buffer of %lld", (long long)bytes,
                         (long long)position, (long long)packed_bytes);
    }
    if (mpi_buffer_is_wrong(elements, *type, bytes) || (bytes > 0 && (uintptr_t)packed <= (uintptr_t)MPI_IN_PLACE)) {
        return mpi_error(comm, MPI_ERR_BUFFER, "a buffer is NULL or MPI_IN_PLACE");
    }
    return MPI_SUCCESS;
}

int mpi_pack(const void *inbuf, MPI_Count incount, MPI_Datatype datatype, void *outbuf, MPI_Count outsize,
             MPI_Count *position, MPI_Comm comm)
{
    struct mpi_type *type;
    int code = packing_check(comm, inbuf, incount, datatype, outbuf, outsize, *position, &type);
    if (code == MPI_SUCCESS && type->size * incount > 0) {
        mpi_type_pack(type, incount, inbuf, 0, (char *)outbuf + *position, type->size * incount);
        *position += type->size * incount;
    }
    return code;
}

int mpi_unpack(const void *inbuf, MPI_Count insize, MPI_Count *position, void *outbuf, MPI_Count outcount,
               MPI_Datatype datatype, MPI_Comm comm)
{
    struct mpi_type *type;
    int code = packing_check(comm, outbuf, outcount, datatype, inbuf, insize, *position, &type);
    if (code == MPI_SUCCESS && type->size * outcount > 0) {
        mpi_type_unpack(type, outcount, outbuf, 0, (const char *)inbuf + *position, type->size * outcount);
        *position += type->size * outcount;
    }
    return code;
}

int mpi_pack_size(MPI_Count incount, MPI_Datatype datatype, MPI_Comm comm, MPI_Count *size)
{
    struct mpi_type *type;
    if (mpi_comm_find(comm) == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_COMM, "unknown communicator");
    }
    int code = mpi_type_check(comm, incount, datatype, &type);
    if (code == MPI_SUCCESS) {
        *size = type->size * incount;
    }
    return code;
}

int mpi_get_address(const void *location, MPI_Aint *address)
{
    *address = (MPI_Aint)location;
    return MPI_SUCCESS;
}

MPI_Aint mpi_aint_add(MPI_Aint base, MPI_Aint disp)
{
    return (MPI_Aint)((uintptr_t)base + (uintptr_t)disp);
}

MPI_Aint mpi_aint_diff(MPI_Aint addr1, MPI_Aint addr2)
{
    return (MPI_Aint)((uintptr_t)addr1 - (uintptr_t)addr2);
}
