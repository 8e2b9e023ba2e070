/* Datatypes, case by case: properties of predefined ones, envelopes and contents, errors, handles and references,
 * packing, great sizes. */
#include "mpi/datatype/datatype.h"
#include "mpi_functions.h"
#include "mpi_testing.h"
#include "tests/test.h"

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

static struct mpi_counts ints(const int *values)
{
    mpi_testing_call("MPI_Test");
    return mpi_counts_int(values);
}

static struct mpi_counts wide(const void *values)
{
    return mpi_counts_wide(values);
}

static void free_type(MPI_Datatype datatype)
{
    OK(mpi_type_free(&datatype));
    assert_ptr_equal(datatype, MPI_DATATYPE_NULL);
}

static void test_predefined(void **state)
{
    static const struct {
        MPI_Datatype handle;
        const char *name;
        int size;
        int extent;
    } rows[] = {
        {MPI_AINT, "MPI_AINT", 8, 8},
        {MPI_PACKED, "MPI_PACKED", 1, 1},
        {MPI_INT, "MPI_INT", 4, 4},
        {MPI_LONG, "MPI_LONG", 8, 8},
        {MPI_LONG_DOUBLE, "MPI_LONG_DOUBLE", 16, 16},
        {MPI_WCHAR, "MPI_WCHAR", 4, 4},
        {MPI_C_LONG_DOUBLE_COMPLEX, "MPI_C_LONG_DOUBLE_COMPLEX", 32, 32},
        {MPI_CXX_BOOL, "MPI_CXX_BOOL", 1, 1},
        {MPI_LOGICAL, "MPI_LOGICAL", 4, 4},
        {MPI_DOUBLE_COMPLEX, "MPI_DOUBLE_COMPLEX", 16, 16},
        {MPI_FLOAT_INT, "MPI_FLOAT_INT", 8, 8},
        {MPI_DOUBLE_INT, "MPI_DOUBLE_INT", 12, 16},
        {MPI_LONG_INT, "MPI_LONG_INT", 12, 16},
        {MPI_2INT, "MPI_2INT", 8, 8},
        {MPI_SHORT_INT, "MPI_SHORT_INT", 6, 8},
        {MPI_LONG_DOUBLE_INT, "MPI_LONG_DOUBLE_INT", 20, 32},
        {MPI_2REAL, "MPI_2REAL", 8, 8},
        {MPI_2DOUBLE_PRECISION, "MPI_2DOUBLE_PRECISION", 16, 16},
        {MPI_2INTEGER, "MPI_2INTEGER", 8, 8},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char name[MPI_MAX_OBJECT_NAME];
        int length, combiner, integers, addresses, types;
        MPI_Count size, lb, extent;
        OK(mpi_type_get_name(rows[i].handle, name, &length));
        assert_string_equal(name, rows[i].name);
        assert_int_equal(length, strlen(name));
        OK(mpi_type_size(rows[i].handle, &size));
        OK(mpi_type_get_extent_x(rows[i].handle, &lb, &extent));
        assert_int_equal(size, rows[i].size);
        assert_int_equal(lb, 0);
        assert_int_equal(extent, rows[i].extent);
        OK(mpi_type_get_envelope(rows[i].handle, &integers, &addresses, &types, &combiner));
        assert_int_equal(combiner, MPI_COMBINER_NAMED);
        assert_int_equal(integers + addresses + types, 0);
    }
}

/* Every handle of the ABI is there, and those with a size in their number have it. */
static void test_all_handles(void **state)
{
    int count = 0;
    for (uintptr_t value = 0; value < 0x400; value++) {
        const struct mpi_type *type = mpi_type_find((MPI_Datatype)value);
        if (type != NULL) {
            count++;
            assert_ptr_equal(type->handle, (MPI_Datatype)value);
            assert_true(type->committed && type->predefined);
            assert_int_equal(type->dense, type->size == type->extent);
            if (value >= 0x240) {
                assert_int_equal(type->size, 1 << (value >> 3 & 7));
            }
        }
    }
    assert_int_equal(count, 70); /* rows of the ABI's table, without MPI_DATATYPE_NULL */
}

