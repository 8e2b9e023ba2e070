/* All-reduce: one vector of doubles, summed over all ranks, a few times, every element verified. For pictures of a
 * network: no other traffic is on it while it runs. */
#include "apps/kernels/kernel.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    RUNS_MAX = 1000,
    VALUES = 1000, /* elements are below it, so that all sums are exact */
};

#define BYTES_MAX ((long)1 << 30)

struct allreduce {
    struct kernel kernel;
    long bytes;
    long runs;
    int count; /* elements */
    double *own;
    double *sum;
};

static const char usage[] = "allreduce [--bytes N] [--runs N]";
static const char help[] =
    "Sums a vector of doubles over all ranks; the time is the slowest rank's, between barriers.\n"
    "\n"
    "  --bytes N  of the vector, a multiple of 8 up to 1 GiB (8388608)\n"
    "  --runs N   one after the other, up to 1000 (1)\n"
    "\n"
    "Started by an MPI launcher with 1 to 64 ranks: causeway run -n 8 allreduce\n"
    "Every element of every run is verified, outside of the measured time.\n"
    "Exit codes: 0 verified, 1 wrong result, 2 wrong usage, 3 out of memory.\n";

/* ---- runs ---- */

/* An element of a rank: different in each run, so that stale data is detected. */
static double value_of(long run, int rank, int index)
{
    return (double)((7L * index + 13L * rank + 17L * run) % VALUES);
}

static bool sum_is_right(const struct allreduce *all, long run)
{
    for (int index = 0; index < all->count; index++) {
        double sum = 0;
        for (int rank = 0; rank < all->kernel.ranks; rank++)
            sum += value_of(run, rank, index);
        if (sum != all->sum[index]) {
            fprintf(stderr, "allreduce: rank %d: element %d of run %ld is %.17g, not %.17g\n", all->kernel.rank, index,
                    run, all->sum[index], sum);
            return false;
        }
    }
    return true;
}

static bool run_once(struct allreduce *all, long run)
{
    for (int index = 0; index < all->count; index++)
        all->own[index] = value_of(run, all->kernel.rank, index);
    double most = 0;
    kernel_timer_start(&all->kernel);
    MPI_Allreduce(all->own, all->sum, all->count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    kernel_timer_stop(&all->kernel);
    all->kernel.verified = all->kernel.verified && sum_is_right(all, run);
    bool right = kernel_is_verified(&all->kernel);
    MPI_Reduce(&all->kernel.seconds, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (all->kernel.rank == 0)
        printf("allreduce: %d ranks, %ld bytes, run %ld: %.6f s, %s\n", all->kernel.ranks, all->bytes, run + 1, most,
               right ? "verified" : "NOT VERIFIED");
    return right;
}

static const struct kernel_about about = {.name = "allreduce"};

int main(int argc, char **argv)
{
    struct allreduce all = {.bytes = 8 << 20, .runs = 1};
    const struct kernel_number numbers[] = {
        {"--bytes", &all.bytes, sizeof(double), BYTES_MAX, sizeof(double)},
        {"--runs", &all.runs, 1, RUNS_MAX, 1},
    };
    int exit_code;
    kernel_open(&all.kernel, &about, &argc, &argv);
    if (!kernel_numbers(&all.kernel, numbers, 2, argc, argv, usage, help, &exit_code))
        return exit_code;
    all.count = (int)(all.bytes / (long)sizeof(double));
    all.own = kernel_allocate((size_t)all.count, sizeof(*all.own));
    all.sum = kernel_allocate((size_t)all.count, sizeof(*all.sum));
    bool right = true;
    for (long run = 0; run < all.runs && right; run++)
        right = run_once(&all, run);
    free(all.own);
    free(all.sum);
    kernel_close();
    return right ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_FAILURE;
}
