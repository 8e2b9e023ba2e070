/* Traced: the calls that a trace has, beside those of the kernels: wildcards, persistent requests, exchanges, calls
 * with a root. Before the part that is marked there is one that it has not; with an argument it comes within, too. */
#include <stdio.h>
#include <stdlib.h>

#include <mpi.h>

enum { COUNT = 3000, ROUNDS = 3 };

static double out[COUNT], in[2][COUNT];

static void ring(int rank, int ranks)
{
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    MPI_Sendrecv(out, COUNT, MPI_DOUBLE, next, 1, in[0], COUNT, MPI_DOUBLE, before, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 5, MPI_INT, rank, 2, in[0], 5, MPI_INT, rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(out, 5, MPI_INT, MPI_PROC_NULL, 2, in[0], 5, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

/* Whoever sends first is received first. */
static void wildcards(int rank, int ranks)
{
    MPI_Request request;
    for (int i = 1; i < ranks && rank == 0; i++) {
        MPI_Irecv(in[0], COUNT, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (rank != 0) {
        MPI_Isend(out, 100 * rank, MPI_DOUBLE, 0, rank, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void persistent(MPI_Request requests[2])
{
    for (int round = 0; round < ROUNDS; round++) {
        out[round] += 1;
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        MPI_Start(&requests[0]);
        MPI_Start(&requests[1]);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Request requests[2];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < COUNT; i++) {
        out[i] = rank + i * 1e-3;
    }
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    MPI_Send_init(out, COUNT, MPI_DOUBLE, next, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in[1], COUNT, MPI_DOUBLE, before, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Allgather(out, 1, MPI_DOUBLE, in[0], 1, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Pcontrol(1);
    ring(rank, ranks);
    wildcards(rank, ranks);
    MPI_Barrier(MPI_COMM_WORLD); /* or what follows would be taken there, too */
    persistent(requests);
    MPI_Bcast(in[0], COUNT, MPI_DOUBLE, ranks - 1, MPI_COMM_WORLD);
    MPI_Reduce(out, in[0], COUNT, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (argc > 1) {
        MPI_Allgather(out, 1, MPI_DOUBLE, in[0], 1, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Pcontrol(0);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    MPI_Finalize();
    return 0;
}
