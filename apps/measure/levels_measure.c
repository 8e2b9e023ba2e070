/* The gain of known counts: MPI_Alltoallv by pairs, and the three levels of compiled communication (mpi/COMPILED.md),
 * side by side; the shape of Tables 2 and 3 of CC-MPI.
 *
 * usage: levels_measure [--json] [--rounds N] [--calls N] [--algorithm NAME] [--size BYTES | --random | --patterns N]
 *   --rounds      N medians are of (41)
 *   --calls       N in a batch (4)
 *   --algorithm   as in CAUSEWAY_ALGORITHM behind `alltoallv=` (all-to-all-based)
 *   --size        1 to 65536 bytes in each message, instead of each power of two from 2 to 64 KiB in turn
 *   --random      two thirds of the messages 64 KiB, some 16 KiB, a quarter 100 bytes, instead of messages of one size
 *   --patterns    N such patterns at level 3, next to the bound: the bytes of the busiest rank, times what a byte of a
 *                 long message takes while two ranks exchange such messages
 *
 * Each round times a batch of every contender, of which the slowest rank counts, in an order that shifts from round to
 * round; medians are told. */
#include <mpi.h>
#include <mpix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/statistics.h"

enum { CONTENDERS = 4, SIZES = 6, SIZE_MAX_BYTES = 65536, RANDOM = 0, ROUNDS_MAX = 10001, LONG_BYTES = 4 << 20 };
#define RATIO_WANTED 1.05

static const char *const names[CONTENDERS] = {"pairs", "level 1", "level 2", "level 3"};

static int rank, ranks, rounds = 41, calls = 4, is_json, only = -1 /* size, or RANDOM */, patterns, pattern;
static MPI_Info info;
static MPI_Comm by_pairs;

/* One pattern, with its buffers. */
static int *matrix, *counts, *expected, *places, *receive_places;
static char *out, *in;
static MPIX_Alltoallv_phases kept;

static int bytes_of(int size, int from, int to)
{
    unsigned drawn =
        ((unsigned)from * 2654435761u ^ (unsigned)to * 2246822519u ^ (unsigned)pattern * 668265263u) * 3266489917u;
    drawn = (drawn ^ drawn >> 15) * 2246822519u >> 8;
    return size != RANDOM ? size : drawn % 240 < 160 ? 65536 : drawn % 240 < 180 ? 16384 : 100;
}

static void pattern_make(int size)
{
    int send_bytes = 0, receive_bytes = 0;
    for (int pair = 0; pair < ranks * ranks; pair++) {
        matrix[pair] = pair / ranks == pair % ranks ? 0 : bytes_of(size, pair / ranks, pair % ranks);
    }
    for (int of = 0; of < ranks; of++) {
        counts[of] = matrix[rank * ranks + of];
        expected[of] = matrix[of * ranks + rank];
        places[of] = send_bytes;
        receive_places[of] = receive_bytes;
        send_bytes += counts[of];
        receive_bytes += expected[of];
    }
    memset(out, rank + 1, (size_t)send_bytes);
    MPIX_Alltoallv_control2(matrix, MPI_BYTE, info, MPI_COMM_WORLD, &kept);
}

static void data_move(MPIX_Alltoallv_phases phases)
{
    MPIX_Alltoallv_data_trans2(out, counts, places, MPI_BYTE, in, expected, receive_places, MPI_BYTE, phases,
                               MPI_COMM_WORLD);
}

static void contender_run(int contender)
{
    MPIX_Alltoallv_phases phases;
    switch (contender) {
    case 0:
        MPI_Alltoallv(out, counts, places, MPI_BYTE, in, expected, receive_places, MPI_BYTE, by_pairs);
        break;
    case 1:
        MPIX_Alltoallv_control1(counts, MPI_BYTE, expected, MPI_BYTE, info, MPI_COMM_WORLD, &phases);
        data_move(phases);
        MPIX_Alltoallv_phases_free(&phases);
        break;
    case 2:
        MPIX_Alltoallv_control2(matrix, MPI_BYTE, info, MPI_COMM_WORLD, &phases);
        data_move(phases);
        MPIX_Alltoallv_phases_free(&phases);
        break;
    default:
        data_move(kept);
    }
}

