#include "mpi/datatype/predefined.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "mpi/datatype/contents.h"
#include "mpi/datatype/draft.h"
#include "mpi/datatype/layout.h"
#include "mpi/runtime/error.h"
#include "mpi/state/handle.h"
#include "mpi_functions.h"

enum {
    FIRST_HANDLE = 0x200,
    HANDLE_COUNT = 0x100,
};

#define SIMPLE_TYPES(C, BYTES)                              \
    C(MPI_AINT, MPI_Aint)                                   \
    C(MPI_COUNT, MPI_Count)                                 \
    C(MPI_OFFSET, MPI_Offset)                               \
    C(MPI_PACKED, char)                                     \
    C(MPI_SHORT, short)                                     \
    C(MPI_INT, int)                                         \
    C(MPI_LONG, long)                                       \
    C(MPI_LONG_LONG, long long)                             \
    C(MPI_UNSIGNED_SHORT, unsigned short)                   \
    C(MPI_UNSIGNED, unsigned)                               \
    C(MPI_UNSIGNED_LONG, unsigned long)                     \
    C(MPI_UNSIGNED_LONG_LONG, unsigned long long)           \
    C(MPI_FLOAT, float)                                     \
    C(MPI_C_FLOAT_COMPLEX, float _Complex)                  \
    C(MPI_CXX_FLOAT_COMPLEX, float _Complex)                \
    C(MPI_DOUBLE, double)                                   \
    C(MPI_C_DOUBLE_COMPLEX, double _Complex)                \
    C(MPI_CXX_DOUBLE_COMPLEX, double _Complex)              \
    C(MPI_LONG_DOUBLE, long double)                         \
    C(MPI_C_LONG_DOUBLE_COMPLEX, long double _Complex)      \
    C(MPI_CXX_LONG_DOUBLE_COMPLEX, long double _Complex)    \
    C(MPI_C_BOOL, _Bool)                                    \
    C(MPI_CXX_BOOL, _Bool)                                  \
    C(MPI_WCHAR, wchar_t)                                   \
    C(MPI_INT8_T, int8_t)                                   \
    C(MPI_UINT8_T, uint8_t)                                 \
    C(MPI_INT16_T, int16_t)                                 \
    C(MPI_UINT16_T, uint16_t)                               \
    C(MPI_INT32_T, int32_t)                                 \
    C(MPI_UINT32_T, uint32_t)                               \
    C(MPI_INT64_T, int64_t)                                 \
    C(MPI_UINT64_T, uint64_t)                               \
    C(MPI_CHAR, char)                                       \
    C(MPI_SIGNED_CHAR, signed char)                         \
    C(MPI_UNSIGNED_CHAR, unsigned char)                     \
    C(MPI_BYTE, unsigned char)                              \
    /* Fortran, as gfortran has it without -fdefault-... */ \
    BYTES(MPI_LOGICAL, 4, 4)                                \
    BYTES(MPI_INTEGER, 4, 4)                                \
    BYTES(MPI_REAL, 4, 4)                                   \
    BYTES(MPI_COMPLEX, 8, 4)                                \
    BYTES(MPI_DOUBLE_PRECISION, 8, 8)                       \
    BYTES(MPI_DOUBLE_COMPLEX, 16, 8)                        \
    BYTES(MPI_CHARACTER, 1, 1)                              \
    BYTES(MPI_LOGICAL1, 1, 1)                               \
    BYTES(MPI_LOGICAL2, 2, 2)                               \
    BYTES(MPI_LOGICAL4, 4, 4)                               \
    BYTES(MPI_LOGICAL8, 8, 8)                               \
    BYTES(MPI_LOGICAL16, 16, 16)                            \
    BYTES(MPI_INTEGER1, 1, 1)                               \
    BYTES(MPI_INTEGER2, 2, 2)                               \
    BYTES(MPI_INTEGER4, 4, 4)                               \
    BYTES(MPI_INTEGER8, 8, 8)                               \
    BYTES(MPI_INTEGER16, 16, 16)                            \
    BYTES(MPI_REAL2, 2, 2)                                  \
    BYTES(MPI_REAL4, 4, 4)                                  \
    BYTES(MPI_REAL8, 8, 8)                                  \
    BYTES(MPI_REAL16, 16, 16)                               \
    BYTES(MPI_COMPLEX4, 4, 2)                               \
    BYTES(MPI_COMPLEX8, 8, 4)                               \
    BYTES(MPI_COMPLEX16, 16, 8)                             \
    BYTES(MPI_COMPLEX32, 32, 16)

