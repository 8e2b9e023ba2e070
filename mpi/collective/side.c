#include "mpi/collective/side.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/error.h"

int mpi_side_equal(struct mpi_side *side, MPI_Comm comm, const void *buffer, int block_count, MPI_Count count,
                   MPI_Datatype datatype)
{
    struct mpi_type *type;
    int code = mpi_type_check(comm, count, datatype, &type);
    if (code != MPI_SUCCESS) {
        return code;
    }
    *side = (struct mpi_side){
        .buffer = (void *)(uintptr_t)buffer,
        .block_count = block_count,
        .type = type,
        .count = count,
        .bytes = block_count * count * type->size,
    };
    if (buffer == NULL && side->bytes > 0 && type->predefined) {
        return mpi_error(comm, MPI_ERR_BUFFER, "the buffer is NULL, but holds %lld elements",
                         (long long)(block_count * count));
    }
    mpi_type_retain(type);
    return MPI_SUCCESS;
}

/* Memory for the arrays; MPI_SUCCESS or MPI_ERR_NO_MEM, raised. */
static int arrays_make(struct mpi_side *side, MPI_Comm comm, bool displacements, bool types)
{
    size_t count = (size_t)side->block_count + 1;
    side->counts = calloc(count, sizeof(*side->counts));
    side->displacements = displacements ? calloc(count, sizeof(*side->displacements)) : NULL;
    side->types = types ? calloc(count, sizeof(struct mpi_type *)) : NULL;
    if (side->counts == NULL || (displacements && side->displacements == NULL) || (types && side->types == NULL)) {
        mpi_side_dispose(side);
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks", side->block_count);
    }
    return MPI_SUCCESS;
}

static int count_check(MPI_Comm comm, int block, MPI_Count count)
{
    return count >= 0 ? MPI_SUCCESS
                      : mpi_error(comm, MPI_ERR_COUNT, "the count for rank %d is %lld", block, (long long)count);
}

int mpi_side_unequal(struct mpi_side *side, MPI_Comm comm, const void *buffer, int block_count,
                     struct mpi_counts counts, struct mpi_counts displacements, MPI_Datatype datatype)
{
    struct mpi_type *type;
    int code = mpi_type_check(comm, 0, datatype, &type);
    if (code == MPI_SUCCESS && counts.values == NULL) {
        code = mpi_error(comm, MPI_ERR_ARG, "the array of counts is NULL");
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    *side = (struct mpi_side){.buffer = (void *)(uintptr_t)buffer, .block_count = block_count};
    MPI_Count behind = 0;
    code = arrays_make(side, comm, true, false);
    for (int block = 0; code == MPI_SUCCESS && block < block_count; block++) {
        side->counts[block] = mpi_count_at(counts, block);
        code = count_check(comm, block, side->counts[block]);
        side->bytes += side->counts[block] * type->size;
        side->displacements[block] =
            (displacements.values != NULL ? mpi_count_at(displacements, block) : behind) * type->extent;
        behind += side->counts[block];
    }
    if (code != MPI_SUCCESS) {
        mpi_side_dispose(side);
        return code;
    }
    side->type = type;
    mpi_type_retain(type);
    return MPI_SUCCESS;
}

int mpi_side_mixed(struct mpi_side *side, MPI_Comm comm, const void *buffer, int block_count, struct mpi_counts counts,
                   struct mpi_counts displacements, const MPI_Datatype datatypes[])
{
    if (counts.values == NULL || displacements.values == NULL || datatypes == NULL) {
        return mpi_error(comm, MPI_ERR_ARG, "an array of counts, displacements or types is NULL");
    }
    *side = (struct mpi_side){.buffer = (void *)(uintptr_t)buffer, .block_count = block_count};
    int code = arrays_make(side, comm, true, true);
    for (int block = 0; code == MPI_SUCCESS && block < block_count; block++) {
        struct mpi_type *type;
        side->counts[block] = mpi_count_at(counts, block);
        side->displacements[block] = mpi_count_at(displacements, block);
        code = mpi_type_check(comm, side->counts[block], datatypes[block], &type);
        if (code == MPI_SUCCESS) {
            side->types[block] = type;
            mpi_type_retain(type);
            side->bytes += side->counts[block] * type->size;
        }
    }
    if (code != MPI_SUCCESS) {
        mpi_side_dispose(side);
    }
    return code;
}

void mpi_side_dispose(struct mpi_side *side)
{
    for (int block = 0; side->types != NULL && block < side->block_count; block++) {
        if (side->types[block] != NULL) {
            mpi_type_release(side->types[block]);
        }
    }
    if (side->type != NULL) {
        mpi_type_release(side->type);
    }
    if (side->counts != NULL) {
        free(side->types);
        free(side->counts);
        free(side->displacements);
    }
    *side = (struct mpi_side){0};
}

struct mpi_type *mpi_side_block_type(const struct mpi_side *side, int block)
{
    return side->types != NULL ? side->types[block] : side->type;
}

MPI_Count mpi_side_block_count(const struct mpi_side *side, int block)
{
    return side->counts != NULL ? side->counts[block] : side->count;
}

MPI_Count mpi_side_block_bytes(const struct mpi_side *side, int block)
{
    return mpi_side_block_count(side, block) * mpi_side_block_type(side, block)->size;
}

/* As a number: the buffer may be MPI_BOTTOM. */
static void *at(const struct mpi_side *side, MPI_Count offset)
{
    return (void *)((uintptr_t)side->buffer + (uintptr_t)offset);
}

void *mpi_side_block_start(const struct mpi_side *side, int block)
{
    MPI_Count offset =
        side->displacements != NULL ? side->displacements[block] : block * side->count * side->type->extent;
    return at(side, offset);
}

void *mpi_side_in_place(const struct mpi_side *side)
{
    if (side->types != NULL || !side->type->dense) {
        return NULL;
    }
    MPI_Count behind = 0;
    MPI_Count first = 0;
    for (int block = 0; side->displacements != NULL && block < side->block_count; block++) {
        if (side->counts[block] == 0) {
            continue;
        }
        first = behind == 0 ? side->displacements[block] : first;
        if (side->displacements[block] != first + behind) {
            return NULL;
        }
        behind += mpi_side_block_bytes(side, block);
    }
    return at(side, first + side->type->true_lb);
}

void mpi_side_pack(const struct mpi_side *side, void *to)
{
    for (int block = 0; block < side->block_count; block++) {
        MPI_Count bytes = mpi_side_block_bytes(side, block);
        if (bytes > 0) {
            mpi_type_pack(mpi_side_block_type(side, block), mpi_side_block_count(side, block),
                          mpi_side_block_start(side, block), 0, to, bytes);
        }
        to = (uint8_t *)to + bytes;
    }
}

void mpi_side_unpack(const struct mpi_side *side, const void *from)
{
    for (int block = 0; block < side->block_count; block++) {
        MPI_Count bytes = mpi_side_block_bytes(side, block);
        if (bytes > 0) {
            mpi_type_unpack(mpi_side_block_type(side, block), mpi_side_block_count(side, block),
                            mpi_side_block_start(side, block), 0, from, bytes);
        }
        from = (const uint8_t *)from + bytes;
    }
}
