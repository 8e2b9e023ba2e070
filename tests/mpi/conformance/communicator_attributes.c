/* Data of a communicator: attributes, names, error handlers (MPI 5.0, 7.7, 7.8, 9.3). */
#include "tests/mpi/expect.h"

#include <string.h>

/* Calls of the callbacks. */
static int copies, deletions;
static MPI_Comm deleted_from;
static void *deleted_value;

static int copy_and_add(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)keyval;
    EXPECT(comm == MPI_COMM_WORLD);
    copies++;
    *(void **)out = (char *)in + *(int *)state;
    *flag = 1;
    return MPI_SUCCESS;
}

static int copy_not(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)state, (void)in, (void)out;
    copies++;
    *flag = 0;
    return MPI_SUCCESS;
}

static int copy_fails(MPI_Comm comm, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)comm, (void)keyval, (void)state, (void)in, (void)out, (void)flag;
    return MPI_ERR_OTHER;
}

static int delete_and_note(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)keyval, (void)state;
    deletions++;
    deleted_from = comm;
    deleted_value = value;
    return MPI_SUCCESS;
}

static char cells[100];

static int offset_of(MPI_Comm comm, int keyval)
{
    char *found = NULL;
    int flag = 0;
    EXPECT_EQUAL(MPI_Comm_get_attr(comm, keyval, &found, &flag), MPI_SUCCESS);
    return flag ? (int)(found - cells) : -1;
}

static void attributes_are_set_and_deleted(void)
{
    int keyval, before = deletions;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_and_note, &keyval, NULL);
    EXPECT(keyval != MPI_KEYVAL_INVALID);
    EXPECT_EQUAL(offset_of(MPI_COMM_WORLD, keyval), -1);
    EXPECT_EQUAL(MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &cells[3]), MPI_SUCCESS);
    EXPECT_EQUAL(offset_of(MPI_COMM_WORLD, keyval), 3);
    EXPECT_EQUAL(offset_of(MPI_COMM_SELF, keyval), -1);
    EXPECT_EQUAL(deletions, before);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &cells[4]); /* deletes the old one */
    EXPECT_EQUAL(deletions, before + 1);
    EXPECT(deleted_value == &cells[3] && deleted_from == MPI_COMM_WORLD);
    EXPECT_EQUAL(MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval), MPI_SUCCESS);
    EXPECT_EQUAL(deletions, before + 2);
    EXPECT(deleted_value == &cells[4]);
    EXPECT_EQUAL(offset_of(MPI_COMM_WORLD, keyval), -1);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, NULL); /* NULL is a value, too */
    int flag = 0;
    void *found = cells;
    MPI_Comm_get_attr(MPI_COMM_WORLD, keyval, &found, &flag);
    EXPECT(flag && found == NULL);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
    EXPECT_EQUAL(keyval, MPI_KEYVAL_INVALID);
}

/* 7.7.2: MPI_Comm_dup asks the copy functions, MPI_Comm_free the delete functions; split and create copy nothing. */
static void attributes_are_copied(void)
{
    int by_function, never, as_it_is, not_at_all, step = 10;
    MPI_Comm copy, part;
    MPI_Request request;
    MPI_Comm_create_keyval(copy_and_add, delete_and_note, &by_function, &step);
    MPI_Comm_create_keyval(copy_not, MPI_COMM_NULL_DELETE_FN, &never, NULL);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &as_it_is, NULL);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &not_at_all, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, by_function, &cells[1]);
    MPI_Comm_set_attr(MPI_COMM_WORLD, never, &cells[2]);
    MPI_Comm_set_attr(MPI_COMM_WORLD, as_it_is, &cells[3]);
    MPI_Comm_set_attr(MPI_COMM_WORLD, not_at_all, &cells[4]);
    for (int immediate = 0; immediate < 2; immediate++) {
        copies = deletions = 0;
        if (immediate) {
            MPI_Comm_idup(MPI_COMM_WORLD, &copy, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else {
            MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        }
        EXPECT_EQUAL(copies, 2);
        EXPECT_EQUAL(offset_of(copy, by_function), 11);
        EXPECT_EQUAL(offset_of(copy, never), -1);
        EXPECT_EQUAL(offset_of(copy, as_it_is), 3);
        EXPECT_EQUAL(offset_of(copy, not_at_all), -1);
        const MPI_Comm freed = copy;
        MPI_Comm_free(&copy);
        EXPECT_EQUAL(deletions, 1);
        EXPECT(deleted_from == freed && deleted_value == &cells[11]);
    }
    copies = 0;
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &part);
    EXPECT_EQUAL(copies, 0);
    EXPECT_EQUAL(offset_of(part, as_it_is), -1);
    MPI_Comm_free(&part);
    int *const keyvals[] = {&by_function, &never, &as_it_is, &not_at_all};
    for (int i = 0; i < 4; i++) {
        MPI_Comm_delete_attr(MPI_COMM_WORLD, *keyvals[i]);
        MPI_Comm_free_keyval(keyvals[i]);
    }
}

