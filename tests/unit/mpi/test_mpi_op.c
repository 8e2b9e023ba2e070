/* Operations: their types, their results, against plain loops of the test, in both places of the result; operations of
 * the program. */
#include <complex.h>
#include <math.h>

#include "dataplane/base/random.h"
#include "mpi/collective/operations/op.h"
#include "mpi/datatype/datatype.h"
#include "mpi_functions.h"
#include "mpi_testing.h"
#include "tests/test.h"

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

enum {
    COUNT = 1003, /* no multiple of any vector */
};

static struct cw_random dice;

static const MPI_Op operations[] = {MPI_SUM,  MPI_PROD, MPI_MIN,  MPI_MAX,    MPI_BAND,   MPI_BOR,     MPI_BXOR,
                                    MPI_LAND, MPI_LOR,  MPI_LXOR, MPI_MINLOC, MPI_MAXLOC, MPI_REPLACE, MPI_NO_OP};
enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

/* Letters as the standard's groups, and the additions of MPICH and Open MPI: + arithmetic, < order, & bits, ! truth, l
 * locations. */
static const char letters[OPERATIONS + 1] = "++<<&&&!!!ll--";

static const struct {
    MPI_Datatype datatype;
    const char *applies;
} groups[] = {
    {MPI_INT, "+<&!"},
    {MPI_UNSIGNED_CHAR, "+<&!"},
    {MPI_INT64_T, "+<&!"},
    {MPI_UNSIGNED_LONG_LONG, "+<&!"},
    {MPI_SIGNED_CHAR, "+<&!"},
    {MPI_INTEGER, "+<&"},
    {MPI_INTEGER16, "+<&"},
    {MPI_INTEGER1, "+<&"},
    {MPI_FLOAT, "+<"},
    {MPI_LONG_DOUBLE, "+<"},
    {MPI_REAL, "+<"},
    {MPI_REAL16, "+<"},
    {MPI_DOUBLE_PRECISION, "+<"},
    {MPI_C_FLOAT_COMPLEX, "+"},
    {MPI_COMPLEX32, "+"},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, "+"},
    {MPI_C_BOOL, "!"},
    {MPI_CXX_BOOL, "!"},
    {MPI_LOGICAL, "!"},
    {MPI_LOGICAL16, "!"},
    {MPI_BYTE, "&"},
    {MPI_AINT, "+<&!"},
    {MPI_COUNT, "+<&!"},
    {MPI_OFFSET, "+<&!"},
    {MPI_CHAR, "+<&!"},
    {MPI_WCHAR, ""},
    {MPI_CHARACTER, ""},
    {MPI_PACKED, ""},
    {MPI_REAL2, ""},
    {MPI_COMPLEX4, ""},
    {MPI_2INT, "l"},
    {MPI_DOUBLE_INT, "l"},
    {MPI_2REAL, "l"},
    {MPI_LONG_DOUBLE_INT, "l"},
    {MPI_2INTEGER, "l"},
    {MPI_2DOUBLE_PRECISION, "l"},
};

static void test_groups(void **state)
{
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
        for (int j = 0; j < OPERATIONS; j++) {
            struct mpi_op *op = NULL;
            int code = mpi_op_check(MPI_COMM_WORLD, operations[j], mpi_type_find(groups[i].datatype), &op);
            int expected = strchr(groups[i].applies, letters[j]) != NULL ? MPI_SUCCESS : MPI_ERR_OP;
            assert_true_msg(code == expected, "operation 0x%x on datatype 0x%x: %d", (int)(intptr_t)operations[j],
                            (int)(intptr_t)groups[i].datatype, code);
            assert_int_equal(op != NULL, code == MPI_SUCCESS);
        }
    }
}

static void derived_types_have_no_operation(void **state)
{
    struct mpi_op *op;
    MPI_Datatype derived;
    OK(mpi_type_contiguous(1, MPI_INT, &derived));
    assert_int_equal(mpi_op_check(MPI_COMM_WORLD, MPI_SUM, mpi_type_find(derived), &op), MPI_ERR_OP);
    OK(mpi_type_free(&derived));
}

