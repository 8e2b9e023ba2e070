#include "mpi/datatype/layout.h"

#include <assert.h>
#include <stdlib.h>

static struct mpi_layout *node_make(struct mpi_layout value)
{
    struct mpi_layout *node = malloc(sizeof(*node));
    if (node != NULL) {
        *node = value;
        node->references = 1;
    }
    return node;
}

void mpi_layout_retain(struct mpi_layout *layout)
{
    if (layout != NULL) {
        layout->references++;
    }
}

void mpi_layout_release(struct mpi_layout *layout)
{
    while (layout != NULL) {
        assert(layout->references > 0);
        if (--layout->references > 0) {
            return;
        }
        for (MPI_Count i = 0; layout->kind == MPI_LAYOUT_LIST && i < layout->count; i++) {
            mpi_layout_release(layout->parts[i].layout);
        }
        struct mpi_layout *child = layout->child;
        free(layout->parts);
        free(layout);
        layout = child;
    }
}

bool mpi_layout_block(MPI_Count displacement, MPI_Count bytes, struct mpi_layout **result)
{
    if (bytes == 0) {
        *result = NULL;
        return true;
    }
    *result = node_make((struct mpi_layout){.kind = MPI_LAYOUT_BLOCK, .bytes = bytes, .displacement = displacement});
    return *result != NULL;
}

/* Takes a reference to the child. */
static bool loop_make(struct mpi_layout *child, MPI_Count displacement, MPI_Count count, MPI_Count stride,
                      struct mpi_layout **result)
{
    *result = node_make((struct mpi_layout){.kind = MPI_LAYOUT_LOOP,
                                            .bytes = child->bytes * count,
                                            .displacement = displacement,
                                            .count = count,
                                            .stride = stride,
                                            .child = child});
    if (*result != NULL) {
        mpi_layout_retain(child);
    }
    return *result != NULL;
}

bool mpi_layout_move(struct mpi_layout *layout, MPI_Count displacement, struct mpi_layout **result)
{
    if (layout == NULL || displacement == 0) {
        mpi_layout_retain(layout);
        *result = layout;
        return true;
    }
    switch (layout->kind) {
    case MPI_LAYOUT_BLOCK:
        return mpi_layout_block(layout->displacement + displacement, layout->bytes, result);
    case MPI_LAYOUT_LOOP:
        return loop_make(layout->child, layout->displacement + displacement, layout->count, layout->stride, result);
    default:
        return loop_make(layout, displacement, 1, 0, result); /* rather than copying the parts */
    }
}

/* Whether turns of the loop continue where the one before has ended, so that both are one loop. */
static bool is_continued(const struct mpi_layout *loop, MPI_Count stride)
{
    MPI_Count whole;
    return loop->kind == MPI_LAYOUT_LOOP && !__builtin_mul_overflow(loop->count, loop->stride, &whole) &&
           whole == stride;
}

bool mpi_layout_repeat(struct mpi_layout *layout, MPI_Count count, MPI_Count stride, struct mpi_layout **result)
{
    if (layout == NULL || count == 0) {
        *result = NULL;
        return true;
    }
    if (count == 1) {
        return mpi_layout_move(layout, 0, result);
    }
    if (layout->kind == MPI_LAYOUT_BLOCK && layout->bytes == stride) {
        return mpi_layout_block(layout->displacement, layout->bytes * count, result);
    }
    if (is_continued(layout, stride)) {
        return loop_make(layout->child, layout->displacement, layout->count * count, layout->stride, result);
    }
    return loop_make(layout, 0, count, stride, result);
}

/* Room for one more part and for the end. */
static bool list_grow(struct mpi_layout_list *list)
{
    if (list->count + 1 < list->capacity) {
        return true;
    }
    MPI_Count capacity = list->capacity == 0 ? 4 : 2 * list->capacity;
    struct mpi_layout_part *parts = realloc(list->parts, (size_t)capacity * sizeof(*parts));
    if (parts == NULL) {
        return false;
    }
    list->parts = parts;
    list->capacity = capacity;
    return true;
}

