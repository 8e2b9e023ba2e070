/* Calls on datatypes as objects (MPI 5.0, 5.1.5 to 5.1.11). */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/datatype/contents.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/layout.h"
#include "mpi/datatype/predefined.h"
#include "mpi/runtime/attribute.h"
#include "mpi/runtime/error.h"
#include "mpi/state/handle.h"
#include "mpi_functions.h"

static int unknown(MPI_Comm comm, MPI_Datatype datatype)
{
    return mpi_error(comm, MPI_ERR_TYPE, "%s",
                     datatype == MPI_DATATYPE_NULL ? "the datatype is MPI_DATATYPE_NULL"
                                                   : "unknown datatype, or one that was freed");
}

int mpi_type_check(MPI_Comm comm, MPI_Count count, MPI_Datatype datatype, struct mpi_type **type)
{
    MPI_Count bytes;
    struct mpi_type *found = mpi_type_find(datatype);
    if (count < 0) {
        return mpi_error(comm, MPI_ERR_COUNT, "the count is %lld; it cannot be negative", (long long)count);
    }
    if (found == NULL) {
        return unknown(comm, datatype);
    }
    if (!found->committed) {
        return mpi_error(comm, MPI_ERR_TYPE, "the datatype has not been committed; call MPI_Type_commit first");
    }
    if (__builtin_mul_overflow(count, found->size, &bytes)) {
        return mpi_error(comm, MPI_ERR_COUNT, "%lld elements of %lld bytes exceed the range of MPI_Count",
                         (long long)count, (long long)found->size);
    }
    *type = found;
    return MPI_SUCCESS;
}

bool mpi_buffer_is_wrong(const void *buffer, const struct mpi_type *type, MPI_Count bytes)
{
    return (uintptr_t)buffer <= (uintptr_t)MPI_IN_PLACE && bytes > 0 && (buffer == MPI_IN_PLACE || type->predefined);
}

/* From a number of one unit to that of the other, elements or bytes. */
struct measure {
    bool from_bytes;
};

static MPI_Count known(struct measure measure, const struct mpi_type *type)
{
    return measure.from_bytes ? type->size : type->element_count;
}

static MPI_Count wanted(struct measure measure, const struct mpi_type *type)
{
    return measure.from_bytes ? type->element_count : type->size;
}

/* Goes to the type that the rest of an element lies in, past those before it: *rest becomes what is left, the result
 * what has been passed. */
static MPI_Count descend(struct measure measure, const struct mpi_type **type, MPI_Count *rest)
{
    const struct mpi_contents *contents = (*type)->contents;
    MPI_Count passed = 0;
    for (MPI_Count i = 0; contents->type_count > 1 && i < contents->type_count - 1; i++) {
        MPI_Count length = mpi_contents_blocklength(contents, i);
        const struct mpi_type *part = contents->types[i];
        if (*rest < length * known(measure, part)) {
            *type = part;
            return passed;
        }
        *rest -= length * known(measure, part);
        passed += length * wanted(measure, part);
    }
    *type = contents->types[contents->type_count - 1];
    return passed;
}

static MPI_Count convert(struct measure measure, const struct mpi_type *type, MPI_Count amount)
{
    MPI_Count total = 0;
    while (amount > 0) {
        if (known(measure, type) == 0) {
            return MPI_UNDEFINED;
        }
        MPI_Count passed;
        if (__builtin_mul_overflow(amount / known(measure, type), wanted(measure, type), &passed) ||
            __builtin_add_overflow(total, passed, &total)) {
            return MPI_UNDEFINED;
        }
        amount %= known(measure, type);
        if (amount > 0 && type->contents == NULL) {
            return MPI_UNDEFINED;
        }
        if (amount > 0) {
            total += descend(measure, &type, &amount);
        }
    }
    return total;
}

MPI_Count mpi_type_elements(const struct mpi_type *type, MPI_Count bytes)
{
    return convert((struct measure){.from_bytes = true}, type, bytes);
}

MPI_Count mpi_type_elements_bytes(const struct mpi_type *type, MPI_Count count)
{
    MPI_Count bytes = convert((struct measure){.from_bytes = false}, type, count);
    return bytes == MPI_UNDEFINED ? 0 : bytes;
}

int mpi_type_commit(MPI_Datatype *datatype)
{
    struct mpi_type *type = mpi_type_find(*datatype);
    if (type == NULL) {
        return unknown(MPI_COMM_NULL, *datatype);
    }
    type->committed = true;
    return MPI_SUCCESS;
}

int mpi_type_free(MPI_Datatype *datatype)
{
    struct mpi_type *type = mpi_type_find(*datatype);
    if (type == NULL) {
        return unknown(MPI_COMM_NULL, *datatype);
    }
    if (type->predefined) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "%s is predefined and cannot be freed",
                         type->name[0] != '\0' ? type->name : "the datatype");
    }
    if (type->handles == 1) {
        int code = mpi_attributes_free_type(*datatype, &type->attributes);
        if (code != MPI_SUCCESS) {
            return mpi_error(MPI_COMM_NULL, code,
                             "an attribute's delete function failed; the datatype has not been freed");
        }
    }
    if (--type->handles == 0) {
        mpi_handle_free(MPI_KIND_DATATYPE, (uintptr_t)type->handle);
        type->handle = NULL;
    }
    *datatype = MPI_DATATYPE_NULL;
    mpi_type_release(type);
    return MPI_SUCCESS;
}

int mpi_type_size(MPI_Datatype datatype, MPI_Count *size)
{
    const struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL) {
        return unknown(MPI_COMM_NULL, datatype);
    }
    *size = type->size;
    return MPI_SUCCESS;
}

int mpi_type_size_x(MPI_Datatype datatype, MPI_Count *size)
{
    return mpi_type_size(datatype, size);
}

int mpi_type_get_extent(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    const struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL) {
        return unknown(MPI_COMM_NULL, datatype);
    }
    *lb = type->lb;
    *extent = type->extent;
    return MPI_SUCCESS;
}

int mpi_type_get_extent_x(MPI_Datatype datatype, MPI_Count *lb, MPI_Count *extent)
{
    return mpi_type_get_extent(datatype, lb, extent);
}

int mpi_type_get_true_extent(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    const struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL) {
        return unknown(MPI_COMM_NULL, datatype);
    }
    *true_lb = type->true_lb;
    *true_extent = type->true_extent;
    return MPI_SUCCESS;
}

int mpi_type_get_true_extent_x(MPI_Datatype datatype, MPI_Count *true_lb, MPI_Count *true_extent)
{
    return mpi_type_get_true_extent(datatype, true_lb, true_extent);
}

int mpi_type_set_name(MPI_Datatype datatype, const char *type_name)
{
    struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL) {
        return unknown(MPI_COMM_NULL, datatype);
    }
    snprintf(type->name, sizeof(type->name), "%s", type_name);
    return MPI_SUCCESS;
}

int mpi_type_get_name(MPI_Datatype datatype, char *type_name, int *resultlen)
{
    /* The null handle has a name, too (MPI 5.0, 7.8). */
    const struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL && datatype != MPI_DATATYPE_NULL) {
        return unknown(MPI_COMM_NULL, datatype);
    }
    *resultlen = snprintf(type_name, MPI_MAX_OBJECT_NAME, "%s", type == NULL ? "MPI_DATATYPE_NULL" : type->name);
    return MPI_SUCCESS;
}
