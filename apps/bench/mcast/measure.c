/* mcast measure: the program that `causeway bench mcast --fabric memif|veth` starts as a job, and
 * tests/peers/multicast.py with any MPI library: a collective by several algorithms, which take turns.
 *
 *   mcast_measure bcast|scatter|allgather SIZES RUNS NAME...     (sizes in bytes, with commas between; NAME "-": the library's own choice)
 *
 * Each algorithm has a communicator whose hint asks for it; libraries that know no such hint have one algorithm. Rank 0
 * prints, for each size and name,
 *
 *   NAME BYTES MEDIAN P999 EACH PROCESSOR FRAMES
 *
 * MEDIAN, P999: microseconds from when the root enters a call (of an all-gather: the last member), while all others
 * wait in theirs, until the last of them has what it must get. Ranks are processes of one machine, so that they have
 * one clock. EACH: microseconds per call of many, one right behind the other. PROCESSOR: microseconds of processor time
 * that all ranks together take for each of these. FRAMES: that left rank 0's interface of the kernel for each of these;
 * 0: it uses none. Every byte that is received is compared. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "dataplane/statistics.h"

enum {
    SIZES_MAX = 32,
    NAMES_MAX = 16,
    RUNS_MAX = 10000,
    ROUNDS = 5,
    WARM_CALLS = 3,
    BATCH_MIN = 4,
    BATCH_MAX = 2000,
    WORD_BYTES = 96,
};
#define BATCH_S 0.05   /* a batch lasts about so long */
#define LEAD_S  0.0005 /* by which the others enter a call before its root */

enum what { BCAST, SCATTER, ALLGATHER, WHATS };

static const char *const whats[WHATS] = {"bcast", "scatter", "allgather"};

struct contender {
    const char *name;
    MPI_Comm comm;
    double *times; /* [RUNS_MAX]: seconds, at rank 0 */
    int count;
    double each_s[ROUNDS];
    double processor_s[ROUNDS];
    double frames[ROUNDS];
};

static struct {
    enum what what;
    int rank;
    int ranks;
    int runs;
    int sizes[SIZES_MAX];
    int size_count;
    MPI_Comm sync; /* whose barriers are no multicasts */
    struct contender contenders[NAMES_MAX];
    int count;
    uint8_t *from, *to;
    unsigned run;
} self;

static _Noreturn void fail(const char *what, const char *where)
{
    fprintf(stderr, "mcast_measure: rank %d: %s: %s\n", self.rank, what, where);
    MPI_Abort(MPI_COMM_WORLD, 4);
    exit(4);
}

/* ---- what is sent, and whether it came ---- */

static uint8_t byte_of(unsigned run, int block, int at)
{
    return (uint8_t)(run * 131 + (unsigned)block * 29 + (unsigned)at * 7 + ((unsigned)at >> 8));
}

static void fill(uint8_t *to, int block, int bytes)
{
    for (int at = 0; at < bytes; at++) {
        to[at] = byte_of(self.run, block, at);
    }
}

static void compare(const uint8_t *with, int block, int bytes, const char *name)
{
    for (int at = 0; at < bytes; at++) {
        if (with[at] != byte_of(self.run, block, at)) {
            fail("wrong byte", name);
        }
    }
}

static void prepare(int bytes)
{
    self.run++;
    for (int block = 0; self.what == SCATTER && self.rank == 0 && block < self.ranks; block++) {
        fill(self.from + (size_t)block * (size_t)bytes, block, bytes);
    }
    if (self.what == BCAST && self.rank == 0) {
        fill(self.to, 0, bytes);
    }
    if (self.what == ALLGATHER) {
        fill(self.from, self.rank, bytes);
    }
}

static void check(int bytes, const char *name)
{
    for (int block = 0; self.what == ALLGATHER && block < self.ranks; block++) {
        compare(self.to + (size_t)block * (size_t)bytes, block, bytes, name);
    }
    if (self.what != ALLGATHER) {
        compare(self.to, self.what == SCATTER ? self.rank : 0, bytes, name);
    }
}

static void call(MPI_Comm comm, int bytes)
{
    if (self.what == BCAST) {
        MPI_Bcast(self.to, bytes, MPI_BYTE, 0, comm);
    } else if (self.what == SCATTER) {
        MPI_Scatter(self.from, bytes, MPI_BYTE, self.to, bytes, MPI_BYTE, 0, comm);
    } else {
        MPI_Allgather(self.from, bytes, MPI_BYTE, self.to, bytes, MPI_BYTE, comm);
    }
}

/* ---- time ---- */

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_utime.tv_usec / 1e6 + (double)usage.ru_stime.tv_sec +
           (double)usage.ru_stime.tv_usec / 1e6;
}

