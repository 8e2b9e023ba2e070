/* Copies between elements and their packed stream (datatype.h): any piece of it, without walking what is before. */
#include <assert.h>
#include <string.h>

#include "mpi/datatype/datatype.h"
#include "mpi/datatype/layout.h"

enum {
    PIECE_BYTES = 8192, /* packed at a time by mpi_type_copy: stays in the first-level cache */
};

/* One copy in progress. Addresses are numbers: displacements may count from MPI_BOTTOM. */
struct copy {
    uint8_t *stream; /* what comes next */
    bool unpacks;
};

static MPI_Count smaller(MPI_Count a, MPI_Count b)
{
    return a < b ? a : b;
}

static uintptr_t moved(uintptr_t address, MPI_Count index, MPI_Count stride)
{
    return address + (uintptr_t)index * (uintptr_t)stride;
}

static inline __attribute__((always_inline)) void copy_fixed(struct copy *copy, uintptr_t address, size_t bytes)
{
    void *elements = (void *)address;
    if (copy->unpacks) {
        memcpy(elements, copy->stream, bytes);
    } else {
        memcpy(copy->stream, elements, bytes);
    }
    copy->stream += bytes;
}

/* One run of bytes. Of the sizes of numbers no function is called. */
static void copy_run(struct copy *copy, uintptr_t address, size_t bytes)
{
    switch (bytes) {
    case 1:
        copy_fixed(copy, address, 1);
        break;
    case 4:
        copy_fixed(copy, address, 4);
        break;
    case 8:
        copy_fixed(copy, address, 8);
        break;
    case 16:
        copy_fixed(copy, address, 16);
        break;
    default:
        copy_fixed(copy, address, bytes);
        break;
    }
}

/* Blocks at equal distances, and rows of them at equal distances. */
struct rows {
    MPI_Count count;
    MPI_Count stride;
    MPI_Count blocks; /* in each row */
    MPI_Count block_stride;
};

/* The size of a block is known to the compiler where it matters. */
static inline __attribute__((always_inline)) void copy_rows(struct copy *copy, uintptr_t address, struct rows rows,
                                                            size_t bytes)
{
    uint8_t *stream = copy->stream;
    bool unpacks = copy->unpacks;
    for (MPI_Count row = 0; row < rows.count; row++, address += (uintptr_t)rows.stride) {
        uintptr_t at = address;
        if (unpacks) {
            for (MPI_Count i = 0; i < rows.blocks; i++, at += (uintptr_t)rows.block_stride) {
                memcpy((void *)at, stream, bytes);
                stream += bytes;
            }
        } else {
            for (MPI_Count i = 0; i < rows.blocks; i++, at += (uintptr_t)rows.block_stride) {
                memcpy(stream, (void *)at, bytes);
                stream += bytes;
            }
        }
    }
    copy->stream = stream;
}

static inline __attribute__((always_inline)) void
copy_parts(struct copy *copy, uintptr_t address, const struct mpi_layout_part *parts, MPI_Count count, size_t bytes)
{
    struct copy local = *copy;
    for (MPI_Count i = 0; i < count; i++) {
        copy_fixed(&local, address + (uintptr_t)parts[i].displacement, bytes);
    }
    copy->stream = local.stream;
}

static void copy_strided(struct copy *copy, uintptr_t address, struct rows rows, MPI_Count bytes)
{
    switch (bytes) {
    case 1:
        copy_rows(copy, address, rows, 1);
        break;
    case 2:
        copy_rows(copy, address, rows, 2);
        break;
    case 4:
        copy_rows(copy, address, rows, 4);
        break;
    case 8:
        copy_rows(copy, address, rows, 8);
        break;
    case 12:
        copy_rows(copy, address, rows, 12);
        break;
    case 16:
        copy_rows(copy, address, rows, 16);
        break;
    case 24:
        copy_rows(copy, address, rows, 24);
        break;
    case 32:
        copy_rows(copy, address, rows, 32);
        break;
    default:
        copy_rows(copy, address, rows, (size_t)bytes);
        break;
    }
}

