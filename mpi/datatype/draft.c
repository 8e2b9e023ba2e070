#include "mpi/datatype/draft.h"

#include <assert.h>
#include <stdlib.h>

#include "mpi/runtime/error.h"

struct mpi_draft mpi_draft_of(const struct mpi_type *type)
{
    mpi_layout_retain(type->layout);
    return (struct mpi_draft){
        .size = type->size,
        .element_count = type->element_count,
        .true_lb = type->true_lb,
        .true_ub = type->true_lb + type->true_extent,
        .resized = type->resized,
        .lb = type->lb,
        .ub = type->lb + type->extent,
        .alignment = type->alignment,
        .basic = type->basic,
        .layout = type->layout,
    };
}

void mpi_draft_drop(struct mpi_draft *draft)
{
    mpi_layout_release(draft->layout);
    draft->layout = NULL;
}

static void fail_if(struct mpi_draft *draft, bool failed, int code)
{
    if (failed && draft->code == MPI_SUCCESS) {
        draft->code = code;
    }
}

/* Puts a new layout into the old one's place. */
static void layout_replace(struct mpi_draft *draft, bool is_made, struct mpi_layout *layout)
{
    fail_if(draft, !is_made, MPI_ERR_NO_MEM);
    if (is_made) {
        mpi_layout_release(draft->layout);
        draft->layout = layout;
    }
}

/* Bounds of copies up to `distance` away, below or above. The extent must be a number, too. */
static bool bounds_stretch(MPI_Count *lb, MPI_Count *ub, MPI_Count distance)
{
    MPI_Count extent;
    return __builtin_add_overflow(*lb, distance < 0 ? distance : 0, lb) ||
           __builtin_add_overflow(*ub, distance > 0 ? distance : 0, ub) || __builtin_sub_overflow(*ub, *lb, &extent);
}

static void draft_clear(struct mpi_draft *draft)
{
    mpi_draft_drop(draft);
    *draft = (struct mpi_draft){.code = draft->code};
}

void mpi_draft_repeat(struct mpi_draft *draft, MPI_Count count, MPI_Count stride)
{
    if (count == 0 || (draft->size == 0 && !draft->resized)) {
        draft_clear(draft);
        return;
    }
    MPI_Count distance;
    bool is_over = __builtin_mul_overflow(draft->size, count, &draft->size) ||
                   __builtin_mul_overflow(draft->element_count, count, &draft->element_count) ||
                   __builtin_mul_overflow(count - 1, stride, &distance);
    is_over = is_over || bounds_stretch(&draft->true_lb, &draft->true_ub, distance);
    is_over = is_over || bounds_stretch(&draft->lb, &draft->ub, distance);
    fail_if(draft, is_over, MPI_ERR_ARG);
    if (draft->code == MPI_SUCCESS) {
        struct mpi_layout *layout = NULL;
        bool is_made = mpi_layout_repeat(draft->layout, count, stride, &layout);
        layout_replace(draft, is_made, layout);
    }
}

static bool bounds_move(MPI_Count *lb, MPI_Count *ub, MPI_Count displacement)
{
    return __builtin_add_overflow(*lb, displacement, lb) || __builtin_add_overflow(*ub, displacement, ub);
}

void mpi_draft_move(struct mpi_draft *draft, MPI_Count displacement)
{
    bool is_over = bounds_move(&draft->true_lb, &draft->true_ub, displacement);
    is_over = bounds_move(&draft->lb, &draft->ub, displacement) || is_over;
    fail_if(draft, is_over, MPI_ERR_ARG);
    if (draft->code == MPI_SUCCESS) {
        struct mpi_layout *layout = NULL;
        bool is_made = mpi_layout_move(draft->layout, displacement, &layout);
        layout_replace(draft, is_made, layout);
    }
}

void mpi_draft_resize(struct mpi_draft *draft, MPI_Count lb, MPI_Count extent)
{
    draft->resized = true;
    draft->lb = lb;
    fail_if(draft, __builtin_add_overflow(lb, extent, &draft->ub), MPI_ERR_ARG);
}

/* Makes the bounds of a sum hold those of one more part. */
static bool bounds_join(MPI_Count *lb, MPI_Count *ub, MPI_Count part_lb, MPI_Count part_ub, bool is_first)
{
    MPI_Count extent;
    *lb = is_first || part_lb < *lb ? part_lb : *lb;
    *ub = is_first || part_ub > *ub ? part_ub : *ub;
    return __builtin_sub_overflow(*ub, *lb, &extent);
}

