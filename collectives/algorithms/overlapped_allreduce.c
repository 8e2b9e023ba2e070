/* All-reduce across clusters with all stages at the same time: reductions, crossing and the way back in one pipeline of
 * segments.
 *
 * The vector is cut into parts. Up the chain of a part, the ranks of a cluster combine their operands, segment by
 * segment, until the part's head has its cluster's sum. Heads exchange these, combine them in one order of clusters
 * everywhere, so that all ranks get the same result to the last bit, and pass the result down the chain. Every rank
 * sends the vector twice and receives it twice, and heads send and receive their part once more: the time tends to
 * 2M/B + M/nB + L, as that of three stages one after the other (Matsuda et al. 2006, Table 1), but nothing waits for the
 * end of a stage, nor for the handshake of the next one.
 *
 * Where clusters reach each other through a third one, sums climb the tree of clusters to the hub, and the result comes
 * down. */
#include "collectives/algorithms/chains.h"
#include "collectives/algorithms/crossing.h"
#include "collectives/algorithms/registry.h"

/* A part of the vector, as this rank sees it. */
struct part {
    struct cw_emit *emit;
    uint32_t number;
    uint32_t parts;
    uint64_t bytes;
    uint64_t segment_bytes;
    struct cw_place operand; /* this rank's */
    struct cw_place result;
    struct cw_place landing; /* sums of the nodes behind, at all nodes */
    struct cw_place slots;   /* of heads: sums of other clusters */
    uint64_t slot_bytes;     /* from one of the slots to the next */
    struct cw_chain chain;   /* in the own cluster */
    uint32_t own;            /* cluster */
    uint32_t hub;            /* of clusters; CW_NO_OP: all links are direct */
};

/* Whom a head has to do with: heads of other clusters. */
struct heads {
    uint32_t ranks[CW_CLUSTERS_MAX];       /* by cluster */
    uint32_t in_clusters[CW_CLUSTERS_MAX]; /* whose sums come here, rising */
    uint32_t in_count;
    uint32_t out_clusters[CW_CLUSTERS_MAX]; /* where ours goes */
    uint32_t out_count;
    uint32_t above;                  /* the cluster that the result comes from; CW_NO_OP: it is made here */
    uint32_t below[CW_CLUSTERS_MAX]; /* where it goes from here */
    uint32_t below_count;
};

static struct cw_chain chain_of(const struct part *part, uint32_t cluster)
{
    struct cw_team team = cw_team_cluster(part->emit, cluster);
    return cw_chain_make(&team, 0, part->number, part->parts);
}

/* For the head of the own cluster. Where all links are direct, it gets the sums of all others; else of those for which it
 * is the way to the hub. */
static struct heads heads_of(const struct part *part)
{
    uint32_t at = part->own;
    const struct cw_problem *problem = part->emit->problem;
    uint32_t hub = part->hub;
    bool is_direct = hub == CW_NO_OP;
    struct heads heads = {.above = CW_NO_OP};
    for (uint32_t cluster = 0; cluster < problem->cluster_count; cluster++) {
        struct cw_chain chain = chain_of(part, cluster);
        heads.ranks[cluster] = cw_chain_rank(&chain, 0);
        bool is_below = !is_direct && cluster != hub && cw_cluster_parent(problem, hub, cluster) == at;
        bool is_above = !is_direct && at != hub && cw_cluster_parent(problem, hub, at) == cluster;
        if (cluster != at && (is_direct || is_below)) {
            heads.in_clusters[heads.in_count++] = cluster;
        }
        if (cluster != at && (is_direct || is_above)) {
            heads.out_clusters[heads.out_count++] = cluster;
        }
        if (cluster != at && is_below) {
            heads.below[heads.below_count++] = cluster;
        }
        if (cluster != at && is_above) {
            heads.above = cluster;
        }
    }
    return heads;
}

/* Whether the sum of cluster `from` is the first one that comes to cluster `at`, where the result is made. */
static bool is_first_in(const struct part *part, uint32_t at, uint32_t from)
{
    if (part->hub == CW_NO_OP) {
        return from == (at == 0 ? 1u : 0u);
    }
    for (uint32_t cluster = 0; cluster < from; cluster++) {
        if (cluster != part->hub && cw_cluster_parent(part->emit->problem, part->hub, cluster) == part->hub) {
            return false;
        }
    }
    return at == part->hub;
}

