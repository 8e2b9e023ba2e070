/* MPI_Type_create_subarray: a box of an array, with the bounds of the whole array (MPI 5.0, 5.1.3). */
#include "mpi/datatype/contents.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/draft.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

static int dimension_check(int dimension, MPI_Count size, MPI_Count subsize, MPI_Count start)
{
    if (size >= 1 && subsize >= 1 && subsize <= size && start >= 0 && start <= size - subsize) {
        return MPI_SUCCESS;
    }
    return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "dimension %d: %lld elements from %lld on are no part of %lld",
                     dimension, (long long)subsize, (long long)start, (long long)size);
}

static struct mpi_contents *subarray_contents(int ndims, struct mpi_counts sizes, struct mpi_counts subsizes,
                                              struct mpi_counts starts, int order, struct mpi_type *type)
{
    struct mpi_contents *contents = mpi_contents_make(MPI_COMBINER_SUBARRAY, 2, 3 * (MPI_Count)ndims, 0, 1);
    if (contents == NULL) {
        return NULL;
    }
    struct mpi_counts arrays[] = {sizes, subsizes, starts};
    mpi_contents_integer(contents, ndims);
    for (int i = 0; i < 3 * ndims; i++) {
        mpi_contents_count(contents, mpi_count_at(arrays[i / ndims], i % ndims));
    }
    mpi_contents_integer(contents, order);
    mpi_contents_type(contents, type);
    return contents;
}

/* Repeats the draft in one dimension after the other, the one whose neighbours are closest first. */
static struct mpi_draft subarray_draft(int ndims, struct mpi_counts sizes, struct mpi_counts subsizes,
                                       struct mpi_counts starts, int order, const struct mpi_type *type)
{
    struct mpi_draft draft = mpi_draft_of(type);
    MPI_Count stride = type->extent;
    MPI_Count displacement = 0;
    bool is_over = false;
    for (int i = 0; i < ndims; i++) {
        int dimension = order == MPI_ORDER_C ? ndims - 1 - i : i;
        MPI_Count skipped;
        mpi_draft_repeat(&draft, mpi_count_at(subsizes, dimension), stride);
        is_over |= __builtin_mul_overflow(mpi_count_at(starts, dimension), stride, &skipped) ||
                   __builtin_add_overflow(displacement, skipped, &displacement) ||
                   __builtin_mul_overflow(mpi_count_at(sizes, dimension), stride, &stride);
    }
    if (is_over) {
        draft.code = MPI_ERR_ARG;
    }
    mpi_draft_move(&draft, displacement);
    mpi_draft_resize(&draft, 0, stride);
    return draft;
}

int mpi_type_create_subarray(int ndims, struct mpi_counts array_of_sizes, struct mpi_counts array_of_subsizes,
                             struct mpi_counts array_of_starts, int order, MPI_Datatype datatype, MPI_Datatype *newtype)
{
    struct mpi_type *type = mpi_type_find(datatype);
    if (type == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "the old datatype is unknown");
    }
    if (ndims < 1) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "%d dimensions; there must be one at least", ndims);
    }
    if (order != MPI_ORDER_C && order != MPI_ORDER_FORTRAN) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "order %d is neither MPI_ORDER_C nor MPI_ORDER_FORTRAN", order);
    }
    for (int i = 0; i < ndims; i++) {
        int code = dimension_check(i, mpi_count_at(array_of_sizes, i), mpi_count_at(array_of_subsizes, i),
                                   mpi_count_at(array_of_starts, i));
        if (code != MPI_SUCCESS) {
            return code;
        }
    }
    struct mpi_contents *contents =
        subarray_contents(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, type);
    struct mpi_draft draft = subarray_draft(ndims, array_of_sizes, array_of_subsizes, array_of_starts, order, type);
    return mpi_draft_finish(&draft, contents, newtype);
}
