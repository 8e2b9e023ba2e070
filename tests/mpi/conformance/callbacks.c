/* Functions of the program that MPI calls: on the program's own threads only, and free to call MPI (MPI 5.0, 6.9.5,
 * 7.7.2).
 *
 * The program computes while collectives are in progress, until the control thread has turned: all steps that need no
 * program have been done then. `multiple` as argument: with MPI_THREAD_MULTIPLE. */
#include "tests/mpi/conformance/forms.h"

#include <dirent.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { COUNT = 100, TURNS = 20, COMPUTE_MAX = 2000000, ROUNDS = 3 };

static long own_thread;
static int calls;

/* How often the control thread has gone to sleep; -1: it is not to be seen. */
static long control_turns(void)
{
    long turns = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task = tasks == NULL ? NULL : readdir(tasks); task != NULL; task = readdir(tasks)) {
        char path[300], line[200];
        int is_control = 0;
        snprintf(path, sizeof(path), "/proc/self/task/%s/status", task->d_name);
        FILE *status = fopen(path, "r");
        while (status != NULL && fgets(line, sizeof(line), status) != NULL) {
            is_control |= strncmp(line, "Name:\tcw-control", 16) == 0;
            if (is_control && strncmp(line, "voluntary_ctxt_switches:", 24) == 0) {
                turns = strtol(line + 24, NULL, 10);
            }
        }
        if (status != NULL) {
            fclose(status);
        }
    }
    if (tasks != NULL) {
        closedir(tasks);
    }
    return turns;
}

/* Computes until the control thread has turned so often, or does not turn any more: it is stuck, which is for the
 * launcher's time-out to tell. A receive that stays posted keeps it awake. */
static void compute(void)
{
    MPI_Request posted;
    MPI_Irecv(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF, &posted);
    long begin = control_turns();
    while (begin < 0) { /* it has not told its name yet */
        begin = control_turns();
    }
    for (long looks = 0; looks < COMPUTE_MAX && control_turns() < begin + TURNS; looks++) {
    }
    MPI_Send(NULL, 0, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&posted, MPI_STATUS_IGNORE);
}

static void here(void)
{
    int rank = -1, flag = 0;
    EXPECT_EQUAL(syscall(SYS_gettid), own_thread);
    EXPECT_EQUAL(MPI_Comm_rank(MPI_COMM_WORLD, &rank), MPI_SUCCESS);
    EXPECT_EQUAL(rank, expect_rank);
    EXPECT(MPI_Wtime() >= 0);
    MPI_Is_thread_main(&flag);
    EXPECT(flag);
    calls++;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *datatype)
{
    int size = 0;
    MPI_Aint lowest = -1, extent = -1;
    here();
    MPI_Type_size(*datatype, &size);
    MPI_Type_get_extent(*datatype, &lowest, &extent);
    EXPECT_EQUAL(extent, size);
    EXPECT_EQUAL(lowest, 0);
    for (int i = 0; i < *count * size / (int)sizeof(int); i++) {
        ((int *)inout)[i] += ((int *)in)[i];
    }
}

static int sum_to(int ranks, int i)
{
    return ranks * (ranks - 1) / 2 + ranks * i;
}

enum kind { ALLREDUCE, REDUCE, SCAN, REDUCE_SCATTER, KINDS };

static MPI_Request begin(enum kind kind, int form, const int *send, int *receive, int count, MPI_Datatype type,
                         MPI_Op op)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm world = MPI_COMM_WORLD;
    switch (kind) {
    case ALLREDUCE:
        CALL(form, Allreduce, Iallreduce, &request, send, receive, count, type, op, world);
        break;
    case REDUCE:
        CALL(form, Reduce, Ireduce, &request, send, receive, count, type, op, 0, world);
        break;
    case SCAN:
        CALL(form, Scan, Iscan, &request, send, receive, count, type, op, world);
        break;
    default:
        CALL(form, Reduce_scatter_block, Ireduce_scatter_block, &request, send, receive, count, type, op, world);
    }
    return request;
}

static void result_check(enum kind kind, const int *receive, int count)
{
    for (int i = 0; i < count; i++) {
        if (kind == SCAN) {
            EXPECT_EQUAL(receive[i], sum_to(expect_rank + 1, i));
        } else if (kind == REDUCE_SCATTER) {
            EXPECT_EQUAL(receive[i], sum_to(expect_size, expect_rank * count + i));
        } else if (kind == ALLREDUCE || expect_rank == 0) {
            EXPECT_EQUAL(receive[i], sum_to(expect_size, i));
        }
    }
}

