/* collective_measure: measures a collective by several algorithms, which take turns, in any MPI job.
 *
 *   collective_measure [--alone] COLLECTIVE SIZES RUNS ALGORITHM...
 *
 * COLLECTIVE: bcast, scatter, allgather, allreduce, alltoall, or scatterv:N, which sends to N ranks only. SIZES: bytes
 * of a message or block, with commas between. ALGORITHM: as `causeway plan list` names it, with parameters such as
 * `:senders=4`; "-" is the library's own choice. Each has a communicator whose hint requests it. scatterv knows
 * "explicit" too: a group that is opened once (MPIX_Scatterv_open_group).
 *
 * Rank 0 prints, for each size and algorithm,
 *
 *   ALGORITHM BYTES MEDIAN P999 EACH PROCESSOR FRAMES FIRST
 *
 * MEDIAN, P999: microseconds of a call. The time begins when the root enters its call, while all others wait in theirs.
 * Without a root, it begins when the last rank enters. It ends when the last rank returns. The ranks need one clock:
 * that of one machine, or of a simulated network. EACH: microseconds per call in batches of calls. PROCESSOR: CPU time
 * of all ranks together for one of these calls. FRAMES: that left rank 0's kernel interfaces for one of these calls; 0
 * if it uses none. FIRST: the first call, which sets connections up. With --alone there are no batches, and these three
 * are 0. The bytes received by a single call, and by the last call of a batch, are compared. */
#include <limits.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <mpix.h>

#include "dataplane/statistics.h"

enum {
    SIZES_MAX = 32,
    NAMES_MAX = 16,
    RUNS_MAX = 10000,
    ROUNDS = 5,
    WARM_CALLS = 3,
    BATCH_MIN = 4,
    BATCH_MAX = 2000,
    BARRIERS = 5,
    WORD_BYTES = 96,
};
#define BATCH_S 0.05 /* a batch lasts about so long */

enum what { BCAST, SCATTER, SCATTERV, ALLGATHER, ALLREDUCE, ALLTOALL, WHATS };

static const char *const whats[WHATS] = {"bcast", "scatter", "scatterv", "allgather", "allreduce", "alltoall"};

struct contender {
    const char *name;
    MPI_Comm comm;
    bool is_explicit; /* scatterv by a group of its own */
    MPIX_Scatterv_group group;
    double *times; /* [RUNS_MAX]: seconds, at rank 0 */
    int count;
    double first_s; /* the first call */
    double each_s[ROUNDS];
    double processor_s[ROUNDS];
    double frames[ROUNDS];
};

static struct {
    enum what what;
    int to; /* scatterv: number of receivers */
    bool alone;
    int rank;
    int ranks;
    int runs;
    int sizes[SIZES_MAX];
    int size_count;
    MPI_Comm sync; /* its barriers are no multicasts */
    struct contender contenders[NAMES_MAX];
    int count;
    uint8_t *from, *into;
    int *counts, *places; /* scatterv: of each rank */
    double lead_s;        /* by which the others enter a call before its root */
    unsigned run;
} self;

