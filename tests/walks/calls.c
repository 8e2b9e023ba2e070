#define _GNU_SOURCE 1 /* RTLD_DEFAULT */
/* One call of MPI to be walked, behind some of its kind that warm up: calls send|bcast|allreduce BYTES. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARM_UPS = 40 }; /* groups are open, hosts have their segments, a throttled call is behind */

static void call(const char *name, int rank, char *from, char *to, int bytes)
{
    if (strcmp(name, "send") == 0 && rank == 0) {
        MPI_Send(from, bytes, MPI_CHAR, 1, 0, MPI_COMM_WORLD);
    } else if (strcmp(name, "send") == 0 && rank == 1) {
        MPI_Recv(to, bytes, MPI_CHAR, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (strcmp(name, "bcast") == 0) {
        MPI_Bcast(from, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
    } else if (strcmp(name, "allreduce") == 0) {
        MPI_Allreduce(from, to, bytes, MPI_CHAR, MPI_MAX, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int bytes = argc > 2 ? atoi(argv[2]) : 0;
    char *from = calloc(1, (size_t)bytes + 1), *to = calloc(1, (size_t)bytes + 1);
    void (*record)(int on);
    *(void **)&record = dlsym(RTLD_DEFAULT, "walk_record");
    if (argc < 3 || from == NULL || to == NULL || record == NULL) {
        fprintf(stderr, "calls: started by walks.py: calls send|bcast|allreduce BYTES\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < WARM_UPS; i++) {
        call(argv[1], rank, from, to, bytes);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    record(1);
    call(argv[1], rank, from, to, bytes);
    record(0);
    MPI_Finalize();
    free(from);
    free(to);
    return 0;
}
