/* A program to be recorded, and run again by its plan: collectives of all kinds, round by round, each checked byte by
 * byte. Its options make its calls differ from the recorded ones.
 *
 * usage: mpi_recorded [only=NAME] [rounds=N] [alter=RANK] [bytes=N] [more] [persistent] [nonblocking] [inplace]
 * [load=FILE]
 *   alter=RANK   from the second round on this rank sends its neighbour an element more by all-to-all-v
 *   bytes=N      of a broadcast
 *   load=FILE    only loads phases of an all-to-all-v
 *   more         every other all-to-all-v has twice the counts */
#include <mpi.h>
#include <mpix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 64, BLOCK = 40 };

static int rank, ranks, faults;
static const char *only;
static const char *phases_path;
static int rounds = 6, alter = -1, bcast_bytes = 3000;
static bool more, persistent, nonblocking, inplace;

static void expect(bool is_right, const char *what, int round)
{
    if (!is_right && faults++ < 5) {
        fprintf(stderr, "recorded: rank %d: %s is wrong in round %d\n", rank, what, round);
    }
}

static bool wanted(const char *name)
{
    return only == NULL || strcmp(only, name) == 0;
}

static void await(MPI_Request *request)
{
    MPI_Wait(request, MPI_STATUS_IGNORE);
}

static void bcast_test(MPI_Comm comm, int round)
{
    static char bytes[100000];
    int own, root, size;
    MPI_Request request;
    MPI_Comm_rank(comm, &own);
    MPI_Comm_size(comm, &size);
    root = 1 % size;
    memset(bytes, own == root ? round + 1 : 0, (size_t)bcast_bytes);
    if (nonblocking) {
        MPI_Ibcast(bytes, bcast_bytes, MPI_BYTE, root, comm, &request);
        await(&request);
    } else {
        MPI_Bcast(bytes, bcast_bytes, MPI_BYTE, root, comm);
    }
    for (int i = 0; i < bcast_bytes; i++) {
        expect(bytes[i] == round + 1, "the broadcast", round);
    }
}

static void allreduce_test(int round)
{
    int own[100], sums[100];
    for (int i = 0; i < 100; i++) {
        own[i] = rank * i + round;
    }
    MPI_Allreduce(own, sums, 100, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < 100; i++) {
        expect(sums[i] == ranks * (ranks - 1) / 2 * i + ranks * round, "the all-reduce", round);
    }
}

static void alltoall_test(int round)
{
    int own[RANKS_MAX], all[RANKS_MAX];
    for (int i = 0; i < ranks; i++) {
        own[i] = 1000 * rank + 10 * i + round;
    }
    MPI_Alltoall(own, 1, MPI_INT, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        expect(all[i] == 1000 * i + 10 * rank + round, "the all-to-all", round);
    }
}

static void allgatherv_test(int round)
{
    int own[RANKS_MAX], all[RANKS_MAX * RANKS_MAX], counts[RANKS_MAX], places[RANKS_MAX], total = 0;
    for (int i = 0; i < ranks; i++) {
        own[i] = 100 * rank + i + round;
        counts[i] = i + 1;
        places[i] = total;
        total += i + 1;
    }
    MPI_Allgatherv(own, counts[rank], MPI_INT, all, counts, places, MPI_INT, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++) {
        for (int i = 0; i < counts[from]; i++) {
            expect(all[places[from] + i] == 100 * from + i + round, "the all-gather-v", round);
        }
    }
}

static void gatherv_test(int round)
{
    int own[2] = {rank, round}, all[2 * RANKS_MAX], counts[RANKS_MAX], places[RANKS_MAX];
    for (int i = 0; i < ranks; i++) {
        counts[i] = 2;
        places[i] = 2 * i;
    }
    MPI_Gatherv(own, 2, MPI_INT, all, counts, places, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < ranks; i++) {
        expect(all[2 * i] == i && all[2 * i + 1] == round, "the gather-v", round);
    }
}

static int count_of(int from, int to, int round, bool is_double)
{
    int count = (BLOCK * (1 + (from * 7 + to * 3) % 5)) * (is_double ? 2 : 1);
    return count + (from == alter && to == (alter + 1) % ranks && round > 0);
}

