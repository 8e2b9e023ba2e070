#include "mpi/collective/calls/side.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/error.h"

char mpi_side_nowhere;

/* No program has memory below: a buffer that begins there is NULL or MPI_IN_PLACE, or not far from it. */
enum { MEMORY_FROM = 4096 };

/* Of what begins at `start`: predefined types lie there, others may lie elsewhere (MPI_BOTTOM). */
static bool is_memory(const void *start, const struct mpi_type *type)
{
    return start != MPI_IN_PLACE && ((uintptr_t)start >= MEMORY_FROM || !type->predefined);
}

static int buffer_error(MPI_Comm comm, const void *buffer, MPI_Count count)
{
    return mpi_error(comm, MPI_ERR_BUFFER, "the buffer is %s, but holds %lld elements",
                     buffer == MPI_IN_PLACE ? "MPI_IN_PLACE" : "NULL", (long long)count);
}

static int count_error(MPI_Comm comm, MPI_Count count, int block_count)
{
    return mpi_error(comm, MPI_ERR_COUNT,
                     "%lld elements for each of %d ranks are more than MPI_Count can tell in bytes", (long long)count,
                     block_count);
}

int mpi_side_equal(struct mpi_side *side, MPI_Comm comm, const void *buffer, int block_count, MPI_Count count,
                   MPI_Datatype datatype)
{
    struct mpi_type *type;
    MPI_Count bytes;
    int code = mpi_type_check(comm, count, datatype, &type);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (__builtin_mul_overflow(count * type->size, block_count, &bytes)) {
        return count_error(comm, count, block_count);
    }
    if (bytes > 0 && !is_memory(buffer, type)) {
        return buffer_error(comm, buffer, count);
    }
    *side = (struct mpi_side){
        .buffer = (void *)(uintptr_t)buffer,
        .block_count = block_count,
        .type = type,
        .count = count,
        .bytes = bytes,
    };
    mpi_type_retain(type);
    return MPI_SUCCESS;
}

/* Memory for the arrays; MPI_SUCCESS or MPI_ERR_NO_MEM, raised. */
static int arrays_make(struct mpi_side *side, MPI_Comm comm, bool types)
{
    size_t count = (size_t)side->block_count + 1;
    side->counts = calloc(count, sizeof(*side->counts));
    side->displacements = calloc(count, sizeof(*side->displacements));
    side->types = types ? calloc(count, sizeof(struct mpi_type *)) : NULL;
    if (side->counts == NULL || side->displacements == NULL || (types && side->types == NULL)) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks", side->block_count);
    }
    return MPI_SUCCESS;
}

/* Takes over a block's count and displacement, in units of so many bytes. */
static int block_set(struct mpi_side *side, MPI_Comm comm, int block, MPI_Count count, MPI_Count displacement,
                     MPI_Count unit, const struct mpi_type *type)
{
    MPI_Count bytes;
    if (count < 0) {
        return mpi_error(comm, MPI_ERR_COUNT, "the count for rank %d is %lld", block, (long long)count);
    }
    if (__builtin_mul_overflow(count, type->size, &bytes) || __builtin_add_overflow(side->bytes, bytes, &side->bytes)) {
        return count_error(comm, count, side->block_count);
    }
    side->counts[block] = count;
    if (side->buffer == &mpi_side_nowhere) {
        return MPI_SUCCESS;
    }
    if (__builtin_mul_overflow(displacement, unit, &side->displacements[block])) {
        return mpi_error(comm, MPI_ERR_ARG, "the displacement for rank %d is %lld", block, (long long)displacement);
    }
    if (bytes > 0 && (side->buffer == MPI_IN_PLACE || !is_memory(mpi_side_block_start(side, block), type))) {
        return buffer_error(comm, side->buffer, count);
    }
    return MPI_SUCCESS;
}

static int arrays_check(MPI_Comm comm, const void *buffer, struct mpi_counts counts, struct mpi_counts displacements)
{
    if (counts.values == NULL || (displacements.values == NULL && buffer != &mpi_side_nowhere)) {
        return mpi_error(comm, MPI_ERR_ARG, "the array of %s is NULL",
                         counts.values == NULL ? "counts" : "displacements");
    }
    return MPI_SUCCESS;
}

int mpi_side_unequal(struct mpi_side *side, MPI_Comm comm, const void *buffer, int block_count,
                     struct mpi_counts counts, struct mpi_counts displacements, MPI_Datatype datatype)
{
    struct mpi_type *type;
    int code = mpi_type_check(comm, 0, datatype, &type);
    code = code != MPI_SUCCESS ? code : arrays_check(comm, buffer, counts, displacements);
    if (code != MPI_SUCCESS) {
        return code;
    }
    *side = (struct mpi_side){.buffer = (void *)(uintptr_t)buffer, .block_count = block_count};
    code = arrays_make(side, comm, false);
    for (int block = 0; code == MPI_SUCCESS && block < block_count; block++) {
        MPI_Count displacement = displacements.values == NULL ? 0 : mpi_count_at(displacements, block);
        code = block_set(side, comm, block, mpi_count_at(counts, block), displacement, type->extent, type);
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
    int code = arrays_check(comm, buffer, counts, displacements);
    if (code == MPI_SUCCESS && datatypes == NULL) {
        code = mpi_error(comm, MPI_ERR_ARG, "the array of types is NULL");
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    *side = (struct mpi_side){.buffer = (void *)(uintptr_t)buffer, .block_count = block_count};
    code = arrays_make(side, comm, true);
    for (int block = 0; code == MPI_SUCCESS && block < block_count; block++) {
        struct mpi_type *type;
        code = mpi_type_check(comm, 0, datatypes[block], &type);
        if (code == MPI_SUCCESS) {
            side->types[block] = type;
            mpi_type_retain(type);
            code =
                block_set(side, comm, block, mpi_count_at(counts, block), mpi_count_at(displacements, block), 1, type);
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
    if (side->counts != NULL || side->displacements != NULL || side->types != NULL) { /* most have none */
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
