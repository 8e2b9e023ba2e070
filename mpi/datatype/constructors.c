/* Constructors of datatypes (MPI 5.0, 5.1.2 to 5.1.4, 5.1.7). */
#include <assert.h>
#include <stdlib.h>

#include "mpi/datatype/contents.h"
#include "mpi/datatype/datatype.h"
#include "mpi/datatype/draft.h"
#include "mpi/runtime/attribute.h"
#include "mpi/runtime/error.h"
#include "mpi_functions.h"

/* A constructor's input is an old type and counts. NULL: no such type, and *code has been raised. */
static struct mpi_type *old_type(MPI_Datatype datatype, int *code)
{
    struct mpi_type *type = mpi_type_find(datatype);
    *code = MPI_SUCCESS;
    if (type == NULL) {
        *code = mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "%s",
                          datatype == MPI_DATATYPE_NULL ? "the old datatype is MPI_DATATYPE_NULL"
                                                        : "the old datatype is unknown");
    }
    return type;
}

static int count_check(const char *what, MPI_Count count)
{
    if (count >= 0) {
        return MPI_SUCCESS;
    }
    return mpi_error(MPI_COMM_NULL, MPI_ERR_COUNT, "the %s is %lld; it cannot be negative", what, (long long)count);
}

static int lengths_check(MPI_Count count, struct mpi_counts blocklengths)
{
    int code = count_check("count", count);
    for (MPI_Count i = 0; code == MPI_SUCCESS && i < count; i++) {
        code = count_check("length of a block", mpi_count_at(blocklengths, i));
    }
    return code;
}

int mpi_type_contiguous(MPI_Count count, MPI_Datatype datatype, MPI_Datatype *newtype)
{
    int code;
    struct mpi_type *type = old_type(datatype, &code);
    code = code != MPI_SUCCESS ? code : count_check("count", count);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_contents *contents = mpi_contents_make(MPI_COMBINER_CONTIGUOUS, 0, 1, 0, 1);
    if (contents != NULL) {
        mpi_contents_count(contents, count);
        mpi_contents_type(contents, type);
    }
    struct mpi_draft draft = mpi_draft_of(type);
    mpi_draft_repeat(&draft, count, type->extent);
    return mpi_draft_finish(&draft, contents, newtype);
}

/* Blocks of elements at equal distances, in bytes; `contents` are taken. */
static int make_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride_bytes, struct mpi_type *type,
                       struct mpi_contents *contents, MPI_Datatype *newtype)
{
    struct mpi_draft draft = mpi_draft_of(type);
    mpi_draft_repeat(&draft, blocklength, type->extent);
    mpi_draft_repeat(&draft, count, stride_bytes);
    return mpi_draft_finish(&draft, contents, newtype);
}

static int overflow(void)
{
    return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "a displacement in bytes exceeds the range of MPI_Count");
}

int mpi_type_vector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype datatype,
                    MPI_Datatype *newtype)
{
    int code;
    MPI_Count stride_bytes;
    struct mpi_type *type = old_type(datatype, &code);
    code = code != MPI_SUCCESS ? code : count_check("count", count);
    code = code != MPI_SUCCESS ? code : count_check("length of a block", blocklength);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (__builtin_mul_overflow(stride, type->extent, &stride_bytes)) {
        return overflow();
    }
    struct mpi_contents *contents = mpi_contents_make(MPI_COMBINER_VECTOR, 0, 3, 0, 1);
    if (contents != NULL) {
        mpi_contents_count(contents, count);
        mpi_contents_count(contents, blocklength);
        mpi_contents_count(contents, stride);
        mpi_contents_type(contents, type);
    }
    return make_vector(count, blocklength, stride_bytes, type, contents, newtype);
}

int mpi_type_create_hvector(MPI_Count count, MPI_Count blocklength, MPI_Count stride, MPI_Datatype datatype,
                            MPI_Datatype *newtype)
{
    int code;
    struct mpi_type *type = old_type(datatype, &code);
    code = code != MPI_SUCCESS ? code : count_check("count", count);
    code = code != MPI_SUCCESS ? code : count_check("length of a block", blocklength);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_contents *contents = mpi_contents_make(MPI_COMBINER_HVECTOR, 0, 2, 1, 1);
    if (contents != NULL) {
        mpi_contents_count(contents, count);
        mpi_contents_count(contents, blocklength);
        mpi_contents_displacement(contents, stride);
        mpi_contents_type(contents, type);
    }
    return make_vector(count, blocklength, stride, type, contents, newtype);
}

/* Blocks of one type, wherever they are. */
struct blocks {
    struct mpi_type *type;
    MPI_Count count;
    struct mpi_counts lengths; /* values NULL: `length` each */
    MPI_Count length;
    struct mpi_counts displacements;
    MPI_Count unit; /* of displacements, in bytes */
};