/* Where the head of cluster `at` takes the sum of cluster `from`: the first one lies where the result is wanted, and the
 * others are added to it. */
static struct cw_place sum_place(const struct part *part, uint32_t at, uint32_t from)
{
    return is_first_in(part, at, from) ? part->result
                                       : cw_place_add(part->slots, (from < at ? from : from - 1) * part->slot_bytes);
}

/* Combines `sum` of the own cluster, which others may still have to get, with those that have come, in the order of
 * clusters. Returns where that is. */
static struct cw_place combine(const struct part *part, const struct heads *heads, struct cw_place sum)
{
    if (heads->in_count == 0) {
        return sum;
    }
    struct cw_place all = sum_place(part, part->own, heads->in_clusters[0]);
    bool is_added = part->own < heads->in_clusters[0];
    if (is_added) {
        cw_emit_segment_reduce(part->emit, all, sum, true);
    }
    for (uint32_t i = 1; i < heads->in_count; i++) {
        uint32_t cluster = heads->in_clusters[i];
        if (!is_added && part->own < cluster) {
            cw_emit_segment_reduce(part->emit, all, sum, false);
            is_added = true;
        }
        cw_emit_segment_reduce(part->emit, all, sum_place(part, part->own, cluster), false);
    }
    if (!is_added) {
        cw_emit_segment_reduce(part->emit, all, sum, false);
    }
    return all;
}

/* Gets the sum of the nodes behind, and adds the own operand. Returns where that is. */
static struct cw_place climb(const struct part *part, uint32_t child)
{
    if (child == CW_NO_OP) {
        return part->operand;
    }
    cw_emit_segment_receive(part->emit, child, part->landing);
    cw_emit_segment_reduce(part->emit, part->landing, part->operand, false);
    return part->landing;
}

static void head_emit(const struct part *part, uint32_t child)
{
    struct cw_emit *emit = part->emit;
    struct heads heads = heads_of(part);
    uint32_t out[CW_CLUSTERS_MAX], below[CW_CLUSTERS_MAX], down = CW_NO_OP;
    if (child != CW_NO_OP) {
        cw_emit_receive_open(emit, child, part->landing, part->bytes, part->segment_bytes);
    }
    for (uint32_t i = 0; i < heads.in_count; i++) {
        uint32_t from = heads.in_clusters[i];
        cw_emit_receive_open(emit, heads.ranks[from], sum_place(part, part->own, from), part->bytes,
                             part->segment_bytes);
    }
    if (heads.above != CW_NO_OP) {
        cw_emit_receive_open(emit, heads.ranks[heads.above], part->result, part->bytes, part->segment_bytes);
    }
    for (uint32_t i = 0; i < heads.out_count; i++) {
        out[i] = cw_emit_send_open(emit, heads.ranks[heads.out_clusters[i]], part->bytes, part->segment_bytes);
    }
    for (uint32_t i = 0; i < heads.below_count; i++) {
        below[i] = cw_emit_send_open(emit, heads.ranks[heads.below[i]], part->bytes, part->segment_bytes);
    }
    if (child != CW_NO_OP) {
        down = cw_emit_send_open(emit, child, part->bytes, part->segment_bytes);
    }
    cw_emit_repeat(emit, part->bytes, part->segment_bytes);
    struct cw_place sum = climb(part, child);
    for (uint32_t i = 0; i < heads.in_count; i++) {
        uint32_t from = heads.in_clusters[i];
        cw_emit_segment_receive(emit, heads.ranks[from], sum_place(part, part->own, from));
    }
    if (heads.above != CW_NO_OP) {
        sum = combine(part, &heads, sum);
    }
    for (uint32_t i = 0; i < heads.out_count; i++) {
        uint32_t to = heads.out_clusters[i];
        cw_emit_segment_send(emit, out[i], heads.ranks[to], sum, sum_place(part, to, part->own));
    }
    if (heads.above != CW_NO_OP) {
        cw_emit_segment_receive(emit, heads.ranks[heads.above], part->result);
    } else {
        combine(part, &heads, sum);
    }
    for (uint32_t i = 0; i < heads.below_count; i++) {
        cw_emit_segment_send(emit, below[i], heads.ranks[heads.below[i]], part->result, part->result);
    }
    if (child != CW_NO_OP) {
        cw_emit_segment_send(emit, down, child, part->result, part->result);
    }
    cw_emit_repeat_end(emit);
}

