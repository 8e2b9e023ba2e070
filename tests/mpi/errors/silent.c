/* The last rank falls silent, or computes, while the others need it: `silent KIND`, for silent_usage.py. The simulator
 * stops its host half a second after the start. KIND held: on the real clock, it exchanges numbers with the others, so
 * that a debugger can hold it. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

enum { COMPUTE_S = 300 };

/* The last rank says that it is there; then all exchange numbers until rank 0's standard input ends. */
static void exchange_long(int rank, int size)
{
    int goes_on = 1;
    if (rank == size - 1) {
        printf("ready\n");
        fflush(stdout);
    }
    while (goes_on) {
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        int mine = rank != 0 || poll(&input, 1, 0) == 0;
        MPI_Allreduce(&mine, &goes_on, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank, size, number = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *kind = argc > 1 ? argv[1] : "";
    for (int i = 0; i < 3; i++) {
        MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (strcmp(kind, "held") == 0) {
        exchange_long(rank, size);
    } else if (rank == size - 1) {
        sleep(strcmp(kind, "compute") == 0 ? COMPUTE_S : 1); /* it is stopped meanwhile */
        MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
    } else if (strcmp(kind, "bcast") == 0) {
        for (;;) {
            MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
            usleep(1000);
        }
    } else if (strcmp(kind, "any") == 0 || strcmp(kind, "probe") == 0) { /* the others need rank 0 alone */
        if (rank == 0 && kind[0] == 'p') {
            MPI_Probe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        MPI_Recv(&number, 1, MPI_INT, rank == 0 ? MPI_ANY_SOURCE : 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(kind, "beside") == 0) { /* a send shows that it is silent, and no rank waits for it */
        if (rank == 0) {
            sleep(1); /* it must not acknowledge the message before it stops */
            MPI_Send(&number, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD);
        }
        MPI_Recv(&number, 1, MPI_INT, rank == 0 ? 1 : 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 0 && strcmp(kind, "barrier") != 0) {
        MPI_Recv(&number, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
