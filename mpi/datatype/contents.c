#include "mpi/datatype/contents.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/enter.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

/* Whether the constructor that is running is one of large counts; both are one implementation. */
static bool is_large_call(void)
{
    const char *call = mpi_call_name();
    size_t length = strlen(call);
    return length > 2 && strcmp(call + length - 2, "_c") == 0;
}

struct mpi_contents *mpi_contents_make(int combiner, MPI_Count integers, MPI_Count counts, MPI_Count displacements,
                                       MPI_Count types)
{
    bool large = is_large_call() && counts + displacements > 0;
    MPI_Count integer_room = large ? integers : integers + counts;
    MPI_Count wide_room = large ? counts + displacements : displacements;
    size_t bytes = sizeof(struct mpi_contents) + (size_t)types * sizeof(struct mpi_type *) +
                   (size_t)wide_room * sizeof(MPI_Count) + (size_t)integer_room * sizeof(int);
    struct mpi_contents *contents = malloc(bytes);
    if (contents == NULL) {
        return NULL;
    }
    struct mpi_type **room = (struct mpi_type **)(contents + 1);
    MPI_Count *wide = (MPI_Count *)(room + types);
    *contents = (struct mpi_contents){
        .combiner = combiner,
        .large = large,
        .integers = (int *)(wide + wide_room),
        .addresses = large ? NULL : (MPI_Aint *)wide,
        .large_counts = large ? wide : NULL,
        .types = room,
    };
    return contents;
}

void mpi_contents_integer(struct mpi_contents *contents, int value)
{
    contents->integers[contents->integer_count++] = value;
}

void mpi_contents_count(struct mpi_contents *contents, MPI_Count value)
{
    if (contents->large) {
        contents->large_counts[contents->large_count++] = value;
    } else {
        mpi_contents_integer(contents, (int)value);
    }
}

void mpi_contents_displacement(struct mpi_contents *contents, MPI_Count value)
{
    if (contents->large) {
        contents->large_counts[contents->large_count++] = value;
    } else {
        contents->addresses[contents->address_count++] = value;
    }
}

void mpi_contents_type(struct mpi_contents *contents, struct mpi_type *type)
{
    mpi_type_retain(type);
    contents->types[contents->type_count++] = type;
}

MPI_Count mpi_contents_blocklength(const struct mpi_contents *contents, MPI_Count index)
{
    if (contents->combiner != MPI_COMBINER_STRUCT) {
        return 1; /* of a pair */
    }
    return contents->large ? contents->large_counts[1 + index] : contents->integers[1 + index];
}