/* Runs the operation with the result on the right and on the left, and compares with `expected`. */
static void check_result(MPI_Op operation, MPI_Datatype datatype, const void *left, const void *right,
                         const void *expected, size_t bytes, size_t element_bytes)
{
    struct mpi_op *op;
    struct mpi_type *type = mpi_type_find(datatype);
    OK(mpi_op_check(MPI_COMM_WORLD, operation, type, &op));
    for (int to_right = 0; to_right < 2; to_right++) {
        void *a = calloc(1, bytes), *b = calloc(1, bytes), *to = to_right ? b : a;
        memcpy(a, left, bytes);
        memcpy(b, right, bytes);
        OK(mpi_op_apply(op, type, a, b, to, COUNT));
        for (size_t at = 0; at < bytes; at += element_bytes) {
            assert_true_msg(memcmp((char *)to + at, (const char *)expected + at, element_bytes) == 0,
                            "operation 0x%x on datatype 0x%x, element %zu, %d", (int)(intptr_t)operation,
                            (int)(intptr_t)datatype, at / element_bytes, to_right);
        }
        assert_memory_equal(to_right ? a : b, to_right ? left : right, bytes);
        free(a);
        free(b);
    }
}

/* Small values, so that ties, zeros and extremes come up. */
static int64_t draw(void)
{
    return cw_random_chance(&dice, 0.5) ? (int64_t)cw_random_below(&dice, 7) - 3 : (int64_t)cw_random_next(&dice);
}

#define CHECK(operation, datatype, type, draw_value, expression)                                                \
    do {                                                                                                        \
        static type left_values[COUNT], right_values[COUNT], expected[COUNT];                                   \
        memset(expected, 0, sizeof(expected));                                                                  \
        for (int i = 0; i < COUNT; i++) {                                                                       \
            memset(&left_values[i], 0, sizeof(type));                                                           \
            memset(&right_values[i], 0, sizeof(type));                                                          \
            left_values[i] = (type)(draw_value);                                                                \
            right_values[i] = (type)(draw_value);                                                               \
            const type l = left_values[i], r = right_values[i];                                                 \
            expected[i] = (type)(expression);                                                                   \
        }                                                                                                       \
        check_result(operation, datatype, left_values, right_values, expected, sizeof(expected), sizeof(type)); \
    } while (0)

#define CHECK_INTEGER(datatype, type)                                                        \
    do {                                                                                     \
        CHECK(MPI_SUM, datatype, type, draw(), (unsigned __int128)l + (unsigned __int128)r); \
        CHECK(MPI_PROD, datatype, type, draw(), (unsigned __int128)l *(unsigned __int128)r); \
        CHECK(MPI_MIN, datatype, type, draw(), l < r ? l : r);                               \
        CHECK(MPI_MAX, datatype, type, draw(), l > r ? l : r);                               \
        CHECK(MPI_BAND, datatype, type, draw(), l &r);                                       \
        CHECK(MPI_BOR, datatype, type, draw(), l | r);                                       \
        CHECK(MPI_BXOR, datatype, type, draw(), l ^ r);                                      \
    } while (0)

#define CHECK_TRUTH(datatype, type)                                        \
    do {                                                                   \
        CHECK(MPI_LAND, datatype, type, draw() % 2, l != 0 && r != 0);     \
        CHECK(MPI_LOR, datatype, type, draw() % 2, l != 0 || r != 0);      \
        CHECK(MPI_LXOR, datatype, type, draw() % 2, (l != 0) != (r != 0)); \
    } while (0)

static void test_integers(void **state)
{
    CHECK_INTEGER(MPI_INT8_T, int8_t);
    CHECK_INTEGER(MPI_UNSIGNED_CHAR, uint8_t);
    CHECK_INTEGER(MPI_SHORT, int16_t);
    CHECK_INTEGER(MPI_UINT16_T, uint16_t);
    CHECK_INTEGER(MPI_INT, int32_t);
    CHECK_INTEGER(MPI_UNSIGNED, uint32_t);
    CHECK_INTEGER(MPI_LONG, int64_t);
    CHECK_INTEGER(MPI_UNSIGNED_LONG, uint64_t);
    CHECK_INTEGER(MPI_INTEGER16, __int128);
    CHECK_INTEGER(MPI_AINT, MPI_Aint);
    CHECK_INTEGER(MPI_CHAR, char);
    CHECK_INTEGER(MPI_INTEGER, int32_t);
    CHECK(MPI_BXOR, MPI_BYTE, uint8_t, draw(), l ^ r);
}

