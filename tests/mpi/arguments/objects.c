/* Objects of all kinds. */
#include "tests/mpi/arguments/objects.h"

struct walk_objects walk_objects;

static int receive_buffer[4];

static int user_copies(MPI_Comm comm, int key, void *state, void *value, void *copy, int *flag)
{
    (void)comm, (void)key, (void)state, (void)value, (void)copy;
    *flag = 0;
    return MPI_SUCCESS;
}

static void user_sum(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    (void)in, (void)inout, (void)count, (void)datatype;
}

void walk_user_handler(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
}

static void user_win_handler(MPI_Win *win, int *code, ...)
{
    (void)win, (void)code;
}

static int nothing(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int no_status(void *state, MPI_Status *status)
{
    (void)state, (void)status;
    return MPI_SUCCESS;
}

static int no_cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

/* Of each kind one that lives, and one that has been freed. */
static void objects_make(void)
{
    const int periodic[] = {0};
    int size;
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_SELF, &walk_objects.comm_stale);
    MPI_Comm comm_copy = walk_objects.comm_stale;
    MPI_Comm_free(&comm_copy);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, periodic, 0, &walk_objects.grid);
    MPI_Type_contiguous(2, MPI_INT, &walk_objects.derived);
    MPI_Type_commit(&walk_objects.derived);
    MPI_Type_contiguous(3, MPI_INT, &walk_objects.uncommitted);
    MPI_Type_dup(MPI_INT, &walk_objects.type_stale);
    MPI_Datatype type_copy = walk_objects.type_stale;
    MPI_Type_free(&type_copy);
    MPI_Op_create(user_sum, 1, &walk_objects.op);
    MPI_Op_create(user_sum, 1, &walk_objects.op_stale);
    MPI_Op op_copy = walk_objects.op_stale;
    MPI_Op_free(&op_copy);
    MPI_Comm_group(MPI_COMM_WORLD, &walk_objects.group);
    MPI_Comm_group(MPI_COMM_WORLD, &walk_objects.group_stale);
    MPI_Group group_copy = walk_objects.group_stale;
    MPI_Group_free(&group_copy);
    MPI_Comm_group(MPI_COMM_SELF, &walk_objects.group_kept); /* freed, while a communicator has it */
    MPI_Comm_create_group(MPI_COMM_SELF, walk_objects.group_kept, 0, &walk_objects.comm_of_group);
    group_copy = walk_objects.group_kept;
    MPI_Group_free(&group_copy);
}

static void more_objects_make(void)
{
    MPI_Info_create(&walk_objects.info);
    MPI_Info_set(walk_objects.info, "key", "value");
    MPI_Info_create(&walk_objects.info_stale);
    MPI_Info info_copy = walk_objects.info_stale;
    MPI_Info_free(&info_copy);
    MPI_Comm_create_errhandler(walk_user_handler, &walk_objects.errhandler);
    MPI_Win_create_errhandler(user_win_handler, &walk_objects.errhandler_of_win);
    MPI_Comm_create_errhandler(walk_user_handler, &walk_objects.errhandler_stale);
    MPI_Errhandler errhandler_copy = walk_objects.errhandler_stale;
    MPI_Errhandler_free(&errhandler_copy);
    MPI_Recv_init(receive_buffer, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &walk_objects.persistent);
    MPI_Grequest_start(no_status, nothing, no_cancel, NULL, &walk_objects.general);
    MPI_Recv_init(receive_buffer, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &walk_objects.request_stale);
    MPI_Request request_copy = walk_objects.request_stale;
    MPI_Request_free(&request_copy);
    MPI_Comm_create_keyval(user_copies, MPI_COMM_NULL_DELETE_FN, &walk_objects.comm_key, NULL);
    MPI_Comm_create_keyval(user_copies, MPI_COMM_NULL_DELETE_FN, &walk_objects.comm_key_stale, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &walk_objects.type_key, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &walk_objects.type_key_stale, NULL);
    int key_copy = walk_objects.comm_key_stale;
    MPI_Comm_free_keyval(&key_copy);
    key_copy = walk_objects.type_key_stale;
    MPI_Type_free_keyval(&key_copy);
}

static void objects_of_mpix_make(void)
{
    const int counts[] = {1};
    MPIX_Alltoallv_control2(counts, MPI_INT, MPI_INFO_NULL, MPI_COMM_SELF, &walk_objects.phases);
    MPIX_Alltoallv_control2(counts, MPI_INT, MPI_INFO_NULL, MPI_COMM_SELF, &walk_objects.phases_stale);
    MPIX_Alltoallv_phases phases_copy = walk_objects.phases_stale;
    MPIX_Alltoallv_phases_free(&phases_copy);
    MPIX_Scatterv_open_group(counts, MPI_INT, 1, MPI_INT, 0, MPI_COMM_SELF, &walk_objects.scatter_group);
    MPIX_Scatterv_open_group(counts, MPI_INT, 1, MPI_INT, 0, MPI_COMM_SELF, &walk_objects.scatter_group_stale);
    MPIX_Scatterv_group scatter_copy = walk_objects.scatter_group_stale;
    MPIX_Scatterv_close_group(&scatter_copy);
}

void walk_objects_make(void)
{
    objects_make();
    more_objects_make();
    objects_of_mpix_make();
}

void walk_objects_free(void)
{
    MPI_Comm_free(&walk_objects.grid);
    MPI_Comm_free(&walk_objects.comm_of_group);
    MPI_Type_free(&walk_objects.derived);
    MPI_Type_free(&walk_objects.uncommitted);
    MPI_Op_free(&walk_objects.op);
    MPI_Group_free(&walk_objects.group);
    MPI_Info_free(&walk_objects.info);
    MPI_Errhandler_free(&walk_objects.errhandler);
    MPI_Errhandler_free(&walk_objects.errhandler_of_win);
    MPI_Request_free(&walk_objects.persistent);
    MPI_Grequest_complete(walk_objects.general);
    MPI_Request_free(&walk_objects.general);
    MPI_Comm_free_keyval(&walk_objects.comm_key);
    MPI_Type_free_keyval(&walk_objects.type_key);
    MPIX_Alltoallv_phases_free(&walk_objects.phases);
    MPIX_Scatterv_close_group(&walk_objects.scatter_group);
}
