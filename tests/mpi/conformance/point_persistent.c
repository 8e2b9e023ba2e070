/* Persistent requests and cancellation (MPI 5.0, 3.8.4, 3.9). */
#include "tests/mpi/expect.h"

#include <string.h>

typedef int init_function(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);

static init_function *const inits[] = {MPI_Send_init, MPI_Ssend_init, MPI_Bsend_init, MPI_Rsend_init};

/* Each mode, many rounds with one pair of requests, started one by one or together, completed in turn by
 * several calls. */
static void rounds(int mode, int count)
{
    enum { ROUNDS = 30 };
    int *out = calloc((size_t)count + 1, sizeof(int)), *in = calloc((size_t)count + 1, sizeof(int)), flag;
    MPI_Request requests[2];
    EXPECT_EQUAL(MPI_Recv_init(in, count, MPI_INT, mode % 2 ? expect_left : MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                               &requests[0]),
                 MPI_SUCCESS);
    EXPECT_EQUAL(inits[mode](out, count, MPI_INT, expect_right, mode, MPI_COMM_WORLD, &requests[1]), MPI_SUCCESS);
    const MPI_Request before[2] = {requests[0], requests[1]};
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Status statuses[2];
        out[0] = out[count] = round * 1000 + expect_rank;
        if (mode == 3 || round % 2) {
            EXPECT_EQUAL(MPI_Start(&requests[0]), MPI_SUCCESS);
            MPI_Barrier(MPI_COMM_WORLD); /* for the ready send */
            EXPECT_EQUAL(MPI_Start(&requests[1]), MPI_SUCCESS);
        } else {
            EXPECT_EQUAL(MPI_Startall(2, requests), MPI_SUCCESS);
        }
        if (round % 3 == 0) {
            EXPECT_EQUAL(MPI_Waitall(2, requests, statuses), MPI_SUCCESS);
        } else if (round % 3 == 1) {
            MPI_Wait(&requests[1], &statuses[1]);
            MPI_Wait(&requests[0], &statuses[0]);
        } else {
            for (flag = 0; !flag;) {
                MPI_Testall(2, requests, &flag, statuses);
            }
        }
        EXPECT(requests[0] == before[0] && requests[1] == before[1]);
        EXPECT_RECEIVED(&statuses[0], expect_left, mode, MPI_INT, count);
        if (count > 0) {
            EXPECT_EQUAL(in[0], round * 1000 + expect_left);
        }
        MPI_Barrier(MPI_COMM_WORLD); /* the wildcard must not take a message of the next mode */
    }
    EXPECT_EQUAL(MPI_Request_free(&requests[0]), MPI_SUCCESS);
    EXPECT_EQUAL(MPI_Request_free(&requests[1]), MPI_SUCCESS);
    EXPECT(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    free(out);
    free(in);
}

static void modes(void)
{
    enum { BYTES = 2000000 };
    void *buffer = malloc(BYTES);
    int bytes;
    MPI_Buffer_attach(buffer, BYTES);
    for (int mode = 0; mode < 4; mode++) {
        rounds(mode, 0);
        rounds(mode, 7);
        rounds(mode, 40000);
    }
    MPI_Buffer_detach(&buffer, &bytes);
    free(buffer);
}

/* The buffers are looked at when the request is started, not when it is made. */
static void buffers_count_at_the_start(void)
{
    int out = 1, in = 0;
    MPI_Request send;
    MPI_Send_init(&out, 1, MPI_INT, expect_right, 0, MPI_COMM_WORLD, &send);
    out = 2;
    MPI_Start(&send);
    MPI_Recv(&in, 1, MPI_INT, expect_left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in, 2);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Request_free(&send);
}

