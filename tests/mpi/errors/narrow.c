/* Narrow: calls of many lengths before and after a path between the hosts becomes narrower. When the first half is
 * through, rank 0 says "ready" and waits for a line of its standard input.
 *
 * usage: narrow bcast | random [SEED [fatal]]
 *
 * bcast: broadcasts of up to 1,400 bytes; random: any calls. Errors are returned, and every rank that gets one says so
 * and ends in order; with `fatal` they end the job. */
#include <string.h>

#include "../expect.h"

enum { ROUNDS = 60, NUMBERS = 1 << 14, SHORT_NUMBERS = 350 };

static int out[8 * NUMBERS], in[8 * NUMBERS];
static unsigned long long random_state;

/* The same numbers in all ranks. */
static int drawn(int below)
{
    random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)(random_state >> 33) % below;
}

static int number_of(int round, int at, int rank)
{
    return round * 1009 + at * 7 + rank * 31;
}

static void fill(int *numbers, int round, int rank, int count)
{
    for (int i = 0; i < count; i++) {
        numbers[i] = number_of(round, i, rank);
    }
}

static void check(const int *numbers, int round, int rank, int count)
{
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        wrong += numbers[i] != number_of(round, i, rank);
    }
    EXPECT_EQUAL(wrong, 0);
}

static int bcast(int round, int count)
{
    int root = drawn(expect_size);
    fill(in, round, root, expect_rank == root ? count : 0);
    int code = MPI_Bcast(in, count, MPI_INT, root, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS) {
        check(in, round, root, count);
    }
    return code;
}

static int exchange(int round, int count)
{
    int step = 1 + drawn(expect_size - 1);
    int to = (expect_rank + step) % expect_size, from = (expect_rank + expect_size - step) % expect_size;
    fill(out, round, expect_rank, count);
    int code = MPI_Sendrecv(out, count, MPI_INT, to, 1, in, count, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS) {
        check(in, round, from, count);
    }
    return code;
}

static int allgather(int round, int count)
{
    fill(out, round, expect_rank, count);
    int code = MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, MPI_COMM_WORLD);
    for (int rank = 0; rank < expect_size && code == MPI_SUCCESS; rank++) {
        check(in + rank * count, round, rank, count);
    }
    return code;
}

static int allreduce(int round, int count)
{
    int wrong = 0;
    fill(out, round, expect_rank, count);
    int code = MPI_Allreduce(out, in, count, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    for (int i = 0; i < count && code == MPI_SUCCESS; i++) {
        wrong += in[i] != number_of(round, i, expect_size - 1);
    }
    EXPECT_EQUAL(wrong, 0);
    return code;
}

static int call(const char *mode, int round)
{
    static int (*const calls[])(int, int) = {bcast, exchange, allgather, allreduce};
    if (strcmp(mode, "bcast") == 0) {
        return bcast(round, 1 + drawn(SHORT_NUMBERS));
    }
    int which = drawn(4);
    return calls[which](round, 1 + drawn(drawn(2) == 0 ? SHORT_NUMBERS : NUMBERS));
}

static int failed(int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;
    if (code != MPI_SUCCESS) {
        MPI_Error_string(code, text, &length);
        printf("rank %d: %s\n", expect_rank, text);
        fflush(stdout);
    }
    return code != MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    char line[80];
    int code = MPI_SUCCESS;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &expect_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &expect_size);
    if (argc <= 3) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    }
    random_state = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    for (int round = 0; round < 2 * ROUNDS && !failed(code); round++) {
        if (round == ROUNDS && expect_rank == 0) {
            printf("ready\n");
            fflush(stdout);
            EXPECT(fgets(line, sizeof(line), stdin) != NULL);
        }
        code = call(argc > 1 ? argv[1] : "random", round);
    }
    if (code == MPI_SUCCESS) {
        printf("rank %d: all came\n", expect_rank);
    }
    MPI_Finalize();
    return expect_failures > 0;
}
