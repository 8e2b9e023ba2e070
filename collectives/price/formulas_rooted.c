/* Scatters (Barchet-Estefanel and Mounie 2004, Table 2), gathers by symmetry, and barriers. */
#include "collectives/price/formulas_private.h"

/* With another root than rank 0 the blocks of a subtree may be two pieces at the root, which travel as two messages. */
static void needs_whole_subtrees(struct terms *terms)
{
    unless(terms, terms->problem->root == 0, CW_FORMULA_FITTED);
}

/* ---- Scatter ---- */

static double scatter_flat(struct terms *terms)
{
    return formula_train(terms, terms->ranks - 2, terms->bytes) + hop(terms, terms->bytes);
}

static double chain(struct terms *terms)
{
    needs_whole_subtrees(terms);
    return formula_sum(terms, terms->ranks - 1, terms->bytes) + (terms->ranks - 1) * latency(terms);
}

static double scatter_pipelined_chain(struct terms *terms)
{
    bool keeps_up = terms->ranks == 2 || (terms->ports == 1 && formula_keeps_up(terms, terms->bytes));
    unless(terms, keeps_up, CW_FORMULA_LOWER_BOUND);
    return (terms->ranks - 1) * hop(terms, terms->bytes);
}

static double scatter_binomial(struct terms *terms)
{
    needs_whole_subtrees(terms);
    return formula_scatter_binomial(terms, terms->ranks, terms->bytes);
}

static double scatter_multicast(struct terms *terms)
{
    return hop(terms, terms->bytes * terms->ranks);
}

/* ---- Gather ---- */

static double gather_flat(struct terms *terms)
{
    return latency(terms) + formula_funnel(terms, terms->ranks - 2, terms->bytes);
}

static double gather_binomial(struct terms *terms)
{
    double sum = 0;
    needs_whole_subtrees(terms);
    unless(terms, power_of_two(terms->ranks), CW_FORMULA_UPPER_BOUND);
    for (uint32_t j = 0; j < ceiling_log2(terms->ranks); j++) {
        sum += hop(terms, terms->bytes << j);
    }
    return sum;
}

/* ---- Barrier ---- */

static double dissemination(struct terms *terms)
{
    unless(terms, formula_exchanges(terms, 0), CW_FORMULA_LOWER_BOUND);
    return formula_barrier(terms);
}

static double climb(struct terms *terms)
{
    unless(terms, power_of_two(terms->ranks), CW_FORMULA_UPPER_BOUND);
    return ceiling_log2(terms->ranks) * hop(terms, 0);
}

static double tree(struct terms *terms)
{
    return climb(terms) + formula_bcast_binomial(terms, terms->ranks, 0);
}

static double tree_multicast(struct terms *terms)
{
    return climb(terms) + hop(terms, 0);
}

/* ---- Table ---- */

#define TABLE_2 "Barchet-Estefanel and Mounie 2004, Table 2"
#define MIRROR  TABLE_2 ", turned round"
#define DERIVED "derived from the algorithm"
#define ROW(collective, algorithm, text, source, kind, condition, factor)             \
    {                                                                                 \
        collective, algorithm, text, source, CW_FORMULA_##kind, (condition), (factor) \
    }

static const struct formula_row rows[] = {
    {ROW(CW_SCATTER, "flat", "(P-1) g(m) + L", TABLE_2, EXACT, NULL, 0), scatter_flat, 0},
    {ROW(CW_SCATTER, "chain", "sum j=1..P-1 of g(j m) + (P-1) L", TABLE_2, EXACT, "rank 0 is the root", 2), chain,
     FORMULA_VECTOR},
    {ROW(CW_SCATTER, "pipelined-chain", "(P-1) (g(m) + L)", TABLE_2, EXACT, "one port, os(m) + or(m) <= g(m)", 0),
     scatter_pipelined_chain, 0},
    {ROW(CW_SCATTER, "binomial", "longest way: sums of g(blocks of a subtree) and L",
         DERIVED "; Table 2 for powers of two", EXACT, "rank 0 is the root", 2),
     scatter_binomial, FORMULA_VECTOR},
    {ROW(CW_SCATTER, "multicast", "g(P m) + L", DERIVED, EXACT, NULL, 0), scatter_multicast, FORMULA_VECTOR},
    {ROW(CW_GATHER, "flat", "(P-1) g(m) + L", MIRROR, EXACT, NULL, 0), gather_flat, 0},
    {ROW(CW_GATHER, "chain", "sum j=1..P-1 of g(j m) + (P-1) L", MIRROR, EXACT, "rank 0 is the root", 2), chain,
     FORMULA_VECTOR},
    {ROW(CW_GATHER, "pipelined-chain", "(P-1) (g(m) + L)", MIRROR, EXACT, "one port, os(m) + or(m) <= g(m)", 0),
     scatter_pipelined_chain, 0},
    {ROW(CW_GATHER, "binomial", "sum j=0..ceil(log2 P)-1 of g(2^j m) + ceil(log2 P) L", MIRROR, EXACT,
         "P a power of two, rank 0 is the root", 4),
     gather_binomial, FORMULA_VECTOR},
    {ROW(CW_BARRIER, "dissemination", "ceil(log2 P) (g(0) + L)", DERIVED, EXACT, "os(0) + or(0) <= g(0) + L", 0),
     dissemination, FORMULA_HANDSHAKES},
    {ROW(CW_BARRIER, "tree", "ceil(log2 P) (g(0) + L) + ceil(log2 P) g(0) + floor(log2 P) L", DERIVED, EXACT,
         "P a power of two", 0),
     tree, FORMULA_HANDSHAKES},
    {ROW(CW_BARRIER, "tree-multicast", "(ceil(log2 P) + 1) (g(0) + L)", DERIVED, EXACT, "P a power of two", 0),
     tree_multicast, FORMULA_HANDSHAKES},
};

const struct formula_family formulas_rooted = {rows, sizeof(rows) / sizeof(rows[0])};
