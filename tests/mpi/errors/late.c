/* The last rank comes late, to be stopped by ending_usage.py meanwhile: `late init|finalize SECONDS`. Each says its
 * process first, the last one a line when it is late. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

static void late(const char *seconds)
{
    printf("turn\n");
    fflush(stdout);
    sleep((unsigned)strtoul(seconds, NULL, 10));
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (argc < 3 || rank == NULL || size == NULL) {
        return 2;
    }
    int is_last = atoi(rank) + 1 == atoi(size);
    printf("process %s %d\n", rank, (int)getpid());
    fflush(stdout);
    if (is_last && strcmp(argv[1], "init") == 0) {
        late(argv[2]);
    }
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_last && strcmp(argv[1], "finalize") == 0) {
        late(argv[2]);
    }
    MPI_Finalize();
    return 0;
}
