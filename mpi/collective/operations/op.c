#include "mpi/collective/operations/op.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#include "mpi/collective/operations/op_kernels.h"
#include "mpi/datatype/datatype.h"
#include "mpi/runtime/enter.h"
#include "mpi/runtime/error.h"
#include "mpi/runtime/lock.h"
#include "mpi/state/handle.h"
#include "mpi_functions.h"

/* The groups of types of MPI 5.0, 6.9.2. As in MPICH and Open MPI, MPI_CHAR is an integer, too, and logical operations
 * take MPI_AINT and its like. */
enum {
    C_INTEGER = 1,
    FORTRAN_INTEGER = 2,
    FLOATING = 4,
    LOGICAL = 8,
    COMPLEX = 16,
    BYTE = 32,
    MULTI = 64,
    ORDERED = C_INTEGER | FORTRAN_INTEGER | FLOATING | MULTI,
    ARITHMETIC = ORDERED | COMPLEX,
    BITS = C_INTEGER | FORTRAN_INTEGER | BYTE | MULTI,
    TRUTH = C_INTEGER | LOGICAL | MULTI,
};

enum {
    FIRST_OP = 0x20,
    OP_COUNT = 0x20,
    FIRST_TYPE = 0x200,
    TYPE_COUNT = 0x100,
};

#define TYPE(handle) [(uintptr_t)(handle)-FIRST_TYPE]

static const struct {
    uint8_t group;
    uint8_t element; /* enum mpi_element */
} operands[TYPE_COUNT] = {
    TYPE(MPI_AINT) = {MULTI, MPI_ELEMENT_I64},
    TYPE(MPI_COUNT) = {MULTI, MPI_ELEMENT_I64},
    TYPE(MPI_OFFSET) = {MULTI, MPI_ELEMENT_I64},
    TYPE(MPI_CHAR) = {C_INTEGER, CHAR_MIN < 0 ? MPI_ELEMENT_I8 : MPI_ELEMENT_U8},
    TYPE(MPI_SHORT) = {C_INTEGER, MPI_ELEMENT_I16},
    TYPE(MPI_INT) = {C_INTEGER, MPI_ELEMENT_I32},
    TYPE(MPI_LONG) = {C_INTEGER, MPI_ELEMENT_I64},
    TYPE(MPI_LONG_LONG) = {C_INTEGER, MPI_ELEMENT_I64},
    TYPE(MPI_UNSIGNED_SHORT) = {C_INTEGER, MPI_ELEMENT_U16},
    TYPE(MPI_UNSIGNED) = {C_INTEGER, MPI_ELEMENT_U32},
    TYPE(MPI_UNSIGNED_LONG) = {C_INTEGER, MPI_ELEMENT_U64},
    TYPE(MPI_UNSIGNED_LONG_LONG) = {C_INTEGER, MPI_ELEMENT_U64},
    TYPE(MPI_SIGNED_CHAR) = {C_INTEGER, MPI_ELEMENT_I8},
    TYPE(MPI_UNSIGNED_CHAR) = {C_INTEGER, MPI_ELEMENT_U8},
    TYPE(MPI_INT8_T) = {C_INTEGER, MPI_ELEMENT_I8},
    TYPE(MPI_INT16_T) = {C_INTEGER, MPI_ELEMENT_I16},
    TYPE(MPI_INT32_T) = {C_INTEGER, MPI_ELEMENT_I32},
    TYPE(MPI_INT64_T) = {C_INTEGER, MPI_ELEMENT_I64},
    TYPE(MPI_UINT8_T) = {C_INTEGER, MPI_ELEMENT_U8},
    TYPE(MPI_UINT16_T) = {C_INTEGER, MPI_ELEMENT_U16},
    TYPE(MPI_UINT32_T) = {C_INTEGER, MPI_ELEMENT_U32},
    TYPE(MPI_UINT64_T) = {C_INTEGER, MPI_ELEMENT_U64},
    TYPE(MPI_INTEGER) = {FORTRAN_INTEGER, MPI_ELEMENT_I32},
    TYPE(MPI_INTEGER1) = {FORTRAN_INTEGER, MPI_ELEMENT_I8},
    TYPE(MPI_INTEGER2) = {FORTRAN_INTEGER, MPI_ELEMENT_I16},
    TYPE(MPI_INTEGER4) = {FORTRAN_INTEGER, MPI_ELEMENT_I32},
    TYPE(MPI_INTEGER8) = {FORTRAN_INTEGER, MPI_ELEMENT_I64},
    TYPE(MPI_INTEGER16) = {FORTRAN_INTEGER, MPI_ELEMENT_I128},
    TYPE(MPI_FLOAT) = {FLOATING, MPI_ELEMENT_F32},
    TYPE(MPI_DOUBLE) = {FLOATING, MPI_ELEMENT_F64},
    TYPE(MPI_LONG_DOUBLE) = {FLOATING, MPI_ELEMENT_F80},
    TYPE(MPI_REAL) = {FLOATING, MPI_ELEMENT_F32},
    TYPE(MPI_DOUBLE_PRECISION) = {FLOATING, MPI_ELEMENT_F64},
    TYPE(MPI_REAL4) = {FLOATING, MPI_ELEMENT_F32},
    TYPE(MPI_REAL8) = {FLOATING, MPI_ELEMENT_F64},
    TYPE(MPI_REAL16) = {FLOATING, MPI_ELEMENT_F128},
    TYPE(MPI_C_BOOL) = {LOGICAL, MPI_ELEMENT_U8},
    TYPE(MPI_CXX_BOOL) = {LOGICAL, MPI_ELEMENT_U8},
    TYPE(MPI_LOGICAL) = {LOGICAL, MPI_ELEMENT_U32},
    TYPE(MPI_LOGICAL1) = {LOGICAL, MPI_ELEMENT_U8},
    TYPE(MPI_LOGICAL2) = {LOGICAL, MPI_ELEMENT_U16},
    TYPE(MPI_LOGICAL4) = {LOGICAL, MPI_ELEMENT_U32},
    TYPE(MPI_LOGICAL8) = {LOGICAL, MPI_ELEMENT_U64},
    TYPE(MPI_LOGICAL16) = {LOGICAL, MPI_ELEMENT_U128},
    TYPE(MPI_C_FLOAT_COMPLEX) = {COMPLEX, MPI_ELEMENT_C32},
    TYPE(MPI_CXX_FLOAT_COMPLEX) = {COMPLEX, MPI_ELEMENT_C32},
    TYPE(MPI_C_DOUBLE_COMPLEX) = {COMPLEX, MPI_ELEMENT_C64},
    TYPE(MPI_CXX_DOUBLE_COMPLEX) = {COMPLEX, MPI_ELEMENT_C64},
    TYPE(MPI_C_LONG_DOUBLE_COMPLEX) = {COMPLEX, MPI_ELEMENT_C80},
    TYPE(MPI_CXX_LONG_DOUBLE_COMPLEX) = {COMPLEX, MPI_ELEMENT_C80},
    TYPE(MPI_COMPLEX) = {COMPLEX, MPI_ELEMENT_C32},
    TYPE(MPI_DOUBLE_COMPLEX) = {COMPLEX, MPI_ELEMENT_C64},
    TYPE(MPI_COMPLEX8) = {COMPLEX, MPI_ELEMENT_C32},
    TYPE(MPI_COMPLEX16) = {COMPLEX, MPI_ELEMENT_C64},
    TYPE(MPI_COMPLEX32) = {COMPLEX, MPI_ELEMENT_C128},
    TYPE(MPI_BYTE) = {BYTE, MPI_ELEMENT_U8},
};

