/* Info objects: order, limits, strings and buffers, errors, copies; MPI_INFO_ENV. */
#include "mpi/runtime/info.h"
#include "mpi_functions.h"
#include "mpi_testing.h"
#include "tests/test.h"

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

static void check_value(MPI_Info info, const char *key, const char *expected)
{
    char value[MPI_MAX_INFO_VAL];
    int length = sizeof(value), flag;
    OK(mpi_info_get_string(info, key, &length, value, &flag));
    assert_int_equal(flag, expected != NULL);
    if (expected != NULL) {
        assert_string_equal(value, expected);
        assert_int_equal(length, strlen(expected) + 1);
    }
}

static void test_order(void **state)
{
    MPI_Info info;
    char key[MPI_MAX_INFO_KEY];
    int count;
    static const char *const expected[] = {"b", "c", "d"};
    OK(mpi_info_create(&info));
    OK(mpi_info_set(info, "b", "1"));
    OK(mpi_info_set(info, "a", "2"));
    OK(mpi_info_set(info, "c", "3"));
    OK(mpi_info_set(info, "b", "4"));
    OK(mpi_info_delete(info, "a"));
    OK(mpi_info_set(info, "d", ""));
    OK(mpi_info_get_nkeys(info, &count));
    assert_int_equal(count, 3);
    for (int i = 0; i < 3; i++) {
        OK(mpi_info_get_nthkey(info, i, key));
        assert_string_equal(key, expected[i]);
    }
    check_value(info, "b", "4");
    check_value(info, "d", "");
    check_value(info, "a", NULL);
    assert_int_equal(mpi_info_get_nthkey(info, 3, key), MPI_ERR_INFO_NOKEY);
    assert_int_equal(mpi_info_delete(info, "a"), MPI_ERR_INFO_NOKEY);
    OK(mpi_info_free(&info));
    assert_ptr_equal(info, MPI_INFO_NULL);
}

static void test_buffers(void **state)
{
    MPI_Info info;
    char value[8] = "-------";
    int length = 0, flag = 9;
    OK(mpi_info_create(&info));
    OK(mpi_info_set(info, "key", "abcdef"));
    OK(mpi_info_get_string(info, "key", &length, value, &flag));
    assert_int_equal(length, 7); /* what it takes; nothing was written */
    assert_string_equal(value, "-------");
    length = 4;
    OK(mpi_info_get_string(info, "key", &length, value, &flag));
    assert_int_equal(length, 7);
    assert_memory_equal(value, "abc\0---", 8);
    length = 4;
    OK(mpi_info_get_string(info, "none", &length, value, &flag));
    assert_int_equal(flag, 0);
    assert_int_equal(length, 4);
    assert_memory_equal(value, "abc\0---", 8);
    OK(mpi_info_get(info, "key", 4, value, &flag)); /* four characters and the null */
    assert_memory_equal(value, "abcd\0--", 8);
    OK(mpi_info_get_valuelen(info, "key", &length, &flag));
    assert_int_equal(length, 6);
    assert_int_equal(flag, 1);
    OK(mpi_info_free(&info));
}

static void test_limits(void **state)
{
    MPI_Info info;
    char key[MPI_MAX_INFO_KEY + 1], value[MPI_MAX_INFO_VAL + 1];
    memset(key, 'k', sizeof(key));
    memset(value, 'v', sizeof(value));
    key[MPI_MAX_INFO_KEY] = value[MPI_MAX_INFO_VAL] = '\0';
    OK(mpi_info_create(&info));
    assert_int_equal(mpi_info_set(info, key, "v"), MPI_ERR_INFO_KEY);
    assert_int_equal(mpi_info_set(info, "k", value), MPI_ERR_INFO_VALUE);
    key[MPI_MAX_INFO_KEY - 1] = value[MPI_MAX_INFO_VAL - 1] = '\0';
    OK(mpi_info_set(info, key, value));
    check_value(info, key, value);
    OK(mpi_info_free(&info));
}

static void test_copies(void **state)
{
    MPI_Info info, copy, given;
    OK(mpi_info_create(&info));
    OK(mpi_info_set(info, "key", "old"));
    struct mpi_info *kept = mpi_info_copy(mpi_info_find(info));
    OK(mpi_info_dup(info, &copy));
    OK(mpi_info_set(info, "key", "new"));
    check_value(copy, "key", "old");
    OK(mpi_info_free(&info));
    assert_string_equal(mpi_info_value(kept, "key"), "old");
    assert_null(mpi_info_value(kept, "none"));
    OK(mpi_info_return(kept, &given));
    mpi_info_free_object(kept);
    check_value(given, "key", "old");
    OK(mpi_info_free(&given));
    OK(mpi_info_free(&copy));
    OK(mpi_info_return(NULL, &given));
    check_value(given, "key", NULL);
    OK(mpi_info_free(&given));
}

static void test_env(void **state)
{
    MPI_Info made;
    int flag, length = 0;
    setenv("PMI_FD", "3", 1); /* before MPI_INFO_ENV is first asked for */
    setenv("PMI_SIZE", "4", 1);
    check_value(MPI_INFO_ENV, "maxprocs", "4");
    check_value(MPI_INFO_ENV, "thread_level", NULL); /* none was asked for before the start */
    check_value(MPI_INFO_ENV, "soft", NULL);
    OK(mpi_info_get_valuelen(MPI_INFO_ENV, "command", &length, &flag));
    assert_true(flag && length > 0);
    OK(mpi_info_get_valuelen(MPI_INFO_ENV, "wdir", &length, &flag));
    assert_true(flag && length > 0);
    char *arguments[] = {"program", "-x", "", "three", NULL};
    OK(mpi_info_create_env(4, arguments, &made));
    check_value(made, "command", "program");
    check_value(made, "argv", "-x  three");
    OK(mpi_info_set(made, "command", "other"));
    OK(mpi_info_free(&made));
    OK(mpi_info_create_env(1, arguments, &made));
    check_value(made, "argv", NULL);
    OK(mpi_info_free(&made));
    OK(mpi_info_create_env(0, NULL, &made));
    OK(mpi_info_free(&made));
    char *many[600];
    for (int i = 0; i < 600; i++) {
        many[i] = "0123456789";
    }
    OK(mpi_info_create_env(600, many, &made)); /* cut to the length of a value */
    OK(mpi_info_get_valuelen(made, "argv", &length, &flag));
    assert_int_equal(length, MPI_MAX_INFO_VAL - 1);
    OK(mpi_info_free(&made));
}

int main(void)
{
    mpi_testing_start();
    return TESTS_RUN(test_order, test_buffers, test_limits, test_copies, test_env);
}