/* Frames that left the kernel's interfaces of this network namespace. */
static double frames(void)
{
    char line[400];
    double sum = 0;
    FILE *file = fopen("/proc/net/dev", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        char name[64];
        unsigned long long sent;
        if (sscanf(line, " %63[^:]: %*u %*u %*u %*u %*u %*u %*u %*u %*u %llu", name, &sent) == 2 &&
            strcmp(name, "lo") != 0) {
            sum += (double)sent;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return sum;
}

static void sleep_s(double time)
{
    struct timespec rest = {.tv_sec = (time_t)time, .tv_nsec = (long)((time - (double)(time_t)time) * 1e9)};
    nanosleep(&rest, NULL);
}

/* The last to enter counts for an all-gather, the root for what has one. */
static void single(struct contender *one, int bytes)
{
    double times[2], last[2];
    prepare(bytes);
    MPI_Barrier(self.sync);
    if (self.rank == 0) {
        sleep_s(LEAD_S);
    }
    double start = seconds();
    call(one->comm, bytes);
    times[1] = seconds();
    times[0] = self.rank == 0 || self.what == ALLGATHER ? start : 0;
    check(bytes, one->name);
    MPI_Reduce(times, last, 2, MPI_DOUBLE, MPI_MAX, 0, self.sync);
    if (self.rank == 0 && one->count < RUNS_MAX) {
        one->times[one->count++] = last[1] - last[0];
    }
}

static void batch(struct contender *one, int bytes, int round)
{
    int calls = 0;
    if (self.rank == 0) {
        double time = one->times[one->count / 2];
        calls = time > BATCH_S / BATCH_MAX ? (int)(BATCH_S / time) : BATCH_MAX;
        calls = calls < BATCH_MIN ? BATCH_MIN : calls;
    }
    MPI_Bcast(&calls, 1, MPI_INT, 0, self.sync);
    MPI_Barrier(self.sync);
    double processor = processor_seconds(), frames_before = self.rank == 0 ? frames() : 0;
    double start = seconds();
    for (int i = 0; i < calls; i++) {
        call(one->comm, bytes);
    }
    MPI_Barrier(self.sync);
    one->each_s[round] = (seconds() - start) / calls;
    processor = (processor_seconds() - processor) / calls;
    one->frames[round] = self.rank == 0 ? (frames() - frames_before) / calls : 0;
    MPI_Reduce(&processor, &one->processor_s[round], 1, MPI_DOUBLE, MPI_SUM, 0, self.sync);
}

static void contender_print(struct contender *one, int bytes)
{
    double middle = cw_statistics_median(one->times, (size_t)one->count);
    printf("%s %d %.3f %.3f %.3f %.3f %.3f\n", one->name, bytes, middle * 1e6,
           one->times[one->count - 1 - one->count / 1000] * 1e6, cw_statistics_median(one->each_s, ROUNDS) * 1e6,
           cw_statistics_median(one->processor_s, ROUNDS) * 1e6, cw_statistics_median(one->frames, ROUNDS));
    fflush(stdout);
}

static void size_measure(int bytes)
{
    for (int i = 0; i < self.count; i++) {
        for (int warm = 0; warm < WARM_CALLS; warm++) {
            single(&self.contenders[i], bytes);
        }
        self.contenders[i].count = 0;
    }
    for (int round = 0; round < ROUNDS; round++) {
        int runs = self.runs * (round + 1) / ROUNDS - self.runs * round / ROUNDS;
        for (int turn = 0; turn < self.count; turn++) {
            struct contender *one =
                &self.contenders[(turn + round) % self.count]; /* nobody is always behind the same one */
            for (int run = 0; run < runs; run++) {
                single(one, bytes);
            }
            batch(one, bytes, round);
        }
    }
    for (int i = 0; i < self.count && self.rank == 0; i++) {
        contender_print(&self.contenders[i], bytes);
    }
}

static MPI_Comm comm_make(const char *words)
{
    MPI_Comm comm;
    MPI_Info info;
    MPI_Info_create(&info);
    if (words[0] != '\0') {
        MPI_Info_set(info, "causeway_algorithm", words);
    }
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm);
    MPI_Info_free(&info);
    return comm;
}

static void contender_make(const char *name)
{
    struct contender *one = &self.contenders[self.count++];
    char words[WORD_BYTES] = "";
    if (strcmp(name, "-") != 0) {
        snprintf(words, sizeof(words), "%s=%s", whats[self.what], name);
    }
    one->name = name;
    one->comm = comm_make(words);
    one->times = calloc(RUNS_MAX, sizeof(*one->times));
    if (one->times == NULL) {
        fail("no memory", name);
    }
}

static void arguments_read(int argc, char **argv)
{
    if (argc < 5 || argc > 4 + NAMES_MAX) {
        fail("usage", "mcast_measure bcast|scatter|allgather SIZES RUNS NAME...");
    }
    while (self.what < WHATS && strcmp(whats[self.what], argv[1]) != 0) {
        self.what++;
    }
    char *end = argv[2];
    for (const char *text = argv[2]; *text != '\0' && self.size_count < SIZES_MAX; text = end + (*end == ',')) {
        long bytes = strtol(text, &end, 10);
        if (end == text || bytes < 1 || bytes > 1 << 26) {
            fail("sizes are numbers from 1 to 64 Mi with commas between them", argv[2]);
        }
        self.sizes[self.size_count++] = (int)bytes;
    }
    self.runs = atoi(argv[3]);
    if (self.what == WHATS || self.size_count == 0 || self.runs < ROUNDS || self.runs > RUNS_MAX) {
        fail("no such collective, no sizes, or not 5 to 10000 runs", argv[1]);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
    arguments_read(argc, argv);
    self.sync = comm_make("barrier=dissemination,bcast=binomial,reduce=binomial");
    int longest = 0;
    for (int i = 0; i < self.size_count; i++) {
        longest = self.sizes[i] > longest ? self.sizes[i] : longest;
    }
    self.from = calloc((size_t)self.ranks, (size_t)longest);
    self.to = calloc((size_t)self.ranks, (size_t)longest);
    if (self.from == NULL || self.to == NULL) {
        fail("no memory", "buffers");
    }
    for (int i = 4; i < argc; i++) {
        contender_make(argv[i]);
    }
    for (int i = 0; i < self.size_count; i++) {
        size_measure(self.sizes[i]);
    }
    for (int i = 0; i < self.count; i++) {
        MPI_Comm_free(&self.contenders[i].comm);
        free(self.contenders[i].times);
    }
    MPI_Comm_free(&self.sync);
    free(self.from);
    free(self.to);
    MPI_Finalize();
    return 0;
}