struct predefined {
    struct mpi_op op;
    const char *name;
    int groups; /* 0: no type of its own */
    enum mpi_kernel_op kernel;
    bool takes_pairs;
    bool is_max;
};

#define OP(operation, ...)                                                                                    \
    [(uintptr_t)(operation)-                                                                                  \
        FIRST_OP] = {.op = {.handle = (operation), .references = 1, .predefined = true, .commutative = true}, \
                     .name = #operation,                                                                      \
                     __VA_ARGS__}

static struct predefined predefined[OP_COUNT] = {
    OP(MPI_SUM, .groups = ARITHMETIC, .kernel = MPI_KERNEL_SUM),
    OP(MPI_PROD, .groups = ARITHMETIC, .kernel = MPI_KERNEL_PROD),
    OP(MPI_MIN, .groups = ORDERED, .kernel = MPI_KERNEL_MIN),
    OP(MPI_MAX, .groups = ORDERED, .kernel = MPI_KERNEL_MAX),
    OP(MPI_BAND, .groups = BITS, .kernel = MPI_KERNEL_BAND),
    OP(MPI_BOR, .groups = BITS, .kernel = MPI_KERNEL_BOR),
    OP(MPI_BXOR, .groups = BITS, .kernel = MPI_KERNEL_BXOR),
    OP(MPI_LAND, .groups = TRUTH, .kernel = MPI_KERNEL_LAND),
    OP(MPI_LOR, .groups = TRUTH, .kernel = MPI_KERNEL_LOR),
    OP(MPI_LXOR, .groups = TRUTH, .kernel = MPI_KERNEL_LXOR),
    OP(MPI_MINLOC, .takes_pairs = true),
    OP(MPI_MAXLOC, .takes_pairs = true, .is_max = true),
    OP(MPI_REPLACE, .groups = 0),
    OP(MPI_NO_OP, .groups = 0),
};

