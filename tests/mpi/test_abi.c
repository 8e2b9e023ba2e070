/* Each row of the tables of the MPI 5.0 ABI: value and type of every constant, presence and strength of every function, the layout of MPI_Status; and that the library has
 * nothing beside them but what mpix.h declares. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"

struct constant {
    const char *name;
    intptr_t found;
    intptr_t wanted;
    int is_same_type;
};

#include "abi_rows.h"

/* mpix.h */
static const char *const extensions[] = {
    "MPIX_Alltoallv_control1",       "MPIX_Alltoallv_control1_c",  "MPIX_Alltoallv_control2",
    "MPIX_Alltoallv_control2_c",     "MPIX_Alltoallv_data_trans2", "MPIX_Alltoallv_data_trans2_c",
    "MPIX_Alltoallv_phases_free",    "MPIX_Alltoallv_phases_load", "MPIX_Alltoallv_phases_save",
    "MPIX_Scatterv_open_group",      "MPIX_Scatterv_open_group_c", "MPIX_Scatterv_data_movement",
    "MPIX_Scatterv_data_movement_c", "MPIX_Scatterv_close_group",
};

enum { EXTENSIONS = sizeof(extensions) / sizeof(extensions[0]) };

enum { CONSTANTS = sizeof(constants) / sizeof(constants[0]), FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

static void every_constant_has_its_value_and_type(void **state)
{
    (void)state;
    assert_int_equal(CONSTANTS, 295);
    for (size_t row = 0; row < CONSTANTS; row++) {
        if (constants[row].found != constants[row].wanted || !constants[row].is_same_type) {
            fail_msg("%s is %ld, should be %ld%s", constants[row].name, (long)constants[row].found,
                     (long)constants[row].wanted, constants[row].is_same_type ? "" : "; its type differs");
        }
    }
}

static void statuses_have_the_layout_of_the_abi(void **state)
{
    (void)state;
    assert_int_equal(sizeof(MPI_Status), 32);
    assert_int_equal(offsetof(MPI_Status, MPI_SOURCE), 0);
    assert_int_equal(offsetof(MPI_Status, MPI_TAG), 4);
    assert_int_equal(offsetof(MPI_Status, MPI_ERROR), 8);
    assert_int_equal(sizeof(MPI_Aint), sizeof(void *));
    assert_int_equal(sizeof(MPI_Count), 8);
    assert_int_equal(sizeof(MPI_Offset), 8);
}

/* The dynamic symbols of the library as nm prints them: " W MPI_Send\n". */
static char *library_symbols(void)
{
    Dl_info info;
    char command[4200];
    enum { TEXT_BYTES = 1 << 20 };
    int version, subversion;
    assert_int_equal(MPI_Get_version(&version, &subversion), MPI_SUCCESS); /* a call, so that the library is loaded */
    assert_int_equal(version, 5);
    assert_int_equal(subversion, 0);
    assert_int_not_equal(dladdr(dlsym(RTLD_DEFAULT, "MPI_Send"), &info), 0);
    assert_non_null(strstr(info.dli_fname, "libmpi_abi.so.1"));
    snprintf(command, sizeof(command), "nm --dynamic --defined-only '%s'", info.dli_fname);
    FILE *pipe = popen(command, "r");
    char *text = calloc(1, TEXT_BYTES);
    assert_non_null(pipe);
    assert_non_null(text);
    assert_true(fread(text, 1, TEXT_BYTES - 1, pipe) < TEXT_BYTES - 1);
    assert_int_equal(pclose(pipe), 0);
    return text;
}

static void expect_both_names(const char *symbols, const char *const names[], size_t count)
{
    for (size_t row = 0; row < count; row++) {
        char weak[80], strong[80];
        snprintf(weak, sizeof(weak), " W %s\n", names[row]);
        snprintf(strong, sizeof(strong), " T P%s\n", names[row]);
        if (strstr(symbols, weak) == NULL || strstr(symbols, strong) == NULL) {
            fail_msg("%s is not weak, or P%s not strong, or one is missing", names[row], names[row]);
        }
    }
}

static void every_function_is_weak_and_has_a_strong_name_for_tools(void **state)
{
    (void)state;
    char *symbols = library_symbols();
    assert_int_equal(FUNCTIONS, 664);
    expect_both_names(symbols, functions, FUNCTIONS);
    expect_both_names(symbols, extensions, EXTENSIONS);
    free(symbols);
}

static int is_listed(const char *name, const char *const names[], size_t count)
{
    size_t row = 0;
    while (row < count && strcmp(names[row], name) != 0) {
        row++;
    }
    return row < count;
}

static void the_library_has_nothing_else(void **state)
{
    (void)state;
    char *symbols = library_symbols(), *rest = NULL;
    size_t count = 0;
    for (char *line = strtok_r(symbols, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        const char *symbol = strrchr(line, ' ') + 1;
        const char *name = symbol + (symbol[0] == 'P');
        if (!is_listed(name, functions, FUNCTIONS) && !is_listed(name, extensions, EXTENSIONS)) {
            fail_msg("%s is exported, but is no function of MPI 5.0, nor of mpix.h", symbol);
        }
        count++;
    }
    assert_int_equal(count, 2 * (FUNCTIONS + EXTENSIONS));
    free(symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_constant_has_its_value_and_type),
        cmocka_unit_test(statuses_have_the_layout_of_the_abi),
        cmocka_unit_test(every_function_is_weak_and_has_a_strong_name_for_tools),
        cmocka_unit_test(the_library_has_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