static void test_truth(void **state)
{
    CHECK_TRUTH(MPI_INT, int32_t);
    CHECK_TRUTH(MPI_SIGNED_CHAR, int8_t);
    CHECK_TRUTH(MPI_UNSIGNED_LONG_LONG, uint64_t);
    CHECK_TRUTH(MPI_CHAR, char);
    CHECK_TRUTH(MPI_AINT, MPI_Aint);
    CHECK_TRUTH(MPI_COUNT, MPI_Count);
    CHECK_TRUTH(MPI_OFFSET, MPI_Offset);
    CHECK_TRUTH(MPI_C_BOOL, _Bool);
    CHECK_TRUTH(MPI_LOGICAL, int32_t);
    CHECK_TRUTH(MPI_LOGICAL2, int16_t);
    CHECK_TRUTH(MPI_LOGICAL16, __int128);
}

static double draw_real(void)
{
    return cw_random_chance(&dice, 0.2) ? (double)draw() : cw_random_fraction(&dice) * 8 - 4;
}

static long double draw_long_real(void)
{
    return (long double)draw_real() / 3;
}

#define CHECK_REAL(datatype, type, draw_value)                     \
    do {                                                           \
        CHECK(MPI_SUM, datatype, type, draw_value, l + r);         \
        CHECK(MPI_PROD, datatype, type, draw_value, l *r);         \
        CHECK(MPI_MIN, datatype, type, draw_value, l < r ? l : r); \
        CHECK(MPI_MAX, datatype, type, draw_value, l > r ? l : r); \
    } while (0)

static void test_reals(void **state)
{
    CHECK_REAL(MPI_FLOAT, float, draw_real());
    CHECK_REAL(MPI_DOUBLE, double, draw_real());
    CHECK_REAL(MPI_REAL8, double, draw_real());
    CHECK_REAL(MPI_REAL16, __float128, draw_long_real());
}

/* Ten of a long double's sixteen bytes count: its values are compared, not its bytes. */
static void test_long_double(void **state)
{
    struct mpi_op *op;
    struct mpi_type *type = mpi_type_find(MPI_LONG_DOUBLE);
    long double a[COUNT], b[COUNT], sum[COUNT];
    for (int i = 0; i < COUNT; i++) {
        a[i] = draw_long_real();
        b[i] = draw_long_real();
        sum[i] = a[i] + b[i];
    }
    OK(mpi_op_check(MPI_COMM_WORLD, MPI_SUM, type, &op));
    OK(mpi_op_apply(op, type, a, b, b, COUNT));
    for (int i = 0; i < COUNT; i++) {
        assert_true(b[i] == sum[i]);
    }
}

/* Which of two zeros, and of a number and no number, depends on the order, and on nothing else. */
static void test_order_of_operands(void **state)
{
    static const double values[] = {0.0, -0.0, 1.0, NAN};
    CHECK(MPI_MAX, MPI_DOUBLE, double, values[cw_random_below(&dice, 4)], l > r ? l : r);
    CHECK(MPI_MIN, MPI_DOUBLE, double, values[cw_random_below(&dice, 4)], l < r ? l : r);
}

/* CMPLX is not everywhere; a sum with I makes other numbers of infinities. */
static double complex number(double real, double imaginary)
{
    double complex made;
    double parts[2] = {real, imaginary};
    memcpy(&made, parts, sizeof(made));
    return made;
}

