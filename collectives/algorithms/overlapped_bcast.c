/* Broadcast across clusters with all stages at the same time: scatter, crossing and all-gather in one pipeline of
 * segments.
 *
 * The message is cut into parts. Part j has a rank of its own in the root's cluster, its *head*: the root sends the
 * part to its head only, the head passes it down a chain of the cluster's other ranks, and across to a head in each
 * other cluster, which passes it down a chain there. So the root sends the message once, every rank receives it once
 * and passes on about as much, and no stage waits for the one before: the time tends to M/B + L. Scatter, crossing and
 * all-gather in sequence take 2M/B + M/nB + L (Matsuda et al. 2006, Table 1). */
#include "collectives/algorithms/chains.h"
#include "collectives/algorithms/crossing.h"
#include "collectives/algorithms/registry.h"

static struct cw_team team_of(const struct cw_emit *emit, uint32_t cluster)
{
    struct cw_team team = cw_team_cluster(emit, cluster);
    uint32_t root = emit->problem->root;
    return cw_problem_cluster(emit->problem, root) == cluster ? cw_team_turned(&team, cw_team_index(&team, root))
                                                              : team;
}

/* In the root's cluster, index 0 is the root. */
static struct cw_chain chain_of(const struct cw_emit *emit, uint32_t cluster, uint32_t part, uint32_t parts)
{
    struct cw_team team = team_of(emit, cluster);
    uint32_t skip = cw_problem_cluster(emit->problem, emit->problem->root) == cluster ? 1 : 0;
    return cw_chain_make(&team, skip, part, parts);
}

/* The rank that sends a part out of a cluster: its head there, or the root if it is alone. */
static uint32_t head_rank(const struct cw_emit *emit, const struct cw_chain *chain)
{
    return chain->count > 0 ? cw_chain_rank(chain, 0) : emit->problem->root;
}

struct pipeline {
    struct cw_emit *emit;
    uint32_t part;
    uint32_t parts;
    struct cw_place from; /* at this rank */
    struct cw_place to;   /* at others */
    uint64_t bytes;
    uint64_t segment_bytes;
    uint32_t peers[CW_CLUSTERS_MAX + 2]; /* the ranks to which this rank sends the part */
    uint32_t opened[CW_CLUSTERS_MAX + 2];
    uint32_t peer_count;
};

/* Fills in the ranks to which this rank sends the part; returns the one it receives it from, or CW_NO_OP at the
 * root. */
static uint32_t pipeline_peers(struct pipeline *pipeline)
{
    struct cw_emit *emit = pipeline->emit;
    const struct cw_problem *problem = emit->problem;
    uint32_t own = cw_problem_cluster(problem, emit->rank);
    uint32_t root = cw_problem_cluster(problem, problem->root);
    struct cw_chain chain = chain_of(emit, own, pipeline->part, pipeline->parts);
    uint32_t me = cw_chain_me(&chain);
    bool is_root = emit->rank == problem->root;
    bool crosses = is_root ? chain.count == 0 : me == 0;
    uint32_t source = CW_NO_OP;
    for (uint32_t i = 1; i < problem->cluster_count && crosses; i++) {
        uint32_t cluster = (root + i) % problem->cluster_count;
        if (cluster != root && cluster != own && cw_cluster_parent(problem, root, cluster) == own) {
            struct cw_chain there = chain_of(emit, cluster, pipeline->part, pipeline->parts);
            pipeline->peers[pipeline->peer_count++] = cw_chain_rank(&there, 0);
        }
    }
    if (is_root) {
        if (chain.count > 0) {
            pipeline->peers[pipeline->peer_count++] = cw_chain_rank(&chain, 0);
        }
        return source;
    }
    if (me > 0) {
        source = cw_chain_rank(&chain, me - 1);
    } else if (own == root) {
        source = problem->root;
    } else {
        struct cw_chain there = chain_of(emit, cw_cluster_parent(problem, root, own), pipeline->part, pipeline->parts);
        source = head_rank(emit, &there);
    }
    if (me + 1 < chain.count) {
        pipeline->peers[pipeline->peer_count++] = cw_chain_rank(&chain, me + 1);
    }
    return source;
}

static void pipeline_emit(struct pipeline *pipeline)
{
    struct cw_emit *emit = pipeline->emit;
    uint32_t source = pipeline_peers(pipeline);
    if (source != CW_NO_OP) {
        cw_emit_receive_open(emit, source, pipeline->to, pipeline->bytes, pipeline->segment_bytes);
    }
    for (uint32_t i = 0; i < pipeline->peer_count; i++) {
        pipeline->opened[i] = cw_emit_send_open(emit, pipeline->peers[i], pipeline->bytes, pipeline->segment_bytes);
    }
    if (source == CW_NO_OP && pipeline->peer_count == 0) {
        return;
    }
    cw_emit_repeat(emit, pipeline->bytes, pipeline->segment_bytes);
    if (source != CW_NO_OP) {
        cw_emit_segment_receive(emit, source, pipeline->to);
    }
    for (uint32_t i = 0; i < pipeline->peer_count; i++) {
        cw_emit_segment_send(emit, pipeline->opened[i], pipeline->peers[i], pipeline->from, pipeline->to);
    }
    cw_emit_repeat_end(emit);
}

/* As many parts as ranks may send across at the same time: by the limit, and by the size of the root's cluster. */
static uint32_t part_count(const struct cw_emit *emit)
{
    const struct cw_problem *problem = emit->problem;
    uint32_t root = cw_problem_cluster(problem, problem->root);
    uint32_t others = cw_problem_cluster_size(problem, root) - 1;
    uint32_t parts = others > 0 ? others : 1;
    uint32_t senders = emit->parameters.senders;
    return senders > 0 && senders < parts ? senders : parts;
}

static void build_overlapped(struct cw_emit *emit, const struct cw_recipe *recipe)
{
    (void)recipe;
    uint64_t bytes = emit->problem->count * emit->problem->element_bytes;
    uint32_t parts = part_count(emit);
    struct cw_blocks blocks = cw_blocks_even(emit, bytes, parts);
    emit->schedule.promise.wan_bytes = bytes;
    emit->schedule.promise.wan_senders = parts;
    for (uint32_t part = 0; part < parts && emit->status == 0; part++) {
        uint64_t offset = cw_blocks_offset(&blocks, part);
        struct pipeline pipeline = {
            .emit = emit,
            .part = part,
            .parts = parts,
            .from = cw_place(emit->rank == emit->problem->root ? CW_BUFFER_SEND : CW_BUFFER_RECEIVE, offset),
            .to = cw_place(CW_BUFFER_RECEIVE, offset),
            .bytes = cw_blocks_bytes(&blocks, part),
        };
        pipeline.segment_bytes = cw_emit_segment_bytes(emit, pipeline.bytes);
        if (pipeline.bytes > 0) {
            pipeline_emit(&pipeline);
        }
    }
}

const struct cw_recipe cw_recipes_overlapped_bcast[] = {
    {{CW_BCAST, "clusters-overlapped", CW_TAKES_SENDERS | CW_TAKES_SEGMENT, CW_NEEDS_CLUSTERS,
      "scatter, crossing and all-gather in one pipeline of segments",
      "after Matsuda, Kudoh, Kodama, Takano and Ishikawa 2006, and a chain per part"},
     build_overlapped,
     0,
     NULL},
};
const uint32_t cw_recipes_overlapped_bcast_count =
    sizeof(cw_recipes_overlapped_bcast) / sizeof(cw_recipes_overlapped_bcast[0]);