static void nobody_answers_at_once(void)
{
    int value = 3;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    MPI_Send_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &requests[1]);
    for (int round = 0; round < 3; round++) {
        EXPECT_EQUAL(MPI_Startall(2, requests), MPI_SUCCESS);
        EXPECT_EQUAL(MPI_Waitall(2, requests, statuses), MPI_SUCCESS);
        EXPECT_EQUAL(statuses[1].MPI_SOURCE, MPI_PROC_NULL);
        EXPECT_EQUAL(statuses[1].MPI_TAG, MPI_ANY_TAG);
        EXPECT_EQUAL(value, 3);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

/* A freed request that is under way comes to its end. */
static void freed_while_active(void)
{
    static int out[50000], in[50000];
    MPI_Request send;
    out[49999] = expect_rank + 1;
    MPI_Send_init(out, 50000, MPI_INT, expect_right, 0, MPI_COMM_WORLD, &send);
    MPI_Start(&send);
    EXPECT_EQUAL(MPI_Request_free(&send), MPI_SUCCESS);
    EXPECT(send == MPI_REQUEST_NULL);
    MPI_Recv(in, 50000, MPI_INT, expect_left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in[49999], expect_left + 1);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void only_inactive_persistent_requests_start(void)
{
    int value = 0;
    MPI_Request request;
    MPI_Recv_init(&value, 1, MPI_INT, expect_left, 11, MPI_COMM_WORLD, &request);
    MPI_Start(&request);
    EXPECT_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
    EXPECT_CLASS(MPI_Startall(1, &request), MPI_ERR_REQUEST);
    MPI_Send(&value, 1, MPI_INT, expect_right, 11, MPI_COMM_WORLD);
    EXPECT_EQUAL(MPI_Wait(&request, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Request_free(&request);
    MPI_Irecv(&value, 1, MPI_INT, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
    EXPECT_CLASS(MPI_Start(&request), MPI_ERR_REQUEST);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static int was_cancelled(MPI_Request *request)
{
    MPI_Status status;
    int flag = -1;
    EXPECT_EQUAL(MPI_Wait(request, &status), MPI_SUCCESS);
    MPI_Test_cancelled(&status, &flag);
    return flag;
}

/* A receive without a message can only be cancelled; a later message goes to the next one. */
static void posted_receives_are_cancelled(int source)
{
    int in = -1, next = -1, out = 5;
    MPI_Request request;
    MPI_Irecv(&in, 1, MPI_INT, source, 1, MPI_COMM_WORLD, &request);
    EXPECT_EQUAL(MPI_Cancel(&request), MPI_SUCCESS);
    EXPECT_EQUAL(was_cancelled(&request), 1);
    EXPECT(request == MPI_REQUEST_NULL);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Send(&out, 1, MPI_INT, expect_right, 1, MPI_COMM_WORLD);
    MPI_Recv(&next, 1, MPI_INT, source, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(next, 5);
    EXPECT_EQUAL(in, -1);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A persistent one becomes inactive, and can be started again. */
static void persistent_receives_are_cancelled(void)
{
    int in = -1, out = 6;
    MPI_Request request;
    MPI_Recv_init(&in, 1, MPI_INT, expect_left, 2, MPI_COMM_WORLD, &request);
    const MPI_Request before = request;
    for (int round = 0; round < 5; round++) {
        MPI_Start(&request);
        MPI_Cancel(&request);
        EXPECT_EQUAL(was_cancelled(&request), 1);
        EXPECT(request == before);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Start(&request);
    MPI_Send(&out, 1, MPI_INT, expect_right, 2, MPI_COMM_WORLD);
    EXPECT_EQUAL(was_cancelled(&request), 0);
    EXPECT_EQUAL(in, 6);
    MPI_Request_free(&request);
}

/* Too late: either the receive has the message, or the message is still there for another. */
static void receives_cancelled_too_late(int count)
{
    int *out = calloc((size_t)count, sizeof(int)), *in = calloc((size_t)count, sizeof(int));
    MPI_Request receive, send;
    out[count - 1] = expect_rank + 1;
    MPI_Isend(out, count, MPI_INT, expect_right, 3, MPI_COMM_WORLD, &send);
    MPI_Probe(expect_left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(in, count, MPI_INT, expect_left, 3, MPI_COMM_WORLD, &receive);
    EXPECT_EQUAL(MPI_Cancel(&receive), MPI_SUCCESS);
    if (was_cancelled(&receive)) {
        MPI_Recv(in, count, MPI_INT, expect_left, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    EXPECT_EQUAL(in[count - 1], expect_left + 1);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    free(out);
    free(in);
    MPI_Barrier(MPI_COMM_WORLD);
}

/* One of many, from their midst; the others keep their order. */
static void some_of_many_are_cancelled(void)
{
    enum { COUNT = 50 };
    int in[COUNT], out[COUNT], next = 0;
    MPI_Request requests[COUNT];
    for (int i = 0; i < COUNT; i++) {
        in[i] = -1;
        MPI_Irecv(&in[i], 1, MPI_INT, i % 2 ? expect_left : MPI_ANY_SOURCE, i % 3 ? 4 : MPI_ANY_TAG, MPI_COMM_WORLD,
                  &requests[i]);
    }
    for (int i = 0; i < COUNT; i += 5) {
        MPI_Cancel(&requests[i]);
        EXPECT_EQUAL(was_cancelled(&requests[i]), 1);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < COUNT - COUNT / 5; i++) {
        out[i] = i;
        MPI_Send(&out[i], 1, MPI_INT, expect_right, 4, MPI_COMM_WORLD);
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COUNT; i++) {
        EXPECT_EQUAL(in[i], i % 5 == 0 ? -1 : next++);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* A send that is not received until it has come to an end: MPI_Wait must return. The receiver gets the message if it
 * was not cancelled, else only what was sent after it. */
static void sends_are_cancelled(int count, int synchronous)
{
    int *out = calloc((size_t)count, sizeof(int)), *in = calloc((size_t)count, sizeof(int)), cancelled, theirs;
    MPI_Request request = MPI_REQUEST_NULL;
    out[0] = 1;
    (synchronous ? MPI_Issend : MPI_Isend)(out, count, MPI_INT, expect_right, 5, MPI_COMM_WORLD, &request);
    EXPECT_EQUAL(MPI_Cancel(&request), MPI_SUCCESS);
    cancelled = was_cancelled(&request);
    EXPECT(request == MPI_REQUEST_NULL);
    EXPECT(!synchronous || cancelled == 1);
    MPI_Sendrecv(&cancelled, 1, MPI_INT, expect_right, 6, &theirs, 1, MPI_INT, expect_left, 6, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    int two = 2;
    MPI_Isend(&two, 1, MPI_INT, expect_right, 5, MPI_COMM_WORLD, &request);
    if (!theirs) {
        MPI_Recv(in, count, MPI_INT, expect_left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        EXPECT_EQUAL(in[0], 1);
    }
    MPI_Recv(in, count, MPI_INT, expect_left, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_EQUAL(in[0], 2);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(out);
    free(in);
}

/* A send that has been received cannot be cancelled. */
static void sends_cancelled_too_late(void)
{
    int out = 1, in = 0;
    MPI_Request request;
    MPI_Issend(&out, 1, MPI_INT, expect_right, 7, MPI_COMM_WORLD, &request);
    MPI_Recv(&in, 1, MPI_INT, expect_left, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    EXPECT_EQUAL(MPI_Cancel(&request), MPI_SUCCESS);
    EXPECT_EQUAL(was_cancelled(&request), 0);
    EXPECT_EQUAL(in, 1);
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    modes();
    buffers_count_at_the_start();
    nobody_answers_at_once();
    freed_while_active();
    only_inactive_persistent_requests_start();
    MPI_Barrier(MPI_COMM_WORLD);
    posted_receives_are_cancelled(expect_left);
    posted_receives_are_cancelled(MPI_ANY_SOURCE);
    persistent_receives_are_cancelled();
    receives_cancelled_too_late(1);
    receives_cancelled_too_late(50000);
    some_of_many_are_cancelled();
    for (int synchronous = 0; synchronous < 2; synchronous++) {
        sends_are_cancelled(1, synchronous);
        sends_are_cancelled(50000, synchronous);
        sends_are_cancelled(500000, synchronous);
    }
    sends_cancelled_too_late();
    return expect_end();
}
