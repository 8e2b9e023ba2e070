/* Ranks that make all kinds of calls, without end or TURNS times, to be killed by ending_random.py: `busy SEED
 * [TURNS]`. Each prints its process before MPI_Init and "end" before MPI_Finalize, rank 0 a line every few calls. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <mpi.h>

enum { INTS = 1 << 15, CALLS_A_LINE = 8 };

static int rank, size;
static int tag; /* another one in each turn: receives from any source take no message of a later turn */
static int from[INTS], to[INTS];
static MPI_Comm scattered[2];

static void ring(int count)
{
    MPI_Sendrecv(from, count, MPI_INT, (rank + 1) % size, 1, to, count, MPI_INT, (rank + size - 1) % size, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void to_the_first(int count)
{
    MPI_Status status;
    if (rank > 0) {
        MPI_Ssend(from, count, MPI_INT, 0, tag, MPI_COMM_WORLD);
        return;
    }
    for (int other = 1; other < size; other++) {
        MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
        MPI_Recv(to, count, MPI_INT, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

static void to_all(int count)
{
    MPI_Request requests[64];
    int used = 0;
    for (int other = 0; other < size && used < 62; other++) {
        MPI_Irecv(to, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &requests[used++]);
        MPI_Isend(from, 1, MPI_INT, other, 3, MPI_COMM_WORLD, &requests[used++]);
    }
    (void)count;
    MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
}

static void new_communicator(int count)
{
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Allreduce(from, to, count, MPI_INT, MPI_SUM, half);
    MPI_Comm_free(&half);
}

static void later(int count)
{
    MPI_Request request;
    MPI_Iallreduce(from, to, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void barrier(int count)
{
    (void)count;
    MPI_Barrier(MPI_COMM_WORLD);
}

static void broadcast(int count)
{
    MPI_Bcast(to, count, MPI_INT, count % size, MPI_COMM_WORLD);
}

static void reduction(int count)
{
    MPI_Allreduce(from, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

static void exchange(int count)
{
    count = count < INTS / size ? count : INTS / size;
    MPI_Alltoall(from, count, MPI_INT, to, count, MPI_INT, MPI_COMM_WORLD);
}

/* To all but the last rank, by turns to the group of all and to a group of the receivers. */
static void scatter_v(int count)
{
    int counts[64], places[64];
    count = count < INTS / size ? count : INTS / size;
    for (int other = 0; other < size; other++) {
        counts[other] = other < size - 1 ? count : 0;
        places[other] = other * count;
    }
    MPI_Scatterv(from, counts, places, MPI_INT, to, counts[rank], MPI_INT, count % size, scattered[tag % 2]);
}

static void scattered_make(void)
{
    static const char *const ways[] = {"scatterv=static", "scatterv=dynamic"};
    for (int i = 0; i < 2; i++) {
        MPI_Info info;
        MPI_Info_create(&info);
        MPI_Info_set(info, "causeway_algorithm", ways[i]);
        MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &scattered[i]);
        MPI_Info_free(&info);
    }
}

static void (*const calls[])(int count) = {ring,    to_the_first, to_all,    new_communicator, later,
                                           barrier, broadcast,    reduction, exchange,         scatter_v};

int main(int argc, char **argv)
{
    const char *place = getenv("PMI_RANK");
    unsigned random = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    unsigned turns = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
    printf("process %s %d\n", place != NULL ? place : "0", (int)getpid());
    fflush(stdout);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    scattered_make();
    for (unsigned turn = 0; turns == 0 || turn < turns; turn++) {
        random = random * 1664525u + 1013904223u; /* the same at all ranks */
        tag = 10 + (int)(turn % 1000);
        int count = (random >> 8) % 4 == 0 ? INTS : 1 + (int)((random >> 12) % 100);
        calls[(random >> 20) % (sizeof(calls) / sizeof(calls[0]))](count);
        if (rank == 0 && turn % CALLS_A_LINE == 0) {
            printf("turn %u\n", turn);
            fflush(stdout);
        }
    }
    printf("end\n");
    fflush(stdout);
    for (int i = 0; i < 2; i++) {
        MPI_Comm_free(&scattered[i]);
    }
    MPI_Finalize();
    return 0;
}
