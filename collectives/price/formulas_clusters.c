/* Broadcast and all-reduce across clusters: Matsuda et al. 2006, Table 1, and the bound for overlapping. L is the
 * latency between clusters, M/B the time of the whole message through a node's port, n the number of senders. */
#include "collectives/price/formulas_private.h"

static const struct cw_plogp *wan(const struct terms *terms)
{
    return &terms->network->paths[CW_PATH_WAN];
}

/* The paper's model knows two clusters and long messages: latencies and overheads inside them are not in it. */
static void needs_long_messages(struct terms *terms)
{
    uint32_t other = terms->problem->ranks - terms->problem->clusters.first[1];
    uint32_t size = terms->problem->clusters.first[1];
    uint32_t largest = size > other ? size : other;
    double inside = 4.0 * largest * (latency(terms) + gap(terms, 0));
    bool holds = terms->problem->cluster_count == 2 && largest >= 4 && terms->ports == 1 &&
                 inside <= gap(terms, terms->bytes) / 4;
    unless(terms, holds, CW_FORMULA_NONE);
}

/* Number of senders: limited by the parameter, the size of the smaller cluster, and the rate of the link. */
static double senders(const struct terms *terms)
{
    uint32_t most = cw_problem_cluster_smallest(terms->problem);
    most = terms->senders > 0 && terms->senders < most ? terms->senders : most;
    double rate = (double)terms->bytes / cw_plogp_gap(wan(terms), terms->bytes);
    double carried = terms->network->wan_bytes_per_ns > 0 ? terms->network->wan_bytes_per_ns / rate : most;
    carried = carried < 1 ? 1 : carried;
    return carried < most ? carried : most;
}

/* To each of the other clusters; a sender for several of them sends one after the other. */
static double across(const struct terms *terms, double count)
{
    uint32_t others = terms->problem->cluster_count - 1;
    return wan(terms)->latency_ns + others * cw_plogp_gap(wan(terms), terms->bytes) / count;
}

static double bcast_farfirst(struct terms *terms)
{
    needs_long_messages(terms);
    return across(terms, 1) + 2 * gap(terms, terms->bytes);
}

static double bcast_van_de_geijn(struct terms *terms)
{
    needs_long_messages(terms);
    return across(terms, senders(terms)) + 2 * gap(terms, terms->bytes);
}

/* The root has to send it once, and the last byte has to cross. */
static double bcast_overlapped(struct terms *terms)
{
    bool one = terms->network->ports == 1;
    double whole = gap(terms, terms->bytes) - gap(terms, 0);
    double crossing = cw_plogp_gap(wan(terms), terms->bytes) - cw_plogp_gap(wan(terms), 0);
    unless(terms, one, CW_FORMULA_NONE);
    return (whole < crossing ? whole : crossing) + wan(terms)->latency_ns;
}

/* Data that comes back across L is passed on n - 1 times in a cluster of n ranks, by chains that share this evenly. */
static double allreduce_overlapped(struct terms *terms)
{
    bool one = terms->network->ports == 1;
    uint32_t largest = cw_problem_cluster_largest(terms->problem);
    unless(terms, one, CW_FORMULA_NONE);
    return (largest - 1.0) / largest * (gap(terms, terms->bytes) - gap(terms, 0)) + wan(terms)->latency_ns;
}

static double allreduce_two_tier(struct terms *terms)
{
    needs_long_messages(terms);
    return across(terms, 1) + 4 * gap(terms, terms->bytes) + reduce_time(terms, 2 * terms->bytes);
}

static double allreduce_rabenseifner(struct terms *terms)
{
    needs_long_messages(terms);
    return across(terms, senders(terms)) + 2 * gap(terms, terms->bytes) + reduce_time(terms, terms->bytes);
}

/* ---- Table ---- */

#define TABLE_1 "Matsuda et al. 2006, Table 1"
#define LONG    "two clusters of at least 4, one port, M/B far above latencies inside clusters"
#define ROW(collective, algorithm, text, source, kind, condition, factor)             \
    {                                                                                 \
        collective, algorithm, text, source, CW_FORMULA_##kind, (condition), (factor) \
    }

static const struct formula_row rows[] = {
    {ROW(CW_BCAST, "clusters-farfirst", "L + M/B + (M/B + M/B)", TABLE_1, FITTED, LONG, 1.5), bcast_farfirst,
     FORMULA_CLUSTERS},
    {ROW(CW_BCAST, "clusters-van-de-geijn", "L + M/(n B) + M/B + M/B", TABLE_1, FITTED, LONG, 1.5), bcast_van_de_geijn,
     FORMULA_CLUSTERS},
    {ROW(CW_BCAST, "clusters-heads", "L + M/(n B) + M/B + M/B", TABLE_1, FITTED, LONG, 1.5), bcast_van_de_geijn,
     FORMULA_CLUSTERS},
    {ROW(CW_BCAST, "clusters-chained", "L + M/(n B) + M/B + M/B", TABLE_1, FITTED, LONG, 1.5), bcast_van_de_geijn,
     FORMULA_CLUSTERS},
    {ROW(CW_BCAST, "clusters-overlapped", "M/B + L", "the root sends every byte, and the last one crosses", LOWER_BOUND,
         "one port", 0),
     bcast_overlapped, FORMULA_CLUSTERS | FORMULA_HANDSHAKES},
    {ROW(CW_ALLREDUCE, "clusters-two-tier", "L + M/B + (M/B + M/B) + (M/B + M/B)", TABLE_1 ", and the reductions",
         FITTED, LONG, 1.5),
     allreduce_two_tier, FORMULA_CLUSTERS},
    {ROW(CW_ALLREDUCE, "clusters-rabenseifner", "L + M/(n B) + M/B + M/B", TABLE_1 ", and the reductions", FITTED, LONG,
         1.5),
     allreduce_rabenseifner, FORMULA_CLUSTERS},
    {ROW(CW_ALLREDUCE, "clusters-chained", "L + M/(n B) + M/B + M/B", TABLE_1 ", and the reductions", FITTED, LONG,
         1.5),
     allreduce_rabenseifner, FORMULA_CLUSTERS},
    {ROW(CW_ALLREDUCE, "clusters-overlapped", "(n-1)/n M/B + L",
         "of n ranks of a cluster, each passes on all parts of the result but one", LOWER_BOUND, "one port", 0),
     allreduce_overlapped, FORMULA_CLUSTERS | FORMULA_HANDSHAKES},
};

const struct formula_family formulas_clusters = {rows, sizeof(rows) / sizeof(rows[0])};
