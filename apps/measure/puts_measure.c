/* puts_measure: how many puts at once a network supports (Tipparaju and Nieplocha, SC'05, section 4.1). An MPI program
 * for `causeway run --simulate`, and for any other job.
 *
 *   puts_measure SIZES PUTS ROUNDS
 *
 * All ranks put at the same time, each to its neighbours in a ring: the next rank, the previous one, the one after the
 * next, and so on. A put is a message into a buffer that its target has provided beforehand. SIZES: bytes of a put,
 * with commas between. For each size, rank 0 prints
 *
 *   BYTES PUTS ONE ALL FIRST
 *
 * in microseconds, from the start of the first put. ONE: one put, until it is complete, and the one that comes, too.
 * ALL: PUTS puts to as many ranks, until all of them are complete. FIRST: the same puts, until the first of them is
 * complete. Each is the median over rounds of the slowest rank's time. Ranks start at the same time, so they need one
 * clock: that of one machine, or of a simulated network. At the end, the received bytes are compared. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "dataplane/statistics.h"

enum { SIZES_MAX = 32, PUTS_MAX = 16, ROUNDS_MAX = 1000, BYTES_MAX = 1 << 24, AGREEMENTS = 5 };

enum test { ONE, ALL, FIRST, TESTS };

static struct {
    int rank, ranks;
    int sizes[SIZES_MAX];
    int size_count;
    int puts;
    int rounds;
    unsigned char *from, *into; /* into: a block for each put */
    double lead_s;              /* from the time that ranks agree on until they start */
    double times[TESTS][ROUNDS_MAX];
} self;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "puts_measure: %s\nusage: puts_measure SIZES PUTS ROUNDS\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* The rank at the other end of put `i`: 1 ahead, 1 behind, 2 ahead, 2 behind, ... Sources are in the other direction.
 * */
static int peer_of(int i, int is_target)
{
    int distance = i / 2 + 1;
    int is_ahead = (i % 2 == 0) == (is_target != 0);
    return (self.rank + (is_ahead ? distance : self.ranks - distance)) % self.ranks;
}

static double latest(double time_s)
{
    double all_s = 0;
    MPI_Allreduce(&time_s, &all_s, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all_s;
}

/* All ranks know of a start before it comes if it is later than an agreement takes. */
static void lead_measure(void)
{
    double longest_s = 0;
    for (int i = 0; i < 1 + AGREEMENTS; i++) {
        double begin_s = MPI_Wtime();
        (void)latest(begin_s);
        double time_s = MPI_Wtime() - begin_s;
        longest_s = i > 0 && time_s > longest_s ? time_s : longest_s; /* the first one sets connections up */
    }
    self.lead_s = 2 * latest(longest_s);
}

/* Without it, the data of the first ranks would delay the barrier that others still wait in. */
static void start_together(void)
{
    double start_s = latest(MPI_Wtime()) + self.lead_s, left_s = start_s - MPI_Wtime();
    struct timespec rest = {.tv_sec = (time_t)left_s, .tv_nsec = (long)((left_s - (double)(time_t)left_s) * 1e9)};
    if (left_s > 0) {
        nanosleep(&rest, NULL);
    }
}

/* The slowest rank's seconds until the awaited puts are complete. The others complete afterwards. */
static double once(int puts, int awaited, int bytes)
{
    MPI_Request requests[2 * PUTS_MAX];
    for (int i = 0; i < puts; i++) {
        unsigned char *into = self.into + (size_t)i * (size_t)bytes;
        MPI_Irecv(into, bytes, MPI_BYTE, peer_of(i, 0), i, MPI_COMM_WORLD, &requests[2 * i]);
    }
    start_together();
    double start = MPI_Wtime(), slowest = 0;
    for (int i = 0; i < puts; i++) {
        MPI_Isend(self.from, bytes, MPI_BYTE, peer_of(i, 1), i, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * awaited, requests, MPI_STATUSES_IGNORE);
    double time = MPI_Wtime() - start;
    MPI_Waitall(2 * (puts - awaited), requests + 2 * awaited, MPI_STATUSES_IGNORE);
    MPI_Reduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    return slowest;
}

static void compare(int bytes)
{
    for (int i = 0; i < self.puts; i++) {
        int source = peer_of(i, 0);
        const unsigned char *block = self.into + (size_t)i * (size_t)bytes;
        for (int at = 0; at < bytes; at++) {
            if (block[at] != (unsigned char)(source + at)) {
                fail("wrong byte");
            }
        }
    }
}

static void size_measure(int bytes)
{
    (void)once(self.puts, self.puts, bytes); /* sets connections up */
    for (int round = 0; round < self.rounds; round++) {
        self.times[ONE][round] = once(1, 1, bytes);
        self.times[FIRST][round] = once(self.puts, 1, bytes);
        self.times[ALL][round] = once(self.puts, self.puts, bytes);
    }
    compare(bytes);
    if (self.rank == 0) {
        printf("%d %d", bytes, self.puts);
        for (int test = 0; test < TESTS; test++) {
            printf(" %.3f", cw_statistics_median(self.times[test], (size_t)self.rounds) * 1e6);
        }
        printf("\n");
    }
}

/* Returns the largest size. */
static int arguments_read(int argc, char **argv)
{
    int largest = 0;
    char *end;
    if (argc != 4) {
        fail("three arguments are needed");
    }
    for (const char *text = argv[1]; *text != '\0' && self.size_count < SIZES_MAX; text = end + (*end == ',')) {
        long bytes = strtol(text, &end, 10);
        if (end == text || bytes < 1 || bytes > BYTES_MAX || (*end != ',' && *end != '\0')) {
            fail("sizes are numbers from 1 to 16 Mi with commas between them");
        }
        self.sizes[self.size_count++] = (int)bytes;
        largest = bytes > largest ? (int)bytes : largest;
    }
    self.puts = atoi(argv[2]);
    self.rounds = atoi(argv[3]);
    if (self.puts < 2 || self.puts > PUTS_MAX || self.puts >= self.ranks) {
        fail("there are 2 to 16 puts, fewer than ranks");
    }
    if (self.size_count == 0 || self.rounds < 1 || self.rounds > ROUNDS_MAX) {
        fail("there are 1 to 1000 rounds, and at least one size");
    }
    return largest;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
    size_t largest = (size_t)arguments_read(argc, argv);
    self.from = malloc(largest);
    self.into = malloc(largest * (size_t)self.puts);
    if (self.from == NULL || self.into == NULL) {
        fail("no memory for this number of puts of this size");
    }
    for (size_t at = 0; at < largest; at++) {
        self.from[at] = (unsigned char)((size_t)self.rank + at);
    }
    lead_measure();
    for (int i = 0; i < self.size_count; i++) {
        size_measure(self.sizes[i]);
    }
    free(self.from);
    free(self.into);
    MPI_Finalize();
    return 0;
}