/* The arguments of constructors come back, in the right array. */
static void test_contents_small(void **state)
{
    MPI_Datatype made, types[2];
    int lengths[] = {2, 0, 1}, integers[8], n_integers, n_addresses, n_types, combiner;
    MPI_Aint displacements[] = {-8, 100, 24}, addresses[4];
    OK(mpi_type_create_hindexed(3, ints(lengths), wide(displacements), MPI_INT, &made));
    OK(mpi_type_get_envelope(made, &n_integers, &n_addresses, &n_types, &combiner));
    assert_int_equal(combiner, MPI_COMBINER_HINDEXED);
    assert_int_equal(n_integers, 4);
    assert_int_equal(n_addresses, 3);
    assert_int_equal(n_types, 1);
    assert_int_equal(mpi_type_get_contents(made, 3, 3, 1, integers, addresses, types), MPI_ERR_ARG);
    assert_int_equal(mpi_type_get_contents(made, 4, 2, 1, integers, addresses, types), MPI_ERR_ARG);
    assert_int_equal(mpi_type_get_contents(made, 4, 3, 0, integers, addresses, types), MPI_ERR_ARG);
    OK(mpi_type_get_contents(made, 8, 4, 2, integers, addresses, types));
    int expected[] = {3, 2, 0, 1};
    assert_memory_equal(integers, expected, sizeof(expected));
    assert_memory_equal(addresses, displacements, sizeof(displacements));
    assert_ptr_equal(types[0], MPI_INT);
    free_type(made);
    int sizes[] = {5, 6}, parts[] = {2, 3}, starts[] = {1, 0}, subarray[] = {2, 5, 6, 2, 3, 1, 0, MPI_ORDER_FORTRAN};
    OK(mpi_type_create_subarray(2, ints(sizes), ints(parts), ints(starts), MPI_ORDER_FORTRAN, MPI_CHAR, &made));
    OK(mpi_type_get_contents(made, 8, 0, 1, integers, addresses, types));
    assert_memory_equal(integers, subarray, sizeof(subarray));
    free_type(made);
    assert_int_equal(mpi_type_get_contents(MPI_INT, 8, 4, 2, integers, addresses, types), MPI_ERR_TYPE);
}

static void test_contents_large(void **state)
{
    MPI_Datatype made, types[1];
    MPI_Count n_integers, n_addresses, n_large, n_types, large[8];
    MPI_Count sizes[] = {5, 6}, parts[] = {2, 3}, starts[] = {1, 0}, expected[] = {5, 6, 2, 3, 1, 0};
    int integers[4], combiner, narrow;
    MPI_Aint addresses[1];
    mpi_testing_call("MPI_Type_create_subarray_c");
    OK(mpi_type_create_subarray(2, wide(sizes), wide(parts), wide(starts), MPI_ORDER_C, MPI_CHAR, &made));
    OK(mpi_type_get_envelope_c(made, &n_integers, &n_addresses, &n_large, &n_types, &combiner));
    assert_int_equal(combiner, MPI_COMBINER_SUBARRAY);
    assert_int_equal(n_integers, 2);
    assert_int_equal(n_addresses, 0);
    assert_int_equal(n_large, 6);
    assert_int_equal(n_types, 1);
    OK(mpi_type_get_contents_c(made, 4, 0, 6, 1, integers, addresses, large, types));
    assert_int_equal(integers[0], 2);
    assert_int_equal(integers[1], MPI_ORDER_C);
    assert_memory_equal(large, expected, sizeof(expected));
    assert_int_equal(mpi_type_get_contents_c(made, 4, 0, 5, 1, integers, addresses, large, types), MPI_ERR_ARG);
    /* The small calls have nowhere to put them. */
    assert_int_equal(mpi_type_get_envelope(made, &narrow, &narrow, &narrow, &narrow), MPI_ERR_TYPE);
    assert_int_equal(mpi_type_get_contents(made, 9, 9, 9, integers, addresses, types), MPI_ERR_TYPE);
    free_type(made);
    mpi_testing_call("MPI_Type_create_resized_c");
    OK(mpi_type_create_resized(MPI_INT, -1, 9, &made));
    OK(mpi_type_get_contents_c(made, 0, 0, 2, 1, integers, addresses, large, types));
    assert_int_equal(large[0], -1);
    assert_int_equal(large[1], 9);
    free_type(made);
    mpi_testing_call("MPI_Test");
}

/* Handles from contents are the program's own, also when it has freed the first one. */
static void test_contents_handles(void **state)
{
    MPI_Datatype old, made, old_again, types[1];
    int integers[1];
    MPI_Aint addresses[1];
    OK(mpi_type_contiguous(3, MPI_INT, &old));
    old_again = old;
    OK(mpi_type_dup(old, &made));
    OK(mpi_type_get_contents(made, 0, 0, 1, integers, addresses, types));
    free_type(types[0]);
    assert_non_null(mpi_type_find(old));
    free_type(old);
    assert_null(mpi_type_find(old_again));
    OK(mpi_type_get_contents(made, 0, 0, 1, integers, addresses, types));
    assert_ptr_not_equal(types[0], old_again);
    assert_int_equal(mpi_type_find(types[0])->size, 12);
    free_type(made);
    assert_int_equal(mpi_type_find(types[0])->size, 12);
    free_type(types[0]);
    assert_int_equal(mpi_type_free(&old_again), MPI_ERR_TYPE);
}

