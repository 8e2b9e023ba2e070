/* The last rank comes late, to be stopped by ending_usage.py meanwhile: `late init|finalize
 * SECONDS [COUNT]`, or the last COUNT. Each says its process first, the last one a line when it is late. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

static void late(const char *seconds, int says_so)
{
    if (says_so) {
        printf("turn\n");
        fflush(stdout);
    }
    sleep((unsigned)strtoul(seconds, NULL, 10));
}

int main(int argc, char **argv)
{
    const char *rank = getenv("PMI_RANK"), *size = getenv("PMI_SIZE");
    if (argc < 3 || rank == NULL || size == NULL) {
        return 2;
    }
    int is_last = atoi(rank) + 1 == atoi(size);
    int is_late = atoi(rank) + (argc > 3 ? atoi(argv[3]) : 1) >= atoi(size);
    printf("process %s %d\n", rank, (int)getpid());
    fflush(stdout);
    if (is_late && strcmp(argv[1], "init") == 0) {
        late(argv[2], is_last);
    }
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    if (is_late && strcmp(argv[1], "finalize") == 0) {
        late(argv[2], is_last);
    }
    MPI_Finalize();
    return 0;
}