bool mpi_layout_list_add(struct mpi_layout_list *list, MPI_Count displacement, struct mpi_layout *layout)
{
    if (layout == NULL) {
        return true;
    }
    bool is_block = layout->kind == MPI_LAYOUT_BLOCK;
    if (is_block) {
        displacement += layout->displacement;
    }
    const struct mpi_layout_part *last = list->count == 0 ? NULL : &list->parts[list->count - 1];
    bool touches = is_block && last != NULL && last->layout == NULL &&
                   last->displacement + list->bytes - last->from == displacement;
    if (!touches) {
        if (!list_grow(list)) {
            return false;
        }
        list->parts[list->count++] = (struct mpi_layout_part){
            .from = list->bytes, .displacement = displacement, .layout = is_block ? NULL : layout};
        mpi_layout_retain(is_block ? NULL : layout);
    }
    list->bytes += layout->bytes;
    return true;
}

void mpi_layout_list_drop(struct mpi_layout_list *list)
{
    for (MPI_Count i = 0; i < list->count; i++) {
        mpi_layout_release(list->parts[i].layout);
    }
    free(list->parts);
    *list = (struct mpi_layout_list){0};
}

/* The list as its one part, if it has no more. */
static bool finish_one(const struct mpi_layout_list *list, struct mpi_layout **result)
{
    const struct mpi_layout_part *part = &list->parts[0];
    return part->layout == NULL ? mpi_layout_block(part->displacement, list->bytes, result)
                                : mpi_layout_move(part->layout, part->displacement, result);
}

/* The bytes of each part; 0: they differ. */
static MPI_Count equal_bytes(const struct mpi_layout_list *list)
{
    MPI_Count bytes = list->parts[1].from;
    for (MPI_Count i = 1; i < list->count; i++) {
        if (list->parts[i + 1].from - list->parts[i].from != bytes) {
            return 0;
        }
    }
    return bytes;
}

static bool is_regular(const struct mpi_layout_list *list)
{
    MPI_Count stride = list->parts[1].displacement - list->parts[0].displacement;
    for (MPI_Count i = 1; i < list->count; i++) {
        const struct mpi_layout_part *part = &list->parts[i];
        if (part->layout != part[-1].layout || part->displacement - part[-1].displacement != stride) {
            return false;
        }
    }
    return equal_bytes(list) != 0;
}

/* The list as a loop, if its parts are alike and equally far apart. */
static bool finish_regular(const struct mpi_layout_list *list, struct mpi_layout **result)
{
    const struct mpi_layout_part *parts = list->parts;
    struct mpi_layout *first = NULL;
    struct mpi_layout *repeated = NULL;
    if (parts[0].layout != NULL) {
        mpi_layout_retain(parts[0].layout);
        first = parts[0].layout;
    } else if (!mpi_layout_block(0, parts[1].from, &first)) {
        return false;
    }
    bool is_made = mpi_layout_repeat(first, list->count, parts[1].displacement - parts[0].displacement, &repeated) &&
                   mpi_layout_move(repeated, parts[0].displacement, result);
    mpi_layout_release(first);
    mpi_layout_release(repeated);
    return is_made;
}

static bool finish_list(struct mpi_layout_list *list, struct mpi_layout **result)
{
    bool all_blocks = true;
    for (MPI_Count i = 0; i < list->count; i++) {
        all_blocks = all_blocks && list->parts[i].layout == NULL;
    }
    *result = node_make((struct mpi_layout){.kind = MPI_LAYOUT_LIST,
                                            .bytes = list->bytes,
                                            .count = list->count,
                                            .part_bytes = equal_bytes(list),
                                            .all_blocks = all_blocks,
                                            .parts = list->parts});
    if (*result != NULL) {
        *list = (struct mpi_layout_list){0};
    }
    return *result != NULL;
}

bool mpi_layout_list_finish(struct mpi_layout_list *list, struct mpi_layout **result)
{
    bool is_made = true;
    if (list->count == 0) {
        *result = NULL;
    } else {
        list->parts[list->count] = (struct mpi_layout_part){.from = list->bytes};
        is_made = list->count == 1   ? finish_one(list, result)
                  : is_regular(list) ? finish_regular(list, result)
                                     : finish_list(list, result);
    }
    mpi_layout_list_drop(list);
    return is_made;
}
