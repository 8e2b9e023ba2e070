/* Reduce, all-reduce and scans; R is the time to reduce a vector. */
#include "collectives/price/formulas_private.h"

/* ---- Parts ---- */

/* g(m) + L + R */
static double combine(const struct terms *terms)
{
    return hop(terms, terms->bytes) + reduce_time(terms, terms->bytes);
}

static void needs_power_of_two(struct terms *terms)
{
    unless(terms, power_of_two(terms->ranks), CW_FORMULA_UPPER_BOUND);
}

static void needs_exchange(struct terms *terms, uint64_t bytes)
{
    unless(terms, formula_exchanges(terms, bytes), CW_FORMULA_LOWER_BOUND);
}

/* The longest block of an even division; that others are shorter makes the value a bound. */
static uint64_t block(struct terms *terms, uint32_t parts)
{
    uint64_t elements = terms->bytes / terms->problem->element_bytes;
    unless(terms, elements % parts == 0, CW_FORMULA_UPPER_BOUND);
    unless(terms, elements >= parts, CW_FORMULA_NONE);
    return (elements + parts - 1) / parts * terms->problem->element_bytes;
}

/* Vector halving among the largest power of two of ranks, the others' operands first: windows of whole blocks. */
static double halving(struct terms *terms, bool reduces)
{
    uint32_t power = 1u << floor_log2(terms->ranks);
    uint64_t window = block(terms, power) * power;
    return formula_halving(terms, floor_log2(terms->ranks), window, reduces);
}

/* A rank without a pair is early, and its message may keep a port from one that others wait for. */
static double fold_in(struct terms *terms)
{
    unless(terms, power_of_two(terms->ranks), CW_FORMULA_FITTED);
    return power_of_two(terms->ranks) ? 0 : combine(terms);
}

static double fold_out(const struct terms *terms)
{
    return power_of_two(terms->ranks) ? 0 : hop(terms, terms->bytes);
}

/* Low ranks have less to wait for and send early: that may keep a port or a processor from messages that others wait
 * for. With ranks left over not all waits are for the latest. */
static void needs_two_ranks(struct terms *terms)
{
    unless(terms, terms->ranks == 2, CW_FORMULA_LOWER_BOUND);
    needs_power_of_two(terms);
}

/* ---- Reduce ---- */

static double climb(struct terms *terms)
{
    needs_power_of_two(terms);
    return ceiling_log2(terms->ranks) * combine(terms);
}

/* In order, the result is at rank 0 first. */
static double reduce_binomial(struct terms *terms)
{
    bool moved = terms->problem->ordered && terms->problem->root != 0;
    return climb(terms) + (moved ? hop(terms, terms->bytes) : 0);
}

static double ring_scatter(struct terms *terms)
{
    uint64_t part = block(terms, terms->ranks);
    needs_exchange(terms, part);
    return (terms->ranks - 1) * (hop(terms, part) + reduce_time(terms, part));
}

static double reduce_ring(struct terms *terms)
{
    uint64_t part = block(terms, terms->ranks);
    return ring_scatter(terms) + latency(terms) + formula_funnel(terms, terms->ranks - 2, part);
}

static double reduce_rabenseifner(struct terms *terms)
{
    double before = fold_in(terms);
    return before + halving(terms, true) + halving(terms, false);
}

/* ---- All-reduce ---- */

static double allreduce_binomial(struct terms *terms)
{
    return climb(terms) + formula_bcast_binomial(terms, terms->ranks, terms->bytes);
}

static double allreduce_doubling(struct terms *terms)
{
    double before = fold_in(terms);
    needs_exchange(terms, terms->bytes);
    return before + floor_log2(terms->ranks) * combine(terms) + fold_out(terms);
}

static double allreduce_ring(struct terms *terms)
{
    return ring_scatter(terms) + (terms->ranks - 1) * hop(terms, block(terms, terms->ranks));
}

static double allreduce_rabenseifner(struct terms *terms)
{
    return reduce_rabenseifner(terms) + fold_out(terms);
}

/* All vectors arrive, then all are combined, one after the other. */
static double allreduce_direct(struct terms *terms)
{
    double last = formula_funnel(terms, terms->ranks - 2, terms->bytes);
    return latency(terms) + last + (terms->ranks - 1) * reduce_time(terms, terms->bytes);
}

static double allreduce_bruck(struct terms *terms)
{
    double time = (terms->ranks - 1) * reduce_time(terms, terms->bytes);
    for (uint32_t distance = 1; distance < terms->ranks; distance *= 2) {
        uint32_t count = distance < terms->ranks - distance ? distance : terms->ranks - distance;
        time += hop(terms, count * terms->bytes);
    }
    return time;
}

/* ---- Scans ---- */

static double scan_chain(struct terms *terms)
{
    return (terms->ranks - 1) * combine(terms);
}

/* Segments follow each other at the pace of the slower of port and processor. */
static double scan_segmented(struct terms *terms)
{
    double one = hop(terms, terms->segment_bytes) + reduce_time(terms, terms->segment_bytes);
    double pace = larger(gap(terms, terms->segment_bytes), reduce_time(terms, terms->segment_bytes));
    return (terms->ranks - 1) * one + (double)(terms->segments - 1) * pace;
}