#define INDEX(handle) ((uintptr_t)(handle)-FIRST_HANDLE)

#define BLOCK_ROW(type_handle, type_bytes, type_alignment) \
    [INDEX(type_handle)] = {.kind = MPI_LAYOUT_BLOCK, .references = 1, .bytes = (type_bytes)},
#define BLOCK_ROW_C(type_handle, c_type) BLOCK_ROW(type_handle, sizeof(c_type), alignof(c_type))

#define NAMED_ROW(type_handle, type_name, type_bytes, type_alignment) \
    [INDEX(type_handle)] = {                                          \
        .handle = (type_handle),                                      \
        .references = 1,                                              \
        .predefined = true,                                           \
        .committed = true,                                            \
        .dense = true,                                                \
        .alignment = (type_alignment),                                \
        .size = (type_bytes),                                         \
        .extent = (type_bytes),                                       \
        .true_extent = (type_bytes),                                  \
        .element_count = 1,                                           \
        .basic = (type_handle),                                       \
        .layout = &blocks[INDEX(type_handle)],                        \
        .name = type_name,                                            \
    },
/* The name here, before the handle's macro is expanded. */
#define TYPE_ROW(type_handle, type_bytes, type_alignment) \
    NAMED_ROW(type_handle, #type_handle, type_bytes, type_alignment)
#define TYPE_ROW_C(type_handle, c_type) NAMED_ROW(type_handle, #type_handle, sizeof(c_type), alignof(c_type))

static struct mpi_layout blocks[HANDLE_COUNT] = {SIMPLE_TYPES(BLOCK_ROW_C, BLOCK_ROW)};
static struct mpi_type types[HANDLE_COUNT] = {SIMPLE_TYPES(TYPE_ROW_C, TYPE_ROW)};

/* Pairs of value and index, for MPI_MAXLOC and MPI_MINLOC: as if a struct of both. They are made when they are first
 * asked for, and stay. */
struct pair {
    MPI_Datatype handle;
    const char *name;
    MPI_Datatype value;
    MPI_Datatype index;
    struct mpi_type *type;
    struct pair *next; /* of those without a name */
};

static struct pair pairs[] = {
    {.handle = MPI_FLOAT_INT, .name = "MPI_FLOAT_INT", .value = MPI_FLOAT, .index = MPI_INT},
    {.handle = MPI_DOUBLE_INT, .name = "MPI_DOUBLE_INT", .value = MPI_DOUBLE, .index = MPI_INT},
    {.handle = MPI_LONG_INT, .name = "MPI_LONG_INT", .value = MPI_LONG, .index = MPI_INT},
    {.handle = MPI_2INT, .name = "MPI_2INT", .value = MPI_INT, .index = MPI_INT},
    {.handle = MPI_SHORT_INT, .name = "MPI_SHORT_INT", .value = MPI_SHORT, .index = MPI_INT},
    {.handle = MPI_LONG_DOUBLE_INT, .name = "MPI_LONG_DOUBLE_INT", .value = MPI_LONG_DOUBLE, .index = MPI_INT},
    {.handle = MPI_2REAL, .name = "MPI_2REAL", .value = MPI_REAL, .index = MPI_REAL},
    {.handle = MPI_2DOUBLE_PRECISION,
     .name = "MPI_2DOUBLE_PRECISION",
     .value = MPI_DOUBLE_PRECISION,
     .index = MPI_DOUBLE_PRECISION},
    {.handle = MPI_2INTEGER, .name = "MPI_2INTEGER", .value = MPI_INTEGER, .index = MPI_INTEGER},
};

enum { PAIR_COUNT = sizeof(pairs) / sizeof(pairs[0]) };

static struct pair *unnamed;

static struct mpi_draft pair_draft(const struct mpi_type *value, const struct mpi_type *index)
{
    struct mpi_draft_list list = {0};
    struct mpi_draft value_draft = mpi_draft_of(value);
    struct mpi_draft index_draft = mpi_draft_of(index);
    MPI_Count offset = (value->size + index->alignment - 1) / index->alignment * index->alignment;
    mpi_draft_list_add(&list, &value_draft, 0);
    mpi_draft_list_add(&list, &index_draft, offset);
    mpi_draft_drop(&value_draft);
    mpi_draft_drop(&index_draft);
    return mpi_draft_list_finish(&list);
}

/* Makes the type of a pair that has none yet; an error has been raised. */
static int pair_make(struct pair *pair)
{
    int code;
    struct mpi_type *value = mpi_predefined_find(pair->value);
    struct mpi_type *index = mpi_predefined_find(pair->index);
    struct mpi_contents *contents =
        mpi_contents_make(pair->name == NULL ? MPI_COMBINER_VALUE_INDEX : MPI_COMBINER_NAMED, 0, 0, 0, 2);
    if (contents != NULL) {
        mpi_contents_type(contents, value);
        mpi_contents_type(contents, index);
    }
    struct mpi_draft draft = pair_draft(value, index);
    struct mpi_type *type = mpi_draft_type(&draft, contents, &code);
    if (type == NULL) {
        return code;
    }
    type->handle = pair->handle;
    if (type->handle == MPI_DATATYPE_NULL && mpi_type_handle_make(type) == MPI_DATATYPE_NULL) {
        mpi_type_release(type);
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for another datatype's handle");
    }
    type->basic = type->handle;
    type->predefined = true;
    type->committed = true;
    if (pair->name != NULL) {
        strcpy(type->name, pair->name);
    }
    pair->type = type;
    return MPI_SUCCESS;
}

struct mpi_type *mpi_predefined_find(MPI_Datatype datatype)
{
    uintptr_t index = INDEX(datatype);
    if (index >= HANDLE_COUNT) {
        return NULL;
    }
    if (types[index].predefined) {
        return &types[index];
    }
    for (size_t i = 0; i < PAIR_COUNT; i++) {
        if (pairs[i].handle == datatype) {
            if (pairs[i].type == NULL) {
                pair_make(&pairs[i]);
            }
            return pairs[i].type;
        }
    }
    return NULL;
}

struct mpi_type *mpi_type_find(MPI_Datatype datatype)
{
    struct mpi_type *type = mpi_predefined_find(datatype);
    return type != NULL ? type : mpi_handle_object(MPI_KIND_DATATYPE, (uintptr_t)datatype);
}

bool mpi_type_pair(const struct mpi_type *type, const struct mpi_type **value, const struct mpi_type **index)
{
    if (!type->predefined || type->contents == NULL || type->contents->type_count != 2) {
        return false;
    }
    *value = type->contents->types[0];
    *index = type->contents->types[1];
    return true;
}

/* Types in unnamed pairs: values that compare, and signed integers of at least 32 bits as indices. */
static const MPI_Datatype indices[] = {
    MPI_INT,  MPI_LONG,  MPI_LONG_LONG, MPI_INT32_T,  MPI_INT64_T,  MPI_INTEGER,
    MPI_AINT, MPI_COUNT, MPI_OFFSET,    MPI_INTEGER4, MPI_INTEGER8,
};

static const MPI_Datatype values[] = {
    MPI_SHORT,    MPI_UNSIGNED_SHORT, MPI_UNSIGNED, MPI_UNSIGNED_LONG,    MPI_UNSIGNED_LONG_LONG, MPI_SIGNED_CHAR,
    MPI_INT8_T,   MPI_UINT8_T,        MPI_INT16_T,  MPI_UINT16_T,         MPI_UINT32_T,           MPI_UINT64_T,
    MPI_INTEGER1, MPI_INTEGER2,       MPI_FLOAT,    MPI_DOUBLE,           MPI_LONG_DOUBLE,        MPI_UNSIGNED_CHAR,
    MPI_REAL,     MPI_REAL4,          MPI_REAL8,    MPI_DOUBLE_PRECISION,
};

static bool is_among(MPI_Datatype datatype, const MPI_Datatype all[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (all[i] == datatype) {
            return true;
        }
    }
    return false;
}

static bool is_index(MPI_Datatype datatype)
{
    return is_among(datatype, indices, sizeof(indices) / sizeof(indices[0]));
}

static bool is_value(MPI_Datatype datatype)
{
    return is_index(datatype) || is_among(datatype, values, sizeof(values) / sizeof(values[0]));
}

static struct pair *pair_find(MPI_Datatype value, MPI_Datatype index)
{
    for (size_t i = 0; i < PAIR_COUNT; i++) {
        if (pairs[i].value == value && pairs[i].index == index) {
            return &pairs[i];
        }
    }
    struct pair *pair = unnamed;
    while (pair != NULL && (pair->value != value || pair->index != index)) {
        pair = pair->next;
    }
    return pair;
}

int mpi_type_get_value_index(MPI_Datatype value_type, MPI_Datatype index_type, MPI_Datatype *pair_type)
{
    if (mpi_type_find(value_type) == NULL || mpi_type_find(index_type) == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "unknown datatype");
    }
    struct pair *pair = pair_find(value_type, index_type);
    if (pair == NULL && (!is_value(value_type) || !is_index(index_type))) {
        *pair_type = MPI_DATATYPE_NULL; /* not an error: there is no such pair */
        return MPI_SUCCESS;
    }
    if (pair == NULL) {
        pair = calloc(1, sizeof(*pair));
        if (pair == NULL) {
            return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for another pair of value and index");
        }
        *pair = (struct pair){.handle = MPI_DATATYPE_NULL, .value = value_type, .index = index_type, .next = unnamed};
        unnamed = pair;
    }
    int code = pair->type == NULL ? pair_make(pair) : MPI_SUCCESS;
    if (code == MPI_SUCCESS) {
        *pair_type = pair->type->handle;
    }
    return code;
}

