/* A token goes round, so that each session is asked for from one side only, by a rank for which the next one waits. */
#include <mpi.h>
#include <stdio.h>

enum { LAPS = 200 };

int main(int argument_count, char **arguments)
{
    int rank, size;
    long token = 0;
    MPI_Init(&argument_count, &arguments);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (long lap = 0; lap < LAPS; lap++) {
        if (rank > 0 || lap > 0) {
            MPI_Recv(&token, 1, MPI_LONG, (rank + size - 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (token != lap * size + rank) {
            printf("rank %d, lap %ld: the token is %ld\n", rank, lap, token);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        token++;
        if (rank < size - 1 || lap < LAPS - 1) {
            MPI_Send(&token, 1, MPI_LONG, (rank + 1) % size, 7, MPI_COMM_WORLD);
        }
    }
    if (rank == size - 1) {
        printf("%ld hops: verified\n", token);
    }
    MPI_Finalize();
    return 0;
}