static void copy_blocks(struct copy *copy, uintptr_t address, const struct mpi_layout_part *parts, MPI_Count count,
                        MPI_Count bytes)
{
    switch (bytes) {
    case 4:
        copy_parts(copy, address, parts, count, 4);
        break;
    case 8:
        copy_parts(copy, address, parts, count, 8);
        break;
    case 16:
        copy_parts(copy, address, parts, count, 16);
        break;
    default:
        copy_parts(copy, address, parts, count, (size_t)bytes);
        break;
    }
}

static void copy_whole(struct copy *copy, const struct mpi_layout *layout, uintptr_t address);

static void copy_whole_turns(struct copy *copy, const struct mpi_layout *turn, MPI_Count stride, MPI_Count count,
                             uintptr_t address)
{
    const struct mpi_layout *inner = turn->kind == MPI_LAYOUT_LOOP ? turn->child : NULL;
    if (turn->kind == MPI_LAYOUT_BLOCK) {
        struct rows row = {.count = 1, .blocks = count, .block_stride = stride};
        copy_strided(copy, address + (uintptr_t)turn->displacement, row, turn->bytes);
        return;
    }
    if (inner != NULL && inner->kind == MPI_LAYOUT_BLOCK) {
        struct rows rows = {.count = count, .stride = stride, .blocks = turn->count, .block_stride = turn->stride};
        address += (uintptr_t)turn->displacement + (uintptr_t)inner->displacement;
        copy_strided(copy, address, rows, inner->bytes);
        return;
    }
    for (MPI_Count i = 0; i < count; i++, address += (uintptr_t)stride) {
        copy_whole(copy, turn, address);
    }
}

static void copy_whole_parts(struct copy *copy, const struct mpi_layout *list, uintptr_t address)
{
    for (const struct mpi_layout_part *part = list->parts; part < list->parts + list->count; part++) {
        if (part->layout == NULL) {
            copy_run(copy, address + (uintptr_t)part->displacement, (size_t)(part[1].from - part[0].from));
        } else {
            copy_whole(copy, part->layout, address + (uintptr_t)part->displacement);
        }
    }
}

/* All of a layout: no position to look for. */
static void copy_whole(struct copy *copy, const struct mpi_layout *layout, uintptr_t address)
{
    address += (uintptr_t)layout->displacement;
    if (layout->kind == MPI_LAYOUT_BLOCK) {
        copy_run(copy, address, (size_t)layout->bytes);
    } else if (layout->kind == MPI_LAYOUT_LOOP) {
        copy_whole_turns(copy, layout->child, layout->stride, layout->count, address);
    } else if (layout->all_blocks && layout->part_bytes > 0) {
        copy_blocks(copy, address, layout->parts, layout->count, layout->part_bytes);
    } else {
        copy_whole_parts(copy, layout, address);
    }
}

static void copy_layout(struct copy *copy, const struct mpi_layout *layout, uintptr_t address, MPI_Count from,
                        MPI_Count bytes);

/* Turns of a layout, from byte `from` of their stream on: the rest of one, whole ones, the beginning of one. */
static void copy_loop(struct copy *copy, const struct mpi_layout *turn, MPI_Count stride, uintptr_t address,
                      MPI_Count from, MPI_Count bytes)
{
    MPI_Count index = from / turn->bytes;
    MPI_Count skipped = from % turn->bytes;
    if (skipped > 0) {
        MPI_Count rest = smaller(bytes, turn->bytes - skipped);
        copy_layout(copy, turn, moved(address, index, stride), skipped, rest);
        bytes -= rest;
        index++;
    }
    MPI_Count whole = bytes / turn->bytes;
    copy_whole_turns(copy, turn, stride, whole, moved(address, index, stride));
    if (bytes % turn->bytes > 0) {
        copy_layout(copy, turn, moved(address, index + whole, stride), 0, bytes % turn->bytes);
    }
}

/* The part that byte `from` of the stream is in. */
static MPI_Count part_at(const struct mpi_layout *list, MPI_Count from)
{
    if (list->part_bytes > 0) {
        return from / list->part_bytes;
    }
    MPI_Count first = 0;
    MPI_Count end = list->count;
    while (end - first > 1) {
        MPI_Count middle = first + (end - first) / 2;
        if (list->parts[middle].from <= from) {
            first = middle;
        } else {
            end = middle;
        }
    }
    return first;
}

