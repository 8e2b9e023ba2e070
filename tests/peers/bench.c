/* One benchmark for any MPI library: prints "name bytes value" lines, times in microseconds, rates in units of a
 * million per second.
 *
 * usage: bench [NAME...]: latency, rate, bandwidth, overlap, progress, or a collective, of two sizes or as NAME:BYTES;
 * default: all that fit the number of ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 64, BYTES_MAX = 1 << 20 };

static int rank, ranks;
static char *from, *to;
static int wanted_count;
static char **wanted;

static int is_wanted(const char *name)
{
    int found = wanted_count == 0;
    for (int i = 0; i < wanted_count; i++) {
        found = found || strcmp(wanted[i], name) == 0;
    }
    return found;
}

static void result_print(const char *name, int bytes, double value)
{
    if (rank == 0) {
        printf("%s %d %.4f\n", name, bytes, value);
        fflush(stdout);
    }
}

/* ---- two ranks ---- */

static void latency(int bytes, int repeats)
{
    double start = 0;
    for (int i = -repeats / 10; i < repeats; i++) {
        if (i == 0) {
            start = MPI_Wtime();
        }
        if (rank == 0) {
            MPI_Send(from, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
            MPI_Recv(to, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(to, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(from, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
        }
    }
    result_print("latency", bytes, (MPI_Wtime() - start) * 1e6 / repeats / 2);
}

/* Windows of messages, each acknowledged: messages a second, and bytes. */
static double windows(int bytes, int repeats)
{
    MPI_Request requests[WINDOW];
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < repeats && rank < 2; i++) {
        for (int k = 0; k < WINDOW; k++) {
            if (rank == 0) {
                MPI_Isend(from, bytes, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[k]);
            } else {
                MPI_Irecv(to + (size_t)(k % 2) * (size_t)bytes, bytes, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[k]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) {
            MPI_Recv(to, 0, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Send(from, 0, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
        }
    }
    return (double)repeats * WINDOW / (MPI_Wtime() - start) / 1e6;
}

static void pairs(void)
{
    static const int sizes[] = {65536, 262144, BYTES_MAX};
    if (is_wanted("latency")) {
        latency(8, 20000);
        latency(1024, 10000);
        latency(65536, 2000);
        latency(BYTES_MAX, 200);
    }
    if (is_wanted("rate")) {
        (void)windows(8, 100);
        result_print("rate", 8, windows(8, 10000));
    }
    for (int i = 0; i < 3 && is_wanted("bandwidth"); i++) {
        (void)windows(sizes[i], 2);
        result_print("bandwidth", sizes[i], windows(sizes[i], 40 * 65536 / sizes[i] + 4) * sizes[i]);
    }
}

/* ---- collectives ---- */

typedef void collective_call(int bytes);

static void call_barrier(int bytes)
{
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}
static void call_bcast(int bytes)
{
    MPI_Bcast(from, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}
static void call_reduce(int bytes)
{
    MPI_Reduce(from, to, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
}
static void call_allreduce(int bytes)
{
    MPI_Allreduce(from, to, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void call_reduce_scatter(int bytes)
{
    MPI_Reduce_scatter_block(from, to, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void call_scan(int bytes)
{
    MPI_Scan(from, to, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}
static void call_gather(int bytes)
{
    MPI_Gather(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}
static void call_scatter(int bytes)
{
    MPI_Scatter(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
}
static void call_allgather(int bytes)
{
    MPI_Allgather(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
}
static void call_alltoall(int bytes)
{
    MPI_Alltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    collective_call *call;
} collectives[] = {
    {"barrier", call_barrier},     {"bcast", call_bcast},
    {"reduce", call_reduce},       {"allreduce", call_allreduce},
    {"gather", call_gather},       {"scatter", call_scatter},
    {"allgather", call_allgather}, {"alltoall", call_alltoall},
    {"scan", call_scan},           {"reduce_scatter", call_reduce_scatter},
};

enum { REPEATS_FIRST = 10, REPEATS_MAX = 40960 };

/* Mean time of a call: of batches that grow until one takes a tenth of a second, so that neither the start of the
 * processes nor the scheduler's moods, which last for milliseconds, count. */
static void collective(const char *name, collective_call *call, int bytes)
{
    double took = 0;
    int repeats = REPEATS_FIRST;
    for (int more = 1; more != 0;) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        for (int i = 0; i < repeats; i++) {
            call(bytes);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        took = (MPI_Wtime() - start) / repeats;
        more = took * repeats < 0.1 && repeats < REPEATS_MAX;
        MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
        repeats = more ? 4 * repeats : repeats;
    }
    result_print(name, bytes, took * 1e6);
}

static void collectives_measure(const char *name, collective_call *call, int has_sizes)
{
    if (is_wanted(name)) {
        collective(name, call, 8);
        if (has_sizes) {
            collective(name, call, 65536);
        }
    }
    size_t length = strlen(name);
    for (int i = 0; i < wanted_count; i++) {
        if (strncmp(wanted[i], name, length) == 0 && wanted[i][length] == ':') {
            collective(name, call, atoi(wanted[i] + length + 1));
        }
    }
}

/* ---- progress and overlap ---- */

static double work_until(double end)
{
    volatile double value = 1;
    while (MPI_Wtime() < end) {
        for (int i = 0; i < 1000; i++) {
            value = value * 1.0000001;
        }
    }
    return value;
}

/* Rank 0 offers 1 MiB and computes for 200 ms; when has rank 1 got it? Milliseconds. */
static void progress(void)
{
    MPI_Request request;
    double took = 0;
    for (int i = 0; i < 3; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (rank == 0) {
            MPI_Isend(from, BYTES_MAX, MPI_CHAR, 1, 3, MPI_COMM_WORLD, &request);
            work_until(start + 0.2);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        } else if (rank == 1) {
            MPI_Recv(to, BYTES_MAX, MPI_CHAR, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            took = MPI_Wtime() - start > took ? MPI_Wtime() - start : took;
        }
    }
    if (rank == 1) {
        MPI_Send(&took, 1, MPI_DOUBLE, 0, 4, MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Recv(&took, 1, MPI_DOUBLE, 1, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        result_print("progress_ms", BYTES_MAX, took * 1e3);
    }
}

/* Share of a non-blocking collective's time that is hidden behind as much computation: 1 is all, 0 none. */
static void overlap(const char *name, int is_alltoall, int bytes)
{
    MPI_Request request;
    double pure = 0, both = 0;
    for (int computing = 0; computing < 2; computing++) {
        double sum = 0;
        for (int i = -2; i < 10; i++) {
            MPI_Barrier(MPI_COMM_WORLD);
            double start = MPI_Wtime();
            if (is_alltoall) {
                MPI_Ialltoall(from, bytes, MPI_CHAR, to, bytes, MPI_CHAR, MPI_COMM_WORLD, &request);
            } else {
                MPI_Iallreduce(from, to, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
            }
            if (computing) {
                work_until(start + pure);
            }
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            sum += i >= 0 ? MPI_Wtime() - start : 0;
        }
        *(computing ? &both : &pure) = sum / 10;
        MPI_Bcast(&pure, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    }
    result_print(name, bytes, (2 * pure - both) / pure);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    wanted = argv + 1;
    wanted_count = argc - 1;
    from = calloc((size_t)ranks + 2, BYTES_MAX);
    to = calloc((size_t)ranks + 2, BYTES_MAX);
    if (from == NULL || to == NULL) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(from, 0, ((size_t)ranks + 2) * BYTES_MAX);
    memset(to, 0, ((size_t)ranks + 2) * BYTES_MAX);
    if (ranks == 2) {
        pairs();
    }
    for (size_t i = 0; i < sizeof(collectives) / sizeof(collectives[0]); i++) {
        collectives_measure(collectives[i].name, collectives[i].call, i > 0);
    }
    if (ranks >= 2 && is_wanted("progress")) {
        progress();
    }
    if (is_wanted("overlap")) {
        overlap("overlap_ialltoall", 1, BYTES_MAX / ranks);
        overlap("overlap_iallreduce", 0, BYTES_MAX);
    }
    free(from);
    free(to);
    MPI_Finalize();
    return 0;
}
