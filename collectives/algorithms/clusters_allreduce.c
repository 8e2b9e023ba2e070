/* All-reduce across clusters (Matsuda, Kudoh, Kodama, Takano and Ishikawa 2006, 2.3, 3.2): partial results in each
 * cluster, a crossing in both directions, the result spread in each cluster.
 *
 * Where all links are direct every cluster gets every other one's partial results at once. Where clusters reach each
 * other through a third one, that one's links would carry them several times: then they climb the tree of clusters to
 * the hub, and the result comes down. Partial results are combined in one order of clusters everywhere, so that all
 * ranks get the same result to the last bit. */
#include "collectives/algorithms/crossing.h"
#include "collectives/algorithms/reduction.h"
#include "collectives/algorithms/registry.h"

enum {
    FORWARDED,
    TWO_TIER, /* one holder in each cluster instead of all */
    HEADS,
    CHAINED,
};

enum {
    PHASE_REDUCE,
    PHASE_CROSSING,
    PHASE_RESULT,
    PHASE_INSIDE,
};

/* This rank's part in one all-reduce. */
struct clusters {
    struct cw_emit *emit;
    uint32_t variant;
    uint64_t bytes;
    uint32_t own; /* cluster */
    struct cw_holders holders;
    struct cw_place partial; /* where the vector with this rank's part of its cluster's result begins */
    struct cw_place relay;
    struct cw_place landing; /* others' partial results, one slot for each other cluster */
    uint64_t slot_bytes;
    uint64_t part_offset; /* the part this rank holds */
    uint64_t part_bytes;
};

static struct cw_holders holders_of(const struct clusters *clusters, uint32_t cluster)
{
    struct cw_team team = cw_team_cluster(clusters->emit, cluster);
    uint32_t senders = clusters->emit->parameters.senders, stride = 1, all = cw_span_all(team.size);
    if (clusters->variant == TWO_TIER) {
        stride = all;
    } else if (clusters->variant == HEADS && senders > 0 && senders < all) {
        stride = all >> cw_log2_floor(senders);
    }
    return cw_holders_make(clusters->emit, &team, stride, clusters->bytes);
}

static struct cw_crossing crossing_from(const struct clusters *clusters, uint32_t cluster, struct cw_place source)
{
    return (struct cw_crossing){
        .from = holders_of(clusters, cluster),
        .source = source,
        .relay = clusters->relay,
        .senders =
            clusters->variant == FORWARDED || clusters->variant == CHAINED ? clusters->emit->parameters.senders : 0,
        .chained = clusters->variant == CHAINED,
    };
}

/* Where ranks of cluster `at` take what comes from another one. */
static struct cw_place slot(const struct clusters *clusters, uint32_t at, uint32_t from)
{
    return cw_place_add(clusters->landing, (from < at ? from : from - 1) * clusters->slot_bytes);
}

/* Scratch lies at the same offsets at all ranks: slots as large as the largest part of any cluster. */
static void scratch_allocate(struct clusters *clusters)
{
    struct cw_emit *emit = clusters->emit;
    uint32_t count = emit->problem->cluster_count;
    for (uint32_t cluster = 0; cluster < count; cluster++) {
        struct cw_holders holders = holders_of(clusters, cluster);
        uint64_t first = cw_holders_offset(&holders, 1); /* the first part is as large as any */
        clusters->slot_bytes = first > clusters->slot_bytes ? first : clusters->slot_bytes;
    }
    clusters->landing = cw_emit_scratch(emit, clusters->slot_bytes * (count - 1));
    bool forwards = clusters->variant == FORWARDED && emit->parameters.senders > 0;
    clusters->relay = cw_emit_scratch(emit, forwards ? clusters->bytes : 0);
    clusters->partial = cw_emit_scratch(emit, clusters->bytes);
    uint32_t me = cw_holders_me(&clusters->holders);
    if (me < clusters->holders.count) {
        clusters->part_offset = cw_holders_offset(&clusters->holders, me);
        clusters->part_bytes = cw_holders_offset(&clusters->holders, me + 1) - clusters->part_offset;
    }
}

/* Combines the own partial result with those of the clusters for which `with` holds, in the order of clusters; where
 * the result is. */
static struct cw_place combine(const struct clusters *clusters, const bool *with)
{
    struct cw_place result = {0};
    bool first = true;
    for (uint32_t cluster = 0; cluster < clusters->emit->problem->cluster_count; cluster++) {
        if (cluster != clusters->own && !with[cluster]) {
            continue;
        }
        struct cw_place operand = cluster == clusters->own ? cw_place_add(clusters->partial, clusters->part_offset)
                                                           : slot(clusters, clusters->own, cluster);
        if (first) {
            result = operand;
        } else {
            cw_emit_reduce(clusters->emit, result, operand, clusters->part_bytes, false);
        }
        first = false;
    }
    return result;
}