/* 7.7.2: a copy function that fails makes the duplication fail; the communicator at hand stays as it is. */
static void copying_may_fail(void)
{
    int keyval;
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_create_keyval(copy_fails, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &cells[1]);
    EXPECT(MPI_Comm_dup(MPI_COMM_WORLD, &copy) != MPI_SUCCESS);
    EXPECT_EQUAL(offset_of(MPI_COMM_WORLD, keyval), 1);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
    EXPECT_EQUAL(MPI_Comm_dup(MPI_COMM_WORLD, &copy), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Comm_free(&copy), MPI_SUCCESS);
}

/* A freed key lives on as long as an attribute has it, and not longer. */
static void keys_may_be_freed_while_in_use(void)
{
    int keyval, key, flag;
    void *value;
    MPI_Comm copy, again;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_and_note, &keyval, NULL);
    MPI_Comm_set_attr(copy, keyval, &cells[9]);
    key = keyval;
    EXPECT_EQUAL(MPI_Comm_free_keyval(&keyval), MPI_SUCCESS);
    deletions = 0;
    EXPECT_EQUAL(offset_of(copy, key), 9);
    keyval = key;
    EXPECT_EQUAL(MPI_Comm_free_keyval(&keyval), MPI_SUCCESS); /* a copy of it, as with MPICH and Open MPI */
    MPI_Comm_dup(copy, &again);
    EXPECT_EQUAL(offset_of(again, key), 9);
    MPI_Comm_free(&copy);
    EXPECT_EQUAL(deletions, 1);
    MPI_Comm_free(&again);
    EXPECT_EQUAL(deletions, 2);
    EXPECT_CLASS(MPI_Comm_get_attr(MPI_COMM_SELF, key, &value, &flag), MPI_ERR_KEYVAL);
    EXPECT_CLASS(MPI_Comm_set_attr(MPI_COMM_SELF, key, NULL), MPI_ERR_KEYVAL);
    EXPECT_CLASS(MPI_Comm_free_keyval(&key), MPI_ERR_KEYVAL);
}

static int refused_key, deleted_keys[3], deleted_count;

static int delete_unless_rejected(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)value, (void)state;
    deleted_keys[deleted_count % 3] = keyval;
    deleted_count += keyval != refused_key;
    return keyval == refused_key ? MPI_ERR_OTHER : MPI_SUCCESS;
}

/* The last attribute goes first. A delete function that fails keeps its attribute, and the communicator. */
static void deleting_may_fail(void)
{
    int keyvals[3];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_unless_rejected, &keyvals[i], NULL);
        MPI_Comm_set_attr(comm, keyvals[i], &cells[i]);
    }
    refused_key = keyvals[1];
    EXPECT_CLASS(MPI_Comm_free(&comm), MPI_ERR_OTHER);
    EXPECT_CLASS(MPI_Comm_set_attr(comm, keyvals[1], NULL), MPI_ERR_OTHER);
    EXPECT_CLASS(MPI_Comm_delete_attr(comm, keyvals[1]), MPI_ERR_OTHER);
    EXPECT(deleted_count == 1 && deleted_keys[0] == keyvals[2]);
    EXPECT_EQUAL(offset_of(comm, keyvals[1]), 1);
    refused_key = MPI_KEYVAL_INVALID;
    EXPECT_EQUAL(MPI_Comm_free(&comm), MPI_SUCCESS);
    EXPECT(deleted_count == 3 && deleted_keys[1] == keyvals[1] && deleted_keys[2] == keyvals[0]);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_free_keyval(&keyvals[i]);
    }
}

static int delete_other(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)keyval, (void)value;
    deletions++;
    return MPI_Comm_delete_attr(comm, *(int *)state);
}

/* Delete functions may delete other attributes: each is deleted once. */
static void deleting_may_delete(void)
{
    int keyvals[3], before = deletions;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_create_keyval(MPI_COMM_DUP_FN, i == 0 ? MPI_COMM_NULL_DELETE_FN : delete_other, &keyvals[i],
                               i == 0 ? NULL : &keyvals[i - 1]);
        MPI_Comm_set_attr(comm, keyvals[i], NULL);
    }
    EXPECT_EQUAL(MPI_Comm_free(&comm), MPI_SUCCESS);
    EXPECT_EQUAL(deletions, before + 2);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_free_keyval(&keyvals[i]);
    }
}

