/* Programs that hang: `hang HOW`, as 2 ranks or more. Each rank prints "here" before it does. hang_usage.py checks the
 * reports about them. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>

static int rank, size;
static int data[4096];
static char large[1 << 20];

static void send_first(int tag)
{
    MPI_Send(data, 1, MPI_INT, 0, tag, MPI_COMM_WORLD);
}

static void receive_from(int from, int tag)
{
    MPI_Recv(data, 1, MPI_INT, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* Enough that communicators on one host have their shared memory. */
static void barriers(void)
{
    for (int i = 0; i < 5; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void compute_for_ever(void)
{
    volatile unsigned long long turns = 0;
    for (;;) {
        turns = turns + 1;
    }
}

static void no_send(void)
{
    if (rank == 0) {
        receive_from(1, 7);
    }
}

/* Much data that no codec shortens, each way: on a slow link both wait for each other, and both go on. */
static void slow(void)
{
    static char out[8 << 20], in[8 << 20];
    int other = rank ^ 1;
    for (size_t i = 0; i < sizeof(out); i++) {
        out[i] = (char)random();
    }
    if (other < size) {
        MPI_Sendrecv(out, sizeof(out), MPI_BYTE, other, 0, in, sizeof(in), MPI_BYTE, other, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

static void circle(void)
{
    receive_from((rank + 1) % size, 3);
}

static void wrong_tag(void)
{
    if (rank == 1) {
        send_first(5);
        send_first(6);
    } else if (rank == 0) {
        receive_from(1, 7);
    }
}

static void wrong_tag_probed(void)
{
    MPI_Status status;
    if (rank == 1) {
        send_first(5);
    } else if (rank == 0) {
        MPI_Probe(1, 7, MPI_COMM_WORLD, &status);
    }
}

static void barrier_skipped(void)
{
    barriers();
    if (rank == size - 1) {
        receive_from(0, 7);
    } else {
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void barrier_skipped_river(void)
{
    MPI_Comm river;
    MPI_Comm_dup(MPI_COMM_WORLD, &river);
    MPI_Comm_set_name(river, "river");
    if (rank == size - 1) {
        receive_from(0, 7);
    } else {
        MPI_Barrier(river);
    }
}

static void computes(void)
{
    barriers();
    if (rank == 1) {
        compute_for_ever();
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void tests_for_ever(void)
{
    MPI_Request request;
    int flag = 0;
    barriers();
    if (rank == 1) {
        MPI_Irecv(data, 1, MPI_INT, 0, 9, MPI_COMM_WORLD, &request);
        while (!flag) {
            MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void stopped(void)
{
    barriers();
    if (rank == 1) {
        raise(SIGSTOP);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void one_of_all(void)
{
    MPI_Request requests[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank == 0) {
        for (int i = 0; i < 3; i++) {
            MPI_Irecv(&data[i], 1, MPI_INT, 1, 20 + i, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    } else if (rank == 1) {
        send_first(20);
        send_first(22);
    }
}

static void synchronous(void)
{
    if (rank == 0) {
        MPI_Ssend(data, 1, MPI_INT, 1, 11, MPI_COMM_WORLD);
    }
}

static void long_send(void)
{
    if (rank == 0) {
        MPI_Send(large, sizeof(large), MPI_BYTE, 1, 12, MPI_COMM_WORLD);
    }
}

static void never_init_rank(void)
{
    /* rank 1 has not called MPI_Init: see main */
}

/* Calls that do not match. */

static void different_calls(void)
{
    barriers();
    if (rank == 1) {
        MPI_Bcast(data, 4, MPI_INT, 0, MPI_COMM_WORLD);
    } else {
        MPI_Allreduce(data, data + 4, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void different_roots(void)
{
    barriers();
    MPI_Bcast(data, 4, MPI_INT, rank == 1 ? 1 : 0, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void different_counts(void)
{
    barriers();
    MPI_Allreduce(data, data + 64, rank == 1 ? 5 : 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
}

/* Rank 0 is not the root of its reduction and continues at once; rank 1 waits for it as the root of a broadcast. */
static void root_has_continued(void)
{
    barriers();
    if (rank == 0) {
        MPI_Reduce(data, data + 4, 4, MPI_INT, MPI_SUM, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Bcast(data, 4, MPI_INT, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Rank 0 sends without a receive, waits for no rank, and is in a later call when the others wait for it. */
static void sender_has_continued(void)
{
    barriers();
    if (rank == 0) {
        MPI_Bcast(data, 4, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Recv(data, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
}

/* Rank 1 has more to give than the root has room for: nothing may be written there. */
static void long_gather(void)
{
    enum { ROOM = 1 << 16, MORE = 1 << 20 };
    char *guarded = calloc(8, MORE);
    char *given = malloc(MORE);
    memset(given, 1, MORE);
    barriers();
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Gather(given, rank == 1 ? MORE : ROOM, MPI_CHAR, guarded, ROOM, MPI_CHAR, 0, MPI_COMM_WORLD);
    for (int i = 3 * ROOM; i < 8 * MORE && rank == 0; i++) {
        if (guarded[i] != 0) {
            fprintf(stderr, "byte %d behind the buffer was written\n", i - 3 * ROOM);
            abort();
        }
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    if (code != MPI_SUCCESS) {
        MPI_Comm_call_errhandler(MPI_COMM_WORLD, code);
    }
    MPI_Barrier(MPI_COMM_WORLD); /* a rank that has noticed nothing is notified now */
}

static const struct way {
    const char *how;
    void (*run)(void);
} ways[] = {
    {"no_send", no_send},
    {"circle", circle},
    {"slow", slow},
    {"wrong_tag", wrong_tag},
    {"wrong_tag_probed", wrong_tag_probed},
    {"barrier_skipped", barrier_skipped},
    {"barrier_skipped_river", barrier_skipped_river},
    {"computes", computes},
    {"tests_for_ever", tests_for_ever},
    {"stopped", stopped},
    {"one_of_all", one_of_all},
    {"synchronous", synchronous},
    {"long_send", long_send},
    {"never_init", never_init_rank},
    {"different_calls", different_calls},
    {"different_roots", different_roots},
    {"different_counts", different_counts},
    {"root_has_continued", root_has_continued},
    {"sender_has_continued", sender_has_continued},
    {"long_gather", long_gather},
};

static void here(void)
{
    printf("here\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    const char *place = getenv("PMI_RANK");
    bool is_early = strcmp(how, "never_init") == 0;
    if (is_early) {
        here();
    }
    if (is_early && place != NULL && strcmp(place, "1") == 0) {
        compute_for_ever();
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (strcmp(ways[i].how, how) == 0) {
            here();
            ways[i].run();
            MPI_Finalize();
            return 0;
        }
    }
    fprintf(stderr, "hang: no such way: %s\n", how);
    MPI_Finalize();
    return 2;
}