static void exchange_direct(const struct clusters *clusters, bool *with)
{
    struct cw_emit *emit = clusters->emit;
    uint32_t count = emit->problem->cluster_count;
    struct cw_crossing out = crossing_from(clusters, clusters->own, clusters->partial);
    cw_emit_phase(emit, PHASE_CROSSING);
    cw_crossing_begin(emit, &out);
    for (uint32_t i = 1; i < count; i++) {
        uint32_t to = (clusters->own + i) % count;
        uint32_t from = (clusters->own + count - i) % count;
        struct cw_holders there = holders_of(clusters, to);
        struct cw_crossing in = crossing_from(clusters, from, clusters->partial);
        cw_crossing_send(emit, &out, &there, slot(clusters, to, clusters->own), true);
        cw_crossing_receive(emit, &in, &clusters->holders, slot(clusters, clusters->own, from), true);
        with[from] = true;
    }
    cw_crossing_end(emit, &out);
    struct cw_place result = combine(clusters, with);
    cw_emit_copy(emit, cw_place(CW_BUFFER_RECEIVE, clusters->part_offset), result, clusters->part_bytes);
}

/* The sums of a cluster and those behind it go to its parent. */
static void climb(const struct clusters *clusters, uint32_t hub, bool *with)
{
    struct cw_emit *emit = clusters->emit;
    const struct cw_problem *problem = emit->problem;
    cw_emit_phase(emit, PHASE_CROSSING);
    for (uint32_t cluster = 0; cluster < problem->cluster_count; cluster++) {
        if (cluster != hub && cluster != clusters->own && cw_cluster_parent(problem, hub, cluster) == clusters->own) {
            struct cw_crossing in = crossing_from(clusters, cluster, clusters->partial);
            cw_crossing_receive(emit, &in, &clusters->holders, slot(clusters, clusters->own, cluster), true);
            with[cluster] = true;
        }
    }
    struct cw_place result = combine(clusters, with);
    if (clusters->own == hub) {
        cw_emit_copy(emit, cw_place(CW_BUFFER_RECEIVE, clusters->part_offset), result, clusters->part_bytes);
        return;
    }
    /* a crossing starts from where the vector would begin: only slots do not lie there */
    if (result.offset < clusters->partial.offset) {
        struct cw_place own = cw_place_add(clusters->partial, clusters->part_offset);
        cw_emit_copy(emit, own, result, clusters->part_bytes);
    }
    struct cw_crossing out = crossing_from(clusters, clusters->own, clusters->partial);
    uint32_t above = cw_cluster_parent(problem, hub, clusters->own);
    struct cw_holders parent = holders_of(clusters, above);
    cw_crossing_begin(emit, &out);
    cw_crossing_send(emit, &out, &parent, slot(clusters, above, clusters->own), true);
    cw_crossing_end(emit, &out);
}

static void descend(const struct clusters *clusters, uint32_t hub)
{
    struct cw_emit *emit = clusters->emit;
    const struct cw_problem *problem = emit->problem;
    struct cw_place target = cw_place(CW_BUFFER_RECEIVE, 0);
    cw_emit_phase(emit, PHASE_RESULT);
    if (clusters->own != hub) {
        struct cw_crossing in = crossing_from(clusters, cw_cluster_parent(problem, hub, clusters->own), target);
        cw_crossing_receive(emit, &in, &clusters->holders, target, false);
    }
    struct cw_crossing out = crossing_from(clusters, clusters->own, target);
    cw_crossing_begin(emit, &out);
    for (uint32_t cluster = 0; cluster < problem->cluster_count; cluster++) {
        if (cluster != hub && cluster != clusters->own && cw_cluster_parent(problem, hub, cluster) == clusters->own) {
            struct cw_holders there = holders_of(clusters, cluster);
            cw_crossing_send(emit, &out, &there, target, false);
        }
    }
    cw_crossing_end(emit, &out);
}

/* Holders get the blocks of the members between them and the next holder. */
static void merge(const struct clusters *clusters)
{
    const struct cw_holders *holders = &clusters->holders;
    uint32_t me = holders->team.me, head = me - me % holders->stride;
    uint32_t first = head == me ? me + 1 : me, end = head == me ? me + holders->stride : me + 1;
    for (uint32_t member = first; member < end && member < holders->team.size; member++) {
        struct cw_place block = cw_place_add(clusters->partial, cw_blocks_offset(&holders->blocks, member));
        uint64_t bytes = cw_blocks_bytes(&holders->blocks, member);
        if (head == me) {
            cw_emit_receive(clusters->emit, cw_team_rank(&holders->team, member), block, bytes);
        } else {
            cw_emit_send(clusters->emit, cw_team_rank(&holders->team, head), block, block, bytes);
        }
    }
}