int mpi_type_match_size(int typeclass, int size, MPI_Datatype *datatype)
{
    static const struct {
        int typeclass;
        MPI_Datatype datatype;
    } sized[] = {
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER1},  {MPI_TYPECLASS_INTEGER, MPI_INTEGER2},
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER4},  {MPI_TYPECLASS_INTEGER, MPI_INTEGER8},
        {MPI_TYPECLASS_INTEGER, MPI_INTEGER16}, {MPI_TYPECLASS_REAL, MPI_REAL2},
        {MPI_TYPECLASS_REAL, MPI_REAL4},        {MPI_TYPECLASS_REAL, MPI_REAL8},
        {MPI_TYPECLASS_REAL, MPI_REAL16},       {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX4},
        {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX8},  {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX16},
        {MPI_TYPECLASS_COMPLEX, MPI_COMPLEX32},
    };
    for (size_t i = 0; i < sizeof(sized) / sizeof(sized[0]); i++) {
        if (sized[i].typeclass == typeclass && mpi_predefined_find(sized[i].datatype)->size == size) {
            *datatype = sized[i].datatype;
            return MPI_SUCCESS;
        }
    }
    return mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "no datatype of class %d has %d bytes", typeclass, size);
}

enum cw_element mpi_type_data(const struct mpi_type *type)
{
    static const MPI_Datatype floats[] = {MPI_FLOAT,   MPI_C_FLOAT_COMPLEX, MPI_CXX_FLOAT_COMPLEX, MPI_REAL,
                                          MPI_COMPLEX, MPI_REAL4,           MPI_COMPLEX8};
    static const MPI_Datatype doubles[] = {MPI_DOUBLE,           MPI_C_DOUBLE_COMPLEX, MPI_CXX_DOUBLE_COMPLEX,
                                           MPI_DOUBLE_PRECISION, MPI_DOUBLE_COMPLEX,   MPI_REAL8,
                                           MPI_COMPLEX16};
    if (type == NULL) {
        return CW_ELEMENT_BYTES;
    }
    if (is_among(type->basic, doubles, sizeof(doubles) / sizeof(doubles[0]))) {
        return CW_ELEMENT_DOUBLE;
    }
    if (is_among(type->basic, floats, sizeof(floats) / sizeof(floats[0]))) {
        return CW_ELEMENT_FLOAT;
    }
    const struct mpi_type *basic = is_value(type->basic) ? mpi_predefined_find(type->basic) : NULL;
    switch (basic == NULL ? 0 : basic->size) { /* of the rest: integers */
    case 2:
        return CW_ELEMENT_INTEGER_2;
    case 4:
        return CW_ELEMENT_INTEGER_4;
    case 8:
        return CW_ELEMENT_INTEGER_8;
    default:
        return CW_ELEMENT_BYTES;
    }
}
