/* compress send|bcast|allreduce BYTES ROUNDS smooth|random: one exchange again and again, verified, by a communicator
 * without compression and one with it in turn; prints the seconds of both, the slowest rank's. send: to and from the
 * rank half as many further on. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void fill(double *at, size_t count, int from, int is_random)
{
    uint64_t state = 88172645463325252u + (uint64_t)from;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        /* multiples of 2^-30 below 4: sums of 64 of them are exact */
        at[i] =
            is_random ? (double)(state >> 32) * 0x1p-30 : rint((2 + sin((double)i * 1e-3 + from)) * 0x1p20) * 0x1p-20;
        at[i] += is_random ? 0 : (double)(state >> 60) * 0x1p-30;
    }
}

static void fail(const char *what)
{
    fprintf(stderr, "compress: rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5)
        fail("compress send|bcast|allreduce BYTES ROUNDS smooth|random");
    size_t bytes = strtoull(argv[2], NULL, 10), count = (bytes + 7) / 8;
    int rounds = atoi(argv[3]), is_random = strcmp(argv[4], "random") == 0;
    double *own = malloc(8 * count + 8), *got = calloc(count + 1, 8), *expected = malloc(8 * count + 8),
           *one = malloc(8 * count + 8);
    int peer = (rank + ranks / 2) % ranks;
    fill(own, count, rank, is_random);
    fill(expected, count, strcmp(argv[1], "send") == 0 ? peer : 0, is_random);
    if (strcmp(argv[1], "allreduce") == 0) {
        for (int other = 1; other < ranks; other++) {
            fill(one, count, other, is_random);
            for (size_t i = 0; i < count; i++)
                expected[i] += one[i];
        }
    }
    MPI_Datatype type = bytes % 8 == 0 ? MPI_DOUBLE : MPI_BYTE;
    int elements = (int)(type == MPI_DOUBLE ? count : bytes);
    MPI_Comm ways[2]; /* without and with */
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "causeway_compression", "off");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &ways[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &ways[1]);
    for (int round = -1; round < rounds; round++) { /* the first one warms up */
        double slowest[2];
        for (int turn = 0; turn < 2; turn++) {
            int way = (round + 1) % 2 ^ turn;
            MPI_Comm comm = ways[way];
            memset(got, 0, bytes);
            if (strcmp(argv[1], "bcast") == 0)
                memcpy(got, own, bytes);
            MPI_Barrier(comm);
            double time = MPI_Wtime();
            if (strcmp(argv[1], "send") == 0)
                MPI_Sendrecv(own, elements, type, peer, 0, got, elements, type, peer, 0, comm, MPI_STATUS_IGNORE);
            else if (strcmp(argv[1], "bcast") == 0)
                MPI_Bcast(got, elements, type, 0, comm);
            else
                MPI_Allreduce(own, got, elements, type, MPI_SUM, comm);
            time = MPI_Wtime() - time;
            if (memcmp(got, expected, bytes) != 0)
                fail("wrong bytes");
            MPI_Reduce(&time, &slowest[way], 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        }
        if (rank == 0 && round >= 0)
            printf("%.9f %.9f\n", slowest[0], slowest[1]);
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&ways[0]);
    MPI_Comm_free(&ways[1]);
    MPI_Finalize();
    return 0;
}