static void node_emit(const struct part *part, uint32_t parent, uint32_t child)
{
    struct cw_emit *emit = part->emit;
    if (child != CW_NO_OP) {
        cw_emit_receive_open(emit, child, part->landing, part->bytes, part->segment_bytes);
    }
    cw_emit_receive_open(emit, parent, part->result, part->bytes, part->segment_bytes);
    uint32_t up = cw_emit_send_open(emit, parent, part->bytes, part->segment_bytes);
    uint32_t down = child == CW_NO_OP ? CW_NO_OP : cw_emit_send_open(emit, child, part->bytes, part->segment_bytes);
    cw_emit_repeat(emit, part->bytes, part->segment_bytes);
    struct cw_place sum = climb(part, child);
    cw_emit_segment_send(emit, up, parent, sum, part->landing);
    cw_emit_segment_receive(emit, parent, part->result);
    if (child != CW_NO_OP) {
        cw_emit_segment_send(emit, down, child, part->result, part->result);
    }
    cw_emit_repeat_end(emit);
}

static void part_emit(struct part *part)
{
    part->chain = chain_of(part, part->own);
    uint32_t me = cw_chain_me(&part->chain);
    uint32_t child = me + 1 < part->chain.count ? cw_chain_rank(&part->chain, me + 1) : CW_NO_OP;
    if (me == 0) {
        head_emit(part, child);
    } else {
        node_emit(part, cw_chain_rank(&part->chain, me - 1), child);
    }
}

static void build_overlapped(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    uint64_t bytes = problem->count * problem->element_bytes;
    uint32_t largest = 0, smallest = problem->ranks;
    for (uint32_t cluster = 0; cluster < problem->cluster_count; cluster++) {
        uint32_t size = problem->cluster_first[cluster + 1] - problem->cluster_first[cluster];
        largest = size > largest ? size : largest;
        smallest = size < smallest ? size : smallest;
    }
    uint32_t hub = problem->cluster_via == NULL ? CW_NO_OP : cw_cluster_hub(problem);
    uint32_t senders = emit->parameters.senders;
    uint32_t parts = senders > 0 && senders < largest ? senders : largest;
    uint32_t together = cw_chain_parts_max(smallest, parts); /* parts that have one head */
    struct cw_blocks blocks = cw_blocks_even(emit, bytes, parts);
    uint64_t part_bytes = cw_blocks_bytes(&blocks, 0); /* as large as any */
    struct cw_place landing = cw_emit_scratch(emit, bytes);
    struct cw_place slots = cw_emit_scratch(emit, part_bytes * together * (problem->cluster_count - 1));
    emit->schedule.promise.wan_bytes = bytes;
    emit->schedule.promise.wan_senders = parts;
    for (uint32_t number = 0; number < parts && emit->status == 0; number++) {
        uint64_t offset = cw_blocks_offset(&blocks, number);
        struct part part = {
            .emit = emit,
            .number = number,
            .parts = parts,
            .bytes = cw_blocks_bytes(&blocks, number),
            .operand = cw_place(CW_BUFFER_SEND, offset),
            .result = cw_place(CW_BUFFER_RECEIVE, offset),
            .landing = cw_place_add(landing, offset),
            .slots = cw_place_add(slots, number % together * part_bytes),
            .slot_bytes = part_bytes * together,
            .own = cw_problem_cluster(problem, emit->rank),
            .hub = hub,
        };
        part.segment_bytes = cw_emit_segment_bytes(emit, part.bytes);
        if (part.bytes > 0) {
            part_emit(&part);
        }
    }
}

const struct cw_recipe cw_recipes_overlapped_allreduce[] = {
    {{CW_ALLREDUCE, "clusters-overlapped", CW_TAKES_SENDERS | CW_TAKES_SEGMENT,
      CW_NEEDS_CLUSTERS | CW_NEEDS_COMMUTATIVE, "reductions, crossing and the way back in one pipeline of segments",
      "after Matsuda, Kudoh, Kodama, Takano and Ishikawa 2006, and a chain per part"},
     build_overlapped,
     0,
     NULL},
};
const uint32_t cw_recipes_overlapped_allreduce_count =
    sizeof(cw_recipes_overlapped_allreduce) / sizeof(cw_recipes_overlapped_allreduce[0]);
