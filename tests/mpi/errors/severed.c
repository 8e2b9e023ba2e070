/* The link between two clusters goes down while all use it: `severed KIND WHEN SECONDS`, for severed_usage.py. The
 * simulator takes it down, SECONDS after the start.
 *
 * KIND bcast, allreduce, point; WHEN returns (all continues), gone (errors are fatal), reported (errors are returned,
 * and the ranks of a cluster talk to one another afterwards), declared_failed (one rank of each cluster gets an error
 * and ends; the other waits for it alone). */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

enum { NUMBERS = 1 << 18, ROUNDS = 12, CLUSTER_ROUNDS = 20 };

static int rank, size;
static int numbers[NUMBERS], sums[NUMBERS];
static double down_s; /* when the link goes down */
static const char *when;

/* A number that depends on round, place and rank. */
static int number_of(int round, int place, int from)
{
    return (round * 31 + place * 7 + from * 1009) % 100003;
}

static void fill(int *to, int round, int from)
{
    for (int i = 0; i < NUMBERS; i++) {
        to[i] = number_of(round, i, from);
    }
}

static void check(int round, const int *got, int from)
{
    for (int i = 0; i < NUMBERS; i++) {
        int wanted = from >= 0 ? number_of(round, i, from) : 0;
        for (int other = 0; from < 0 && other < size; other++) {
            wanted += number_of(round, i, other);
        }
        if (got[i] != wanted) {
            fprintf(stderr, "rank %d: round %d: number %d is %d, not %d\n", rank, round, i, got[i], wanted);
            exit(1);
        }
    }
}

