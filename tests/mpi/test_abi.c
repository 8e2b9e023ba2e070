/* Each row of the tables of the MPI 5.0 ABI: value and type of every constant, presence and strength of every function.
 * The types, and the layout of MPI_Status. The library has no other symbols than these, the conversions and those of
 * mpix.h. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../test.h"
#include "mpi.h"

struct constant {
    const char *name;
    intptr_t found;
    intptr_t wanted;
    int is_same_type;
};

#include "abi_rows.h"

/* mpix.h, and the conversions between C and Fortran in mpi.h */
static const char *const extensions[] = {
    "MPI_Comm_c2f",
    "MPI_Comm_f2c",
    "MPI_Errhandler_c2f",
    "MPI_Errhandler_f2c",
    "MPI_File_c2f",
    "MPI_File_f2c",
    "MPI_Group_c2f",
    "MPI_Group_f2c",
    "MPI_Info_c2f",
    "MPI_Info_f2c",
    "MPI_Message_c2f",
    "MPI_Message_f2c",
    "MPI_Op_c2f",
    "MPI_Op_f2c",
    "MPI_Request_c2f",
    "MPI_Request_f2c",
    "MPI_Session_c2f",
    "MPI_Session_f2c",
    "MPI_Type_c2f",
    "MPI_Type_f2c",
    "MPI_Win_c2f",
    "MPI_Win_f2c",
    "MPI_Status_c2f",
    "MPI_Status_f2c",
    "MPIX_Alltoallv_control1",
    "MPIX_Alltoallv_control1_c",
    "MPIX_Alltoallv_control2",
    "MPIX_Alltoallv_control2_c",
    "MPIX_Alltoallv_data_trans2",
    "MPIX_Alltoallv_data_trans2_c",
    "MPIX_Alltoallv_phases_free",
    "MPIX_Alltoallv_phases_load",
    "MPIX_Alltoallv_phases_save",
    "MPIX_Scatterv_open_group",
    "MPIX_Scatterv_open_group_c",
    "MPIX_Scatterv_data_movement",
    "MPIX_Scatterv_data_movement_c",
    "MPIX_Scatterv_close_group",
};

enum { EXTENSIONS = sizeof(extensions) / sizeof(extensions[0]) };

