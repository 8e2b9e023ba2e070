#include "mpi/collective/state/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "mpi/runtime/error.h"

char mpi_buffer_nowhere;

/* No program has memory below: a buffer that begins there is NULL or MPI_IN_PLACE, or not far from it. */
enum { MEMORY_FROM = 4096 };

/* Whether there is memory at `start`: predefined types lie there, others may lie elsewhere (MPI_BOTTOM). */
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
    return mpi_error(comm, MPI_ERR_COUNT, "%lld elements for each of %d ranks exceed the range of MPI_Count in bytes",
                     (long long)count, block_count);
}

int mpi_buffer_equal(struct mpi_buffer *descriptor, MPI_Comm comm, const void *buffer, int block_count, MPI_Count count,
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
    *descriptor = (struct mpi_buffer){
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
static int arrays_make(struct mpi_buffer *descriptor, MPI_Comm comm, bool types)
{
    size_t count = (size_t)descriptor->block_count + 1;
    descriptor->counts = calloc(count, sizeof(*descriptor->counts));
    descriptor->displacements = calloc(count, sizeof(*descriptor->displacements));
    descriptor->types = types ? calloc(count, sizeof(struct mpi_type *)) : NULL;
    if (descriptor->counts == NULL || descriptor->displacements == NULL || (types && descriptor->types == NULL)) {
        return mpi_error(comm, MPI_ERR_NO_MEM, "no memory for the counts of %d ranks", descriptor->block_count);
    }
    return MPI_SUCCESS;
}

/* Copies a block's count and displacement, in units of `unit` bytes. */
static int block_set(struct mpi_buffer *descriptor, MPI_Comm comm, int block, MPI_Count count, MPI_Count displacement,
                     MPI_Count unit, const struct mpi_type *type)
{
    MPI_Count bytes;
    if (count < 0) {
        return mpi_error(comm, MPI_ERR_COUNT, "the count for rank %d is %lld", block, (long long)count);
    }
    if (__builtin_mul_overflow(count, type->size, &bytes) ||
        __builtin_add_overflow(descriptor->bytes, bytes, &descriptor->bytes)) {
        return count_error(comm, count, descriptor->block_count);
    }
    descriptor->counts[block] = count;
    if (descriptor->buffer == &mpi_buffer_nowhere) {
        return MPI_SUCCESS;
    }
    if (__builtin_mul_overflow(displacement, unit, &descriptor->displacements[block])) {
        return mpi_error(comm, MPI_ERR_ARG, "the displacement for rank %d is %lld", block, (long long)displacement);
    }
    if (bytes > 0 &&
        (descriptor->buffer == MPI_IN_PLACE || !is_memory(mpi_buffer_block_start(descriptor, block), type))) {
        return buffer_error(comm, descriptor->buffer, count);
    }
    return MPI_SUCCESS;
}

static int arrays_check(MPI_Comm comm, const void *buffer, struct mpi_counts counts, struct mpi_counts displacements)
{
    if (counts.values == NULL || (displacements.values == NULL && buffer != &mpi_buffer_nowhere)) {
        return mpi_error(comm, MPI_ERR_ARG, "the array of %s is NULL",
                         counts.values == NULL ? "counts" : "displacements");
    }
    return MPI_SUCCESS;
}

int mpi_buffer_unequal(struct mpi_buffer *descriptor, MPI_Comm comm, const void *buffer, int block_count,
                       struct mpi_counts counts, struct mpi_counts displacements, MPI_Datatype datatype)
{
    struct mpi_type *type;
    int code = mpi_type_check(comm, 0, datatype, &type);
    code = code != MPI_SUCCESS ? code : arrays_check(comm, buffer, counts, displacements);
    if (code != MPI_SUCCESS) {
        return code;
    }
    *descriptor = (struct mpi_buffer){.buffer = (void *)(uintptr_t)buffer, .block_count = block_count};
    code = arrays_make(descriptor, comm, false);
    for (int block = 0; code == MPI_SUCCESS && block < block_count; block++) {
        MPI_Count displacement = displacements.values == NULL ? 0 : mpi_count_at(displacements, block);
        code = block_set(descriptor, comm, block, mpi_count_at(counts, block), displacement, type->extent, type);
    }
    if (code != MPI_SUCCESS) {
        mpi_buffer_dispose(descriptor);
        return code;
    }
    descriptor->type = type;
    mpi_type_retain(type);
    return MPI_SUCCESS;
}

int mpi_buffer_mixed(struct mpi_buffer *descriptor, MPI_Comm comm, const void *buffer, int block_count,
                     struct mpi_counts counts, struct mpi_counts displacements, const MPI_Datatype datatypes[])
{
    int code = arrays_check(comm, buffer, counts, displacements);
    if (code == MPI_SUCCESS && datatypes == NULL) {
        code = mpi_error(comm, MPI_ERR_ARG, "the array of types is NULL");
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    *descriptor = (struct mpi_buffer){.buffer = (void *)(uintptr_t)buffer, .block_count = block_count};
    code = arrays_make(descriptor, comm, true);
    for (int block = 0; code == MPI_SUCCESS && block < block_count; block++) {
        struct mpi_type *type;
        code = mpi_type_check(comm, 0, datatypes[block], &type);
        if (code == MPI_SUCCESS) {
            descriptor->types[block] = type;
            mpi_type_retain(type);
            code = block_set(descriptor, comm, block, mpi_count_at(counts, block), mpi_count_at(displacements, block),
                             1, type);
        }
    }
    if (code != MPI_SUCCESS) {
        mpi_buffer_dispose(descriptor);
    }
    return code;
}

static void arrays_free(const struct mpi_buffer *descriptor)
{
    for (int block = 0; descriptor->types != NULL && block < descriptor->block_count; block++) {
        if (descriptor->types[block] != NULL) {
            mpi_type_release(descriptor->types[block]);
        }
    }
    free(descriptor->types);
    free(descriptor->counts);
    free(descriptor->displacements);
}

void mpi_buffer_dispose(struct mpi_buffer *descriptor)
{
    if (descriptor->counts != NULL || descriptor->displacements != NULL || descriptor->types != NULL) {
        arrays_free(descriptor);
    }
    if (descriptor->type != NULL) {
        mpi_type_release(descriptor->type);
    }
    *descriptor = (struct mpi_buffer){0};
}

struct mpi_type *mpi_buffer_block_type(const struct mpi_buffer *descriptor, int block)
{
    return descriptor->types != NULL ? descriptor->types[block] : descriptor->type;
}

MPI_Count mpi_buffer_block_count(const struct mpi_buffer *descriptor, int block)
{
    return descriptor->counts != NULL ? descriptor->counts[block] : descriptor->count;
}

MPI_Count mpi_buffer_block_bytes(const struct mpi_buffer *descriptor, int block)
{
    return mpi_buffer_block_count(descriptor, block) * mpi_buffer_block_type(descriptor, block)->size;
}

/* As a number: the buffer may be MPI_BOTTOM. */
static void *at(const struct mpi_buffer *descriptor, MPI_Count offset)
{
    return (void *)((uintptr_t)descriptor->buffer + (uintptr_t)offset);
}

void *mpi_buffer_block_start(const struct mpi_buffer *descriptor, int block)
{
    MPI_Count offset = descriptor->displacements != NULL ? descriptor->displacements[block]
                                                         : block * descriptor->count * descriptor->type->extent;
    return at(descriptor, offset);
}

void *mpi_buffer_in_place(const struct mpi_buffer *descriptor)
{
    if (descriptor->types != NULL || !descriptor->type->dense) {
        return NULL;
    }
    MPI_Count behind = 0;
    MPI_Count first = 0;
    for (int block = 0; descriptor->displacements != NULL && block < descriptor->block_count; block++) {
        if (descriptor->counts[block] == 0) {
            continue;
        }
        first = behind == 0 ? descriptor->displacements[block] : first;
        if (descriptor->displacements[block] != first + behind) {
            return NULL;
        }
        behind += mpi_buffer_block_bytes(descriptor, block);
    }
    return at(descriptor, first + descriptor->type->true_lb);
}

void *mpi_buffer_spread(const struct mpi_buffer *descriptor, uint64_t offsets[])
{
    uintptr_t least = UINTPTR_MAX;
    for (int block = 0; block < descriptor->block_count; block++) {
        const struct mpi_type *type = mpi_buffer_block_type(descriptor, block);
        offsets[block] = (uintptr_t)mpi_buffer_block_start(descriptor, block) + (uintptr_t)type->true_lb;
        if (mpi_buffer_block_bytes(descriptor, block) > 0) {
            if (!type->dense) {
                return NULL;
            }
            least = offsets[block] < least ? offsets[block] : least;
        }
    }
    for (int block = 0; block < descriptor->block_count; block++) {
        offsets[block] -= least;
    }
    return least == UINTPTR_MAX ? (void *)(uintptr_t) "" : (void *)least;
}

void mpi_buffer_pack(const struct mpi_buffer *descriptor, void *to)
{
    for (int block = 0; block < descriptor->block_count; block++) {
        MPI_Count bytes = mpi_buffer_block_bytes(descriptor, block);
        if (bytes > 0) {
            mpi_type_pack(mpi_buffer_block_type(descriptor, block), mpi_buffer_block_count(descriptor, block),
                          mpi_buffer_block_start(descriptor, block), 0, to, bytes);
        }
        to = (uint8_t *)to + bytes;
    }
}

void mpi_buffer_unpack(const struct mpi_buffer *descriptor, const void *from)
{
    for (int block = 0; block < descriptor->block_count; block++) {
        MPI_Count bytes = mpi_buffer_block_bytes(descriptor, block);
        if (bytes > 0) {
            mpi_type_unpack(mpi_buffer_block_type(descriptor, block), mpi_buffer_block_count(descriptor, block),
                            mpi_buffer_block_start(descriptor, block), 0, from, bytes);
        }
        from = (const uint8_t *)from + bytes;
    }
}
