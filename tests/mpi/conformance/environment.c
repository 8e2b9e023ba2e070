/* The environment: versions, clocks, error classes, memory, start and end (MPI 5.0, chapters 9 and 11). */
#include "tests/mpi/expect.h"

#include <pthread.h>
#include <string.h>

/* Calls that are allowed before MPI_Init and after MPI_Finalize. */
static void callable_at_any_time(int initialized, int finalized)
{
    int flag = -1, version = 0, subversion = -1, length = 0;
    static char text[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Info info = MPI_INFO_NULL;
    EXPECT_EQUAL(MPI_Initialized(&flag), MPI_SUCCESS);
    EXPECT_EQUAL(flag, initialized);
    EXPECT_EQUAL(MPI_Finalized(&flag), MPI_SUCCESS);
    EXPECT_EQUAL(flag, finalized);
    EXPECT_EQUAL(MPI_Get_version(&version, &subversion), MPI_SUCCESS);
    EXPECT_EQUAL(version, MPI_VERSION);
    EXPECT_EQUAL(subversion, MPI_SUBVERSION);
    EXPECT_EQUAL(MPI_Get_library_version(text, &length), MPI_SUCCESS);
    EXPECT(length > 0 && length < MPI_MAX_LIBRARY_VERSION_STRING);
    EXPECT_EQUAL(strlen(text), length);
    EXPECT_EQUAL(MPI_Abi_get_version(&version, &subversion), MPI_SUCCESS);
    EXPECT_EQUAL(version, MPI_ABI_VERSION);
    EXPECT_EQUAL(subversion, MPI_ABI_SUBVERSION);
    EXPECT_EQUAL(MPI_Info_create(&info), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Info_set(info, "key", "value"), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Info_free(&info), MPI_SUCCESS);
    EXPECT_CLASS(MPI_ERR_TAG, MPI_ERR_TAG);
}

static void threads(int provided)
{
    int level = -1, flag = 0;
    EXPECT(MPI_THREAD_SINGLE < MPI_THREAD_FUNNELED && MPI_THREAD_FUNNELED < MPI_THREAD_SERIALIZED);
    EXPECT(provided >= MPI_THREAD_SERIALIZED && provided <= MPI_THREAD_MULTIPLE);
    EXPECT_EQUAL(MPI_Query_thread(&level), MPI_SUCCESS);
    EXPECT_EQUAL(level, provided);
    EXPECT_EQUAL(MPI_Is_thread_main(&flag), MPI_SUCCESS);
    EXPECT(flag);
}

static void clocks(void)
{
    double tick = MPI_Wtick(), last = MPI_Wtime();
    EXPECT(tick > 0 && tick < 1);
    for (int i = 0; i < 1000; i++) {
        double now = MPI_Wtime();
        EXPECT(now >= last);
        last = now;
    }
    while (MPI_Wtime() == last) { /* it goes on */
    }
}

static void names(void)
{
    char name[MPI_MAX_PROCESSOR_NAME];
    int length = -1;
    EXPECT_EQUAL(MPI_Get_processor_name(name, &length), MPI_SUCCESS);
    EXPECT(length > 0 && length < MPI_MAX_PROCESSOR_NAME);
    EXPECT_EQUAL(strlen(name), length);
}

static int attribute(int keyval, int *value)
{
    int *found = NULL, flag = 0;
    EXPECT_EQUAL(MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &found, &flag), MPI_SUCCESS);
    *value = flag ? *found : 0;
    return flag;
}

static void predefined_attributes(void)
{
    int value;
    EXPECT(attribute(MPI_TAG_UB, &value));
    EXPECT(value >= 32767);
    EXPECT(attribute(MPI_IO, &value));
    EXPECT(attribute(MPI_WTIME_IS_GLOBAL, &value));
    EXPECT(value == 0 || value == 1);
    EXPECT(attribute(MPI_LASTUSEDCODE, &value));
    EXPECT(value >= MPI_ERR_LASTCODE);
    if (attribute(MPI_UNIVERSE_SIZE, &value)) {
        EXPECT(value >= 1);
    }
}

/* All classes have a text of their own, and are codes of their own class. */
static void predefined_classes(void)
{
    char text[MPI_MAX_ERROR_STRING], previous[MPI_MAX_ERROR_STRING] = "";
    int length;
    for (int code = MPI_SUCCESS; code <= MPI_ERR_ABI; code++) {
        EXPECT_CLASS(code, code);
        EXPECT_EQUAL(MPI_Error_string(code, text, &length), MPI_SUCCESS);
        EXPECT(length > 0 && length < MPI_MAX_ERROR_STRING);
        EXPECT_EQUAL(strlen(text), length);
        EXPECT(strcmp(text, previous) != 0);
        strcpy(previous, text);
    }
    EXPECT(MPI_Error_string(-5, text, &length) != MPI_SUCCESS);
    EXPECT(MPI_Error_class(0x7fffffff, &length) != MPI_SUCCESS);
}

