/* Shared by the tables of formulas. Private to formulas*.c.
 *
 * A formula is a function of `struct terms`. It starts with the class its row promises, and lowers it where an
 * assumption does not hold: messages of the same size, one port, processors that keep up. */
#pragma once

#include <stdbool.h>

#include "collectives/price/price.h"

struct terms {
    const struct cw_problem *problem;
    const struct cw_network *network;
    const struct cw_plogp *path; /* inside a cluster */
    uint32_t ranks;
    uint64_t bytes; /* m */
    uint32_t ports;
    uint32_t degree;
    uint32_t concurrency;
    uint32_t senders;
    uint64_t segment_bytes; /* s: m if there is one segment */
    uint64_t last_bytes;    /* of the last segment */
    uint64_t segments;      /* k */
    uint64_t eager_max_bytes;
    enum cw_formula_class kind; /* of the value */
};

enum formula_flags {
    /* The longest message that must be eager. Otherwise of m bytes. */
    FORMULA_SEGMENTED = 1,
    FORMULA_VECTOR = 2,     /* P m bytes */
    FORMULA_CLUSTERS = 4,   /* is about clusters; without it about one */
    FORMULA_HANDSHAKES = 8, /* has them in it: eager or not is all the same */
};

struct formula_row {
    struct cw_formula about; /* first, so that a cw_formula of the table is its row */
    double (*time)(struct terms *terms);
    uint32_t flags;
};

struct formula_family {
    const struct formula_row *rows;
    uint32_t count;
};

extern const struct formula_family formulas_bcast;
extern const struct formula_family formulas_rooted;
extern const struct formula_family formulas_allgather;
extern const struct formula_family formulas_alltoall;
extern const struct formula_family formulas_reduce;
extern const struct formula_family formulas_reduce_scatter;
extern const struct formula_family formulas_clusters;

/* ---- Terms ---- */

static inline double gap(const struct terms *terms, uint64_t bytes)
{
    return cw_plogp_gap(terms->path, bytes);
}

static inline double latency(const struct terms *terms)
{
    return terms->path->latency_ns;
}

/* g(b) + L */
static inline double hop(const struct terms *terms, uint64_t bytes)
{
    return gap(terms, bytes) + latency(terms);
}

static inline double reduce_time(const struct terms *terms, uint64_t bytes)
{
    return (double)bytes * terms->network->reduce_ns_per_byte;
}

static inline bool power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static inline uint32_t floor_log2(uint32_t n)
{
    return 31u - (uint32_t)__builtin_clz(n);
}

static inline uint32_t ceiling_log2(uint32_t n)
{
    return n <= 1 ? 0 : floor_log2(n - 1) + 1;
}

static inline double larger(double one, double other)
{
    return one > other ? one : other;
}

/* If a condition does not hold, the value's class is at best `kind`; a value that may be both too high and too low is
 * FITTED. */
static inline void unless(struct terms *terms, bool holds, enum cw_formula_class kind)
{
    if (holds || terms->kind == kind || terms->kind == CW_FORMULA_NONE) {
        return;
    }
    terms->kind = terms->kind == CW_FORMULA_EXACT || kind == CW_FORMULA_NONE ? kind : CW_FORMULA_FITTED;
}

/* Messages of one size that a rank sends one after the other. */
struct train {
    double gap;
    double send;
    uint32_t ports; /* 1 also where the processor cannot feed them all: `gap` is os then */
};

struct train formula_train_of(const struct terms *terms, uint64_t bytes);

/* When the n-th of them (from 0) starts. */
static inline double formula_train_start(const struct train *train, uint64_t n)
{
    if (train->ports == 1) {
        return (double)n * train->gap;
    }
    return (double)(n / train->ports) * train->gap + (double)(n % train->ports) * train->send;
}

double formula_train(const struct terms *terms, uint64_t n, uint64_t bytes);

/* When the n-th of messages has arrived whose first bytes come to a rank at time 0 from others. */
double formula_funnel(const struct terms *terms, uint64_t n, uint64_t bytes);

/* os = or = 0: ranks never wait for a processor but their own work. */
bool formula_has_no_overheads(const struct terms *terms, uint64_t bytes);

/* Whether a processor can send and receive a message of `bytes` in each gap. */
bool formula_keeps_up(const struct terms *terms, uint64_t bytes);

/* Whether a processor has sent a message when it has to see to one that was sent to it at the same time. */
bool formula_exchanges(const struct terms *terms, uint64_t bytes);

/* Whether that holds for one message after the other, sent and received at the same rate. */
bool formula_streams(const struct terms *terms, uint64_t bytes);

/* ---- Shared by families ---- */

double formula_bcast_binomial(const struct terms *terms, uint32_t ranks, uint64_t bytes);
double formula_scatter_binomial(const struct terms *terms, uint32_t ranks, uint64_t bytes);

/* sum of g(j b), j = 1 .. count */
double formula_sum(const struct terms *terms, uint64_t count, uint64_t bytes);

/* sum of (g(2^j b) + L) for j below `count` */
double formula_doubling(struct terms *terms, uint32_t count, uint64_t bytes);

/* g(m/2) + L, g(m/4) + L, ..., `steps` of them, with the time to reduce as much after each if `reduces`. */
double formula_halving(struct terms *terms, uint32_t steps, uint64_t bytes, bool reduces);

/* ceil(log2 P) (g(0) + L) */
double formula_barrier(const struct terms *terms);
