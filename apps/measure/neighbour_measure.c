/* neighbour_measure: measures what broadcasts in a group take from two ranks that talk to each other (CC-MPI, section
 * 3.2). An MPI program for `causeway run --simulate`.
 *
 *   neighbour_measure outside|inside ALGORITHM BYTES [MILLISECONDS]
 *
 * The first half of the ranks is the group. Its rank 0 broadcasts messages of BYTES one after the other, by ALGORITHM
 * ("-": no broadcasts at all). Two ranks are the pair: the last two (outside), or the last two of the group (inside).
 * One sends the other 64 KiB messages for a time (20 ms), and then both send 8 bytes to and fro. Rank 0 prints
 *
 *   GOODPUT LATENCY GROUP
 *
 * GOODPUT: Mb/s of the pair's stream. LATENCY: microseconds, half of the median round trip. GROUP: Mb/s that each rank
 * of the group received meanwhile. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/statistics.h"

enum { WINDOW = 16, STREAM_BYTES = 65536, TRIPS = 50, TAG_STREAM = 1, TAG_TRIP, TAG_STOP };

/* The message that a rank waits for. */
enum { BROADCAST, STOP, TRIP, STREAM, REQUESTS = STREAM + WINDOW };

static struct {
    int rank, ranks, pair[2];
    MPI_Comm group; /* MPI_COMM_NULL: not in it */
    char *message;  /* its first byte is not 0 in the last broadcast */
    int bytes;
    double broadcasts;
    int is_stopping; /* at rank 0: the pair has ended */
    MPI_Request requests[REQUESTS];
    MPI_Status statuses[REQUESTS];
    double result[2]; /* of the pair: Mb/s and microseconds */
    char stream[WINDOW][STREAM_BYTES];
} self;

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "neighbour_measure: %s\nusage: neighbour_measure outside|inside ALGORITHM BYTES [MILLISECONDS]\n",
            what);
    MPI_Abort(MPI_COMM_WORLD, 2);
    exit(2);
}

/* ---- The group ---- */

static void broadcast_next(void)
{
    self.message[0] = (char)self.is_stopping;
    MPI_Ibcast(self.message, self.bytes, MPI_BYTE, 0, self.group, &self.requests[BROADCAST]);
}

/* Waits for one of the requests, and continues the broadcasts meanwhile. */
static void wait_for(int wanted)
{
    while (self.requests[wanted] != MPI_REQUEST_NULL) {
        int index;
        MPI_Status status;
        MPI_Waitany(REQUESTS, self.requests, &index, &status);
        self.statuses[index] = status;
        self.is_stopping = self.is_stopping || index == STOP;
        if (index == BROADCAST) {
            self.broadcasts++;
            if (self.message[0] == 0) {
                broadcast_next();
            }
        }
    }
}

/* ---- The pair ---- */

static void stream_post(int slot, int bytes)
{
    wait_for(STREAM + slot);
    MPI_Isend(self.stream[slot], bytes, MPI_BYTE, self.pair[1], TAG_STREAM, MPI_COMM_WORLD,
              &self.requests[STREAM + slot]);
}

/* As many empty messages as the receiver waits for at a time are the end. */
static void stream_send(double time_s)
{
    double start = MPI_Wtime(), bytes = 0;
    for (int slot = 0; MPI_Wtime() - start < time_s; slot = (slot + 1) % WINDOW) {
        stream_post(slot, STREAM_BYTES);
        bytes += STREAM_BYTES;
    }
    for (int slot = 0; slot < WINDOW; slot++) {
        wait_for(STREAM + slot);
    }
    self.result[0] = bytes * 8e-6 / (MPI_Wtime() - start);
    for (int slot = 0; slot < WINDOW; slot++) {
        stream_post(slot, 0);
    }
}

static void stream_receive(void)
{
    for (int slot = 0; slot < WINDOW; slot++) {
        MPI_Irecv(self.stream[slot], STREAM_BYTES, MPI_BYTE, self.pair[0], TAG_STREAM, MPI_COMM_WORLD,
                  &self.requests[STREAM + slot]);
    }
    for (int slot = 0, ended = 0; ended < WINDOW; slot = (slot + 1) % WINDOW) {
        int count;
        wait_for(STREAM + slot);
        MPI_Get_count(&self.statuses[STREAM + slot], MPI_BYTE, &count);
        ended += count == 0;
        if (count > 0) {
            MPI_Irecv(self.stream[slot], STREAM_BYTES, MPI_BYTE, self.pair[0], TAG_STREAM, MPI_COMM_WORLD,
                      &self.requests[STREAM + slot]);
        }
    }
}

