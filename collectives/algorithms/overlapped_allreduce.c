/* All-reduce across clusters with all stages at the same time: reductions, crossing and the way back in one pipeline of
 * segments.
 *
 * The vector is cut into parts. Up the chain of a part, the ranks of a cluster combine their operands, segment by
 * segment, until the part's head has its cluster's sum. Heads exchange these, combine them in one order of clusters
 * everywhere, so that all ranks get the same result to the last bit, and pass the result down the chain. Every rank
 * sends the vector twice and receives it twice, and heads also send and receive their part across. So the time tends to
 * 2M/B + M/nB + L, the cost of three stages in turn (Matsuda et al. 2006, Table 1). But nothing waits for the end of a
 * stage, nor for the handshake of the next one.
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
    uint32_t own;            /* cluster */
    uint32_t hub;            /* of clusters; CW_NO_OP: all links are direct */
};

/* The peers of the own cluster's head: other clusters' heads. Where all links are direct, it exchanges sums with all of
 * them. Else it gets the sums of those for which it is the way to the hub, and gives them the result. */
struct heads {
    uint32_t clusters[CW_CLUSTERS_MAX]; /* from which sums come here, rising */
    uint32_t count;
    uint32_t above; /* the cluster that gets the sum, and gives the result; CW_NO_OP: the result is made here */
};

static struct cw_chain chain_of(const struct part *part, uint32_t cluster)
{
    struct cw_team team = cw_team_cluster(part->emit, cluster);
    return cw_chain_make(&team, 0, part->number, part->parts);
}

static uint32_t head_rank(const struct part *part, uint32_t cluster)
{
    struct cw_chain chain = chain_of(part, cluster);
    return cw_chain_rank(&chain, 0);
}

/* Whether the sum of cluster `from` comes to cluster `at`. */
static bool arrives_from(const struct part *part, uint32_t at, uint32_t from)
{
    bool is_direct = part->hub == CW_NO_OP;
    return from != at &&
           (is_direct || (from != part->hub && cw_cluster_parent(part->emit->problem, part->hub, from) == at));
}

static struct heads heads_of(const struct part *part)
{
    const struct cw_problem *problem = part->emit->problem;
    bool has_above = part->hub != CW_NO_OP && part->own != part->hub;
    struct heads heads = {.above = has_above ? cw_cluster_parent(problem, part->hub, part->own) : CW_NO_OP};
    for (uint32_t cluster = 0; cluster < problem->cluster_count; cluster++) {
        if (arrives_from(part, part->own, cluster)) {
            heads.clusters[heads.count++] = cluster;
        }
    }
    return heads;
}

/* Whether the sum of cluster `from` is the first one that comes to cluster `at`, where the result is made. */
static bool is_first_in(const struct part *part, uint32_t at, uint32_t from)
{
    uint32_t first = 0;
    while (!arrives_from(part, at, first)) {
        first++;
    }
    return first == from && (part->hub == CW_NO_OP || at == part->hub);
}

/* Where the head of cluster `at` takes the sum of cluster `from`. The first one lies where the result is wanted, and
 * the others are added to it. */
static struct cw_place sum_place(const struct part *part, uint32_t at, uint32_t from)
{
    return is_first_in(part, at, from) ? part->result
                                       : cw_place_add(part->slots, (from < at ? from : from - 1) * part->slot_bytes);
}

/* Combines `sum` of the own cluster, which others may still have to get, with the received ones, in the order of
 * clusters. Returns the place of the result. */