enum { CONSTANTS = sizeof(constants) / sizeof(constants[0]), FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

static void every_constant_has_its_value_and_type(void **state)
{
    assert_int_equal(CONSTANTS, 364);
    for (size_t row = 0; row < CONSTANTS; row++) {
        if (constants[row].found != constants[row].wanted || !constants[row].is_same_type) {
            fail_msg("%s is %ld, should be %ld%s", constants[row].name, (long)constants[row].found,
                     (long)constants[row].wanted, constants[row].is_same_type ? "" : "; its type differs");
        }
    }
}

static void statuses_have_the_layout_of_the_abi(void **state)
{
    assert_int_equal(sizeof(MPI_Status), 32);
    assert_int_equal(offsetof(MPI_Status, MPI_SOURCE), 0);
    assert_int_equal(offsetof(MPI_Status, MPI_TAG), 4);
    assert_int_equal(offsetof(MPI_Status, MPI_ERROR), 8);
    assert_int_equal(sizeof(MPI_Aint), sizeof(void *));
    assert_int_equal(sizeof(MPI_Count), 8);
    assert_int_equal(sizeof(MPI_Offset), 8);
}

#define IS_SAME(one, other) __builtin_types_compatible_p(one, other)

/* Handles are pointers to structures of their own, so that a compiler tells them apart. */
#define IS_HANDLE(type) (sizeof(type) == sizeof(void *) && !IS_SAME(type, void *))

static void types_are_those_of_the_abi(void **state)
{
    assert_true(IS_HANDLE(MPI_Comm) && IS_HANDLE(MPI_Datatype) && IS_HANDLE(MPI_Errhandler) && IS_HANDLE(MPI_File));
    assert_true(IS_HANDLE(MPI_Group) && IS_HANDLE(MPI_Info) && IS_HANDLE(MPI_Message) && IS_HANDLE(MPI_Op));
    assert_true(IS_HANDLE(MPI_Request) && IS_HANDLE(MPI_Session) && IS_HANDLE(MPI_Win));
    assert_true(IS_HANDLE(MPI_T_enum) && IS_HANDLE(MPI_T_cvar_handle) && IS_HANDLE(MPI_T_pvar_handle));
    assert_true(IS_HANDLE(MPI_T_pvar_session) && IS_HANDLE(MPI_T_event_registration));
    assert_true(IS_HANDLE(MPI_T_event_instance));
    assert_int_equal(sizeof(MPI_T_cb_safety), sizeof(int));
    assert_int_equal(sizeof(MPI_T_source_order), sizeof(int));
    assert_true(IS_SAME(MPI_Fint, int));
    assert_true(IS_SAME(MPI_Comm_errhandler_fn, MPI_Comm_errhandler_function));
    assert_true(IS_SAME(MPI_File_errhandler_fn, MPI_File_errhandler_function));
    assert_true(IS_SAME(MPI_Session_errhandler_fn, MPI_Session_errhandler_function));
    assert_true(IS_SAME(MPI_Win_errhandler_fn, MPI_Win_errhandler_function));
}

/* Handles are the same numbers in Fortran, statuses the same integers. */
static void handles_and_statuses_go_to_fortran_and_back(void **state)
{
    MPI_Status status = {.MPI_SOURCE = 3, .MPI_TAG = 5, .MPI_ERROR = 7, .MPI_internal = {1, 2, 3, 4, 5}};
    MPI_Status back;
    MPI_Fint numbers[MPI_F_STATUS_SIZE];
    assert_int_equal(MPI_Comm_c2f(MPI_COMM_WORLD), 0x101);
    assert_ptr_equal(MPI_Comm_f2c(0x101), MPI_COMM_WORLD);
    assert_ptr_equal(MPI_Type_f2c(MPI_Type_c2f(MPI_DOUBLE)), MPI_DOUBLE);
    assert_ptr_equal(MPI_Win_f2c(MPI_Win_c2f(MPI_WIN_NULL)), MPI_WIN_NULL);
    assert_int_equal(MPI_Status_c2f(&status, numbers), MPI_SUCCESS);
    assert_int_equal(numbers[MPI_F_TAG], 5);
    assert_int_equal(MPI_Status_f2c(numbers, &back), MPI_SUCCESS);
    assert_memory_equal(&status, &back, sizeof(status));
    assert_int_equal(MPI_Status_f2c(MPI_F_STATUS_IGNORE, &back), MPI_ERR_ARG);
    assert_int_equal(MPI_Status_f2c(MPI_F_STATUSES_IGNORE, &back), MPI_ERR_ARG);
    assert_int_equal(MPI_Status_c2f(MPI_STATUS_IGNORE, numbers), MPI_ERR_ARG);
}

/* Addresses that C and Fortran share. */
static const char *const variables[] = {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "mpi_f_status_ignore_",
                                        "mpi_f_statuses_ignore_"};

enum { VARIABLES = sizeof(variables) / sizeof(variables[0]) };

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
        assert_true_msg(strstr(symbols, weak) != NULL && strstr(symbols, strong) != NULL,
                        "%s is not weak, or P%s not strong, or one is missing", names[row], names[row]);
    }
}

static void every_function_is_weak_and_has_a_strong_name_for_tools(void **state)
{
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
    char *symbols = library_symbols(), *rest = NULL;
    size_t count = 0;
    for (char *line = strtok_r(symbols, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        const char *symbol = strrchr(line, ' ') + 1;
        const char *name = symbol + (symbol[0] == 'P');
        if (!is_listed(name, functions, FUNCTIONS) && !is_listed(name, extensions, EXTENSIONS) &&
            !is_listed(symbol, variables, VARIABLES)) {
            fail_msg("%s is exported, but is no function of MPI 5.0, nor of mpix.h", symbol);
        }
        count++;
    }
    assert_int_equal(count, 2 * (FUNCTIONS + EXTENSIONS) + VARIABLES);
    free(symbols);
}

int main(void)
{
    return TESTS_RUN(every_constant_has_its_value_and_type, types_are_those_of_the_abi,
                     handles_and_statuses_go_to_fortran_and_back, statuses_have_the_layout_of_the_abi,
                     every_function_is_weak_and_has_a_strong_name_for_tools, the_library_has_nothing_else);
}