static void test_complex(void **state)
{
    CHECK(MPI_SUM, MPI_C_FLOAT_COMPLEX, float complex, number(draw_real(), draw_real()), l + r);
    CHECK(MPI_PROD, MPI_C_DOUBLE_COMPLEX, double complex, number(draw_real(), draw_real()),
          number(creal(l) * creal(r) - cimag(l) * cimag(r), creal(l) * cimag(r) + cimag(l) * creal(r)));
    CHECK(MPI_SUM, MPI_DOUBLE_COMPLEX, double complex, number(draw_real(), draw_real()), l + r);
}

struct double_int {
    double value;
    int index;
};

struct short_int {
    short value;
    int index;
};

struct float_long {
    float value;
    long index;
};

struct two_reals {
    float value;
    float index;
};

/* Pads are part of a struct that is compared: they are zero in all of them. */
#define CHECK_PAIRS(operation, datatype, type, before)                                                          \
    do {                                                                                                        \
        static type left_values[COUNT], right_values[COUNT], expected[COUNT];                                   \
        for (int i = 0; i < COUNT; i++) {                                                                       \
            type *l = &left_values[i], *r = &right_values[i];                                                   \
            l->value = (__typeof__(l->value))((int)cw_random_below(&dice, 5) - 2);                              \
            r->value = (__typeof__(l->value))((int)cw_random_below(&dice, 5) - 2);                              \
            l->index = (__typeof__(l->index))cw_random_below(&dice, 9);                                         \
            r->index = (__typeof__(l->index))cw_random_below(&dice, 9);                                         \
            bool tie = l->value == r->value;                                                                    \
            expected[i].value = l->value before r->value ? l->value : r->value;                                 \
            expected[i].index = tie                        ? (l->index < r->index ? l->index : r->index)        \
                                : l->value before r->value ? l->index                                           \
                                                           : r->index;                                          \
        }                                                                                                       \
        check_result(operation, datatype, left_values, right_values, expected, sizeof(expected), sizeof(type)); \
    } while (0)

static void test_locations(void **state)
{
    MPI_Datatype unnamed;
    OK(mpi_type_get_value_index(MPI_FLOAT, MPI_LONG, &unnamed));
    CHECK_PAIRS(MPI_MINLOC, MPI_DOUBLE_INT, struct double_int, <);
    CHECK_PAIRS(MPI_MAXLOC, MPI_DOUBLE_INT, struct double_int, >);
    CHECK_PAIRS(MPI_MAXLOC, MPI_SHORT_INT, struct short_int, >);
    CHECK_PAIRS(MPI_MINLOC, unnamed, struct float_long, <);
    CHECK_PAIRS(MPI_MAXLOC, MPI_2REAL, struct two_reals, >);
}

/* A product of affine maps x -> a x + b: associative, and does not commute. On a datatype with gaps. */
struct map {
    int a;
    int gap;
    int b;
};

static int calls;
static MPI_Datatype seen;

static void compose(const struct map *in, struct map *inout, MPI_Count count)
{
    for (MPI_Count i = 0; i < count; i++) {
        struct map right = inout[i];
        inout[i].a = in[i].a * right.a;
        inout[i].b = in[i].a * right.b + in[i].b;
    }
    calls++;
}

static void compose_small(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    seen = *datatype;
    compose(in, inout, *count);
}

static void compose_large(void *in, void *inout, MPI_Count *count, MPI_Datatype *datatype)
{
    seen = *datatype;
    compose(in, inout, *count);
}

static MPI_Datatype map_type(void)
{
    MPI_Datatype vector, made;
    OK(mpi_type_vector(2, 1, 2, MPI_INT, &vector));
    OK(mpi_type_create_resized(vector, 0, sizeof(struct map), &made));
    OK(mpi_type_free(&vector));
    OK(mpi_type_commit(&made));
    return made;
}

