/* A random mix of MPI calls, the same at all ranks, from the seed CAUSEWAY_SEED: messages, collective calls,
 * communicators that are split, duplicated and freed. Each byte that arrives is compared with its sender's known data.
 *
 * usage: mix [CALLS]
 * Exit code 1: wrong data. */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mpi.h"

enum { COMMS_MAX = 4, BYTES_MAX = 200000, PAIRS_MAX = 8 };

static uint64_t state;

static uint64_t draw(uint64_t bound)
{
    /* splitmix64 */
    uint64_t value = state += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ value >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ value >> 27) * UINT64_C(0x94d049bb133111eb);
    return (value ^ value >> 31) % bound;
}

/* Mostly short, at times long. */
static int draw_bytes(void)
{
    static const int limits[] = {1, 8, 100, 2000, 20000, BYTES_MAX};
    int limit = limits[draw(sizeof(limits) / sizeof(limits[0]))];
    return (int)draw((uint64_t)limit + 1);
}

static uint8_t byte_of(uint64_t call, int sender, int receiver, int at)
{
    uint64_t value = call * 1000003 + (uint64_t)sender * 7919 + (uint64_t)receiver * 104729 + (uint64_t)at * 31;
    return (uint8_t)(value ^ value >> 8 ^ value >> 17);
}

static void fill(uint8_t *data, uint64_t call, int sender, int receiver, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        data[i] = byte_of(call, sender, receiver, i);
    }
}

static void check(const uint8_t *data, uint64_t call, int sender, int receiver, int bytes, const char *what)
{
    for (int i = 0; i < bytes; i++) {
        if (data[i] != byte_of(call, sender, receiver, i)) {
            fprintf(stderr, "mix: call %" PRIu64 " (%s): byte %d of %d from %d to %d is wrong\n", call, what, i, bytes,
                    sender, receiver);
            exit(1);
        }
    }
}

static void check_number(int64_t got, int64_t wanted, uint64_t call, const char *what)
{
    if (got != wanted) {
        fprintf(stderr, "mix: call %" PRIu64 " (%s): %" PRId64 ", not %" PRId64 "\n", call, what, got, wanted);
        exit(1);
    }
}

struct comm {
    MPI_Comm comm;
    int rank, size;
    int base,
        stride; /* its rank r is rank base + r * stride of MPI_COMM_WORLD, if it is not a duplicate of another one */
};

static struct comm comms[COMMS_MAX];
static int comm_count = 1;
static uint8_t *out, *in;

/* Of this call alone: a rank that is further may send to one that still receives from any source. */
static int tag_of(uint64_t call, int pair)
{
    return (int)call * (PAIRS_MAX + 1) + pair;
}

/* Several messages between random pairs; receives by source and tag, or from any source. */
static void messages(const struct comm *comm, uint64_t call)
{
    MPI_Request requests[2 * PAIRS_MAX];
    int from[PAIRS_MAX], to[PAIRS_MAX], bytes[PAIRS_MAX], receives[PAIRS_MAX];
    int pairs = 1 + (int)draw(PAIRS_MAX), count = 0;
    int synchronous = (int)draw(2);
    for (int i = 0; i < pairs; i++) {
        from[i] = (int)draw((uint64_t)comm->size);
        to[i] = (int)draw((uint64_t)comm->size);
        bytes[i] = draw_bytes();
    }
    for (int i = 0; i < pairs; i++) {
        receives[i] = -1;
        if (to[i] == comm->rank) {
            receives[i] = count;
            MPI_Irecv(in + (size_t)i * BYTES_MAX, bytes[i], MPI_BYTE, i % 2 == 0 ? from[i] : MPI_ANY_SOURCE,
                      tag_of(call, i), comm->comm, &requests[count++]);
        }
    }
    for (int i = 0; i < pairs; i++) {
        if (from[i] == comm->rank) {
            uint8_t *data = out + (size_t)i * BYTES_MAX;
            fill(data, call, from[i], to[i], bytes[i]);
            if (synchronous) {
                MPI_Issend(data, bytes[i], MPI_BYTE, to[i], tag_of(call, i), comm->comm, &requests[count++]);
            } else {
                MPI_Isend(data, bytes[i], MPI_BYTE, to[i], tag_of(call, i), comm->comm, &requests[count++]);
            }
        }
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < pairs; i++) {
        if (receives[i] >= 0) {
            check(in + (size_t)i * BYTES_MAX, call, from[i], to[i], bytes[i], "messages");
        }
    }
}

