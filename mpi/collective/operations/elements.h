/* elements: reductions over packed elements, which is how schedules move them. Within the lock of enter.h only. */
#pragma once

#include "mpi/collective/operations/op.h"
#include "mpi/datatype/datatype.h"

/* to[i] = left[i] OP right[i] for `count` packed elements; `to` is `left` or `right`. Types with gaps are laid out for
 * the operation, some at a time. MPI_SUCCESS or MPI_ERR_NO_MEM. */
int mpi_elements_reduce(const struct mpi_op *op, struct mpi_type *type, const void *left, const void *right, void *to,
                        MPI_Count count);
