/* op_kernels: the loops of predefined operations, one for each operation and kind of element.
 *
 * Any thread. */
#pragma once

#include <stdbool.h>

#include "mpi.h"

/* Kinds of elements, for the processor. Signed integers wrap around. */
enum mpi_element {
    MPI_ELEMENT_NONE,
    MPI_ELEMENT_I8,
    MPI_ELEMENT_I16,
    MPI_ELEMENT_I32,
    MPI_ELEMENT_I64,
    MPI_ELEMENT_I128,
    MPI_ELEMENT_U8,
    MPI_ELEMENT_U16,
    MPI_ELEMENT_U32,
    MPI_ELEMENT_U64,
    MPI_ELEMENT_U128,
    MPI_ELEMENT_F32,
    MPI_ELEMENT_F64,
    MPI_ELEMENT_F80,
    MPI_ELEMENT_F128,
    MPI_ELEMENT_C32, /* complex, by its parts */
    MPI_ELEMENT_C64,
    MPI_ELEMENT_C80,
    MPI_ELEMENT_C128,
    MPI_ELEMENT_COUNT,
};

enum mpi_kernel_op {
    MPI_KERNEL_SUM,
    MPI_KERNEL_PROD,
    MPI_KERNEL_MIN,
    MPI_KERNEL_MAX,
    MPI_KERNEL_BAND,
    MPI_KERNEL_BOR,
    MPI_KERNEL_BXOR,
    MPI_KERNEL_LAND,
    MPI_KERNEL_LOR,
    MPI_KERNEL_LXOR,
    MPI_KERNEL_OPS,
};

/* to[i] = other[i] OP to[i], or to[i] OP other[i], which is not the same for every -0.0 and NaN. No overlap. */
typedef void (*mpi_kernel)(void *to, const void *other, MPI_Count count, bool other_is_left);

/* NULL: there is none. */
mpi_kernel mpi_kernel_find(enum mpi_kernel_op op, enum mpi_element element);

/* MPI_MINLOC or MPI_MAXLOC on structs of a value and an index. NULL: there is none. */
mpi_kernel mpi_kernel_pair(bool is_max, enum mpi_element value, enum mpi_element index);