static void test_overflow(void **state)
{
    MPI_Datatype made = MPI_INT, big;
    struct mpi_type *type;
    MPI_Count far[] = {0, INT64_MAX - 2}, lengths[] = {1, 1};
    mpi_testing_call("MPI_Type_contiguous_c");
    assert_int_equal(mpi_type_contiguous(INT64_MAX / 2, MPI_INT, &made), MPI_ERR_ARG);
    assert_int_equal(mpi_type_vector(2, 1, INT64_MAX / 2, MPI_INT, &made), MPI_ERR_ARG);
    assert_int_equal(mpi_type_create_hvector(3, 1, INT64_MAX / 2 + 1, MPI_INT, &made), MPI_ERR_ARG);
    assert_int_equal(mpi_type_create_hindexed(2, wide(lengths), wide(far), MPI_INT, &made), MPI_ERR_ARG);
    assert_int_equal(mpi_type_create_resized(MPI_INT, INT64_MAX, 1, &made), MPI_ERR_ARG);
    assert_ptr_equal(made, MPI_INT);
    OK(mpi_type_contiguous(INT64_MAX / 4, MPI_INT, &big));
    OK(mpi_type_commit(&big));
    OK(mpi_type_check(MPI_COMM_WORLD, 1, big, &type));
    assert_int_equal(mpi_type_check(MPI_COMM_WORLD, 2, big, &type), MPI_ERR_COUNT);
    assert_int_equal(mpi_type_elements_bytes(type, INT64_MAX), 0);
    free_type(big);
    mpi_testing_call("MPI_Test");
}

static void test_check(void **state)
{
    MPI_Datatype made;
    struct mpi_type *type;
    OK(mpi_type_contiguous(2, MPI_INT, &made));
    assert_int_equal(mpi_type_check(MPI_COMM_WORLD, 1, made, &type), MPI_ERR_TYPE);
    OK(mpi_type_commit(&made));
    OK(mpi_type_check(MPI_COMM_WORLD, 0, made, &type));
    assert_true(type->dense);
    assert_ptr_equal(type->basic, MPI_INT);
    free_type(made);
}

static void test_dup(void **state)
{
    MPI_Datatype made, copy;
    OK(mpi_type_vector(3, 2, 4, MPI_INT, &made));
    OK(mpi_type_dup(made, &copy));
    assert_false(mpi_type_find(copy)->committed);
    free_type(copy);
    OK(mpi_type_commit(&made));
    OK(mpi_type_dup(made, &copy));
    assert_true(mpi_type_find(copy)->committed);
    assert_int_equal(mpi_type_find(copy)->extent, 40);
    assert_ptr_equal(mpi_type_find(copy)->basic, MPI_INT);
    free_type(made);
    free_type(copy);
    OK(mpi_type_dup(MPI_INT, &copy));
    assert_false(mpi_type_find(copy)->predefined);
    free_type(copy);
}

static void test_value_index(void **state)
{
    MPI_Datatype pair, again, types[2];
    MPI_Count size, lb, extent;
    int integers, addresses, count, combiner;
    OK(mpi_type_get_value_index(MPI_DOUBLE, MPI_INT, &pair));
    assert_ptr_equal(pair, MPI_DOUBLE_INT);
    OK(mpi_type_get_value_index(MPI_FLOAT, MPI_LONG, &pair));
    OK(mpi_type_get_value_index(MPI_FLOAT, MPI_LONG, &again));
    assert_ptr_equal(pair, again);
    OK(mpi_type_size(pair, &size));
    OK(mpi_type_get_extent(pair, &lb, &extent));
    assert_int_equal(size, 12);
    assert_int_equal(extent, 16);
    OK(mpi_type_get_envelope(pair, &integers, &addresses, &count, &combiner));
    assert_int_equal(combiner, MPI_COMBINER_VALUE_INDEX);
    assert_int_equal(count, 2);
    OK(mpi_type_get_contents(pair, 0, 0, 2, NULL, NULL, types));
    assert_ptr_equal(types[0], MPI_FLOAT);
    assert_ptr_equal(types[1], MPI_LONG);
    assert_int_equal(mpi_type_free(&pair), MPI_ERR_TYPE);
    assert_true(mpi_type_find(pair)->committed);
    OK(mpi_type_get_value_index(MPI_CHAR, MPI_INT, &pair));
    assert_ptr_equal(pair, MPI_DATATYPE_NULL);
    assert_int_equal(mpi_type_elements(mpi_type_find(MPI_DOUBLE_INT), 8 + 4 + 8), 3);
    assert_int_equal(mpi_type_elements(mpi_type_find(MPI_DOUBLE_INT), 4), MPI_UNDEFINED);
}

