/* Collective calls whose counts differ between ranks, across the limits between transports and algorithms: wrong, but
 * no rank may wait forever, and each notified rank gets an error code.
 *
 * mpi_mismatch [way [collective [first count [second count [odd rank]]]]]: all cases, or those named. Ways: blocking,
 * nonblocking, persistent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT_MAX = 300000, WARM_UP = 4, WAYS = 3, COLLECTIVES = 10 };

static const char *const ways[WAYS] = {"blocking", "nonblocking", "persistent"};
static const char *const names[COLLECTIVES] = {"bcast",   "reduce",   "allreduce", "allgather", "gather",
                                               "scatter", "alltoall", "scan",      "exscan",    "reduce_scatter_block"};
/* Numbers of MPI_INT; limits are 4 KiB (one rank reduces), 8 KiB (eager), 32 KiB (one copy), and the segment's
 * slots. */
static const int pairs[][2] = {{1, 2},        {1, 1500},   {1, 20000},     {1500, 2500},
                               {2500, 20000}, {1, 300000}, {20000, 300000}};

static int rank, size;
static int *send, *receive;
static MPI_Comm before = MPI_COMM_NULL; /* of the case before */

static int begin(int way, int collective, int count, MPI_Comm comm, MPI_Request *request)
{
#define WAY(blocking, nonblocking, persistent, ...)       \
    (way == 0   ? blocking(__VA_ARGS__, comm)             \
     : way == 1 ? nonblocking(__VA_ARGS__, comm, request) \
                : persistent(__VA_ARGS__, comm, MPI_INFO_NULL, request))
    switch (collective) {
    case 0:
        return WAY(MPI_Bcast, MPI_Ibcast, MPI_Bcast_init, send, count, MPI_INT, 0);
    case 1:
        return WAY(MPI_Reduce, MPI_Ireduce, MPI_Reduce_init, send, receive, count, MPI_INT, MPI_SUM, 0);
    case 2:
        return WAY(MPI_Allreduce, MPI_Iallreduce, MPI_Allreduce_init, send, receive, count, MPI_INT, MPI_SUM);
    case 3:
        return WAY(MPI_Allgather, MPI_Iallgather, MPI_Allgather_init, send, count, MPI_INT, receive, count, MPI_INT);
    case 4:
        return WAY(MPI_Gather, MPI_Igather, MPI_Gather_init, send, count, MPI_INT, receive, count, MPI_INT, 0);
    case 5:
        return WAY(MPI_Scatter, MPI_Iscatter, MPI_Scatter_init, send, count, MPI_INT, receive, count, MPI_INT, 0);
    case 6:
        return WAY(MPI_Alltoall, MPI_Ialltoall, MPI_Alltoall_init, send, count, MPI_INT, receive, count, MPI_INT);
    case 7:
        return WAY(MPI_Scan, MPI_Iscan, MPI_Scan_init, send, receive, count, MPI_INT, MPI_SUM);
    case 8:
        return WAY(MPI_Exscan, MPI_Iexscan, MPI_Exscan_init, send, receive, count, MPI_INT, MPI_SUM);
    default:
        return WAY(MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block, MPI_Reduce_scatter_block_init, send, receive,
                   count, MPI_INT, MPI_SUM);
    }
}

/* How many ranks got an error. */
static int run(int way, int collective, int count)
{
    MPI_Comm comm;
    MPI_Request request = MPI_REQUEST_NULL;
    int failed = 0;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (int call = 0; call < WARM_UP; call++) { /* resources that often-used communicators get */
        MPI_Barrier(comm);
    }
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    int code = begin(way, collective, count, comm, &request);
    if (code == MPI_SUCCESS && way == 2) {
        code = MPI_Start(&request);
    }
    if (code == MPI_SUCCESS && way != 0) {
        code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    if (request != MPI_REQUEST_NULL) {
        MPI_Request_free(&request);
    }
    int own = code != MPI_SUCCESS;
    MPI_Allreduce(&own, &failed, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (before != MPI_COMM_NULL) { /* remaining messages of the ranks for it have been sent */
        MPI_Comm_free(&before);
    }
    before = comm;
    return failed;
}

static int is_wanted(int argc, char **argv, int index, const char *word)
{
    return argc <= index || strcmp(argv[index], "all") == 0 || strcmp(argv[index], word) == 0;
}

int main(int argc, char **argv)
{
    int untold = 0, cases = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    send = calloc((size_t)COUNT_MAX * (size_t)size, sizeof(int));
    receive = calloc((size_t)COUNT_MAX * (size_t)size, sizeof(int));
    for (int way = 0; way < WAYS; way++) {
        for (int collective = 0; collective < COLLECTIVES; collective++) {
            for (size_t pair = 0; pair < 2 * sizeof(pairs) / sizeof(pairs[0]); pair++) {
                char first[16], second[16];
                int odd = pair % 2 == 0 ? 0 : size - 1;
                snprintf(first, sizeof(first), "%d", pairs[pair / 2][0]);
                snprintf(second, sizeof(second), "%d", pairs[pair / 2][1]);
                if (!is_wanted(argc, argv, 1, ways[way]) || !is_wanted(argc, argv, 2, names[collective]) ||
                    !is_wanted(argc, argv, 3, first) || !is_wanted(argc, argv, 4, second)) {
                    continue;
                }
                if (rank == 0 && argc > 1) {
                    fprintf(stderr, "%s %s: %s at rank %d, %s at others\n", ways[way], names[collective], second, odd,
                            first);
                }
                int failed = run(way, collective, pairs[pair / 2][rank == odd]);
                if (failed < size && rank == 0) {
                    untold++;
                    printf("%s %s of %s at rank %d, %s at others: an error at %d of %d ranks\n", ways[way],
                           names[collective], second, odd, first, failed, size);
                }
                cases++;
            }
        }
    }
    if (rank == 0) {
        printf("%d cases, of which %d ended without an error at some rank\n", cases, untold);
    }
    free(send);
    free(receive);
    if (before != MPI_COMM_NULL) {
        MPI_Comm_free(&before);
    }
    MPI_Finalize();
    return 0;
}