static MPI_Count length_at(const struct blocks *blocks, MPI_Count index)
{
    return blocks->lengths.values == NULL ? blocks->length : mpi_count_at(blocks->lengths, index);
}

/* Adds one block after the other. Equal neighbours share their draft, and so their layout. */
static struct mpi_draft blocks_draft(const struct blocks *blocks)
{
    struct mpi_draft_list list = {0};
    struct mpi_draft block = {0};
    MPI_Count block_length = 0;
    for (MPI_Count i = 0; i < blocks->count && list.sum.code == MPI_SUCCESS; i++) {
        MPI_Count displacement;
        MPI_Count length = length_at(blocks, i);
        if (length != block_length) {
            mpi_draft_drop(&block);
            block = mpi_draft_of(blocks->type);
            mpi_draft_repeat(&block, length, blocks->type->extent);
            block_length = length;
        }
        if (length == 0) {
            continue;
        }
        if (__builtin_mul_overflow(mpi_count_at(blocks->displacements, i), blocks->unit, &displacement)) {
            list.sum.code = MPI_ERR_ARG;
        } else {
            mpi_draft_list_add(&list, &block, displacement);
        }
    }
    mpi_draft_drop(&block);
    return mpi_draft_list_finish(&list);
}

/* Records the arguments in the order in which all four constructors have them. */
static struct mpi_contents *blocks_contents(int combiner, const struct blocks *blocks)
{
    bool in_bytes = combiner == MPI_COMBINER_HINDEXED || combiner == MPI_COMBINER_HINDEXED_BLOCK;
    MPI_Count lengths = blocks->lengths.values == NULL ? 1 : blocks->count;
    struct mpi_contents *contents =
        mpi_contents_make(combiner, 0, 1 + lengths + (in_bytes ? 0 : blocks->count), in_bytes ? blocks->count : 0, 1);
    if (contents == NULL) {
        return NULL;
    }
    mpi_contents_count(contents, blocks->count);
    for (MPI_Count i = 0; i < lengths; i++) {
        mpi_contents_count(contents, length_at(blocks, i));
    }
    for (MPI_Count i = 0; i < blocks->count; i++) {
        MPI_Count displacement = mpi_count_at(blocks->displacements, i);
        if (in_bytes) {
            mpi_contents_displacement(contents, displacement);
        } else {
            mpi_contents_count(contents, displacement);
        }
    }
    mpi_contents_type(contents, blocks->type);
    return contents;
}

static int make_blocks(int combiner, const struct blocks *blocks, MPI_Datatype *newtype)
{
    struct mpi_contents *contents = blocks_contents(combiner, blocks);
    struct mpi_draft draft = blocks_draft(blocks);
    return mpi_draft_finish(&draft, contents, newtype);
}

static int make_indexed(int combiner, bool in_bytes, MPI_Count count, struct mpi_counts lengths,
                        struct mpi_counts displacements, MPI_Datatype datatype, MPI_Datatype *newtype)
{
    static const int none;
    int code;
    struct mpi_type *type = old_type(datatype, &code);
    code = code != MPI_SUCCESS ? code : lengths_check(count, lengths);
    if (code != MPI_SUCCESS) {
        return code;
    }
    if (lengths.values == NULL) { /* allowed where the count is 0 */
        lengths.values = &none;
    }
    struct blocks blocks = {
        .type = type,
        .count = count,
        .lengths = lengths,
        .displacements = displacements,
        .unit = in_bytes ? 1 : type->extent,
    };
    return make_blocks(combiner, &blocks, newtype);
}

int mpi_type_indexed(MPI_Count count, struct mpi_counts array_of_blocklengths, struct mpi_counts array_of_displacements,
                     MPI_Datatype datatype, MPI_Datatype *newtype)
{
    return make_indexed(MPI_COMBINER_INDEXED, false, count, array_of_blocklengths, array_of_displacements, datatype,
                        newtype);
}

int mpi_type_create_hindexed(MPI_Count count, struct mpi_counts array_of_blocklengths,
                             struct mpi_counts array_of_displacements, MPI_Datatype datatype, MPI_Datatype *newtype)
{
    return make_indexed(MPI_COMBINER_HINDEXED, true, count, array_of_blocklengths, array_of_displacements, datatype,
                        newtype);
}

static int make_indexed_block(int combiner, bool in_bytes, MPI_Count count, MPI_Count blocklength,
                              struct mpi_counts displacements, MPI_Datatype datatype, MPI_Datatype *newtype)
{
    int code;
    struct mpi_type *type = old_type(datatype, &code);
    code = code != MPI_SUCCESS ? code : count_check("count", count);
    code = code != MPI_SUCCESS ? code : count_check("length of the blocks", blocklength);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct blocks blocks = {
        .type = type,
        .count = count,
        .length = blocklength,
        .displacements = displacements,
        .unit = in_bytes ? 1 : type->extent,
    };
    return make_blocks(combiner, &blocks, newtype);
}

