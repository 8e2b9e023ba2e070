/* Long collectives behind more sends than the path takes at a time: the notice that a put is there waits in line, and
 * is sent once. Each rank knows the sum without the others. */
#include "expect.h"

enum { SENDS = 4000, SEND_INTS = 1000, COUNT = 200000, ROUNDS = 3 };

static void sums(int *own, int *all)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++)
            own[i] = expect_rank * 7 + i % 1001 + round;
        EXPECT_EQUAL(MPI_Allreduce(own, all, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD), MPI_SUCCESS);
        for (int i = 0; i < COUNT; i++)
            EXPECT_EQUAL(all[i], 7 * expect_size * (expect_size - 1) / 2 + expect_size * (i % 1001 + round));
    }
}

/* From each rank to the next one. */
static void sends(int *data, MPI_Request *requests)
{
    int next = (expect_rank + 1) % expect_size;
    for (int i = 0; i < SENDS; i++) {
        int *message = data + (size_t)i * SEND_INTS;
        for (int k = 0; k < SEND_INTS; k++)
            message[k] = expect_rank + i + k;
        MPI_Isend(message, SEND_INTS, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[i]);
    }
}

static void receives(int *message)
{
    int before = (expect_rank + expect_size - 1) % expect_size;
    for (int i = 0; i < SENDS; i++) {
        EXPECT_EQUAL(MPI_Recv(message, SEND_INTS, MPI_INT, before, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE), MPI_SUCCESS);
        for (int k = 0; k < SEND_INTS; k++)
            EXPECT_EQUAL(message[k], before + i + k);
    }
}

int main(int argc, char **argv)
{
    expect_start(&argc, &argv);
    int *data = malloc((size_t)SENDS * SEND_INTS * sizeof(*data));
    int *own = malloc(COUNT * sizeof(*own)), *all = malloc(COUNT * sizeof(*all));
    MPI_Request *requests = malloc(SENDS * sizeof(MPI_Request));
    sends(data, requests);
    sums(own, all);
    receives(own);
    MPI_Waitall(SENDS, requests, MPI_STATUSES_IGNORE);
    free(data), free(own), free(all), free(requests);
    return expect_end();
}
