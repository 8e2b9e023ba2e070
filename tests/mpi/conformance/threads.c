/* MPI_THREAD_MULTIPLE (MPI 5.0, 11.6): all threads call MPI at once, and a call that blocks holds up its own thread
 * only. */
#include "tests/mpi/expect.h"

#include <pthread.h>
#include <string.h>

enum { THREADS = 4 };

static MPI_Comm comms[THREADS]; /* one a thread */

static void in_threads(void *(*function)(void *))
{
    static int numbers[THREADS] = {0, 1, 2, 3};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        EXPECT_EQUAL(pthread_create(&threads[i], NULL, function, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* There and back, short and long, all modes of completion. */
static void ping_pong(MPI_Comm comm, int tag, int rounds)
{
    enum { LONG = 20000 };
    int *out = calloc(LONG, sizeof(int)), *in = calloc(LONG, sizeof(int));
    for (int round = 0; round < rounds; round++) {
        int count = round % 8 == 7 ? LONG : 1 + round % 5;
        MPI_Request requests[2];
        MPI_Status status;
        out[0] = out[count - 1] = round * 100 + tag;
        MPI_Irecv(in, count, MPI_INT, expect_left, tag, comm, &requests[0]);
        if (round % 2) {
            MPI_Isend(out, count, MPI_INT, expect_right, tag, comm, &requests[1]);
            MPI_Wait(&requests[0], &status);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        } else {
            MPI_Ssend(out, count, MPI_INT, expect_right, tag, comm);
            MPI_Wait(&requests[0], &status);
        }
        EXPECT_EQUAL(expect_count(&status, MPI_INT), count);
        EXPECT_EQUAL(status.MPI_TAG, tag);
        EXPECT_EQUAL(in[count - 1], round * 100 + tag);
    }
    free(out);
    free(in);
}

static void *on_their_own_communicators(void *number)
{
    ping_pong(comms[*(int *)number], 5, 100);
    return NULL;
}

static void *by_their_own_tags(void *number)
{
    ping_pong(MPI_COMM_WORLD, *(int *)number, 100);
    return NULL;
}

/* Thread 0 waits for a message that thread 1 of its left neighbour sends when it has heard from threads 2 and 3. */
static void *one_is_blocked(void *number)
{
    int thread = *(int *)number, token = 0;
    MPI_Status status;
    switch (thread) {
    case 0:
        MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 100, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(token, 42);
        break;
    case 1:
        MPI_Recv(&token, 1, MPI_INT, expect_rank, 102, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Probe(expect_rank, 103, MPI_COMM_WORLD, &status);
        MPI_Recv(&token, 1, MPI_INT, expect_rank, 103, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        token = 42;
        MPI_Send(&token, 1, MPI_INT, expect_right, 100, MPI_COMM_WORLD);
        break;
    default:
        ping_pong(comms[thread], thread, 20);
        MPI_Barrier(comms[thread]);
        MPI_Send(&token, 1, MPI_INT, expect_rank, 100 + thread, MPI_COMM_WORLD);
        break;
    }
    return NULL;
}

/* Different collectives in different communicators, of different lengths, at once. */
static void *collectives(void *number)
{
    enum { LONG = 10000 };
    int thread = *(int *)number;
    MPI_Comm comm = comms[thread];
    int *out = malloc(LONG * sizeof(int)), *in = malloc(LONG * sizeof(int));
    for (int round = 0; round < 40; round++) {
        int count = round % 4 == 3 ? LONG : thread + 1, root = (round + thread) % expect_size;
        for (int i = 0; i < count; i++) {
            out[i] = expect_rank + i + thread;
        }
        MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, comm);
        EXPECT_EQUAL(in[count - 1], expect_size * (expect_size - 1) / 2 + expect_size * (count - 1 + thread));
        out[count - 1] = expect_rank == root ? round : -1;
        MPI_Bcast(out, count, MPI_INT, root, comm);
        EXPECT_EQUAL(out[count - 1], round);
        MPI_Request request;
        int mine = expect_rank * 10 + thread, sum = -1;
        MPI_Iallreduce(&mine, &sum, 1, MPI_INT, MPI_MAX, comm, &request);
        MPI_Barrier(comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(sum, (expect_size - 1) * 10 + thread);
    }
    free(out);
    free(in);
    return NULL;
}

/* Each makes communicators of its own one, uses them and frees them. */
static void *communicators(void *number)
{
    int thread = *(int *)number;
    for (int round = 0; round < 20; round++) {
        MPI_Comm copy;
        int sum = -1, one = 1;
        MPI_Comm_dup(comms[thread], &copy);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, copy);
        EXPECT_EQUAL(sum, expect_size);
        ping_pong(copy, 1, 3);
        MPI_Comm_free(&copy);
    }
    return NULL;
}

/* All threads receive from any source the messages of all threads: each message comes once. A matched probe takes it
 * for its thread. */
enum { EACH = 200 };
static int seen[THREADS][EACH * THREADS]; /* by the thread that received it */

static void *all_accept_what_arrives(void *number)
{
    int thread = *(int *)number;
    MPI_Request sends[EACH];
    int values[EACH];
    for (int i = 0; i < EACH; i++) {
        values[i] = thread * EACH + i;
        MPI_Isend(&values[i], 1, MPI_INT, expect_right, 0, MPI_COMM_WORLD, &sends[i]);
    }
    for (int i = 0; i < EACH; i++) {
        int value = -1;
        MPI_Message message;
        if (i % 2) {
            MPI_Mprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            MPI_Mrecv(&value, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        EXPECT(value >= 0 && value < EACH * THREADS);
        seen[thread][value < 0 ? 0 : value % (EACH * THREADS)]++;
    }
    MPI_Waitall(EACH, sends, MPI_STATUSES_IGNORE);
    return NULL;
}

static void each_message_arrived_once(void)
{
    for (int value = 0; value < EACH * THREADS; value++) {
        int sum = 0;
        for (int thread = 0; thread < THREADS; thread++) {
            sum += seen[thread][value];
        }
        EXPECT_EQUAL(sum, 1);
    }
}

/* Threads 1 to 3 complete the generalized requests that thread 0 waits for. */
static MPI_Request general[THREADS];

static int general_query(void *state, MPI_Status *status)
{
    (void)state;
    MPI_Status_set_elements(status, MPI_INT, 1);
    MPI_Status_set_cancelled(status, 0);
    return MPI_SUCCESS;
}

static int general_free(void *state)
{
    ++*(int *)state;
    return MPI_SUCCESS;
}

static int general_cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

static void *one_waits_for_the_others(void *number)
{
    int thread = *(int *)number;
    MPI_Request mine[THREADS - 1];
    if (thread == 0) {
        memcpy(mine, general + 1, sizeof(mine));
        EXPECT_EQUAL(MPI_Waitall(THREADS - 1, mine, MPI_STATUSES_IGNORE), MPI_SUCCESS);
    } else {
        ping_pong(comms[thread], thread, 5);
        EXPECT_EQUAL(MPI_Grequest_complete(general[thread]), MPI_SUCCESS);
    }
    return NULL;
}

static void generalized_requests(void)
{
    int freed = 0;
    for (int i = 1; i < THREADS; i++) {
        MPI_Grequest_start(general_query, general_free, general_cancel, &freed, &general[i]);
    }
    in_threads(one_waits_for_the_others);
    EXPECT_EQUAL(freed, THREADS - 1);
}

static void *only_the_main_thread_is_main(void *number)
{
    int flag = 1;
    (void)number;
    MPI_Is_thread_main(&flag);
    EXPECT_EQUAL(flag, 0);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided = -1;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    EXPECT_EQUAL(provided, MPI_THREAD_MULTIPLE);
    expect_ranks();
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
    }
    in_threads(only_the_main_thread_is_main);
    in_threads(on_their_own_communicators);
    in_threads(by_their_own_tags);
    in_threads(one_is_blocked);
    in_threads(collectives);
    in_threads(communicators);
    MPI_Barrier(MPI_COMM_WORLD); /* no wildcard before all are here */
    in_threads(all_accept_what_arrives);
    each_message_arrived_once();
    generalized_requests();
    for (int i = 0; i < THREADS; i++) {
        MPI_Comm_free(&comms[i]);
    }
    return expect_end();
}
