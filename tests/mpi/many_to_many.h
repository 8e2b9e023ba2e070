/* Patterns of many-to-many communication, by formulas that all ranks know, and buffers for them with contents that
 * identify the sender. */
#pragma once

#include "tests/mpi/expect.h"

#include <stdint.h>
#include <string.h>

enum { PATTERNS = 8, LONG = 20011 /* ints: beyond what is sent at once */ };

static inline uint32_t mixed(uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t hash = (a * 0x9e3779b97f4a7c15u) ^ (b + 1) * 0xc2b2ae3d27d4eb4fu ^ (c + 1) * 0x165667b19e3779f9u;
    hash = (hash ^ hash >> 31) * 0xff51afd7ed558ccdu;
    return (uint32_t)(hash >> 33);
}

/* Ints from one rank to another. */
static inline int pattern_count(int pattern, int from, int to, int size)
{
    switch (pattern) {
    case 0: /* all to all, alike */
        return 37;
    case 1: /* nothing at all */
        return 0;
    case 2: /* a ring of long messages */
        return to == (from + 1) % size ? LONG : 0;
    case 3: /* all to one, and the ranks' own blocks */
        return to == 0 || to == from ? 5 + from : 0;
    case 4: /* Figure 3 of CC-MPI, as far as there are ranks */
        return from == 0 && to == 1   ? LONG
               : from == 1 && to == 3 ? LONG
               : from == 0 && to == 2 ? 2500
               : from == 2            ? to == 3 || to == 1 ? 25 : 0
               : from == 1 && to == 5 ? 25
                                      : 0;
    default: { /* at random, some long, some none */
        uint32_t drawn = mixed((uint32_t)pattern, (uint32_t)from, (uint32_t)to);
        return drawn % 4 == 0 ? 0 : drawn % 7 == 0 ? (int)(drawn % LONG) : (int)(drawn % 300);
    }
    }
}

/* The same, as much there as back: for calls in place. */
static inline int pattern_count_both(int pattern, int from, int to, int size)
{
    return from < to ? pattern_count(pattern, from, to, size) : pattern_count(pattern, to, from, size);
}

/* Element i of the data from `from` for `to` in run `run`. */
static inline int many_element(int from, int to, int i, int run)
{
    return (int)((uint32_t)from * 1000003u + (uint32_t)to * 10007u + (uint32_t)i + (uint32_t)run * 77777777u);
}

enum many_layout {
    LAYOUT_PACKED = 0,   /* blocks in rank order, without gaps */
    LAYOUT_REVERSED = 1, /* the last rank's block first, with gaps */
    LAYOUTS = 2,
};

/* One side of a call. */
struct many_side {
    int *counts;
    int *places; /* in ints */
    int *buffer;
    size_t length;
};

struct many {
    int rank;
    int size;
    struct many_side send;
    struct many_side receive;
};

/* `stride` ints of memory for each element. */
static inline void many_side_make(struct many_side *side, int size, int layout, int stride)
{
    side->places = calloc((unsigned)size, sizeof(int));
    side->length = 0;
    for (int i = 0; i < size; i++) {
        int of = layout == LAYOUT_REVERSED ? size - 1 - i : i;
        side->places[of] = (int)side->length;
        side->length += (size_t)(side->counts[of] * stride + (layout == LAYOUT_REVERSED ? 3 : 0));
    }
    side->buffer = malloc((side->length + 1) * sizeof(int));
}

/* Counts by a pattern; `both`: the same there and back. */
static inline struct many many_make(MPI_Comm comm, int pattern, int both, int layout, int send_stride,
                                    int receive_stride)
{
    struct many many;
    MPI_Comm_rank(comm, &many.rank);
    MPI_Comm_size(comm, &many.size);
    int (*count)(int, int, int, int) = both ? pattern_count_both : pattern_count;
    many.send.counts = calloc((unsigned)many.size, sizeof(int));
    many.receive.counts = calloc((unsigned)many.size, sizeof(int));
    for (int of = 0; of < many.size; of++) {
        many.send.counts[of] = count(pattern, many.rank, of, many.size);
        many.receive.counts[of] = count(pattern, of, many.rank, many.size);
    }
    many_side_make(&many.send, many.size, layout, send_stride);
    many_side_make(&many.receive, many.size, layout, receive_stride);
    return many;
}

/* The send data of a run, each element `stride` ints behind the one before; the receive buffer is spoiled. */
static inline void many_fill(struct many *many, struct many_side *side, int stride, int run)
{
    for (size_t i = 0; i <= many->receive.length; i++) {
        many->receive.buffer[i] = -1;
    }
    for (int to = 0; to < many->size; to++) {
        for (int i = 0; i < side->counts[to]; i++) {
            side->buffer[side->places[to] + i * stride] = many_element(many->rank, to, i, run);
        }
    }
}

/* Everything has come to where it belongs, and nothing anywhere else. */
static inline int many_differences(const struct many *many, int stride, int run)
{
    const struct many_side *side = &many->receive;
    int wrong = 0, touched = 0, elements = 0;
    for (int from = 0; from < many->size; from++) {
        for (int i = 0; i < side->counts[from]; i++) {
            wrong += side->buffer[side->places[from] + i * stride] != many_element(from, many->rank, i, run);
        }
        elements += side->counts[from];
    }
    for (size_t i = 0; i <= side->length; i++) {
        touched += side->buffer[i] != -1;
    }
    return wrong + (touched > elements ? touched - elements : 0);
}

static inline void many_free(struct many *many)
{
    free(many->send.counts), free(many->send.places), free(many->send.buffer);
    free(many->receive.counts), free(many->receive.places), free(many->receive.buffer);
}

/* A communicator that asks for an algorithm. */
static inline MPI_Comm many_comm(MPI_Comm from, const char *words)
{
    MPI_Info info;
    MPI_Comm comm;
    MPI_Info_create(&info);
    MPI_Info_set(info, "causeway_algorithm", words);
    MPI_Comm_dup_with_info(from, info, &comm);
    MPI_Info_free(&info);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    return comm;
}
