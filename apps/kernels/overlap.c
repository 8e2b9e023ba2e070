/* Overlap: the share of a communication that progresses while the program computes. Every message is verified. */
#include "apps/kernels/kernel.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct overlap {
    struct kernel kernel;
    long bytes;
    long rounds;
    long computes; /* of the ranks, how many compute; the others only wait */
    double *send;
    double *receive;
    double sum; /* of the computation */
};

/* A way to move the bytes: begun, and later waited for. */
struct way {
    const char *name;
    void (*begin)(struct overlap *overlap, MPI_Request requests[2]);
    void (*check)(struct overlap *overlap, long round);
};

static const char usage[] = "overlap [--bytes N] [--rounds N] [--computes N]";
static const char help[] =
    "A communication is begun, the ranks compute for as long as it takes alone, then they wait for it. The overlap is\n"
    "the share of its time that the computation hides: 1 all of it, 0 nothing.\n"
    "\n"
    "  --bytes N     of a message, or of a rank's vector, a multiple of 8 up to 64 MiB (1048576)\n"
    "  --rounds N    of each kind, for the median, up to 1000 (21)\n"
    "  --computes N  ranks that compute, from rank 0 on; the others wait at once (0: all)\n"
    "\n"
    "Started by an MPI launcher with 2 to 64 ranks, an even number: causeway run -n 2 --dedicated 1 overlap\n"
    "Every word of every message is verified.\n"
    "Exit codes: 0 verified, 1 wrong result, 2 wrong usage, 3 out of memory.\n";

/* ---- the ways ---- */

static long words_of(const struct overlap *overlap)
{
    return overlap->bytes / 8;
}

/* The element of rank `rank` at a place in a round; sums of them are exact. */
static double word_of(int rank, long round, long index)
{
    return (double)(rank + 1) * (double)(1 + (round + index) % 1000);
}

static void words_write(struct overlap *overlap, long round)
{
    for (long i = 0; i < words_of(overlap); i++)
        overlap->send[i] = word_of(overlap->kernel.rank, round, i);
    memset(overlap->receive, 0, (size_t)overlap->bytes);
}

