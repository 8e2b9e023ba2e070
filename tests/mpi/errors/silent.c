/* The last rank falls silent, or computes, while the others need it: `silent KIND SECONDS`, for silent_usage.py. It is
 * stopped by a signal: alive for its launcher, and silent for everybody else. KIND held: it exchanges numbers with the
 * others, so that somebody else can hold it meanwhile. */
#include <glob.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

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

static int is_stopped(const char *path)
{
    char state = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL || fscanf(file, "%*d (%*[^)]) %c", &state) != 1) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fclose(file);
    return state == 'T';
}

/* Waits until all threads of a process of this machine are stopped. */
static void await_stop(int process)
{
    char pattern[64];
    glob_t threads;
    int running = 1;
    snprintf(pattern, sizeof pattern, "/proc/%d/task/*/stat", process);
    while (running > 0) {
        usleep(1000);
        running = glob(pattern, 0, NULL, &threads) != 0;
        for (size_t i = 0; i < threads.gl_pathc; i++) {
            running += !is_stopped(threads.gl_pathv[i]);
        }
        globfree(&threads);
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
    } else if (rank == size - 1 && strcmp(kind, "compute") != 0) {
        if (strcmp(kind, "beside") == 0) {
            number = (int)getpid();
            MPI_Send(&number, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
        raise(SIGSTOP);
    } else if (rank == size - 1) {
        sleep(argc > 2 ? (unsigned)atoi(argv[2]) : 0);
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
    } else if (strcmp(kind, "beside") == 0) { /* a send shows that it is silent, and nobody waits for it */
        if (rank == 0) {
            /* it must not acknowledge the message before it stops */
            MPI_Recv(&number, 1, MPI_INT, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            await_stop(number);
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