static int copy_state(MPI_Datatype type, int keyval, void *state, void *in, void *out, int *flag)
{
    (void)type, (void)keyval;
    *flag = 1;
    *(void **)out = state;
    return in == NULL ? MPI_ERR_BUFFER : MPI_SUCCESS;
}

static int null_is_refused;

static int delete_of_type(MPI_Datatype type, int keyval, void *value, void *state)
{
    (void)type, (void)keyval, (void)state;
    deletions++;
    return value == NULL && null_is_refused ? MPI_ERR_ARG : MPI_SUCCESS;
}

/* Those of datatypes: the same rules. They go with the last handle of the program, not with one of
 * MPI_Type_get_contents. */
static void attributes_of_datatypes(void)
{
    int keyval, comm_key, flag, integers[1], before = deletions;
    void *value;
    MPI_Aint addresses[1];
    MPI_Datatype type, copy, again;
    null_is_refused = 1;
    MPI_Type_create_keyval(copy_state, delete_of_type, &keyval, &cells[5]);
    MPI_Comm_create_keyval(MPI_COMM_DUP_FN, MPI_COMM_NULL_DELETE_FN, &comm_key, NULL);
    MPI_Type_contiguous(2, MPI_INT, &type);
    EXPECT_EQUAL(MPI_Type_set_attr(type, keyval, &cells[4]), MPI_SUCCESS);
    MPI_Type_dup(type, &copy);
    MPI_Type_get_attr(copy, keyval, &value, &flag);
    EXPECT(flag && value == &cells[5]);
    MPI_Type_get_contents(copy, 0, 0, 1, integers, addresses, &again);
    MPI_Type_free(&again);
    EXPECT_EQUAL(deletions, before);
    MPI_Type_free(&copy);
    EXPECT_EQUAL(deletions, before + 1);
    EXPECT_EQUAL(MPI_Type_set_attr(type, keyval, NULL), MPI_SUCCESS);
    copy = MPI_INT;
    EXPECT_CLASS(MPI_Type_dup(type, &copy), MPI_ERR_BUFFER);
    EXPECT_CLASS(MPI_Type_free(&type), MPI_ERR_ARG);
    EXPECT_CLASS(MPI_Type_delete_attr(type, keyval), MPI_ERR_ARG);
    EXPECT(copy == MPI_INT && type != MPI_DATATYPE_NULL);
    EXPECT_CLASS(MPI_Type_set_attr(type, comm_key, NULL), MPI_ERR_KEYVAL); /* each kind of object has its own keys */
    EXPECT_CLASS(MPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL), MPI_ERR_KEYVAL);
    null_is_refused = 0;
    EXPECT_EQUAL(MPI_Type_free(&type), MPI_SUCCESS);
    MPI_Comm_free_keyval(&comm_key);
    MPI_Type_free_keyval(&keyval);
    EXPECT_EQUAL(keyval, MPI_KEYVAL_INVALID);
}

static void many_attributes(void)
{
    enum { COUNT = 500 };
    int keyvals[COUNT], before = deletions;
    MPI_Comm comm, copy;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    for (int i = 0; i < COUNT; i++) {
        MPI_Comm_create_keyval(MPI_COMM_DUP_FN, delete_and_note, &keyvals[i], NULL);
        MPI_Comm_set_attr(comm, keyvals[i], &cells[i % 100]);
    }
    MPI_Comm_dup(comm, &copy);
    for (int i = 0; i < COUNT; i++) {
        EXPECT_EQUAL(offset_of(copy, keyvals[i]), i % 100);
        MPI_Comm_free_keyval(&keyvals[i]);
    }
    MPI_Comm_free(&comm);
    MPI_Comm_free(&copy);
    EXPECT_EQUAL(deletions, before + 2 * COUNT);
}

static void expect_name(MPI_Comm comm, const char *wanted)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length = -1;
    MPI_Comm_get_name(comm, name, &length);
    EXPECT(strcmp(name, wanted) == 0);
    EXPECT_EQUAL(length, strlen(wanted));
}

