/* op: operations of reductions (MPI 5.0, 6.9).
 *
 * Predefined operations apply to the groups of types that the standard lists (6.9.2), and work on elements as they lie
 * in memory, extent after extent. As in MPICH and Open MPI, MPI_CHAR is an integer, and logical operations take
 * MPI_AINT, MPI_COUNT and MPI_OFFSET. Operations of the program take any type. MPI_REPLACE and MPI_NO_OP are for
 * one-sided communication and apply to nothing here.
 *
 * Within the lock of enter.h only. mpi_op_apply calls functions of the program, which may call MPI: never on the
 * control thread (lock.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"

struct mpi_type;

struct mpi_op {
    MPI_Op handle;
    uint32_t references; /* the handle, and collectives in progress */
    bool predefined;
    bool commutative;
    MPI_User_function *function; /* one of both, unless predefined */
    MPI_User_function_c *function_c;
};

/* The object of a handle; NULL: none. */
struct mpi_op *mpi_op_find(MPI_Op handle);
void mpi_op_retain(struct mpi_op *op);
void mpi_op_release(struct mpi_op *op);

/* Checks that there is such an operation and that it applies to the type. MPI_SUCCESS, or MPI_ERR_OP, which has been
 * raised through `comm`. */
int mpi_op_check(MPI_Comm comm, MPI_Op handle, const struct mpi_type *type, struct mpi_op **op);

/* to[i] = left[i] OP right[i] for `count` elements of a type that mpi_op_check has passed; `to` is either `left` or
 * `right`, and these do not overlap. Buffers are MPI buffers: elements begin at their lower bound from there.
 * MPI_SUCCESS, or MPI_ERR_NO_MEM (not raised): only for an operation that does not commute, with to == left. */
int mpi_op_apply(const struct mpi_op *op, struct mpi_type *type, const void *left, const void *right, void *to,
                 MPI_Count count);