static struct cw_place combine(const struct part *part, const struct heads *heads, struct cw_place sum)
{
    if (heads->count == 0) {
        return sum;
    }
    struct cw_place all = sum_place(part, part->own, heads->clusters[0]);
    bool is_added = part->own < heads->clusters[0];
    if (is_added) {
        cw_emit_segment_reduce(part->emit, all, sum, true);
    }
    for (uint32_t i = 1; i < heads->count; i++) {
        uint32_t cluster = heads->clusters[i];
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

static void receive_open(const struct part *part, uint32_t rank, struct cw_place to)
{
    cw_emit_receive_open(part->emit, rank, to, part->bytes, part->segment_bytes);
}

static uint32_t send_open(const struct part *part, uint32_t rank)
{
    return cw_emit_send_open(part->emit, rank, part->bytes, part->segment_bytes);
}

static void head_emit(const struct part *part, uint32_t child)
{
    struct cw_emit *emit = part->emit;
    struct heads heads = heads_of(part);
    bool has_above = heads.above != CW_NO_OP;
    uint32_t above = has_above ? head_rank(part, heads.above) : CW_NO_OP;
    uint32_t ranks[CW_CLUSTERS_MAX], opened[CW_CLUSTERS_MAX], up = CW_NO_OP, down = CW_NO_OP;
    if (child != CW_NO_OP) {
        receive_open(part, child, part->landing);
    }
    for (uint32_t i = 0; i < heads.count; i++) {
        ranks[i] = head_rank(part, heads.clusters[i]);
        receive_open(part, ranks[i], sum_place(part, part->own, heads.clusters[i]));
    }
    if (has_above) {
        receive_open(part, above, part->result);
        up = send_open(part, above);
    }
    for (uint32_t i = 0; i < heads.count; i++) {
        opened[i] = send_open(part, ranks[i]);
    }
    if (child != CW_NO_OP) {
        down = send_open(part, child);
    }
    cw_emit_repeat(emit, part->bytes, part->segment_bytes);
    struct cw_place sum = climb(part, child);
    for (uint32_t i = 0; i < heads.count && part->hub == CW_NO_OP; i++) {
        cw_emit_segment_send(emit, opened[i], ranks[i], sum, sum_place(part, heads.clusters[i], part->own));
    }
    for (uint32_t i = 0; i < heads.count; i++) {
        cw_emit_segment_receive(emit, ranks[i], sum_place(part, part->own, heads.clusters[i]));
    }
    sum = combine(part, &heads, sum);
    if (has_above) {
        cw_emit_segment_send(emit, up, above, sum, sum_place(part, heads.above, part->own));
        cw_emit_segment_receive(emit, above, part->result);
    }
    for (uint32_t i = 0; i < heads.count && part->hub != CW_NO_OP; i++) {
        cw_emit_segment_send(emit, opened[i], ranks[i], part->result, part->result);
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
        receive_open(part, child, part->landing);
    }
    receive_open(part, parent, part->result);
    uint32_t up = send_open(part, parent);
    uint32_t down = child == CW_NO_OP ? CW_NO_OP : send_open(part, child);
    cw_emit_repeat(emit, part->bytes, part->segment_bytes);
    struct cw_place sum = climb(part, child);
    cw_emit_segment_send(emit, up, parent, sum, part->landing);
    cw_emit_segment_receive(emit, parent, part->result);
    if (child != CW_NO_OP) {
        cw_emit_segment_send(emit, down, child, part->result, part->result);
    }
    cw_emit_repeat_end(emit);
}

static void part_emit(const struct part *part)
{
    struct cw_chain chain = chain_of(part, part->own);
    uint32_t me = cw_chain_me(&chain);
    uint32_t child = me + 1 < chain.count ? cw_chain_rank(&chain, me + 1) : CW_NO_OP;
    if (me == 0) {
        head_emit(part, child);
    } else {
        node_emit(part, cw_chain_rank(&chain, me - 1), child);
    }
}

static void build_overlapped(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    const struct cw_problem *problem = emit->problem;
    uint64_t bytes = problem->count * problem->element_bytes;
    uint32_t largest = cw_problem_cluster_largest(problem);
    uint32_t hub = problem->cluster_via == NULL ? CW_NO_OP : cw_cluster_hub(problem);
    uint32_t senders = emit->parameters.senders;
    uint32_t parts = senders > 0 && senders < largest ? senders : largest;
    uint32_t together = cw_chain_parts_max(cw_problem_cluster_smallest(problem), parts); /* parts that have one head */
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