static struct predefined *predefined_find(MPI_Op handle)
{
    uintptr_t index = (uintptr_t)handle - FIRST_OP;
    return index < OP_COUNT && predefined[index].op.predefined ? &predefined[index] : NULL;
}

struct mpi_op *mpi_op_find(MPI_Op handle)
{
    struct predefined *found = predefined_find(handle);
    return found != NULL ? &found->op : mpi_handle_object(MPI_KIND_OP, (uintptr_t)handle);
}

void mpi_op_retain(struct mpi_op *op)
{
    op->references++;
}

void mpi_op_release(struct mpi_op *op)
{
    assert(op->references > 0);
    if (--op->references == 0) {
        free(op);
    }
}

static enum mpi_element element_of(MPI_Datatype datatype)
{
    uintptr_t index = (uintptr_t)datatype - FIRST_TYPE;
    return index < TYPE_COUNT ? operands[index].element : MPI_ELEMENT_NONE;
}

/* The loop of a predefined operation on a type; NULL: it does not apply. */
static mpi_kernel kernel_of(const struct predefined *operation, const struct mpi_type *type)
{
    const struct mpi_type *value;
    const struct mpi_type *index;
    if (!type->predefined) {
        return NULL;
    }
    if (operation->takes_pairs) {
        return mpi_type_pair(type, &value, &index)
                   ? mpi_kernel_pair(operation->is_max, element_of(value->handle), element_of(index->handle))
                   : NULL;
    }
    enum mpi_element element = element_of(type->basic); /* a type by precision and range is one of these */
    bool applies =
        element != MPI_ELEMENT_NONE && operands[(uintptr_t)type->basic - FIRST_TYPE].group & operation->groups;
    return applies ? mpi_kernel_find(operation->kernel, element) : NULL;
}

int mpi_op_check(MPI_Comm comm, MPI_Op handle, const struct mpi_type *type, struct mpi_op **op)
{
    struct mpi_op *found = mpi_op_find(handle);
    if (found == NULL) {
        return mpi_error(comm, MPI_ERR_OP, "%s",
                         handle == MPI_OP_NULL ? "the operation is MPI_OP_NULL"
                                               : "unknown operation, or one that was freed");
    }
    if (found->predefined && kernel_of(predefined_find(handle), type) == NULL) {
        return mpi_error(comm, MPI_ERR_OP, "%s does not apply to %s", predefined_find(handle)->name,
                         type->name[0] != '\0' ? type->name : "a derived datatype");
    }
    *op = found;
    return MPI_SUCCESS;
}

static void *moved(const void *buffer, const struct mpi_type *type, MPI_Count elements)
{
    return (void *)((uintptr_t)buffer + (uintptr_t)(elements * type->extent));
}

/* inout = in OP inout, by the program's function. */
static void user_call(const struct mpi_op *op, MPI_Datatype datatype, const struct mpi_type *type, const void *in,
                      void *inout, MPI_Count count)
{
    if (op->function_c != NULL) {
        op->function_c((void *)(uintptr_t)in, inout, &count, &datatype);
        return;
    }
    for (MPI_Count done = 0; done < count;) {
        int now = count - done < INT_MAX ? (int)(count - done) : INT_MAX;
        MPI_Count begin = done;
        done += now; /* the function may write to its arguments */
        MPI_Datatype given = datatype;
        op->function(moved(in, type, begin), moved(inout, type, begin), &now, &given);
    }
}

/* left = left OP right for an operation that does not commute: its function can put the result in the place of
 * `right` only, so in that of a copy. */
static int user_call_left(const struct mpi_op *op, MPI_Datatype datatype, const struct mpi_type *type, void *left,
                          const void *right, MPI_Count count)
{
    enum { PIECE_BYTES = 65536 };
    MPI_Count reach = type->extent < 0 ? -type->extent : type->extent;
    MPI_Count piece = reach == 0 ? count : PIECE_BYTES / reach + 1;
    piece = piece < count ? piece : count;
    uint8_t *memory = malloc((size_t)((piece - 1) * reach + type->true_extent) + 1);
    if (memory == NULL) {
        return MPI_ERR_NO_MEM;
    }
    MPI_Count lowest = type->true_lb + (type->extent < 0 ? (piece - 1) * type->extent : 0);
    void *copy = (void *)((uintptr_t)memory - (uintptr_t)lowest);
    for (MPI_Count done = 0; done < count; done += piece) {
        MPI_Count now = count - done < piece ? count - done : piece;
        void *target = moved(left, type, done);
        (void)mpi_type_copy(type, now, moved(right, type, done), type, now, copy);
        user_call(op, datatype, type, target, copy, now);
        (void)mpi_type_copy(type, now, copy, type, now, target);
    }
    free(memory);
    return MPI_SUCCESS;
}

