/* Attributes: keys and their life, copying, deleting, errors of the program's functions, what the library tells. */
#include <stdlib.h>
#include <string.h>

#include "mpi/datatype/datatype.h"
#include "mpi/runtime/attribute.h"
#include "mpi/state/comm.h"
#include "mpi_functions.h"
#include "mpi_testing.h"
#include "tests/test.h"

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

/* What the functions below have been called with, oldest first. */
static struct {
    int keyval;
    void *value;
} deleted[8];
static int deleted_count;
static int failing_keyval;

static int delete_comm(MPI_Comm comm, int keyval, void *value, void *extra_state)
{
    assert_ptr_equal(comm, MPI_COMM_WORLD);
    assert_ptr_equal(extra_state, &deleted_count);
    if (keyval == failing_keyval) {
        return MPI_ERR_OTHER;
    }
    deleted[deleted_count].keyval = keyval;
    deleted[deleted_count++].value = value;
    return MPI_SUCCESS;
}

/* Copies values that are odd, plus one; fails on 13. */
static int copy_comm(MPI_Comm comm, int keyval, void *extra_state, void *in, void *out, int *flag)
{
    assert_ptr_equal(comm, MPI_COMM_WORLD);
    assert_ptr_equal(extra_state, &deleted_count);
    *flag = (intptr_t)in % 2 == 1;
    *(void **)out = (void *)((intptr_t)in + 1);
    return (intptr_t)in == 13 ? MPI_ERR_INTERN : MPI_SUCCESS;
}

static int key(MPI_Comm_copy_attr_function *copy)
{
    int made;
    OK(mpi_comm_create_keyval(copy, delete_comm, &made, &deleted_count));
    assert_int_not_equal(made, MPI_KEYVAL_INVALID);
    return made;
}

static void check_value(int keyval, intptr_t expected)
{
    void *value = (void *)-1;
    int flag = 9;
    OK(mpi_comm_get_attr(MPI_COMM_WORLD, keyval, &value, &flag));
    assert_int_equal(flag, expected != -1);
    assert_ptr_equal(value, (void *)expected);
}

static int setup(void **state)
{
    deleted_count = 0;
    failing_keyval = 0;
    return 0;
}

static void test_values(void **state)
{
    int first = key(MPI_COMM_NULL_COPY_FN), second = key(MPI_COMM_NULL_COPY_FN);
    check_value(first, -1);
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, first, (void *)1));
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, second, NULL));
    check_value(first, 1);
    check_value(second, 0);
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, first, (void *)2)); /* deletes the old one */
    assert_int_equal(deleted_count, 1);
    assert_ptr_equal(deleted[0].value, (void *)1);
    check_value(first, 2);
    OK(mpi_comm_delete_attr(MPI_COMM_WORLD, second));
    check_value(second, -1);
    OK(mpi_comm_delete_attr(MPI_COMM_WORLD, second));
    assert_int_equal(deleted_count, 2);
    OK(mpi_attributes_free_comm(MPI_COMM_WORLD, &mpi_comm_world->attributes));
    assert_null(mpi_comm_world->attributes);
    OK(mpi_comm_free_keyval(&first));
    OK(mpi_comm_free_keyval(&second));
    assert_int_equal(first, MPI_KEYVAL_INVALID);
}

/* The last set goes first; the first function that refuses stops it. */
static void test_delete_order(void **state)
{
    int keys[3];
    for (int i = 0; i < 3; i++) {
        keys[i] = key(MPI_COMM_NULL_COPY_FN);
        OK(mpi_comm_set_attr(MPI_COMM_WORLD, keys[i], (void *)(intptr_t)(10 + i)));
    }
    failing_keyval = keys[1];
    assert_int_equal(mpi_attributes_free_comm(MPI_COMM_WORLD, &mpi_comm_world->attributes), MPI_ERR_OTHER);
    assert_int_equal(deleted_count, 1);
    assert_int_equal(deleted[0].keyval, keys[2]);
    check_value(keys[1], 11);
    assert_int_equal(mpi_comm_delete_attr(MPI_COMM_WORLD, keys[1]), MPI_ERR_OTHER);
    assert_int_equal(mpi_comm_set_attr(MPI_COMM_WORLD, keys[1], NULL), MPI_ERR_OTHER);
    check_value(keys[1], 11);
    failing_keyval = 0;
    OK(mpi_attributes_free_comm(MPI_COMM_WORLD, &mpi_comm_world->attributes));
    assert_int_equal(deleted_count, 3);
    assert_int_equal(deleted[1].keyval, keys[1]);
    assert_int_equal(deleted[2].keyval, keys[0]);
    for (int i = 0; i < 3; i++) {
        OK(mpi_comm_free_keyval(&keys[i]));
    }
}