/* A batch, in microseconds a call; exits if anything has not come. */
static double batch_time(int contender, int count)
{
    double took, slowest;
    memset(in, 0, (size_t)receive_places[ranks - 1] + (size_t)expected[ranks - 1]);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        contender_run(contender);
    }
    took = (MPI_Wtime() - start) * 1e6 / count;
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++) {
        if (expected[from] > 0 && in[receive_places[from] + expected[from] - 1] != from + 1) {
            fprintf(stderr, "levels_measure: %s: rank %d has not got what rank %d sends it\n", names[contender], rank,
                    from);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
    }
    return slowest;
}

static void size_measure(int size, int is_first)
{
    static double times[CONTENDERS][ROUNDS_MAX];
    pattern_make(size);
    for (int round = -1; round < rounds; round++) { /* the first one makes what later ones find */
        for (int i = 0; i < CONTENDERS; i++) {
            int contender = (i + round + 1) % CONTENDERS;
            double took = batch_time(contender, calls);
            times[contender][round < 0 ? 0 : round] = took;
        }
    }
    MPIX_Alltoallv_phases_free(&kept);
    if (rank != 0) {
        return;
    }
    printf(is_json ? "%s{\"bytes\": %d" : "%s%9d", is_json && !is_first ? ",\n " : is_json ? "\n " : "", size);
    for (int contender = 0; contender < CONTENDERS; contender++) {
        double median = cw_statistics_median(times[contender], (size_t)rounds);
        if (is_json) {
            printf(", \"%s\": %.2f", names[contender], median);
        } else {
            printf(" %12.2f", median);
        }
    }
    printf(is_json ? "}" : "\n");
    fflush(stdout);
}

/* ---- patterns ---- */

