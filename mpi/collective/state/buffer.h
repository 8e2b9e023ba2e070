/* buffer: the buffer descriptor of a rank's contribution to a collective call, or of its result: blocks somewhere in a
 * buffer of the program.
 *
 * Schedules work on blocks that lie one behind the other. A buffer descriptor that is so already is used in place; any
 * other is packed before, or unpacked behind.
 *
 * Within the lock of enter.h only. */
#pragma once

#include <stdbool.h>

#include "mpi.h"
#include "mpi/abi/counts.h"
#include "mpi/datatype/datatype.h"

struct mpi_buffer {
    void *buffer;
    int block_count;
    struct mpi_type *type;    /* held; of all blocks, if types is NULL */
    struct mpi_type **types;  /* held; per block (MPI_Alltoallw) */
    MPI_Count count;          /* of each block, if counts is NULL */
    MPI_Count *counts;        /* per block */
    MPI_Count *displacements; /* per block, in bytes, if counts is not NULL */
    MPI_Count bytes;          /* of all blocks, packed */
};

/* All three check counts, types and buffer; MPI_SUCCESS or the error, raised, and then the buffer descriptor holds
 * nothing. */

/* `block_count` blocks of `count` elements, one behind the other. */
int mpi_buffer_equal(struct mpi_buffer *descriptor, MPI_Comm comm, const void *buffer, int block_count, MPI_Count count,
                     MPI_Datatype datatype);
/* Represents a buffer where only the counts matter. */
extern char mpi_buffer_nowhere;

/* A block per rank with counts and displacements in extents of the type; of &mpi_buffer_nowhere without the latter. */
int mpi_buffer_unequal(struct mpi_buffer *descriptor, MPI_Comm comm, const void *buffer, int block_count,
                       struct mpi_counts counts, struct mpi_counts displacements, MPI_Datatype datatype);
/* The same with a type per block and displacements in bytes. */
int mpi_buffer_mixed(struct mpi_buffer *descriptor, MPI_Comm comm, const void *buffer, int block_count,
                     struct mpi_counts counts, struct mpi_counts displacements, const MPI_Datatype datatypes[]);
/* Releases types and arrays; a zeroed one is allowed. */
void mpi_buffer_dispose(struct mpi_buffer *descriptor);

/* Bytes of block `block`, packed. */
MPI_Count mpi_buffer_block_bytes(const struct mpi_buffer *descriptor, int block);
struct mpi_type *mpi_buffer_block_type(const struct mpi_buffer *descriptor, int block);
MPI_Count mpi_buffer_block_count(const struct mpi_buffer *descriptor, int block);
/* Where its first element is. */
void *mpi_buffer_block_start(const struct mpi_buffer *descriptor, int block);

/* The blocks in place, if they lie there as a schedule wants them; NULL: they must be packed. */
void *mpi_buffer_in_place(const struct mpi_buffer *descriptor);
/* The least address of all blocks' bytes, and how far from it each block begins, if each is in one piece; NULL: some
 * are not. Without bytes "". */
void *mpi_buffer_spread(const struct mpi_buffer *descriptor, uint64_t offsets[]);
void mpi_buffer_pack(const struct mpi_buffer *descriptor, void *to);
void mpi_buffer_unpack(const struct mpi_buffer *descriptor, const void *from);
