/* typed [HINT]: ranks 0 and 1 exchange doubles, floats, integers and text that can be compressed, and verify them:
 * contiguous ones, every other one of a vector, and by broadcasts to all. HINT: "causeway_compression" of the
 * communicator. */
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 1 << 20, ROUNDS = 3 };

static int rank;
static int failures;

static void fill(char *at, MPI_Datatype type, int from)
{
    for (int i = 0; i < BYTES / 8; i++) {
        double value = 3 + sin((i + 1000 * from) * 1e-3);
        if (type == MPI_DOUBLE) {
            memcpy(at + 8 * i, &value, 8);
        } else if (type == MPI_FLOAT) {
            float pair[2] = {(float)value, (float)(value + 5e-4)};
            memcpy(at + 8 * i, pair, 8);
        } else if (type == MPI_INT) {
            int pair[2] = {7 * i + from, 7 * i + 3 + from};
            memcpy(at + 8 * i, pair, 8);
        } else {
            memcpy(at + 8 * i, &"put get wait all"[i % 2 * 8], 8);
            at[8 * i] = (char)('a' + (i / 100 + from) % 16);
        }
    }
}

static void verify(const char *got, const char *expected, const char *what)
{
    if (memcmp(got, expected, BYTES) != 0) {
        fprintf(stderr, "rank %d: %s: wrong bytes\n", rank, what);
        failures++;
    }
}

static void exchange(MPI_Comm comm, MPI_Datatype type, const char *what)
{
    char *own = malloc(BYTES), *got = malloc(BYTES), *expected = malloc(BYTES), *spread = calloc(2, BYTES);
    int size;
    MPI_Type_size(type, &size);
    int count = BYTES / size;
    MPI_Datatype other;
    MPI_Type_vector(count, 1, 2, type, &other);
    MPI_Type_commit(&other);
    fill(own, type, rank);
    fill(expected, type, 1 - rank);
    for (int round = 0; round < ROUNDS && rank < 2; round++) {
        memset(got, 0, BYTES);
        MPI_Sendrecv(own, count, type, 1 - rank, 1, got, count, type, 1 - rank, 1, comm, MPI_STATUS_IGNORE);
        verify(got, expected, what);
        memset(spread, 0, 2 * BYTES);
        MPI_Sendrecv(own, count, type, 1 - rank, 2, spread, 1, other, 1 - rank, 2, comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++) {
            memcpy(got + i * size, spread + 2 * i * size, (size_t)size);
        }
        verify(got, expected, what);
    }
    for (int root = 0; root < 2; root++) {
        fill(got, type, rank);
        fill(expected, type, root);
        MPI_Bcast(got, count, type, root, comm);
        verify(got, expected, what);
    }
    MPI_Type_free(&other);
    free(own);
    free(got);
    free(expected);
    free(spread);
}

int main(int argc, char **argv)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 1 && argv[1][0] != '\0') {
        MPI_Info info;
        MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        MPI_Info_create(&info);
        MPI_Info_set(info, "causeway_compression", argv[1]);
        MPI_Comm_set_info(comm, info);
        MPI_Info_free(&info);
    }
    exchange(comm, MPI_DOUBLE, "doubles");
    exchange(comm, MPI_FLOAT, "floats");
    exchange(comm, MPI_INT, "integers");
    exchange(comm, MPI_BYTE, "text");
    if (comm != MPI_COMM_WORLD) {
        MPI_Comm_free(&comm);
    }
    MPI_Finalize();
    return failures > 0;
}
