/* startup: an MPI program that tells when its MPI_Init has returned: "init NANOSECONDS" of the monotonic clock, which
 * hosts of a laboratory share, and "memory KIB", the most that the process has had until then. Ends well. */
#include <mpi.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct timespec now;
    struct rusage usage;
    MPI_Init(&argc, &argv);
    clock_gettime(CLOCK_MONOTONIC, &now);
    getrusage(RUSAGE_SELF, &usage);
    printf("init %lld\nmemory %ld\n", now.tv_sec * 1000000000ll + now.tv_nsec, usage.ru_maxrss);
    MPI_Finalize();
    return 0;
}