/* The last rank gets all operands before it. */
static double scan_direct(struct terms *terms)
{
    double last = formula_funnel(terms, terms->ranks - 2, terms->bytes);
    return latency(terms) + last + (terms->ranks - 1) * reduce_time(terms, terms->bytes);
}

/* The last rank needs only the arrivals. */
static double exscan_chain(struct terms *terms)
{
    return (terms->ranks - 1) * hop(terms, terms->bytes) + (terms->ranks - 2) * reduce_time(terms, terms->bytes);
}

static double scan_doubling(struct terms *terms)
{
    needs_two_ranks(terms);
    needs_exchange(terms, terms->bytes);
    return ceiling_log2(terms->ranks) * combine(terms);
}

/* From the second step on both the result and the forwarded data are reduced; in the first there is no result yet, in
 * the last none is forwarded. */
static double exscan_doubling(struct terms *terms)
{
    uint32_t steps = ceiling_log2(terms->ranks);
    double one = reduce_time(terms, terms->bytes);
    needs_two_ranks(terms);
    needs_exchange(terms, terms->bytes);
    return steps * combine(terms) + (steps > 2 ? (steps - 2) * one : 0) - (steps == 1 ? one : 0);
}

/* ---- Table ---- */

#define DERIVED   "derived from the algorithm"
#define EXCHANGES "os + or <= g + L"
#define POWER     "P a power of two"
#define ROW(collective, algorithm, text, kind, condition, factor)                      \
    {                                                                                  \
        collective, algorithm, text, DERIVED, CW_FORMULA_##kind, (condition), (factor) \
    }

static const struct formula_row rows[] = {
    {ROW(CW_REDUCE, "binomial", "ceil(log2 P) (g(m) + L + R)", EXACT, POWER, 0), reduce_binomial, 0},
    {ROW(CW_REDUCE, "ring", "(P-1) (g(m/P) + L + R/P) + (P-1) g(m/P) + L", EXACT, "P divides m, " EXCHANGES, 2),
     reduce_ring, 0},
    {ROW(CW_REDUCE, "rabenseifner", "sum i=1..log2(P) of (2 g(m/2^i) + 2 L + R/2^i)", EXACT,
         POWER " and divides m, " EXCHANGES, 2),
     reduce_rabenseifner, 0},
    {ROW(CW_ALLREDUCE, "binomial", "ceil(log2 P) (g(m) + L + R) + ceil(log2 P) g(m) + floor(log2 P) L", EXACT, POWER,
         0),
     allreduce_binomial, 0},
    {ROW(CW_ALLREDUCE, "recursive-doubling", "log2(P) (g(m) + L + R)", EXACT, POWER ", " EXCHANGES, 2),
     allreduce_doubling, 0},
    {ROW(CW_ALLREDUCE, "ring", "(P-1) (2 g(m/P) + 2 L + R/P)", EXACT, "P divides m, " EXCHANGES, 2), allreduce_ring, 0},
    {ROW(CW_ALLREDUCE, "rabenseifner", "sum i=1..log2(P) of (2 g(m/2^i) + 2 L + R/2^i)", EXACT,
         POWER " and divides m, " EXCHANGES, 2),
     allreduce_rabenseifner, 0},
    {ROW(CW_ALLREDUCE, "direct", "(P-1) g(m) + L + (P-1) R", FITTED, NULL, 3), allreduce_direct, 0},
    {ROW(CW_ALLREDUCE, "bruck", "sum i of (g(min(2^i, P - 2^i) m) + L) + (P-1) R", FITTED, NULL, 3), allreduce_bruck,
     FORMULA_VECTOR},
    {ROW(CW_SCAN, "segmented-chain", "(P-1) (g(s) + L + R(s)) + (k-1) max(g(s), R(s))", FITTED, NULL, 3),
     scan_segmented, FORMULA_SEGMENTED},
    {ROW(CW_SCAN, "direct", "(P-1) g(m) + L + (P-1) R", FITTED, NULL, 3), scan_direct, 0},
    {ROW(CW_EXSCAN, "segmented-chain", "(P-1) (g(s) + L + R(s)) + (k-1) max(g(s), R(s))", FITTED, NULL, 3),
     scan_segmented, FORMULA_SEGMENTED},
    {ROW(CW_EXSCAN, "direct", "(P-1) g(m) + L + (P-1) R", FITTED, NULL, 3), scan_direct, 0},
    {ROW(CW_SCAN, "chain", "(P-1) (g(m) + L + R)", EXACT, NULL, 0), scan_chain, 0},
    {ROW(CW_SCAN, "recursive-doubling", "ceil(log2 P) (g(m) + L + R)", EXACT,
         "P = 2; for other powers of two a lower bound", 2.5),
     scan_doubling, 0},
    {ROW(CW_EXSCAN, "chain", "(P-1) (g(m) + L) + (P-2) R", EXACT, NULL, 0), exscan_chain, 0},
    {ROW(CW_EXSCAN, "recursive-doubling", "ceil(log2 P) (g(m) + L + R) + (ceil(log2 P) - 2) R", EXACT,
         "P = 2; for other powers of two a lower bound", 2.5),
     exscan_doubling, 0},
};

const struct formula_family formulas_reduce = {rows, sizeof(rows) / sizeof(rows[0])};
