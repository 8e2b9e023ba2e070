/* All-reduce: one vector of doubles, summed over all ranks, a few times, every element verified. What a picture of a network is made of: nothing
 * else is on the way while it runs. */
#include "apps/kernels/kernel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- arguments ---- */

static const char usage[] = "allreduce [--bytes N] [--runs N]";

static void help_print(void)
{
    printf("usage: %s\n\n"
           "Sums a vector of doubles over all ranks; the time is the slowest rank's, between barriers.\n\n"
           "  --bytes N  of the vector, a multiple of 8 up to %ld (8388608)\n"
           "  --runs N   one after the other, up to %d (1)\n\n"
           "Started by an MPI launcher with 1 to %d ranks: causeway run -n 8 allreduce\n"
           "Every element of every run is verified, outside of what is timed.\n"
           "Exit codes: 0 verified, 1 wrong result, 2 wrong usage, 3 out of memory.\n",
           usage, BYTES_MAX, RUNS_MAX, KERNEL_RANKS_MAX);
}

/* A number that is all of `text`; -1: it is not. */
static long number_of(const char *text, long least, long most)
{
    char *end;
    errno = 0;
    long number = strtol(text, &end, 10);
    bool right = text[0] >= '0' && text[0] <= '9' && *end == '\0' && errno == 0 && number >= least && number <= most;
    return right ? number : -1;
}

/* False: `problem` tells what is wrong with the call. */
static bool arguments_read(struct allreduce *all, int argc, char **argv, char *problem, size_t problem_bytes)
{
    for (int i = 1; i < argc; i += 2) {
        bool is_bytes = strcmp(argv[i], "--bytes") == 0;
        long *value = is_bytes ? &all->bytes : &all->runs;
        if (!is_bytes && strcmp(argv[i], "--runs") != 0) {
            snprintf(problem, problem_bytes, "no such option: %s", argv[i]);
            return false;
        }
        *value = i + 1 < argc ? number_of(argv[i + 1], 1, is_bytes ? BYTES_MAX : RUNS_MAX) : -1;
        if (*value < 0 || (is_bytes && *value % (long)sizeof(double) != 0)) {
            snprintf(problem, problem_bytes, "%s wants %s: %s", argv[i],
                     is_bytes ? "a multiple of 8 up to 1073741824" : "a number from 1 to 1000",
                     i + 1 < argc ? argv[i + 1] : "nothing is there");
            return false;
        }
    }
    if (all->kernel.ranks > KERNEL_RANKS_MAX) {
        snprintf(problem, problem_bytes, "too many ranks: %d (start at most %d)", all->kernel.ranks, KERNEL_RANKS_MAX);
        return false;
    }
    return true;
}

/* ---- runs ---- */

/* An element of a rank: other ones in each run, so that what is left of the one before is seen. */
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
    char problem[256];
    kernel_open(&all.kernel, &about, &argc, &argv);
    bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
    if (is_help || !arguments_read(&all, argc, argv, problem, sizeof(problem))) {
        if (all.kernel.rank == 0 && is_help)
            help_print();
        else if (all.kernel.rank == 0)
            fprintf(stderr, "allreduce: %s (usage: %s; allreduce --help tells more)\n", problem, usage);
        kernel_close();
        return is_help ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_USAGE;
    }
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