static int user_apply(const struct mpi_op *op, struct mpi_type *type, const void *left, const void *right, void *to,
                      MPI_Count count)
{
    /* The program may have freed its handle while a collective is in progress; its function must have one anyway. */
    MPI_Datatype datatype = mpi_type_handle_make(type);
    if (datatype == MPI_DATATYPE_NULL) {
        return MPI_ERR_NO_MEM;
    }
    int code = MPI_SUCCESS;
    const char *call = mpi_call_name();
    assert(!mpi_lock_is_control());
    if (to == right) {
        user_call(op, datatype, type, left, to, count);
    } else if (op->commutative) {
        user_call(op, datatype, type, right, to, count);
    } else {
        code = user_call_left(op, datatype, type, to, right, count);
    }
    mpi_call_resume(call);
    if (!type->predefined) {
        (void)mpi_type_free(&datatype);
    }
    return code;
}

int mpi_op_apply(const struct mpi_op *op, struct mpi_type *type, const void *left, const void *right, void *to,
                 MPI_Count count)
{
    assert(to == left || to == right);
    if (count == 0) {
        return MPI_SUCCESS;
    }
    if (!op->predefined) {
        return user_apply(op, type, left, right, to, count);
    }
    bool other_is_left = to == right;
    kernel_of(predefined_find(op->handle), type)(to, other_is_left ? left : right, count, other_is_left);
    return MPI_SUCCESS;
}

static int op_make(struct mpi_op value, MPI_Op *handle)
{
    struct mpi_op *op = malloc(sizeof(*op));
    if (op != NULL) {
        *op = value;
        op->references = 1;
        op->handle = (MPI_Op)mpi_handle_make(MPI_KIND_OP, op);
    }
    if (op == NULL || op->handle == NULL) {
        free(op);
        return mpi_error(MPI_COMM_NULL, MPI_ERR_NO_MEM, "no memory for an operation");
    }
    *handle = op->handle;
    return MPI_SUCCESS;
}

int mpi_op_create(MPI_User_function *user_fn, int commute, MPI_Op *op)
{
    return user_fn == NULL ? mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "the function is NULL")
                           : op_make((struct mpi_op){.commutative = commute != 0, .function = user_fn}, op);
}

int mpi_op_create_c(MPI_User_function_c *user_fn, int commute, MPI_Op *op)
{
    return user_fn == NULL ? mpi_error(MPI_COMM_NULL, MPI_ERR_ARG, "the function is NULL")
                           : op_make((struct mpi_op){.commutative = commute != 0, .function_c = user_fn}, op);
}

int mpi_op_free(MPI_Op *op)
{
    struct mpi_op *found = mpi_op_find(*op);
    if (found == NULL || found->predefined) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_OP, "%s",
                         found == NULL ? "unknown operation, or one that was freed"
                                       : "a predefined operation cannot be freed");
    }
    mpi_handle_free(MPI_KIND_OP, (uintptr_t)found->handle);
    mpi_op_release(found);
    *op = MPI_OP_NULL;
    return MPI_SUCCESS;
}

int mpi_op_commutative(MPI_Op op, int *commute)
{
    const struct mpi_op *found = mpi_op_find(op);
    if (found == NULL) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_OP, "unknown operation, or one that was freed");
    }
    *commute = found->commutative;
    return MPI_SUCCESS;
}

int mpi_reduce_local(const void *inbuf, void *inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op)
{
    struct mpi_type *type = NULL;
    struct mpi_op *found = NULL;
    int code = mpi_type_check(MPI_COMM_NULL, count, datatype, &type);
    code = code != MPI_SUCCESS ? code : mpi_op_check(MPI_COMM_NULL, op, type, &found);
    if (code != MPI_SUCCESS) {
        return code;
    }
    MPI_Count bytes = type->size * count;
    if (mpi_buffer_is_wrong(inbuf, type, bytes) || mpi_buffer_is_wrong(inoutbuf, type, bytes) ||
        (count > 0 && inbuf == inoutbuf)) {
        return mpi_error(MPI_COMM_NULL, MPI_ERR_BUFFER, "both buffers are the same, or one is NULL or MPI_IN_PLACE");
    }
    code = mpi_op_apply(found, type, inbuf, inoutbuf, inoutbuf, count);
    return code == MPI_SUCCESS ? code : mpi_error(MPI_COMM_NULL, code, "no memory for the operation");
}