int mpi_type_create_indexed_block(MPI_Count count, MPI_Count blocklength, struct mpi_counts array_of_displacements,
                                  MPI_Datatype datatype, MPI_Datatype *newtype)
{
    return make_indexed_block(MPI_COMBINER_INDEXED_BLOCK, false, count, blocklength, array_of_displacements, datatype,
                              newtype);
}

int mpi_type_create_hindexed_block(MPI_Count count, MPI_Count blocklength, struct mpi_counts array_of_displacements,
                                   MPI_Datatype datatype, MPI_Datatype *newtype)
{
    return make_indexed_block(MPI_COMBINER_HINDEXED_BLOCK, true, count, blocklength, array_of_displacements, datatype,
                              newtype);
}

static struct mpi_contents *struct_contents(MPI_Count count, struct mpi_counts lengths, struct mpi_counts displacements,
                                            const MPI_Datatype datatypes[])
{
    struct mpi_contents *contents = mpi_contents_make(MPI_COMBINER_STRUCT, 0, 1 + count, count, count);
    if (contents == NULL) {
        return NULL;
    }
    mpi_contents_count(contents, count);
    for (MPI_Count i = 0; i < count; i++) {
        mpi_contents_count(contents, mpi_count_at(lengths, i));
    }
    for (MPI_Count i = 0; i < count; i++) {
        mpi_contents_displacement(contents, mpi_count_at(displacements, i));
        mpi_contents_type(contents, mpi_type_find(datatypes[i]));
    }
    return contents;
}

int mpi_type_create_struct(MPI_Count count, struct mpi_counts array_of_blocklengths,
                           struct mpi_counts array_of_displacements, const MPI_Datatype array_of_types[],
                           MPI_Datatype *newtype)
{
    int code = lengths_check(count, array_of_blocklengths);
    for (MPI_Count i = 0; code == MPI_SUCCESS && i < count; i++) {
        (void)old_type(array_of_types[i], &code);
    }
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_draft_list list = {0};
    for (MPI_Count i = 0; i < count; i++) {
        const struct mpi_type *type = mpi_type_find(array_of_types[i]);
        struct mpi_draft block = mpi_draft_of(type);
        mpi_draft_repeat(&block, mpi_count_at(array_of_blocklengths, i), type->extent);
        mpi_draft_list_add(&list, &block, mpi_count_at(array_of_displacements, i));
        mpi_draft_drop(&block);
    }
    struct mpi_draft draft = mpi_draft_list_finish(&list);
    struct mpi_contents *contents =
        struct_contents(count, array_of_blocklengths, array_of_displacements, array_of_types);
    return mpi_draft_finish(&draft, contents, newtype);
}

int mpi_type_create_resized(MPI_Datatype datatype, MPI_Count lb, MPI_Count extent, MPI_Datatype *newtype)
{
    int code;
    struct mpi_type *type = old_type(datatype, &code);
    if (type == NULL) {
        return code;
    }
    struct mpi_contents *contents = mpi_contents_make(MPI_COMBINER_RESIZED, 0, 0, 2, 1);
    if (contents != NULL) {
        mpi_contents_displacement(contents, lb);
        mpi_contents_displacement(contents, extent);
        mpi_contents_type(contents, type);
    }
    struct mpi_draft draft = mpi_draft_of(type);
    mpi_draft_resize(&draft, lb, extent);
    return mpi_draft_finish(&draft, contents, newtype);
}

int mpi_type_dup(MPI_Datatype datatype, MPI_Datatype *newtype)
{
    int code;
    MPI_Datatype copy;
    struct mpi_type *type = old_type(datatype, &code);
    if (type == NULL) {
        return code;
    }
    struct mpi_contents *contents = mpi_contents_make(MPI_COMBINER_DUP, 0, 0, 0, 1);
    if (contents != NULL) {
        mpi_contents_type(contents, type);
    }
    struct mpi_draft draft = mpi_draft_of(type);
    code = mpi_draft_finish(&draft, contents, &copy);
    if (code != MPI_SUCCESS) {
        return code;
    }
    struct mpi_type *made = mpi_type_find(copy);
    made->committed = type->committed;
    code = mpi_attributes_copy_type(datatype, type->attributes, &made->attributes);
    if (code != MPI_SUCCESS) {
        (void)mpi_type_free(&copy);
        return mpi_error(MPI_COMM_NULL, code, "an attribute's copy function failed; there is no copy of the datatype");
    }
    *newtype = copy;
    return MPI_SUCCESS;
}
