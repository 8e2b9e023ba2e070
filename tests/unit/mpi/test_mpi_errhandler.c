/* Error handlers: the handler that is called and its arguments, the line of a fatal error, references; handles as
 * integers. */
#include <sys/wait.h>

#include "mpi/runtime/errhandler.h"
#include "mpi/runtime/error.h"
#include "mpi/state/comm.h"
#include "mpi/state/process.h"
#include "mpi_functions.h"
#include "mpi_testing.h"
#include "tests/test.h"

#define OK(call) assert_int_equal(call, MPI_SUCCESS)

static MPI_Comm called_comm;
static int called_code;

static void handler(MPI_Comm *comm, int *code, ...)
{
    called_comm = *comm;
    called_code = *code;
}

static void test_handles(void **state)
{
    MPI_Errhandler made, kept, got, again;
    OK(mpi_comm_create_errhandler(handler, &made));
    kept = made;
    OK(mpi_comm_set_errhandler(MPI_COMM_WORLD, made));
    OK(mpi_comm_get_errhandler(MPI_COMM_WORLD, &got));
    assert_ptr_equal(got, made);
    OK(mpi_errhandler_free(&made));
    OK(mpi_errhandler_free(&got));
    assert_int_equal(mpi_errhandler_free(&kept), MPI_ERR_ERRHANDLER);
    OK(mpi_comm_get_errhandler(MPI_COMM_WORLD, &again)); /* a new handle for the handler that is still attached */
    assert_ptr_not_equal(again, kept);
    OK(mpi_comm_set_errhandler(MPI_COMM_SELF, again));
    OK(mpi_comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
    OK(mpi_comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    OK(mpi_errhandler_free(&again));
    OK(mpi_comm_get_errhandler(MPI_COMM_WORLD, &got));
    assert_ptr_equal(got, MPI_ERRORS_RETURN);
    OK(mpi_errhandler_free(&got)); /* also what was got of a predefined one is given back */
    assert_ptr_equal(got, MPI_ERRHANDLER_NULL);
}

/* The stderr output of a process that raises an error itself. Returns its exit code. */
static int fatal(void (*raise)(void), char *text, size_t text_bytes)
{
    int ends[2], status;
    size_t length = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        raise();
        _exit(99); /* it was not fatal */
    }
    close(ends[1]);
    for (ssize_t got = 1; got > 0 && length<text_bytes - 1; length += got> 0 ? (size_t)got : 0) {
        got = read(ends[0], text + length, text_bytes - 1 - length);
    }
    text[length] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static MPI_Session called_session;

static void session_handler(MPI_Session *session, int *code, ...)
{
    called_session = *session;
    called_code = *code;
}

static void raise_on_session(void)
{
    mpi_testing_call("MPI_Session_init");
    (void)mpi_errhandler_call_by(MPI_ERRORS_ARE_FATAL, MPI_ERR_OTHER, "text");
}

/* A handler that comes with the call. */
static void test_session(void **state)
{
    MPI_Errhandler made;
    char text[200];
    assert_int_equal(mpi_errhandler_call_by(MPI_ERRORS_RETURN, MPI_ERR_OTHER, "text"), MPI_ERR_OTHER);
    OK(mpi_session_create_errhandler(session_handler, &made));
    called_session = (MPI_Session)0x77;
    assert_int_equal(mpi_errhandler_call_by(made, MPI_ERR_TAG, "text"), MPI_ERR_TAG);
    assert_ptr_equal(called_session, MPI_SESSION_NULL);
    assert_int_equal(called_code, MPI_ERR_TAG);
    OK(mpi_errhandler_free(&made));
    assert_int_equal(fatal(raise_on_session, text, sizeof(text)), MPI_ERR_OTHER);
}

/* The text of the class is printed once. */
static void raise_class_text(void)
{
    mpi_testing_call("MPI_Waitall");
    OK(mpi_comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    mpi_error(MPI_COMM_WORLD, MPI_ERR_TAG, "one of 2 operations failed: %s", mpi_error_text(MPI_ERR_TAG));
}

static void raise_on_world(void)
{
    mpi_testing_call("MPI_Send");
    OK(mpi_comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL));
    mpi_error(MPI_COMM_WORLD, MPI_ERR_RANK, "there is no rank %d", 9);
}

static void raise_on_none(void)
{
    mpi_testing_call("MPI_Type_size");
    OK(mpi_comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ABORT));
    mpi_error(MPI_COMM_NULL, MPI_ERR_TYPE, "unknown datatype");
}

/* Before MPI_Init there is no MPI_COMM_SELF, and errors are fatal. */
static void raise_early(void)
{
    mpi_testing_call("MPI_Info_set");
    mpi_process.state = MPI_PROCESS_NEW;
    mpi_comm_world = mpi_comm_self = NULL;
    (void)mpi_info_set(MPI_INFO_NULL, "key", "value");
}

static void test_fatal(void **state)
{
    char text[1024];
    assert_int_equal(fatal(raise_on_world, text, sizeof(text)), MPI_ERR_RANK);
    assert_string_equal(
        text, "causeway: rank 3: MPI_Send on MPI_COMM_WORLD: there is no rank 9 (MPI_ERR_RANK: invalid rank)\n");
    assert_int_equal(fatal(raise_class_text, text, sizeof(text)), MPI_ERR_TAG);
    assert_string_equal(
        text,
        "causeway: rank 3: MPI_Waitall on MPI_COMM_WORLD: one of 2 operations failed: MPI_ERR_TAG: invalid tag\n");
    assert_int_equal(fatal(raise_on_none, text, sizeof(text)), MPI_ERR_TYPE);
    assert_string_equal(text, "causeway: rank 3: MPI_Type_size: unknown datatype (MPI_ERR_TYPE: invalid datatype)\n");
    assert_int_equal(fatal(raise_early, text, sizeof(text)), MPI_ERR_INFO);
    assert_string_equal(
        text, "causeway: MPI_Info_set: the info object is MPI_INFO_NULL (MPI_ERR_INFO: invalid info object)\n");
}

int main(void)
{
    mpi_testing_start();
    return TESTS_RUN(test_handles, test_session, test_fatal);
}
