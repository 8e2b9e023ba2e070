/* All-to-alls. */
#include "collectives/price/formulas_private.h"

/* All ranks begin with rank 0, so that the last rank's messages begin to come P - 2 messages later than the first
 * one's, all at once. */
static double direct(struct terms *terms)
{
    unless(terms, terms->ports == 1 && formula_streams(terms, terms->bytes), CW_FORMULA_LOWER_BOUND);
    return formula_train(terms, terms->ranks - 2, terms->bytes) + latency(terms) +
           (terms->ports == 1 ? (terms->ranks - 1) * gap(terms, terms->bytes) : gap(terms, terms->bytes));
}

static double rotated(struct terms *terms)
{
    unless(terms, terms->ranks == 2 ? formula_exchanges(terms, terms->bytes) : formula_streams(terms, terms->bytes),
           CW_FORMULA_LOWER_BOUND);
    return formula_train(terms, terms->ranks - 2, terms->bytes) + hop(terms, terms->bytes);
}

static double pairwise(struct terms *terms)
{
    unless(terms, formula_exchanges(terms, terms->bytes), CW_FORMULA_LOWER_BOUND);
    return (terms->ranks - 1) * hop(terms, terms->bytes);
}

/* One step: `width` messages out and as many in. */
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
    uint32_t messages = terms->ranks - 1;
    uint32_t width = terms->concurrency < messages ? terms->concurrency : messages;
    double sum = messages / width * step(terms, width);
    return messages % width == 0 ? sum : sum + step(terms, messages % width);
}

/* In step k the blocks travel whose number has bit k. With all numbers there are, each step has a block of the one
 * before. */
static double bruck(struct terms *terms)
{
    double sum = 0;
    unless(terms, power_of_two(terms->ranks), CW_FORMULA_UPPER_BOUND);
    for (uint32_t bit = 1; bit < terms->ranks; bit *= 2) {
        uint32_t beyond = terms->ranks % (2 * bit);
        uint64_t blocks = (uint64_t)terms->ranks / (2 * bit) * bit + (beyond > bit ? beyond - bit : 0);
        unless(terms, formula_exchanges(terms, blocks * terms->bytes), CW_FORMULA_LOWER_BOUND);
        sum += hop(terms, blocks * terms->bytes);
    }
    return sum;
}

static double phased_barriers(struct terms *terms)
{
    return pairwise(terms) + (terms->ranks - 2) * formula_barrier(terms);
}

/* The receiver's clear-to-send is on its way while the message before is. */
static double phased(struct terms *terms)
{
    bool exchanges = formula_exchanges(terms, terms->bytes) && formula_exchanges(terms, 0);
    unless(terms, exchanges, CW_FORMULA_NONE);
    return (terms->ranks - 1) * (hop(terms, 0) + hop(terms, terms->bytes) + latency(terms));
}

/* ---- Across clusters ---- */

static uint32_t cluster_size(const struct terms *terms, uint32_t cluster)
{
    return cw_problem_cluster_size(terms->problem, cluster);
}

/* For the largest cluster and the heads of the smallest: rows come to a head, cross while the word that their place is
 * free has long been in progress, and are dealt out by columns. */
static double clusters_heads(struct terms *terms)
{
    const struct cw_plogp *wan = &terms->network->paths[CW_PATH_WAN];
    uint32_t others = terms->problem->cluster_count - 1;
    uint32_t largest = 0, heads = terms->ranks;
    for (uint32_t i = 0; i <= others; i++) {
        uint32_t size = cluster_size(terms, i);
        largest = size > largest ? size : largest;
        heads = size < heads ? size : heads;
    }
    heads = terms->senders > 0 && terms->senders < heads ? terms->senders : heads;
    uint32_t ways = heads / others > 0 ? heads / others : 1;
    uint32_t served = (others * ways + heads - 1) / heads; /* ways by one head */
    uint32_t rows = (largest + ways - 1) / ways;
    uint64_t row = largest * terms->bytes;
    double link = terms->network->wan_bytes_per_ns;
    double gathered = served * rows * gap(terms, row) + latency(terms);
    double asked = row * rows > terms->eager_max_bytes ? wan->latency_ns + cw_plogp_gap(wan, 0) : 0;
    double crossing = served * cw_plogp_gap(wan, row * rows);
    double carried = link > 0 ? (double)largest * (double)row / link : 0;
    double inside = (largest - 1) * gap(terms, terms->bytes);
    double dealt = (double)served * largest * gap(terms, rows * terms->bytes) + latency(terms) +
                   (rows * terms->bytes > terms->eager_max_bytes ? 2 * latency(terms) : 0);
    return larger(gathered, asked) + larger(crossing, carried) + larger(wan->latency_ns, inside) + dealt;
}

/* ---- Table ---- */

#define DERIVED   "derived from the algorithm"
#define EXCHANGES "os + or <= g + L"
#define STREAMS   "one port, os and or never meet"
#define ROW(algorithm, text, source, kind, condition, factor)                          \
    {                                                                                  \
        CW_ALLTOALL, algorithm, text, source, CW_FORMULA_##kind, (condition), (factor) \
    }

static const struct formula_row rows[] = {
    {ROW("direct", "(P-2) g(m) + (P-1) g(m) + L", DERIVED, EXACT, STREAMS, 0), direct, 0},
    {ROW("rotated", "(P-1) g(m) + L", DERIVED, EXACT, STREAMS, 0), rotated, 0},
    {ROW("pairwise", "(P-1) (g(m) + L)", DERIVED, EXACT, EXCHANGES, 0), pairwise, 0},
    {ROW("concurrent", "ceil((P-1)/C) steps of C g(m) + L", DERIVED, EXACT, STREAMS " in a step", 0), concurrent, 0},
    {ROW("bruck", "sum k of (g(blocks with bit k, m each) + L)", DERIVED, EXACT, "P a power of two, " EXCHANGES, 2),
     bruck, FORMULA_VECTOR},
    {ROW("clusters-heads", "s g(m S) + g(m S s) + L + S g(m s): S ranks a cluster, s rows a way", DERIVED, NONE, NULL,
         0),
     clusters_heads, FORMULA_CLUSTERS | FORMULA_HANDSHAKES},
    {ROW("phased-barriers", "(P-1) (g(m) + L) + (P-2) barrier", DERIVED, EXACT, EXCHANGES, 0), phased_barriers, 0},
    {ROW("phased", "(P-1) (g(0) + g(m) + 3 L)", DERIVED, UPPER_BOUND, EXCHANGES, 0), phased, FORMULA_HANDSHAKES},
};

const struct formula_family formulas_alltoall = {rows, sizeof(rows) / sizeof(rows[0])};