static void test_copy(void **state)
{
    struct mpi_attributes *copy = NULL, *original = mpi_comm_world->attributes;
    int none = key(MPI_COMM_NULL_COPY_FN), same = key(MPI_COMM_DUP_FN), odd = key(copy_comm), even = key(copy_comm);
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, none, (void *)5));
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, same, (void *)6));
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, odd, (void *)7));
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, even, (void *)8));
    original = mpi_comm_world->attributes;
    OK(mpi_attributes_copy_comm(MPI_COMM_WORLD, original, &copy));
    mpi_comm_world->attributes = copy;
    check_value(none, -1);
    check_value(same, 6);
    check_value(odd, 8);
    check_value(even, -1);
    OK(mpi_attributes_free_comm(MPI_COMM_WORLD, &mpi_comm_world->attributes));
    mpi_comm_world->attributes = original;
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, even, (void *)13));
    copy = (struct mpi_attributes *)1;
    assert_int_equal(mpi_attributes_copy_comm(MPI_COMM_WORLD, original, &copy), MPI_ERR_INTERN);
    assert_null(copy);
    OK(mpi_attributes_free_comm(MPI_COMM_WORLD, &mpi_comm_world->attributes));
    OK(mpi_comm_free_keyval(&none));
    OK(mpi_comm_free_keyval(&same));
    OK(mpi_comm_free_keyval(&odd));
    OK(mpi_comm_free_keyval(&even));
}

/* A freed key works on as long as there is a value of it, and not longer. */
static void test_freed_key(void **state)
{
    void *value;
    int made = key(MPI_COMM_NULL_COPY_FN), kept = made, flag;
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, made, (void *)3));
    OK(mpi_comm_free_keyval(&made));
    made = kept;
    OK(mpi_comm_free_keyval(&made)); /* a copy of it, as with MPICH and Open MPI */
    assert_int_equal(made, MPI_KEYVAL_INVALID);
    check_value(kept, 3);
    OK(mpi_comm_delete_attr(MPI_COMM_WORLD, kept));
    assert_int_equal(deleted_count, 1);
    assert_int_equal(mpi_comm_get_attr(MPI_COMM_WORLD, kept, &value, &flag), MPI_ERR_KEYVAL);
    assert_int_equal(mpi_comm_set_attr(MPI_COMM_WORLD, kept, NULL), MPI_ERR_KEYVAL);
    assert_int_equal(mpi_comm_free_keyval(&kept), MPI_ERR_KEYVAL);
}

/* A delete function that deletes the other attribute, of which it is told twice otherwise. */
static int delete_other(MPI_Comm comm, int keyval, void *value, void *extra_state)
{
    deleted_count++;
    return mpi_comm_delete_attr(comm, *(int *)extra_state);
}

static void test_nested(void **state)
{
    int first, second, third;
    OK(mpi_comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &first, NULL));
    OK(mpi_comm_create_keyval(MPI_COMM_DUP_FN, delete_other, &second, &first));
    OK(mpi_comm_create_keyval(MPI_COMM_DUP_FN, delete_other, &third, &second));
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, first, NULL));
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, second, NULL));
    OK(mpi_comm_set_attr(MPI_COMM_WORLD, third, NULL));
    OK(mpi_attributes_free_comm(MPI_COMM_WORLD, &mpi_comm_world->attributes));
    assert_int_equal(deleted_count, 2);
    OK(mpi_comm_free_keyval(&first));
    OK(mpi_comm_free_keyval(&second));
    OK(mpi_comm_free_keyval(&third));
}

static void test_library(void **state)
{
    static const struct {
        int keyval;
        int value;
    } rows[] = {{MPI_TAG_UB, MPI_TAG_MAX},
                {MPI_IO, MPI_ANY_SOURCE},
                {MPI_HOST, MPI_PROC_NULL},
                {MPI_LASTUSEDCODE, MPI_ERR_LASTCODE}};
    int *value, flag, copy;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        OK(mpi_comm_get_attr(MPI_COMM_SELF, rows[i].keyval, &value, &flag));
        assert_int_equal(flag, 1);
        assert_int_equal(*value, rows[i].value);
        copy = rows[i].keyval;
        assert_int_equal(mpi_comm_set_attr(MPI_COMM_WORLD, copy, NULL), MPI_ERR_KEYVAL);
        assert_int_equal(mpi_comm_delete_attr(MPI_COMM_WORLD, copy), MPI_ERR_KEYVAL);
        assert_int_equal(mpi_comm_free_keyval(&copy), MPI_ERR_KEYVAL);
    }
    OK(mpi_comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &value, &flag)); /* no job, nobody knows */
    assert_int_equal(flag, 0);
    OK(mpi_comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    OK(mpi_add_error_class(&copy));
    OK(mpi_comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &value, &flag));
    assert_int_equal(*value, copy);
}

