/* The virtual times of some collective calls, for simgrid.py: the same source under SimGrid's SMPI and under
 * `causeway run --simulate`. Rank 0 prints a line for each: its name, and microseconds from the moment at which the
 * last rank enters the call until the last rank returns, the second time that it is made. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 1 << 20, BLOCK = 1024 };

static int rank, size;
static char *from, *to;

static void call(int number)
{
    switch (number) {
    case 0:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case 1:
    case 2:
        MPI_Bcast(from, number == 1 ? 8 : LONG, MPI_BYTE, 0, MPI_COMM_WORLD);
        break;
    case 3:
    case 4:
        MPI_Allreduce(from, to, number == 3 ? 1 : LONG / 8, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
        break;
    default:
        MPI_Alltoall(from, BLOCK, MPI_BYTE, to, BLOCK, MPI_BYTE, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"barrier",           "broadcast, 8 bytes",
                                        "broadcast, 1 MiB",  "all-reduce, 8 bytes",
                                        "all-reduce, 1 MiB", "all-to-all, 1 KiB each"};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t bytes = (size_t)size * BLOCK > LONG ? (size_t)size * BLOCK : LONG;
    from = calloc(1, bytes);
    to = calloc(1, bytes);
    for (int number = 0; number < 6; number++) {
        double begin = 0, end = 0, first, last;
        for (int i = 0; i < 2; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            begin = MPI_Wtime();
            call(number);
            end = MPI_Wtime();
        }
        MPI_Reduce(&begin, &first, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        MPI_Reduce(&end, &last, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0) {
            printf("%s: %.1f us\n", names[number], (last - first) * 1e6);
            fflush(stdout);
        }
    }
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