static void expect_text(int code, const char *wanted)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = -1;
    EXPECT_EQUAL(MPI_Error_string(code, text, &length), MPI_SUCCESS);
    EXPECT_EQUAL(length, strlen(wanted));
    EXPECT(strcmp(text, wanted) == 0);
}

static void expect_begins(int code, const char *wanted)
{
    char text[MPI_MAX_ERROR_STRING];
    int length = -1;
    EXPECT_EQUAL(MPI_Error_string(code, text, &length), MPI_SUCCESS);
    EXPECT_EQUAL(length, strlen(text));
    EXPECT(strncmp(text, wanted, strlen(wanted)) == 0);
}

/* Has an error of its own. */
static void failing_handler(MPI_Comm *comm, int *code, ...)
{
    int value = 0;
    EXPECT(*comm != MPI_COMM_SELF);
    expect_begins(*code, "MPI_ERR_RANK: invalid rank: MPI_Send on checked: destination 99 is none of the ");
    EXPECT_EQUAL(MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_SELF), *code);
    expect_begins(*code, "MPI_ERR_RANK: invalid rank: MPI_Send on MPI_COMM_SELF: destination 99 ");
}

static void *other_thread(void *context)
{
    expect_text(MPI_ERR_RANK, "MPI_ERR_RANK: invalid rank");
    return context;
}

/* The class is followed by the call and the text of the last error, if this thread has raised it and it has that
 * class. */
static void last_error(void)
{
    const char *sent = "MPI_ERR_RANK: invalid rank: MPI_Send on MPI_COMM_WORLD: destination 99 is none of the ";
    int value = 0;
    EXPECT_EQUAL(MPI_Send(&value, 1, MPI_INT, 99, 0, MPI_COMM_WORLD), MPI_ERR_RANK);
    expect_begins(MPI_ERR_RANK, sent);
    expect_text(MPI_ERR_TAG, "MPI_ERR_TAG: invalid tag");
    pthread_t thread;
    EXPECT_EQUAL(pthread_create(&thread, NULL, other_thread, NULL), 0);
    EXPECT_EQUAL(pthread_join(thread, NULL), 0);
    expect_begins(MPI_ERR_RANK, sent);
    /* an error of the same class */
    MPI_Win window = MPI_WIN_NULL;
    MPI_Session session = MPI_SESSION_NULL;
    EXPECT_CLASS(MPI_Win_create(&value, sizeof(value), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window),
                 MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_ERR_UNSUPPORTED_OPERATION);
    expect_begins(MPI_ERR_UNSUPPORTED_OPERATION,
                  "MPI_ERR_UNSUPPORTED_OPERATION: unsupported operation: MPI_Session_init: MPI_Session_init is not ");
    /* a handler whose own call fails */
    MPI_Comm comm;
    MPI_Errhandler handler;
    EXPECT_EQUAL(MPI_Comm_dup(MPI_COMM_WORLD, &comm), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Comm_set_name(comm, "checked"), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Comm_create_errhandler(failing_handler, &handler), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Comm_set_errhandler(comm, handler), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Send(&value, 1, MPI_INT, 99, 0, comm), MPI_ERR_RANK);
    expect_begins(MPI_ERR_RANK, "MPI_ERR_RANK: invalid rank: MPI_Send on checked: destination 99 is none of the ");
    EXPECT_EQUAL(MPI_Errhandler_free(&handler), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Comm_free(&comm), MPI_SUCCESS);
    /* a text that has the class already */
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    int two[2] = {1, 2}, one = 0;
    EXPECT_EQUAL(MPI_Isend(two, 2, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[0]), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Irecv(&one, 1, MPI_INT, 0, 1, MPI_COMM_SELF, &requests[1]), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), MPI_ERR_TRUNCATE);
    expect_text(MPI_ERR_TRUNCATE, "MPI_Waitall on MPI_COMM_SELF: one of 2 operations failed: MPI_ERR_TRUNCATE: message "
                                  "longer than the receive buffer");
}