/* One transfer across the link; the error. */
static int transfer(const char *kind, int round)
{
    int code;
    int partner = (rank + size / 2) % size;
    fill(numbers, round, rank);
    if (strcmp(kind, "bcast") == 0) {
        int root = round % 2 == 0 ? 0 : size - 1;
        code = MPI_Bcast(numbers, NUMBERS, MPI_INT, root, MPI_COMM_WORLD);
        if (code == MPI_SUCCESS) {
            check(round, numbers, root);
        }
        return code;
    }
    if (strcmp(kind, "allreduce") == 0) {
        code = MPI_Allreduce(numbers, sums, NUMBERS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    } else {
        code = MPI_Sendrecv(numbers, NUMBERS, MPI_INT, partner, round, sums, NUMBERS, MPI_INT, partner, round,
                            MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (code == MPI_SUCCESS) {
        check(round, sums, strcmp(kind, "allreduce") == 0 ? -1 : partner);
    }
    return code;
}

static void error_print(int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, class;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    printf("rank %d: class %s: %s\n", rank, class == MPI_ERR_PROC_ABORTED ? "MPI_ERR_PROC_ABORTED" : "other", text);
    if (rank == 0) {
        printf("rank 0: error %.2f s after the link went down\n", MPI_Wtime() - down_s);
    }
}

/* Those of a cluster among themselves. */
static void cluster_talk(MPI_Comm cluster)
{
    int own = rank + 1, total = 0, wanted = 0;
    for (int i = 0; i < CLUSTER_ROUNDS; i++) {
        MPI_Allreduce(&own, &total, 1, MPI_INT, MPI_SUM, cluster);
    }
    for (int other = rank < size / 2 ? 0 : size / 2; other < (rank < size / 2 ? size / 2 : size); other++) {
        wanted += other + 1;
    }
    printf("rank %d: its cluster %s\n", rank, total == wanted ? "still talks" : "has wrong sums");
    fflush(stdout);
    MPI_Barrier(cluster);
}

/* Each call that begins after ranks were lost ends with an error, also if this rank would only wait for a lost one. */
static void later_calls(void)
{
    int failed = 0, value = rank;
    for (int root = 0; root < size; root++) {
        failed += MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD) != MPI_SUCCESS;
    }
    failed += MPI_Barrier(MPI_COMM_WORLD) != MPI_SUCCESS;
    printf("rank %d: %d later calls failed\n", rank, failed);
    fflush(stdout);
}

/* Waits for one rank of the cluster, which has got an error, frees the cluster and is in MPI_Finalize: some begin
 * before it abandons its communicators, and some after. */
static void waits_end(int partner, MPI_Comm cluster)
{
    enum { BEFORE = 6, WAITS = BEFORE + 9 };
    static int received[3], sent[NUMBERS];
    int codes[WAITS], flag = 0, ended = 0, class = 0, at = 0;
    MPI_Request before[BEFORE], request;
    MPI_Irecv(&received[0], 1, MPI_INT, partner, 1, MPI_COMM_WORLD, &before[0]);
    MPI_Irecv(&received[1], 1, MPI_INT, MPI_ANY_SOURCE, 1, cluster, &before[1]);
    MPI_Irecv(&received[2], 1, MPI_INT, partner, 1, MPI_COMM_WORLD, &before[2]);
    MPI_Issend(&rank, 1, MPI_INT, partner, 1, MPI_COMM_WORLD, &before[3]);
    MPI_Isend(sent, NUMBERS, MPI_INT, partner, 1, MPI_COMM_WORLD, &before[4]);
    MPI_Ibarrier(cluster, &before[5]);
    codes[at++] = MPI_Recv(numbers, 1, MPI_INT, partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    while (at <= BEFORE) {
        codes[at] = MPI_Wait(&before[at - 1], MPI_STATUS_IGNORE);
        at++;
    }
    codes[at++] = MPI_Recv(numbers, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    codes[at++] = MPI_Probe(partner, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    codes[at++] = MPI_Ssend(numbers, 1, MPI_INT, partner, 1, MPI_COMM_WORLD);
    codes[at++] = MPI_Send(numbers, NUMBERS, MPI_INT, partner, 1, MPI_COMM_WORLD);
    codes[at++] = MPI_Barrier(cluster);
    codes[at++] = MPI_Recv(numbers, 1, MPI_INT, 0, 1, cluster, MPI_STATUS_IGNORE);
    codes[at] = MPI_Irecv(numbers, 1, MPI_INT, partner, 1, MPI_COMM_WORLD, &request);
    while (codes[at] == MPI_SUCCESS && !flag) {
        codes[at] = MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    }
    for (at++, codes[at] = MPI_SUCCESS, flag = 0; codes[at] == MPI_SUCCESS && !flag;) {
        codes[at] = MPI_Iprobe(partner, 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < WAITS; i++) {
        MPI_Error_class(codes[i], &class);
        ended += class == MPI_ERR_PROC_ABORTED;
    }
    printf("rank %d: %d of %d waits ended with MPI_ERR_PROC_ABORTED\n", rank, ended, WAITS);
}

int main(int argc, char **argv)
{
    MPI_Comm cluster;
    if (argc != 4) {
        return 2;
    }
    when = argv[2];
    down_s = atof(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split(MPI_COMM_WORLD, rank < size / 2, rank, &cluster);
    bool is_declared_failed = strcmp(when, "declared_failed") == 0;
    if (is_declared_failed || strcmp(when, "reported") == 0) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        MPI_Comm_set_errhandler(cluster, MPI_ERRORS_RETURN);
    }
    int code = MPI_SUCCESS;
    if (is_declared_failed && rank % (size / 2) != 0) {
        waits_end(rank - rank % (size / 2), cluster);
        MPI_Finalize();
        return 0;
    }
    for (int round = 0; code == MPI_SUCCESS && (strcmp(when, "returns") != 0 || round < ROUNDS); round++) {
        code = transfer(argv[1], round);
    }
    if (code != MPI_SUCCESS) {
        error_print(code);
        if (is_declared_failed) {
            MPI_Comm_free(&cluster);
        } else {
            cluster_talk(cluster);
            later_calls();
        }
    } else {
        printf("rank %d: all came\n", rank);
    }
    MPI_Finalize();
    return 0;
}
