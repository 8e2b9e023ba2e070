/* Datatypes by precision and range: mpi/datatype/f90.c. */
#include "mpi/collective/operations/op.h"
#include "mpi/datatype/datatype.h"
#include "mpi_functions.h"
#include "mpi_testing.h"
#include "tests/test.h"

#define OK(call) assert_int_equal((call), MPI_SUCCESS)

static void test_kinds(void **state)
{
    const struct {
        int precision;
        int range;
        MPI_Datatype real;
        MPI_Datatype complex;
    } rows[] = {
        {0, 0, MPI_REAL4, MPI_COMPLEX8},
        {6, 37, MPI_REAL4, MPI_COMPLEX8},
        {6, 38, MPI_REAL8, MPI_COMPLEX16},
        {7, MPI_UNDEFINED, MPI_REAL8, MPI_COMPLEX16},
        {MPI_UNDEFINED, 307, MPI_REAL8, MPI_COMPLEX16},
        {16, 307, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
        {15, 308, MPI_LONG_DOUBLE, MPI_C_LONG_DOUBLE_COMPLEX},
        {19, 4931, MPI_REAL16, MPI_COMPLEX32},
        {33, MPI_UNDEFINED, MPI_REAL16, MPI_COMPLEX32},
    };
    for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++) {
        MPI_Datatype real, complex;
        OK(mpi_type_create_f90_real(rows[row].precision, rows[row].range, &real));
        OK(mpi_type_create_f90_complex(rows[row].precision, rows[row].range, &complex));
        assert_ptr_equal(mpi_type_find(real)->basic, rows[row].real);
        assert_ptr_equal(mpi_type_find(complex)->basic, rows[row].complex);
    }
    const struct {
        int range;
        MPI_Datatype integer;
    } integers[] = {{0, MPI_INTEGER1},  {2, MPI_INTEGER1},  {3, MPI_INTEGER2},   {5, MPI_INTEGER4},  {9, MPI_INTEGER4},
                    {10, MPI_INTEGER8}, {18, MPI_INTEGER8}, {19, MPI_INTEGER16}, {38, MPI_INTEGER16}};
    for (size_t row = 0; row < sizeof(integers) / sizeof(integers[0]); row++) {
        MPI_Datatype integer;
        OK(mpi_type_create_f90_integer(integers[row].range, &integer));
        assert_ptr_equal(mpi_type_find(integer)->basic, integers[row].integer);
    }
}

static void test_refusals(void **state)
{
    MPI_Datatype found = MPI_DATATYPE_NULL;
    assert_int_equal(mpi_type_create_f90_real(34, 10, &found), MPI_ERR_ARG);
    assert_int_equal(mpi_type_create_f90_complex(5, 4932, &found), MPI_ERR_ARG);
    assert_int_equal(mpi_type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &found), MPI_ERR_ARG);
    assert_int_equal(mpi_type_create_f90_integer(39, &found), MPI_ERR_ARG);
    assert_ptr_equal(found, MPI_DATATYPE_NULL);
}

/* The same again, predefined, with operations of its kind; MPI_Type_get_contents returns the requested values. */
static void test_properties(void **state)
{
    MPI_Datatype found, again, other;
    int combiner, asked[2], counts[3];
    struct mpi_op *op;
    OK(mpi_type_create_f90_real(10, 100, &found));
    OK(mpi_type_create_f90_real(10, 100, &again));
    OK(mpi_type_create_f90_real(10, 101, &other));
    assert_ptr_equal(found, again);
    assert_ptr_not_equal(found, other);
    assert_int_equal(mpi_type_free(&again), MPI_ERR_TYPE);
    OK(mpi_op_check(MPI_COMM_WORLD, MPI_SUM, mpi_type_find(found), &op));
    assert_int_equal(mpi_op_check(MPI_COMM_WORLD, MPI_BAND, mpi_type_find(found), &op), MPI_ERR_OP);
    assert_int_equal(mpi_op_check(MPI_COMM_WORLD, MPI_MAXLOC, mpi_type_find(found), &op), MPI_ERR_OP);
    OK(mpi_type_get_envelope(found, &counts[0], &counts[1], &counts[2], &combiner));
    assert_int_equal(combiner, MPI_COMBINER_F90_REAL);
    assert_true(counts[0] == 2 && counts[1] == 0 && counts[2] == 0);
    OK(mpi_type_get_contents(found, 2, 0, 0, asked, NULL, NULL));
    assert_true(asked[0] == 10 && asked[1] == 100);
}

int main(void)
{
    mpi_testing_start();
    return TESTS_RUN(test_kinds, test_refusals, test_properties);
}