static int types_deleted;
static bool refuses_null;

static int delete_type(MPI_Datatype datatype, int keyval, void *value, void *extra_state)
{
    types_deleted++;
    return value == NULL && refuses_null ? MPI_ERR_ARG : MPI_SUCCESS;
}

static int copy_type(MPI_Datatype old, int keyval, void *extra_state, void *in, void *out, int *flag)
{
    *flag = 1;
    *(void **)out = extra_state;
    return in == NULL ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

static void test_types(void **state)
{
    MPI_Datatype made, copy = MPI_INT;
    int keyval, flag, comm_key = key(MPI_COMM_DUP_FN);
    void *value;
    types_deleted = 0;
    refuses_null = true;
    OK(mpi_type_create_keyval(copy_type, delete_type, &keyval, &types_deleted));
    OK(mpi_type_contiguous(2, MPI_INT, &made));
    OK(mpi_type_set_attr(made, keyval, (void *)4));
    OK(mpi_type_dup(made, &copy));
    OK(mpi_type_get_attr(copy, keyval, &value, &flag));
    assert_ptr_equal(value, &types_deleted);
    OK(mpi_type_free(&copy));
    assert_int_equal(types_deleted, 1);
    OK(mpi_type_set_attr(made, keyval, NULL));
    assert_int_equal(types_deleted, 2);
    copy = MPI_INT;
    assert_int_equal(mpi_type_dup(made, &copy), MPI_ERR_BUFFER);
    assert_ptr_equal(copy, MPI_INT);
    assert_int_equal(mpi_type_free(&made), MPI_ERR_ARG); /* refused, so the type is still there */
    assert_non_null(mpi_type_find(made));
    assert_int_equal(mpi_type_delete_attr(made, keyval), MPI_ERR_ARG);
    /* Keys of one kind are unknown to the other. */
    assert_int_equal(mpi_type_set_attr(made, comm_key, NULL), MPI_ERR_KEYVAL);
    assert_int_equal(mpi_comm_set_attr(MPI_COMM_WORLD, keyval, NULL), MPI_ERR_KEYVAL);
    assert_int_equal(mpi_type_set_attr(MPI_DATATYPE_NULL, keyval, NULL), MPI_ERR_TYPE);
    refuses_null = false;
    OK(mpi_type_free(&made));
    OK(mpi_comm_free_keyval(&comm_key));
    OK(mpi_type_free_keyval(&keyval));
}

/* Attributes go with the last handle, not with one that MPI_Type_get_contents has added. */
static void test_type_handles(void **state)
{
    MPI_Datatype made, copy, again[1];
    int keyval, flag, integers[1];
    MPI_Aint addresses[1];
    void *value;
    types_deleted = 0;
    OK(mpi_type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_type, &keyval, NULL));
    OK(mpi_type_contiguous(2, MPI_INT, &made));
    OK(mpi_type_set_attr(made, keyval, &keyval));
    OK(mpi_type_dup(made, &copy));
    OK(mpi_type_get_attr(copy, keyval, &value, &flag));
    assert_int_equal(flag, 0);
    OK(mpi_type_get_contents(copy, 0, 0, 1, integers, addresses, again));
    OK(mpi_type_free(&again[0]));
    assert_int_equal(types_deleted, 0);
    OK(mpi_type_get_attr(made, keyval, &value, &flag));
    assert_int_equal(flag, 1);
    OK(mpi_type_free(&made));
    assert_int_equal(types_deleted, 1);
    OK(mpi_type_free(&copy));
    OK(mpi_type_free_keyval(&keyval));
}

static void test_old_names(void **state)
{
    int made, flag;
    void *value;
    OK(mpi_keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, &made, NULL));
    OK(mpi_attr_put(MPI_COMM_WORLD, made, (void *)9));
    OK(mpi_attr_get(MPI_COMM_WORLD, made, &value, &flag));
    assert_ptr_equal(value, (void *)9);
    OK(mpi_attr_delete(MPI_COMM_WORLD, made));
    OK(mpi_keyval_free(&made));
    assert_int_equal(mpi_attr_put(MPI_COMM_WORLD, made, NULL), MPI_ERR_KEYVAL);
    assert_int_equal(mpi_attr_put(MPI_COMM_NULL, made, NULL), MPI_ERR_COMM);
    OK(mpi_attributes_free_comm(MPI_COMM_WORLD, &mpi_comm_world->attributes));
}

int main(void)
{
    mpi_testing_start();
    return TESTS_RUN_EACH(setup, NULL, test_values, test_delete_order, test_copy, test_freed_key, test_nested,
                          test_library, test_types, test_old_names, test_type_handles);
}
