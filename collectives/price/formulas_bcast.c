/* Broadcasts of one cluster: Barchet-Estefanel and Mounie 2004, Table 1, and their like. */
#include "collectives/price/formulas_private.h"

/* ---- Trees ---- */

/* From a node's turn to its child number i having the message. */
struct to_child {
    struct train train;
    double hop;
};

static struct to_child to_child(const struct terms *terms, uint64_t bytes)
{
    return (struct to_child){formula_train_of(terms, bytes), hop(terms, bytes)};
}

static double child_cost(const struct to_child *to, uint32_t i)
{
    return formula_train_start(&to->train, i) + to->hop;
}

/* Node v has children d v + 1 .. d v + d. On the last level the digits of a node's place there determine its path: the
 * longest one has the greatest sum of costs. That is the last place's, or one that is smaller in one digit and has d -
 * 1 in all later ones. */
static double dary(const struct terms *terms, uint32_t degree, uint64_t bytes)
{
    uint64_t first = 0; /* node of level `height` */
    uint64_t width = 1;
    uint32_t height = 0;
    if (degree == 1) {
        return (terms->ranks - 1) * hop(terms, bytes);
    }
    while (first + width < terms->ranks) {
        first += width;
        width *= degree;
        height++;
    }
    struct to_child to = to_child(terms, bytes);
    uint64_t place = terms->ranks - 1 - first;
    double last_child = child_cost(&to, degree - 1);
    double best = height > 0 ? (height - 1) * last_child : 0; /* the level above is full */
    double way = 0;
    for (uint32_t below = height; below-- > 0;) {
        width /= degree;
        uint32_t digit = (uint32_t)(place / width % degree);
        if (digit > 0) {
            best = larger(best, way + child_cost(&to, digit - 1) + below * last_child);
        }
        way += child_cost(&to, digit);
    }
    return larger(best, way);
}

enum { LEVELS_MAX = 32 };

/* Through the first child, whose subtree may not be full, or the second: the paths through others are shorter. */
double formula_scatter_binomial(const struct terms *terms, uint32_t ranks, uint64_t bytes)
{
    double best = 0;
    double way = 0;
    while (ranks > 1) {
        uint32_t levels = ceiling_log2(ranks);
        uint32_t first = ranks - (1u << (levels - 1)); /* nodes under the first child */
        double turn = terms->ports == 1 ? gap(terms, first * bytes) : cw_plogp_send(terms->path, first * bytes);
        double second = 0;
        for (uint32_t j = 0; j + 1 < levels; j++) {
            second += hop(terms, (bytes << j));
        }
        best = larger(best, levels > 1 ? way + turn + second : 0);
        way += hop(terms, first * bytes);
        ranks = first;
    }
    return larger(best, way);
}

/* A node with subtrees of 2^k, in the order in which it serves them; costs are those of children. */
static void full_subtrees(const double *costs, uint32_t levels, double *times)
{
    for (uint32_t k = 0; k <= levels; k++) {
        times[k] = 0;
        for (uint32_t i = 0; i < k; i++) {
            times[k] = larger(times[k], costs[i] + times[k - 1 - i]);
        }
    }
}

/* With one port: ceil(log2 P) g + floor(log2 P) L. Else children are served at the same time, and the way through the
 * first one counts, or through any other: only the first one's subtree may not be full. */
double formula_bcast_binomial(const struct terms *terms, uint32_t ranks, uint64_t bytes)
{
    double costs[LEVELS_MAX];
    double times[LEVELS_MAX + 1];
    double best = 0;
    double way = 0;
    uint32_t levels = ceiling_log2(ranks);
    if (terms->ports == 1) {
        return levels * gap(terms, bytes) + floor_log2(ranks) * latency(terms);
    }
    struct to_child to = to_child(terms, bytes);
    for (uint32_t i = 0; i < levels; i++) {
        costs[i] = child_cost(&to, i);
    }
    full_subtrees(costs, levels, times);
    while (!power_of_two(ranks)) {
        levels = ceiling_log2(ranks);
        for (uint32_t i = 1; i < levels; i++) {
            best = larger(best, way + costs[i] + times[levels - 1 - i]);
        }
        way += costs[0];
        ranks -= 1u << (levels - 1);
    }
    return larger(best, way + times[ceiling_log2(ranks)]);
}

/* The root sends each segment to `children`; other ranks have less to do in that time, and are done with one segment
 * when the next one comes. After the last segment's turn, the tree of one segment is left. */