/* 9.5: classes, codes and texts of the program. */
static void added_classes(void)
{
    int error_class = 0, code = 0, second = 0, last, length;
    char text[MPI_MAX_ERROR_STRING];
    EXPECT_EQUAL(MPI_Add_error_class(&error_class), MPI_SUCCESS);
    EXPECT(error_class > MPI_ERR_LASTCODE);
    EXPECT_CLASS(error_class, error_class);
    EXPECT_EQUAL(MPI_Add_error_code(error_class, &code), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Add_error_code(MPI_ERR_TAG, &second), MPI_SUCCESS);
    EXPECT(code > MPI_ERR_LASTCODE && second > MPI_ERR_LASTCODE && code != second && code != error_class);
    EXPECT_CLASS(code, error_class);
    EXPECT_CLASS(second, MPI_ERR_TAG);
    attribute(MPI_LASTUSEDCODE, &last);
    EXPECT(last >= code && last >= second);
    expect_text(code, ""); /* none was given */
    EXPECT_EQUAL(MPI_Add_error_string(code, "the dam broke"), MPI_SUCCESS);
    expect_text(code, "the dam broke");
    MPI_Add_error_string(code, "the dam holds"); /* replaces it */
    expect_text(code, "the dam holds");
    MPI_Add_error_string(error_class, "dams");
    expect_text(error_class, "dams");
    EXPECT(MPI_Add_error_string(MPI_ERR_TAG, "mine") != MPI_SUCCESS);
    EXPECT(MPI_Add_error_code(0x7ffffff, &length) != MPI_SUCCESS);
    EXPECT_CLASS(MPI_Remove_error_code(code), MPI_ERR_ARG); /* it has a text */
    EXPECT_EQUAL(MPI_Remove_error_string(code), MPI_SUCCESS);
    expect_text(code, "");
    EXPECT_EQUAL(MPI_Remove_error_code(code), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Remove_error_string(error_class), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Remove_error_class(error_class), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Remove_error_code(second), MPI_SUCCESS);
    EXPECT(MPI_Error_string(code, text, &length) != MPI_SUCCESS);
    EXPECT(MPI_Remove_error_class(MPI_ERR_TAG) != MPI_SUCCESS);
    EXPECT(MPI_Remove_error_code(MPI_ERR_TAG) != MPI_SUCCESS);
    EXPECT(MPI_Remove_error_string(MPI_ERR_TAG) != MPI_SUCCESS);
}

/* Numbers of removed classes and codes are reused, so that a program that adds and removes them forever does not
 * grow. */
static void added_again(void)
{
    enum { MANY = 40000 };
    static int classes[MANY], codes[MANY];
    int before, after, kept = 0;
    for (int round = 0; round < 3; round++) {
        attribute(MPI_LASTUSEDCODE, &before);
        for (int i = 0; i < MANY; i++) {
            MPI_Add_error_class(&classes[i]);
            MPI_Add_error_code(classes[i], &codes[i]);
        }
        MPI_Add_error_code(classes[0], &kept);
        EXPECT_CLASS(MPI_Remove_error_class(classes[0]), MPI_ERR_ARG); /* it has two codes */
        for (int i = 0; i < MANY; i++) {
            MPI_Remove_error_code(codes[i]);
        }
        EXPECT_CLASS(MPI_Remove_error_class(classes[0]), MPI_ERR_ARG);
        EXPECT_EQUAL(MPI_Remove_error_code(kept), MPI_SUCCESS);
        for (int i = 0; i < MANY; i++) {
            EXPECT_EQUAL(MPI_Remove_error_class(classes[i]), MPI_SUCCESS);
        }
        attribute(MPI_LASTUSEDCODE, &after);
        EXPECT(round == 0 || after == before);
    }
}

static void memory(void)
{
    const MPI_Aint sizes[] = {1, 100, 4096, 10000000};
    for (int i = 0; i < 4; i++) {
        char *found = NULL;
        EXPECT_EQUAL(MPI_Alloc_mem(sizes[i], MPI_INFO_NULL, &found), MPI_SUCCESS);
        EXPECT(found != NULL);
        memset(found, 1, (size_t)sizes[i]);
        EXPECT_EQUAL(MPI_Free_mem(found), MPI_SUCCESS);
    }
    void *found;
    EXPECT(MPI_Alloc_mem(-1, MPI_INFO_NULL, &found) != MPI_SUCCESS);
}

static void addresses(void)
{
    int values[10] = {0};
    MPI_Aint first, last;
    MPI_Get_address(&values[0], &first);
    MPI_Get_address(&values[9], &last);
    EXPECT_EQUAL(MPI_Aint_diff(last, first), 9 * sizeof(int));
    EXPECT_EQUAL(MPI_Aint_add(first, 9 * sizeof(int)), last);
    EXPECT(first == (MPI_Aint)&values[0]);
}

