/* The parameters of a path, measured between the first and the last rank, while the others wait as they would in a
 * collective; then by all of them together. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "apps/plogp/arithmetic.h"
#include "apps/plogp/question.h"
#include "dataplane/status.h"

enum {
    TAG_GO = 1,
    TAG_DATA = 2,
    TAG_BACK = 3,
    STREAM_MESSAGES = 200,
    STREAMS = 15,
    TRIPS_MIN = 3,
    TRIPS_MAX = 200,
    DELAYED_MAX = 9,
    POINTS_MAX = 28,
    LARGEST_BYTES = 4 << 20,
    COPY_BYTES = 256 << 10, /* of copies and reductions: more than the first caches hold */
    COPY_ROUNDS = 41,
    NOISY_ROUNDS_MAX = 5, /* a noisy sample is repeated, at most this number of times in all */
    RING_ROUNDS_MIN = 3,
    RING_ROUNDS_MAX = 60,
    PUTS_MAX = 4,
};

/* The pair that measures: the first rank asks, the last one answers. */
struct pair {
    const struct plogp_measure *measure;
    int peer;
    bool asks;
    uint8_t *data;
    double noise; /* of the noisiest sample; known to the side that sends the requests */
};

/* ---- g(0), round trips, os, or ---- */

static double stream_once(const struct pair *pair)
{
    uint64_t start_ns = plogp_now_ns();
    for (int i = 0; i < STREAM_MESSAGES; i++) {
        if (pair->asks) {
            MPI_Send(NULL, 0, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    if (pair->asks) {
        MPI_Recv(NULL, 0, MPI_BYTE, pair->peer, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(NULL, 0, MPI_BYTE, pair->peer, TAG_BACK, MPI_COMM_WORLD);
    }
    return (double)(plogp_now_ns() - start_ns) / STREAM_MESSAGES;
}

/* Both of the pair must do the same work: one side sends the count. */
static int count_exchange(const struct pair *pair, int count)
{
    if (pair->asks) {
        MPI_Send(&count, 1, MPI_INT, pair->peer, TAG_GO, MPI_COMM_WORLD);
    } else {
        MPI_Recv(&count, 1, MPI_INT, pair->peer, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    return count;
}

/* Whether to measure again: noisy samples, while there are rounds left. Notes samples that stay noisy. */
static bool is_noise(struct pair *pair, double *times_ns, size_t count, int round)
{
    double noise = pair->asks ? plogp_noise(times_ns, count) : 1;
    bool again = count_exchange(pair, noise > PLOGP_NOISE_MAX && round + 1 < NOISY_ROUNDS_MAX) != 0;
    if (!again) {
        pair->noise = fmax(pair->noise, noise);
    }
    return again;
}

static double stream_gap(struct pair *pair, uint64_t share_ns)
{
    double gaps[STREAMS];
    int count = 0;
    for (int round = 0; round == 0 || is_noise(pair, gaps, (size_t)count, round - 1); round++) {
        double first_ns = stream_once(pair) * STREAM_MESSAGES;
        count = count_exchange(pair, (int)fmin(fmax((double)share_ns / (first_ns + 1), TRIPS_MIN), STREAMS));
        for (int i = 0; i < count; i++) {
            gaps[i] = stream_once(pair);
        }
    }
    return cw_statistics_median(gaps, (size_t)count);
}

/* There with data, back without. */
static double trip_once(const struct pair *pair, uint64_t bytes, double *send_ns)
{
    MPI_Request request;
    uint64_t start_ns = plogp_now_ns();
    if (!pair->asks) {
        MPI_Recv(pair->data, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, pair->peer, TAG_BACK, MPI_COMM_WORLD);
        return 0;
    }
    MPI_Isend(pair->data, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD, &request);
    *send_ns = (double)(plogp_now_ns() - start_ns);
    MPI_Recv(NULL, 0, MPI_BYTE, pair->peer, TAG_BACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    uint64_t end_ns = plogp_now_ns();
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    return (double)(end_ns - start_ns);
}

/* The time of the receiving call once the message must have arrived. */
static double receive_once(const struct pair *pair, uint64_t bytes, double trip_ns)
{
    if (!pair->asks) {
        MPI_Recv(NULL, 0, MPI_BYTE, pair->peer, TAG_GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(pair->data, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD);
        return 0;
    }
    MPI_Send(NULL, 0, MPI_BYTE, pair->peer, TAG_GO, MPI_COMM_WORLD);
    uint64_t until_ns = plogp_now_ns() + (uint64_t)(2 * trip_ns);
    while (plogp_now_ns() < until_ns) {
    }
    uint64_t start_ns = plogp_now_ns();
    MPI_Recv(pair->data, (int)bytes, MPI_BYTE, pair->peer, TAG_DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return (double)(plogp_now_ns() - start_ns);
}

/* Each trip next to an empty one: a slowdown of the machine is in both, and not in their difference. */
static void sample_measure(struct pair *pair, uint64_t share_ns, double empty_ns, struct plogp_sample *sample)
{
    static double trips[TRIPS_MAX], wholes[TRIPS_MAX], sends[TRIPS_MAX], receives[DELAYED_MAX];
    double unused_ns;
    int count = 0;
    for (int round = 0; round == 0 || is_noise(pair, wholes, (size_t)count, round - 1); round++) {
        double first_ns = trip_once(pair, sample->bytes, &unused_ns);
        first_ns = fmin(first_ns, trip_once(pair, sample->bytes, &unused_ns));
        count = count_exchange(pair, (int)fmin(fmax((double)share_ns / 3 / (first_ns + 1), TRIPS_MIN), TRIPS_MAX));
        for (int i = 0; i < count; i++) {
            double beside_ns = sample->bytes > 0 ? trip_once(pair, 0, &unused_ns) : 0;
            wholes[i] = trip_once(pair, sample->bytes, &sends[i]);
            trips[i] = wholes[i] - beside_ns;
        }
    }
    sample->trip_ns = fmax(cw_statistics_median(trips, (size_t)count) + empty_ns, 1);
    sample->send_ns = cw_statistics_median(sends, (size_t)count);
    count = count_exchange(pair, (int)fmin(fmax((double)share_ns / 6 / (sample->trip_ns + 1), TRIPS_MIN), DELAYED_MAX));
    for (int i = 0; i < count; i++) {
        receives[i] = receive_once(pair, sample->bytes, sample->trip_ns);
    }
    sample->receive_ns = cw_statistics_median(receives, (size_t)count);
}

static uint32_t sample_insert(struct plogp_sample *samples, uint32_t count, const struct plogp_sample *sample)
{
    uint32_t at = count;
    for (; at > 0 && samples[at - 1].bytes > sample->bytes; at--) {
        samples[at] = samples[at - 1];
    }
    samples[at] = *sample;
    return count + 1;
}

/* First a wide grid, then where the table bends. */
static void path_measure(struct pair *pair, uint64_t budget_ns, struct cw_plogp *plogp)
{
    static const uint64_t grid[] = {0, 64, 1024, 8192, 8193, 65536, 524288, LARGEST_BYTES};
    struct plogp_sample samples[POINTS_MAX];
    uint32_t count = 0;
    uint64_t until_ns = plogp_now_ns() + budget_ns;
    uint64_t share_ns = budget_ns / 16;
    double gap_ns = stream_gap(pair, share_ns);
    for (size_t i = 0; i < sizeof(grid) / sizeof(grid[0]); i++) {
        struct plogp_sample sample = {.bytes = grid[i]};
        sample_measure(pair, share_ns, count > 0 ? samples[0].trip_ns : 0, &sample);
        count = sample_insert(samples, count, &sample);
    }
    for (;;) {
        uint64_t next = count < POINTS_MAX && plogp_now_ns() < until_ns ? plogp_next_size(samples, count) : 0;
        struct plogp_sample sample = {.bytes = (uint64_t)count_exchange(pair, (int)next)};
        if (sample.bytes == 0) {
            break;
        }
        sample_measure(pair, share_ns, count > 0 ? samples[0].trip_ns : 0, &sample);
        count = sample_insert(samples, count, &sample);
    }
    if (pair->asks) {
        plogp_solve(samples, count, gap_ns, plogp);
    }
}

/* ---- what the processor does alone ---- */

static double copy_measure(uint8_t *data, bool reduces)
{
    double times[COPY_ROUNDS];
    for (int i = 0; i < COPY_ROUNDS; i++) {
        uint64_t start_ns = plogp_now_ns();
        if (reduces) {
            MPI_Reduce_local(data, data + COPY_BYTES, COPY_BYTES / sizeof(double), MPI_DOUBLE, MPI_SUM);
        } else {
            memcpy(data + COPY_BYTES, data, COPY_BYTES);
            __asm__ volatile("" ::: "memory");
        }
        times[i] = (double)(plogp_now_ns() - start_ns) / COPY_BYTES;
    }
    return cw_statistics_median(times, COPY_ROUNDS);
}

/* ---- all ranks at once ---- */

/* Starts `puts` messages to the ranks behind, completes the first `wait` of them and of the arriving ones, and,
 * untimed, the rest. */
static double ring_once(const struct plogp_measure *measure, uint8_t *data, uint64_t bytes, int puts, int wait)
{
    MPI_Request requests[2 * PUTS_MAX];
    MPI_Barrier(measure->sync);
    uint64_t start_ns = plogp_now_ns();
    for (int i = 0; i < puts; i++) {
        int from = (measure->rank - i - 1 + measure->size) % measure->size;
        int to = (measure->rank + i + 1) % measure->size;
        MPI_Irecv(data + (uint64_t)(i + 1) * bytes, (int)bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[2 * i]);
        MPI_Isend(data, (int)bytes, MPI_BYTE, to, i, MPI_COMM_WORLD, &requests[2 * i + 1]);
    }
    MPI_Waitall(2 * wait, requests, MPI_STATUSES_IGNORE);
    double time_ns = (double)(plogp_now_ns() - start_ns);
    MPI_Waitall(2 * (puts - wait), requests + 2 * wait, MPI_STATUSES_IGNORE);
    return time_ns;
}

/* One put, all, and all but only the first awaited, in turn; medians over rounds of the slowest rank's time. */
static void ring_measure(const struct plogp_measure *measure, uint8_t *data, uint64_t share_ns,
                         struct cw_measured_concurrent *test)
{
    static double times[3][RING_ROUNDS_MAX], slowest[3][RING_ROUNDS_MAX];
    int puts = (int)test->puts;
    (void)ring_once(measure, data, test->bytes, puts, puts);
    double first_ns = 3 * ring_once(measure, data, test->bytes, puts, puts);
    int rounds = (int)fmin(fmax((double)share_ns / (first_ns + 1), RING_ROUNDS_MIN), RING_ROUNDS_MAX);
    MPI_Bcast(&rounds, 1, MPI_INT, 0, measure->sync);
    for (int i = 0; i < rounds; i++) {
        times[0][i] = ring_once(measure, data, test->bytes, 1, 1);
        times[1][i] = ring_once(measure, data, test->bytes, puts, puts);
        times[2][i] = ring_once(measure, data, test->bytes, puts, 1);
    }
    MPI_Reduce(times, slowest, 3 * RING_ROUNDS_MAX, MPI_DOUBLE, MPI_MAX, 0, measure->sync);
    test->one_ns = cw_statistics_median(slowest[0], (size_t)rounds);
    test->all_ns = cw_statistics_median(slowest[1], (size_t)rounds);
    test->first_ns = cw_statistics_median(slowest[2], (size_t)rounds);
}

static void concurrency_measure(const struct plogp_measure *measure, uint8_t *data, const uint64_t *sizes,
                                uint32_t count, uint64_t share_ns, struct cw_measured_network *row)
{
    for (uint32_t puts = 2; puts <= PUTS_MAX && (int)puts < measure->size; puts *= 2) {
        for (uint32_t i = 0; i < count && row->concurrent_count < CW_MEASURED_CONCURRENT_MAX; i++) {
            struct cw_measured_concurrent *test = &row->concurrent[row->concurrent_count++];
            *test = (struct cw_measured_concurrent){.bytes = sizes[i], .puts = puts};
            ring_measure(measure, data, share_ns, test);
        }
    }
}

/* The median over sizes of gamma. */
static double contention_measure(const struct plogp_measure *measure, const struct cw_plogp *plogp)
{
    static const uint64_t sizes[] = {1024, 8192, 32768};
    double gammas[3];
    for (int i = 0; i < 3; i++) {
        struct plogp_question question = {.collective = CW_ALLTOALL, .bytes = sizes[i]};
        question.contender_count = 1;
        question.contenders[0].algorithm = cw_algorithm_find(CW_ALLTOALL, "direct");
        plogp_question_run(measure, &question, 10000000);
        gammas[i] = measure->rank == 0
                        ? plogp_contention(plogp, (uint32_t)measure->size, sizes[i], question.contenders[0].time_ns)
                        : 0;
    }
    return cw_statistics_median(gammas, 3);
}

void plogp_measure_network(struct plogp_measure *measure, uint64_t budget_ns)
{
    static struct cw_measured_network row;
    struct cw_plogp *plogp = &row.network.paths[CW_PATH_LAN];
    static uint8_t data[LARGEST_BYTES];
    memset(data, 1, sizeof(data));
    bool asks = measure->rank == 0;
    struct pair pair = {measure, asks ? measure->size - 1 : 0, asks, data, 1};
    if (asks || measure->rank == measure->size - 1) {
        path_measure(&pair, budget_ns / 2, plogp);
        measure->noise = pair.noise;
    }
    MPI_Barrier(measure->sync);
    row.path = measure->path;
    row.ranks = (uint32_t)measure->size;
    row.network.copy_ns_per_byte = copy_measure(data, false);
    row.network.reduce_ns_per_byte = copy_measure(data, true);
    static const uint64_t sizes[] = {1024, 8192, 65536, 524288};
    concurrency_measure(measure, data, sizes, sizeof(sizes) / sizeof(sizes[0]), budget_ns / 20, &row);
    row.network.contention = contention_measure(measure, plogp);
    row.network.ports = plogp_ports(row.concurrent, row.concurrent_count);
    row.network.paths[CW_PATH_WAN] = *plogp;
    if (asks && cw_measured_add_network(measure->result, &row) != CW_OK) {
        plogp_fail("no memory");
    }
}
