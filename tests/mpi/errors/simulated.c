/* Programs for simulate_usage.py: simulated MODE
 *
 *   exchange   all ranks exchange and verify data; rank 0 prints times in microseconds: a round trip of 8 bytes, and a
 *              message of 1 MB
 *   stuck      each rank waits for a message that is never sent
 *   polls      the same, by MPI_Test
 *   sleeps     rank r sleeps for 100 * r seconds, by each function of the C library in turn, before a barrier
 *   clock      waits for 2 s by clock_gettime, computes, and prints the time that this took
 *   arguments  rank 0 prints its further arguments
 *   watches    rank 0 waits for memory to change, without an MPI call
 *   forks      each rank has a child that sleeps; then as exchange
 *   incast     all ranks send 1 MB to rank 0 at the same time, which verifies it
 *   half       broadcasts among the first half of the ranks
 *   threads    prints the level of thread support */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mpi.h"

enum { BYTES = 1000000, ROUNDS = 10 };

static int rank, size;

static void exchange(void)
{
    char *data = malloc(BYTES), *got = malloc(BYTES);
    int last = size - 1, sum = 0;
    double times[3] = {0, 0, 0};
    for (int i = 0; i < BYTES; i++) {
        data[i] = (char)(i * 7 + rank);
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int bytes = 8, at = 0; at < 2; bytes = BYTES, at++) {
        double begin = MPI_Wtime();
        for (int i = 0; i < ROUNDS && (rank == 0 || rank == last); i++) {
            if (rank == 0) {
                MPI_Send(data, bytes, MPI_CHAR, last, 1, MPI_COMM_WORLD);
                MPI_Recv(got, 8, MPI_CHAR, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else {
                MPI_Recv(got, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(data, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
            }
        }
        times[at] = (MPI_Wtime() - begin) / ROUNDS;
    }
    for (int i = 0; i < BYTES && rank == last && rank != 0; i++) {
        if (got[i] != (char)(i * 7)) {
            printf("byte %d is wrong\n", i);
            exit(1);
        }
    }
    if (rank == 0) {
        printf("sum %d, round trip %.3f, message %.3f\n", sum, times[0] * 1e6, times[1] * 1e6);
    }
    free(data);
    free(got);
}

static double elapsed_s(const struct timespec *begin, const struct timespec *now)
{
    return (double)(now->tv_sec - begin->tv_sec) + 1e-9 * (double)(now->tv_nsec - begin->tv_nsec);
}

/* A program that waits for a time by looking at the clock, and computes in between. */
static void incast(void)
{
    char *data = malloc(BYTES), *all = malloc((size_t)size * BYTES);
    memset(data, rank, BYTES);
    MPI_Gather(data, BYTES, MPI_BYTE, all, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    for (size_t i = 0; rank == 0 && i < (size_t)size * BYTES; i++) {
        if (all[i] != (char)(i / BYTES)) {
            fprintf(stderr, "wrong byte %zu\n", i);
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
    }
    free(data);
    free(all);
}

static void half_bcasts(void)
{
    char *data = calloc(1, BYTES);
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2 ? 0 : MPI_UNDEFINED, rank, &half);
    for (int round = 1; round <= ROUNDS && half != MPI_COMM_NULL; round++) {
        memset(data, rank == 0 ? round : 0, BYTES);
        MPI_Bcast(data, BYTES, MPI_BYTE, 0, half);
        for (int i = 0; i < BYTES; i++) {
            if (data[i] != round) {
                fprintf(stderr, "rank %d: wrong byte %d\n", rank, i);
                MPI_Abort(MPI_COMM_WORLD, 4);
            }
        }
    }
    if (half != MPI_COMM_NULL) {
        MPI_Comm_free(&half);
    }
    free(data);
}

static void watches_clock(void)
{
    struct timespec begin, now;
    volatile double sum = 0;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (elapsed_s(&begin, &now) < 1.9995);
    for (int i = 0; i < 20000000; i++) {
        sum += i;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    int (*volatile look)(struct timeval *, void *) = gettimeofday; /* glibc permits NULL, its header does not */
    look(NULL, NULL);
    printf("%s %d: %.6f s\n", sum > 0 ? "rank" : "wrong", rank, elapsed_s(&begin, &now));
}

static void sleeps(void)
{
    struct timespec begin, end, part = {.tv_sec = 100};
    struct timeval before, after;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    gettimeofday(&before, NULL);
    if (rank == 1) {
        sleep(100);
    } else if (rank == 2) {
        usleep(200000000);
    } else if (rank == 3) {
        nanosleep(&part, NULL);
        clock_nanosleep(CLOCK_REALTIME, 0, &part, NULL);
        clock_gettime(CLOCK_MONOTONIC, &end);
        end.tv_sec += 100;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    clock_gettime(CLOCK_MONOTONIC, &end);
    gettimeofday(&after, NULL);
    printf("rank %d: %ld s, %ld s, %.0f s\n", rank, (long)(end.tv_sec - begin.tv_sec),
           (long)(after.tv_sec - before.tv_sec), MPI_Wtime());
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int provided, number = 0, is_over = 0;
    MPI_Request request;
    MPI_Init_thread(&argc, &argv, strcmp(mode, "threads") == 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (strcmp(mode, "exchange") == 0) {
        exchange();
    } else if (strcmp(mode, "forks") == 0) {
        int child = fork();
        int status = -1;
        if (child == 0) {
            int version, subversion;
            usleep(1000);
            MPI_Get_version(&version, &subversion);
            _exit(0);
        }
        (void)waitpid(child, &status, 0);
        if (status != 0) {
            printf("a child ends with status %d\n", status);
        }
        exchange();
    } else if (strcmp(mode, "stuck") == 0) {
        MPI_Recv(&number, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(mode, "polls") == 0) {
        MPI_Irecv(&number, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, &request);
        while (!is_over) {
            MPI_Test(&request, &is_over, MPI_STATUS_IGNORE);
        }
    } else if (strcmp(mode, "sleeps") == 0) {
        sleeps();
    } else if (strcmp(mode, "clock") == 0) {
        watches_clock();
    } else if (strcmp(mode, "arguments") == 0) {
        for (int i = 2; i < argc && rank == 0; i++) {
            printf("%s ", argv[i]);
        }
    } else if (strcmp(mode, "watches") == 0) {
        volatile int word = 0;
        while (rank == 0 && word == 0) {
        }
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (strcmp(mode, "incast") == 0) {
        incast();
    } else if (strcmp(mode, "half") == 0) {
        half_bcasts();
    } else if (strcmp(mode, "threads") == 0) {
        printf("%s\n", provided == MPI_THREAD_FUNNELED ? "funneled" : "another level");
    }
    MPI_Finalize();
    MPI_Finalized(&is_over);
    return is_over ? 0 : 1;
}