static void reduction(enum kind kind, int persistent, int tests, int count, MPI_Datatype type, int per_element,
                      MPI_Op op)
{
    int numbers = count * per_element;
    int *send = malloc((size_t)(numbers * expect_size) * sizeof(int));
    int *receive = calloc((size_t)numbers, sizeof(int));
    for (int i = 0; i < numbers * expect_size; i++) {
        send[i] = expect_rank + i;
    }
    MPI_Request request = MPI_REQUEST_NULL;
    for (int round = 0; round < (persistent ? ROUNDS : 1); round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (round == 0) {
            request = begin(kind, 1 + persistent, send, receive, count, type, op);
        }
        if (persistent) {
            MPI_Start(&request);
        }
        compute();
        int is_over = 0;
        while (tests && !is_over) {
            EXPECT_EQUAL(MPI_Test(&request, &is_over, MPI_STATUS_IGNORE), MPI_SUCCESS);
        }
        EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
        result_check(kind, receive, numbers);
    }
    if (persistent) {
        MPI_Request_free(&request);
    }
    free(send);
    free(receive);
}

static void operations_run_on_the_programs_thread(void)
{
    MPI_Op commutative, ordered;
    MPI_Datatype pair;
    MPI_Op_create(add, 1, &commutative);
    MPI_Op_create(add, 0, &ordered);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int kind = 0; kind < KINDS; kind++) {
        int before = calls;
        reduction((enum kind)kind, 0, kind % 2, COUNT, MPI_INT, 1, commutative);
        reduction((enum kind)kind, 1, 1 - kind % 2, COUNT, pair, 2, ordered);
        EXPECT(calls > before || expect_size == 1 || kind == REDUCE || kind == SCAN);
    }
    reduction(ALLREDUCE, 0, 0, 30000, MPI_INT, 1, ordered); /* in many messages */
    reduction(ALLREDUCE, 0, 1, 30000, pair, 2, commutative);
    MPI_Op_free(&commutative);
    MPI_Op_free(&ordered);
    MPI_Type_free(&pair);
}

/* Steps that need the program stay for its next call: everything else continues. */
static void others_go_on_meanwhile(void)
{
    MPI_Op op;
    MPI_Request requests[2];
    int value = expect_rank, sum = -1, told = expect_rank == 0 ? 4711 : -1;
    MPI_Op_create(add, 1, &op);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Iallreduce(&value, &sum, 1, MPI_INT, op, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibcast(&told, 1, MPI_INT, 0, MPI_COMM_WORLD, &requests[1]);
    compute();
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT_EQUAL(told, 4711);
    EXPECT_EQUAL(sum, sum_to(expect_size, 0));
    MPI_Op_free(&op);
}

static int copy(MPI_Comm comm, int key, void *state, void *value, void *copied, int *flag)
{
    (void)comm, (void)key, (void)state;
    here();
    *(void **)copied = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int drop(MPI_Comm comm, int key, void *value, void *state)
{
    (void)comm, (void)key, (void)value, (void)state;
    here();
    return MPI_SUCCESS;
}

/* ... as they are when MPI_Comm_idup is called (7.4.2). */
static void attributes_are_copied_by_the_call(void)
{
    int key, first = 1, second = 2, flag = 0, size = 0;
    int *found = NULL;
    MPI_Comm made;
    MPI_Request request;
    MPI_Comm_create_keyval(copy, drop, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &first);
    MPI_Barrier(MPI_COMM_WORLD);
    int before = calls;
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &request);
    EXPECT_EQUAL(calls, before + 1);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &second);
    compute();
    EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Comm_get_attr(made, key, &found, &flag);
    EXPECT(flag && found == &first);
    MPI_Comm_size(made, &size);
    EXPECT_EQUAL(size, expect_size);
    MPI_Barrier(made);
    MPI_Comm_free(&made);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Comm_free_keyval(&key);
}

static int copy_rejected(MPI_Comm comm, int key, void *state, void *value, void *copied, int *flag)
{
    (void)comm, (void)key, (void)state, (void)value, (void)copied, (void)flag;
    here();
    return MPI_ERR_OTHER;
}

static int handled;

static void handle(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    here();
    handled++;
}

/* An error that the control thread comes upon is raised by the call that asks for the request. */
static void errors_are_raised_by_the_next_call(void)
{
    MPI_Errhandler handler;
    MPI_Comm own, made;
    MPI_Request request;
    int key, value = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &own);
    MPI_Comm_create_errhandler(handle, &handler);
    MPI_Comm_set_errhandler(own, handler);
    MPI_Comm_create_keyval(copy_rejected, MPI_COMM_NULL_DELETE_FN, &key, NULL);
    MPI_Comm_set_attr(own, key, &value);
    MPI_Barrier(own);
    handled = 0;
    MPI_Comm_idup(own, &made, &request);
    compute();
    EXPECT(MPI_Wait(&request, MPI_STATUS_IGNORE) != MPI_SUCCESS);
    EXPECT_EQUAL(handled, 1);
    EXPECT(made == MPI_COMM_NULL);
    MPI_Comm_delete_attr(own, key);
    MPI_Comm_free_keyval(&key);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&own);
}

int main(int argc, char **argv)
{
    int provided, multiple = argc > 1 && strcmp(argv[1], "multiple") == 0;
    MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    expect_ranks();
    own_thread = syscall(SYS_gettid);
    operations_run_on_the_programs_thread();
    others_go_on_meanwhile();
    attributes_are_copied_by_the_call();
    errors_are_raised_by_the_next_call();
    return expect_end();
}