static void inside_first(const struct clusters *clusters)
{
    const struct cw_team *team = &clusters->holders.team;
    struct cw_place own = cw_place(CW_BUFFER_SEND, 0);
    if (clusters->variant == TWO_TIER) {
        cw_reduce_rabenseifner(clusters->emit, team, 0, own, clusters->partial, clusters->bytes);
        return;
    }
    cw_reduce_ring(clusters->emit, team, &clusters->holders.blocks, own, clusters->partial);
    if (clusters->holders.stride > 1) {
        merge(clusters);
    }
}

static void inside_last(const struct clusters *clusters)
{
    const struct cw_team *team = &clusters->holders.team;
    struct cw_place receive = cw_place(CW_BUFFER_RECEIVE, 0);
    struct cw_bcast_part whole = {.team = *team, .root = 0, .from = receive, .to = receive, .bytes = clusters->bytes};
    struct cw_vector_part parts = {
        .team = *team,
        .blocks = clusters->holders.blocks,
        .root = 0,
        .span_max = clusters->holders.stride,
        .span_min = 1,
        .complete = team->size,
        .base = receive,
    };
    cw_emit_phase(clusters->emit, PHASE_INSIDE);
    if (clusters->variant == TWO_TIER) {
        cw_bcast_van_de_geijn(clusters->emit, &whole);
    } else {
        cw_scatter_in_place(clusters->emit, &parts);
        cw_allgather_ring(clusters->emit, &parts);
    }
}

static void build_clusters(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    const struct cw_problem *problem = emit->problem;
    struct clusters clusters = {
        .emit = emit,
        .variant = recipe->variant,
        .bytes = problem->count * problem->element_bytes,
        .own = cw_problem_cluster(problem, emit->rank),
    };
    bool with[CW_CLUSTERS_MAX] = {false};
    clusters.holders = holders_of(&clusters, clusters.own);
    emit->schedule.promise.wan_bytes = clusters.bytes;
    emit->schedule.promise.wan_senders = clusters.variant == TWO_TIER ? 1 : emit->parameters.senders;
    scratch_allocate(&clusters);
    cw_emit_in_turn(emit, true); /* no stage takes anything from the one before, on which others wait */
    inside_first(&clusters);
    cw_emit_fence_sent(emit);
    uint32_t hub = cw_cluster_hub(problem);
    if (problem->cluster_via == NULL) {
        exchange_direct(&clusters, with);
    } else {
        climb(&clusters, hub, with);
        descend(&clusters, hub);
    }
    cw_emit_fence_sent(emit);
    inside_last(&clusters);
    cw_emit_in_turn(emit, false);
}

#define PAPER "Matsuda, Kudoh, Kodama, Takano and Ishikawa 2006"
#define ALLREDUCE(name, takes, summary, section)                                                         \
    {                                                                                                    \
        CW_ALLREDUCE, name, takes, CW_NEEDS_CLUSTERS | CW_NEEDS_COMMUTATIVE, summary, PAPER ", " section \
    }

const struct cw_recipe cw_recipes_clusters_allreduce[] = {
    {ALLREDUCE("clusters-two-tier", 0, "reduce to one rank of each cluster, exchange among these, broadcast in each",
               "3.2"),
     build_clusters, TWO_TIER, NULL},
    {ALLREDUCE("clusters-rabenseifner", CW_TAKES_SENDERS,
               "reduce-scatter in each cluster, exchange by n senders that others hand their parts to, all-gather",
               "2.3"),
     build_clusters, FORWARDED, NULL},
    {ALLREDUCE("clusters-heads", CW_TAKES_SENDERS,
               "reduce-scatter in each cluster, parts merged at 2^i ranks, which exchange; then scatter, all-gather",
               "2.4"),
     build_clusters, HEADS, NULL},
    {ALLREDUCE("clusters-chained", CW_TAKES_SENDERS,
               "reduce-scatter in each cluster, exchange by n ranks, then by the next n, and so on; all-gather", "2.4"),
     build_clusters, CHAINED, NULL},
};
const uint32_t cw_recipes_clusters_allreduce_count =
    sizeof(cw_recipes_clusters_allreduce) / sizeof(cw_recipes_clusters_allreduce[0]);
