/* A put that its target learns of, by one-sided MPI: MPI_Put, MPI_Win_flush, MPI_Send. Two ranks in turn; prints
 * "latency bytes us", half a round trip, for each size of the arguments. TRIPS round trips each. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void one(MPI_Win win, char *own, const char *source, int bytes, int other, int sends, int trip)
{
    char note = (char)trip;
    if (sends) {
        MPI_Put(source, bytes, MPI_BYTE, other, 0, bytes, MPI_BYTE, win);
        MPI_Win_flush(other, win);
        MPI_Send(&note, 1, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&note, 1, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (own[0] != (char)trip || own[bytes - 1] != (char)trip) {
            fprintf(stderr, "round trip %d: the bytes are not there\n", trip);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
}

int main(int argc, char **argv)
{
    int rank;
    int trips = atoi(getenv("TRIPS"));
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        int bytes = atoi(argv[i]);
        char *own, *source = malloc((size_t)bytes);
        MPI_Win win;
        MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &own, &win);
        MPI_Win_lock_all(0, win);
        double begun = 0;
        for (int trip = -trips / 10; trip < trips; trip++) {
            begun = trip == 0 ? MPI_Wtime() : begun;
            memset(source, trip, (size_t)bytes);
            one(win, own, source, bytes, 1 - rank, rank == 0, trip);
            one(win, own, source, bytes, 1 - rank, rank == 1, trip);
        }
        if (rank == 0) {
            printf("latency %d %.3f\n", bytes, (MPI_Wtime() - begun) / trips / 2 * 1e6);
        }
        MPI_Win_unlock_all(win);
        MPI_Win_free(&win);
        free(source);
    }
    MPI_Finalize();
    return 0;
}