static void trips(int other, int is_first)
{
    double times[TRIPS], word = 0;
    for (int trip = 0; trip < TRIPS; trip++) {
        double start = MPI_Wtime();
        for (int turn = 0; turn < 2; turn++) {
            if ((turn == 0) == (is_first != 0)) {
                MPI_Isend(&word, 1, MPI_DOUBLE, other, TAG_TRIP, MPI_COMM_WORLD, &self.requests[TRIP]);
            } else {
                MPI_Irecv(&word, 1, MPI_DOUBLE, other, TAG_TRIP, MPI_COMM_WORLD, &self.requests[TRIP]);
            }
            wait_for(TRIP);
        }
        times[trip] = MPI_Wtime() - start;
    }
    self.result[1] = cw_statistics_median(times, TRIPS) * 1e6 / 2;
}

/* ---- All ---- */

/* Returns the seconds for which to stream. */
static double arguments_read(int argc, char **argv)
{
    if (argc < 4 || self.ranks < 8) {
        fail(argc < 4 ? "arguments are missing" : "8 ranks or more are needed");
    }
    int is_inside = strcmp(argv[1], "inside") == 0;
    if (!is_inside && strcmp(argv[1], "outside") != 0) {
        fail("the pair is outside or inside the group");
    }
    self.bytes = atoi(argv[3]);
    if (self.bytes < 1 || self.bytes > 1 << 26) {
        fail("messages have 1 to 64 Mi bytes");
    }
    int last = is_inside ? self.ranks / 2 : self.ranks;
    self.pair[0] = last - 2;
    self.pair[1] = last - 1;
    return argc > 4 ? atof(argv[4]) / 1e3 : 0.02;
}

/* The communicator of the first half, with this algorithm for broadcasts; MPI_COMM_NULL elsewhere. */
static void group_make(const char *algorithm)
{
    char words[96];
    MPI_Info info;
    MPI_Comm half;
    snprintf(words, sizeof(words), "bcast=%s", algorithm);
    MPI_Comm_split(MPI_COMM_WORLD, self.rank < self.ranks / 2 ? 0 : MPI_UNDEFINED, 0, &half);
    self.group = MPI_COMM_NULL;
    if (half != MPI_COMM_NULL && strcmp(algorithm, "-") != 0) {
        MPI_Info_create(&info);
        MPI_Info_set(info, "causeway_algorithm", words);
        MPI_Comm_dup_with_info(half, info, &self.group);
        MPI_Info_free(&info);
    }
    if (half != MPI_COMM_NULL) {
        MPI_Comm_free(&half);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &self.ranks);
    double time_s = arguments_read(argc, argv);
    for (int i = 0; i < REQUESTS; i++) {
        self.requests[i] = MPI_REQUEST_NULL;
    }
    self.message = calloc(1, (size_t)self.bytes);
    if (self.message == NULL) {
        fail("no memory for a message");
    }
    group_make(argv[2]);
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (self.group != MPI_COMM_NULL) {
        broadcast_next();
    }
    if (self.rank == 0) {
        MPI_Irecv(self.result, 2, MPI_DOUBLE, self.pair[0], TAG_STOP, MPI_COMM_WORLD, &self.requests[STOP]);
    }
    if (self.rank == self.pair[0]) {
        stream_send(time_s);
        trips(self.pair[1], 1);
        MPI_Send(self.result, 2, MPI_DOUBLE, 0, TAG_STOP, MPI_COMM_WORLD);
    } else if (self.rank == self.pair[1]) {
        stream_receive();
        trips(self.pair[0], 0);
    }
    wait_for(STOP);
    double group = self.broadcasts * self.bytes * 8e-6 / (MPI_Wtime() - start);
    wait_for(BROADCAST);
    if (self.rank == 0) {
        printf("%.1f %.3f %.1f\n", self.result[0], self.result[1], group);
    }
    if (self.group != MPI_COMM_NULL) {
        MPI_Comm_free(&self.group);
    }
    free(self.message);
    MPI_Finalize();
    return 0;
}