static void many_test(int round)
{
    static int out[RANKS_MAX * BLOCK * 12], in[RANKS_MAX * BLOCK * 12];
    int counts[RANKS_MAX], places[RANKS_MAX], expected[RANKS_MAX], in_places[RANKS_MAX], sent = 0, got = 0;
    bool is_double = more && round % 2 == 1;
    for (int i = 0; i < ranks; i++) {
        counts[i] = inplace ? BLOCK : count_of(rank, i, round, is_double);
        expected[i] = inplace ? BLOCK : count_of(i, rank, round, is_double);
        places[i] = sent;
        in_places[i] = got + 3 * i; /* not one behind the other */
        for (int k = 0; k < counts[i]; k++) {
            *(inplace ? &in[in_places[i] + k] : &out[sent + k]) = 1000000 * rank + 10000 * i + 10 * k + round;
        }
        sent += counts[i];
        got += expected[i];
    }
    if (nonblocking) {
        MPI_Request request;
        MPI_Ialltoallv(inplace ? MPI_IN_PLACE : out, counts, places, MPI_INT, in, expected, in_places, MPI_INT,
                       MPI_COMM_WORLD, &request);
        await(&request);
    } else {
        MPI_Alltoallv(inplace ? MPI_IN_PLACE : out, counts, places, MPI_INT, in, expected, in_places, MPI_INT,
                      MPI_COMM_WORLD);
    }
    for (int from = 0; from < ranks; from++) {
        for (int k = 0; k < expected[from]; k++) {
            expect(in[in_places[from] + k] == 1000000 * from + 10000 * rank + 10 * k + round, "the all-to-all-v",
                   round);
        }
    }
}

/* The same request, round after round. */
static void persistent_test(void)
{
    int out[RANKS_MAX * 5] = {0}, in[RANKS_MAX * 5] = {0}, counts[RANKS_MAX], places[RANKS_MAX];
    MPI_Request request;
    for (int i = 0; i < ranks; i++) {
        counts[i] = 5;
        places[i] = 5 * i;
    }
    if (alter >= 0 && (rank == alter || rank == (alter + 1) % ranks)) {
        counts[rank == alter ? (alter + 1) % ranks : alter] = 4;
    }
    MPI_Alltoallv_init(out, counts, places, MPI_INT, in, counts, places, MPI_INT, MPI_COMM_WORLD, MPI_INFO_NULL,
                       &request);
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 5 * ranks; i++) {
            out[i] = 1000 * rank + 10 * i + round;
        }
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int from = 0; from < ranks; from++) {
            for (int k = 0; k < counts[from]; k++) {
                expect(in[5 * from + k] == 1000 * from + 10 * (5 * rank + k) + round, "the persistent all-to-all-v",
                       round);
            }
        }
    }
    MPI_Request_free(&request);
}

static bool argument_parse(const char *text)
{
    more = more || strcmp(text, "more") == 0;
    persistent = persistent || strcmp(text, "persistent") == 0;
    nonblocking = nonblocking || strcmp(text, "nonblocking") == 0;
    inplace = inplace || strcmp(text, "inplace") == 0;
    phases_path = strncmp(text, "load=", 5) == 0 ? text + 5 : phases_path;
    only = strncmp(text, "only=", 5) == 0 ? text + 5 : only;
    return sscanf(text, "rounds=%d", &rounds) + sscanf(text, "alter=%d", &alter) +
               sscanf(text, "bytes=%d", &bcast_bytes) >
           -3;
}

int main(int argc, char **argv)
{
    MPI_Comm half;
    for (int i = 1; i < argc; i++) {
        (void)argument_parse(argv[i]);
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (phases_path != NULL) {
        MPIX_Alltoallv_phases phases;
        MPIX_Alltoallv_phases_load(phases_path, MPI_COMM_WORLD, &phases);
        MPIX_Alltoallv_phases_free(&phases);
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    for (int round = 0; round < rounds; round++) {
        if (wanted("bcast")) {
            bcast_test(MPI_COMM_WORLD, round);
        }
        if (wanted("half")) {
            bcast_test(half, round);
        }
        if (wanted("allreduce")) {
            allreduce_test(round);
        }
        if (wanted("alltoall")) {
            alltoall_test(round);
        }
        if (wanted("allgatherv")) {
            allgatherv_test(round);
        }
        if (wanted("gatherv")) {
            gatherv_test(round);
        }
        if (wanted("alltoallv")) {
            many_test(round);
        }
        if (wanted("barrier")) {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    if (persistent) {
        persistent_test();
    }
    MPI_Comm_free(&half);
    MPI_Finalize();
    return faults > 0;
}