/* Parts of the standard that the library does not have yet say so, and leave the program to go on. */
static void unsupported_calls_report_it(void)
{
    MPI_Win window = MPI_WIN_NULL;
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_File file = MPI_FILE_NULL;
    int value = 0;
    EXPECT_CLASS(MPI_Win_create(&value, sizeof(value), 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window),
                 MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_Comm_spawn("none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &comm, MPI_ERRCODES_IGNORE),
                 MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT_CLASS(MPI_File_open(MPI_COMM_WORLD, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
                 MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(window == MPI_WIN_NULL && comm == MPI_COMM_NULL && file == MPI_FILE_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* 11.4.1: MPI_Finalize first deletes the attributes of MPI_COMM_SELF, the last one set first, while all of MPI still
 * works. */
static int deleted[3], deletions;

static int note_deletion(MPI_Comm comm, int keyval, void *value, void *state)
{
    int flag = 1, in = 0;
    (void)keyval, (void)state;
    EXPECT(comm == MPI_COMM_SELF);
    MPI_Finalized(&flag);
    EXPECT_EQUAL(flag, 0);
    MPI_Sendrecv(value, 1, MPI_INT, 0, 0, &in, 1, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    deleted[deletions++ % 3] = in;
    return MPI_SUCCESS;
}

static void attributes_for_the_end(void)
{
    static int values[] = {1, 2, 3};
    for (int i = 0; i < 3; i++) {
        int keyval;
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, note_deletion, &keyval, NULL);
        MPI_Comm_set_attr(MPI_COMM_SELF, keyval, &values[i]);
        MPI_Comm_free_keyval(&keyval);
    }
}

/* All pairs of the object that MPI_Info_create_env makes, as lines. */
static void env_text(char *text, size_t text_bytes)
{
    MPI_Info info = MPI_INFO_NULL;
    int count = -1;
    size_t length = 0;
    EXPECT_EQUAL(MPI_Info_create_env(0, NULL, &info), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Info_get_nkeys(info, &count), MPI_SUCCESS);
    for (int i = 0; i < count && length < text_bytes; i++) {
        char key[MPI_MAX_INFO_KEY], value[MPI_MAX_INFO_VAL];
        int room = sizeof(value), flag = 0;
        MPI_Info_get_nthkey(info, i, key);
        MPI_Info_get_string(info, key, &room, value, &flag);
        length += (size_t)snprintf(text + length, text_bytes - length, "%s=%s\n", key, value);
    }
    MPI_Info_free(&info);
}

/* 11.2.1: it may be called at any time, and tells the same each time. */
static char env_before[8 * MPI_MAX_INFO_VAL];

static void env_is_the_same(void)
{
    static char now[sizeof(env_before)];
    char size[64];
    env_text(now, sizeof(now));
    EXPECT(strcmp(now, env_before) == 0);
    snprintf(size, sizeof(size), "maxprocs=%d\n", expect_size);
    EXPECT(strstr(now, size) != NULL);
}

/* MPI_COMM_SELF still has its first handler: that of MPI_COMM_WORLD counts, as programs from before MPI 4.0 expect. */
static void errors_without_a_communicator(void)
{
    MPI_Datatype type = MPI_INT;
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Op op = MPI_SUM;
    MPI_Info info = MPI_INFO_NULL;
    EXPECT_CLASS(MPI_Type_free(&type), MPI_ERR_TYPE);
    EXPECT_CLASS(MPI_Group_free(&group), MPI_ERR_GROUP);
    EXPECT_CLASS(MPI_Op_free(&op), MPI_ERR_OP);
    EXPECT_CLASS(MPI_Info_free(&info), MPI_ERR_INFO);
}

int main(int argc, char **argv)
{
    int provided = -1;
    callable_at_any_time(0, 0);
    MPI_Session session = MPI_SESSION_NULL;
    EXPECT_EQUAL(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session), MPI_ERR_UNSUPPORTED_OPERATION);
    EXPECT(session == MPI_SESSION_NULL);
    env_text(env_before, sizeof(env_before));
    EXPECT_EQUAL(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided), MPI_SUCCESS);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    errors_without_a_communicator();
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    expect_ranks();
    callable_at_any_time(1, 0);
    env_is_the_same();
    threads(provided);
    clocks();
    names();
    predefined_attributes();
    predefined_classes();
    last_error();
    added_classes();
    added_again();
    memory();
    addresses();
    unsupported_calls_report_it();
    attributes_for_the_end();
    MPI_Finalize();
    EXPECT_EQUAL(deletions, 3);
    EXPECT(deleted[0] == 3 && deleted[1] == 2 && deleted[2] == 1);
    callable_at_any_time(1, 1);
    env_is_the_same();
    return expect_failures == 0 ? 0 : 1;
}