static void check_user(MPI_Op handle, MPI_Datatype datatype, bool to_left, int count)
{
    struct mpi_op *op = mpi_op_find(handle);
    struct map *left = calloc((size_t)count, sizeof(*left)), *right = calloc((size_t)count, sizeof(*right));
    for (int i = 0; i < count; i++) {
        left[i] = (struct map){.a = 2 + i % 5, .gap = 7, .b = i % 11};
        right[i] = (struct map){.a = 3, .gap = 8, .b = i % 7};
    }
    struct map *to = to_left ? left : right;
    calls = 0;
    OK(mpi_op_apply(op, mpi_type_find(datatype), left, right, to, count));
    for (int i = 0; i < count; i++) {
        assert_int_equal(to[i].a, (2 + i % 5) * 3);
        assert_int_equal(to[i].b, (2 + i % 5) * (i % 7) + i % 11);
        assert_int_equal(left[i].gap, 7);
        assert_int_equal(right[i].gap, 8);
    }
    assert_true(calls > 0);
    assert_ptr_equal(seen, datatype);
    free(left);
    free(right);
}

static void test_user(void **state)
{
    MPI_Op small, large;
    int commute;
    MPI_Datatype datatype = map_type();
    OK(mpi_op_create(compose_small, 0, &small));
    OK(mpi_op_create_c(compose_large, 0, &large));
    OK(mpi_op_commutative(small, &commute));
    assert_int_equal(commute, 0);
    for (int i = 0; i < 4; i++) {
        check_user(i < 2 ? small : large, datatype, i % 2 == 0, 10);
        check_user(i < 2 ? small : large, datatype, i % 2 == 0, 20000); /* several pieces on the left */
    }
    assert_int_equal(mpi_type_find(datatype)->references, 1);
    OK(mpi_op_free(&small));
    assert_ptr_equal(small, MPI_OP_NULL);
    OK(mpi_op_free(&large));
    OK(mpi_type_free(&datatype));
}

/* The program may have freed the datatype while a collective works on it. */
static void test_user_freed_type(void **state)
{
    MPI_Op op;
    MPI_Datatype datatype = map_type();
    struct mpi_type *type = mpi_type_find(datatype);
    struct map left = {.a = 2, .b = 1}, right = {.a = 5, .b = 3};
    mpi_type_retain(type);
    OK(mpi_type_free(&datatype));
    OK(mpi_op_create(compose_small, 0, &op));
    seen = MPI_DATATYPE_NULL;
    OK(mpi_op_apply(mpi_op_find(op), type, &left, &right, &right, 1));
    assert_ptr_not_equal(seen, MPI_DATATYPE_NULL);
    assert_ptr_not_equal(seen, NULL);
    assert_null(mpi_type_find(seen));
    assert_int_equal(right.b, 7);
    OK(mpi_op_free(&op));
    mpi_type_release(type);
}

static MPI_Count passed;

static void count_small(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    assert_true(*count > 0);
    passed += *count;
    calls++;
}

/* More elements than an int counts are passed in parts. */
static void test_user_many(void **state)
{
    MPI_Op op;
    char left = 0, right = 0;
    MPI_Count count = ((MPI_Count)1 << 32) + 5;
    OK(mpi_op_create(count_small, 1, &op));
    calls = 0;
    passed = 0;
    OK(mpi_op_apply(mpi_op_find(op), mpi_type_find(MPI_CHAR), &left, &right, &right, count));
    assert_int_equal(passed, count);
    assert_int_equal(calls, 3);
    OK(mpi_op_free(&op));
}

static void test_calls(void **state)
{
    int a[] = {1, 2, 3}, b[] = {10, 20, 30}, commute;
    OK(mpi_reduce_local(a, b, 3, MPI_INT, MPI_SUM));
    assert_int_equal(b[2], 33);
    OK(mpi_reduce_local(NULL, NULL, 0, MPI_INT, MPI_SUM));
    assert_int_equal(mpi_reduce_local(a, b, 3, MPI_WCHAR, MPI_SUM), MPI_ERR_OP);
    assert_int_equal(mpi_reduce_local(a, a, 3, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    OK(mpi_op_commutative(MPI_MAXLOC, &commute));
    assert_int_equal(commute, 1);
}

int main(void)
{
    mpi_testing_start();
    cw_random_seed(&dice, 4);
    return TESTS_RUN(test_groups, derived_types_have_no_operation, test_integers, test_truth, test_reals,
                     test_long_double, test_order_of_operands, test_complex, test_locations, test_user,
                     test_user_freed_type, test_user_many, test_calls);
}