static void names(void)
{
    char long_name[2 * MPI_MAX_OBJECT_NAME] = "";
    MPI_Comm comm;
    expect_name(MPI_COMM_WORLD, "MPI_COMM_WORLD");
    expect_name(MPI_COMM_SELF, "MPI_COMM_SELF");
    MPI_Comm_split(MPI_COMM_WORLD, 0, 0, &comm);
    expect_name(comm, ""); /* none was given */
    EXPECT_EQUAL(MPI_Comm_set_name(comm, "river"), MPI_SUCCESS);
    expect_name(comm, "river");
    memset(long_name, 'x', sizeof(long_name) - 1);
    MPI_Comm_set_name(comm, long_name);
    long_name[MPI_MAX_OBJECT_NAME - 1] = '\0';
    expect_name(comm, long_name);
    MPI_Comm_free(&comm);
}

static MPI_Comm handled_comm;
static int handled_code, handled;

static void handler(MPI_Comm *comm, int *code, ...)
{
    handled_comm = *comm;
    handled_code = *code;
    handled++;
}

static void other_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    handled += 1000;
}

/* Makes an error in a communicator; its handler must be called. */
static void expect_handled(MPI_Comm comm)
{
    int value = 0, size;
    MPI_Comm_size(comm, &size);
    handled = 0;
    handled_comm = MPI_COMM_NULL;
    int code = MPI_Send(&value, 1, MPI_INT, size, 0, comm);
    EXPECT_CLASS(code, MPI_ERR_RANK);
    EXPECT_EQUAL(handled, 1);
    EXPECT(handled_comm == comm);
    EXPECT_EQUAL(handled_code, code);
}

/* 9.3: the handler gets communicator and code; new communicators inherit it; freeing it while it is attached changes
 * nothing. */
static void error_handlers(void)
{
    MPI_Errhandler mine, other, found;
    MPI_Comm comm, copy, part;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_get_errhandler(comm, &found); /* inherited */
    EXPECT(found == MPI_ERRORS_RETURN);
    EXPECT_EQUAL(MPI_Errhandler_free(&found), MPI_SUCCESS);
    EXPECT(found == MPI_ERRHANDLER_NULL);
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_create_errhandler(other_handler, &other);
    EXPECT_EQUAL(MPI_Comm_set_errhandler(comm, mine), MPI_SUCCESS);
    expect_handled(comm);
    MPI_Comm_get_errhandler(comm, &found);
    EXPECT(found == mine);
    MPI_Errhandler_free(&found);
    expect_handled(comm);
    MPI_Errhandler_free(&mine);
    EXPECT(mine == MPI_ERRHANDLER_NULL);
    expect_handled(comm);
    MPI_Comm_dup(comm, &copy);
    MPI_Comm_split(comm, 0, 0, &part);
    MPI_Comm_set_errhandler(comm, other);
    expect_handled(copy);
    expect_handled(part);
    handled = 0;
    EXPECT_EQUAL(MPI_Comm_call_errhandler(comm, MPI_ERR_OTHER), MPI_SUCCESS);
    EXPECT_EQUAL(handled, 1000);
    EXPECT_EQUAL(MPI_Comm_call_errhandler(copy, MPI_ERR_TOPOLOGY), MPI_SUCCESS);
    EXPECT_EQUAL(handled_code, MPI_ERR_TOPOLOGY);
    EXPECT(handled_comm == copy);
    MPI_Errhandler_free(&other);
    MPI_Comm_free(&comm);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&part);
}

/* Of requests, too: the error of a receive is raised in its communicator, by the call that completes it. */
static void errors_of_requests(void)
{
    MPI_Errhandler mine;
    MPI_Comm comm;
    MPI_Request requests[2];
    int out[2] = {1, 2}, in = 0;
    MPI_Comm_dup(MPI_COMM_SELF, &comm);
    MPI_Comm_create_errhandler(handler, &mine);
    MPI_Comm_set_errhandler(comm, mine);
    MPI_Errhandler_free(&mine);
    for (int all = 0; all < 2; all++) {
        handled = 0;
        MPI_Irecv(&in, 1, MPI_INT, 0, 0, comm, &requests[0]);
        MPI_Isend(out, 2, MPI_INT, 0, 0, comm, &requests[1]);
        if (all) {
            MPI_Status statuses[2];
            EXPECT_CLASS(MPI_Waitall(2, requests, statuses), MPI_ERR_IN_STATUS);
        } else {
            EXPECT_CLASS(MPI_Wait(&requests[0], MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        }
        EXPECT_EQUAL(handled, 1);
        EXPECT(handled_comm == comm);
    }
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    attributes_are_set_and_deleted();
    attributes_are_copied();
    copying_may_fail();
    keys_may_be_freed_while_in_use();
    deleting_may_fail();
    deleting_may_delete();
    attributes_of_datatypes();
    many_attributes();
    names();
    error_handlers();
    errors_of_requests();
    return expect_end();
}