/* Microseconds that `bytes` take between this rank and its neighbour, in both directions; the slowest pair's. */
static double exchange_time(int bytes, char *to, char *from)
{
    double took = 0, slowest;
    for (int i = 0; i < 2; i++) { /* the first one opens windows */
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if ((rank ^ 1) < ranks) {
            MPI_Sendrecv(from, bytes, MPI_BYTE, rank ^ 1, 0, to, bytes, MPI_BYTE, rank ^ 1, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        took = (MPI_Wtime() - start) * 1e6;
    }
    MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

static double byte_time(void)
{
    char *to = calloc(LONG_BYTES, 1), *from = calloc(LONG_BYTES, 1);
    if (to == NULL || from == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    double difference = exchange_time(LONG_BYTES, to, from) - exchange_time(LONG_BYTES / 4, to, from);
    free(to), free(from);
    return difference / (LONG_BYTES / 4 * 3);
}

static double busiest_bytes(void)
{
    double most = 0;
    for (int of = 0; of < ranks; of++) {
        double sent = 0, received = 0;
        for (int other = 0; other < ranks; other++) {
            sent += matrix[of * ranks + other];
            received += matrix[other * ranks + of];
        }
        most = sent > most ? sent : most;
        most = received > most ? received : most;
    }
    return most;
}

static void patterns_measure(void)
{
    static double ratios[ROUNDS_MAX];
    double byte_us = byte_time(), largest = 0;
    int within = 0;
    for (pattern = 1; pattern <= patterns; pattern++) {
        pattern_make(RANDOM);
        (void)batch_time(CONTENDERS - 1, 1);
        double ratio = batch_time(CONTENDERS - 1, 1) / (busiest_bytes() * byte_us);
        MPIX_Alltoallv_phases_free(&kept);
        ratios[pattern - 1] = ratio;
        largest = ratio > largest ? ratio : largest;
        within += ratio <= RATIO_WANTED;
    }
    if (rank == 0) {
        double median = cw_statistics_median(ratios, (size_t)patterns);
        printf(is_json ? "{\"ranks\": %d, \"patterns\": %d, \"median\": %.4f, \"largest\": %.4f, \"within\": %d}\n"
                       : "%d ranks, %d patterns: %.4f times the bound (median), %.4f (largest), %d within 1.05\n",
               ranks, patterns, median, largest, within);
    }
}

static void usage_exit(void)
{
    fprintf(stderr, "usage: levels_measure [--json] [--rounds N] [--calls N] [--algorithm NAME]\n"
                    "           [--size BYTES | --random | --patterns N]\n");
    MPI_Finalize();
    exit(2);
}

static int number_read(const char *text, int most)
{
    int number = atoi(text);
    if (number < 1 || number > most) {
        usage_exit();
    }
    return number;
}

static void arguments_read(int argc, char **argv)
{
    char words[120] = "alltoallv=all-to-all-based";
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            is_json = 1;
        } else if (strcmp(argv[i], "--random") == 0) {
            only = RANDOM;
        } else if (strcmp(argv[i], "--size") == 0 && i + 1 < argc) {
            only = number_read(argv[++i], SIZE_MAX_BYTES);
        } else if (strcmp(argv[i], "--patterns") == 0 && i + 1 < argc) {
            patterns = number_read(argv[++i], ROUNDS_MAX);
        } else if (strcmp(argv[i], "--calls") == 0 && i + 1 < argc) {
            calls = number_read(argv[++i], ROUNDS_MAX);
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            rounds = number_read(argv[++i], ROUNDS_MAX);
        } else if (strcmp(argv[i], "--algorithm") == 0 && i + 1 < argc) {
            snprintf(words, sizeof(words), "alltoallv=%s", argv[++i]);
        } else {
            usage_exit();
        }
    }
    MPI_Info_create(&info);
    MPI_Info_set(info, "causeway_algorithm", words);
}

static void buffers_make(void)
{
    size_t pairs = (size_t)ranks * (size_t)ranks;
    matrix = malloc(pairs * sizeof(int));
    counts = malloc(pairs * sizeof(int));
    expected = malloc(pairs * sizeof(int));
    places = malloc(pairs * sizeof(int));
    receive_places = malloc(pairs * sizeof(int));
    out = malloc((size_t)ranks << 16);
    in = malloc((size_t)ranks << 16);
    if (matrix == NULL || counts == NULL || expected == NULL || places == NULL || receive_places == NULL ||
        out == NULL || in == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

static void sizes_measure(void)
{
    if (rank == 0 && is_json) {
        printf("{\"ranks\": %d, \"unit\": \"us\", \"rows\": [", ranks);
    } else if (rank == 0) {
        printf("%9s %12s %12s %12s %12s   us, %d ranks\n", "bytes", names[0], names[1], names[2], names[3], ranks);
    }
    for (int i = 0; i < (only >= 0 ? 1 : SIZES); i++) {
        size_measure(only >= 0 ? only : 2048 << i, i == 0);
    }
    if (rank == 0 && is_json) {
        printf("]}\n");
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    arguments_read(argc, argv);
    buffers_make();
    MPI_Info pairs;
    MPI_Info_create(&pairs);
    MPI_Info_set(pairs, "causeway_algorithm", "alltoallv=pairs");
    MPI_Comm_dup_with_info(MPI_COMM_WORLD, pairs, &by_pairs);
    MPI_Info_free(&pairs);
    if (patterns > 0) {
        patterns_measure();
    } else {
        sizes_measure();
    }
    MPI_Info_free(&info);
    MPI_Comm_free(&by_pairs);
    free(matrix), free(counts), free(expected), free(places), free(receive_places), free(out), free(in);
    MPI_Finalize();
    return 0;
}
