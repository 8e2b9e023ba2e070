/* Many collective calls in a row, drawn at random: collectives, roots, sizes from nothing to long, in place or not,
 * several communicators, ranks that come late. Each result is compared with that of a serial program (MPI 5.0, chapter
 * 6). CW_SEED and CW_CALLS change the draw. */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tests/mpi/expect.h"

enum { BYTES_MAX = 300000, COMMS = 3, RANKS_MAX = 64 };

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return value ^ value >> 29;
}

struct comm {
    MPI_Comm comm;
    int rank;
    int size;
};

struct call {
    const struct comm *comm;
    uint64_t number;
    int root;
    int count; /* elements of 8 bytes, of a block */
    bool in_place;
};

static uint64_t *from, *to;

/* The contribution of rank `rank` at `index`. */
static uint64_t element(const struct call *call, int rank, int index)
{
    return mix(call->number * 1000003 + (uint64_t)rank * 7919 + (uint64_t)index);
}

static void fill(const struct call *call, uint64_t *buffer, int count)
{
    for (int i = 0; i < count; i++) {
        buffer[i] = element(call, call->comm->rank, i);
    }
}

static void verify(const struct call *call, const char *name, const uint64_t *found, int index, uint64_t wanted)
{
    if (found[index] != wanted && expect_failures++ < 10) {
        fprintf(stderr, "rank %d of %d: call %llu, %s, root %d, %d elements%s: element %d is wrong\n", call->comm->rank,
                call->comm->size, (unsigned long long)call->number, name, call->root, call->count,
                call->in_place ? ", in place" : "", index);
    }
}

/* An associative operation that does not commute: maps x -> a x + b modulo 65521, one after the other; a and b in one
 * element. */
static uint64_t map_after(uint64_t left, uint64_t right)
{
    uint64_t a = left & 0xffff, b = left >> 16 & 0xffff, c = right & 0xffff, d = right >> 16 & 0xffff;
    return a * c % 65521 | (b * c + d) % 65521 << 16;
}

static void map_reduce(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    uint64_t *left = in, *right = inout;
    for (int i = 0; i < *count; i++) {
        right[i] = map_after(left[i], right[i]);
    }
}

static MPI_Op map_op;

static uint64_t map_element(const struct call *call, int rank, int index)
{
    uint64_t value = element(call, rank, index);
    return (1 + (value & 0xffff) % 65520) | (value >> 16 & 0xffff) % 65521 << 16;
}

/* Ranks `first` .. `last` - 1, in order. */
static uint64_t reduced(const struct call *call, bool ordered, int first, int last, int index)
{
    uint64_t value = ordered ? map_element(call, first, index) : element(call, first, index);
    for (int rank = first + 1; rank < last; rank++) {
        value = ordered ? map_after(value, map_element(call, rank, index)) : value + element(call, rank, index);
    }
    return value;
}

enum reduction { REDUCE, ALLREDUCE, REDUCE_SCATTER, SCAN, EXSCAN, REDUCTIONS };

static bool contribution(const struct call *call, uint64_t *buffer, int count)
{
    bool ordered = call->number % 2 == 0;
    for (int i = 0; i < count; i++) {
        buffer[i] = ordered ? map_element(call, call->comm->rank, i) : element(call, call->comm->rank, i);
    }
    return ordered;
}

static void run_bcast(const struct call *call)
{
    bool is_root = call->comm->rank == call->root;
    if (is_root) {
        fill(call, to, call->count);
    }
    EXPECT_EQUAL(MPI_Bcast(to, call->count, MPI_UINT64_T, call->root, call->comm->comm), MPI_SUCCESS);
    for (int i = 0; i < call->count; i++) {
        verify(call, "bcast", to, i, element(call, call->root, i));
    }
}