static double pipeline(struct terms *terms, uint32_t children,
                       double (*tree)(const struct terms *terms, uint64_t bytes))
{
    uint64_t last = terms->last_bytes;
    if (terms->segments == 1) {
        return tree(terms, terms->bytes);
    }
    double turns = formula_train(terms, (terms->segments - 1) * children, terms->segment_bytes);
    if (terms->ports > 1 || !formula_keeps_up(terms, terms->segment_bytes)) {
        unless(terms, false, CW_FORMULA_LOWER_BOUND);
        return turns + tree(terms, last);
    }
    unless(terms, last == terms->segment_bytes, CW_FORMULA_UPPER_BOUND);
    return turns + tree(terms, terms->segment_bytes);
}

static uint32_t at_most(uint32_t degree, const struct terms *terms)
{
    return degree < terms->ranks - 1 ? degree : terms->ranks - 1;
}

static double tree_flat(const struct terms *terms, uint64_t bytes)
{
    return formula_train(terms, terms->ranks - 2, bytes) + hop(terms, bytes);
}

static double tree_chain(const struct terms *terms, uint64_t bytes)
{
    return (terms->ranks - 1) * hop(terms, bytes);
}

static double tree_binary(const struct terms *terms, uint64_t bytes)
{
    return dary(terms, 2, bytes);
}

static double tree_dary(const struct terms *terms, uint64_t bytes)
{
    return dary(terms, terms->degree, bytes);
}

static double tree_binomial(const struct terms *terms, uint64_t bytes)
{
    return formula_bcast_binomial(terms, terms->ranks, bytes);
}

/* ---- As they run here ---- */

static double flat(struct terms *terms)
{
    return tree_flat(terms, terms->bytes);
}

static double segmented_flat(struct terms *terms)
{
    double rest = tree_flat(terms, terms->last_bytes);
    unless(terms, terms->ports == 1 || terms->segments == 1, CW_FORMULA_LOWER_BOUND);
    return formula_train(terms, (terms->segments - 1) * (terms->ranks - 1), terms->segment_bytes) + rest;
}

static double chain(struct terms *terms)
{
    return tree_chain(terms, terms->bytes);
}

/* The last segment may be shorter: from the second hop on it comes while the one before it is on its way out. */
static double segmented_chain(struct terms *terms)
{
    uint64_t segment = terms->segment_bytes;
    if (terms->segments == 1) {
        return chain(terms);
    }
    if (terms->ports == 1) {
        unless(terms, terms->ranks == 2 || formula_keeps_up(terms, segment), CW_FORMULA_LOWER_BOUND);
        return (terms->ranks - 2) * hop(terms, segment) + (double)(terms->segments - 1) * gap(terms, segment) +
               hop(terms, terms->last_bytes);
    }
    unless(terms, false, CW_FORMULA_LOWER_BOUND);
    return formula_train(terms, terms->segments - 1, segment) + tree_chain(terms, terms->last_bytes);
}

static double binary(struct terms *terms)
{
    return tree_binary(terms, terms->bytes);
}

static double segmented_binary(struct terms *terms)
{
    return pipeline(terms, at_most(2, terms), tree_binary);
}

static double segmented_dary(struct terms *terms)
{
    return pipeline(terms, at_most(terms->degree, terms), tree_dary);
}

static double binomial(struct terms *terms)
{
    return tree_binomial(terms, terms->bytes);
}

static double segmented_binomial(struct terms *terms)
{
    return pipeline(terms, ceiling_log2(terms->ranks), tree_binomial);
}

/* The first question goes out and its answer comes in; all others meanwhile. At the end the FIN of the last arrival
 * goes back. */
static double handshake(const struct terms *terms)
{
    return 2 * hop(terms, 0) + latency(terms);
}

static bool is_undisturbed(const struct terms *terms, uint32_t questions)
{
    return terms->ports == 1 && formula_has_no_overheads(terms, 0) && formula_has_no_overheads(terms, terms->bytes) &&
           questions * gap(terms, 0) <= hop(terms, 0);
}

static double flat_rendezvous(struct terms *terms)
{
    unless(terms, is_undisturbed(terms, terms->ranks - 1), CW_FORMULA_LOWER_BOUND);
    return handshake(terms) + flat(terms);
}

static double chain_rendezvous(struct terms *terms)
{
    unless(terms, formula_exchanges(terms, 0) && formula_exchanges(terms, terms->bytes), CW_FORMULA_LOWER_BOUND);
    return handshake(terms) + chain(terms);
}

