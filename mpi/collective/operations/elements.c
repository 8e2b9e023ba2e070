#include "mpi/collective/operations/elements.h"

#include <stdint.h>
#include <stdlib.h>

enum { LAID_OUT_BYTES = 65536 }; /* of one operand at a time */

/* Memory that elements of a type are laid out in, and where the first one begins in it. */
struct laid_out {
    uint8_t *memory;
    uint8_t *start;
};

static struct laid_out laid_out_make(const struct mpi_type *type, MPI_Count count)
{
    /* functions may copy elements with the hole at their end */
    MPI_Count span = type->true_extent + count * (type->extent < 0 ? -type->extent : type->extent);
    MPI_Count before = type->extent < 0 ? (1 - count) * type->extent : 0;
    uint8_t *memory = calloc(1, (size_t)span + 1);
    return (struct laid_out){.memory = memory, .start = memory == NULL ? NULL : memory + before - type->true_lb};
}

static int some_reduce(const struct mpi_op *op, struct mpi_type *type, const uint8_t *left, const uint8_t *right,
                       uint8_t *to, MPI_Count count)
{
    struct laid_out a = laid_out_make(type, count);
    struct laid_out b = laid_out_make(type, count);
    int code = a.memory == NULL || b.memory == NULL ? MPI_ERR_NO_MEM : MPI_SUCCESS;
    if (code == MPI_SUCCESS) {
        mpi_type_unpack(type, count, a.start, 0, left, count * type->size);
        mpi_type_unpack(type, count, b.start, 0, right, count * type->size);
        code = mpi_op_apply(op, type, a.start, b.start, b.start, count);
        mpi_type_pack(type, count, b.start, 0, to, count * type->size);
    }
    free(a.memory);
    free(b.memory);
    return code;
}

int mpi_elements_reduce(const struct mpi_op *op, struct mpi_type *type, const void *left, const void *right, void *to,
                        MPI_Count count)
{
    if (type->dense) {
        MPI_Count back = -type->true_lb;
        return mpi_op_apply(op, type, (const uint8_t *)left + back, (const uint8_t *)right + back, (uint8_t *)to + back,
                            count);
    }
    MPI_Count at_once = type->true_extent > LAID_OUT_BYTES ? 1 : LAID_OUT_BYTES / (type->true_extent + 1) + 1;
    int code = MPI_SUCCESS;
    for (MPI_Count done = 0; code == MPI_SUCCESS && done < count; done += at_once) {
        MPI_Count some = count - done < at_once ? count - done : at_once;
        MPI_Count offset = done * type->size;
        code = some_reduce(op, type, (const uint8_t *)left + offset, (const uint8_t *)right + offset,
                           (uint8_t *)to + offset, some);
    }
    return code;
}