static void copy_part(struct copy *copy, const struct mpi_layout_part *part, uintptr_t address, MPI_Count from,
                      MPI_Count bytes)
{
    address += (uintptr_t)part->displacement;
    if (part->layout == NULL) {
        copy_run(copy, address + (uintptr_t)from, (size_t)bytes);
    } else if (bytes == part->layout->bytes) {
        copy_whole(copy, part->layout, address);
    } else {
        copy_layout(copy, part->layout, address, from, bytes);
    }
}

static void copy_list(struct copy *copy, const struct mpi_layout *list, uintptr_t address, MPI_Count from,
                      MPI_Count bytes)
{
    const struct mpi_layout_part *part = &list->parts[part_at(list, from)];
    MPI_Count skipped = from - part->from;
    while (bytes > 0) {
        if (skipped == 0 && list->all_blocks && list->part_bytes > 0 && bytes >= list->part_bytes) {
            MPI_Count whole = bytes / list->part_bytes;
            copy_blocks(copy, address, part, whole, list->part_bytes);
            bytes -= whole * list->part_bytes;
            part += whole;
            continue;
        }
        MPI_Count piece = smaller(bytes, part[1].from - part[0].from - skipped);
        copy_part(copy, part, address, skipped, piece);
        bytes -= piece;
        skipped = 0;
        part++;
    }
}

/* Bytes [from, from + bytes) of the layout's stream; at least one, and all of them are there. */
static void copy_layout(struct copy *copy, const struct mpi_layout *layout, uintptr_t address, MPI_Count from,
                        MPI_Count bytes)
{
    address += (uintptr_t)layout->displacement;
    switch (layout->kind) {
    case MPI_LAYOUT_BLOCK:
        copy_run(copy, address + (uintptr_t)from, (size_t)bytes);
        break;
    case MPI_LAYOUT_LOOP:
        copy_loop(copy, layout->child, layout->stride, address, from, bytes);
        break;
    case MPI_LAYOUT_LIST:
        copy_list(copy, layout, address, from, bytes);
        break;
    }
}

static void copy_elements(const struct mpi_type *type, MPI_Count count, uintptr_t address, MPI_Count from,
                          MPI_Count bytes, struct copy copy)
{
    assert(from >= 0 && bytes >= 0 && from + bytes <= type->size * count);
    (void)count;
    if (bytes == 0) {
        return;
    }
    if (type->dense) {
        copy_run(&copy, address + (uintptr_t)(type->true_lb + from), (size_t)bytes);
    } else {
        copy_loop(&copy, type->layout, type->extent, address, from, bytes);
    }
}

void mpi_type_pack(const struct mpi_type *type, MPI_Count count, const void *buffer, MPI_Count from, void *to,
                   MPI_Count bytes)
{
    copy_elements(type, count, (uintptr_t)buffer, from, bytes, (struct copy){.stream = to, .unpacks = false});
}

void mpi_type_unpack(const struct mpi_type *type, MPI_Count count, void *buffer, MPI_Count from, const void *data,
                     MPI_Count bytes)
{
    uint8_t *stream = (uint8_t *)(uintptr_t)data; /* only read */
    copy_elements(type, count, (uintptr_t)buffer, from, bytes, (struct copy){.stream = stream, .unpacks = true});
}

int mpi_type_copy(const struct mpi_type *from_type, MPI_Count from_count, const void *from,
                  const struct mpi_type *to_type, MPI_Count to_count, void *to)
{
    MPI_Count from_bytes = from_type->size * from_count;
    MPI_Count bytes = smaller(from_bytes, to_type->size * to_count);
    if (to_type->dense && bytes > 0) {
        mpi_type_pack(from_type, from_count, from, 0, (void *)((uintptr_t)to + (uintptr_t)to_type->true_lb), bytes);
    } else if (from_type->dense && bytes > 0) {
        mpi_type_unpack(to_type, to_count, to, 0, (void *)((uintptr_t)from + (uintptr_t)from_type->true_lb), bytes);
    } else {
        uint8_t piece[PIECE_BYTES];
        for (MPI_Count done = 0; done < bytes; done += PIECE_BYTES) {
            MPI_Count now = smaller(bytes - done, PIECE_BYTES);
            mpi_type_pack(from_type, from_count, from, done, piece, now);
            mpi_type_unpack(to_type, to_count, to, done, piece, now);
        }
    }
    return from_bytes > bytes ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
}
