/* Latency and bandwidth between two ranks, for any MPI library: the scripts of this folder compile it with each mpicc.
 *
 *    pingpong SECONDS [BYTES...]     half a round trip and a stream of messages for each size
 *
 * A line a number, by rank 0: "latency BYTES MICROSECONDS", "stream BYTES MIBPS". The stream's messages are received in
 * windows that are posted beforehand, as in the well-known benchmarks; each window is answered by one short message. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW_BYTES = 4 << 20, WINDOW_MAX = 64, BATCH = 16, SIZES_MAX = 16 };

static int rank;
static char *memory;

/* Rank 0 decides on the end, so that both do the same number of rounds. */
static int goes_on(double until)
{
    int more = rank == 0 && MPI_Wtime() < until;
    MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return more;
}

static void ping_pong(int bytes)
{
    for (int i = 0; i < BATCH * 8; i++) {
        if (rank == 0) {
            MPI_Send(memory, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(memory, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(memory, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(memory, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
}

static void latency(int bytes, double seconds)
{
    double spent = 0;
    long trips = 0;
    ping_pong(bytes); /* warm */
    double until = MPI_Wtime() + seconds;
    while (goes_on(until)) {
        double start = MPI_Wtime();
        ping_pong(bytes);
        spent += MPI_Wtime() - start;
        trips += BATCH * 8;
    }
    if (rank == 0) {
        printf("latency %d %.3f\n", bytes, spent / (double)trips / 2 * 1e6);
    }
}

static void stream(int bytes, double seconds)
{
    MPI_Request requests[WINDOW_MAX];
    MPI_Status statuses[WINDOW_MAX];
    int window = WINDOW_BYTES / bytes < WINDOW_MAX ? WINDOW_BYTES / bytes : WINDOW_MAX;
    double spent = 0;
    long windows = 0;
    double until = 0;
    for (int warm = 1; warm || windows == 0 || goes_on(until); warm = 0) {
        double start = MPI_Wtime();
        for (int round = 0; round < BATCH / 4; round++) {
            for (int i = 0; i < window; i++) {
                char *at = memory + (size_t)i * (size_t)bytes;
                if (rank == 0) {
                    MPI_Isend(at, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD, &requests[i]);
                } else {
                    MPI_Irecv(at, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[i]);
                }
            }
            MPI_Waitall(window, requests, statuses);
            if (rank == 0) {
                MPI_Recv(NULL, 0, MPI_BYTE, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Send(NULL, 0, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
            }
        }
        if (warm) {
            until = MPI_Wtime() + seconds;
        } else {
            spent += MPI_Wtime() - start;
            windows += BATCH / 4;
        }
    }
    if (rank == 0) {
        printf("stream %d %.2f\n", bytes, (double)windows * window * bytes / spent / (1 << 20));
    }
}

int main(int argc, char **argv)
{
    int size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double seconds = argc > 1 ? atof(argv[1]) : 0.3;
    memory = malloc(WINDOW_BYTES + 1);
    if (size != 2 || memory == NULL) {
        fprintf(stderr, "two ranks are wanted\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    memset(memory, rank, WINDOW_BYTES);
    latency(8, seconds);
    for (int i = 2; i < argc; i++) {
        stream(atoi(argv[i]), seconds);
    }
    fflush(stdout);
    free(memory);
    MPI_Finalize();
    return 0;
}
