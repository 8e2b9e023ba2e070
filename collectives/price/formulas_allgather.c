/* All-gathers. */
#include "collectives/price/formulas_private.h"

static double ring(struct terms *terms)
{
    unless(terms, formula_exchanges(terms, terms->bytes), CW_FORMULA_LOWER_BOUND);
    return (terms->ranks - 1) * hop(terms, terms->bytes);
}

/* Ranks beyond the power of two give their blocks first and get all at the end; in between their blocks are messages of
 * their own. */
static double recursive_doubling(struct terms *terms)
{
    uint32_t power = 1u << floor_log2(terms->ranks);
    uint32_t rest = terms->ranks - power;
    uint64_t block = terms->bytes;
    double sum = formula_doubling(terms, floor_log2(terms->ranks), block);
    if (rest == 0) {
        return sum;
    }
    unless(terms, false, CW_FORMULA_FITTED);
    sum += hop(terms, block);
    for (uint32_t distance = 1; distance < power; distance *= 2) {
        double second = formula_train(terms, 1, block * distance);
        sum += second < gap(terms, block * (distance < rest ? distance : rest))
                   ? second
                   : gap(terms, block * (distance < rest ? distance : rest));
    }
    return sum + hop(terms, (terms->ranks - 1) * block);
}

/* Where a range of blocks wraps around it is two messages. */
static double bruck(struct terms *terms)
{
    double sum = 0;
    unless(terms, terms->ranks == 2 && formula_exchanges(terms, terms->bytes), CW_FORMULA_FITTED);
    for (uint32_t distance = 1; distance < terms->ranks; distance *= 2) {
        uint32_t count = distance < terms->ranks - distance ? distance : terms->ranks - distance;
        sum += hop(terms, count * terms->bytes);
    }
    return sum;
}

static double gather_bcast(struct terms *terms)
{
    double sum = 0;
    for (uint32_t j = 0; j < ceiling_log2(terms->ranks); j++) {
        sum += hop(terms, terms->bytes << j);
    }
    return sum + formula_bcast_binomial(terms, terms->ranks, (terms->ranks - 1) * terms->bytes);
}

static double multicasts(struct terms *terms)
{
    return terms->ranks * hop(terms, terms->bytes) + (terms->ranks - 1) * formula_barrier(terms);
}

static double phased_barriers(struct terms *terms)
{
    unless(terms, formula_exchanges(terms, terms->bytes), CW_FORMULA_LOWER_BOUND);
    return (terms->ranks - 1) * hop(terms, terms->bytes) + (terms->ranks - 2) * formula_barrier(terms);
}

/* The receiver's clear-to-send, the message, and its FIN. */
static double phased(struct terms *terms)
{
    bool exchanges = formula_exchanges(terms, terms->bytes) && formula_exchanges(terms, 0);
    unless(terms, exchanges, CW_FORMULA_LOWER_BOUND);
    return (terms->ranks - 1) * (hop(terms, 0) + hop(terms, terms->bytes) + latency(terms));
}

/* ---- Concurrent exchange: Tipparaju and Nieplocha 2005, section 3 ---- */

/* Equation 3, for C messages a step on `ports` ports: the first step's messages go out before those of the exchange,
 * and the last step's after. */
static double concurrent(struct terms *terms)
{
    uint32_t groups = terms->concurrency < terms->ranks ? terms->concurrency : terms->ranks;
    uint32_t size = (terms->ranks + groups - 1) / groups;
    double sum = formula_train(terms, groups - 1, terms->bytes);
    uint64_t last = terms->bytes;
    unless(terms, formula_keeps_up(terms, terms->bytes), CW_FORMULA_NONE);
    for (uint32_t distance = 1; distance < size; distance *= 2) {
        last = terms->bytes * (distance < size - distance ? distance : size - distance);
        double turns = formula_train(terms, groups - 1, last); /* the next step's messages wait for a port */
        sum += distance * 2 < size ? larger(hop(terms, last), turns) : turns + hop(terms, last);
    }
    return size == 1 ? formula_train(terms, groups - 2, last) + hop(terms, last) : sum;
}

/* Equation 5: two messages of half the size a step. */
static double concurrent_split(struct terms *terms)
{
    double sum = 0;
    for (uint32_t distance = 1; distance < terms->ranks; distance *= 2) {
        uint32_t count = distance < terms->ranks - distance ? distance : terms->ranks - distance;
        uint64_t half = (terms->bytes + 1) / 2 * count;
        sum += larger(hop(terms, half), 2 * formula_train(terms, 1, half));
    }
    return sum;
}

/* ---- Table ---- */

#define DERIVED   "derived from the algorithm"
#define UNPRINTED "Tipparaju and Nieplocha 2005, equation "
#define LOST      "; derived from the algorithm: the paper's equation is not legible"
#define EXCHANGES "os + or <= g + L"
#define ROW(algorithm, text, source, kind, condition, factor)                           \
    {                                                                                   \
        CW_ALLGATHER, algorithm, text, source, CW_FORMULA_##kind, (condition), (factor) \
    }

static const struct formula_row rows[] = {
    {ROW("ring", "(P-1) (g(m) + L)", DERIVED, EXACT, EXCHANGES, 0), ring, 0},
    {ROW("recursive-doubling", "sum i=0..log2(P)-1 of (g(2^i m) + L)", DERIVED, EXACT, "P a power of two, " EXCHANGES,
         2),
     recursive_doubling, FORMULA_VECTOR},
    {ROW("bruck", "sum i of (g(min(2^i, P - 2^i) m) + L)", DERIVED, EXACT, "P = 2, " EXCHANGES, 3), bruck,
     FORMULA_VECTOR},
    {ROW("gather-bcast", "sum i of (g(2^i m) + L) + ceil(log2 P) g((P-1) m) + floor(log2 P) L", DERIVED, FITTED, NULL,
         2.5),
     gather_bcast, FORMULA_VECTOR},
    {ROW("multicasts", "P (g(m) + L) + (P-1) barrier", DERIVED, EXACT, NULL, 0), multicasts, 0},
    {ROW("phased-barriers", "(P-1) (g(m) + L) + (P-2) barrier", DERIVED, EXACT, EXCHANGES, 0), phased_barriers, 0},
    {ROW("phased", "(P-1) (g(0) + g(m) + 3 L)", DERIVED, EXACT, EXCHANGES, 0), phased, FORMULA_HANDSHAKES},
    {ROW("concurrent", "(C-1 messages) + sum over log2(P/C) steps of (g(2^i m) + L) + (C-1 messages)",
         UNPRINTED "3" LOST ", with ports", FITTED, "os(m) + or(m) <= g(m)", 2.5),
     concurrent, FORMULA_VECTOR},
    {ROW("concurrent-split", "sum i of (g(2^i m/2) + L), or of the time for both halves on one port",
         UNPRINTED "5" LOST ", with ports", FITTED, NULL, 2),
     concurrent_split, FORMULA_VECTOR},
};

const struct formula_family formulas_allgather = {rows, sizeof(rows) / sizeof(rows[0])};
