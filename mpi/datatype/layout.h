/* layout: where the bytes of a datatype are, in the order of its packed stream.
 *
 * Purpose
 *   A tree of blocks, loops and lists. It knows bytes only: predefined types do not matter for copying (contents.h
 *   remembers them), so adjacent blocks are merged, and a regular type takes a few nodes for any number of blocks.
 *
 * Invariants
 *   - Nodes do not change and are shared; they are counted. No bytes at all is no node: NULL.
 *   - A position in the stream is found without walking what is before it: by division in loops and in lists of equal
 *     parts, by bisection in other lists.
 *   - All sums were checked against overflow before a node is made (draft.h).
 *
 * Making and releasing within the lock of enter.h only; reading from any thread that holds the type. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "mpi.h"

enum mpi_layout_kind {
    MPI_LAYOUT_BLOCK,
    MPI_LAYOUT_LOOP,
    MPI_LAYOUT_LIST,
};

struct mpi_layout_part {
    MPI_Count from; /* where it begins in the stream */
    MPI_Count displacement;
    struct mpi_layout *layout; /* NULL: a block */
};

struct mpi_layout {
    enum mpi_layout_kind kind;
    uint32_t references;
    MPI_Count bytes; /* in the stream */
    MPI_Count displacement;
    MPI_Count count;               /* loop: of turns; list: of parts */
    MPI_Count stride;              /* loop: from one turn to the next */
    struct mpi_layout *child;      /* loop */
    MPI_Count part_bytes;          /* list: of each part; 0: they differ */
    bool all_blocks;               /* list: no part has a layout of its own */
    struct mpi_layout_part *parts; /* list: count, and one more that begins where the last one ends */
};

/* All return false if there is no memory; *result is a new reference otherwise. */
bool mpi_layout_block(MPI_Count displacement, MPI_Count bytes, struct mpi_layout **result);
bool mpi_layout_move(struct mpi_layout *layout, MPI_Count displacement, struct mpi_layout **result);
bool mpi_layout_repeat(struct mpi_layout *layout, MPI_Count count, MPI_Count stride, struct mpi_layout **result);

void mpi_layout_retain(struct mpi_layout *layout);
void mpi_layout_release(struct mpi_layout *layout);

/* A list under construction; all zero to begin with. Order: { add }*, then finish or drop. */
struct mpi_layout_list {
    struct mpi_layout_part *parts;
    MPI_Count count;
    MPI_Count capacity;
    MPI_Count bytes;
};

/* False: no memory; the list is as it was. */
bool mpi_layout_list_add(struct mpi_layout_list *list, MPI_Count displacement, struct mpi_layout *layout);
/* The list is empty afterwards, also on failure. */
bool mpi_layout_list_finish(struct mpi_layout_list *list, struct mpi_layout **result);
void mpi_layout_list_drop(struct mpi_layout_list *list);
