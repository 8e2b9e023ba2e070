/* MPI_Type_get_envelope and MPI_Type_get_contents. */
#include "mpi/datatype/contents.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/enter.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

/* Whether the constructor that is running is one of large counts; both are one implementation. */

/* The contents of the type that a call may return. Named predefined ones have none. */
static const struct mpi_contents *contents_of(const struct mpi_type *type)
{
    static const struct mpi_contents named = {.combiner = MPI_COMBINER_NAMED};
    if (type->contents == NULL || type->contents->combiner == MPI_COMBINER_NAMED) {
        return &named;
    }
    return type->contents;
}

/* The contents for a call that is of large counts or not. NULL: an error, which has been raised with *code. */
static const struct mpi_contents *contents_find(MPI_Datatype datatype, bool large, int *code)
{
    const struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL) {
        *code = mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "unknown datatype");
        return NULL;
    }
    const struct mpi_contents *contents = contents_of(type);
    if (contents->large && !large) {
        *code = mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "the datatype was made with large counts; ask by %s_c",
                          mpi_call_name());
        return NULL;
    }
    *code = MPI_SUCCESS;
    return contents;
}

int mpi_type_get_envelope_c(MPI_Datatype datatype, MPI_Count *num_integers, MPI_Count *num_addresses,
                            MPI_Count *num_large_counts, MPI_Count *num_datatypes, int *combiner)
{
    int code;
    const struct mpi_contents *contents = contents_find(datatype, true, &code);
    if (contents != NULL) {
        *num_integers = contents->integer_count;
        *num_addresses = contents->address_count;
        *num_large_counts = contents->large_count;
        *num_datatypes = contents->type_count;
        *combiner = contents->combiner;
    }
    return code;
}

int mpi_type_get_envelope(MPI_Datatype datatype, int *num_integers, int *num_addresses, int *num_datatypes,
                          int *combiner)
{
    int code;
    const struct mpi_contents *contents = contents_find(datatype, false, &code);
    if (contents != NULL) {
        *num_integers = (int)contents->integer_count;
        *num_addresses = (int)contents->address_count;
        *num_datatypes = (int)contents->type_count;
        *combiner = contents->combiner;
    }
    return code;
}

/* Handles for the types, or none of them. */
static int types_return(const struct mpi_contents *contents, MPI_Datatype datatypes[])
{
    for (MPI_Count i = 0; i < contents->type_count; i++) {
        datatypes[i] = mpi_type_handle_make(contents->types[i]);
        if (datatypes[i] == MPI_DATATYPE_NULL) {
            while (i-- > 0) {
                mpi_type_free(&datatypes[i]);
            }
            return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for handles of datatypes");
        }
    }
    return MPI_SUCCESS;
}

static int room_check(const char *what, MPI_Count room, MPI_Count count)
{
    if (room >= count) {
        return MPI_SUCCESS;
    }
    return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "there is room for %lld %s, but the datatype has %lld",
                     (long long)room, what, (long long)count);
}

static void copy_values(void *to, const void *from, MPI_Count count, size_t bytes)
{
    if (count > 0) {
        memcpy(to, from, (size_t)count * bytes);
    }
}

static int contents_get(const struct mpi_contents *contents, MPI_Count max_integers, MPI_Count max_addresses,
                        MPI_Count max_large_counts, MPI_Count max_datatypes, int integers[], MPI_Aint addresses[],
                        MPI_Count large_counts[], MPI_Datatype datatypes[])
{
    if (contents->combiner == MPI_COMBINER_NAMED) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "a predefined datatype has no contents");
    }
    int code = room_check("integers", max_integers, contents->integer_count);
    code = code != MPI_SUCCESS ? code : room_check("addresses", max_addresses, contents->address_count);
    code = code != MPI_SUCCESS ? code : room_check("large counts", max_large_counts, contents->large_count);
    code = code != MPI_SUCCESS ? code : room_check("datatypes", max_datatypes, contents->type_count);
    code = code != MPI_SUCCESS ? code : types_return(contents, datatypes);
    if (code == MPI_SUCCESS) {
        copy_values(integers, contents->integers, contents->integer_count, sizeof(*integers));
        copy_values(addresses, contents->addresses, contents->address_count, sizeof(*addresses));
        copy_values(large_counts, contents->large_counts, contents->large_count, sizeof(*large_counts));
    }
    return code;
}

int mpi_type_get_contents(MPI_Datatype datatype, int max_integers, int max_addresses, int max_datatypes,
                          int array_of_integers[], MPI_Aint array_of_addresses[], MPI_Datatype array_of_datatypes[])
{
    int code;
    const struct mpi_contents *contents = contents_find(datatype, false, &code);
    return contents == NULL ? code
                            : contents_get(contents, max_integers, max_addresses, 0, max_datatypes, array_of_integers,
                                           array_of_addresses, NULL, array_of_datatypes);
}

int mpi_type_get_contents_c(MPI_Datatype datatype, MPI_Count max_integers, MPI_Count max_addresses,
                            MPI_Count max_large_counts, MPI_Count max_datatypes, int array_of_integers[],
                            MPI_Aint array_of_addresses[], MPI_Count array_of_large_counts[],
                            MPI_Datatype array_of_datatypes[])
{
    int code;
    const struct mpi_contents *contents = contents_find(datatype, true, &code);
    return contents == NULL
               ? code
               : contents_get(contents, max_integers, max_addresses, max_large_counts, max_datatypes, array_of_integers,
                              array_of_addresses, array_of_large_counts, array_of_datatypes);
}