static double binomial_rendezvous(struct terms *terms)
{
    unless(terms, is_undisturbed(terms, ceiling_log2(terms->ranks)), CW_FORMULA_LOWER_BOUND);
    return handshake(terms) + binomial(terms);
}

/* The root sends the scatter, then round the ring all that its neighbour has not got from the scatter; scatter and ring
 * overlap elsewhere. */
static double van_de_geijn(struct terms *terms)
{
    uint64_t block = (terms->bytes + terms->ranks - 1) / terms->ranks;
    unless(terms, terms->ports == 1 && formula_keeps_up(terms, block), CW_FORMULA_NONE);
    return formula_scatter_binomial(terms, terms->ranks, block) + (terms->ranks - 1) * hop(terms, block);
}

static double multicast(struct terms *terms)
{
    return hop(terms, terms->bytes);
}

/* ---- Table ---- */

#define TABLE_1 "Barchet-Estefanel and Mounie 2004, Table 1"
#define DERIVED "derived from the algorithm"
#define EVEN    "one port, segments of one size, os(s) + or(s) <= g(s)"
#define BCAST(algorithm, text, source, kind, condition, factor)                     \
    {                                                                               \
        CW_BCAST, algorithm, text, source, CW_FORMULA_##kind, (condition), (factor) \
    }

static const struct formula_row rows[] = {
    {BCAST("flat", "(P-1) g(m) + L", TABLE_1, EXACT, NULL, 0), flat, 0},
    {BCAST("flat-rendezvous", "(P-1) g(m) + 2 g(0) + 4 L", DERIVED "; Table 1 and the acknowledgement", EXACT,
           "one port, no overheads, (P-1) g(0) <= g(0) + L", 0),
     flat_rendezvous, FORMULA_HANDSHAKES},
    {BCAST("segmented-flat", "(P-1) ((k-1) g(s) + g(last s)) + L", TABLE_1 ", with a last segment of its own size",
           EXACT, "one port", 0),
     segmented_flat, FORMULA_SEGMENTED},
    {BCAST("chain", "(P-1) (g(m) + L)", TABLE_1, EXACT, NULL, 0), chain, 0},
    {BCAST("chain-rendezvous", "(P-1) (g(m) + L) + 2 g(0) + 3 L", DERIVED ": all handshakes but the first are hidden",
           EXACT, "os + or <= g + L", 0),
     chain_rendezvous, FORMULA_HANDSHAKES},
    {BCAST("segmented-chain", "(P-2) (g(s) + L) + (k-1) g(s) + g(last s) + L",
           TABLE_1 ", with a last segment of its own size", EXACT, "one port, os(s) + or(s) <= g(s)", 0),
     segmented_chain, FORMULA_SEGMENTED},
    {BCAST("binary", "longest way down a heap: 1 or 2 g(m), + L, per level", DERIVED, EXACT, NULL, 0), binary, 0},
    {BCAST("segmented-binary", "(k-1) 2 g(s) + binary(s)", DERIVED, EXACT, EVEN, 0), segmented_binary,
     FORMULA_SEGMENTED},
    {BCAST("d-ary", "(k-1) d g(s) + longest way down a heap: 1 to d g(s), + L, per level", DERIVED, EXACT, EVEN, 0),
     segmented_dary, FORMULA_SEGMENTED},
    {BCAST("binomial", "ceil(log2 P) g(m) + floor(log2 P) L", DERIVED "; Table 1 for powers of two", EXACT, NULL, 0),
     binomial, 0},
    {BCAST("binomial-rendezvous", "ceil(log2 P) g(m) + floor(log2 P) L + 2 g(0) + 3 L",
           DERIVED ": all handshakes but the first are hidden", EXACT,
           "one port, no overheads, log2(P) g(0) <= g(0) + L", 0),
     binomial_rendezvous, FORMULA_HANDSHAKES},
    {BCAST("segmented-binomial", "(k-1) ceil(log2 P) g(s) + binomial(s)", DERIVED "; Table 1 for powers of two", EXACT,
           EVEN, 0),
     segmented_binomial, FORMULA_SEGMENTED},
    {BCAST("van-de-geijn", "scatter binomial(m/P) + (P-1) (g(m/P) + L)", DERIVED, FITTED,
           "one port, os(m/P) + or(m/P) <= g(m/P)", 2.5),
     van_de_geijn, 0},
    {BCAST("multicast", "g(m) + L", DERIVED, EXACT, NULL, 0), multicast, 0},
};

const struct formula_family formulas_bcast = {rows, sizeof(rows) / sizeof(rows[0])};
