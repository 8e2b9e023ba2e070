/* The life of a datatype: references, the handle, and its constructor's arguments. */
#include <assert.h>
#include <stdlib.h>

#include "mpi/datatype/contents.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/layout.h"
#include "mpi/state/handle.h"

void mpi_contents_free(struct mpi_contents *contents)
{
    if (contents == NULL) {
        return;
    }
    for (MPI_Count i = 0; i < contents->type_count; i++) {
        mpi_type_release(contents->types[i]);
    }
    free(contents);
}

void mpi_type_retain(struct mpi_type *type)
{
    type->references++;
}

void mpi_type_release(struct mpi_type *type)
{
    assert(type->references > 0);
    if (--type->references > 0) {
        return;
    }
    assert(type->handles == 0);
    mpi_layout_release(type->layout);
    mpi_contents_free(type->contents);
    free(type);
}

MPI_Datatype mpi_type_handle_make(struct mpi_type *type)
{
    if (type->predefined) {
        return type->handle;
    }
    if (type->handles == 0) {
        type->handle = (MPI_Datatype)mpi_handle_make(MPI_KIND_DATATYPE, type);
        if (type->handle == NULL) {
            return MPI_DATATYPE_NULL;
        }
    }
    type->handles++;
    mpi_type_retain(type);
    return type->handle;
}