static void test_match_size(void **state)
{
    MPI_Datatype found;
    OK(mpi_type_match_size(MPI_TYPECLASS_REAL, 8, &found));
    assert_ptr_equal(found, MPI_REAL8);
    OK(mpi_type_match_size(MPI_TYPECLASS_COMPLEX, 8, &found));
    assert_ptr_equal(found, MPI_COMPLEX8);
    OK(mpi_type_match_size(MPI_TYPECLASS_INTEGER, 2, &found));
    assert_ptr_equal(found, MPI_INTEGER2);
    assert_int_equal(mpi_type_match_size(MPI_TYPECLASS_INTEGER, 3, &found), MPI_ERR_ARG);
}

static void test_pack(void **state)
{
    int matrix[4][4], column[4], back[4] = {0};
    char packed[20];
    MPI_Count position = 2, size;
    MPI_Datatype made;
    for (int i = 0; i < 16; i++) {
        matrix[i / 4][i % 4] = i;
    }
    OK(mpi_type_vector(4, 1, 4, MPI_INT, &made));
    assert_int_equal(mpi_pack(&matrix[0][1], 1, made, packed, 20, &position, MPI_COMM_WORLD), MPI_ERR_TYPE);
    OK(mpi_type_commit(&made));
    OK(mpi_pack_size(1, made, MPI_COMM_WORLD, &size));
    assert_int_equal(size, 16);
    OK(mpi_pack(&matrix[0][1], 1, made, packed, 18, &position, MPI_COMM_WORLD));
    assert_int_equal(position, 18);
    memcpy(column, packed + 2, 16);
    assert_true(column[0] == 1 && column[1] == 5 && column[2] == 9 && column[3] == 13);
    assert_int_equal(mpi_pack(matrix, 1, MPI_INT, packed, 20, &position, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    assert_int_equal(position, 18);
    position = 2;
    OK(mpi_unpack(packed, 18, &position, back, 4, MPI_INT, MPI_COMM_WORLD));
    assert_memory_equal(back, column, 16);
    assert_int_equal(position, 18);
    assert_int_equal(mpi_unpack(packed, 18, &position, back, 1, MPI_INT, MPI_COMM_WORLD), MPI_ERR_TRUNCATE);
    position = 0;
    OK(mpi_pack(NULL, 0, MPI_INT, NULL, 0, &position, MPI_COMM_WORLD));
    free_type(made);
}

/* Displacements that are addresses, from MPI_BOTTOM on. */
static void test_bottom(void **state)
{
    int one = 11, two = 22, lengths[] = {1, 1}, packed[2];
    MPI_Aint addresses[2];
    MPI_Count position = 0;
    MPI_Datatype made, types[] = {MPI_INT, MPI_INT};
    OK(mpi_get_address(&two, &addresses[0]));
    OK(mpi_get_address(&one, &addresses[1]));
    OK(mpi_type_create_struct(2, ints(lengths), wide(addresses), types, &made));
    OK(mpi_type_commit(&made));
    OK(mpi_pack(MPI_BOTTOM, 1, made, packed, 8, &position, MPI_COMM_WORLD));
    assert_int_equal(packed[0], 22);
    assert_int_equal(packed[1], 11);
    assert_int_equal(mpi_aint_add(addresses[0], mpi_aint_diff(addresses[1], addresses[0])), addresses[1]);
    free_type(made);
}

/* A position far into a type of 2^40 blocks, and into nested ones, is found at once. */
static void test_position(void **state)
{
    MPI_Datatype vector, nested;
    uint8_t bytes[64], got[8];
    for (int i = 0; i < 64; i++) {
        bytes[i] = (uint8_t)i;
    }
    mpi_testing_call("MPI_Type_create_hvector_c");
    OK(mpi_type_create_hvector((MPI_Count)1 << 40, 2, 0, MPI_CHAR, &vector)); /* all blocks in one place */
    OK(mpi_type_create_hvector(1 << 20, 1, 0, vector, &nested));
    const struct mpi_type *type = mpi_type_find(nested);
    assert_int_equal(type->size, (MPI_Count)1 << 61);
    mpi_type_pack(type, 1, bytes, ((MPI_Count)1 << 60) + 4567891, got, 5);
    uint8_t expected[] = {1, 0, 1, 0, 1};
    assert_memory_equal(got, expected, 5);
    free_type(vector);
    free_type(nested);
    mpi_testing_call("MPI_Test");
}

int main(void)
{
    mpi_testing_start();
    return TESTS_RUN(test_predefined, test_all_handles, test_contents_small, test_contents_large, test_contents_handles,
                     test_overflow, test_check, test_dup, test_value_index, test_match_size, test_pack, test_bottom,
                     test_position);
}
