/* draft: a datatype under construction: the steps of constructors, each of them a few.
 *
 * Purpose
 *   Every constructor takes copies of old types, repeats them, moves them and puts them one after the other. A draft
 *   does that for all that a type is: size, bounds, layout. Bounds follow the standard's definition (MPI 5.0, 5.1):
 *   those of the type map, its extent rounded up to the greatest alignment, unless some part has been given bounds of
 *   its own (MPI_Type_create_resized); then only those count.
 *
 * Invariants
 *   - A draft remembers its first failure, overflow or no memory, and later steps do nothing; mpi_draft_finish raises
 *     it.
 *   - A draft holds its layout until it is finished or dropped. */
#pragma once

#include <stdbool.h>

#include "mpi.h"
#include "mpi/datatype/contents.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/layout.h"

struct mpi_draft {
    int code; /* MPI_SUCCESS; MPI_ERR_ARG: overflow; MPI_ERR_NO_MEM */
    MPI_Count size;
    MPI_Count element_count;
    MPI_Count true_lb; /* with true_ub: of the bytes, if size > 0 */
    MPI_Count true_ub;
    bool resized;
    MPI_Count lb; /* with ub: as they were given, if resized */
    MPI_Count ub;
    uint32_t alignment;
    MPI_Datatype basic;
    struct mpi_layout *layout;
};

/* One element of a type. */
struct mpi_draft mpi_draft_of(const struct mpi_type *type);
/* `count` copies, each `stride` bytes from the one before. */
void mpi_draft_repeat(struct mpi_draft *draft, MPI_Count count, MPI_Count stride);
void mpi_draft_move(struct mpi_draft *draft, MPI_Count displacement);
void mpi_draft_resize(struct mpi_draft *draft, MPI_Count lb, MPI_Count extent);
void mpi_draft_drop(struct mpi_draft *draft);

/* Several drafts one after the other; all zero to begin with. Order: { add }*, then finish. */
struct mpi_draft_list {
    struct mpi_draft sum; /* without layout */
    struct mpi_layout_list parts;
};
/* The draft stays the caller's, which may add it again. */
void mpi_draft_list_add(struct mpi_draft_list *list, const struct mpi_draft *draft, MPI_Count displacement);
struct mpi_draft mpi_draft_list_finish(struct mpi_draft_list *list);

/* The draft as a type with one reference. Takes the draft and `contents`, on failure too (contents NULL: there was
 * no memory for them). NULL: raised as *code. */
struct mpi_type *mpi_draft_type(struct mpi_draft *draft, struct mpi_contents *contents, int *code);
/* The same for a program: its reference is that of the handle in *datatype, which stays as it was on failure. */
int mpi_draft_finish(struct mpi_draft *draft, struct mpi_contents *contents, MPI_Datatype *datatype);
