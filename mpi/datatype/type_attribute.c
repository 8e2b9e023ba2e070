/* Attributes of datatypes (MPI 5.0, 7.7.4). */
#include "mpi/datatype/datatype.h"
#include "mpi/runtime/attribute.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

static int type_unknown(void)
{
    return mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "unknown datatype");
}

int mpi_type_set_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val)
{
    struct mpi_type *type = mpi_type_find(datatype);
    return type == NULL ? type_unknown()
                        : mpi_attribute_set_type(datatype, &type->attributes, type_keyval, attribute_val);
}

int mpi_type_get_attr(MPI_Datatype datatype, int type_keyval, void *attribute_val, int *flag)
{
    const struct mpi_type *type = mpi_type_find(datatype);
    return type == NULL ? type_unknown() : mpi_attribute_get_type(type->attributes, type_keyval, attribute_val, flag);
}

int mpi_type_delete_attr(MPI_Datatype datatype, int type_keyval)
{
    struct mpi_type *type = mpi_type_find(datatype);
    return type == NULL ? type_unknown() : mpi_attribute_unset_type(datatype, type->attributes, type_keyval);
}