static void gather(const struct call *call, bool is_all)
{
    bool receives = is_all || call->comm->rank == call->root;
    uint64_t *own = receives && call->in_place ? to + (size_t)call->comm->rank * (size_t)call->count : from;
    const void *send = own == from ? from : MPI_IN_PLACE;
    fill(call, own, call->count);
    int code = is_all ? MPI_Allgather(send, call->count, MPI_UINT64_T, to, call->count, MPI_UINT64_T, call->comm->comm)
                      : MPI_Gather(send, call->count, MPI_UINT64_T, to, call->count, MPI_UINT64_T, call->root,
                                   call->comm->comm);
    EXPECT_EQUAL(code, MPI_SUCCESS);
    for (int rank = 0; rank < call->comm->size && receives; rank++) {
        for (int i = 0; i < call->count; i++) {
            verify(call, is_all ? "allgather" : "gather", to, rank * call->count + i, element(call, rank, i));
        }
    }
}

static void run_gather(const struct call *call)
{
    gather(call, false);
}

static void run_allgather(const struct call *call)
{
    gather(call, true);
}

static void run_scatter(const struct call *call)
{
    bool is_root = call->comm->rank == call->root;
    bool in_place = is_root && call->in_place;
    if (is_root) {
        fill(call, from, call->count * call->comm->size);
    }
    EXPECT_EQUAL(MPI_Scatter(from, call->count, MPI_UINT64_T, in_place ? MPI_IN_PLACE : (void *)to, call->count,
                             MPI_UINT64_T, call->root, call->comm->comm),
                 MPI_SUCCESS);
    for (int i = 0; i < call->count; i++) {
        int index = call->comm->rank * call->count + i;
        verify(call, "scatter", in_place ? from + call->comm->rank * call->count : to, i,
               element(call, call->root, index));
    }
}

/* Unequal blocks, some of them empty. */
static void run_allgatherv(const struct call *call)
{
    int counts[RANKS_MAX], places[RANKS_MAX], total = 0;
    for (int rank = 0; rank < call->comm->size; rank++) {
        counts[rank] = (int)(mix(call->number + (uint64_t)rank) % (uint64_t)(call->count + 1));
        places[rank] = total;
        total += counts[rank];
    }
    fill(call, from, counts[call->comm->rank]);
    EXPECT_EQUAL(MPI_Allgatherv(from, counts[call->comm->rank], MPI_UINT64_T, to, counts, places, MPI_UINT64_T,
                                call->comm->comm),
                 MPI_SUCCESS);
    for (int rank = 0; rank < call->comm->size; rank++) {
        for (int i = 0; i < counts[rank]; i++) {
            verify(call, "allgatherv", to, places[rank] + i, element(call, rank, i));
        }
    }
}

static void run_alltoall(const struct call *call)
{
    uint64_t *own = call->in_place ? to : from;
    fill(call, own, call->count * call->comm->size);
    EXPECT_EQUAL(MPI_Alltoall(call->in_place ? MPI_IN_PLACE : (void *)from, call->count, MPI_UINT64_T, to, call->count,
                              MPI_UINT64_T, call->comm->comm),
                 MPI_SUCCESS);
    for (int rank = 0; rank < call->comm->size; rank++) {
        for (int i = 0; i < call->count; i++) {
            verify(call, "alltoall", to, rank * call->count + i,
                   element(call, rank, call->comm->rank * call->count + i));
        }
    }
}

static int reduction_call(enum reduction reduction, const void *send, int count, MPI_Op op, const struct call *call)
{
    MPI_Comm comm = call->comm->comm;
    switch (reduction) {
    case REDUCE:
        return MPI_Reduce(send, to, count, MPI_UINT64_T, op, call->root, comm);
    case ALLREDUCE:
        return MPI_Allreduce(send, to, count, MPI_UINT64_T, op, comm);
    case REDUCE_SCATTER:
        return MPI_Reduce_scatter_block(send, to, count, MPI_UINT64_T, op, comm);
    case SCAN:
        return MPI_Scan(send, to, count, MPI_UINT64_T, op, comm);
    default:
        return MPI_Exscan(send, to, count, MPI_UINT64_T, op, comm);
    }
}