static _Noreturn void fail(const char *what, const char *where)
{
    fprintf(stderr, "collective_measure: rank %d: %s: %s\n", self.rank, what, where);
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

/* A sum of all ranks' bytes, each modulo 256. */
static void sum_compare(const uint8_t *with, int bytes, const char *name)
{
    unsigned ranks = (unsigned)self.ranks;
    for (int at = 0; at < bytes; at++) {
        unsigned one = self.run * 131 + (unsigned)at * 7 + ((unsigned)at >> 8);
        if (with[at] != (uint8_t)(ranks * one + 29 * (ranks * (ranks - 1) / 2))) {
            fail("wrong sum", name);
        }
    }
}

/* The block that goes from one rank to another in an all-to-all. */
static int pair_block(int from, int to)
{
    return from * 3 + to;
}

static uint8_t *block_of(uint8_t *buffer, int block, int bytes)
{
    return buffer + (size_t)block * (size_t)bytes;
}

/* Whether a rank gets something in a scatterv. The receivers are spread evenly over the ranks without the root. */
static bool is_receiver(int rank)
{
    for (int i = 0; i < self.to; i++) {
        if (rank == 1 + (int)((int64_t)i * (self.ranks - 1) / self.to)) {
            return true;
        }
    }
    return false;
}

static void scatterv_prepare(int bytes)
{
    int place = 0;
    for (int rank = 0; rank < self.ranks; rank++) {
        self.places[rank] = place;
        self.counts[rank] = is_receiver(rank) ? bytes : 0;
        if (self.rank == 0) {
            fill(self.from + place, rank, self.counts[rank]);
        }
        place += self.counts[rank];
    }
}

static void prepare(int bytes)
{
    self.run++;
    switch (self.what) {
    case BCAST:
        fill(self.into, 0, self.rank == 0 ? bytes : 0);
        break;
    case SCATTER:
        for (int block = 0; self.rank == 0 && block < self.ranks; block++) {
            fill(block_of(self.from, block, bytes), block, bytes);
        }
        break;
    case SCATTERV:
        scatterv_prepare(bytes);
        break;
    case ALLTOALL:
        for (int to = 0; to < self.ranks; to++) {
            fill(block_of(self.from, to, bytes), pair_block(self.rank, to), bytes);
        }
        break;
    default:
        fill(self.from, self.rank, bytes);
    }
}

static void check(int bytes, const char *name)
{
    switch (self.what) {
    case ALLREDUCE:
        sum_compare(self.into, bytes, name);
        break;
    case ALLGATHER:
    case ALLTOALL:
        for (int from = 0; from < self.ranks; from++) {
            compare(block_of(self.into, from, bytes), self.what == ALLGATHER ? from : pair_block(from, self.rank),
                    bytes, name);
        }
        break;
    case SCATTERV:
        compare(self.into, self.rank, self.counts[self.rank], name);
        break;
    default:
        compare(self.into, self.what == SCATTER ? self.rank : 0, bytes, name);
    }
}

static void scatterv_call(struct contender *one)
{
    int count = self.counts[self.rank];
    if (one->is_explicit) {
        MPIX_Scatterv_data_movement(self.from, self.counts, self.places, MPI_BYTE, self.into, count, MPI_BYTE, 0,
                                    one->group);
        return;
    }
    MPI_Scatterv(self.from, self.counts, self.places, MPI_BYTE, self.into, count, MPI_BYTE, 0, one->comm);
}

static void call(struct contender *one, int bytes)
{
    MPI_Comm comm = one->comm;
    switch (self.what) {
    case BCAST:
        MPI_Bcast(self.into, bytes, MPI_BYTE, 0, comm);
        break;
    case SCATTER:
        MPI_Scatter(self.from, bytes, MPI_BYTE, self.into, bytes, MPI_BYTE, 0, comm);
        break;
    case SCATTERV:
        scatterv_call(one);
        break;
    case ALLGATHER:
        MPI_Allgather(self.from, bytes, MPI_BYTE, self.into, bytes, MPI_BYTE, comm);
        break;
    case ALLREDUCE:
        MPI_Allreduce(self.from, self.into, bytes, MPI_UINT8_T, MPI_SUM, comm);
        break;
    default:
        MPI_Alltoall(self.from, bytes, MPI_BYTE, self.into, bytes, MPI_BYTE, comm);
    }
}

/* A group has the counts of one size. */
static void group_open(struct contender *one, int bytes)
{
    if (one->is_explicit) {
        scatterv_prepare(bytes);
        MPIX_Scatterv_open_group(self.counts, MPI_BYTE, self.counts[self.rank], MPI_BYTE, 0, one->comm, &one->group);
    }
}

static void group_close(struct contender *one)
{
    if (one->is_explicit) {
        MPIX_Scatterv_close_group(&one->group);
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

static bool has_root(void)
{
    return self.what == BCAST || self.what == SCATTER || self.what == SCATTERV;
}

/* Rank 0 may leave a barrier before the others do: at most about as much earlier as a barrier lasts. */
static void lead_measure(void)
{
    double longest = 0.0005;
    for (int i = 0; i < 1 + BARRIERS; i++) {
        double start = seconds();
        MPI_Barrier(self.sync);
        double time = seconds() - start;
        longest = i > 0 && time > longest ? time : longest; /* the first one sets connections up */
    }
    MPI_Allreduce(&longest, &self.lead_s, 1, MPI_DOUBLE, MPI_MAX, self.sync);
    self.lead_s *= 2;
}

static void single(struct contender *one, int bytes)
{
    double times[2], last[2];
    prepare(bytes);
    MPI_Barrier(self.sync);
    if (self.rank == 0 && has_root()) {
        sleep_s(self.lead_s);
    }
    double start = seconds();
    call(one, bytes);
    times[1] = seconds();
    times[0] = self.rank == 0 || !has_root() ? start : 0;
    check(bytes, one->name);
    MPI_Reduce(times, last, 2, MPI_DOUBLE, MPI_MAX, 0, self.sync);
    if (self.rank == 0 && one->count < RUNS_MAX) {
        one->times[one->count++] = last[1] - last[0];
    }
}

static void batch(struct contender *one, int bytes, int round)
{
    int calls = 0;
    prepare(bytes);
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
        call(one, bytes);
    }
    MPI_Barrier(self.sync);
    one->each_s[round] = (seconds() - start) / calls;
    processor = (processor_seconds() - processor) / calls;
    one->frames[round] = self.rank == 0 ? (frames() - frames_before) / calls : 0;
    MPI_Reduce(&processor, &one->processor_s[round], 1, MPI_DOUBLE, MPI_SUM, 0, self.sync);
    check(bytes, one->name);
}

static void contender_print(struct contender *one, int bytes)
{
    double middle = cw_statistics_median(one->times, (size_t)one->count);
    printf("%s %d %.3f %.3f %.3f %.3f %.3f %.3f\n", one->name, bytes, middle * 1e6,
           one->times[one->count - 1 - one->count / 1000] * 1e6, cw_statistics_median(one->each_s, ROUNDS) * 1e6,
           cw_statistics_median(one->processor_s, ROUNDS) * 1e6, cw_statistics_median(one->frames, ROUNDS),
           one->first_s * 1e6);
    fflush(stdout);
}

static void size_begin(int bytes)
{
    for (int i = 0; i < self.count; i++) {
        struct contender *one = &self.contenders[i];
        group_open(one, bytes);
        one->count = 0;
        for (int warm = 0; warm < WARM_CALLS && warm < self.runs; warm++) {
            single(one, bytes);
        }
        one->first_s = self.rank == 0 ? one->times[0] : 0;
        one->count = 0;
    }
}

static void size_measure(int bytes)
{
    size_begin(bytes);
    for (int round = 0; round < ROUNDS; round++) {
        int runs = self.runs * (round + 1) / ROUNDS - self.runs * round / ROUNDS;
        for (int turn = 0; turn < self.count; turn++) {
            struct contender *one =
                &self.contenders[(turn + round) % self.count]; /* no contender is always behind the same one */
            for (int run = 0; run < runs; run++) {
                single(one, bytes);
            }
            if (!self.alone) {
                batch(one, bytes, round);
            }
        }
    }
    for (int i = 0; i < self.count; i++) {
        group_close(&self.contenders[i]);
        if (self.rank == 0) {
            contender_print(&self.contenders[i], bytes);
        }
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
    MPI_Comm_get_info(comm, &info); /* hints that are used */
    char used[WORD_BYTES];
    int is_used, bytes = sizeof(used);
    MPI_Info_get_string(info, "causeway_algorithm", &bytes, used, &is_used);
    MPI_Info_free(&info);
    if (words[0] != '\0' && !is_used) {
        fail("no such algorithm, or not with these parameters", words);
    }
    return comm;
}

static void contender_make(const char *name)
{
    struct contender *one = &self.contenders[self.count++];
    char words[WORD_BYTES] = "";
    one->is_explicit = self.what == SCATTERV && strcmp(name, "explicit") == 0;
    if (strcmp(name, "-") != 0 && !one->is_explicit) {
        snprintf(words, sizeof(words), "%s=%s", whats[self.what], name);
    }
    one->name = name;
    one->comm = comm_make(words);
    one->times = calloc(RUNS_MAX, sizeof(*one->times));
    if (one->times == NULL) {
        fail("no memory", name);
    }
}

static void collective_read(const char *text)
{
    const char *colon = strchr(text, ':');
    size_t length = colon == NULL ? strlen(text) : (size_t)(colon - text);
    while (self.what < WHATS && !(strlen(whats[self.what]) == length && strncmp(whats[self.what], text, length) == 0)) {
        self.what++;
    }
    self.to = colon == NULL ? 0 : atoi(colon + 1);
    if (self.what == WHATS || (self.what == SCATTERV) != (colon != NULL)) {
        fail("there are bcast, scatter, scatterv:N, allgather, allreduce and alltoall", text);
    }
    if (self.what == SCATTERV && (self.to < 1 || self.to >= self.ranks)) {
        fail("scatterv:N sends to at least one rank, and to fewer than there are", text);
    }
}

static void sizes_read(const char *sizes)
{
    char *end;
    for (const char *text = sizes; *text != '\0' && self.size_count < SIZES_MAX; text = end + (*end == ',')) {
        long bytes = strtol(text, &end, 10);
        if (end == text || bytes < 1 || bytes > 1 << 26) {
            fail("sizes are numbers from 1 to 64 Mi with commas between them", sizes);
        }
        if (self.to > 0 && bytes > INT_MAX / self.to) {
            fail("scatterv:N sends N times the size, at most 2 GiB in all", sizes);
        }
        self.sizes[self.size_count++] = (int)bytes;
    }
}

/* Returns the first of the algorithms. */
static int arguments_read(int argc, char **argv)
{
    int at = 1;
    self.alone = argc > at && strcmp(argv[at], "--alone") == 0;
    at += self.alone;
    if (argc < at + 4 || argc > at + 3 + NAMES_MAX) {
        fail("usage", "collective_measure [--alone] COLLECTIVE SIZES RUNS ALGORITHM...");
    }
    collective_read(argv[at]);
    sizes_read(argv[at + 1]);
    self.runs = atoi(argv[at + 2]);
    if (self.size_count == 0 || self.runs < 1 || self.runs > RUNS_MAX) {
        fail("no sizes, or not 1 to 10000 runs", argv[at + 2]);
    }
    return at + 3;
}

/* Bytes of the buffers that a call sends from and receives into. */
static void buffers_make(void)
{
    size_t longest = 0, all;
    for (int i = 0; i < self.size_count; i++) {
        longest = (size_t)self.sizes[i] > longest ? (size_t)self.sizes[i] : longest;
    }
    all = longest * (size_t)self.ranks;
    bool sends_all = self.what == ALLTOALL || (self.rank == 0 && (self.what == SCATTER || self.what == SCATTERV));
    bool gets_all = self.what == ALLTOALL || self.what == ALLGATHER;
    self.from = calloc(1, sends_all ? all : longest);
    self.into = calloc(1, gets_all ? all : longest);
    self.counts = calloc((size_t)self.ranks, sizeof(int));
    self.places = calloc((size_t)self.ranks, sizeof(int));
    if (self.from == NULL || self.into == NULL || self.counts == NULL || self.places == NULL) {
        fail("no memory", "buffers");
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
    int first = arguments_read(argc, argv);
    self.sync = comm_make("barrier=dissemination,bcast=binomial,reduce=binomial");
    if (has_root()) {
        lead_measure();
    }
    buffers_make();
    for (int i = first; i < argc; i++) {
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
    free(self.into);
    free(self.counts);
    free(self.places);
    MPI_Finalize();
    return 0;
}