static void isend_begin(struct overlap *overlap, MPI_Request requests[2])
{
    int partner = overlap->kernel.rank ^ 1;
    MPI_Irecv(overlap->receive, (int)words_of(overlap), MPI_DOUBLE, partner, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(overlap->send, (int)words_of(overlap), MPI_DOUBLE, partner, 0, MPI_COMM_WORLD, &requests[1]);
}

static void isend_check(struct overlap *overlap, long round)
{
    long i = 0;
    while (i < words_of(overlap) && overlap->receive[i] == word_of(overlap->kernel.rank ^ 1, round, i))
        i++;
    kernel_require(&overlap->kernel, i == words_of(overlap), "isend: word %ld of round %ld is wrong", i, round);
}

static void ialltoall_begin(struct overlap *overlap, MPI_Request requests[2])
{
    int block = (int)(words_of(overlap) / overlap->kernel.ranks);
    MPI_Ialltoall(overlap->send, block, MPI_DOUBLE, overlap->receive, block, MPI_DOUBLE, MPI_COMM_WORLD, &requests[0]);
    requests[1] = MPI_REQUEST_NULL;
}

static void ialltoall_check(struct overlap *overlap, long round)
{
    long block = words_of(overlap) / overlap->kernel.ranks, i = 0;
    while (i < block * overlap->kernel.ranks &&
           overlap->receive[i] == word_of((int)(i / block), round, overlap->kernel.rank * block + i % block))
        i++;
    kernel_require(&overlap->kernel, i == block * overlap->kernel.ranks, "ialltoall: word %ld of round %ld is wrong", i,
                   round);
}

static void iallreduce_begin(struct overlap *overlap, MPI_Request requests[2])
{
    MPI_Iallreduce(overlap->send, overlap->receive, (int)words_of(overlap), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD,
                   &requests[0]);
    requests[1] = MPI_REQUEST_NULL;
}

static void iallreduce_check(struct overlap *overlap, long round)
{
    double ranks = overlap->kernel.ranks, factor = ranks * (ranks + 1) / 2;
    long i = 0;
    while (i < words_of(overlap) && overlap->receive[i] == factor * word_of(0, round, i))
        i++;
    kernel_require(&overlap->kernel, i == words_of(overlap), "iallreduce: word %ld of round %ld is wrong", i, round);
}

static const struct way ways[] = {
    {"isend", isend_begin, isend_check},
    {"ialltoall", ialltoall_begin, ialltoall_check},
    {"iallreduce", iallreduce_begin, iallreduce_check},
};

/* ---- the computation ---- */

/* Computes for so long; how long it took. */
static double compute(struct overlap *overlap, double seconds)
{
    enum { STEPS = 1000 }; /* between looks at the clock */
    double start = MPI_Wtime(), took = 0, x = overlap->sum;
    while (took < seconds) {
        for (int i = 0; i < STEPS; i++)
            x = x * 0.999999 + 1e-3;
        took = MPI_Wtime() - start;
    }
    overlap->sum = x; /* so that the compiler keeps it */
    return took;
}

/* ---- measuring ---- */

static int compare(const void *one, const void *other)
{
    double left = *(const double *)one, right = *(const double *)other;
    return (left > right) - (left < right);
}

static double median(double *values, long count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return values[count / 2];
}

/* A round: the time from begin to the end of the wait, with so much computation in between, less that. */
static double round_run(struct overlap *overlap, const struct way *way, long round, double seconds, double *computed)
{
    MPI_Request requests[2];
    bool computes = overlap->computes == 0 || overlap->kernel.rank < overlap->computes;
    words_write(overlap, round);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    way->begin(overlap, requests);
    *computed = computes && seconds > 0 ? compute(overlap, seconds) : 0;
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    double took = MPI_Wtime() - start;
    way->check(overlap, round);
    return took - *computed;
}

static void way_measure(struct overlap *overlap, const struct way *way)
{
    double *times = kernel_allocate((size_t)overlap->rounds * sizeof(*times), 1), computed, figures[2];
    for (long round = 0; round < overlap->rounds; round++)
        times[round] = round_run(overlap, way, round, 0, &computed);
    figures[0] = median(times, overlap->rounds);
    MPI_Bcast(figures, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    for (long round = 0; round < overlap->rounds; round++)
        times[round] = round_run(overlap, way, overlap->rounds + round, figures[0], &computed);
    figures[1] = median(times, overlap->rounds);
    free(times);
    if (overlap->kernel.rank == 0) {
        double share = 1 - figures[1] / figures[0];
        printf("overlap: %-10s %ld bytes: %.1f us alone, %.1f us left beside computing as long: overlap %.2f\n",
               way->name, overlap->bytes, figures[0] * 1e6, figures[1] * 1e6, share < 0 ? 0 : share);
    }
}

static const struct kernel_about about = {.name = "overlap"};

int main(int argc, char **argv)
{
    struct overlap overlap = {.bytes = 1 << 20, .rounds = 21, .sum = 1};
    const struct kernel_number numbers[] = {
        {"--bytes", &overlap.bytes, 8, 64 << 20, 8},
        {"--rounds", &overlap.rounds, 1, 1000, 1},
        {"--computes", &overlap.computes, 0, 64, 1},
    };
    int exit_code;
    kernel_open(&overlap.kernel, &about, &argc, &argv);
    if (!kernel_numbers(&overlap.kernel, numbers, 3, argc, argv, usage, help, &exit_code))
        return exit_code;
    if (overlap.kernel.ranks % 2 != 0) {
        if (overlap.kernel.rank == 0)
            fprintf(stderr, "overlap: an even number of ranks is wanted, not %d\n", overlap.kernel.ranks);
        kernel_close();
        return KERNEL_EXIT_USAGE;
    }
    overlap.send = kernel_allocate((size_t)overlap.bytes, 1);
    overlap.receive = kernel_allocate((size_t)overlap.bytes, 1);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        way_measure(&overlap, &ways[i]);
    bool right = kernel_is_verified(&overlap.kernel);
    if (overlap.kernel.rank == 0)
        printf("overlap: %s\n", right ? "verified" : "NOT VERIFIED");
    free(overlap.send);
    free(overlap.receive);
    kernel_close();
    return right ? KERNEL_EXIT_SUCCESS : KERNEL_EXIT_FAILURE;
}