static void sum_add(struct mpi_draft *sum, const struct mpi_draft *part)
{
    bool is_over = false;
    if (part->size > 0) {
        is_over |= bounds_join(&sum->true_lb, &sum->true_ub, part->true_lb, part->true_ub, sum->size == 0);
        sum->basic = sum->size == 0 || sum->basic == part->basic ? part->basic : MPI_DATATYPE_NULL;
    }
    if (part->resized) {
        is_over |= bounds_join(&sum->lb, &sum->ub, part->lb, part->ub, !sum->resized);
        sum->resized = true;
    }
    is_over |= __builtin_add_overflow(sum->size, part->size, &sum->size) ||
               __builtin_add_overflow(sum->element_count, part->element_count, &sum->element_count);
    sum->alignment = part->alignment > sum->alignment ? part->alignment : sum->alignment;
    fail_if(sum, part->code != MPI_SUCCESS, part->code);
    fail_if(sum, is_over, MPI_ERR_ARG);
}

void mpi_draft_list_add(struct mpi_draft_list *list, const struct mpi_draft *draft, MPI_Count displacement)
{
    struct mpi_draft moved = *draft;
    moved.layout = NULL; /* the list itself moves it */
    mpi_draft_move(&moved, displacement);
    sum_add(&list->sum, &moved);
    if (list->sum.code == MPI_SUCCESS) {
        fail_if(&list->sum, !mpi_layout_list_add(&list->parts, displacement, draft->layout), MPI_ERR_NO_MEM);
    }
}

struct mpi_draft mpi_draft_list_finish(struct mpi_draft_list *list)
{
    struct mpi_draft draft = list->sum;
    if (draft.code == MPI_SUCCESS) {
        fail_if(&draft, !mpi_layout_list_finish(&list->parts, &draft.layout), MPI_ERR_NO_MEM);
    } else {
        mpi_layout_list_drop(&list->parts);
    }
    return draft;
}

/* Rounds the extent up, so that the next element is aligned where this one is. */
static MPI_Count extent_of(struct mpi_draft *draft)
{
    if (draft->resized) {
        return draft->ub - draft->lb;
    }
    MPI_Count extent = 0;
    if (draft->size > 0) {
        MPI_Count mask = draft->alignment - 1;
        fail_if(draft, __builtin_add_overflow(draft->true_ub - draft->true_lb, mask, &extent), MPI_ERR_ARG);
        extent &= ~mask;
    }
    return extent;
}

static bool is_dense(const struct mpi_layout *layout, MPI_Count extent)
{
    return layout == NULL || (layout->kind == MPI_LAYOUT_BLOCK && layout->bytes == extent);
}

static struct mpi_type type_of(struct mpi_draft *draft, struct mpi_contents *contents)
{
    bool has_bytes = draft->size > 0;
    MPI_Count extent = extent_of(draft);
    return (struct mpi_type){
        .references = 1,
        .dense = is_dense(draft->layout, extent),
        .resized = draft->resized,
        .alignment = has_bytes ? draft->alignment : 1,
        .size = draft->size,
        .lb = draft->resized ? draft->lb
              : has_bytes    ? draft->true_lb
                             : 0,
        .extent = extent,
        .true_lb = has_bytes ? draft->true_lb : 0,
        .true_extent = has_bytes ? draft->true_ub - draft->true_lb : 0,
        .element_count = draft->element_count,
        .basic = has_bytes ? draft->basic : MPI_DATATYPE_NULL,
        .layout = draft->layout,
        .contents = contents,
    };
}

struct mpi_type *mpi_draft_type(struct mpi_draft *draft, struct mpi_contents *contents, int *code)
{
    fail_if(draft, contents == NULL, MPI_ERR_NO_MEM);
    struct mpi_type value = {0};
    if (draft->code == MPI_SUCCESS) {
        value = type_of(draft, contents);
    }
    struct mpi_type *type = draft->code == MPI_SUCCESS ? malloc(sizeof(*type)) : NULL;
    fail_if(draft, type == NULL, MPI_ERR_NO_MEM);
    if (type == NULL) {
        *code = mpi_error(MPI_COMM_NULL, draft->code,
                          draft->code == MPI_ERR_ARG
                              ? "the bytes of the datatype, or their distances, exceed the range of MPI_Count"
                              : "no memory for another datatype");
        mpi_draft_drop(draft);
        mpi_contents_free(contents);
        return NULL;
    }
    *type = value;
    *code = MPI_SUCCESS;
    return type;
}

int mpi_draft_finish(struct mpi_draft *draft, struct mpi_contents *contents, MPI_Datatype *datatype)
{
    int code;
    struct mpi_type *type = mpi_draft_type(draft, contents, &code);
    if (type == NULL) {
        return code;
    }
    MPI_Datatype handle = mpi_type_handle_make(type);
    mpi_type_release(type); /* the handle has its own reference now */
    if (handle == MPI_DATATYPE_NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for another datatype's handle");
    }
    *datatype = handle;
    return MPI_SUCCESS;
}