static void probe_message(const struct comm *comm, uint64_t call)
{
    int from = (int)draw((uint64_t)comm->size), to = (int)draw((uint64_t)comm->size), bytes = draw_bytes(), got;
    int tag = tag_of(call, PAIRS_MAX);
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    if (from == comm->rank) {
        fill(out, call, from, to, bytes);
        MPI_Isend(out, bytes, MPI_BYTE, to, tag, comm->comm, &request);
    }
    if (to == comm->rank) {
        MPI_Probe(MPI_ANY_SOURCE, tag, comm->comm, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        check_number(got, bytes, call, "probe");
        MPI_Recv(in, got, MPI_BYTE, status.MPI_SOURCE, tag, comm->comm, MPI_STATUS_IGNORE);
        check(in, call, from, to, bytes, "probe");
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void broadcast(const struct comm *comm, uint64_t call)
{
    int root = (int)draw((uint64_t)comm->size), bytes = draw_bytes();
    if (root == comm->rank) {
        fill(in, call, root, 0, bytes);
    }
    MPI_Bcast(in, bytes, MPI_BYTE, root, comm->comm);
    check(in, call, root, 0, bytes, "broadcast");
}

static void all_reduce(const struct comm *comm, uint64_t call)
{
    int count = 1 + draw_bytes() / 8;
    int64_t *values = (int64_t *)(void *)out, *sums = (int64_t *)(void *)in;
    for (int i = 0; i < count; i++) {
        values[i] = (int64_t)(comm->rank + 1) * (i + 1) + (int64_t)call;
    }
    int nonblocking = (int)draw(2);
    MPI_Request request;
    if (nonblocking) {
        MPI_Iallreduce(values, sums, count, MPI_INT64_T, MPI_SUM, comm->comm, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Allreduce(values, sums, count, MPI_INT64_T, MPI_SUM, comm->comm);
    }
    int64_t ranks = (int64_t)comm->size * (comm->size + 1) / 2;
    for (int i = 0; i < count; i++) {
        check_number(sums[i], ranks * (i + 1) + (int64_t)comm->size * (int64_t)call, call, "all-reduce");
    }
}

static void scan(const struct comm *comm, uint64_t call)
{
    int64_t value = comm->rank + 1, sum = 0;
    MPI_Scan(&value, &sum, 1, MPI_INT64_T, MPI_SUM, comm->comm);
    check_number(sum, (int64_t)(comm->rank + 1) * (comm->rank + 2) / 2, call, "scan");
}

static void all_to_all(const struct comm *comm, uint64_t call)
{
    int bytes = draw_bytes() / comm->size;
    for (int to = 0; to < comm->size; to++) {
        fill(out + (size_t)to * (size_t)bytes, call, comm->rank, to, bytes);
    }
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm->comm);
    for (int from = 0; from < comm->size; from++) {
        check(in + (size_t)from * (size_t)bytes, call, from, comm->rank, bytes, "all-to-all");
    }
}

static void all_gather(const struct comm *comm, uint64_t call)
{
    int bytes = draw_bytes() / comm->size;
    fill(out, call, comm->rank, 0, bytes);
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, comm->comm);
    for (int from = 0; from < comm->size; from++) {
        check(in + (size_t)from * (size_t)bytes, call, from, 0, bytes, "all-gather");
    }
}

static void scatter_gather(const struct comm *comm, uint64_t call)
{
    int bytes = draw_bytes() / comm->size, root = (int)draw((uint64_t)comm->size);
    for (int to = 0; to < comm->size; to++) {
        fill(out + (size_t)to * (size_t)bytes, call, root, to, bytes);
    }
    MPI_Scatter(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, root, comm->comm);
    check(in, call, root, comm->rank, bytes, "scatter");
    memset(out, 0, (size_t)bytes * (size_t)comm->size);
    MPI_Gather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, root, comm->comm);
    for (int from = 0; from < comm->size && comm->rank == root; from++) {
        check(out + (size_t)from * (size_t)bytes, call, root, from, bytes, "gather");
    }
}

static void comm_add(const struct comm *parent, uint64_t call)
{
    if (comm_count == COMMS_MAX) {
        comm_count--;
        MPI_Comm_free(&comms[comm_count].comm);
        return;
    }
    struct comm *made = &comms[comm_count++];
    if (draw(2) == 0) {
        MPI_Comm_dup(parent->comm, &made->comm);
    } else {
        MPI_Comm_split(MPI_COMM_WORLD, (int)(draw(2) == 0 ? comms[0].rank % 2 : comms[0].rank < comms[0].size / 2),
                       -comms[0].rank, &made->comm);
    }
    MPI_Comm_rank(made->comm, &made->rank);
    MPI_Comm_size(made->comm, &made->size);
    (void)call;
}

int main(int argc, char **argv)
{
    const char *seed = getenv("CAUSEWAY_SEED");
    uint64_t calls = argc > 1 ? strtoull(argv[1], NULL, 10) : 60;
    MPI_Init(&argc, &argv);
    comms[0].comm = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &comms[0].rank);
    MPI_Comm_size(MPI_COMM_WORLD, &comms[0].size);
    out = malloc((size_t)PAIRS_MAX * BYTES_MAX);
    in = malloc((size_t)PAIRS_MAX * BYTES_MAX);
    state = seed != NULL ? strtoull(seed, NULL, 10) : 1;
    static void (*const kinds[])(const struct comm *comm, uint64_t call) = {
        messages, messages,   probe_message, broadcast,      broadcast, all_reduce,
        scan,     all_to_all, all_gather,    scatter_gather, comm_add};
    for (uint64_t call = 0; call < calls && out != NULL && in != NULL; call++) {
        uint64_t kind = draw(sizeof(kinds) / sizeof(kinds[0]));
        const struct comm *comm = &comms[draw((uint64_t)comm_count)];
        uint64_t before = state; /* ranks of different communicators draw differently within a call */
        kinds[kind](comm, call);
        state = before + 1;
    }
    while (comm_count > 1) {
        MPI_Comm_free(&comms[--comm_count].comm);
    }
    if (comms[0].rank == 0) {
        printf("mix: %" PRIu64 " calls at %d ranks, all data right\n", calls, comms[0].size);
    }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
