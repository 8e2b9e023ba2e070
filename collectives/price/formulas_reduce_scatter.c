/* Reduce-scatters: m is the block of a rank, R the time to reduce one. */
#include "collectives/price/formulas_private.h"

static uint64_t vector(const struct terms *terms)
{
    return terms->bytes * terms->ranks;
}

static double combine(const struct terms *terms, uint64_t bytes)
{
    return hop(terms, bytes) + reduce_time(terms, bytes);
}

/* A rank without a pair is early, and its message may keep a port from one that others wait for. */
static void needs_power_of_two(struct terms *terms)
{
    unless(terms, power_of_two(terms->ranks), CW_FORMULA_FITTED);
}

static double binomial(struct terms *terms)
{
    unless(terms, power_of_two(terms->ranks), CW_FORMULA_UPPER_BOUND);
    return ceiling_log2(terms->ranks) * combine(terms, vector(terms)) +
           formula_scatter_binomial(terms, terms->ranks, terms->bytes);
}

static double recursive_doubling(struct terms *terms)
{
    needs_power_of_two(terms);
    unless(terms, formula_exchanges(terms, vector(terms)), CW_FORMULA_LOWER_BOUND);
    double folded = combine(terms, vector(terms)) + hop(terms, vector(terms));
    return floor_log2(terms->ranks) * combine(terms, vector(terms)) + (power_of_two(terms->ranks) ? 0 : folded);
}

/* After a step, a rank's rest is as large as its message in it; with ranks left over a participant may represent
 * two. */
static double halving(struct terms *terms)
{
    uint32_t steps = floor_log2(terms->ranks);
    if (power_of_two(terms->ranks)) {
        return formula_halving(terms, steps, vector(terms), true);
    }
    needs_power_of_two(terms);
    return combine(terms, vector(terms)) + formula_halving(terms, steps, 2 * (terms->bytes << steps), true);
}

static double recursive_halving(struct terms *terms)
{
    return halving(terms) + (power_of_two(terms->ranks) ? 0 : hop(terms, terms->bytes));
}

/* A window's number has its bits turned round: with two ranks that changes nothing. */
static double rabenseifner(struct terms *terms)
{
    double moves = terms->ranks == 2 ? 0 : hop(terms, terms->bytes);
    if (!power_of_two(terms->ranks)) {
        moves = formula_train(terms, 1, terms->bytes) + hop(terms, terms->bytes);
    }
    return halving(terms) + moves;
}

static double ring(struct terms *terms)
{
    unless(terms, formula_exchanges(terms, terms->bytes), CW_FORMULA_LOWER_BOUND);
    return (terms->ranks - 1) * combine(terms, terms->bytes);
}

/* Lower ranks can begin to combine while messages are still sent: that takes their processors. */
static void needs_no_overheads(struct terms *terms)
{
    unless(terms,
           formula_has_no_overheads(terms, terms->bytes) || terms->ranks == 2 ||
               terms->network->reduce_ns_per_byte <= 0,
           CW_FORMULA_LOWER_BOUND);
}

/* The last rank gets the first operand, that of rank 0, last, and has all to combine then. */
static double pairwise(struct terms *terms)
{
    needs_no_overheads(terms);
    return ring(terms);
}

static double step(struct terms *terms, uint32_t width)
{
    double last = formula_train(terms, width - 1, terms->bytes);
    bool apart = last <= latency(terms) && terms->ports == 1; /* all sends have begun when the first message comes */
    unless(terms, width == 1 ? formula_exchanges(terms, terms->bytes) : apart || formula_streams(terms, terms->bytes),
           CW_FORMULA_LOWER_BOUND);
    return last + hop(terms, terms->bytes);
}

static double concurrent(struct terms *terms)
{
    needs_no_overheads(terms);
    uint32_t messages = terms->ranks - 1;
    uint32_t width = terms->concurrency < messages ? terms->concurrency : messages;
    double sum = messages / width * step(terms, width) + messages * reduce_time(terms, terms->bytes);
    return messages % width == 0 ? sum : sum + step(terms, messages % width);
}

/* ---- Table ---- */

#define DERIVED   "derived from the algorithm"
#define EXCHANGES "os + or <= g + L"
#define POWER     "P a power of two"
#define ROW(algorithm, text, kind, condition, factor)                                         \
    {                                                                                         \
        CW_REDUCE_SCATTER, algorithm, text, DERIVED, CW_FORMULA_##kind, (condition), (factor) \
    }

static const struct formula_row rows[] = {
    {ROW("binomial", "ceil(log2 P) (g(P m) + L + P R) + scatter binomial(m)", EXACT, POWER, 0), binomial,
     FORMULA_VECTOR},
    {ROW("recursive-doubling", "log2(P) (g(P m) + L + P R)", EXACT, POWER ", " EXCHANGES, 2), recursive_doubling,
     FORMULA_VECTOR},
    {ROW("recursive-halving", "sum i=0..log2(P)-1 of (g(2^i m) + L + 2^i R)", EXACT, POWER ", " EXCHANGES, 2),
     recursive_halving, FORMULA_VECTOR},
    {ROW("rabenseifner", "sum i=0..log2(P)-1 of (g(2^i m) + L + 2^i R) + g(m) + L", EXACT, POWER ", " EXCHANGES, 2),
     rabenseifner, FORMULA_VECTOR},
    {ROW("ring", "(P-1) (g(m) + L + R)", EXACT, EXCHANGES, 0), ring, 0},
    {ROW("pairwise", "(P-1) (g(m) + L + R)", EXACT, "no overheads", 0), pairwise, 0},
    {ROW("concurrent", "ceil((P-1)/C) steps of C g(m) + L; (P-1) R", EXACT, "one port, os and or never meet in a step",
         0),
     concurrent, 0},
};

const struct formula_family formulas_reduce_scatter = {rows, sizeof(rows) / sizeof(rows[0])};