static void reduction_run(enum reduction reduction, const struct call *call)
{
    static const char *const names[] = {"reduce", "allreduce", "reduce_scatter", "scan", "exscan"};
    const struct comm *comm = call->comm;
    bool is_scattered = reduction == REDUCE_SCATTER;
    bool receives = reduction == REDUCE ? comm->rank == call->root : reduction != EXSCAN || comm->rank > 0;
    bool in_place = call->in_place && receives && reduction != EXSCAN;
    bool ordered = contribution(call, in_place ? to : from, is_scattered ? call->count * comm->size : call->count);
    int last = reduction == SCAN ? comm->rank + 1 : reduction == EXSCAN ? comm->rank : comm->size;
    EXPECT_EQUAL(reduction_call(reduction, in_place ? MPI_IN_PLACE : (void *)from, call->count,
                                ordered ? map_op : MPI_SUM, call),
                 MPI_SUCCESS);
    for (int i = 0; i < call->count && receives; i++) {
        verify(call, names[reduction], to, i,
               reduced(call, ordered, 0, last, (is_scattered ? comm->rank * call->count : 0) + i));
    }
}

static void run_barrier(const struct call *call)
{
    EXPECT_EQUAL(MPI_Barrier(call->comm->comm), MPI_SUCCESS);
}

static void (*const moves[])(const struct call *call) = {run_barrier,   run_bcast,      run_gather,  run_scatter,
                                                         run_allgather, run_allgatherv, run_alltoall};
enum { MOVES = sizeof(moves) / sizeof(moves[0]) };

/* From no element to some that are long; blocks of all ranks fit the buffers. */
static int count_draw(int size)
{
    static const int bytes[] = {0, 8, 64, 3000, 20000, 70000, BYTES_MAX};
    int most = bytes[draw(sizeof(bytes) / sizeof(bytes[0]))] / (int)sizeof(uint64_t);
    most = draw(8) == 0 ? most : most / size;
    return most == 0 ? 0 : 1 + (int)draw((uint64_t)most);
}

/* This rank comes late, or at once: its own affair. */
static volatile uint64_t dawdled;

static void dawdle(uint64_t number)
{
    uint64_t pause = mix(number * 31 + (uint64_t)expect_rank) % 16;
    for (uint64_t i = 0; i < (pause == 0 ? 200000 : pause < 4 ? 5000 : 0); i++) {
        dawdled = dawdled + i;
    }
}

static void comms_make(struct comm comms[COMMS])
{
    comms[0].comm = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1].comm);
    MPI_Comm_split(MPI_COMM_WORLD, expect_rank % 2, -expect_rank, &comms[2].comm);
    for (int i = 0; i < COMMS; i++) {
        MPI_Comm_rank(comms[i].comm, &comms[i].rank);
        MPI_Comm_size(comms[i].comm, &comms[i].size);
    }
}

int main(int argc, char **argv)
{
    struct comm comms[COMMS];
    expect_start(&argc, &argv);
    if (expect_size > RANKS_MAX) {
        fprintf(stderr, "this test runs at up to %d ranks\n", RANKS_MAX);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    state = getenv("CW_SEED") != NULL ? strtoull(getenv("CW_SEED"), NULL, 10) : 1;
    uint64_t calls = getenv("CW_CALLS") != NULL ? strtoull(getenv("CW_CALLS"), NULL, 10) : 300;
    from = malloc((size_t)expect_size * BYTES_MAX + 1);
    to = malloc((size_t)expect_size * BYTES_MAX + 1);
    MPI_Op_create(map_reduce, 0, &map_op);
    comms_make(comms);
    for (uint64_t number = 0; number < calls && expect_failures == 0; number++) {
        struct call call = {.comm = &comms[draw(COMMS)], .number = number};
        size_t which = draw(MOVES + REDUCTIONS);
        uint64_t root = draw(1 << 20), in_place = draw(2);
        call.count = count_draw(expect_size);
        call.root = (int)(root % (uint64_t)call.comm->size);
        call.in_place = in_place != 0;
        dawdle(number);
        if (which < MOVES) {
            moves[which](&call);
        } else {
            reduction_run((enum reduction)(which - MOVES), &call);
        }
    }
    MPI_Op_free(&map_op);
    MPI_Comm_free(&comms[1].comm);
    MPI_Comm_free(&comms[2].comm);
    free(from);
    free(to);
    return expect_end();
}
