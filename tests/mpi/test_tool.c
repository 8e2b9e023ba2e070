/* MPI_T has nothing in it, and says so in the codes of the standard; before MPI_Init, too. */
#include <string.h>

#include "../test.h"
#include "mpi.h"

static void start(void)
{
    int provided = -1;
    assert_int_equal(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided), MPI_SUCCESS);
    assert_int_equal(provided, MPI_THREAD_SERIALIZED);
}

static void calls_outside_are_rejected(void **state)
{
    int number = 7;
    assert_int_equal(MPI_T_finalize(), MPI_T_ERR_NOT_INITIALIZED);
    assert_int_equal(MPI_T_cvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
    assert_int_equal(MPI_T_pvar_get_index("x", MPI_T_PVAR_CLASS_LEVEL, &number), MPI_T_ERR_NOT_INITIALIZED);
    assert_int_equal(number, 7);
    start();
    start();
    assert_int_equal(MPI_T_finalize(), MPI_SUCCESS);
    assert_int_equal(MPI_T_cvar_get_num(&number), MPI_SUCCESS);
    assert_int_equal(MPI_T_finalize(), MPI_SUCCESS);
    assert_int_equal(MPI_T_cvar_get_num(&number), MPI_T_ERR_NOT_INITIALIZED);
}

static void there_is_none_of_anything(void **state)
{
    int (*const counts[])(int *) = {MPI_T_cvar_get_num,   MPI_T_pvar_get_num,     MPI_T_event_get_num,
                                    MPI_T_source_get_num, MPI_T_category_get_num, MPI_T_category_changed};
    int (*const indices[])(const char *, int *) = {MPI_T_cvar_get_index, MPI_T_event_get_index,
                                                   MPI_T_category_get_index};
    start();
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        int number = 7;
        assert_int_equal(counts[i](NULL), MPI_T_ERR_INVALID);
        assert_int_equal(counts[i](&number), MPI_SUCCESS);
        assert_int_equal(number, 0);
    }
    for (size_t i = 0; i < sizeof(indices) / sizeof(indices[0]); i++) {
        int index = 7;
        assert_int_equal(indices[i]("eager_limit", &index), MPI_T_ERR_INVALID_NAME);
        assert_int_equal(index, 7);
    }
    int count;
    MPI_T_cvar_handle handle;
    assert_int_equal(MPI_T_cvar_handle_alloc(0, NULL, &handle, &count), MPI_T_ERR_INVALID_INDEX);
    assert_int_equal(MPI_T_cvar_get_info(0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
                     MPI_T_ERR_INVALID_INDEX);
    assert_int_equal(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &count), MPI_T_ERR_INVALID_HANDLE);
    assert_int_equal(MPI_T_category_get_cvars(0, 1, &count), MPI_T_ERR_INVALID_INDEX);
    assert_int_equal(MPI_T_enum_get_item(MPI_T_ENUM_NULL, 0, &count, NULL, NULL), MPI_T_ERR_INVALID_HANDLE);
    assert_int_equal(MPI_T_finalize(), MPI_SUCCESS);
}

static void sessions_are_made_and_freed(void **state)
{
    enum { MANY = 32 };
    MPI_T_pvar_session made[MANY], none = MPI_T_PVAR_SESSION_NULL, old;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    start();
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(MPI_T_pvar_session_create(&made[i]), MPI_SUCCESS);
    }
    assert_int_equal(MPI_T_pvar_session_create(&none), MPI_T_ERR_OUT_OF_SESSIONS);
    assert_int_equal(MPI_T_pvar_start(made[3], MPI_T_PVAR_ALL_HANDLES), MPI_SUCCESS);
    assert_int_equal(MPI_T_pvar_start(made[3], handle), MPI_T_ERR_INVALID_HANDLE);
    assert_int_equal(MPI_T_pvar_read(none, handle, made), MPI_T_ERR_INVALID_SESSION);
    assert_int_equal(MPI_T_pvar_session_free(&none), MPI_T_ERR_INVALID_SESSION);
    old = made[3];
    assert_int_equal(MPI_T_pvar_session_free(&made[3]), MPI_SUCCESS);
    assert_ptr_equal(made[3], MPI_T_PVAR_SESSION_NULL);
    assert_int_equal(MPI_T_pvar_session_free(&old), MPI_T_ERR_INVALID_SESSION);
    assert_int_equal(MPI_T_pvar_session_create(&made[3]), MPI_SUCCESS);
    assert_int_equal(MPI_T_finalize(), MPI_SUCCESS); /* ends the sessions, too */
    start();
    assert_int_equal(MPI_T_pvar_session_free(&made[3]), MPI_T_ERR_INVALID_SESSION);
    assert_int_equal(MPI_T_finalize(), MPI_SUCCESS);
}

static void codes_have_texts(void **state)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    for (int code = MPI_T_ERR_CANNOT_INIT; code <= MPI_T_ERR_PVAR_NO_ATOMIC; code++) {
        assert_int_equal(MPI_Error_class(code, &class), MPI_SUCCESS);
        assert_int_equal(class, code);
        assert_int_equal(MPI_Error_string(code, text, &length), MPI_SUCCESS);
        assert_ptr_equal(strstr(text, "MPI_T_ERR_"), text);
    }
}

int main(void)
{
    return TESTS_RUN(calls_outside_are_rejected, there_is_none_of_anything, sessions_are_made_and_freed,
                     codes_have_texts);
}
